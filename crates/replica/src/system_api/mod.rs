//! The System API: calls from a canister to the replica.
//!
//! ```text
//!   names     the functions and their types
//!   prices    their prices
//!   host      state of a running message in the engine
//!   link      connects a rewritten module to the implementations
//!   calls, call_functions   implementations; those of `ic0.call_*`
//!   marks     pages that the running message has touched
//!   request   calls to other canisters
//!   message   input and effects of a message, and its log
//!   slices    division of a message's instructions into slices
//! ```

mod call_functions;
mod calls;
pub mod host;
pub mod link;
pub mod marks;
pub mod message;
pub mod names;
pub mod prices;
pub mod request;
pub mod slices;
