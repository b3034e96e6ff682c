//! The System API: what a canister can ask of the replica while it runs.
//!
//! ```text
//!   names    which functions there are, and their types
//!   prices   what a call costs
//!   host     connects the rewritten module to this
//!   calls    what a call does
//!   environment, outgoing  those on environment variables, and on other canisters
//!   message  what a message was sent with and what it has answered so far
//!   slices   how its instructions are cut
//! ```

mod calls;
mod environment;
pub mod host;
mod log;
pub mod message;
pub mod names;
mod outgoing;
pub mod prices;
pub mod slices;
