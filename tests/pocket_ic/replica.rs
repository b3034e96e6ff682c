//! Replicas and canisters as the scenarios use them, and the embedded replica as one of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use stablebench_replica::{Execution, Module};

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
