//! Modules of a replica, cached in memory, so that none is linked twice.
//!
//! ```text
//!   upload ── SHA-256 ──→ recent modules, with a lock each
//!                           ├─ linked: done
//!                           ├─ HASH-VERSION.module in the folder, checked ──────┐
//!                           └─ validate → instrument → compile → to the folder ─┴→ link
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::entries::Entries;
use crate::fault::Fault;
use crate::module::Module;
use crate::validate::Purpose;

pub use crate::entries::{MODULE, Note, NoteHandler};
pub use crate::files::TEMPORARY;

/// Number of modules kept in memory, in addition to those that canisters use.
const RECENT: usize = 8;

/// The modules that a replica has compiled.
#[derive(Debug)]
pub(crate) struct Modules {
    entries: Arc<Entries>,
    /// Most recently used first.
    recent: Mutex<Vec<([u8; 32], Slot)>>,
}

/// Locked while its module is compiled, so that a second thread waits instead of compiling it too.
type Slot = Arc<Mutex<Option<Module>>>;

impl Modules {
    pub fn new(entries: Entries) -> Self {
        Self { entries: Arc::new(entries), recent: Mutex::default() }
    }

    pub fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    /// Returns the module with that hash: a recent one, or what `link` makes of the folder's entry
    /// or of the compiled upload. Refused modules are not kept. A module that was kept for another
    /// purpose is refused as if it were new.
    pub fn get(
        &self,
        hash: [u8; 32],
        purpose: Purpose,
        link: impl FnOnce(&Arc<Entries>) -> Result<Module, Fault>,
    ) -> Result<Module, Fault> {
        let slot = self.slot(hash);
        let mut slot = lock(&slot);
        if let Some(module) = &*slot {
            purpose.check(module.info())?;
            return Ok(module.clone());
        }
        let module = link(&self.entries)?;
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
}

/// A lock that a panicking thread held. The slot has no module then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
