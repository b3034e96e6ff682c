//! What is wrong with a file, or with what cases run on.

use std::io;
use std::path::PathBuf;

use crate::target::Failure;

/// Cases could not be read, written or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("{path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// A file could not be written; one that was there is as it was.
    #[error("{path} could not be written: {cause}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// A file is no file of cases.
    #[error("{path} is no file of cases: {cause}")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// A case's text is no module.
    #[error("case {case}: {cause}")]
    Wat {
        /// The case.
        case: String,
        /// What is wrong with the text.
        cause: wat::Error,
    },
    /// What a case runs on failed.
    #[error("case {case}: {cause}")]
    Target {
        /// The case.
        case: String,
        /// What failed.
        cause: Failure,
    },
    /// A file that should be a module is none.
    #[error("{path} is no module: {reason}")]
    NoModule {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}
