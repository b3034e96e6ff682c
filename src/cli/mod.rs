//! What can be typed. What it means is decided in `commands` and `suites`.

mod all;
mod cache;
mod canbench;
mod cuckoo;
mod db_bench;
mod environment;
mod examples;
mod history;
mod keys;
mod output;
mod profile;
mod run;
mod serve;
mod sysbench;
mod target;
mod users;
mod values;
mod vfs;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::canisters::SOURCES;
use crate::terminal::safe_line;

pub use all::{AllArgs, defaults};
pub use cache::{CacheArgs, CacheCommand, CacheFolderArgs, LIMIT, ReplicaArgs, SubnetKind, limit};
pub use canbench::{CanbenchArgs, CanbenchFormat};
pub use cuckoo::{CuckooArgs, KeysArg, StoreArg};
pub use db_bench::DbBenchArgs;
pub use environment::{EnvironmentArgs, Variable};
pub use history::HistoryArgs;
pub use keys::{KeysArgs, SwitchArg};
pub use output::{OutputArgs, follow_color};
pub use profile::{ProfileArgs, ProfileFormat};
pub use run::RunArgs;
pub use serve::{AllowedOrigin, ServeArgs};
pub use sysbench::{SysbenchArgs, SysbenchPlace};
pub use target::{ReplicaArg, TargetArgs};
pub use users::UsersArgs;
pub use values::{DbEngineArg, EngineArg, Format, JournalModeArg, Place, ReportFormat};
pub use vfs::{VfsArgs, VfsSection};

/// What storing and reading data costs in a canister of the Internet Computer.
///
/// Without a command: runs the users suite on 1 000 000 rows.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = examples::TOOL)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub users: UsersArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Cli {
    /// What was typed.
    ///
    /// # Errors
    ///
    /// Where it cannot be meant: an option of the users suite before another command, too, which
    /// would change nothing.
    pub fn understand(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().collect();
        Self::parsed(&words).map_err(|error| {
            // The error shows what was typed, which may come from elsewhere: it is made once more
            // of words that do not steer a terminal.
            let safe = |word: &OsString| match safe_line(&word.to_string_lossy()) {
                Cow::Owned(safe) => safe.into(),
                Cow::Borrowed(_) => word.clone(),
            };
            let safe: Vec<OsString> = words.iter().map(safe).collect();
            Self::parsed(&safe).err().unwrap_or(error)
        })
    }

    fn parsed(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        if let Some(name) = matches.subcommand_name() {
            let everywhere = OutputArgs::augment_args(clap::Command::new(""));
            let everywhere: Vec<&clap::Id> =
                everywhere.get_arguments().map(clap::Arg::get_id).collect();
            let typed = matches.ids().find(|id| {
                let typed = matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
                // Groups of arguments have ids too.
                let argument = command.get_arguments().any(|known| known.get_id() == *id);
                typed && argument && !everywhere.contains(id)
            });
            if let Some(id) = typed {
                let option = id.as_str().replace('_', "-");
                let message = format!("--{option} is not for {name}, unless it follows it");
                return Err(command.error(ErrorKind::ArgumentConflict, message));
            }
        }
        Self::from_arg_matches(&matches)
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a suite.
    #[command(after_help = examples::RUN)]
    Run {
        #[command(subcommand)]
        suite: Option<Suite>,
    },
    /// List the suites.
    #[command(after_help = examples::LIST)]
    List,
    /// Compare two runs, or two columns: ratios of instructions, ceilings, every value.
    ///
    /// Prints new / base of the instructions of each case that both have, and the means of each
    /// section and of all. Where a case says how many operations fit into a message, base / new
    /// of those: more than 1 is always worse.
    ///
    /// Ends with exit code 1 if a ceiling or the threshold is exceeded, or if a case or store
    /// that the base has is missing from the new results, has failed there, or cannot be measured
    /// there any more. What only the new results have is noted.
    #[command(after_help = examples::COMPARE)]
    Compare(CompareArgs),
    /// Print saved results once more.
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Show where the instructions of a measured case go, function by function.
    ///
    /// The case is measured as its suite does it, on the embedded replica, and executed once
    /// more with every function told apart. All instructions together are what was measured,
    /// exactly.
    #[command(after_help = examples::PROFILE)]
    Profile(Box<ProfileArgs>),
    /// Run the benchmarks of a canbench project, without a server.
    ///
    /// Reads canbench.yml, as canbench 0.7 does, builds the canister and runs its benchmarks on the
    /// embedded replica. Prints and writes what canbench does, so that scripts go on working.
    #[command(after_help = examples::CANBENCH)]
    Canbench(Box<CanbenchArgs>),
    /// Call a method of a canister on the embedded replica.
    #[command(after_help = examples::CALL)]
    Call(CallArgs),
    /// Serve canisters on this machine to the Internet Computer's ordinary clients.
    ///
    /// The HTTP interface of the Internet Computer over the embedded replica: dfx, icp, agents
    /// in any language call the canisters, and get the counts that the embedded replica counts.
    /// Prints the URL, the root key, the canisters' ids, and commands to begin with.
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Build a canister, ready to be deployed.
    ///
    /// Prints hash and path of two files, as `sha256sum` does: what is deployed, which is the module
    /// in gzip, and the plain module, which is what runs here measure. The first hash is what the
    /// Internet Computer shows as `module_hash`. The same sources give the same hashes.
    #[command(after_help = examples::BUILD)]
    Build(BuildArgs),
    /// Show what is kept for later runs, or clear it.
    ///
    /// Runs on the embedded replica keep compiled modules and populated canisters, and take
    /// them up where everything that they depend on is the same: the module, the setting, rows
    /// and payload, this tool and its replica. Results are the same with and without. What
    /// cannot be used is made anew, with a note.
    #[command(after_help = examples::CACHE)]
    Cache(CacheArgs),
    /// Print what a shell completes this tool's arguments with.
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Renew what README.md shows of results/: for those who work on this tool.
    #[command(hide = true)]
    Readme {
        /// Change nothing; fail where that would change something.
        #[arg(long)]
        check: bool,
    },
    /// Print the manual page.
    #[command(after_help = examples::MAN)]
    Man {
        /// Save the pages of all commands in this folder instead.
        #[arg(short, long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub enum Suite {
    /// Insert into the middle and at the end of many rows.
    #[command(after_help = examples::USERS)]
    Users(Box<UsersArgs>),
    /// LevelDB's db_bench for SQLite, with and without rowid, and for a map.
    #[command(after_help = examples::DB_BENCH)]
    DbBench(Box<DbBenchArgs>),
    /// Integers, ULIDs and UUIDs as keys of a link table, with and without rowid.
    #[command(after_help = examples::KEYS)]
    Keys(Box<KeysArgs>),
    /// Statements as sysbench has them, for two engines or settings side by side.
    #[command(after_help = examples::SYSBENCH)]
    Sysbench(Box<SysbenchArgs>),
    /// Point reads of a cuckoo hash table beside those of a map and of SQLite.
    #[command(after_help = examples::CUCKOO)]
    Cuckoo(Box<CuckooArgs>),
    /// SQLite through ic-sqlite-vfs and through ic-rusqlite: what the file layer costs.
    #[command(after_help = examples::VFS)]
    Vfs(Box<VfsArgs>),
    /// Commits, branches, diffs and merges of a table in DoltLite, which needs a C compiler.
    #[command(after_help = examples::HISTORY)]
    History(Box<HistoryArgs>),
    /// Every suite but history with its defaults, each into a file of its own.
    #[command(after_help = examples::ALL)]
    All(Box<AllArgs>),
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The results to compare with: a file, or published:users for published figures.
    pub base: PathBuf,
    /// The results that are compared: likewise. With --columns, the base where left out.
    #[arg(required_unless_present = "columns")]
    pub new: Option<PathBuf>,
    /// Compare column A of the base with column B of the new results, case by case: ratios
    /// and ceilings alone, because other engines hold other values.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "threshold")]
    pub columns: Option<Vec<String>>,
    /// The largest ratio that a case may have, as 1.05.
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_ratio: Option<f64>,
    /// The largest arithmetic average that the ratios of a section may have; each section is
    /// looked at by itself.
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_average: Option<f64>,
    /// How far every value that both hold may be from the base's, up or down: counters, pages,
    /// charges, cycles. Digests must be equal. [default: 0%, or none where --max-ratio,
    /// --max-average or --columns is given]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// How the comparison is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Saved results, or published:users for published figures.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these sections.
    #[arg(long, value_delimiter = ',', value_name = "SECTION")]
    pub sections: Vec<String>,
    /// Below the tables, show what the open rule changes: from a comparison with a run by
    /// `2026-08-first-reads` (`compare --format csv`).
    #[arg(long, value_name = "CSV")]
    pub open_rule: Option<PathBuf>,
    /// How they are printed. [default: html where --out ends with .html, else table]
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    /// Save what would be printed to this file.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `2%`, or `2`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("a threshold is a percentage, as 2% or 0.5%".to_owned()),
    }
}

/// `1.05`, or `1.05x`.
fn ceiling(text: &str) -> Result<f64, String> {
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(ratio) if ratio.is_finite() && ratio > 0.0 => Ok(ratio),
        _ => Err("a ceiling is a ratio, as 1.05 for five percent more".to_owned()),
    }
}

#[derive(Debug, Args)]
pub struct CallArgs {
    /// `bench`, `bench_vfs`, `bench_leveldb` or `bench_doltlite`, or the path of a wasm file.
    pub canister: String,
    /// The method.
    pub method: String,
    /// The arguments as Candid text.
    #[arg(default_value = "()")]
    pub arguments: String,
    /// Begin with the canister saved in this file.
    #[arg(long)]
    pub state: Option<PathBuf>,
    /// Save the canister to this file afterwards.
    #[arg(long)]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The canister.
    #[arg(default_value = "bench", value_parser = names())]
    pub canister: String,
}

/// Names of the canisters.
fn names() -> clap::builder::PossibleValuesParser {
    SOURCES.map(|source| source.name).into()
}
