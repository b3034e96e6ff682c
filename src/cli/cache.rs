//! What can be typed about the cache.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use stablebench_replica::Rules;

/// The variable that stands for `--cache-limit`.
pub const LIMIT: &str = "STABLEBENCH_CACHE_LIMIT";

/// The embedded replica: its rules, its subnet and its cache.
#[derive(Clone, Debug, Args)]
pub struct ReplicaArgs {
    /// Rules by which the embedded replica charges: `2026-08`, today's network, or `2025-10`,
    /// autumn 2025 [default: 2026-08]. A PocketIC server has its own.
    #[arg(long, value_name = "RULES")]
    pub rules: Option<Rules>,
    /// Kind of subnet, of the embedded replica and of a PocketIC server.
    #[arg(long, value_enum, default_value_t = SubnetKind::Application)]
    pub subnet: SubnetKind,
    #[command(flatten)]
    pub cache: CacheFolderArgs,
    /// Compile, populate and read back everything anew, and keep nothing for later runs.
    #[arg(long)]
    pub no_cache: bool,
}

impl ReplicaArgs {
    /// The rules that were asked for, or today's, on the subnet that was asked for.
    pub fn rules(&self) -> Rules {
        self.rules.unwrap_or_default().on(match self.subnet {
            SubnetKind::Application => stablebench_replica::SubnetKind::Application,
            SubnetKind::System => stablebench_replica::SubnetKind::System,
            SubnetKind::Benchmarking => stablebench_replica::SubnetKind::Benchmarking,
        })
    }
}

/// Kinds of subnets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SubnetKind {
    /// Production limits and prices of 13 nodes.
    Application,
    /// Larger limits; nothing is paid for.
    System,
    /// An application subnet without practical instruction limits.
    Benchmarking,
}

/// Where the cache is and how large it may get.
#[derive(Clone, Debug, Args)]
pub struct CacheFolderArgs {
    /// Where compiled modules and populated canisters are kept for later runs
    /// [default: $XDG_CACHE_HOME/stablebench].
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// What the cache may take on the disk; beyond that, what was not used for the longest
    /// time is dropped [default: $STABLEBENCH_CACHE_LIMIT, else 8].
    #[arg(long, value_name = "GIB", value_parser = limit)]
    pub cache_limit: Option<f64>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CacheArgs {
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
    #[command(flatten)]
    pub folder: CacheFolderArgs,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Empty it. Files that are not the cache's stay.
    Clear(CacheFolderArgs),
}

/// `8`, or `0.5`.
pub fn limit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit >= 0.0 => Ok(limit),
        _ => Err("a limit is a number of GiB, as 8 or 0.5".to_owned()),
    }
}
