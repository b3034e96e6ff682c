//! What can go wrong with a server, and how canisters refuse.

use std::path::PathBuf;

use crate::version::Version;

/// Something is wrong with the server, not with the canister.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server was named and none could be downloaded.
    #[error(
        "no PocketIC server: POCKET_IC_BIN is not set and a download failed ({0}); take a server \
         from https://github.com/dfinity/pocketic/releases and set POCKET_IC_BIN to its path"
    )]
    NoServer(String),
    /// The server cannot be executed.
    #[error(
        "the PocketIC server {path} cannot be executed ({cause}); set POCKET_IC_BIN to the path \
         of a server, unpacked and executable (chmod +x)"
    )]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The file is no PocketIC server.
    #[error(
        "{path} is no PocketIC server: asked for its version it said {said:?}; set POCKET_IC_BIN \
         to a server, whose file must be named pocket-ic or pocket-ic-server"
    )]
    NotAServer {
        /// The file.
        path: PathBuf,
        /// The first line that it printed.
        said: String,
    },
    /// No client fits the server.
    #[error(
        "the PocketIC server {path} has version {version}, but clients for 10.x and 16.x are \
         built in; set POCKET_IC_BIN to a server of one of these versions"
    )]
    Unsupported {
        /// The server.
        path: PathBuf,
        /// Its version.
        version: Version,
    },
    /// The server ended, or said nothing, before it listened.
    #[error(
        "the PocketIC server {path} did not start: {reason}; start it by hand to see why, or set \
         POCKET_IC_BIN to another server{log}"
    )]
    NotStarted {
        /// The server.
        path: PathBuf,
        /// How it ended.
        reason: String,
        /// The end of what it printed.
        log: String,
    },
    /// The server ended while it was used.
    #[error("the PocketIC server ended during {during} ({status}); run it again{log}")]
    Died {
        /// What was asked of it.
        during: String,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        log: String,
    },
    /// The server runs, but answered a request otherwise than the client expects.
    #[error("the PocketIC server did not answer {during}; run it again: {message}")]
    Failed {
        /// What was asked of it.
        during: String,
        /// What the client said.
        message: String,
    },
    /// A message was still not answered after so many rounds.
    #[error("{during} was not answered within {rounds} rounds; send less in one message")]
    Unanswered {
        /// What was asked of it.
        during: String,
        /// Rounds executed.
        rounds: u32,
    },
    /// The machine would not do its part.
    #[error("cannot prepare the PocketIC server: {0}")]
    Host(#[from] std::io::Error),
}

/// How a canister, or the replica in its place, refused a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Reject {
    /// The replica's error code by name, as `CanisterCalledTrap`.
    pub code: String,
    /// The message.
    pub message: String,
}
