//! The endpoint as clients see it: `ic-agent` and `ic-utils`, which verify every certificate and
//! every node's signature, and requests that no client would send.

mod agent;
mod calls;
mod fuzzed;
mod identities;
mod management;
mod refusals;
mod server;
