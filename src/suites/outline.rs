//! What the results of a run will be made of, known before anything is measured.

use crate::cli::RunArgs;
use crate::results::{Column, Prices, Store};

/// A run, but for what is done in it.
#[derive(Clone, Debug)]
pub struct Outline {
    pub suite: &'static str,
    /// The command that repeats the run.
    pub command: String,
    /// Published figures that stand beside ours.
    pub published: Option<String>,
    pub seed: u64,
    pub prices: Prices,
    /// Whether each operation is measured by itself as well.
    pub each: bool,
    /// Whether only the rows around those written are read back after a case.
    pub check_around: bool,
    /// Whether results hold how long it took.
    pub wall_time: bool,
    /// Columns in the order of the tables.
    pub columns: Vec<Column>,
    /// Rows in the order of the tables: section and name.
    pub rows: Vec<(String, String)>,
    /// Stores in their order.
    pub stores: Vec<StoreKey>,
}

/// What no two stores have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreKey {
    pub column: String,
    pub name: String,
    pub rows: u64,
    pub payload: u32,
}

impl Outline {
    /// A run without columns and rows.
    pub fn new(suite: &'static str, command: String, args: &RunArgs) -> Self {
        Self {
            suite,
            command,
            published: None,
            seed: args.seed,
            prices: Prices {
                nodes: args.prices.nodes,
                usd_per_trillion_cycles: args.prices.usd_per_trillion_cycles,
            },
            each: false,
            check_around: false,
            wall_time: !args.no_wall_time,
            columns: Vec::new(),
            rows: Vec::new(),
            stores: Vec::new(),
        }
    }
}

impl StoreKey {
    /// Whether it is that store's.
    pub fn is_of(&self, store: &Store) -> bool {
        (&self.column, &self.name, self.rows, self.payload)
            == (&store.column, &store.name, store.rows, store.payload)
    }
}
