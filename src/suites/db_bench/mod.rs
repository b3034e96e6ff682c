//! The suite db-bench: LevelDB's benchmarks of SQLite, on stable memory.
//!
//! ```text
//!   for each configuration:   install → configure → an empty table
//!     for each benchmark, in the order of --benchmarks:
//!       prepare (empty the table, set synchronous)   → work, measured → check
//! ```
//!
//! A benchmark works on the rows that the one before it left.

mod benchmarks;
mod published;
mod tables;
#[cfg(test)]
mod tests;

use anyhow::Result;
use clap::builder::BoolishValueParser;
use clap::{ArgAction, ArgMatches, Args, FromArgMatches};

use super::Suite;
use super::plan::Plan;
use crate::engines::Configurations;

pub use benchmarks::Benchmark;

/// The suite.
pub struct DbBench;

/// The only section.
pub const SECTION: &str = "benchmarks";

/// The configurations of the SQL engines, of which `--use-rowids` chooses one each.
pub const WITH_ROWID: &str = "sqlite/with-rowid";
pub const WITHOUT_ROWID: &str = "sqlite/without-rowid";
pub const VFS_WITH_ROWID: &str = "sqlite-vfs/with-rowid";
pub const VFS_WITHOUT_ROWID: &str = "sqlite-vfs/without-rowid";
pub const DOLTLITE_WITH_ROWID: &str = "doltlite/with-rowid";
pub const DOLTLITE_WITHOUT_ROWID: &str = "doltlite/without-rowid";

/// Command-line options. They have db_bench's names, with its underscores or with hyphens.
#[derive(Clone, Debug, Args)]
pub struct DbBenchArgs {
    /// Benchmarks to run on each fixture, in this order; fill… benchmarks empty it first.
    /// Default: all fourteen of db_bench.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Benchmark::ALL)]
    pub benchmarks: Vec<Benchmark>,
    /// Engines or full configurations, such as `leveldb/snappy,write_buffer_size=65536`.
    #[arg(long, value_name = "ENGINES", default_value = "sqlite,sqlite-vfs,btree,array")]
    pub engines: Configurations,
    /// Keys to write; …sync benchmarks write a hundredth of them, …100K a thousandth. The
    /// published figures have 1000000.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub num: u64,
    /// Reads of readrandom, the maximum of readseq, a thousandth of them for readrand100K
    /// [default: as many as --num].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub reads: Option<u64>,
    /// Bytes of a value; those of …100K have 100000.
    #[arg(long, alias = "value_size", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub value_size: u32,
    /// Only one of SQLite's two tables: true is the table with rowid, false the one without, which
    /// is db_bench's default. By default, both are measured.
    #[arg(long, alias = "use_rowids", value_parser = BoolishValueParser::new())]
    pub use_rowids: Option<bool>,
    /// Bytes of a page of SQLite. db_bench's 1024 stands for SQLite's own default, which is 4096
    /// since SQLite 3.12.
    #[arg(long, alias = "page_size", default_value_t = 4_096, value_parser = page_size)]
    pub page_size: u32,
    /// Also measure each operation by itself, in a fork, and print a histogram.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    pub histogram: bool,
}

fn page_size(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bytes) if bytes.is_power_of_two() && (512..=65_536).contains(&bytes) => Ok(bytes),
        _ => Err("a page has 512, 1024, 2048, … or 65536 bytes".to_owned()),
    }
}

impl Suite for DbBench {
    fn name(&self) -> &'static str {
        "db-bench"
    }

    fn summary(&self) -> &'static str {
        "LevelDB's db_bench for SQLite, with and without rowid, and for a map"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  100 000 keys and values of 100 bytes:
    stablebench run db-bench
  A tenth of them, in LevelDB with and without compression:
    stablebench run db-bench --num 10000 --engines leveldb/none,leveldb/snappy"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        DbBenchArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, seed: u64) -> Result<Plan> {
        let args = DbBenchArgs::from_arg_matches(matches)?;
        Ok(Plan::new(self.name(), benchmarks::fixtures(&args, seed)?))
    }
}
