//! What the requests of a server share: its instances and their gateways, blobs by their hash, which
//! clients upload before they refer to them, and the results of operations that take longer than a
//! request may, which are read later:
//!
//! ```text
//!   operation ──→ 200, or after the client's patience 202 with a name
//!   GET    /read_graph/LABEL/NUMBER     404 until it is done, then its result
//!   DELETE /prune_graph/LABEL/NUMBER    drops the result
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use stablebench_replica::files;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::instance::Instance;
use super::topology::Replicas;
use super::types::{
    ApiError, CreatedInstance, Failed, GatewayBackend, GatewayConfig, GatewayDetails, GatewayInfo,
    InitialTime, InstanceConfig, Started, Version,
};
use crate::host::lock;
use crate::limits::{
    MAX_BLOB, MAX_BLOBS, MAX_GATEWAYS, MAX_INSTANCE_GATEWAYS, MAX_INSTANCES, MAX_RESULT_BYTES,
    MAX_RESULTS,
};

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

/// A blob as it was uploaded.
#[derive(Clone)]
pub struct Blob {
    /// The bytes.
    pub bytes: Bytes,
    /// `true` if they are gzipped.
    pub gzipped: bool,
}

impl Blob {
    /// Returns the content.
    pub fn unpack(&self) -> Result<Bytes, Failed> {
        if !self.gzipped {
            return Ok(self.bytes.clone());
        }
        let content = files::read_at_most(GzDecoder::new(&self.bytes[..]), MAX_BLOB as u64);
        content.map(Bytes::from).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => {
                Failed::TooLarge(format!("A blob has at most {MAX_BLOB} bytes."))
            }
            _ => Failed::Refused(format!("Decompression failed: {error}")),
        })
    }
}

#[derive(Default)]
struct Kept {
    blobs: BTreeMap<[u8; 32], Blob>,
    /// The hashes, the oldest first.
    order: VecDeque<[u8; 32]>,
    bytes: usize,
}

/// The blobs of a server.
#[derive(Default)]
pub struct Blobs(Mutex<Kept>);

impl Blobs {
    /// Keeps a blob and returns its hash.
    pub fn add(&self, bytes: Vec<u8>, gzipped: bool) -> [u8; 32] {
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        let mut kept = lock(&self.0);
        let size = bytes.len();
        let blob = Blob { bytes: bytes.into(), gzipped };
        if kept.blobs.insert(hash, blob).is_none() {
            kept.order.push_back(hash);
            kept.bytes += size;
        }
        while kept.bytes > MAX_BLOBS
            && let Some(oldest) = kept.order.pop_front()
        {
            if let Some(dropped) = kept.blobs.remove(&oldest) {
                kept.bytes -= dropped.bytes.len();
            }
        }
        hash
    }

    /// Returns the blob with a hash.
    pub fn get(&self, hash: &[u8]) -> Option<Blob> {
        let hash: [u8; 32] = hash.try_into().ok()?;
        lock(&self.0).blobs.get(&hash).cloned()
    }
}

/// The time for which a request waits, unless it says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);
/// The header with another time.
const HEADER: &str = "processing-timeout-ms";
/// The state in which all operations begin, in the words of the interface.
const LABEL: &str = "instance";

/// The result of an operation: JSON, or a failure.
pub type Outcome = Result<Vec<u8>, Failed>;

/// A status and JSON.
#[derive(Clone)]
struct Answer(StatusCode, Bytes);

impl Answer {
    fn new(outcome: Outcome) -> Self {
        match outcome {
            Ok(json) => Self(StatusCode::OK, json.into()),
            Err(failed) => {
                let (status, message) = failed.into_parts();
                let json = serde_json::to_vec(&ApiError { message }).unwrap_or_default();
                Self(status, json.into())
            }
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (self.0, kind, self.1).into_response()
    }
}

#[derive(Default)]
struct Results {
    /// `None` while the operation runs.
    answers: BTreeMap<u64, Option<Answer>>,
    done: VecDeque<u64>,
    /// Bytes of those that are done.
    bytes: usize,
    next: u64,
}

impl Results {
    /// Keeps the answer to an operation that ran, unless nobody wants it any more. At a limit, the
    /// oldest are dropped.
    fn keep(&mut self, number: u64, mut answer: Answer) {
        if answer.1.len() > MAX_RESULT_BYTES {
            answer = Answer::new(Err(Failed::TooLarge(format!(
                "The result has {} bytes, at most {MAX_RESULT_BYTES} are kept for later; wait \
                 longer for it ({HEADER}), or ask for less.",
                answer.1.len()
            ))));
        }
        let Some(slot) = self.answers.get_mut(&number) else { return };
        self.bytes += answer.1.len();
        *slot = Some(answer);
        self.done.push_back(number);
        while (self.done.len() > MAX_RESULTS || self.bytes > MAX_RESULT_BYTES)
            && let Some(oldest) = self.done.pop_front()
        {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(Some(answer)) = self.answers.remove(&number) {
            self.bytes -= answer.1.len();
        }
    }
}

/// The operations of a server that take long.
#[derive(Clone, Default)]
pub struct Pending(Arc<Mutex<Results>>);

impl Pending {
    /// Answers with the result of an operation, or with its name if it takes too long.
    pub async fn answer(&self, headers: &HeaderMap, mut task: JoinHandle<Outcome>) -> Response {
        let named = headers.get(HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
        let patience = named.map_or(PATIENCE, Duration::from_millis);
        if let Ok(done) = timeout(patience, &mut task).await {
            return Answer::new(done.unwrap_or_else(failed)).into_response();
        }
        let number = {
            let mut results = lock(&self.0);
            let number = results.next;
            results.next += 1;
            results.answers.insert(number, None);
            number
        };
        let pending = self.clone();
        tokio::spawn(async move {
            let answer = Answer::new(task.await.unwrap_or_else(failed));
            lock(&pending.0).keep(number, answer);
        });
        let started = Started { state_label: LABEL.to_owned(), op_id: number.to_string() };
        (StatusCode::ACCEPTED, Json(started)).into_response()
    }

    /// Answers with the result of an operation that was started before.
    pub fn read(&self, number: &str) -> Response {
        let found =
            number.parse().ok().and_then(|number: u64| lock(&self.0).answers.get(&number).cloned());
        match found {
            Some(Some(answer)) => answer.into_response(),
            Some(None) => Failed::Missing("The operation is not done.".to_owned()).into_response(),
            None => Failed::Missing(format!("There is no operation {number}.")).into_response(),
        }
    }

    /// Drops a result.
    pub fn prune(&self, number: &str) -> Response {
        if let Ok(number) = number.parse::<u64>() {
            let mut results = lock(&self.0);
            results.forget(number);
            results.done.retain(|done| *done != number);
        }
        Json(()).into_response()
    }
}

/// The failure of a task that panicked.
fn failed(error: tokio::task::JoinError) -> Outcome {
    Err(Failed::Machine(format!("The server failed: {error}; see its log.")))
}

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
    fn stop_for(&self, instance: usize) {
        for slot in &mut *lock(&self.0) {
            slot.take_if(|running| running.serves(instance));
        }
    }

    /// Stops all gateways.
    pub fn stop_all(&self) {
        lock(&self.0).iter_mut().for_each(|slot| *slot = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Results {
        fn begin(&mut self) -> u64 {
            self.next += 1;
            self.answers.insert(self.next, None);
            self.next
        }

        fn kept(&self) -> usize {
            assert_eq!(self.answers.values().flatten().count(), self.done.len());
            let sizes = self.answers.values().flatten().map(|answer| answer.1.len());
            assert_eq!(sizes.sum::<usize>(), self.bytes);
            self.done.len()
        }
    }

    fn answer(bytes: usize) -> Answer {
        Answer::new(Ok(vec![0; bytes]))
    }

    #[test]
    fn kept_results_have_a_number_and_a_size() {
        let mut results = Results::default();
        for number in 0..MAX_RESULTS + 5 {
            let started = results.begin();
            results.keep(started, answer(1));
            assert_eq!(results.kept(), MAX_RESULTS.min(number + 1));
        }
        for number in [1, 2, 3, 4, 4] {
            let started = results.begin();
            results.keep(started, answer(MAX_RESULT_BYTES / 4 - 1_000));
            assert_eq!(
                results.answers.values().flatten().filter(|it| it.1.len() > 1).count(),
                number
            );
            assert!(results.bytes <= MAX_RESULT_BYTES);
            results.kept();
        }
        // One that is too large by itself becomes an error, and pushes out no other.
        let (before, started) = (results.kept(), results.begin());
        results.keep(started, answer(MAX_RESULT_BYTES + 1));
        let refused = results.answers[&started].clone().unwrap();
        assert_eq!((refused.0, results.kept()), (StatusCode::PAYLOAD_TOO_LARGE, before + 1));
        // One that was pruned while it ran is not kept.
        let started = results.begin();
        results.forget(started);
        results.keep(started, answer(1));
        assert_eq!(results.kept(), before + 1);
    }
}
