//! The gateways of a server.

use std::sync::Mutex;

use tokio::sync::oneshot;

use super::types::{GatewayBackend, GatewayConfig, GatewayDetails, GatewayInfo};
use crate::host::lock;
use crate::limits::{MAX_GATEWAYS, MAX_INSTANCE_GATEWAYS};

/// A gateway that runs.
struct Running {
    details: GatewayDetails,
    /// Stops the gateway when it is dropped.
    _stop: oneshot::Sender<()>,
}

impl Running {
    fn serves(&self, instance: usize) -> bool {
        matches!(self.details.forward_to, GatewayBackend::PocketIcInstance(it) if it == instance)
    }
}

/// The gateways by number.
#[derive(Default)]
pub struct Gateways(Mutex<Vec<Option<Running>>>);

impl Gateways {
    /// Returns the gateways that run.
    pub fn list(&self) -> Vec<GatewayDetails> {
        lock(&self.0).iter().flatten().map(|running| running.details.clone()).collect()
    }

    /// Adds a gateway of an instance.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub fn add(
        &self,
        instance: usize,
        config: GatewayConfig,
        port: u16,
        stop: oneshot::Sender<()>,
    ) -> Result<GatewayInfo, String> {
        let mut gateways = lock(&self.0);
        let running = gateways.iter().flatten();
        if running.clone().count() >= MAX_GATEWAYS {
            return Err(format!("This server has {MAX_GATEWAYS} gateways already; stop one."));
        }
        if running.filter(|running| running.serves(instance)).count() >= MAX_INSTANCE_GATEWAYS {
            return Err(format!(
                "Instance {instance} has {MAX_INSTANCE_GATEWAYS} gateways already; stop one."
            ));
        }
        let instance_id = gateways.len();
        let details = GatewayDetails {
            instance_id,
            port,
            forward_to: config.forward_to,
            domains: config.other.domains,
            https_config: None,
        };
        gateways.push(Some(Running { details, _stop: stop }));
        Ok(GatewayInfo { instance_id, port })
    }

    /// Stops a gateway.
    pub fn stop(&self, number: &str) {
        if let Ok(number) = number.parse::<usize>()
            && let Some(slot) = lock(&self.0).get_mut(number)
        {
            *slot = None;
        }
    }

    /// Stops the gateways of an instance.
    pub fn stop_for(&self, instance: usize) {
        for slot in &mut *lock(&self.0) {
            slot.take_if(|running| running.serves(instance));
        }
    }

    /// Stops all gateways.
    pub fn stop_all(&self) {
        lock(&self.0).iter_mut().for_each(|slot| *slot = None);
    }
}
