//! The cache of earlier runs: compiled modules and populated canisters.
//!
//! ```text
//!   Cache ── loads and saves for one run, and reports failures
//!     ├─ setup.rs    everything that a populated canister depends on: its key
//!     └─ folder.rs   the files, and dropping them
//! ```
//!
//! The replica saves modules in the same folder. An entry that cannot be used is replaced, and one
//! that cannot be saved is skipped: results are the same without a cache.

mod folder;
mod setup;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use stablebench_protocol::Digest;

use crate::progress::Progress;
use crate::replica::{Canister, Replica};
use crate::results::Held;
use crate::terminal::json;

pub use folder::{DURATIONS, Entry, Folder, Kind, Versions};
pub use setup::{Prepared, Setup};

/// Populated canisters of earlier runs, and of this one.
pub struct Cache {
    folder: Folder,
    limit: u64,
    versions: Versions,
    progress: Progress,
    session: Mutex<Session>,
}

#[derive(Default)]
struct Session {
    /// The files that this run has used and must not drop.
    used: BTreeSet<String>,
    /// `true` once saving has failed, which was reported.
    stopped: bool,
}

/// The note in the file of a populated canister.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub setup: Setup,
    pub held: Held,
}

/// Digests of forks by their differences from the canister, in hexadecimal digits.
pub type Digests = BTreeMap<String, Digest>;

/// The file with the digests of a populated canister's forks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptDigests {
    setup: Setup,
    digests: Digests,
}

impl Cache {
    /// Opens a cache of at most `limit` bytes, and drops old entries.
    pub fn new(folder: Folder, limit: u64, versions: Versions, progress: &Progress) -> Self {
        let cache =
            Self { folder, limit, versions, progress: progress.clone(), session: Mutex::default() };
        cache.shrink();
        cache
    }

    /// The folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Drops old entries beyond the limit, but none that this run has used.
    pub fn shrink(&self) {
        // Entries that cannot be dropped now will be dropped later.
        let _ = self.folder.shrink(self.limit, &self.versions, &self.session().used);
    }

    /// Loads the canister that an earlier run has populated with this setup, and its content.
    /// `plausible` checks the content.
    pub fn take(
        &self,
        replica: &dyn Replica,
        wasm: &[u8],
        setup: &Setup,
        plausible: impl FnOnce(&Held) -> bool,
    ) -> Option<(Box<dyn Canister>, Held)> {
        let (name, path) = self.place(setup);
        let loaded = || -> Result<_> {
            let Some((canister, note)) = replica.load(wasm, &path)? else {
                return Ok(None);
            };
            let note: Note = serde_json::from_str(&note).context("its note cannot be read")?;
            if note.setup != *setup {
                bail!("it has another setup");
            }
            if !plausible(&note.held) {
                bail!("it has other content");
            }
            // If it cannot be marked, it is dropped earlier.
            let _ = self.folder.touch(&name);
            Ok(Some((canister, note.held)))
        };
        match loaded() {
            Ok(found) => found,
            Err(error) => {
                let path = path.display();
                self.progress.note(&format!("{path} is not used and is replaced: {error:#}"));
                // If it cannot be removed, it will be replaced.
                let _ = self.folder.remove(&name);
                None
            }
        }
    }

    /// Saves a populated canister. A failure is reported once.
    pub fn keep(&self, canister: &dyn Canister, setup: Setup, held: &Held) {
        if self.session().stopped {
            return;
        }
        if let Err(error) = self.try_keep(canister, setup, held) {
            let mut session = self.session();
            if !session.stopped {
                let folder = self.folder.path().display();
                self.progress.note(&format!(
                    "populated canisters are no longer saved in {folder}: {error:#}"
                ));
            }
            session.stopped = true;
        }
    }

    fn try_keep(&self, canister: &dyn Canister, setup: Setup, held: &Held) -> Result<()> {
        let (name, path) = self.place(&setup);
        // The wall time belongs to this run only.
        let held = Held { wall_milliseconds: None, ..held.clone() };
        let note = json(&Note { setup, held })?;
        if !canister.save(&path, &note)? {
            return Ok(());
        }
        let size = self.folder.shrink(self.limit, &self.versions, &self.session().used)?;
        if size > self.limit {
            self.folder.remove(&name)?;
            bail!(
                "this run uses more than the limit of {} GiB; raise it with --cache-limit",
                self.limit as f64 / (1_u64 << 30) as f64
            );
        }
        Ok(())
    }

    /// Returns the digests that earlier runs have read from forks of the canister with this setup.
    pub fn digests(&self, setup: &Setup) -> Digests {
        let name = self.digests_name(setup);
        let read = || -> Result<Option<Digests>> {
            let Some(text) = self.folder.read(&name)? else {
                return Ok(None);
            };
            let kept: KeptDigests = serde_json::from_slice(&text).context("it cannot be read")?;
            if kept.setup != *setup {
                bail!("it has another setup");
            }
            Ok(Some(kept.digests))
        };
        read()
            .unwrap_or_else(|error| {
                let path = self.folder.path().join(&name);
                self.progress
                    .note(&format!("{} is not used and is replaced: {error:#}", path.display()));
                None
            })
            .unwrap_or_default()
    }

    /// Saves digests next to the canister. If that fails, they are read again.
    pub fn keep_digests(&self, setup: &Setup, digests: &Digests) {
        if self.session().stopped || digests.is_empty() {
            return;
        }
        let kept = KeptDigests { setup: setup.clone(), digests: digests.clone() };
        // Serializing this type does not fail.
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        let name = self.digests_name(setup);
        if let Err(error) = self.folder.write(&name, &text) {
            let path = self.folder.path().join(&name);
            self.progress.note(&format!("{} cannot be saved: {error}", path.display()));
        }
    }

    fn digests_name(&self, setup: &Setup) -> String {
        folder::digests(&setup.key(), &self.versions.state)
    }

    /// Returns the file of a canister with this setup, and marks it as used.
    fn place(&self, setup: &Setup) -> (String, PathBuf) {
        let name = folder::state(&setup.key(), &self.versions.state);
        let mut session = self.session();
        session.used.insert(folder::module(&setup.canister, &self.versions.module));
        session.used.insert(name.clone());
        drop(session);
        let path = self.folder.path().join(&name);
        (name, path)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
