//! What every benchmark canister shares.
//!
//! A canister implements [`Records`] or [`Sql`] for each of its engines, or [`KeyValue`] and
//! [`Points`] where it has something special, implements [`Canister`] once, and calls
//! [`canister!`] with it. It then has the whole interface of `bench.did`:
//!
//! ```text
//! canister!  ── one function an endpoint: who calls?
//!    └─ Host      are the arguments sound? are the ids there? then measure
//!         └─ Canister   which engines there are, and what survives an upgrade
//!              └─ KeyValue, Records, Sql, Points   the work itself, row by row
//! ```
//!
//! Nothing but the work is inside a measurement. Checks come first, so that a call
//! that is refused has changed nothing. In a measured message of the suites there is next to
//! nothing beside the work: a message before it stages the work, see `host/staged.rs`.

mod by_id;
mod by_key;
mod canister;
mod crates;
mod endpoints;
pub mod floor;
mod host;
mod key_value;
pub mod managed;
mod measure;
pub mod phases;
pub mod points;
mod pragmas;
mod presence;
mod records;
pub mod sql;
mod state;
mod suites;
mod system;
pub mod wire;

pub use by_id::ById;
pub use by_key::ByKey;
pub use canister::{Canister, Database};
pub use crates::crate_versions;
pub use endpoints::require_controller;
pub use host::{Host, MAX_EACH, MAX_MESSAGE_BYTES, MAX_MESSAGE_ROWS};
pub use key_value::{Done, Failed, KeyValue, Writes};
pub use measure::measure;
pub use points::Points;
pub use pragmas::{Keyword, Pragmas};
pub use records::{Records, VisitRecord};
pub use sql::Sql;
pub use state::State;
pub use system::{heap_pages, instructions, stable_pages, trap};
