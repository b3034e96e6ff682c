//! Results: a file for each run, from which all tables are made. `docs/running.md` describes it for
//! readers.
//!
//! ```text
//!   Results ─┬─ inputs           the files that the run depends on
//!            ├─ configurations   an engine and its settings
//!            ├─ fixtures         a configuration, populated with rows
//!            └─ cases            the measurements: section, name, configuration, outcome
//! ```

mod file;
pub mod sample;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{
    CrateVersion, Digest, Engine, PhaseCost, SqliteDescription, SqliteSettings, StoredObject,
};
use stablebench_replica::files;

use crate::cost::{Cost, Identity, PageCosts};

pub use file::{RunFile, check_writable, save_text};

/// The version of the file's format.
pub const FORMAT: u32 = 7;

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub format: u32,
    /// The version of this tool, or the author of published figures.
    pub stablebench: String,
    /// The git revision of the sources, with `-dirty` if they were changed. Results and docs are
    /// not sources.
    pub revision: Option<String>,
    pub suite: String,
    /// The command that repeats the run.
    pub command: String,
    /// The published figures to compare with, by name.
    pub published: Option<String>,
    /// The seed of random choices.
    pub seed: u64,
    pub prices: Prices,
    pub replica: Identity,
    /// The files that the run depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// The canisters that were measured.
    pub canisters: Vec<CanisterInfo>,
    /// The configurations, in the order of the tables.
    pub configurations: Vec<ConfigurationInfo>,
    /// The fixtures.
    pub fixtures: Vec<FixtureInfo>,
    /// The cases, in the order of the tables.
    pub cases: Vec<Case>,
    /// The message without work of each canister, whose name takes the place of a configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness: Vec<Case>,
    /// The number of cases that the run measures, until it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
}

/// The prices of cycles on the subnet where the canister would run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The number of nodes of the subnet. Cycles in this file are those of the replica, which
    /// charges for 13 nodes.
    pub nodes: u32,
    /// The price of a trillion cycles in US dollars.
    pub usd_per_trillion_cycles: f64,
}

/// A canister that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanisterInfo {
    pub name: String,
    /// The SHA-256 of the module.
    pub sha256: String,
    /// The size of the module in bytes.
    pub bytes: u64,
    pub crates: Vec<CrateVersion>,
    pub sqlite: Option<SqliteDescription>,
}

/// An engine with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationInfo {
    /// `btree`, `sqlite/delete`, `sqlite/persist,page_size=512`, …
    pub key: String,
    /// The name of the canister that contains the engine.
    pub canister: String,
    pub engine: Engine,
    /// The requested settings by name; `None` if the engine has none. Each fixture contains those in
    /// effect.
    pub settings: Option<BTreeMap<String, String>>,
}

/// A populated canister.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixtureInfo {
    pub configuration: String,
    /// The name, which is unique among fixtures of one configuration and size. Empty in the users
    /// suite.
    #[serde(default)]
    pub name: String,
    pub rows: u64,
    /// The length of each row's text in bytes.
    pub payload: u32,
    pub outcome: Outcome<Held>,
}

/// The content of a populated canister.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The settings of SQLite in effect, read back after populating.
    pub sqlite: Option<SqliteSettings>,
    pub populate: Populate,
    /// The size of the engine's pages or nodes in bytes, including free space inside of them.
    pub stored_bytes: u64,
    /// The size of the virtual memories that contain them, in bytes.
    pub virtual_bytes: Option<u64>,
    /// The size of SQLite's page cache on the heap in bytes.
    pub cache_bytes: Option<u64>,
    /// The size of the heap in Wasm pages (64 KiB).
    pub heap_pages: u64,
    /// The size of stable memory in Wasm pages (64 KiB).
    pub stable_pages: u64,
    /// The digest of the rows, equal to the model's.
    pub digest: Digest,
    /// The time that populating took on this machine, in milliseconds, if requested. It is not a
    /// property of the canister.
    pub wall_milliseconds: Option<u64>,
}

/// The cost of populating a canister.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Populate {
    pub messages: u64,
    /// The sum of the counter's readings after the work of each message.
    pub instructions: u64,
    /// The sum of the charged instructions, if the replica reports them.
    pub charge: Option<u64>,
    pub cycles: u64,
}

/// A row of a table, for one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The table: `insert`, `work`, `transactions`, …
    pub section: String,
    /// The row, unique in its section.
    pub name: String,
    /// The key of the configuration.
    pub configuration: String,
    /// The number of rows before the work.
    pub rows: u64,
    /// The length of each row's text in bytes.
    pub payload: u32,
    /// The state of the fixture before the work.
    pub state: State,
    pub outcome: Outcome<Measured>,
}

/// The state of a fixture before a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Caches are as populating left them.
    #[default]
    Warm,
    /// SQLite's connection was closed.
    Closed,
    /// The canister was upgraded to the same module.
    Upgraded,
    /// `VACUUM` was executed.
    Vacuumed,
    /// Random rows were deleted and as many others inserted.
    Churned,
    /// The same, followed by `VACUUM`.
    ChurnedAndVacuumed,
}

/// The outcome of measuring or populating.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome<T> {
    Measured(T),
    /// The engine does not support it, and reports that itself.
    NotApplicable {
        reason: String,
    },
    /// It failed unexpectedly.
    Failed {
        reason: String,
    },
}

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The instructions of the work: the performance counter after it minus the counter before it,
    /// over all messages.
    pub instructions: u64,
    /// The number of operations of the work.
    pub operations: u64,
    /// The largest number of operations that one message can execute, if the case searches for it.
    /// `instructions` are then for that number.
    pub capacity: Option<Capacity>,
    /// All other values; `None` for published figures.
    pub detail: Option<Detail>,
    /// The costs of single operations, if requested.
    pub each: Option<Spread>,
    /// The instructions of the same work by phase, from a second measurement, if the suite has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<PhaseCost>>,
}

/// The capacity of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// The maximum number of instructions of a message.
    pub limit: u64,
    /// The largest number of operations that fits.
    pub fits: u64,
    /// The smallest number of operations that does not fit; `None` if the largest possible number
    /// fits.
    pub exceeds: Option<u64>,
    /// The reject of that number, if it is not that of the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Further values of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detail {
    /// The number of messages.
    pub messages: u64,
    /// The instructions of reading the counter twice, which each message adds to `instructions`.
    pub counter_overhead: u64,
    /// The counter after the work, over all messages. It includes everything before the work.
    pub message_instructions: u64,
    /// The number of rows that were written, found or removed.
    pub rows: u64,
    /// The length of their texts in bytes.
    pub bytes: Option<u64>,
    pub heap_pages_before: u64,
    pub heap_pages_after: u64,
    pub stable_pages_before: u64,
    pub stable_pages_after: u64,
    /// The cost of the whole messages.
    pub cost: Cost,
    /// The part of the measured instructions that is for pages, if the replica reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageCosts>,
    /// The digest of the rows afterwards, equal to the model's; `None` if nothing was written.
    pub digest: Option<Digest>,
    /// The size of the tables afterwards, if requested.
    pub stored: Option<Stored>,
}

/// The size of tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The size of pages, nodes or slots in bytes, including free space inside of them.
    pub bytes: u64,
    /// The size of the virtual memories that contain them, in bytes; 0 on the heap.
    pub virtual_bytes: u64,
    /// The size of SQLite's page cache on the heap in bytes.
    pub cache_bytes: u64,
    /// Tables and indexes, as SQLite's `dbstat` reports them.
    pub objects: Vec<StoredObject>,
}

/// The distribution of the instructions of single operations, without the beginning and the end of
/// transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<u64>,
    pub p99: u64,
    pub max: u64,
    /// The sum over all operations.
    pub sum: u64,
    pub worst: Worst,
    /// The most expensive operation in words, if it was described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_work: Option<String>,
    /// The number of operations that allocated or freed units of storage.
    pub allocating: u64,
    /// The sum of their instructions.
    pub allocating_sum: u64,
    /// The non-empty buckets of the cost histogram, cheapest first.
    #[serde(default)]
    pub buckets: Vec<Bucket>,
}

/// A bucket of operations that cost about the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// The inclusive lower bound, in instructions.
    pub from: u64,
    /// The exclusive upper bound.
    pub below: u64,
    /// The number of operations.
    pub count: u64,
}

/// The most expensive operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worst {
    /// The index of the operation, from 0.
    pub index: u64,
    /// The row's id.
    pub id: u64,
    /// The number of allocated units of storage: pages of SQLite's database, nodes of the map, Wasm
    /// pages of a floor. Negative if units were freed.
    pub allocated: i64,
}

impl Results {
    /// Returns the SHA-256 of a canister's module.
    pub fn module(&self, canister: &str) -> Option<&str> {
        let of = self.canisters.iter().find(|of| of.name == canister)?;
        Some(&of.sha256)
    }

    /// Returns the cases of a section, in order.
    pub fn section<'a>(&'a self, section: &str) -> impl Iterator<Item = &'a Case> {
        self.cases.iter().filter(move |case| case.section == section)
    }

    /// Returns the names of a section's cases, each once, in order.
    pub fn names(&self, section: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for case in self.section(section) {
            if !names.contains(&case.name.as_str()) {
                names.push(&case.name);
            }
        }
        names
    }

    /// Returns the keys of the configurations that have a case in a section, in order.
    pub fn configurations_of(&self, section: &str) -> Vec<&str> {
        let has = |key: &&str| self.section(section).any(|case| case.configuration == *key);
        self.configurations.iter().map(|one| one.key.as_str()).filter(has).collect()
    }

    /// Returns the case with this section, name and configuration.
    pub fn case(&self, section: &str, name: &str, configuration: &str) -> Option<&Case> {
        self.section(section).find(|case| case.name == name && case.configuration == configuration)
    }

    /// Returns the results of some sections, with their fixtures and configurations, or all results
    /// if `sections` is empty.
    ///
    /// # Errors
    ///
    /// If there is no such section; the message names the existing ones.
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
        self.fixtures.retain(|fixture| {
            cases.iter().any(|case| {
                (&case.configuration, case.rows, case.payload)
                    == (&fixture.configuration, fixture.rows, fixture.payload)
            })
        });
        self.configurations.retain(|one| cases.iter().any(|case| case.configuration == one.key));
        Ok(self)
    }
}

impl Case {
    /// Returns `section: name, configuration`.
    pub fn title(&self) -> String {
        format!("{}: {}, {}", self.section, self.name, self.configuration)
    }

    /// Returns the measurement, if there is one.
    pub fn measured(&self) -> Option<&Measured> {
        self.outcome.measured()
    }
}

impl<T> Outcome<T> {
    /// Returns the measurement, if there is one.
    pub fn measured(&self) -> Option<&T> {
        match self {
            Self::Measured(measured) => Some(measured),
            Self::NotApplicable { .. } | Self::Failed { .. } => None,
        }
    }
}

impl Detail {
    /// Returns the detail of one whole message, of which only the cost is known.
    pub fn of_message(instructions: u64, cost: Cost) -> Self {
        Self {
            messages: 1,
            counter_overhead: 0,
            message_instructions: instructions,
            rows: 0,
            bytes: None,
            heap_pages_before: 0,
            heap_pages_after: 0,
            stable_pages_before: 0,
            stable_pages_after: 0,
            cost,
            pages: None,
            digest: None,
            stored: None,
        }
    }
}

impl Measured {
    /// A number of instructions without further values.
    pub fn without_detail(instructions: u64, operations: u64) -> Self {
        Self { instructions, operations, capacity: None, detail: None, each: None, phases: None }
    }

    /// Returns the instructions of one operation, rounded.
    pub fn each_operation(&self) -> u64 {
        let operations = self.operations.max(1);
        (self.instructions + operations / 2) / operations
    }
}

impl Populate {
    /// Adds a message.
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

    /// Adds other messages.
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

/// A file that a run depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its path as it was typed.
    pub name: String,
    /// The SHA-256 of its content.
    pub sha256: String,
}

impl Input {
    /// Reads a file of at most this number of bytes.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is longer.
    pub fn read(path: &Path, limit: u64) -> Result<(Self, Vec<u8>)> {
        let name = path.display().to_string();
        let bytes = files::read(path, limit).with_context(|| format!("cannot read {name}"))?;
        let sha256 = format!("{:x}", Sha256::digest(&bytes));
        Ok((Self { name, sha256 }, bytes))
    }

    /// Reads a text of at most this number of bytes.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is longer, is not UTF-8, or contains NUL.
    pub fn text(path: &Path, limit: u64) -> Result<(Self, String)> {
        let (input, bytes) = Self::read(path, limit)?;
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok((input, text)),
            Ok(_) => bail!("{} contains a NUL byte, which SQL cannot", input.name),
            Err(error) => bail!("{} is not UTF-8: {error}", input.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        format!("{:#}", Results::parse(text).unwrap_err())
    }

    #[test]
    fn saved_results_are_complete() {
        let results = sample::full();
        assert_eq!(Results::parse(&results.to_json().unwrap()).unwrap(), results);
    }

    /// Keys of this crate's types, and of those of the canisters' interface.
    #[test]
    fn unknown_keys_are_refused() {
        let text = sample::full().to_json().unwrap();
        for place in ["\"suite\":", "\"instructions\":", "\"page_size\":", "\"low\":", "\"kind\":"]
        {
            assert!(text.contains(place), "{place}");
            let more = text.replacen(place, &format!("\"colour\": 1, {place}"), 1);
            let error = refusal(&more);
            assert!(error.contains("colour"), "{place}: {error}");
        }
        let reason = r#""outcome": {"failed": {"reason": "none", "colour": 1}}"#;
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["cases"][0] = serde_json::from_str(&format!(
            r#"{{"section": "insert", "name": "middle 1", "configuration": "btree", "rows": 1,
                "payload": 1, "state": "warm", {reason}}}"#
        ))
        .unwrap();
        assert_eq!(
            refusal(&value.to_string()),
            "results have no key cases.0.outcome.failed.colour"
        );
    }

    #[test]
    fn other_formats_are_refused_with_the_next_step() {
        assert_eq!(
            refusal(r#"{"format": 8, "news": true}"#),
            "format 8 is newer than format 7 of this stablebench; use a newer version"
        );
        assert_eq!(
            refusal(r#"{"format": 6}"#),
            "no release has written format 6; measure again to get format 7"
        );
    }

    #[test]
    fn a_file_that_was_cut_off_is_one_clear_error() {
        let text = sample::full().to_json().unwrap();
        for length in [0, 1, text.len() / 2, text.len() - 3] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("cut.json");
            std::fs::write(&path, &text.as_bytes()[..length]).unwrap();
            let error = format!("{:#}", Results::read(&path).unwrap_err());
            assert!(
                error.contains("cut.json does not contain results: the file was cut"),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn the_documentation_names_every_key() {
        fn walk(value: &serde_json::Value, keys: &mut std::collections::BTreeSet<String>) {
            match value {
                serde_json::Value::Array(inner) => inner.iter().for_each(|one| walk(one, keys)),
                serde_json::Value::Object(inner) => {
                    keys.extend(inner.keys().cloned());
                    inner.values().for_each(|one| walk(one, keys));
                }
                _ => {}
            }
        }
        let mut results = sample::full();
        for outcome in [
            Outcome::Failed { reason: String::new() },
            Outcome::NotApplicable { reason: String::new() },
        ] {
            results.cases.push(Case { outcome, ..results.cases[0].clone() });
        }
        let mut keys = std::collections::BTreeSet::new();
        walk(&serde_json::to_value(&results).unwrap(), &mut keys);
        assert!(keys.len() > 80, "{}", keys.len());
        let path = crate::root().join("docs/running.md");
        let text = std::fs::read_to_string(path).unwrap();
        for state in ["warm", "closed", "upgraded", "vacuumed", "churned", "churned_and_vacuumed"] {
            assert!(serde_json::from_str::<State>(&format!("\"{state}\"")).is_ok());
            keys.insert(state.to_owned());
        }
        let missing: Vec<&String> =
            keys.iter().filter(|key| !text.contains(&format!("`{key}`"))).collect();
        assert!(missing.is_empty(), "docs/running.md does not describe {missing:?}");
    }
}
