//! Tests of generated cases, and of the program that generates, records and verifies.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod commands;
mod generated;
