//! Errors of reading, writing and running cases.

use std::path::PathBuf;
use std::{error, io};

/// A failure of a target, which ends the run; not a reject.
pub type Failure = Box<dyn error::Error + Send + Sync>;

/// Cases could not be read, written or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("{path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// A file could not be written; the existing file is unchanged.
    #[error("{path} could not be written: {cause}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// A file does not contain cases.
    #[error("{path} is not a file of cases: {cause}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The parse error.
        cause: serde_json::Error,
    },
    /// The text of a case is not a module.
    #[error("case {case}: {cause}")]
    Wat {
        /// The case.
        case: String,
        /// The parse error.
        cause: wat::Error,
    },
    /// The target of a case failed.
    #[error("case {case}: {cause}")]
    Target {
        /// The case.
        case: String,
        /// The failure.
        cause: Failure,
    },
}
