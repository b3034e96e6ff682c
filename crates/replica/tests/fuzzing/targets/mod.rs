//! What fuzzing does with its bytes, for `cargo fuzz` and for the tests alike.
//!
//! ```text
//!   arbitrary_module   bytes → a module, plain, gzipped or damaged → install, call
//!   generated_module   bytes → a valid module with System API → install, call, fork
//!   call_sequence      bytes → calls, forks, installs of one canister, beside a model
//!   saved_state        bytes → damage to the file of a saved canister → load, call, save
//!   cache_entry        bytes → damage to the file of a compiled module → compile, call
//!
//!   damage     what is done to bytes that were whole
//!   content    what a canister keeps, read from the file that it saves
//!   holds      what holds of every message, whatever the module
//!   machine    the canister of the sequences, and what it can be told to do
//!   model      the same in memory (memory)
//!   pair       both, side by side
//! ```
//!
//! A target panics where something does not hold. Bytes that make no input are ignored.

mod arbitrary_module;
mod cache_entry;
mod call_sequence;
mod content;
mod damage;
mod generated_module;
mod holds;
mod machine;
mod memory;
mod model;
mod pair;
mod saved_state;

pub use arbitrary_module::arbitrary_module;
pub use cache_entry::cache_entry;
pub use call_sequence::call_sequence;
pub use generated_module::generated_module;
pub use saved_state::saved_state;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use stablebench_replica::{Principal, Replica};

/// The caller of everything, and the controller of every canister.
const CALLER: Principal = Principal::anonymous();

/// One replica for all inputs: a second one would find nothing that this one does not.
fn replica() -> &'static Replica {
    static REPLICA: OnceLock<Replica> = OnceLock::new();
    REPLICA.get_or_init(|| {
        Replica::new(stablebench_replica::Rules::of_2025_10(), None).expect("the engine runs here")
    })
}

/// A folder of its own for an input, in memory where the system offers that.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("fuzzed-").tempdir_in(directory).expect("a folder")
}

/// Fails where this process holds more than anything here needs.
fn bounded_memory() {
    const MOST: u64 = 4 << 30;
    // Elsewhere a fuzzer has a limit of its own.
    let Ok(statm) = std::fs::read_to_string("/proc/self/statm") else { return };
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let bytes = pages.expect("a number of pages") * 4_096;
    assert!(bytes < MOST, "{bytes} bytes are resident");
}

static MET: Mutex<BTreeMap<(&str, &str), usize>> = Mutex::new(BTreeMap::new());

/// Notes that `target` met something, so that a run can tell whether it met enough.
fn met(target: &'static str, what: &'static str) {
    *MET.lock().unwrap().entry((target, what)).or_default() += 1;
}

/// What a target met in this process, and how often.
#[allow(dead_code, reason = "asked for by the bounded runs")]
pub fn all_met(target: &str) -> BTreeMap<&'static str, usize> {
    let met = MET.lock().unwrap();
    met.iter().filter(|((of, _), _)| *of == target).map(|((_, what), n)| (*what, *n)).collect()
}
