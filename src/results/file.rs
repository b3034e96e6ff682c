//! Reading and saving results. A file is saved as a whole or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FORMAT, Results, older};

impl Results {
    /// Reads a saved file, of this format or an older one.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read results from {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} holds no results", path.display()))
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }
        match json::<Header>(text)?.format {
            FORMAT => strict(text),
            older @ 1..FORMAT => older::parse(older, text),
            0 => bail!("there was no format 0"),
            newer => bail!(
                "they have format {newer}, this stablebench reads up to {FORMAT}; take a newer one"
            ),
        }
    }

    /// Fails early if nothing could be saved there. What is there stays.
    pub fn check_writable(path: &Path) -> Result<()> {
        new_file(path).with_context(|| not_saved(path)).map(drop)
    }

    /// Saves the file as a whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        save_text(path, &self.to_json()?)
    }

    /// The file's text.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// Saves a text as a whole or not at all.
pub fn save_text(path: &Path, text: &str) -> Result<()> {
    let saved = new_file(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    });
    saved.with_context(|| not_saved(path))
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
    let mut builder = tempfile::Builder::new();
    // Readable for whom the user lets read files, not for the user alone.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(directory)
}
