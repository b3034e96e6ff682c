//! The canisters, built by the tool, on the embedded replica.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by a panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod bench;
