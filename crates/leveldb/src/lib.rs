//! LevelDB (`rusty-leveldb`) on a stable memory.
//!
//! ```text
//! Store     a database: batches, reads, and workarounds for LevelDB
//!   └─ rusty_leveldb::DB
//!        └─ Disk    the environment that LevelDB requires of an operating system
//!             └─ Files     files in a stable memory
//! ```
//!
//! LevelDB writes to a log and to a table on the heap. A full table becomes a file, and files are merged
//! into larger ones. All of that happens in the call that writes or reads, nothing in the background.

mod files;
mod store;

pub use files::{CHUNK_BYTES, Disk, Files};
pub use rusty_leveldb;
pub use store::{Config, Store, Visit};

/// The example of README.md, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The reason why nothing was done or, from a call that writes, why the state on the heap is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The memory cannot grow.
    #[error("stable memory cannot grow by {pages} pages")]
    OutOfMemory {
        /// The wasm pages (64 KiB) that were needed.
        pages: u64,
    },
    /// The memory contains something else than files.
    #[error("the memory contains no files")]
    Foreign,
    /// The directory has no free entry.
    #[error("the directory is full")]
    Full,
    /// A name is longer than an entry of the directory.
    #[error("the name {name:?} is too long")]
    NameTooLong {
        /// The name.
        name: String,
    },
    /// A file does not exist, or was removed.
    #[error("there is no file {name:?}")]
    Missing {
        /// Its name.
        name: String,
    },
    /// LevelDB failed.
    #[error("{message}")]
    Engine {
        /// LevelDB's message.
        message: String,
    },
}

/// The result of a call that may fail.
pub type Result<T> = std::result::Result<T, Error>;

impl From<rusty_leveldb::Status> for Error {
    fn from(status: rusty_leveldb::Status) -> Self {
        Self::Engine { message: status.to_string() }
    }
}
