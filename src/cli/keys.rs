//! What can be typed for the suite keys.

use clap::Args;

use super::RunArgs;

#[derive(Clone, Debug, Args)]
pub struct KeysArgs {
    #[command(flatten)]
    pub run: RunArgs,
}
