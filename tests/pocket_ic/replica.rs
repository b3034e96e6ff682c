//! Replicas and canisters as the scenarios use them: the embedded replica, and the same canister on the
//! tested and on the embedded replica. Every answer must be equal, to the byte and to the cycle.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use candid::utils::ArgumentEncoder;
use candid::{CandidType, decode_one, encode_args};
use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{Digest, DigestPart, Engine, Job, Measurement};
use stablebench_replica::{Execution, Module};
use stablebench_suite_users::{Users, UsersTask};

pub use candid::Principal;
pub use stablebench_replica::Rules;

/// The controller of every canister.
pub const CONTROLLER: Principal = Principal::anonymous();
/// A principal that controls no canister.
pub const STRANGER: Principal = Principal::from_slice(&[7]);

/// The mode of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Install,
    Reinstall,
    Upgrade,
}

/// The reject of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The name of the replica's error code.
    pub code: String,
    pub message: String,
}

/// A reply or a reject.
pub type Outcome = Result<Vec<u8>, Reject>;

/// The result of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    pub outcome: Outcome,
    /// Cycles that the canister paid.
    pub cycles: u128,
}

/// A replica. Any failure other than a canister's answer panics.
pub trait Replica: Send + Sync {
    /// Creates the first canister of a new subnet, without code and with 1 000 T cycles.
    fn create(&self) -> Box<dyn Canister>;

    /// Returns the rules by which it charges.
    fn rules(&self) -> Rules;

    /// Configures a command of the tool to run on this replica.
    fn configure(&self, command: &mut Command);
}

/// A canister.
pub trait Canister {
    fn install(&mut self, mode: Mode, wasm: &[u8], argument: &[u8]) -> Result<(), Reject>;
    fn update(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Updated;
    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome;

    /// Its id.
    fn id(&self) -> Principal;

    /// The time of the last round, in nanoseconds since 1970. `None` if the replica has no rounds.
    fn time(&self) -> Option<u64>;

    /// Sets the time of the next message, unless the replica has rounds.
    fn set_time(&mut self, time: u64);

    /// Takes a snapshot, which replaces the previous one.
    fn take_snapshot(&mut self);

    /// Restores the canister from the snapshot.
    fn load_snapshot(&mut self);
}

/// The embedded replica with the given rules.
pub struct Embedded(pub Rules);

impl Replica for Embedded {
    fn create(&self) -> Box<dyn Canister> {
        let canister = replica(self.0).create_canister().unwrap();
        Box::new(EmbeddedCanister { canister, snapshot: None, rules: self.0 })
    }

    fn rules(&self) -> Rules {
        self.0
    }

    fn configure(&self, command: &mut Command) {
        command.args(["--replica", "embedded", "--rules", self.0.name()]);
    }
}

struct EmbeddedCanister {
    canister: stablebench_replica::Canister,
    /// A fork.
    snapshot: Option<stablebench_replica::Canister>,
    rules: Rules,
}

impl Canister for EmbeddedCanister {
    fn install(&mut self, mode: Mode, wasm: &[u8], argument: &[u8]) -> Result<(), Reject> {
        let module = compile(self.rules, wasm).map_err(reject)?;
        let execution = match mode {
            Mode::Install | Mode::Reinstall => self.canister.install(&module, CONTROLLER, argument),
            Mode::Upgrade => self.canister.upgrade(&module, CONTROLLER, argument),
        };
        outcome(execution.unwrap()).map(drop)
    }

    fn update(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Updated {
        let execution = self.canister.update(caller, method, argument).unwrap();
        Updated { cycles: execution.cycles.get(), outcome: outcome(execution) }
    }

    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        outcome(self.canister.query(caller, method, argument).unwrap())
    }

    fn id(&self) -> Principal {
        self.canister.id()
    }

    fn time(&self) -> Option<u64> {
        None
    }

    fn set_time(&mut self, time: u64) {
        self.canister.set_time(time);
    }

    fn take_snapshot(&mut self) {
        self.snapshot = Some(self.canister.fork());
    }

    fn load_snapshot(&mut self) {
        self.canister = self.snapshot.as_ref().expect("a snapshot was taken").fork();
    }
}

fn outcome(execution: Execution) -> Outcome {
    execution.outcome.map_err(reject)
}

fn reject(reject: stablebench_replica::Reject) -> Reject {
    Reject { code: reject.code.name().to_owned(), message: reject.message }
}

/// The parent folder of the cache, which is shared with the command-line tests.
pub const CACHE_HOME: &str = env!("CARGO_TARGET_TMPDIR");

/// Returns the embedded replica with the given rules. Its compiled modules are cached on disk.
pub fn replica(rules: Rules) -> stablebench_replica::Replica {
    use stablebench_replica::Replica;
    static REPLICAS: Mutex<BTreeMap<&'static str, Replica>> = Mutex::new(BTreeMap::new());
    let mut replicas = REPLICAS.lock().unwrap_or_else(PoisonError::into_inner);
    let start = || {
        let cache = Path::new(CACHE_HOME).join("stablebench");
        Replica::new(rules, Some(cache)).unwrap()
    };
    replicas.entry(rules.name()).or_insert_with(start).clone()
}

/// Compiles a module, once in this process.
pub fn compile(rules: Rules, wasm: &[u8]) -> Result<Module, stablebench_replica::Reject> {
    type Key = (&'static str, [u8; 32]);
    static COMPILED: Mutex<BTreeMap<Key, Module>> = Mutex::new(BTreeMap::new());
    let key = (rules.name(), Sha256::digest(wasm).into());
    let compiled = COMPILED.lock().unwrap().get(&key).cloned();
    if let Some(module) = compiled {
        return Ok(module);
    }
    let module = replica(rules).compile(wasm)?;
    COMPILED.lock().unwrap().insert(key, module.clone());
    Ok(module)
}

/// Two canisters, used like one.
pub struct Pair {
    tested: Box<dyn Canister>,
    embedded: Box<dyn Canister>,
}

impl Pair {
    /// Creates two canisters without code.
    pub fn new(replica: &dyn Replica) -> Self {
        Self { tested: replica.create(), embedded: Embedded(replica.rules()).create() }
    }

    /// Creates two canisters with the module of a WebAssembly text.
    pub fn with(replica: &dyn Replica, wat: &str) -> Self {
        let mut pair = Self::new(replica);
        let installed = pair.install(Mode::Install, &wasm(wat), &[]);
        installed.unwrap_or_else(|reject| panic!("{reject:?}"));
        pair
    }
}

impl Pair {
    #[track_caller]
    fn assert_equal(&self, method: &str, tested: &Outcome, embedded: &Outcome) {
        // Canisters have other ids on newer servers.
        let ids = [self.tested.id(), self.embedded.id()].map(|id| id.to_text());
        let comparable = |outcome: &Outcome| {
            let rejected = |reject: &Reject| {
                let message = core(&reject.message).replace(&ids[0], &ids[1]);
                (reject.code.clone(), message)
            };
            outcome.as_ref().map_err(rejected).cloned()
        };
        assert!(
            comparable(tested) == comparable(embedded),
            "{method}\n  tested     {tested:02x?}\n  embedded   {embedded:02x?}"
        );
    }
}

/// Encodes a WebAssembly text.
pub fn wasm(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"))
}

impl Canister for Pair {
    fn install(&mut self, mode: Mode, wasm: &[u8], argument: &[u8]) -> Result<(), Reject> {
        let tested = self.tested.install(mode, wasm, argument);
        let embedded = self.embedded.install(mode, wasm, argument);
        // Versions of the replica describe a refused module in different words.
        let code = |result: &Result<(), Reject>| result.clone().map_err(|reject| reject.code);
        assert_eq!(code(&tested), code(&embedded), "{mode:?}: {tested:?}, {embedded:?}");
        tested
    }

    fn update(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Updated {
        // A message runs in the next round, which is a nanosecond later.
        if let Some(time) = self.tested.time() {
            self.embedded.set_time(time + 1);
        }
        let tested = self.tested.update(caller, method, argument);
        let embedded = self.embedded.update(caller, method, argument);
        self.assert_equal(method, &tested.outcome, &embedded.outcome);
        assert_eq!(tested.cycles, embedded.cycles, "cycles of {method}, tested and embedded");
        tested
    }

    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        let tested = self.tested.query(caller, method, argument);
        let embedded = self.embedded.query(caller, method, argument);
        self.assert_equal(method, &tested, &embedded);
        tested
    }

    fn id(&self) -> Principal {
        self.tested.id()
    }

    fn time(&self) -> Option<u64> {
        self.tested.time()
    }

    fn set_time(&mut self, time: u64) {
        self.embedded.set_time(time);
    }

    fn take_snapshot(&mut self) {
        self.tested.take_snapshot();
        self.embedded.take_snapshot();
    }

    fn load_snapshot(&mut self) {
        self.tested.load_snapshot();
        self.embedded.load_snapshot();
    }
}

/// The part of a reject message that is the same in all versions of the replica: the first line
/// without the prefix and the full stop that newer versions add.
fn core(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    let line = line
        .strip_prefix("Error from Canister ")
        .and_then(|rest| rest.split_once(": "))
        .map_or(line, |(_, rest)| rest);
    line.trim_end_matches('.')
}

/// The module of the bench canister.
pub static WASM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let file = include_bytes!("../../canisters/modules/bench.wasm.gz");
    let mut wasm = Vec::new();
    GzDecoder::new(&file[..]).read_to_end(&mut wasm).unwrap();
    wasm
});

/// A bench canister on both replicas.
pub struct Bench(pub Pair);

impl Bench {
    /// Creates and installs the canister.
    pub fn new(replica: &dyn Replica) -> Self {
        let mut bench = Self(Pair::new(replica));
        bench.install(Mode::Install);
        bench
    }

    pub fn install(&mut self, mode: Mode) {
        let arguments = encode_args(()).unwrap();
        let installed = self.0.install(mode, &WASM, &arguments);
        installed.unwrap_or_else(|reject| panic!("{mode:?}: {reject:?}"));
    }

    pub fn update_as<T>(
        &mut self,
        caller: Principal,
        method: &str,
        arguments: impl ArgumentEncoder,
    ) -> stablebench_protocol::Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        decode(method, self.0.update(caller, method, &arguments).outcome)
    }

    pub fn query_as<T>(
        &mut self,
        caller: Principal,
        method: &str,
        arguments: impl ArgumentEncoder,
    ) -> stablebench_protocol::Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        decode(method, self.0.query(caller, method, &arguments))
    }

    /// Sends an update by the controller, which must succeed.
    pub fn update<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> T
    where
        T: CandidType + DeserializeOwned,
    {
        let answer = self.update_as(CONTROLLER, method, arguments);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a query by the controller, which must succeed.
    pub fn query<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> T
    where
        T: CandidType + DeserializeOwned,
    {
        let answer = self.query_as(CONTROLLER, method, arguments);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends an update that measures work on the given number of rows.
    pub fn work(&mut self, method: &str, arguments: impl ArgumentEncoder, rows: u64) {
        let measurement: Measurement = self.update(method, arguments);
        assert_eq!(measurement.rows, rows, "{method}");
    }

    /// Returns the digest of all rows, computed by several queries.
    pub fn digest(&mut self, engine: Engine) -> Digest {
        const ROWS: u64 = 300;
        let job = Users { engine, payload_bytes: 0, task: UsersTask::Close };
        let mut part: Option<DigestPart> = None;
        loop {
            let next: DigestPart = self.query("content", (Job::new(&job), part, ROWS));
            if next.done {
                return next.digest;
            }
            part = Some(next);
        }
    }
}

fn decode<T>(method: &str, outcome: Outcome) -> stablebench_protocol::Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let reply = outcome.unwrap_or_else(|reject| panic!("{method}: {reject:?}"));
    decode_one(&reply)
        .unwrap_or_else(|error| panic!("cannot decode the reply of {method}: {error}"))
}
