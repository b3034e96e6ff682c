//! What fuzzing does with its bytes, for `cargo fuzz` and for the tests alike.
//!
//! ```text
//!   arbitrary_module   bytes → a module, plain, gzipped or damaged → install, call
//!   generated_module   bytes → a valid module with System API → install, call, fork
//!   call_sequence      bytes → calls, forks, installs of one canister, beside a model
//!
//!   content    what a canister keeps, read from the file that it saves
//!   holds      what holds of every message, whatever the module
//!   machine    the canister of the sequences, and what it can be told to do
//!   model      the same in memory (memory)
//!   pair       both, side by side
//! ```
//!
//! A target panics where something does not hold. Bytes that make no input are ignored.

mod arbitrary_module;
mod call_sequence;
mod content;
mod generated_module;
mod holds;
mod machine;
mod memory;
mod model;
mod pair;

pub use arbitrary_module::arbitrary_module;
pub use call_sequence::call_sequence;
pub use generated_module::generated_module;

use std::collections::BTreeMap;
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
