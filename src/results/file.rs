//! Reading and saving results. A file is saved as a whole or not at all.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stablebench_replica::files;

use super::layout::lines;
use super::validate::validate;
use super::{FORMAT, Results};
use crate::saving;

/// Bytes of the largest file that is read: a hundred times that of a whole suite.
const MOST: u64 = 256 << 20;

impl Results {
    /// Reads a saved file. It may be a pipe, but not endless.
    pub fn read(path: &Path) -> Result<Self> {
        let text = File::open(path)
            .and_then(|file| files::read_at_most(file, MOST))
            .with_context(|| format!("cannot read results from {}", path.display()))?;
        std::str::from_utf8(&text)
            .map_err(anyhow::Error::new)
            .and_then(Self::parse)
            .with_context(|| format!("{} holds no results", path.display()))
    }

    /// Reads the text of a file, and refuses what no run can have saved.
    pub fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }
        let results = match json::<Header>(text)?.format {
            FORMAT => strict::<Self>(text)?,
            older @ 0..FORMAT => bail!(
                "they have format {older}, which no release has written; measure again, for format \
                 {FORMAT}"
            ),
            newer => bail!(
                "they have format {newer}, this stablebench reads up to {FORMAT}; take a newer one"
            ),
        };
        validate(&results)?;
        Ok(results)
    }

    /// Saves the file as a whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        save_text(path, &self.to_json()?)
    }

    /// The file's text.
    pub fn to_json(&self) -> Result<String> {
        Ok(lines(self)?)
    }
}

/// Fails early if no text could be saved there. What is there stays.
pub fn check_writable(path: &Path) -> Result<()> {
    saving::check(path).with_context(|| not_saved(path)).map(drop)
}

/// Saves a text as a whole or not at all.
pub fn save_text(path: &Path, text: &str) -> Result<()> {
    saving::save(path, text.as_bytes()).with_context(|| not_saved(path))
}

/// What the text says, if it says nothing else. Types of the canisters' interface take
/// keys that they do not know, as Candid does; results must not.
pub fn strict<T: DeserializeOwned + Serialize>(text: &str) -> Result<T> {
    let read = json::<T>(text)?;
    match unknown(&json::<Value>(text)?, &serde_json::to_value(&read)?) {
        None => Ok(read),
        Some(key) => bail!("unknown key {key}; results with more keys than that are not read"),
    }
}

/// The path of the first key that is in the text and not in what was understood of it.
fn unknown(text: &Value, read: &Value) -> Option<String> {
    match (text, read) {
        (Value::Object(text), Value::Object(read)) => text.iter().find_map(|(key, inner)| {
            let Some(read) = read.get(key) else {
                return Some(key.clone());
            };
            unknown(inner, read).map(|inner| format!("{key}.{inner}"))
        }),
        (Value::Array(text), Value::Array(read)) => text
            .iter()
            .zip(read)
            .enumerate()
            .find_map(|(index, (text, read))| Some(format!("{index}.{}", unknown(text, read)?))),
        _ => None,
    }
}

pub fn json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let cut = error.is_eof();
        let error = anyhow::Error::new(error);
        if cut {
            error.context("the file was cut off; copy it again or repeat the run")
        } else {
            error
        }
    })
}

pub fn not_saved(path: &Path) -> String {
    format!("cannot save the results to {}; choose another place with --out", path.display())
}
