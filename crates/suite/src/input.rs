//! Files that a run depends on. Results contain their hashes, so that a run is resumed and joined with
//! the same files only.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stablebench_replica::files;

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
