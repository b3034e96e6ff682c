//! The code shared by all benchmark canisters.
//!
//! A canister implements [`Records`] or [`Sql`] for each of its engines, or the trait of a suite for a
//! special one. It implements [`Canister`] once, lists its suites there, implements what these ask for,
//! and calls [`canister!`]. It then has the methods of `canisters/harness/harness.did`:
//!
//! ```text
//! canister!  ── one function per endpoint: checks the caller
//!    └─ Host      finds the suite
//!         ├─ Suite    prepares a part of a job, does it, reads its results and tables
//!         └─ Canister   the engines, and the state over an upgrade
//!              └─ Records, Sql, …   the work itself, row by row
//! ```
//!
//! No suite is known here: the work of each is in its own crate, `suites/NAME/src/canister.rs`.
//!
//! A measurement contains nothing but the work. Checks come first, so that a call that is refused has
//! changed nothing.

mod canister;
pub mod endpoints;
mod host;
mod measure;
mod records;
pub mod sql;
mod suite;

pub use canister::{Canister, STATE_MEMORY, SavedState, crate_versions, description, is_managed};
pub use host::Host;
pub use measure::{heap_pages, instructions, measure, measure_step, phases, stable_pages, trap};
pub use records::{Records, VisitRecord};
pub use sql::Sql;
pub use suite::{
    MAX_EACH, MAX_MESSAGE_BYTES, MAX_MESSAGE_ROWS, Run, Staged, Suite, SuiteEntry, max_rows,
};
