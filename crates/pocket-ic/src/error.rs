//! Failures of the server, as opposed to rejects by a canister.

use std::path::PathBuf;

use crate::client::Version;

/// A failure of the server, not of the canister.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server was named and none could be downloaded.
    #[error(
        "no PocketIC server: POCKET_IC_BIN is not set and the download failed ({0}); get a server \
         from https://github.com/dfinity/pocketic/releases and set POCKET_IC_BIN to its path"
    )]
    NoServer(String),
    /// The server cannot be executed.
    #[error(
        "the PocketIC server {path} cannot be executed ({cause}); set POCKET_IC_BIN to the path \
         of a server that is unpacked and executable (chmod +x)"
    )]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: std::io::Error,
    },
    /// The file is not a PocketIC server.
    #[error(
        "{path} is not a PocketIC server: for --version it printed {printed:?}; set POCKET_IC_BIN \
         to a server, whose file must be named pocket-ic or pocket-ic-server"
    )]
    NotAServer {
        /// The file.
        path: PathBuf,
        /// The first line that it printed.
        printed: String,
    },
    /// No client supports the server.
    #[error(
        "the PocketIC server {path} has version {version}, but only clients for 10.x and 16.x are \
         built in; set POCKET_IC_BIN to a server of one of these versions"
    )]
    Unsupported {
        /// The server.
        path: PathBuf,
        /// Its version.
        version: Version,
    },
    /// The server exited or hung before it listened.
    #[error(
        "the PocketIC server {path} did not start: {reason}; start it by hand to see why, or set \
         POCKET_IC_BIN to another server{log}"
    )]
    NotStarted {
        /// The server.
        path: PathBuf,
        /// The exit status, or the time limit.
        reason: String,
        /// The end of its output.
        log: String,
    },
    /// The server exited while it was in use.
    #[error("the PocketIC server exited during {during} ({status}); run it again{log}")]
    Died {
        /// The request.
        during: String,
        /// The exit status.
        status: String,
        /// The end of its output.
        log: String,
    },
    /// The server runs, but its answer is not one that the client expects.
    #[error("the PocketIC server did not answer {during}; run it again: {message}")]
    Failed {
        /// The request.
        during: String,
        /// The client's message.
        message: String,
    },
    /// A message was not answered within the limit of rounds.
    #[error("{during} was not answered within {rounds} rounds; send less in one message")]
    Unanswered {
        /// The method.
        during: String,
        /// The number of rounds that were executed.
        rounds: u32,
    },
    /// A file or process operation on this machine failed.
    #[error("cannot prepare the PocketIC server: {0}")]
    Host(#[from] std::io::Error),
}
