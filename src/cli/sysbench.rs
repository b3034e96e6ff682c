//! What can be typed for the suite sysbench.

use clap::{Args, ValueEnum};
use stablebench_protocol::KeyShape;

use super::{RunArgs, ceiling};
use crate::suites::users::Setting;

#[derive(Clone, Debug, Args)]
pub struct SysbenchArgs {
    /// The side that the others are compared with: sqlite/JOURNAL_MODE, sqlite-vfs or doltlite, after
    /// which may stand ,page_size=… ,cache_size=… ,synchronous=… ,locking_mode=…
    #[arg(long, value_name = "SIDE", default_value = "sqlite/persist")]
    pub base: Setting,
    /// A side whose instructions are divided by those of the base; several where it is typed
    /// several times.
    #[arg(long, value_name = "SIDE",
          default_values = ["sqlite/delete,locking_mode=normal", "sqlite-vfs"])]
    pub other: Vec<Setting>,
    /// Rows of the main table; operations are those published for 100 000 rows, in proportion.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rows: u64,
    /// What the primary keys are.
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["integer", "composite", "blob", "text"])]
    pub keys: Vec<KeyArg>,
    /// Where the tables are, and whether each statement is a transaction of its own.
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["memory", "stable", "autocommit"])]
    pub places: Vec<SysbenchPlace>,
    /// The largest multiplier that a workload may have, else the exit code is 1; the published
    /// ceiling is 6. [default: none]
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_ratio: Option<f64>,
    /// The largest average that a section may have, likewise; the published ceiling is 5.
    /// [default: none]
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_average: Option<f64>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// The shape of the primary keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyArg {
    /// INTEGER: the rowid itself.
    Integer,
    /// Two integers, WITHOUT ROWID.
    Composite,
    /// 16 bytes.
    Blob,
    /// 32 hexadecimal digits.
    Text,
}

impl From<KeyArg> for KeyShape {
    fn from(key: KeyArg) -> Self {
        match key {
            KeyArg::Integer => Self::Integer,
            KeyArg::Composite => Self::Composite,
            KeyArg::Blob => Self::Blob,
            KeyArg::Text => Self::Text,
        }
    }
}

/// Where the tables are, and what is a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SysbenchPlace {
    /// On the heap, as :memory:; a message is a transaction.
    Memory,
    /// In stable memory; a message is a transaction.
    Stable,
    /// In stable memory; each statement is a transaction.
    Autocommit,
}
