//! The code shared by all benchmark canisters.
//!
//! A canister implements [`Records`] or [`Sql`] for each of its engines, or [`KeyValue`] and
//! [`Points`] for special ones. It implements [`Canister`] once, lists its suites there, and calls
//! [`canister!`]. It then has the whole interface of `bench.did`:
//!
//! ```text
//! canister!  ── one function per endpoint: checks the caller
//!    └─ Host      finds the suite, or checks what is called by hand
//!         ├─ Suite    prepares a part of a job, does it, reads its results and tables
//!         └─ Canister   the engines, and the state over an upgrade
//!              └─ KeyValue, Records, Sql, Points   the work itself, row by row
//! ```
//!
//! A measurement contains nothing but the work. Checks come first, so that a call that is refused has
//! changed nothing.

mod canister;
mod endpoints;
pub mod floor;
mod host;
mod key_value;
mod measure;
pub mod points;
mod records;
pub mod sql;
mod state;
mod suites;
pub mod wire;

pub use canister::{Canister, Database, crate_versions};
pub use endpoints::{CANDID, require_controller};
pub use host::{Host, MAX_EACH};
pub use key_value::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes, digest_rows};
pub use measure::{heap_pages, instructions, measure, measure_step, phases, stable_pages, trap};
pub use points::{ByKey, Points};
pub use records::{ById, Records, VisitRecord};
pub use sql::Sql;
pub use state::{STATE_MEMORY, State, is_managed};
pub use suites::users::{MAX_MESSAGE_BYTES, MAX_MESSAGE_ROWS};
pub use suites::{Run, Staged, Suite, SuiteEntry};
