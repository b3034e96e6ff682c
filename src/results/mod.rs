//! Results: one file a run, from which every table is made. `docs/results.md` is the
//! description for readers.
//!
//! ```text
//!   Results ─┬─ columns   what is compared: an engine and how it is set
//!            ├─ stores    a column populated with so many rows of so many bytes
//!            └─ cases     a row of a table, for one column: section, name, outcome
//! ```

mod file;
#[cfg(test)]
mod fuzzing;
mod layout;
mod run_file;
#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod tests;
mod validate;

use std::fmt;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use stablebench_protocol::{
    CrateVersion, Digest, Engine, LeveldbConfig, PhaseCost, SqliteConfig, SqliteDescription,
    SqliteSettings, StoredObject,
};

pub use file::{check_writable, save_text};
pub use run_file::RunFile;

use crate::replica::{Cost, Identity, PageCosts};

/// Version of the file's format.
pub const FORMAT: u32 = 6;

/// Everything that a run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub format: u32,
    /// Version of this tool, or who published the figures.
    pub stablebench: String,
    /// Git revision of the sources, with `-dirty` if they were changed; results and docs are none.
    pub revision: Option<String>,
    pub suite: String,
    /// Repeats the run.
    pub command: String,
    /// The figures that belong beside these: a name of `suites/published`.
    pub published: Option<String>,
    /// What random choices follow from.
    pub seed: u64,
    pub prices: Prices,
    pub replica: Identity,
    /// The canisters that were measured.
    pub canisters: Vec<CanisterInfo>,
    /// What is compared, in the order of the tables.
    pub columns: Vec<Column>,
    /// What was populated.
    pub stores: Vec<Store>,
    /// What was measured, in the order of the tables.
    pub cases: Vec<Case>,
    /// The message without work, once for each canister, which is the column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness: Vec<Case>,
}

/// What cycles are and cost where the canister would run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Nodes of the subnet for which prices are shown. Cycles in this file are those
    /// of the replica, which charges as 13 nodes do.
    pub nodes: u32,
    /// US dollars for a trillion cycles.
    pub usd_per_trillion_cycles: f64,
}

/// A canister that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanisterInfo {
    pub name: String,
    /// SHA-256 of the module.
    pub sha256: String,
    /// Bytes of the module.
    pub bytes: u64,
    pub crates: Vec<CrateVersion>,
    pub sqlite: Option<SqliteDescription>,
}

/// An engine and how it is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// `btree`, `sqlite/delete`, `sqlite/persist,page_size=512`, …
    pub key: String,
    /// Name of the canister that has the engine.
    pub canister: String,
    pub engine: Engine,
    /// What SQLite was asked for; what it runs with is in each store.
    pub sqlite: Option<SqliteConfig>,
    /// What LevelDB was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leveldb: Option<LeveldbConfig>,
}

/// A column with rows in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    pub column: String,
    /// What tells it from other stores of the column; empty in the users suite.
    #[serde(default)]
    pub name: String,
    pub rows: u64,
    /// Bytes of each row's text.
    pub payload: u32,
    pub outcome: Outcome<Held>,
}

/// What a populated canister holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// What SQLite runs with, read back after populating.
    pub sqlite: Option<SqliteSettings>,
    pub populate: Populate,
    /// Bytes of the engine's pages or nodes, free space inside them included.
    pub stored_bytes: u64,
    /// Bytes of the virtual memories that those are in.
    pub virtual_bytes: Option<u64>,
    /// Bytes of heap in SQLite's page cache.
    pub cache_bytes: Option<u64>,
    /// Wasm pages (64 KiB) of heap.
    pub heap_pages: u64,
    /// Wasm pages (64 KiB) of stable memory.
    pub stable_pages: u64,
    /// Content, equal to the model's.
    pub digest: Digest,
    /// Milliseconds that it took here, where they were wanted. Not a property of the
    /// canister.
    pub wall_milliseconds: Option<u64>,
}

/// What putting the first rows in cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Populate {
    pub messages: u64,
    /// Sum of what the counter read in each message after the work.
    pub instructions: u64,
    /// Sum of what was paid for, where the replica tells it.
    pub charge: Option<u64>,
    pub cycles: u64,
}

/// A row of a table, for one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The table: `insert`, `work`, `transactions`, …
    pub section: String,
    /// The row; unique in its section.
    pub name: String,
    /// Key of the column.
    pub column: String,
    /// Rows that the store holds before.
    pub rows: u64,
    /// Bytes of each row's text.
    pub payload: u32,
    /// What happened to the store before.
    pub state: State,
    pub outcome: Outcome<Measured>,
}

/// What happened to a populated store before a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing: caches are as populating left them.
    #[default]
    Warm,
    /// SQLite's connection was closed.
    Closed,
    /// The canister was upgraded to the same module.
    Upgraded,
    /// `VACUUM`.
    Vacuumed,
    /// Random rows were deleted and as many others inserted.
    Churned,
    /// That, and then `VACUUM`.
    ChurnedAndVacuumed,
}

/// What became of something that was to be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome<T> {
    Measured(T),
    /// The engine cannot do it, and says so itself.
    NotApplicable {
        reason: String,
    },
    /// It should have worked.
    Failed {
        reason: String,
    },
}

/// What a measurement found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Instructions of the work: performance counter after it less before it, over all
    /// messages.
    pub instructions: u64,
    /// Operations that those are for.
    pub operations: u64,
    /// The largest number of operations that one message can do, where that was
    /// searched; `instructions` are for those.
    pub capacity: Option<Capacity>,
    /// All else; published figures have none.
    pub detail: Option<Detail>,
    /// Operation by operation, where that was asked for.
    pub each: Option<Spread>,
    /// Where the instructions of the same work go, measured once more; not in most results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<PhaseCost>>,
}

/// Where a message comes to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// The most instructions a message may use.
    pub limit: u64,
    /// Operations that were seen to fit.
    pub fits: u64,
    /// Operations that were seen not to fit; nothing where all that could be asked for
    /// did.
    pub exceeds: Option<u64>,
}

/// What else is known of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detail {
    /// Messages that the work took.
    pub messages: u64,
    /// Instructions of reading the counter twice; in each message, part of
    /// `instructions`.
    pub counter_overhead: u64,
    /// What the counter read after the work, over all messages: all before the work included.
    pub message_instructions: u64,
    /// Rows written, found or removed.
    pub rows: u64,
    /// Bytes of their texts.
    pub bytes: Option<u64>,
    pub heap_pages_before: u64,
    pub heap_pages_after: u64,
    pub stable_pages_before: u64,
    pub stable_pages_after: u64,
    /// The whole messages.
    pub cost: Cost,
    /// The part of the measured instructions that is for pages, where the replica reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageCosts>,
    /// Content afterwards, equal to the model's; nothing where nothing was written.
    pub digest: Option<Digest>,
    /// The size of the tables afterwards, if requested.
    pub stored: Option<Stored>,
}

/// What tables take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// Bytes of pages, nodes or slots, free space inside them included.
    pub bytes: u64,
    /// Bytes of the virtual memories that those are in; 0 on the heap.
    pub virtual_bytes: u64,
    /// Bytes of heap in SQLite's page cache.
    pub cache_bytes: u64,
    /// Tables and indexes, as SQLite's `dbstat` tells of them.
    pub objects: Vec<StoredObject>,
}

/// Single operations, in instructions without the beginning and end of transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
    /// Sum over all operations.
    pub sum: u64,
    pub worst: Worst,
    /// Operations that took or gave back units of storage, and their sum.
    pub allocating: u64,
    pub allocating_sum: u64,
    /// The non-empty buckets of the cost histogram, cheapest first.
    #[serde(default)]
    pub buckets: Vec<Bucket>,
}

/// Operations that cost about the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Instructions: the least that an operation here can cost.
    pub from: u64,
    /// What it costs less than.
    pub below: u64,
    /// Operations.
    pub count: u64,
}

/// The dearest operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worst {
    /// Which of the operations, from 0.
    pub index: u64,
    /// The row's id.
    pub id: u64,
    /// Units of storage that it took: a page of SQLite's database, a node of the map, a
    /// wasm page of a floor.
    pub allocated: i64,
}

impl Results {
    /// SHA-256 of the module of a canister.
    pub fn module(&self, canister: &str) -> Option<&str> {
        let of = self.canisters.iter().find(|of| of.name == canister)?;
        Some(&of.sha256)
    }

    /// Cases of a section, in their order.
    pub fn section<'a>(&'a self, section: &str) -> impl Iterator<Item = &'a Case> {
        self.cases.iter().filter(move |case| case.section == section)
    }

    /// The case of that section, name and column.
    pub fn case(&self, section: &str, name: &str, column: &str) -> Option<&Case> {
        self.section(section).find(|case| case.name == name && case.column == column)
    }

    /// The results of some sections, and of what they needed; all where none is named.
    ///
    /// # Errors
    ///
    /// Names what there is where a section is not.
    pub fn only(mut self, sections: &[String]) -> Result<Self> {
        if sections.is_empty() {
            return Ok(self);
        }
        let mut known: Vec<&str> = self.cases.iter().map(|case| case.section.as_str()).collect();
        known.dedup();
        if let Some(unknown) = sections.iter().find(|name| !known.contains(&name.as_str())) {
            bail!("there is no section {unknown}; there are: {}", known.join(", "));
        }
        self.cases.retain(|case| sections.contains(&case.section));
        let cases = &self.cases;
        self.stores.retain(|store| {
            cases.iter().any(|case| {
                (&case.column, case.rows, case.payload)
                    == (&store.column, store.rows, store.payload)
            })
        });
        self.columns.retain(|column| cases.iter().any(|case| case.column == column.key));
        Ok(self)
    }
}

impl Case {
    /// `section/name column`, as comparisons call it.
    pub fn title(&self) -> String {
        format!("{}: {}, {}", self.section, self.name, self.column)
    }

    /// What was measured, if it was.
    pub fn measured(&self) -> Option<&Measured> {
        self.outcome.measured()
    }
}

impl<T> Outcome<T> {
    /// What was measured, if it was.
    pub fn measured(&self) -> Option<&T> {
        match self {
            Self::Measured(measured) => Some(measured),
            Self::NotApplicable { .. } | Self::Failed { .. } => None,
        }
    }
}

impl Measured {
    /// Instructions of one operation, rounded.
    pub fn each_operation(&self) -> u64 {
        let operations = self.operations.max(1);
        (self.instructions + operations / 2) / operations
    }
}

impl Populate {
    /// Counts a message in.
    pub fn add(&mut self, instructions: u64, cost: &Cost) {
        let charge = cost.inside.map(|inside| inside.charge);
        self.charge = match self.messages {
            0 => charge,
            _ => self.charge.zip(charge).map(|(sum, more)| sum + more),
        };
        self.messages += 1;
        self.instructions += instructions;
        self.cycles += cost.cycles;
    }

    /// Counts other messages in.
    pub fn join(&mut self, other: Self) {
        self.charge = match self.messages {
            0 => other.charge,
            _ => self.charge.zip(other.charge).map(|(sum, more)| sum + more),
        };
        self.messages += other.messages;
        self.instructions += other.instructions;
        self.cycles += other.cycles;
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Warm => "warm",
            Self::Closed => "closed",
            Self::Upgraded => "upgraded",
            Self::Vacuumed => "vacuumed",
            Self::Churned => "churned",
            Self::ChurnedAndVacuumed => "churned, vacuumed",
        })
    }
}
