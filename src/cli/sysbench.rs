//! What can be typed for the suite sysbench.

use clap::Args;

use super::RunArgs;

#[derive(Clone, Debug, Args)]
pub struct SysbenchArgs {
    #[command(flatten)]
    pub run: RunArgs,
}
