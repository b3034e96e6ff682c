//! LevelDB (`rusty-leveldb`) on a stable memory.
//!
//! ```text
//! Store     a database: batches, reads, what LevelDB leaves out and what it gets wrong
//!   └─ rusty_leveldb::DB
//!        └─ env     what LevelDB asks of an operating system
//!             └─ Files     files in a stable memory
//! ```
//!
//! LevelDB writes to a log and to a table on the heap; a table that is full becomes a file,
//! and files are merged into larger ones. It does all that inside of the call that writes, or
//! reads: nothing goes on in the background.

mod env;
mod files;
mod store;

pub use env::Disk;
pub use files::{CHUNK_BYTES, Files};
pub use rusty_leveldb;
pub use store::{Config, Store, Visit};

/// Why nothing was done, or, from a call that writes, why what is on the heap is not to be
/// relied on any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The memory cannot grow.
    #[error("stable memory cannot grow by {pages} pages")]
    OutOfMemory {
        /// The wasm pages (64 KiB) that were needed.
        pages: u64,
    },
    /// The memory holds something that is not files.
    #[error("the memory holds no files")]
    Foreign,
    /// The directory has no place for another file.
    #[error("the directory is full")]
    Full,
    /// A name is longer than the directory holds.
    #[error("the name {name:?} is too long")]
    NameTooLong {
        /// The name.
        name: String,
    },
    /// A file is not there, or not any more.
    #[error("there is no file {name:?}")]
    Missing {
        /// Its name.
        name: String,
    },
    /// LevelDB failed.
    #[error("{message}")]
    Engine {
        /// LevelDB's words.
        message: String,
    },
}

/// What may fail so.
pub type Result<T> = std::result::Result<T, Error>;

impl From<rusty_leveldb::Status> for Error {
    fn from(status: rusty_leveldb::Status) -> Self {
        Self::Engine { message: status.to_string() }
    }
}
