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
//!   host       folders and memory
//!   machine    the canister of the sequences, and what it can be told to do
//!   met        what was met, and how often
//!   model      the same in memory (memory)
//!   pair       both, side by side
//!   sealed     files of saved canisters, taken apart and put together
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
mod host;
mod machine;
mod memory;
mod met;
mod model;
mod pair;
mod saved_state;
mod sealed;

pub use arbitrary_module::arbitrary_module;
pub use cache_entry::cache_entry;
pub use call_sequence::call_sequence;
pub use generated_module::generated_module;
#[allow(unused_imports, reason = "asked for by the bounded runs")]
pub use met::all_met;
pub use saved_state::saved_state;

use std::sync::OnceLock;

use host::{bounded_memory, folder};
use met::met;
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
