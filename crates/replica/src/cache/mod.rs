//! Compiled modules, kept in memory and in a folder, so that none is validated,
//! rewritten and compiled twice.
//!
//! ```text
//!   upload ── SHA-256 ──→ recent modules, a lock each
//!                           ├─ there: done
//!                           ├─ HASH-VERSION.module in the folder, checked
//!                           └─ validate → instrument → compile, then written there
//! ```
//!
//! `VERSION` stands for everything else that compiled code depends on: this crate, how it
//! rewrites, the rules, the engine and its settings, the processor. A cache that cannot be read or
//! written costs time and nothing else. What it holds is executed, so an entry is used only if
//! it is the user's own and others cannot write to it; the folder must be as safe as the program.

mod entry;
mod file;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wasmtime::Engine;

use crate::fault::Fault;
use crate::files;
use crate::instrument::{self, Metering};
use crate::module::{Module, Prepared};
use crate::rules::Rules;
use crate::validate::Purpose;

pub use file::TEMPORARY;
pub(crate) use file::{hex, hex_of, touch, write};

/// What names of files that hold compiled modules end with.
pub const MODULE: &str = ".module";
/// Modules kept in memory, whether or not a canister has them.
const RECENT: usize = 8;
/// Larger than any entry; what is larger is not read.
const MOST: u64 = 2 << 30;

/// Something that the cache could not do.
#[derive(Debug, thiserror::Error)]
pub enum Note {
    /// An entry is not what was written; it is made anew.
    #[error("{} is made anew: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An entry could not be written.
    #[error("{} cannot be kept: {error}", path.display())]
    NotKept {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Takes notes.
pub type Tell = Box<dyn Fn(Note) + Send + Sync>;

/// The modules that a replica has compiled.
pub(crate) struct Modules {
    folder: Option<PathBuf>,
    rules: Rules,
    version: String,
    tell: Tell,
    /// The one used last first.
    recent: Mutex<Vec<([u8; 32], Slot)>>,
}

/// Locked while its module is compiled, so that a second thread waits instead of
/// compiling it too.
type Slot = Arc<Mutex<Option<Module>>>;

impl fmt::Debug for Modules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modules")
            .field("folder", &self.folder)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Modules {
    pub fn new(engine: &Engine, rules: Rules, folder: Option<PathBuf>, tell: Tell) -> Self {
        let mut version = DefaultHasher::new();
        (crate::VERSION, instrument::VERSION, entry::FORMAT).hash(&mut version);
        // Which subnet it is for decides on nothing that is compiled.
        rules.name().hash(&mut version);
        engine.precompile_compatibility_hash().hash(&mut version);
        let version = format!("{:016x}", version.finish());
        Self { folder, rules, version, tell, recent: Mutex::default() }
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// The module with that hash: one that is there, or else what `link` makes of the
    /// folder's, or of `uploaded` compiled. A module that is refused is not kept, and one that
    /// was kept for another purpose is refused for this one as if it were not there.
    pub fn get(
        &self,
        engine: &Engine,
        hash: [u8; 32],
        uploaded: &[u8],
        purpose: Purpose,
        link: impl FnOnce(Prepared) -> Result<Module, Fault>,
    ) -> Result<Module, Fault> {
        let slot = self.slot(hash);
        let mut slot = lock(&slot);
        if let Some(module) = &*slot {
            purpose.check(module.info())?;
            return Ok(module.clone());
        }
        let module = link(self.prepared(engine, hash, uploaded, purpose)?)?;
        *slot = Some(module.clone());
        Ok(module)
    }

    fn slot(&self, hash: [u8; 32]) -> Slot {
        let mut recent = lock(&self.recent);
        let known = recent.iter().position(|(other, _)| *other == hash);
        let entry = match known {
            Some(at) => recent.remove(at),
            None => (hash, Slot::default()),
        };
        let slot = Arc::clone(&entry.1);
        recent.insert(0, entry);
        recent.truncate(RECENT);
        slot
    }

    fn prepared(
        &self,
        engine: &Engine,
        hash: [u8; 32],
        uploaded: &[u8],
        purpose: Purpose,
    ) -> Result<Prepared, Fault> {
        let Some(folder) = &self.folder else {
            return Prepared::new(engine, uploaded, Metering::Local, self.rules, purpose);
        };
        let path = folder.join(format!("{}-{}{MODULE}", hex(&hash), self.version));
        let key = entry::Key { uploaded: hash, version: &self.version };
        match files::open_own(&path).and_then(|file| files::read_at_most(file, MOST)) {
            Ok(bytes) => match entry::decode(engine, &key, &bytes) {
                Ok(prepared) => {
                    purpose.check(&prepared.info)?;
                    touch(&path);
                    return Ok(prepared);
                }
                Err(reason) => self.damaged(&path, reason),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.damaged(&path, error),
        }
        let prepared = Prepared::new(engine, uploaded, Metering::Local, self.rules, purpose)?;
        let written = entry::encode(&key, &prepared)
            .and_then(|bytes| write(&path, |mut file| file.write_all(&bytes)));
        if let Err(error) = written {
            (self.tell)(Note::NotKept { path, error });
        }
        Ok(prepared)
    }

    fn damaged(&self, path: &Path, reason: impl fmt::Display) {
        (self.tell)(Note::Damaged { path: path.to_owned(), reason: reason.to_string() });
    }
}

/// A thread that panicked has left no module.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
