//! Command line of `stablebench canbench`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stablebench_replica::Rules;

use super::{CacheFolderArgs, ReplicaArgs, SubnetKind, percent};

#[derive(Debug, Args)]
pub struct CanbenchArgs {
    /// Run only the benchmarks whose names contain this.
    pub pattern: Option<String>,
    /// Write the project's results file.
    #[arg(long)]
    pub persist: bool,
    /// Write the project's CSV file.
    #[arg(long)]
    pub csv: bool,
    /// Omit the summary.
    #[arg(long)]
    pub less_verbose: bool,
    /// Omit the individual benchmarks.
    #[arg(long)]
    pub hide_results: bool,
    /// Print the summary even with --less-verbose.
    #[arg(long)]
    pub show_summary: bool,
    /// Print the canister's debug output to stderr.
    #[arg(long)]
    pub show_canister_output: bool,
    /// Write an exact flame graph of each benchmark, NAME.svg, next to the results file.
    #[arg(long)]
    pub instruction_tracing: bool,
    /// Threshold below which a change is noise.
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    pub noise_threshold: f64,
    /// Without effect: there is no server.
    #[arg(long, value_name = "PATH")]
    pub runtime_path: Option<PathBuf>,
    /// Without effect: there is no server.
    #[arg(long)]
    pub no_runtime_integrity_check: bool,
    /// Rules to count by, for example 2025-10,2026-08. Several are shown side by side; the first is
    /// compared and persisted.
    #[arg(long, value_name = "RULES", value_delimiter = ',', default_value = Rules::today().name())]
    pub rules: Vec<Rules>,
    /// Compare with this results file instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Exit with code 1 if a benchmark or scope regressed by more than the noise threshold.
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Print touched Wasm pages and cycles of each benchmark.
    #[arg(long)]
    pub show_costs: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: CanbenchFormat,
    /// Number of benchmarks to run in parallel; results are the same. [default: one per core]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub cache: CacheFolderArgs,
    /// Do not use the cache of compiled modules.
    #[arg(long)]
    pub no_cache: bool,
}

/// Formats of benchmarks' results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CanbenchFormat {
    /// The output of canbench.
    #[default]
    Text,
    /// Tables with costs.
    Markdown,
    /// Everything that was measured.
    Json,
}

impl CanbenchArgs {
    /// A replica that counts by these rules, on a benchmarking subnet.
    pub fn replica(&self, rules: Rules) -> ReplicaArgs {
        ReplicaArgs {
            rules: Some(rules),
            subnet: SubnetKind::Benchmarking,
            cache: self.cache.clone(),
            no_cache: self.no_cache,
        }
    }
}
