//! Tests of the replica as its users see it, each subject in a module. Those that measure the process
//! are in `process`.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]
#![allow(clippy::print_stdout, reason = "the output of a failed test names its input")]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod diagnostics;
mod fuzzing;
mod hosts;
mod keys;
mod life;
mod limits;
mod management;
mod model;
mod motoko;
mod pages;
mod settings;
mod snapshots;
mod stable_memory;
mod subnet;
