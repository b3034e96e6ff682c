//! Recorded cases: the answers of a PocketIC server to calls of canisters, and tools to compare a
//! replica with them.
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
//! | `case` | cases: a module, calls, expected answers; files of cases |
//! | `hex` | bytes in files of cases |
//! | `import` | cases to record, from files of cases and from bare modules |
//! | `target` | the interface of replicas, and the function that runs cases on them |
//! | `embedded`, `pocket_ic` | the two kinds of replicas |
//! | `detect` | detection of the rules of a replica |
//! | `compare` | comparison of answers with expected ones, for single cases and for files |
//! | `record` | recording of answers |
//! | `subnet` | cases of several canisters |
//! | `generate` | generated cases |
//! | `error` | errors |
//!
//! The recorded cases are in the folder `cases`. The program is `conformance`; `docs/metering.md`
//! describes its commands.

#![forbid(unsafe_code)]

mod case;
mod compare;
mod detect;
mod embedded;
mod error;
pub mod generate;
mod hex;
pub mod import;
#[cfg(feature = "pocket-ic")]
mod pocket_ic;
mod record;
pub mod subnet;
mod target;

pub use case::{Call, Case, Expect, Kind, Source, read, write};
pub use compare::{Difference, Outcome, check_file, recorded_calls};
pub use detect::{Undetected, UnknownRules, detect};
pub use embedded::Embedded;
pub use error::{Error, Failure};
#[cfg(feature = "pocket-ic")]
pub use pocket_ic::PocketIc;
pub use record::{Interrupted, record};
pub use target::{Answer, Answers, Canister, Installed, Reject, Target, run};
