//! What can be typed. What it means is decided in `commands`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use stablebench_protocol::{Engine, JournalMode};

/// What storing and reading data costs in a canister of the Internet Computer.
///
/// Without a command: runs the users suite on 1 000 000 rows.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub users: UsersArgs,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a suite.
    Run {
        #[command(subcommand)]
        suite: Option<Suite>,
    },
    /// List the suites.
    List,
    /// Call a method of a canister on the embedded replica.
    Call(CallArgs),
    /// Build a canister, ready to be installed.
    Build(BuildArgs),
}

#[derive(Debug, Subcommand)]
pub enum Suite {
    /// Insert into the middle and at the end of many rows.
    Users(Box<UsersArgs>),
}

#[derive(Clone, Debug, Args)]
pub struct UsersArgs {
    /// Rows that are there before rows are added.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rows: u64,
    /// How many rows are added, each number in a fork of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 50, 100, 1_000, 10_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub batches: Vec<u64>,
    /// Engines to measure; append and array are the floor: bare stable memory.
    #[arg(long, value_delimiter = ',', default_values = ["btree", "sqlite", "append", "array"])]
    pub engines: Vec<EngineArg>,
    /// Journal modes in which SQLite is measured.
    #[arg(long, value_delimiter = ',',
          default_values = ["delete", "truncate", "persist", "memory", "off", "wal"])]
    pub journal_modes: Vec<JournalModeArg>,
    /// Where rows are added.
    #[arg(long, value_delimiter = ',', default_values = ["middle", "end"])]
    pub at: Vec<Place>,
    /// Bytes of each row's text.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub payload: u32,
    /// Repeat the forum post's run, which counted spans of ids for rows, and
    /// print its figures beside ours.
    #[arg(long, conflicts_with_all = ["rows", "batches", "journal_modes", "at", "payload", "engines"])]
    pub as_published: bool,
    /// Where the results are saved.
    #[arg(long, default_value = "results.json")]
    pub out: PathBuf,
    /// How the results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// List what would be measured, and measure nothing.
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

#[derive(Clone, Debug, Args)]
pub struct ReplicaArgs {
    /// Settings that are populated side by side.
    #[arg(long, default_value_t = default_jobs(), value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: u64,
    /// Where compiled modules are kept [default: $XDG_CACHE_HOME/stablebench].
    #[arg(long)]
    pub cache_dir: Option<PathBuf>,
    /// Keep no compiled modules.
    #[arg(long)]
    pub no_cache: bool,
}

fn default_jobs() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

#[derive(Debug, Args)]
pub struct CallArgs {
    /// `bench`, or the path of a wasm file.
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
    pub replica: ReplicaArgs,
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The canister.
    #[arg(default_value = "bench", value_parser = ["bench"])]
    pub canister: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    Btree,
    Sqlite,
    Append,
    Array,
}

impl From<EngineArg> for Engine {
    fn from(engine: EngineArg) -> Self {
        match engine {
            EngineArg::Btree => Self::Btree,
            EngineArg::Sqlite => Self::Sqlite,
            EngineArg::Append => Self::Append,
            EngineArg::Array => Self::Array,
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

/// Where rows are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Between the rows around the half.
    Middle,
    /// After the last row.
    End,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Middle => "middle",
            Self::End => "end",
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
