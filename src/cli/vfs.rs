//! What can be typed for the suite vfs.

use clap::{Args, ValueEnum};

use super::RunArgs;
use crate::suites::users::Setting;

#[derive(Clone, Debug, Args)]
pub struct VfsArgs {
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["published", "transactions", "reads"])]
    pub sections: Vec<VfsSection>,
    /// Sections transactions and reads: rows that are there before.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows: u64,
    /// Sections transactions and reads: rows a transaction, and rows read; at most as many
    /// as there are.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1_000, 10_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub sizes: Vec<u64>,
    /// One more column, as sqlite/persist or doltlite; several where it is typed several times.
    /// It has the transactions of all others.
    #[arg(long, value_name = "SETTING")]
    pub other: Vec<Setting>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VfsSection {
    /// The published benchmark: as it was measured, and with equal transactions.
    Published,
    /// Inserts and updates, by the rows of a transaction.
    Transactions,
    /// Point reads, scans and lists of keys.
    Reads,
}
