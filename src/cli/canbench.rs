//! Command line of `stablebench canbench`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stablebench_replica::Rules;

use super::{CacheFolderArgs, ReplicaArgs, SubnetKind};

#[derive(Debug, Args)]
pub struct CanbenchArgs {
    /// Run only the benchmarks whose names contain this.
    pub pattern: Option<String>,
    /// Write the results to the project's results file.
    #[arg(long)]
    pub persist: bool,
    /// Write the results to the project's CSV file too.
    #[arg(long)]
    pub csv: bool,
    /// Leave out the summary.
    #[arg(long)]
    pub less_verbose: bool,
    /// Leave out the results of each benchmark.
    #[arg(long)]
    pub hide_results: bool,
    /// Print the summary, also with --less-verbose.
    #[arg(long)]
    pub show_summary: bool,
    /// Print to stderr what the canister prints by `debug_print`.
    #[arg(long)]
    pub show_canister_output: bool,
    /// Draw an exact flame graph of each benchmark: NAME.svg, beside the results file.
    #[arg(long)]
    pub instruction_tracing: bool,
    /// A smaller change than this is called noise.
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    pub noise_threshold: f64,
    /// Without effect: there is no server.
    #[arg(long, value_name = "PATH")]
    pub runtime_path: Option<PathBuf>,
    /// Without effect: there is no server.
    #[arg(long)]
    pub no_runtime_integrity_check: bool,
    /// Rules to count by, as 2025-10,2026-08. With several, a table shows them side by side; the
    /// first are those that are compared and persisted.
    #[arg(long, value_name = "RULES", value_delimiter = ',', default_value = Rules::today().name())]
    pub rules: Vec<Rules>,
    /// Compare with the results in this file, not in the project's results file.
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// End with exit code 1 if a benchmark or a scope has regressed by more than noise.
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Print what each benchmark touches and costs, too: Wasm pages, cycles.
    #[arg(long)]
    pub show_costs: bool,
    /// How results are printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: CanbenchFormat,
    /// Run so many benchmarks side by side; all count the same. [default: one per core]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub cache: CacheFolderArgs,
    /// Compile the module anew, and keep nothing for later runs.
    #[arg(long)]
    pub no_cache: bool,
}

/// Formats of benchmarks' results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CanbenchFormat {
    /// As canbench prints them.
    #[default]
    Text,
    /// Tables with costs.
    Markdown,
    /// All that was measured.
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

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("a threshold is a percentage, as 2.0".to_owned()),
    }
}
