//! Canisters saved to files.
//!
//! ```text
//!   0        magic, 8 bytes
//!   8        length h of the header, u64, little-endian
//!   16       SHA-256 of header and checksums
//!   48       header, JSON
//!   48 + h   checksums of the heap and of stable memory, u32 each, little-endian
//!   56 + h   module as it was uploaded, if it is saved
//!   …        heap, from the next multiple of 64 KiB, which every system can map
//!   …        stable memory, from the next one
//! ```
//!
//! Memories are mapped when a file is loaded, so the file must not change while the canister is
//! used. All parts are checked before. Only one process at a time saves to a file: see [`lock`].

mod lock;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use flate2::Crc;
use ic_principal::Principal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::canister::{Canister, Settings};
use crate::environment::{self, max_variables};
use crate::fault::Reject;
use crate::files;
use crate::hex;
use crate::instance::IdleSlot;
use crate::memory::os::present;
use crate::memory::{Image, PAGE};
use crate::module::Module;
use crate::rules::Rules;
use crate::sizes::Allocation;
use crate::state::{GlobalValue, State};
use crate::system_api::names::AddressWidth;
use crate::units::{Bytes, Cycles, WASM_PAGE};

pub use lock::{LockError, StateLock};

/// A canister could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is something else, or was not written completely.
    #[error("this is no saved canister, or it is damaged: {0}")]
    Damaged(&'static str),
    /// The file has another format version.
    #[error("saved in format {0}, this version reads format {FORMAT}; save it again")]
    Version(u32),
    /// The canister counted by other rules.
    #[error("saved under the rules {saved}, loaded under {now}; load it under the same rules")]
    Rules {
        /// Name of the rules when it was saved.
        saved: String,
        /// Name of the rules now.
        now: &'static str,
    },
    /// Its module was refused.
    #[error("its module was refused: {0}")]
    Module(#[from] Reject),
}

impl Canister {
    /// Saves the canister with its module atomically, and waits until it is on disk. Links are
    /// followed. If several processes may save to the file, use a [`StateLock`].
    ///
    /// # Errors
    ///
    /// If the file cannot be written, `path` is not a regular file, or the canister has no module.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let path = files::replaceable(path)?;
        let module = self.module.as_ref().map_or(&[][..], Module::uploaded);
        let file = self.to_file(module, String::new())?;
        lock::replace(&path, |to| file.write(to))
    }

    /// Saves the canister without its module for [`Replica::load_with_note`], atomically
    /// and with a note. It may reach the disk later; loading detects an incomplete file after a system crash.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or the canister has no module.
    ///
    /// [`Replica::load_with_note`]: crate::Replica::load_with_note
    pub fn save_with_note(&self, path: &Path, note: &str) -> io::Result<()> {
        let file = self.to_file(&[], note.to_owned())?;
        files::write(path, |to| file.write(to)).map(drop)
    }

    /// Prepares the content of a file.
    fn to_file<'a>(&'a self, module: &'a [u8], note: String) -> io::Result<SavedFile<'a>> {
        self.check_consistent().map_err(io::Error::other)?;
        let header = Header::of(self, module.len() as u64, note)
            .ok_or_else(|| io::Error::other("the canister has no module"))?;
        let text = serde_json::to_vec(&header)?;
        let offsets = header.offsets(text.len() as u64).map_err(io::Error::other)?;
        Ok(SavedFile { canister: self, header, text, offsets, module })
    }
}

/// The content of a file to be written.
struct SavedFile<'a> {
    canister: &'a Canister,
    header: Header,
    /// The header in JSON.
    text: Vec<u8>,
    offsets: Offsets,
    module: &'a [u8],
}

impl SavedFile<'_> {
    fn write(&self, file: &File) -> io::Result<()> {
        let Self { canister, header, text, offsets, module } = self;
        canister.state.heap.save(file, offsets.heap)?;
        canister.state.stable.save(file, offsets.stable)?;
        let checksums = checksums(file, header, offsets)?;
        file.write_all_at(&preamble(text, &checksums), 0)?;
        file.write_all_at(text, PREAMBLE)?;
        file.write_all_at(&checksums, offsets.checksums)?;
        file.write_all_at(module, offsets.module)
    }
}

/// The version of the format that this version of the crate reads and writes.
const FORMAT: u32 = 4;
/// Bytes before the header.
const PREAMBLE: u64 = 48;

const MAGIC: [u8; 8] = *b"canister";
/// Larger than any header and any module that may be installed.
const MAX_PART: u64 = 200 << 20;
/// Larger than any version, and than any time in nanoseconds since 1970.
const MAX_AGE: u64 = u64::MAX / 2;

/// The header of a saved canister: everything except its module and memories.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    /// Text of the caller, returned when the canister is loaded.
    note: String,
    /// Name of the rules by which the canister counted.
    rules: String,
    id: Principal,
    controllers: Vec<Principal>,
    heap_limit: u64,
    /// Environment variables. Omitted if there are none, as before they were introduced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<String, String>,
    /// Text, because not every JSON parser supports such long numbers.
    balance: String,
    version: u64,
    time: u64,
    timer: u64,
    certified_data: Vec<u8>,
    module_hash: String,
    /// Size of the module in this file.
    module: u64,
    heap: u64,
    stable: u64,
    globals: Vec<GlobalValue>,
}

/// The field that headers of all formats have.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Offsets of the parts of a file.
struct Offsets {
    checksums: u64,
    module: u64,
    heap: u64,
    stable: u64,
}

impl Header {
    /// The header of a canister, or `None` if it has no module.
    fn of(canister: &Canister, module: u64, note: String) -> Option<Self> {
        Some(Self {
            format: FORMAT,
            note,
            rules: canister.module.as_ref()?.rules().name().to_owned(),
            id: canister.settings.id,
            controllers: canister.settings.controllers.clone(),
            heap_limit: canister.settings.heap_limit.get(),
            environment: canister.environment().clone(),
            balance: canister.balance.to_string(),
            version: canister.version,
            time: canister.time,
            timer: canister.state.timer,
            certified_data: canister.state.certified_data.clone(),
            module_hash: hex::encode(&canister.module.as_ref()?.hash()),
            module,
            heap: canister.state.heap.size() as u64,
            stable: canister.state.stable.size() as u64,
            globals: canister.state.globals.clone(),
        })
    }

    /// Checks that the canister counted by these rules.
    fn check_rules(&self, rules: Rules) -> Result<(), LoadError> {
        if self.rules == rules.name() {
            return Ok(());
        }
        Err(LoadError::Rules { saved: self.rules.clone(), now: rules.name() })
    }

    /// Checks that a canister with that module can have this state. Messages rely on it.
    fn check_fits(&self, module: &Module) -> Result<(), LoadError> {
        let (rewritten, limits) = (module.rewritten(), &module.rules().set().memory);
        let largest = match rewritten.address_width {
            AddressWidth::Bits32 => limits.heap32,
            AddressWidth::Bits64 => limits.heap64,
        };
        for (bytes, largest) in [(self.heap, largest), (self.stable, limits.stable)] {
            if !bytes.is_multiple_of(WASM_PAGE) || bytes > Bytes::from(largest).get() {
                return Err(LoadError::Damaged("its sizes"));
            }
        }
        if self.version > MAX_AGE || self.time > MAX_AGE {
            return Err(LoadError::Damaged("its age"));
        }
        // They may have been set before the module was installed.
        let most = max_variables(Some(module.rules())).max(max_variables(None));
        if environment::check(&self.environment, most).is_err() {
            return Err(LoadError::Damaged("its environment variables"));
        }
        // There are none before the first message.
        let types = rewritten.globals.iter().map(|(_, ty)| *ty);
        if !self.globals.is_empty() && !types.eq(self.globals.iter().map(|value| value.ty())) {
            return Err(LoadError::Damaged("its globals"));
        }
        if self.heap < rewritten.heap_pages * WASM_PAGE {
            return Err(LoadError::Damaged("its sizes"));
        }
        Ok(())
    }

    /// Returns the offsets of the parts after this header of `length` bytes.
    fn offsets(&self, length: u64) -> Result<Offsets, LoadError> {
        let next_page = |offset: u64| offset.checked_next_multiple_of(WASM_PAGE);
        let offsets = || -> Option<Offsets> {
            let checksums = PREAMBLE.checked_add(length)?;
            let module = checksums.checked_add(8)?;
            let heap = next_page(module.checked_add(self.module)?)?;
            let stable = next_page(heap.checked_add(self.heap)?)?;
            Some(Offsets { checksums, module, heap, stable })
        };
        offsets().ok_or(LoadError::Damaged("its lengths are wrong"))
    }
}

/// The first bytes of a file: magic, length of the header, hash.
fn preamble(header: &[u8], checksums: &[u8; 8]) -> Vec<u8> {
    let checksum = Sha256::new().chain_update(header).chain_update(checksums).finalize();
    [&MAGIC[..], &(header.len() as u64).to_le_bytes(), &checksum].concat()
}

/// Reads and checks the header. Returns it with the offsets and the checksums of the memories.
fn read_header(file: &File) -> Result<(Header, Offsets, [u8; 8]), LoadError> {
    let preamble = read_part(file, 0, PREAMBLE)?;
    let (magic, rest) = preamble.split_at(8);
    let (length, checksum) = rest.split_at(8);
    if magic != MAGIC {
        return Err(LoadError::Damaged("it does not start like one"));
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let text = read_part(file, PREAMBLE, length)?;
    let damaged = |_| LoadError::Damaged("its header");
    let format: Format = serde_json::from_slice(&text).map_err(damaged)?;
    if format.format != FORMAT {
        return Err(LoadError::Version(format.format));
    }
    let mut checksums = [0; 8];
    checksums.copy_from_slice(&read_part(file, PREAMBLE + length, 8)?);
    let found = Sha256::new().chain_update(&text).chain_update(checksums).finalize();
    if found.as_slice() != checksum {
        return Err(LoadError::Damaged("its checksum"));
    }
    let header: Header = serde_json::from_slice(&text).map_err(damaged)?;
    let offsets = header.offsets(length)?;
    Ok((header, offsets, checksums))
}

/// Reads a part of a file.
fn read_part(file: &File, offset: u64, length: u64) -> Result<Vec<u8>, LoadError> {
    if length > MAX_PART {
        return Err(LoadError::Damaged("its lengths are wrong"));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, offset).map_err(|_| LoadError::Damaged("it is too short"))?;
    Ok(bytes)
}

/// Checksums of both memories in the file.
fn checksums(file: &File, header: &Header, offsets: &Offsets) -> io::Result<[u8; 8]> {
    let heap = checksum(file, offsets.heap, header.heap)?;
    let stable = checksum(file, offsets.stable, header.stable)?;
    let mut both = [0; 8];
    both[..4].copy_from_slice(&heap.to_le_bytes());
    both[4..].copy_from_slice(&stable.to_le_bytes());
    Ok(both)
}

/// Size of reads.
const CHUNK: usize = 128 * PAGE;

/// Returns the checksum of `size` bytes of a file from `offset`: CRC-32 of the pages of 4 KiB that
/// are not all zero, each preceded by its index as u64, little-endian. It is the same whether the
/// file has holes or zeros, and holes need not be read. It detects accidental damage, but is no
/// protection against forgery.
///
/// # Errors
///
/// Errors of reading the file. It is read, not mapped, because a read error of the disk would end
/// the process otherwise.
fn checksum(file: &File, offset: u64, size: u64) -> io::Result<u32> {
    const ZERO: [u8; PAGE] = [0; PAGE];
    if file.metadata()?.len() < offset.saturating_add(size) {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    let pages = usize::try_from(size.div_ceil(PAGE as u64)).map_err(io::Error::other)?;
    let mut checksum = Crc::new();
    let mut buffer = vec![0; CHUNK];
    for range in present(file, offset, pages)? {
        for first in range.clone().step_by(CHUNK / PAGE) {
            let at = (first * PAGE) as u64;
            let end = size.min((range.end * PAGE) as u64);
            let length = CHUNK.min(usize::try_from(end - at).unwrap_or(CHUNK));
            let chunk = &mut buffer[..length];
            file.read_exact_at(chunk, offset + at)?;
            for (page, bytes) in (first as u64..).zip(chunk.chunks(PAGE)) {
                if bytes != &ZERO[..bytes.len()] {
                    checksum.update(&page.to_le_bytes());
                    checksum.update(bytes);
                }
            }
        }
    }
    Ok(checksum.sum())
}

/// Checks that the memories in a file are those that were saved.
fn check_memories(
    file: &File,
    header: &Header,
    offsets: &Offsets,
    expected: [u8; 8],
) -> Result<(), LoadError> {
    let found = checksums(file, header, offsets).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => LoadError::Damaged("it is too short"),
        _ => LoadError::Io(error),
    })?;
    if found == expected { Ok(()) } else { Err(LoadError::Damaged("its memories")) }
}

/// Loads a canister whose module is compiled by `compile`.
pub(crate) fn load(
    path: &Path,
    rules: Rules,
    compile: impl FnOnce(&[u8]) -> Result<Module, Reject>,
) -> Result<Canister, LoadError> {
    let file = files::open(path)?;
    let (header, offsets, expected) = read_header(&file)?;
    header.check_rules(rules)?;
    let bytes = read_part(&file, offsets.module, header.module)?;
    if Some(Sha256::digest(&bytes).into()) != hex::decode(&header.module_hash) {
        return Err(LoadError::Damaged("its module"));
    }
    let module = compile(&bytes)?;
    // Sizes are checked before anything of that size is read.
    header.check_fits(&module)?;
    check_memories(&file, &header, &offsets, expected)?;
    open(&file, header, &offsets, module)
}

/// Loads a canister with the given module, and the note in the file.
pub(crate) fn load_with_note(
    path: &Path,
    module: &Module,
) -> Result<(Canister, String), LoadError> {
    let file = files::open_own(path)?;
    let (mut header, offsets, expected) = read_header(&file)?;
    header.check_rules(module.rules())?;
    if hex::decode(&header.module_hash) != Some(module.hash()) {
        return Err(LoadError::Damaged("it belongs to another module"));
    }
    check_memories(&file, &header, &offsets, expected)?;
    let note = std::mem::take(&mut header.note);
    Ok((open(&file, header, &offsets, module.clone())?, note))
}

/// Returns the note in a file that [`Canister::save_with_note`] wrote. Only the header is checked.
///
/// # Errors
///
/// If the file cannot be read, is damaged, or has another version.
pub fn saved_note(path: &Path) -> Result<String, LoadError> {
    read_header(&files::open_own(path)?).map(|(header, ..)| header.note)
}

fn open(
    file: &File,
    header: Header,
    offsets: &Offsets,
    module: Module,
) -> Result<Canister, LoadError> {
    header.check_fits(&module)?;
    let image = |offset, size| -> Result<Image, LoadError> {
        let size = usize::try_from(size).map_err(|_| LoadError::Damaged("its lengths"))?;
        Image::open(file.try_clone()?, offset, size)
            .map_err(|_| LoadError::Damaged("it is too short"))
    };
    let state = State {
        heap: image(offsets.heap, header.heap)?,
        stable: image(offsets.stable, header.stable)?,
        globals: header.globals,
        certified_data: header.certified_data,
        timer: header.timer,
        torn: false,
    };
    let balance = Cycles(header.balance.parse().map_err(|_| LoadError::Damaged("its cycles"))?);
    let settings = Settings {
        id: header.id,
        controllers: header.controllers,
        balance,
        heap_limit: Bytes(header.heap_limit),
    };
    Ok(Canister {
        history: Canister::history_of(&settings),
        settings: Arc::new(settings),
        environment: Arc::new(header.environment),
        module: Some(module),
        state,
        idle: IdleSlot::default(),
        reports_calls: false,
        reports_readings: false,
        balance,
        version: header.version,
        time: header.time,
        allocation: Allocation::default(),
        reserved: Cycles(0),
        stored: Bytes(0),
        on_subnet: false,
    })
}
