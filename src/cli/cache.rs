//! What can be typed about the cache.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The variable that stands for `--cache-limit`.
pub const LIMIT: &str = "STABLEBENCH_CACHE_LIMIT";

/// The embedded replica's cache.
#[derive(Clone, Debug, Args)]
pub struct ReplicaArgs {
    #[command(flatten)]
    pub cache: CacheFolderArgs,
    /// Compile, populate and read back everything anew, and keep nothing for later runs.
    #[arg(long)]
    pub no_cache: bool,
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
