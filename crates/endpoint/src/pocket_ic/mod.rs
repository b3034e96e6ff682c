//! PocketIC's REST interface over the embedded replica: tests that use a PocketIC server run on it.
//!
//! ```text
//!   routes ──→ operations ──→ Instance ──→ Host ──→ Subnet
//!                  │               └── topology, outcalls, snapshots
//!                  └── long ones end later: pending
//!   gateway ──→ an instance's canisters over HTTP
//! ```
//!
//! An instance is one subnet of the embedded replica, whose parts stand for the subnets of the
//! instance. What is missing is refused with a sentence that says why.

mod blobs;
mod gateway;
mod instance;
mod operations;
mod outcalls;
mod pending;
mod routes;
mod snapshots;
mod topology;
mod types;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use candid::Principal;
use stablebench_replica::{Replica, SubnetKind};
use tokio::sync::Semaphore;

use crate::host::lock;
use crate::limits::{MAX_INSTANCES, MAX_LARGE_JSON, MAX_OPERATIONS};
use crate::server::{self, Listener};
use blobs::Blobs;
use gateway::Gateways;
use instance::Instance;
use pending::Pending;
use types::{ApiError, CreatedInstance, InstanceConfig};

/// The version of a PocketIC server whose clients are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    number: String,
    major: u32,
}

/// The newest version of each generation of servers, which is that of their clients.
const VERSIONS: [&str; 8] =
    ["9.0.3", "10.0.0", "11.0.0", "12.0.0", "13.0.0", "14.0.0", "15.0.0", "16.1.0"];
/// The generations.
const GENERATIONS: std::ops::RangeInclusive<u32> = 9..=16;

/// The error of a text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no PocketIC {0} here; there are 9 to 16, such as {newest}", newest = VERSIONS[7])]
pub struct UnknownVersion(String);

impl Version {
    /// The number, such as `16.1.0`.
    pub fn number(&self) -> &str {
        &self.number
    }
}

impl Default for Version {
    /// The newest version.
    fn default() -> Self {
        Self { number: VERSIONS[VERSIONS.len() - 1].to_owned(), major: *GENERATIONS.end() }
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    /// Parses a version of three numbers, or the first of them.
    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let unknown = || UnknownVersion(text.to_owned());
        let numbers: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        let numbers = numbers.map_err(|_| unknown())?;
        let major = numbers.first().copied().filter(|major| GENERATIONS.contains(major));
        let major = major.ok_or_else(unknown)?;
        let newest = VERSIONS.iter().find(|known| known.starts_with(&format!("{major}.")));
        let number = match numbers.len() {
            1 => newest.map(|known| (*known).to_owned()),
            3 => Some(text.to_owned()),
            _ => None,
        };
        Ok(Self { number: number.ok_or_else(unknown)?, major })
    }
}

type Source = dyn Fn(SubnetKind) -> Result<Replica, String> + Send + Sync;

/// The replicas of a server, one for each kind of subnet. They are started on demand.
#[derive(Clone)]
pub struct Replicas {
    source: Arc<Source>,
    started: Arc<Mutex<BTreeMap<&'static str, Replica>>>,
}

impl Replicas {
    /// Creates replicas by a function.
    pub fn new(
        source: impl Fn(SubnetKind) -> Result<Replica, String> + Send + Sync + 'static,
    ) -> Self {
        Self { source: Arc::new(source), started: Arc::default() }
    }

    fn get(&self, kind: SubnetKind) -> Result<Replica, String> {
        let mut started = lock(&self.started);
        if let Some(replica) = started.get(kind.name()) {
            return Ok(replica.clone());
        }
        let replica = (self.source)(kind)?;
        started.insert(kind.name(), replica.clone());
        Ok(replica)
    }
}

/// The failure of an operation.
#[derive(Debug)]
pub enum Failed {
    /// The request cannot be fulfilled.
    Refused(String),
    /// The caller may not do this.
    Forbidden(String),
    /// There is nothing at the address.
    Missing(String),
    /// The body is too large.
    TooLarge(String),
    /// A limit is reached.
    TooMany(String),
    /// This machine failed.
    Machine(String),
}

impl Failed {
    /// A message cannot be sent.
    fn ingress(reason: impl AsRef<str>) -> Self {
        Self::Refused(format!("BadIngressMessage({:?})", reason.as_ref()))
    }

    fn no_canister(id: &Principal) -> Self {
        Self::Refused(format!("CanisterNotFound(CanisterId({id}))"))
    }

    fn empty(id: &Principal) -> Self {
        Self::Refused(format!("CanisterIsEmpty(CanisterId({id}))"))
    }

    fn no_subnet(id: &Principal) -> Self {
        Self::Refused(format!("SubnetNotFound({id})"))
    }

    fn into_parts(self) -> (StatusCode, String) {
        match self {
            Self::Refused(text) => (StatusCode::BAD_REQUEST, text),
            Self::Forbidden(text) => (StatusCode::FORBIDDEN, text),
            Self::Missing(text) => (StatusCode::NOT_FOUND, text),
            Self::TooLarge(text) => (StatusCode::PAYLOAD_TOO_LARGE, text),
            Self::TooMany(text) => (StatusCode::TOO_MANY_REQUESTS, text),
            Self::Machine(text) => (StatusCode::INTERNAL_SERVER_ERROR, text),
        }
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let (status, message) = self.into_parts();
        (status, Json(ApiError { message })).into_response()
    }
}

/// Requests in progress, and the end of the last one.
struct Activity {
    running: usize,
    last: Instant,
}

/// The instances by number. `None` stands for one that was deleted.
#[derive(Default)]
struct Instances(Vec<Option<Arc<Instance>>>);

/// A PocketIC server.
#[derive(Clone)]
pub struct PocketIc(Arc<Shared>);

struct Shared {
    version: Version,
    replicas: Replicas,
    instances: Mutex<Instances>,
    blobs: Blobs,
    pending: Pending,
    /// One permit for each byte of JSON that is still free.
    json: Arc<Semaphore>,
    /// One permit for each operation that may still start.
    operations: Arc<Semaphore>,
    gateways: Gateways,
    activity: Mutex<Activity>,
}

impl PocketIc {
    /// Creates a server for clients of a version.
    pub fn new(version: Version, replicas: Replicas) -> Self {
        Self(Arc::new(Shared {
            version,
            replicas,
            instances: Mutex::default(),
            blobs: Blobs::default(),
            pending: Pending::default(),
            json: Arc::new(Semaphore::new(MAX_LARGE_JSON)),
            operations: Arc::new(Semaphore::new(MAX_OPERATIONS)),
            gateways: Gateways::default(),
            activity: Mutex::new(Activity { running: 0, last: Instant::now() }),
        }))
    }

    /// Answers requests until `stop` resolves, then stops all gateways.
    ///
    /// # Errors
    ///
    /// If the runtime cannot use the socket.
    pub async fn serve(
        &self,
        listener: Listener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let router = routes::router(Arc::clone(&self.0), listener.guard());
        let served = server::serve(listener, router, server::Limits::default(), stop).await;
        self.0.gateways.stop_all();
        served
    }

    /// Ends all instances. Running messages are ended, waiting ones are dropped.
    pub fn end(&self) {
        let instances = std::mem::take(&mut *lock(&self.0.instances));
        instances.0.into_iter().flatten().for_each(|instance| instance.end());
    }

    /// The time since the last request, or `None` while a request is in progress.
    pub fn idle(&self) -> Option<Duration> {
        let activity = lock(&self.0.activity);
        (activity.running == 0).then(|| activity.last.elapsed())
    }
}

impl Shared {
    /// Creates an instance.
    fn create(&self, config: InstanceConfig) -> Result<(usize, Arc<Instance>), String> {
        refuse_missing(&config)?;
        let full = || format!("There are {MAX_INSTANCES} instances already; delete one.");
        if lock(&self.instances).0.iter().flatten().count() >= MAX_INSTANCES {
            return Err(full());
        }
        let progress = match &config.initial_time {
            Some(types::InitialTime::AutoProgress(progress)) => Some(progress.artificial_delay_ms),
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

    fn instance(&self, number: &str) -> Result<Arc<Instance>, Failed> {
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
    fn delete(&self, number: &str) -> Result<(), Failed> {
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
    fn list(&self) -> Vec<&'static str> {
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
fn created(
    number: usize,
    instance: &Instance,
    gateway: Option<types::GatewayInfo>,
) -> CreatedInstance {
    CreatedInstance {
        instance_id: number,
        topology: instance.topology(),
        http_gateway_info: gateway,
    }
}
