//! Modules compiled by the embedded replica, each once a process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use sha2::{Digest, Sha256};
use stablebench_replica::{Module, Reject, Replica};

/// The embedded replica. Compiled modules are kept from one run to the next.
pub static REPLICA: LazyLock<Replica> = LazyLock::new(|| {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("modules");
    Replica::new(stablebench_replica::Rules::of_2025_10(), Some(cache)).unwrap()
});

/// Compiles a module, or answers why it is refused.
pub fn compile(wasm: &[u8]) -> Result<Module, Reject> {
    static COMPILED: Mutex<BTreeMap<[u8; 32], Module>> = Mutex::new(BTreeMap::new());
    let hash = Sha256::digest(wasm).into();
    let known = COMPILED.lock().unwrap().get(&hash).cloned();
    if let Some(module) = known {
        return Ok(module);
    }
    let module = REPLICA.compile(wasm)?;
    COMPILED.lock().unwrap().insert(hash, module.clone());
    Ok(module)
}
