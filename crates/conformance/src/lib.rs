//! Recorded cases: the answers of a PocketIC server to calls of canisters, and the program that
//! compares the embedded replica with them.
//!
//! ```text
//!   verification/recorder ──► cases with the answers of a server ──► check (embedded replica)
//! ```
//!
//! | | |
//! |---|---|
//! | `case` | cases: a module, calls, expected answers; files of cases; errors |
//! | `subnet` | cases of several canisters |
//! | `target` | the interface of replicas, and the functions that run cases on them |
//! | `embedded` | the embedded replica as one of them |
//! | `compare` | comparison of answers with expected ones, and of files of them |
//!
//! The recorded cases are in the folder `cases`. The program is `conformance`; `docs/metering.md`
//! describes it, and how cases are generated and recorded.

#![forbid(unsafe_code)]

mod case;
mod compare;
mod embedded;
pub mod subnet;
mod target;

pub use case::{
    Call, Case, Error, Expect, Failure, Kind, MAX_FILE, Source, directory, read, write,
};
pub use compare::{Difference, Outcome, check_file, compared, recorded_calls};
pub use embedded::{Embedded, EmbeddedSubnet, ONLY_ON_SUBNETS};
pub use target::{
    Answer, Answers, Canister, Installed, Reject, RunningSubnet, Target, answered, answers, run,
};
