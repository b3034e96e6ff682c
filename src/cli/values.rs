//! Values of options, and what they mean.

use clap::ValueEnum;
use stablebench_protocol::{Compression, Engine, JournalMode, LockingMode, Synchronous};

use crate::suites::users::Library;
use crate::suites::users::task::Access;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    Btree,
    Sqlite,
    SqliteVfs,
    Doltlite,
    Leveldb,
    Append,
    Array,
}

impl From<EngineArg> for Engine {
    fn from(engine: EngineArg) -> Self {
        match engine {
            EngineArg::Btree => Self::Btree,
            EngineArg::Sqlite | EngineArg::SqliteVfs | EngineArg::Doltlite => Self::Sqlite,
            EngineArg::Leveldb => Self::Leveldb,
            EngineArg::Append => Self::Append,
            EngineArg::Array => Self::Array,
        }
    }
}

/// The engines of the suite db-bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DbEngineArg {
    Sqlite,
    SqliteVfs,
    Doltlite,
    Btree,
    Array,
    Leveldb,
}

impl DbEngineArg {
    /// What is measured where nothing is typed.
    pub const DEFAULT: [Self; 4] = [Self::Sqlite, Self::SqliteVfs, Self::Btree, Self::Array];
}

/// A library through which SQLite is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SqlEngineArg {
    /// ic-rusqlite.
    Sqlite,
    /// ic-sqlite-vfs.
    SqliteVfs,
    /// DoltLite.
    Doltlite,
}

impl From<SqlEngineArg> for Library {
    fn from(engine: SqlEngineArg) -> Self {
        match engine {
            SqlEngineArg::Sqlite => Self::IcRusqlite,
            SqlEngineArg::SqliteVfs => Self::IcSqliteVfs,
            SqlEngineArg::Doltlite => Self::DoltLite,
        }
    }
}

/// How LevelDB compresses the blocks of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressionArg {
    None,
    Snappy,
}

impl From<CompressionArg> for Compression {
    fn from(way: CompressionArg) -> Self {
        match way {
            CompressionArg::None => Self::None,
            CompressionArg::Snappy => Self::Snappy,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JournalModeArg {
    Delete,
    Truncate,
    Persist,
    Memory,
    Off,
    Wal,
}

impl From<JournalModeArg> for JournalMode {
    fn from(mode: JournalModeArg) -> Self {
        match mode {
            JournalModeArg::Delete => Self::Delete,
            JournalModeArg::Truncate => Self::Truncate,
            JournalModeArg::Persist => Self::Persist,
            JournalModeArg::Memory => Self::Memory,
            JournalModeArg::Off => Self::Off,
            JournalModeArg::Wal => Self::Wal,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SynchronousArg {
    Off,
    Normal,
    Full,
    Extra,
}

impl From<SynchronousArg> for Synchronous {
    fn from(level: SynchronousArg) -> Self {
        match level {
            SynchronousArg::Off => Self::Off,
            SynchronousArg::Normal => Self::Normal,
            SynchronousArg::Full => Self::Full,
            SynchronousArg::Extra => Self::Extra,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LockingModeArg {
    Normal,
    Exclusive,
}

impl From<LockingModeArg> for LockingMode {
    fn from(mode: LockingModeArg) -> Self {
        match mode {
            LockingModeArg::Normal => Self::Normal,
            LockingModeArg::Exclusive => Self::Exclusive,
        }
    }
}

/// Where rows are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Between the rows around the half.
    Middle,
    /// After the last row.
    End,
    /// Between rows chosen at random.
    Random,
}

impl Place {
    /// The rows that this means.
    pub fn access(self) -> Access {
        match self {
            Self::Middle => Access::Middle,
            Self::End => Access::End,
            Self::Random => Access::Uniform,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Middle => "middle",
            Self::End => "end",
            Self::Random => "random",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Markdown,
    Csv,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    Table,
    Markdown,
    Csv,
    Json,
    /// One page of all files: charts, tables, what is cheapest.
    Html,
}
