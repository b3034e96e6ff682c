//! What a populated canister depends on.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stablebench_protocol::Job;

use crate::replica::Identity;
use crate::results::Column;
use crate::suites::lane::Lane;
use crate::suites::users::StorePlan;

/// The sources that decide which messages populate a canister, and what is found of it:
/// a number that must be raised with them would be forgotten.
const SOURCES: &[&str] = &[
    include_str!("../replica/arguments.rs"),
    include_str!("../runner/content.rs"),
    include_str!("../runner/earlier.rs"),
    include_str!("../runner/job.rs"),
    include_str!("../runner/lane.rs"),
    include_str!("../runner/seen.rs"),
    include_str!("../runner/store.rs"),
    include_str!("setup.rs"),
];

/// Everything that decides what a populated canister is and has cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Version of this tool.
    stablebench: String,
    /// SHA-256 of its sources that populate.
    sources: String,
    replica: Identity,
    /// SHA-256 of the module.
    pub canister: String,
    pub stored: Stored,
}

/// What is put in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Stored {
    /// A store of the users suite. What random choices follow from is nothing to it.
    Users { column: Column, rows: u64, payload: u32 },
    /// What a lane of another suite does before anything is measured.
    Lane { column: Column, name: String, rows: u64, payload: u32, seed: u64, steps: Vec<Step> },
}

/// A step that is not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    job: Job,
    as_measured: bool,
    operations: u64,
    message_operations: u64,
    upgraded: bool,
    inspected: bool,
}

impl Setup {
    /// Of something stored in the canister with that hash.
    pub fn new(replica: Identity, canister: String, stored: Stored) -> Self {
        Self {
            stablebench: env!("CARGO_PKG_VERSION").to_owned(),
            sources: sources(),
            replica,
            canister,
            stored,
        }
    }

    /// What no two setups have in common.
    pub fn key(&self) -> String {
        // Of such types writing JSON does not fail.
        let text = serde_json::to_vec(self).unwrap_or_default();
        format!("{:x}", Sha256::digest(text))
    }
}

impl Stored {
    /// The column that it belongs to.
    pub fn column(&self) -> &Column {
        match self {
            Self::Users { column, .. } | Self::Lane { column, .. } => column,
        }
    }

    /// A store of the users suite.
    pub fn users(plan: &StorePlan) -> Self {
        Self::Users { column: plan.setting.column(), rows: plan.rows, payload: plan.payload }
    }

    /// What a lane does before its first measurement, if that is all that it is populated
    /// with.
    pub fn lane(lane: &Lane, seed: u64) -> Option<Self> {
        let steps = lane.steps.get(..lane.populated).filter(|steps| !steps.is_empty())?;
        if steps.iter().any(|step| step.case.is_some() || step.forked) {
            return None;
        }
        let steps = steps.iter().map(|step| Step {
            job: step.job.clone(),
            as_measured: step.as_measured,
            operations: step.operations,
            message_operations: step.message_operations,
            upgraded: step.upgraded,
            inspected: step.inspected,
        });
        Some(Self::Lane {
            column: lane.column.clone(),
            name: lane.name.clone(),
            rows: lane.rows,
            payload: lane.payload,
            seed,
            steps: steps.collect(),
        })
    }
}

/// What is in the names of populated canisters that this version reads. It follows that of
/// compiled modules: what counts otherwise has found other costs of populating.
pub fn version(module: &str) -> String {
    let of = [env!("CARGO_PKG_VERSION"), module, &sources()].join("\n");
    format!("{:x}", Sha256::digest(of))[..16].to_owned()
}

fn sources() -> String {
    let mut hash = Sha256::new();
    for source in SOURCES {
        hash.update(Sha256::digest(source));
    }
    format!("{:x}", hash.finalize())
}
