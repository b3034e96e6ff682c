//! Recorded cases: what a PocketIC server answered to calls of a canister, and what
//! holds a replica to it.
//!
//! ```text
//!   generate ──► cases ──► record (PocketIC server) ──► cases with expectations
//!                                                            │
//!                              check (embedded replica) ◄────┤
//!                              verify (another server)  ◄────┘
//! ```
//!
//! | | |
//! |---|---|
//! | `case` | what a case is |
//! | `hex` | bytes in files of cases |
//! | `file` | files of cases: read, and written whole or not at all |
//! | `import` | cases to record, from files of cases and from bare modules |
//! | `target` | what cases run on, and the one function that runs them |
//! | `embedded`, `pocket_ic` | the two things that they run on |
//! | `detect` | which rules a replica charges by |
//! | `compare` | what must hold, and the list of what does not |
//! | `hold` | files of cases, run and compared |
//! | `record` | expectations from answers |
//! | `generate` | cases of our own |
//! | `error` | what is wrong with a file or with what cases run on |
//!
//! The recorded cases themselves are in the folder `cases`, the program is
//! `conformance`, and `docs/metering.md` says when one uses which command.

#![forbid(unsafe_code)]

mod case;
mod compare;
mod detect;
mod embedded;
mod error;
mod file;
pub mod generate;
mod hex;
mod hold;
pub mod import;
#[cfg(feature = "pocket-ic")]
mod pocket_ic;
mod record;
mod target;

pub use case::{Call, Case, Expect, Kind, Source};
pub use compare::{Difference, Outcome};
pub use detect::{Undetected, UnknownRules, detect};
pub use embedded::Embedded;
pub use error::Error;
pub use file::{read, write};
pub use hold::hold;
#[cfg(feature = "pocket-ic")]
pub use pocket_ic::PocketIc;
pub use record::{Interrupted, record};
pub use target::{Answer, Answers, Canister, Failure, Installed, Reject, Target, run};
