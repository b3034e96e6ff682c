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
//! | `target` | the interface of replicas, of which the embedded one is one, and runs of cases |
//! | `compare` | comparison of answers with expected ones, and of files of them |
//!
//! The recorded cases are in the folder `cases`. The program is `conformance`; `docs/metering.md`
//! describes it, and how cases are generated and recorded.

#![forbid(unsafe_code)]

mod case;
mod compare;
pub mod subnet;
mod target;

pub use case::{
    Call, Case, Error, Expect, Failure, MAX_FILE, MessageKind, Source, directory, read, replaced,
    write,
};
pub use compare::{
    Difference, Outcome, SelectedFile, check_file, compared, groups_of, is_selected,
    recorded_calls, require_groups,
};
pub use target::{
    Answer, Answers, Canister, Embedded, EmbeddedSubnet, Installed, ONLY_ON_SUBNETS, Reject,
    RunningSubnet, Target, answered, answers, run,
};
