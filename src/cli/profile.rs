//! What can be typed for profiles.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ReplicaArgs;

#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// The case, SUITE/SECTION/NAME/COLUMN as --list prints it; with --list, what the cases
    /// begin with.
    #[arg(required_unless_present_any = ["list", "wasm"])]
    pub case: Option<String>,
    /// List the cases, and measure nothing.
    #[arg(long, conflicts_with_all = ["diff", "wasm", "out", "format"])]
    pub list: bool,
    /// A second case: show what it takes more or less of than the first, stack by stack.
    #[arg(long, value_name = "CASE2")]
    pub diff: Option<String>,
    /// The rows that are there before, as --rows of the suite.
    #[arg(long, conflicts_with = "wasm", value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: Option<u64>,
    /// What random choices follow from, as --seed of the suite.
    #[arg(long, conflicts_with = "wasm")]
    pub seed: Option<u64>,
    /// Profile whole messages, with heap pages, instead of what they measure.
    #[arg(long, conflicts_with = "wasm")]
    pub whole_message: bool,
    /// Instead of a case, profile a call of this canister: a wasm file, or bench, bench_vfs,
    /// bench_leveldb or bench_doltlite.
    #[arg(long, value_name = "FILE", requires = "call", conflicts_with_all = ["case", "diff"])]
    pub wasm: Option<PathBuf>,
    /// The method that is called, and its arguments as Candid text [default: ()].
    #[arg(long, value_names = ["METHOD", "ARGUMENTS"], num_args = 1..=2, requires = "wasm")]
    pub call: Option<Vec<String>>,
    /// Begin with the canister saved in this file.
    #[arg(long, value_name = "FILE", requires = "wasm")]
    pub state: Option<PathBuf>,
    /// Where the profile is saved; without, it is printed, or only the dearest functions are.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What is saved or printed [default: what the name of the file ends in].
    #[arg(long, value_enum)]
    pub format: Option<ProfileFormat>,
    #[command(flatten)]
    pub replica: ReplicaArgs,
    /// After --, other options of the suite, as --batches 500.
    #[arg(last = true, conflicts_with = "wasm")]
    pub options: Vec<String>,
}

/// What a profile is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileFormat {
    /// A flame graph, for a browser (.svg).
    Svg,
    /// A line a stack, with its instructions (.folded, .txt).
    Folded,
    /// All of it: docs/profiling.md (.json).
    Json,
    /// For profiler.firefox.com.
    Firefox,
}
