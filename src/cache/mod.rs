//! What earlier runs have left for later ones: compiled modules and populated canisters.
//!
//! ```text
//!   Cache ── one run's: takes and keeps, and says what went wrong
//!     ├─ setup.rs    what a populated canister depends on: its key
//!     ├─ name.rs     how the files are called
//!     └─ folder.rs   which files there are; dropping them
//! ```
//!
//! Modules are kept by the replica, in the same folder. An entry that cannot be used is
//! made anew, and one that cannot be kept is not: results are the same without a cache.

mod folder;
mod name;
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
use crate::replica::{Canister, Replica, Trust};
use crate::results::Held;

pub use folder::{Entry, Folder};
pub use name::{Kind, Versions};
pub use setup::{Setup, Stored};

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
    /// Files that this run has used, which it does not drop.
    used: BTreeSet<String>,
    /// Nothing more is kept: it did not work, which was said.
    stopped: bool,
}

/// What is noted in the file of a populated canister.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub setup: Setup,
    pub held: Held,
}

/// Digests of forks by how these differ from the canister, in hexadecimal digits.
pub type Digests = BTreeMap<String, Digest>;

/// The digests of a populated canister's forks, as they are kept.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptDigests {
    setup: Setup,
    digests: Digests,
}

impl Cache {
    /// A cache of at most `limit` bytes, old entries dropped.
    pub fn new(folder: Folder, limit: u64, versions: Versions, progress: &Progress) -> Self {
        let cache =
            Self { folder, limit, versions, progress: progress.clone(), session: Mutex::default() };
        cache.shrink();
        cache
    }

    /// Drops old entries until the limit is kept, but none that this run has used.
    pub fn shrink(&self) {
        // What cannot be dropped now will be later.
        let _ = self.folder.shrink(self.limit, &self.versions, &self.session().used);
    }

    /// The canister that an earlier run has populated so, and what it holds. `plausible`
    /// says whether that can be.
    pub fn take(
        &self,
        replica: &dyn Replica,
        wasm: &[u8],
        setup: &Setup,
        trust: Trust,
        plausible: impl FnOnce(&Held) -> bool,
    ) -> Option<(Box<dyn Canister>, Held)> {
        let (name, path) = self.place(setup);
        let loaded = || -> Result<_> {
            let Some((canister, note)) = replica.load(wasm, &path, trust)? else {
                return Ok(None);
            };
            let note: Note = serde_json::from_str(&note).context("its note cannot be read")?;
            if note.setup != *setup {
                bail!("it is another one");
            }
            if !plausible(&note.held) {
                bail!("it holds something else");
            }
            Ok(Some((canister, note.held)))
        };
        match loaded() {
            Ok(found) => found,
            Err(error) => {
                let path = path.display();
                self.progress.note(&format!("{path} is not used and made anew: {error:#}"));
                // Where it cannot be dropped it will be replaced.
                let _ = self.folder.remove(&name);
                None
            }
        }
    }

    /// Keeps a populated canister. Where that fails it is said, once.
    pub fn keep(&self, canister: &dyn Canister, setup: Setup, held: &Held) {
        if self.session().stopped {
            return;
        }
        if let Err(error) = self.try_keep(canister, setup, held) {
            let mut session = self.session();
            if !session.stopped {
                let folder = self.folder.path().display();
                self.progress.note(&format!(
                    "populated canisters are not kept any more in {folder}: {error:#}"
                ));
            }
            session.stopped = true;
        }
    }

    fn try_keep(&self, canister: &dyn Canister, setup: Setup, held: &Held) -> Result<()> {
        let (name, path) = self.place(&setup);
        // How long it took is this run's alone.
        let held = Held { wall_milliseconds: None, ..held.clone() };
        let note = serde_json::to_string(&Note { setup, held })?;
        if !canister.save(&path, &note)? {
            return Ok(());
        }
        let size = self.folder.shrink(self.limit, &self.versions, &self.session().used)?;
        if size > self.limit {
            self.folder.remove(&name)?;
            bail!(
                "this run uses more than its limit of {} GiB; raise that with --cache-limit",
                self.limit as f64 / (1_u64 << 30) as f64
            );
        }
        Ok(())
    }

    /// What earlier runs have read back from forks of the canister with that setup.
    pub fn digests(&self, setup: &Setup) -> Digests {
        let name = self.digests_name(setup);
        let read = || -> Result<Option<Digests>> {
            let Some(text) = self.folder.read(&name)? else {
                return Ok(None);
            };
            let kept: KeptDigests = serde_json::from_slice(&text).context("it cannot be read")?;
            if kept.setup != *setup {
                bail!("it is another one's");
            }
            Ok(Some(kept.digests))
        };
        read()
            .unwrap_or_else(|error| {
                let path = self.folder.path().join(&name);
                self.progress
                    .note(&format!("{} is not used and made anew: {error:#}", path.display()));
                None
            })
            .unwrap_or_default()
    }

    /// Keeps what was read back, beside the canister. Where that fails it is read again.
    pub fn keep_digests(&self, setup: &Setup, digests: &Digests) {
        if self.session().stopped || digests.is_empty() {
            return;
        }
        let kept = KeptDigests { setup: setup.clone(), digests: digests.clone() };
        // Of such a type writing JSON does not fail.
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        let name = self.digests_name(setup);
        if let Err(error) = self.folder.write(&name, &text) {
            let path = self.folder.path().join(&name);
            self.progress.note(&format!("{} cannot be kept: {error}", path.display()));
        }
    }

    fn digests_name(&self, setup: &Setup) -> String {
        name::digests(&setup.key(), &self.versions.state)
    }

    /// Where a canister with that setup is kept, from now on in use.
    fn place(&self, setup: &Setup) -> (String, PathBuf) {
        let name = name::state(&setup.key(), &self.versions.state);
        let mut session = self.session();
        session.used.insert(name::module(&setup.canister, &self.versions.module));
        session.used.insert(name.clone());
        drop(session);
        let path = self.folder.path().join(&name);
        (name, path)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
