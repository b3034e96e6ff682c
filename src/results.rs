//! Results: one file a run, from which every table is made.
//!
//! The file is JSON, saved as a whole after each case. Unknown keys are refused.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use stablebench_protocol::{CrateVersion, Digest, Measurement, SqliteDescription, SqliteSettings};

use crate::cli::Place;
use crate::replica::{Cost, Identity};

/// Version of the file's format.
pub const FORMAT: u32 = 2;

/// Everything that a run of the users suite found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub format: u32,
    /// Version of this tool.
    pub stablebench: String,
    /// Git revision of the sources, with `-dirty` if they were changed.
    pub revision: Option<String>,
    pub suite: String,
    /// Repeats the run.
    pub command: String,
    /// Whether published figures belong beside these.
    pub as_published: bool,
    pub replica: Identity,
    pub canister: CanisterInfo,
    /// Rows before rows are added.
    pub rows: u64,
    /// Bytes of each row's text.
    pub payload: u32,
    /// What each setting is and what it holds, in the order of the columns.
    pub settings: Vec<SettingResult>,
    /// Every measured insertion.
    pub cases: Vec<Case>,
}

/// The canister that was measured.
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

/// A setting, populated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingResult {
    /// `btree`, `sqlite/delete`, …
    pub key: String,
    /// What SQLite runs with, read back after populating.
    pub sqlite: Option<SqliteSettings>,
    pub populate: Populate,
    /// Bytes of stable memory that the rows fill.
    pub stored_bytes: u64,
    /// Wasm pages (64 KiB) of heap after populating.
    pub heap_pages: u64,
    /// Wasm pages (64 KiB) of stable memory after populating.
    pub stable_pages: u64,
    /// Content, equal to the model's.
    pub digest: Digest,
    /// Milliseconds that it took here. Not a property of the canister.
    pub wall_milliseconds: u64,
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
}

/// One measured insertion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub setting: String,
    pub at: Place,
    /// Rows added.
    pub rows: u64,
    pub measurement: Measurement,
    /// The whole message.
    pub message: Cost,
    /// Content, equal to the model's.
    pub digest: Digest,
}

impl Results {
    /// The case of that setting, place and number of rows.
    pub fn case(&self, setting: &str, at: Place, rows: u64) -> Option<&Case> {
        self.cases.iter().find(|case| case.setting == setting && case.at == at && case.rows == rows)
    }

    /// The numbers of rows that were added there, ascending.
    pub fn batches(&self, at: Place) -> Vec<u64> {
        let mut batches: Vec<u64> =
            self.cases.iter().filter(|case| case.at == at).map(|case| case.rows).collect();
        batches.sort_unstable();
        batches.dedup();
        batches
    }

    /// Reads a saved file.
    pub fn read(path: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }
        let unreadable = || format!("cannot read results from {}", path.display());
        let text = fs::read_to_string(path).with_context(unreadable)?;
        let header: Header = serde_json::from_str(&text)
            .with_context(|| format!("{} holds no results", path.display()))?;
        if header.format != FORMAT {
            bail!(
                "{} has format {} of results, this stablebench reads {FORMAT}; repeat the run",
                path.display(),
                header.format
            );
        }
        serde_json::from_str(&text).with_context(unreadable)
    }

    /// Fails early if nothing could be saved there. What is there stays.
    pub fn check_writable(path: &Path) -> Result<()> {
        new_file(path).with_context(|| not_saved(path)).map(drop)
    }

    /// Saves the file as a whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        let text = self.to_json()?;
        let saved = new_file(path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.persist(path)?;
            Ok(())
        });
        saved.with_context(|| not_saved(path))
    }

    /// The file's text.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

fn not_saved(path: &Path) -> String {
    format!("cannot save the results to {}; choose another place with --out", path.display())
}

/// A file beside `path`, which it can replace.
fn new_file(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)?;
    tempfile::NamedTempFile::new_in(directory)
}
