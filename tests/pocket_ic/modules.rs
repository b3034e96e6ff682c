//! Modules compiled by the embedded replica, each once a process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use stablebench_replica::{Module, Reject, Replica, Rules};

/// The embedded replica under those rules. Compiled modules are kept from one run to the next.
pub fn replica(rules: Rules) -> Replica {
    static REPLICAS: Mutex<BTreeMap<&'static str, Replica>> = Mutex::new(BTreeMap::new());
    let mut replicas = REPLICAS.lock().unwrap_or_else(PoisonError::into_inner);
    let start = || {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("modules");
        Replica::new(rules, Some(cache)).unwrap()
    };
    replicas.entry(rules.name()).or_insert_with(start).clone()
}

/// Compiles a module under those rules, or answers why it is refused.
pub fn compile(rules: Rules, wasm: &[u8]) -> Result<Module, Reject> {
    type Key = (&'static str, [u8; 32]);
    static COMPILED: Mutex<BTreeMap<Key, Module>> = Mutex::new(BTreeMap::new());
    let key = (rules.name(), Sha256::digest(wasm).into());
    let known = COMPILED.lock().unwrap().get(&key).cloned();
    if let Some(module) = known {
        return Ok(module);
    }
    let module = replica(rules).compile(wasm)?;
    COMPILED.lock().unwrap().insert(key, module.clone());
    Ok(module)
}
