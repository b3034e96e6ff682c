//! Stamps: metadata of a saved canister's file when its memories were last known to be correct.
//!
//! Checking the memories of a large canister takes most of the time of loading it. A stamp is a file
//! next to the saved canister with the metadata after it was written or checked: device, inode,
//! length, and the times of the last change of content and inode. A file with the same metadata has
//! not been written since. Git uses its index in the same way, with the same limits: damage below
//! the file system is not detected, nor is a change within one tick of the file system's clock.
//!
//! After a system crash, a file may lack data that was not on disk yet and still have the old times.
//! A stamp is therefore valid for one boot of the system, identified by its `boot_id`, which only
//! Linux has. On other systems memories are checked at every load.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::files;

/// The extension of a stamp, which replaces that of the saved canister's file.
pub const STATE_STAMP: &str = "stamp";

/// Metadata of a file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    boot: String,
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The current metadata of an open file; `None` if the system has no boot id.
    ///
    /// # Errors
    ///
    /// If the metadata cannot be read.
    pub fn of(file: &File) -> io::Result<Option<Self>> {
        let Some(boot) = boot() else {
            return Ok(None);
        };
        let metadata = file.metadata()?;
        Ok(Some(Self {
            boot,
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }))
    }

    /// Reads the stamp next to a file, if it is valid.
    pub fn read(path: &Path) -> Option<Self> {
        const MAX_STAMP: u64 = 1 << 16;
        let text = files::read_at_most(files::open_own(&beside(path)).ok()?, MAX_STAMP).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes a stamp next to a file.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        files::write(&beside(path), |mut file| file.write_all(&text)).map(drop)
    }
}

/// Marks the stamp of a file as used.
pub fn touch(path: &Path) {
    files::touch(&beside(path));
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension(STATE_STAMP)
}

fn boot() -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    BOOT.get_or_init(|| {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    })
    .clone()
}
