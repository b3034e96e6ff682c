//! Profiles of messages by function, and their formats.
//!
//! ```text
//!   profiler.rs   the embedded replica, which profiles measured messages
//!   executions.rs a call that causes several executions
//!     └──→ flame.rs    their call tree, by names
//!            └──→ export.rs   table, flame graph, JSON, …
//! ```

mod executions;
mod export;
mod flame;
mod profiler;
#[cfg(test)]
mod tests;

pub use executions::{compare, of_executions};
pub use export::{Heading, difference, firefox, folded, json, svg, svg_of_difference, table};
pub use flame::Flame;
pub use profiler::{Profiler, check};
