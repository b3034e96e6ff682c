//! Canisters in files.
//!
//! ```text
//!   0        magic, 8 bytes
//!   8        length h of the header, u64, little-endian
//!   16       SHA-256 of header and checksums
//!   48       header, JSON
//!   48 + h   checksum of the heap, u32, little-endian; of stable memory, likewise
//!   56 + h   module as it was uploaded, if it is not kept elsewhere
//!   …        heap, from the next page of 4 KiB
//!   …        stable memory, from the next page
//! ```
//!
//! Memories are mapped when a file is loaded, so the file must not change while the
//! canister is used. All parts are checked before; the memories are not where a [`stamp`]
//! was asked for and vouches for them. One process at a time saves to a file: [`lock`].

mod checksum;
mod header;
mod lock;
mod stamp;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::cache;
use crate::canister::{Canister, Settings};
use crate::files;
use crate::live::Spare;
use crate::memory::Image;
use crate::module::Module;
use crate::reject::Reject;
use crate::rules::Rules;
use crate::state::State;
use crate::units::{Bytes, Cycles};

use checksum::checksum;
use header::{FORMAT, Header, PREAMBLE, Places};
use stamp::Stamp;

pub use lock::{LockError, StateLock};
pub use stamp::STATE_STAMP;

/// A canister could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is something else, or was not written to its end.
    #[error("this is no saved canister, or it is damaged: {0}")]
    Damaged(&'static str),
    /// Another version wrote it.
    #[error("saved in format {0}, this version reads format {FORMAT}; save it anew")]
    Version(u32),
    /// It counted by other rules.
    #[error("saved under the rules {saved}, loaded under {now}; load it under the same")]
    Rules {
        /// Name of the rules when it was saved.
        saved: String,
        /// Name of the rules now.
        now: &'static str,
    },
    /// Its module is refused.
    #[error("its module was refused: {0}")]
    Module(#[from] Reject),
}

impl Canister {
    /// Saves the canister, module and all, as a whole or not at all, and waits until the
    /// disk has it. Links are followed. Where several processes may save to the file, a
    /// [`StateLock`] keeps them apart.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, something else than a file is there, or the canister
    /// has no module.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let path = files::replaceable(path)?;
        let module = self.module.as_ref().map_or(&[][..], Module::uploaded);
        let file = self.file(module, String::new())?;
        lock::replace(&path, |to| file.write(to))
    }

    /// Saves the canister without its module for [`Replica::load_stamped`], as a whole
    /// or not at all, with a note. The disk may get it later: should the machine fail
    /// before, loading it finds that out.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or the canister has no module.
    ///
    /// [`Replica::load_stamped`]: crate::Replica::load_stamped
    pub fn save_stamped(&self, path: &Path, note: &str) -> io::Result<()> {
        let file = self.file(&[], note.to_owned())?;
        let file = cache::write(path, |to| file.write(to))?;
        if let Some(stamp) = Stamp::of(&file)? {
            // Without a stamp it is checked when it is loaded.
            let _ = stamp.write(path);
        }
        Ok(())
    }

    /// What becomes of the canister in a file.
    fn file<'a>(&'a self, module: &'a [u8], note: String) -> io::Result<Content<'a>> {
        self.whole().map_err(io::Error::other)?;
        let header = Header::of(self, module.len() as u64, note)
            .ok_or_else(|| io::Error::other("the canister has no module"))?;
        let text = serde_json::to_vec(&header)?;
        let places = header.places(text.len() as u64).map_err(io::Error::other)?;
        Ok(Content { canister: self, header, text, places, module })
    }
}

/// A canister that is to be written to a file.
struct Content<'a> {
    canister: &'a Canister,
    header: Header,
    /// The header in JSON.
    text: Vec<u8>,
    places: Places,
    module: &'a [u8],
}

impl Content<'_> {
    fn write(&self, file: &File) -> io::Result<()> {
        let Self { canister, header, text, places, module } = self;
        canister.state.heap.save(file, places.heap)?;
        canister.state.stable.save(file, places.stable)?;
        let checksums = checksums(file, header, places)?;
        file.write_all_at(&header::preamble(text, &checksums), 0)?;
        file.write_all_at(text, PREAMBLE)?;
        file.write_all_at(&checksums, places.checksums)?;
        file.write_all_at(module, places.module)
    }
}

/// Checksums of both memories as they are in the file.
fn checksums(file: &File, header: &Header, places: &Places) -> io::Result<[u8; 8]> {
    let heap = checksum(file, places.heap, header.heap)?;
    let stable = checksum(file, places.stable, header.stable)?;
    let mut both = [0; 8];
    both[..4].copy_from_slice(&heap.to_le_bytes());
    both[4..].copy_from_slice(&stable.to_le_bytes());
    Ok(both)
}

/// Refuses a file whose memories are not what was saved.
fn check_memories(
    file: &File,
    header: &Header,
    places: &Places,
    expected: [u8; 8],
) -> Result<(), LoadError> {
    let found = checksums(file, header, places).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => LoadError::Damaged("it is too short"),
        _ => LoadError::Io(error),
    })?;
    if found == expected { Ok(()) } else { Err(LoadError::Damaged("its memories")) }
}

/// Loads a canister, its module compiled by `compile`.
pub(crate) fn load(
    path: &Path,
    rules: Rules,
    compile: impl FnOnce(&[u8]) -> Result<Module, Reject>,
) -> Result<Canister, LoadError> {
    let file = files::open(path)?;
    let (header, places, expected) = header::read(&file)?;
    header.has_rules(rules)?;
    let bytes = header::read_part(&file, places.module, header.module)?;
    if Some(Sha256::digest(&bytes).into()) != cache::hex_of(&header.module_hash) {
        return Err(LoadError::Damaged("its module"));
    }
    let module = compile(&bytes)?;
    // First: nothing is read of a size that cannot be.
    header.fits(&module)?;
    check_memories(&file, &header, &places, expected)?;
    open(&file, header, &places, module)
}

/// Whether a stamp may stand for reading the memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamps {
    Believed,
    Ignored,
}

/// Loads a canister with that module, and the note in it.
pub(crate) fn load_noted(
    path: &Path,
    module: &Module,
    stamps: Stamps,
) -> Result<(Canister, String), LoadError> {
    let file = files::open_own(path)?;
    // Before anything is read: what changes later is found next time.
    let now = Stamp::of(&file)?;
    let (mut header, places, expected) = header::read(&file)?;
    header.has_rules(module.rules())?;
    if cache::hex_of(&header.module_hash) != Some(module.hash()) {
        return Err(LoadError::Damaged("it is that of another module"));
    }
    if stamps == Stamps::Believed && now.is_some() && now == Stamp::read(path) {
        stamp::touch(path);
    } else {
        check_memories(&file, &header, &places, expected)?;
        if let Some(now) = now {
            // A folder that cannot be written: it is checked again next time.
            let _ = now.write(path);
        }
    }
    let note = std::mem::take(&mut header.note);
    Ok((open(&file, header, &places, module.clone())?, note))
}

/// The note in a file that [`Canister::save_stamped`] wrote. Only the header is checked.
///
/// # Errors
///
/// If the file cannot be read, is damaged, or is of another version.
pub fn saved_note(path: &Path) -> Result<String, LoadError> {
    header::read(&files::open_own(path)?).map(|(header, ..)| header.note)
}

fn open(
    file: &File,
    header: Header,
    places: &Places,
    module: Module,
) -> Result<Canister, LoadError> {
    header.fits(&module)?;
    let image = |offset, size| -> Result<Image, LoadError> {
        let size = usize::try_from(size).map_err(|_| LoadError::Damaged("its lengths"))?;
        Image::open(file.try_clone()?, offset, size)
            .map_err(|_| LoadError::Damaged("it is too short"))
    };
    let state = State {
        heap: image(places.heap, header.heap)?,
        stable: image(places.stable, header.stable)?,
        globals: header.globals,
        certified_data: header.certified_data,
        timer: header.timer,
        torn: false,
    };
    let balance = Cycles(header.balance.parse().map_err(|_| LoadError::Damaged("its cycles"))?);
    Ok(Canister {
        settings: Arc::new(Settings {
            id: header.id,
            controllers: header.controllers,
            balance,
            heap_limit: Bytes(header.heap_limit),
        }),
        environment: Arc::new(header.environment),
        module: Some(module),
        state,
        spare: Spare::default(),
        reports_calls: false,
        reports_readings: false,
        balance,
        version: header.version,
        time: header.time,
    })
}
