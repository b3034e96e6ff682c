//! Tests of the recorded cases and of the program that checks them.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod cases;
mod commands;
mod documented;
mod subnet;
