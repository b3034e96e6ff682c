//! Cases for the embedded replica: generates them, and records what a PocketIC server answers.
//!
//! ```text
//!   generate ──► cases ──► record (PocketIC server) ──► cases with expected answers
//!                                                            │
//!                              check (embedded replica) ◄────┤
//!                              verify (another server)  ◄────┘
//! ```
//!
//! | | |
//! |---|---|
//! | `generate` | generated cases |
//! | `import` | cases to record, from files of cases and from bare modules |
//! | `record` | recording of answers |
//! | `pocket_ic` | a PocketIC server that runs cases |
//!
//! `crates/conformance` has the format of cases, the recorded ones, and the program that checks them.
//! The program is `recorder`; `docs/metering.md` describes its commands.

#![forbid(unsafe_code)]

pub mod generate;
pub mod import;
mod pocket_ic;
mod record;

pub use pocket_ic::PocketIc;
pub use record::{Interrupted, record};
