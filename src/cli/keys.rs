//! What can be typed for the suite keys.

use clap::{Args, ValueEnum};
use stablebench_protocol::{KeyKind, LinkSchema};

use super::RunArgs;
use super::values::SqlEngineArg;

#[derive(Clone, Debug, Args)]
pub struct KeysArgs {
    /// Links in all, of which each user has as many as --watches says; 100000 were published.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rows: u64,
    /// Movies on the list of each user, which is added in a transaction.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub watches: u64,
    /// Movies that there are [default: a tenth of the links, or what a list needs].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub movies: Option<u64>,
    /// How often each of the two questions is asked.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub questions: u64,
    /// Primary keys of the link table.
    #[arg(long, value_delimiter = ',', default_values = ["a", "b", "c", "c-rowid", "d"])]
    pub schemas: Vec<SchemaArg>,
    /// What identifies users, movies and, in the schemas a and b, links.
    #[arg(long, value_delimiter = ',', default_values = ["integer", "ulid", "uuidv4", "uuidv7"])]
    pub keys: Vec<KeyArg>,
    /// The libraries through which SQLite is used, each with its own settings.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["sqlite", "sqlite-vfs"])]
    pub engines: Vec<SqlEngineArg>,
    /// Rows that come into being in a millisecond: among those, ULIDs and UUIDv7s are in no order.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows_a_millisecond: u64,
    /// Whether SQLite looks for the user and the movie of each link that is added.
    #[arg(long, value_enum, default_value_t = SwitchArg::On)]
    pub foreign_keys: SwitchArg,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaArg {
    /// An id.
    A,
    /// An id, without rowid.
    B,
    /// The pair of user and movie, without rowid.
    C,
    /// The pair of user and movie, with rowid.
    CRowid,
    /// None but the rowid.
    D,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyArg {
    Integer,
    Ulid,
    #[value(name = "uuidv4")]
    UuidV4,
    #[value(name = "uuidv7")]
    UuidV7,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchArg {
    On,
    Off,
}

impl From<SchemaArg> for LinkSchema {
    fn from(schema: SchemaArg) -> Self {
        match schema {
            SchemaArg::A => Self::Id,
            SchemaArg::B => Self::IdWithoutRowid,
            SchemaArg::C => Self::PairWithoutRowid,
            SchemaArg::CRowid => Self::Pair,
            SchemaArg::D => Self::Rowid,
        }
    }
}

impl From<KeyArg> for KeyKind {
    fn from(key: KeyArg) -> Self {
        match key {
            KeyArg::Integer => Self::Integer,
            KeyArg::Ulid => Self::Ulid,
            KeyArg::UuidV4 => Self::UuidV4,
            KeyArg::UuidV7 => Self::UuidV7,
        }
    }
}
