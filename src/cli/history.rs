//! What can be typed for the suite history.

use clap::Args;

use super::RunArgs;

#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Rows of the table.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows: u64,
    /// Rows that are changed, spread over the table; at most as many as there are.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1_000, 10_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub changes: Vec<u64>,
    #[command(flatten)]
    pub run: RunArgs,
}
