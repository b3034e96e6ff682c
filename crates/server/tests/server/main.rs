//! The server as clients see it: `ic-agent` and `ic-utils`, which verify every certificate and
//! every node's signature, and requests that no client would send.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod calls;
mod clients;
mod gateway;
mod hostile;
mod management;
mod pocket_ic;
mod refusals;
mod server;
mod system;
mod targets;
