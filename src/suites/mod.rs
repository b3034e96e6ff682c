//! What is measured.

pub mod published;
pub mod users;

/// Names and questions of all suites.
pub const SUITES: &[(&str, &str)] =
    &[("users", "What does it cost to add, read, change and remove rows among many?")];
