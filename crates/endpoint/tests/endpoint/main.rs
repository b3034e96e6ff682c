//! The endpoint as clients see it: `ic-agent` and `ic-utils`, which verify every certificate and
//! every node's signature, and requests that no client would send.

mod access;
mod agent;
#[path = "../../../replica/tests/fuzzing/bounded.rs"]
mod bounded;
mod calls;
mod fuzzed;
mod fuzzing;
mod hostile;
mod identities;
mod management;
mod refusals;
mod server;
mod targets;
mod tried;
