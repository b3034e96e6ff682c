//! Reading and saving results. A file is saved as a whole or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

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
        let header: Header = serde_json::from_str(text)?;
        match header.format {
            FORMAT => Ok(serde_json::from_str(text)?),
            older @ 1..FORMAT => older::parse(older, text),
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
