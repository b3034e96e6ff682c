//! Everything that a populated canister depends on.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::replica::Identity;
use crate::report::number::Grouped;
use crate::results::ConfigurationInfo;
use stablebench_suite::plan::{Effect, Fixture};

/// The sources that determine how a canister is populated. Their hash replaces a version number,
/// which could be forgotten.
const SOURCES: &[&str] = &[
    include_str!("../runner/fixture.rs"),
    include_str!("../runner/observed.rs"),
    include_str!("../runner/ranges.rs"),
    include_str!("../runner/seen.rs"),
    include_str!("../runner/step.rs"),
    include_str!("../runner/wire.rs"),
    include_str!("../../crates/suite/src/job.rs"),
    include_str!("../../crates/suite/src/plan.rs"),
    include_str!("../../suites/sql/src/script/setup.rs"),
    include_str!("../../suites/users/src/rows.rs"),
    include_str!("setup.rs"),
];

/// Everything that determines the content and the cost of a populated canister.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The version of this tool.
    stablebench: String,
    /// SHA-256 of its sources that populate.
    sources: String,
    replica: Identity,
    /// SHA-256 of the module.
    pub canister: String,
    pub prepared: Prepared,
}

/// A populated fixture: everything before its first case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    configuration: ConfigurationInfo,
    name: String,
    rows: u64,
    payload: u32,
    seed: u64,
    /// The steps in a form that is only compared.
    steps: Vec<String>,
}

impl Setup {
    /// Of something stored in the canister with that hash.
    pub fn new(replica: Identity, canister: String, prepared: Prepared) -> Self {
        Self {
            stablebench: env!("CARGO_PKG_VERSION").to_owned(),
            sources: SOURCES_HASH.clone(),
            replica,
            canister,
            prepared,
        }
    }

    /// Returns a key that is unique to the setup.
    pub fn key(&self) -> String {
        // Serializing these types does not fail.
        let text = serde_json::to_vec(self).unwrap_or_default();
        format!("{:x}", Sha256::digest(text))
    }
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configuration, name, rows, payload, .. } = self;
        f.write_str(&configuration.key)?;
        if !name.is_empty() {
            write!(f, ", {name}")?;
        }
        match rows {
            0 => Ok(()),
            _ => write!(f, ", {} rows of {} bytes", Grouped(*rows), Grouped((*payload).into())),
        }
    }
}

impl Prepared {
    /// A database whose content has this key.
    pub fn database(configuration: ConfigurationInfo, name: String, key: String) -> Self {
        Self { configuration, name, rows: 0, payload: 0, seed: 0, steps: vec![key] }
    }

    /// The steps that populate a fixture, unless some of them are measured.
    pub fn new(fixture: &Fixture, seed: u64) -> Option<Self> {
        let steps = fixture.steps.get(..fixture.populated).filter(|steps| !steps.is_empty())?;
        if steps.iter().any(|step| step.row().is_some() || step.effect == Effect::Dropped) {
            return None;
        }
        let random = steps.iter().any(|step| step.job.is_random());
        Some(Self {
            configuration: fixture.configuration.clone(),
            name: fixture.name.clone(),
            rows: fixture.rows,
            payload: fixture.payload,
            // Rows that are populated in order do not depend on it.
            seed: if random { seed } else { 0 },
            steps: steps.iter().map(|step| format!("{step:?}")).collect(),
        })
    }
}

/// Returns the version of populated canisters that this program reads. It depends on the version of
/// compiled modules, which determines the costs of populating.
pub fn version(module: &str) -> String {
    let of = [env!("CARGO_PKG_VERSION"), module, &SOURCES_HASH].join("\n");
    format!("{:x}", Sha256::digest(of))[..16].to_owned()
}

/// The hash of the sources that decide what a populated canister is. Each entry of a cache folder
/// asks for it.
static SOURCES_HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for source in SOURCES {
        hash.update(Sha256::digest(source));
    }
    format!("{:x}", hash.finalize())
});
