//! What can be typed for the suite db-bench. Options have db_bench's names, which may be
//! typed with its underscores too.

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

use super::RunArgs;
use super::values::{CompressionArg, DbEngineArg};
use crate::suites::db_bench::Benchmark;
use crate::suites::users::write_buffer_size;

#[derive(Clone, Debug, Args)]
pub struct DbBenchArgs {
    /// What is done to each store, in this order; fill… benchmarks begin with an empty one.
    /// Left out: all fourteen of db_bench.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Benchmark::ALL)]
    pub benchmarks: Vec<Benchmark>,
    /// Engines to measure, in this order: sqlite is through ic-rusqlite, sqlite-vfs through
    /// ic-sqlite-vfs, doltlite is DoltLite, which needs a C compiler, leveldb is LevelDB, array is
    /// the floor.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = DbEngineArg::DEFAULT)]
    pub engines: Vec<DbEngineArg>,
    /// Keys: so many are written, a hundredth of them by …sync, a thousandth by …100K. The
    /// published figures are of 1000000.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub num: u64,
    /// Reads: so many by readrandom, at most so many by readseq, a thousandth of them by
    /// readrand100K [default: as many as --num].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub reads: Option<u64>,
    /// Bytes of a value; those of …100K have 100000.
    #[arg(long, alias = "value_size", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub value_size: u32,
    /// Only one of SQLite's two columns: true is the table with rowid, false the one without,
    /// which is what db_bench does where nothing is typed. Here, both are measured.
    #[arg(long, alias = "use_rowids", value_parser = BoolishValueParser::new())]
    pub use_rowids: Option<bool>,
    /// Bytes a page of SQLite. What db_bench calls 1024 leaves SQLite's own default in place,
    /// which is 4096 since SQLite 3.12.
    #[arg(long, alias = "page_size", default_value_t = 4_096, value_parser = page_size)]
    pub page_size: u32,
    /// How leveldb compresses its tables.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["none"])]
    pub compression: Vec<CompressionArg>,
    /// Bytes that leveldb holds in its log and on the heap before they become a table
    /// [default: LevelDB's, 4194304].
    #[arg(long, alias = "write_buffer_size", value_parser = write_buffer_size)]
    pub write_buffer_size: Option<u32>,
    /// Measure each operation by itself too, in a fork, and print how their costs are spread.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    pub histogram: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

fn page_size(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bytes) if bytes.is_power_of_two() && (512..=65_536).contains(&bytes) => Ok(bytes),
        _ => Err("a page has 512, 1024, 2048, … or 65536 bytes".to_owned()),
    }
}
