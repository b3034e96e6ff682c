//! What can be typed for all suites at once, and what a suite is told where nothing is.

use clap::{Args, Parser};

use super::RunArgs;

/// `--out` names a folder here, which gets a file for each suite.
#[derive(Clone, Debug, Args)]
pub struct AllArgs {
    #[command(flatten)]
    pub run: RunArgs,
}

/// A suite's arguments where nothing was typed.
///
/// # Errors
///
/// Where something must be.
pub fn defaults<T: Args>() -> Result<T, clap::Error> {
    #[derive(Parser)]
    struct Alone<T: Args> {
        #[command(flatten)]
        args: T,
    }
    Alone::try_parse_from(["stablebench"]).map(|alone| alone.args)
}
