//! The surroundings of a canister: environment variables, loaded stable memory, other canisters.

mod calls;
mod environment;
mod stable;

#[path = "../support/mod.rs"]
mod support;
