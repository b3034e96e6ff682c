//! What a saved canister's file looked like when its memories were last known to be whole.
//!
//! Checking the memories of a large canister takes longer than all else about loading it.
//! A stamp beside the file says what the system told of it after it was written, or
//! checked: device, inode, length, and the times of the last change of its content and of
//! its inode. A file that still looks like that was not written since. This is what git
//! does with its index, and it has the same bounds: damage beneath the file system is not
//! seen, nor a change within the same tick of the file system's clock.
//!
//! A machine that fails loses what the disk did not have yet, and may show the old times.
//! So a stamp holds for one start of the system; it is known by its `boot_id`, which only
//! Linux has. Elsewhere memories are checked whenever they are loaded.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::cache;
use crate::files;

/// The extension of a stamp, which replaces that of the file that it is about.
pub const STATE_STAMP: &str = "stamp";

/// How a file looks.
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
    /// How an open file looks now; nothing where the system does not tell one start from
    /// the next.
    ///
    /// # Errors
    ///
    /// If the system does not tell.
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

    /// What the stamp beside a file says, if there is a whole one.
    pub fn read(path: &Path) -> Option<Self> {
        const MOST: u64 = 1 << 16;
        let text = files::read_at_most(files::open_own(&beside(path)).ok()?, MOST).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Puts a stamp beside a file.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        cache::write(&beside(path), |mut file| file.write_all(&text)).map(drop)
    }
}

/// Says that the file was used.
pub fn touch(path: &Path) {
    cache::touch(&beside(path));
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
