//! What can be typed for the suite db-bench.

use clap::Args;

use super::RunArgs;

#[derive(Clone, Debug, Args)]
pub struct DbBenchArgs {
    #[command(flatten)]
    pub run: RunArgs,
}
