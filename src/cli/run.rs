//! What can be typed for every suite.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Format, ReplicaArgs, TargetArgs};

#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// What random choices follow from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub prices: PriceArgs,
    /// Where the results are saved [default: results.json, or the suite's name].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Go on with the run that was saved there and did not end.
    #[arg(long)]
    pub resume: bool,
    /// Leave out of the results how long things took here.
    #[arg(long)]
    pub no_wall_time: bool,
    /// How the results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// List what would be measured, and measure nothing.
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Canisters that run side by side.
    #[arg(long, default_value_t = default_jobs(), value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: u64,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

impl RunArgs {
    /// Where the results of a suite are saved.
    pub fn out(&self, suite: &str) -> PathBuf {
        match &self.out {
            Some(out) => out.clone(),
            None if suite == "users" => Path::new("results.json").to_owned(),
            None => Path::new(suite).with_extension("json"),
        }
    }
}

/// What cycles are paid for and cost.
#[derive(Clone, Copy, Debug, Args)]
pub struct PriceArgs {
    /// Nodes of the subnet that prices are shown for; cycles scale with them from 13.
    #[arg(long, default_value_t = 13, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub nodes: u32,
    /// US dollars for a trillion cycles, which is one XDR.
    #[arg(long, default_value_t = 1.36, value_parser = price)]
    pub usd_per_trillion_cycles: f64,
}

fn price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err("a price is a number of US dollars, as 1.36".to_owned()),
    }
}

fn default_jobs() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}
