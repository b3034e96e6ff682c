//! What can be typed for the suite cuckoo.

use clap::Args;

use super::RunArgs;

#[derive(Clone, Debug, Args)]
pub struct CuckooArgs {
    #[command(flatten)]
    pub run: RunArgs,
}
