//! Fuzz targets, for `cargo fuzz` and for the tests.
//!
//! ```text
//!   arbitrary_module   bytes → a module, plain, gzipped or damaged → install, call
//!   generated_module   bytes → a valid module with System API → install, call, fork
//!   call_sequence      bytes → calls, forks, installs of canisters, compared with models
//!   subnet_calls       bytes → calls between canisters, compared with a model
//!   saved_state        bytes → damage to the file of a saved canister → load, call, save
//!   cache_entry        bytes → damage to the file of a compiled module → compile, call
//!
//!   damage      changes to valid bytes
//!   content     state of a canister, read from the file that it saves
//!   host        folders and memory limits
//!   machine     the canister of the sequences, and its scripts
//!   memory      a memory of a model
//!   met         number of events of each kind
//!   model       a model of the machine
//!   pair        a canister and its model
//!   properties  properties of every message of any module
//!   sealed      files of saved canisters, split into parts and assembled
//! ```
//!
//! A target panics if a check fails. Bytes that are too short for an input are ignored.

mod arbitrary_module;
mod cache_entry;
mod call_sequence;
pub mod content;
mod damage;
mod generated_module;
mod host;
mod machine;
pub mod memory;
pub mod met;
mod model;
mod pair;
mod properties;
mod saved_state;
mod sealed;
mod subnet_calls;

pub use arbitrary_module::arbitrary_module;
pub use cache_entry::cache_entry;
pub use call_sequence::call_sequence;
pub use generated_module::generated_module;
#[allow(unused_imports, reason = "used by the bounded runs")]
pub use met::all_met;
pub use saved_state::saved_state;
pub use subnet_calls::subnet_calls;

use std::sync::OnceLock;

use host::{bounded_memory, folder};
use met::met;
use stablebench_replica::{Principal, Replica};

/// The caller of all messages and the controller of all canisters.
const CALLER: Principal = Principal::anonymous();

/// The replica for all inputs.
fn replica() -> &'static Replica {
    static REPLICA: OnceLock<Replica> = OnceLock::new();
    REPLICA.get_or_init(|| {
        Replica::new(stablebench_replica::Rules::of_2025_10(), None).expect("the engine runs here")
    })
}
