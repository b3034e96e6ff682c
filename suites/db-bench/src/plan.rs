//! Arguments, fixtures and steps.

use anyhow::Result;
use clap::{ArgMatches, Args, FromArgMatches};

use stablebench_suite::Suite;
use stablebench_suite::plan::Plan;

use crate::benchmarks::{DbBenchArgs, fixtures};

/// The suite.
pub struct DbBenchSuite;

impl Suite for DbBenchSuite {
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
        Ok(Plan::new(self.name(), fixtures(&args, seed)?))
    }
}
