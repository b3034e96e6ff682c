//! Reading and saving results. Files are saved completely or not at all.

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

/// The maximum size of a file in bytes: a hundred times that of a whole suite.
const MOST: u64 = 256 << 20;

impl Results {
    /// Reads a saved file. It may be a pipe, if that ends.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read_stream(path, MOST)
            .with_context(|| format!("cannot read results from {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} does not contain results", path.display()))
    }

    /// Parses the text of a file, and refuses results that no run can have saved.
    pub fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }
        let results = match json::<Header>(text)?.format {
            FORMAT => strict::<Self>(text)?,
            older @ 0..FORMAT => {
                bail!("no release has written format {older}; measure again to get format {FORMAT}")
            }
            newer => bail!(
                "format {newer} is newer than format {FORMAT} of this stablebench; use a newer version"
            ),
        };
        validate(&results)?;
        Ok(results)
    }

    /// Saves the results completely or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        save_text(path, &self.to_json()?)
    }

    /// Returns the text of the file.
    pub fn to_json(&self) -> Result<String> {
        Ok(lines(self)?)
    }
}

/// Checks that a text can be saved at a path. Changes nothing.
pub fn check_writable(path: &Path) -> Result<()> {
    saving::check(path).with_context(|| not_saved(path)).map(drop)
}

/// Saves a text completely or not at all.
pub fn save_text(path: &Path, text: &str) -> Result<()> {
    saving::save(path, text.as_bytes()).with_context(|| not_saved(path))
}

/// Parses JSON, and refuses unknown keys: types of the canisters' interface ignore them, as in
/// Candid.
pub fn strict<T: DeserializeOwned + Serialize>(text: &str) -> Result<T> {
    let read = json::<T>(text)?;
    match unknown(&json::<Value>(text)?, &serde_json::to_value(&read)?) {
        None => Ok(read),
        Some(key) => bail!("results have no key {key}"),
    }
}

/// Returns the path of the first key of the text that is not in the parsed value.
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
