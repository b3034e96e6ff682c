//! Tests of the replica as its users see it. Those that measure the process are in `process`.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]
#![allow(clippy::print_stdout, reason = "the output of a failed test names its input")]

#[path = "../support/mod.rs"]
mod support;

mod backtraces;
mod calls;
mod divided;
mod fuzzing;
mod hosts;
mod keys;
mod life;
mod limits;
mod logs;
mod managed;
mod management;
mod model;
mod motoko;
mod october;
mod pages;
mod remote;
mod saved_subnet;
mod settings;
mod snapshots;
mod stable_memory;
mod subnet;
mod subnet_profiles;
mod testing;
mod torn;
