//! What can be typed for the suite cuckoo.

use clap::{Args, ValueEnum};
use stablebench_protocol::CuckooKeys;

use super::RunArgs;

#[derive(Clone, Debug, Args)]
pub struct CuckooArgs {
    /// Buckets of the table, a power of two; the published run has 134217728. Stores hold
    /// 120, 100, 80 and 70 items for 128 of them.
    #[arg(long, value_name = "BUCKETS", default_value_t = 131_072, value_parser = buckets)]
    pub num: u64,
    /// Lookups a row of the tables.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub lookups: u64,
    /// What the keys are.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["sequential", "scattered"])]
    pub keys: Vec<KeysArg>,
    /// What holds the items.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values = ["murmur", "identity", "btree", "sqlite", "sqlite-vfs", "array"]
    )]
    pub stores: Vec<StoreArg>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// What the keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeysArg {
    /// 0, 2, 4, … as published.
    Sequential,
    /// Random even numbers.
    Scattered,
}

/// What holds the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreArg {
    /// A cuckoo table, with MurmurHash first.
    Murmur,
    /// A cuckoo table, with the identity first.
    Identity,
    /// StableBTreeMap.
    Btree,
    /// SQLite through ic-rusqlite, a table with an integer primary key.
    Sqlite,
    /// The same through ic-sqlite-vfs.
    SqliteVfs,
    /// The same in DoltLite, which needs a C compiler.
    Doltlite,
    /// The floor: an array whose places follow from the keys.
    Array,
}

impl From<KeysArg> for CuckooKeys {
    fn from(keys: KeysArg) -> Self {
        match keys {
            KeysArg::Sequential => Self::Sequential,
            KeysArg::Scattered => Self::Scattered,
        }
    }
}

/// 128 buckets and more, so that the utilisations are what they are called.
fn buckets(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(buckets) if buckets.is_power_of_two() && (128..=1 << 40).contains(&buckets) => {
            Ok(buckets)
        }
        _ => Err("a power of two, 128 or more, as 131072".to_owned()),
    }
}
