//! The instances of a server, and what its requests share.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Semaphore;

use super::blobs::Blobs;
use super::failure::Failed;
use super::gateways::Gateways;
use super::instance::Instance;
use super::pending::Pending;
use super::replicas::Replicas;
use super::types::{CreatedInstance, GatewayInfo, InitialTime, InstanceConfig};
use super::version::Version;
use crate::host::lock;
use crate::limits::MAX_INSTANCES;

/// Requests in progress, and the end of the last one.
pub struct Activity {
    pub running: usize,
    pub last: Instant,
}

/// The instances by number. `None` stands for one that was deleted.
#[derive(Default)]
pub struct Instances(pub Vec<Option<Arc<Instance>>>);

/// State shared by all requests of a server.
pub struct Shared {
    pub version: Version,
    pub replicas: Replicas,
    pub instances: Mutex<Instances>,
    pub blobs: Blobs,
    pub pending: Pending,
    /// One permit for each byte of JSON that is still free.
    pub json: Arc<Semaphore>,
    /// One permit for each operation that may still start.
    pub operations: Arc<Semaphore>,
    pub gateways: Gateways,
    pub activity: Mutex<Activity>,
}

impl Shared {
    /// Creates an instance.
    pub fn create(&self, config: InstanceConfig) -> Result<(usize, Arc<Instance>), String> {
        refuse_missing(&config)?;
        let full = || format!("There are {MAX_INSTANCES} instances already; delete one.");
        if lock(&self.instances).0.iter().flatten().count() >= MAX_INSTANCES {
            return Err(full());
        }
        let progress = match &config.initial_time {
            Some(InitialTime::AutoProgress(progress)) => Some(progress.artificial_delay_ms),
            _ => None,
        };
        let instance = Instance::new(config, &self.version, &self.replicas)?;
        if let Some(delay) = progress {
            instance.start_progress(delay).map_err(|failed| failed.into_parts().1)?;
        }
        let instance = Arc::new(instance);
        let mut instances = lock(&self.instances);
        if instances.0.iter().flatten().count() >= MAX_INSTANCES {
            instance.end();
            return Err(full());
        }
        instances.0.push(Some(Arc::clone(&instance)));
        Ok((instances.0.len() - 1, instance))
    }

    pub fn instance(&self, number: &str) -> Result<Arc<Instance>, Failed> {
        let number: usize = number
            .parse()
            .map_err(|_| Failed::Refused(format!("{number} is not the number of an instance.")))?;
        match lock(&self.instances).0.get(number) {
            Some(Some(instance)) => Ok(Arc::clone(instance)),
            Some(None) => Err(Failed::Refused("Instance was deleted".to_owned())),
            None => Err(Failed::Refused("Instance not found".to_owned())),
        }
    }

    /// Deletes an instance. What it is doing ends later.
    pub fn delete(&self, number: &str) -> Result<(), Failed> {
        let instance = self.instance(number)?;
        if let Ok(number) = number.parse::<usize>() {
            self.gateways.stop_for(number);
            if let Some(slot) = lock(&self.instances).0.get_mut(number) {
                *slot = None;
            }
        }
        // A message may still run. Threads of the runtime may all wait for it.
        let ending = std::thread::Builder::new().name("ending".into());
        let ended = ending.spawn(move || instance.end());
        ended.map(drop).map_err(|error| Failed::Machine(format!("No thread is left: {error}.")))?;
        Ok(())
    }

    /// The states of all instances, as servers list them.
    pub fn list(&self) -> Vec<&'static str> {
        let state = |instance: &Option<Arc<Instance>>| match instance {
            Some(_) => "Available",
            None => "Deleted",
        };
        lock(&self.instances).0.iter().map(state).collect()
    }
}

/// Refuses what no instance has here.
fn refuse_missing(config: &InstanceConfig) -> Result<(), String> {
    if let Some(features) = &config.icp_features
        && let Some((name, _)) = features.iter().find(|(_, config)| !config.is_null())
    {
        return Err(format!(
            "This server has no ICP feature {name}: it contains no modules of the network's own \
             canisters. Install them in the test."
        ));
    }
    let set = |value: &Option<serde_json::Value>| value.as_ref().is_some_and(|it| !it.is_null());
    if set(&config.bitcoind_addr) || set(&config.dogecoind_addr) {
        return Err("This server cannot connect to bitcoind or dogecoind: it has no adapters for \
                    these networks."
            .to_owned());
    }
    const LEVELS: [&str; 12] = [
        "critical", "crit", "error", "erro", "warning", "warn", "info", "debug", "debg", "trace",
        "trce", "off",
    ];
    if let Some(level) = &config.log_level
        && !LEVELS.contains(&level.to_ascii_lowercase().as_str())
    {
        return Err(format!("Failed to parse log level: {level:?}"));
    }
    if config.state_dir.is_some() {
        return Err(
            "This server keeps no state in files: state_dir is in the format of a replica, \
                    which it cannot read or write. Download and upload canister snapshots instead."
                .to_owned(),
        );
    }
    Ok(())
}

/// The answer to the creation of an instance.
pub fn created(
    number: usize,
    instance: &Instance,
    gateway: Option<GatewayInfo>,
) -> CreatedInstance {
    CreatedInstance {
        instance_id: number,
        topology: instance.topology(),
        http_gateway_info: gateway,
    }
}
