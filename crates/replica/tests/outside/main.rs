//! What a canister finds around it: variables, stable memory from elsewhere, other canisters.

mod calls;
mod environment;
mod stable;

#[path = "../support/mod.rs"]
mod support;
