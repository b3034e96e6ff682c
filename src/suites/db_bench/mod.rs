//! The suite db-bench: LevelDB's benchmarks of SQLite, on stable memory.
//!
//! ```text
//!   for each column:   install → configure → an empty store
//!     for each benchmark, in the order typed:
//!       make ready (empty the store, set synchronous)   → work, measured → check
//! ```
//!
//! A benchmark works on what the one before it left.

mod benchmark;
mod lanes;
pub mod published;

use anyhow::Result;

use super::command::{Command, typed};
use super::lane::Plan;
use super::outline::Outline;
use crate::cli::{DbBenchArgs, DbEngineArg};

pub use benchmark::{BATCH, Benchmark};

/// The name in results.
pub const NAME: &str = "db-bench";

/// The only section.
pub const SECTION: &str = "benchmarks";

/// SQLite's columns, of which `--use-rowids` chooses one.
pub const WITH_ROWID: &str = "sqlite/with-rowid";
pub const WITHOUT_ROWID: &str = "sqlite/without-rowid";
pub const VFS_WITH_ROWID: &str = "sqlite-vfs/with-rowid";
pub const VFS_WITHOUT_ROWID: &str = "sqlite-vfs/without-rowid";
pub const DOLTLITE_WITH_ROWID: &str = "doltlite/with-rowid";
pub const DOLTLITE_WITHOUT_ROWID: &str = "doltlite/without-rowid";

/// What a section is about, from its name in results.
pub fn describe(section: &str) -> Option<String> {
    (section == SECTION).then(|| "The benchmarks of db_bench, in its order".to_owned())
}

/// What the arguments mean.
///
/// # Errors
///
/// Where they ask for the impossible.
pub fn plan(args: &DbBenchArgs) -> Result<Plan> {
    let mut outline = Outline::new(NAME, command(args), &args.run);
    outline.each = args.histogram;
    Ok(Plan::new(outline, lanes::lanes(args)?))
}

fn command(args: &DbBenchArgs) -> String {
    let mut command = Command::new(NAME);
    command.values("--benchmarks", args.benchmarks.iter().map(typed));
    // What is measured where nothing is typed needs no mention.
    if args.engines != DbEngineArg::DEFAULT {
        command.values("--engines", args.engines.iter().map(typed));
    }
    if args.engines.contains(&DbEngineArg::Leveldb) {
        command.values("--compression", args.compression.iter().map(typed));
        if let Some(bytes) = args.write_buffer_size {
            command.value("--write-buffer-size", bytes);
        }
    }
    command.value("--num", args.num);
    if let Some(reads) = args.reads {
        command.value("--reads", reads);
    }
    command.value("--value-size", args.value_size);
    if let Some(rowids) = args.use_rowids {
        command.value("--use-rowids", rowids);
    }
    command.value("--page-size", args.page_size);
    if args.histogram {
        command.flag("--histogram");
    }
    command.run(&args.run)
}

#[cfg(test)]
mod tests;
