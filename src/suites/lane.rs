//! What a suite with tables of its own measures: lanes, each a fresh canister in which
//! steps are done in order.
//!
//! ```text
//!   Lane ── column, settings ──→ canister
//!     ├─ step   makes ready:  no row of a table
//!     ├─ step   kept:         what it writes is there for the steps after it
//!     └─ step   forked:       what it writes is dropped
//! ```

use stablebench_protocol::Job;
use stablebench_workload::Tables;

use super::outline::{Outline, StoreKey};
use crate::results::Column;

/// What one run of a suite measures.
#[derive(Debug)]
pub struct Plan {
    pub outline: Outline,
    pub lanes: Vec<Lane>,
}

/// What happens in one canister, in this order.
#[derive(Debug)]
pub struct Lane {
    pub column: Column,
    /// What tells it from other lanes of the column; may be empty.
    pub name: String,
    /// Rows that its cases are about.
    pub rows: u64,
    /// Bytes of each row's value.
    pub payload: u32,
    /// Its tables before the first step, to compare with.
    pub tables: fn(&Lane) -> Box<dyn Tables>,
    pub steps: Vec<Step>,
    /// After so many steps it is told what the canister holds; the cost of those before is
    /// that of populating.
    pub populated: usize,
}

/// A job, done in one message or in several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Section and name of the row that it becomes; nothing where it makes ready.
    pub case: Option<(String, String)>,
    /// Whether its messages are those of a measurement although it becomes no row: what a canister
    /// is sent decides where things lie on its heap, and so which pages later messages touch.
    pub as_measured: bool,
    pub job: Job,
    /// What makes ready for it in a message before, told as many operations.
    pub before: Option<Job>,
    /// Operations of the job.
    pub operations: u64,
    /// Operations a message, unless a message comes to its limit with fewer.
    pub message_operations: u64,
    /// Whether it needs nothing of the steps before it.
    pub anew: bool,
    /// Whether it is done in a fork, which is dropped.
    pub forked: bool,
    /// Whether the canister is upgraded before.
    pub upgraded: bool,
    /// Whether results tell what the tables take afterwards.
    pub inspected: bool,
    /// Whether results tell where its instructions go, measured in a fork of its own.
    pub phases: bool,
}

impl Lane {
    /// How results call what it holds.
    pub fn store(&self) -> StoreKey {
        StoreKey {
            column: self.column.key.clone(),
            name: self.name.clone(),
            rows: self.rows,
            payload: self.payload,
        }
    }
}

impl Plan {
    /// Fills the outline from the lanes, whose rows stand in the order in which they come.
    pub fn new(mut outline: Outline, lanes: Vec<Lane>) -> Self {
        for lane in &lanes {
            if outline.columns.iter().all(|column| column.key != lane.column.key) {
                outline.columns.push(lane.column.clone());
            }
            outline.stores.push(lane.store());
            for row in lane.steps.iter().filter_map(|step| step.case.as_ref()) {
                if !outline.rows.contains(row) {
                    outline.rows.push(row.clone());
                }
            }
        }
        Self { outline, lanes }
    }
}
