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
//! used. All parts are checked before. Only one process at a time saves to a file: see
//! [`StateLock`](crate::StateLock).
//!
//! The file of a subnet contains each of its canisters in this format: see `subnet::saved`.

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

use crate::canister::Allocation;
use crate::canister::{Canister, Settings, check_environment, max_variables};
use crate::cycles;
use crate::execution::Readings;
use crate::fault::Reject;
use crate::files::{self, hex};
use crate::instance::IdleSlot;
use crate::memory::os::present;
use crate::memory::{Image, PAGE};
use crate::module::Module;
use crate::rules::Rules;
use crate::state::{GlobalValue, State};
use crate::system_api::functions::AddressWidth;
use crate::units::{Bytes, Cycles, WASM_PAGE};

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
    #[error("saved in format {saved}, this version reads format {newest}; save it again")]
    Version {
        /// The format of the file.
        saved: u32,
        /// The format that this version reads.
        newest: u32,
    },
    /// The file contains a subnet, where one canister is expected.
    #[error("this is a saved subnet; load it with its canisters")]
    Subnet,
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
    /// followed. If several processes may save to the file, use a [`StateLock`](crate::StateLock).
    ///
    /// # Errors
    ///
    /// If the file cannot be written, `path` is not a regular file, or the canister has no module.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let content = self.content()?;
        let module = self.module.as_ref().map_or(&[][..], Module::uploaded);
        let saved = Saved::new(self, Content { module, ..content }, 0)?;
        files::replace(path, |to| saved.write(to))
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
        let saved = Saved::new(self, Content { note, ..self.content()? }, 0)?;
        files::write(path, |to| saved.write(to)).map(drop)
    }

    /// The content of a file with this canister, but without its module.
    fn content(&self) -> io::Result<Content<'_>> {
        let module = self.module.as_ref();
        let module = module.ok_or_else(|| io::Error::other("the canister has no module"))?;
        Ok(Content { rules: module.rules(), hash: module.hash(), module: &[], note: "" })
    }
}

/// The parts of a saved canister that are not in [`Canister`].
pub(crate) struct Content<'a> {
    /// The rules by which the canister counts.
    pub rules: Rules,
    /// The hash of its module, or of nothing if it has none.
    pub hash: [u8; 32],
    /// The module, if it is saved.
    pub module: &'a [u8],
    /// Text of the caller.
    pub note: &'a str,
}

/// A canister to be written to a file.
pub(crate) struct Saved<'a> {
    canister: &'a Canister,
    header: Header,
    /// The header in JSON.
    text: Vec<u8>,
    offsets: Offsets,
    module: &'a [u8],
}

impl<'a> Saved<'a> {
    /// Prepares a canister that begins at `start` in a file, a multiple of the page size.
    ///
    /// # Errors
    ///
    /// If a message was committed only in part.
    pub fn new(canister: &'a Canister, content: Content<'a>, start: u64) -> io::Result<Self> {
        canister.check_consistent().map_err(io::Error::other)?;
        let header = Header::of(canister, &content);
        let text = serde_json::to_vec(&header)?;
        let offsets = header.offsets(start, text.len() as u64).map_err(io::Error::other)?;
        Ok(Self { canister, header, text, offsets, module: content.module })
    }

    /// Writes the canister.
    ///
    /// # Errors
    ///
    /// Errors of writing the file.
    pub fn write(&self, file: &File) -> io::Result<()> {
        let Self { canister, header, text, offsets, module } = self;
        canister.state.heap.save(file, offsets.heap)?;
        canister.state.stable.save(file, offsets.stable)?;
        let checksums = checksums(file, header, offsets)?;
        file.write_all_at(&preamble(&MAGIC, text, &checksums), offsets.start)?;
        file.write_all_at(text, offsets.start + PREAMBLE)?;
        file.write_all_at(&checksums, offsets.checksums)?;
        file.write_all_at(module, offsets.module)
    }

    /// The offset after the last byte.
    pub fn end(&self) -> u64 {
        self.offsets.stable + self.header.stable
    }
}

/// The version of the format that this version of the crate reads and writes.
const FORMAT: u32 = 4;
/// Bytes before the header.
pub(crate) const PREAMBLE: u64 = 48;

const MAGIC: [u8; 8] = *b"canister";
/// The first bytes of a file with a subnet.
pub(crate) const SUBNET_MAGIC: [u8; 8] = *b"subnet\0\0";
/// Larger than any header and any module that may be installed.
const MAX_PART: u64 = 200 << 20;
/// Larger than any version, and than any time in nanoseconds since 1970.
pub(crate) const MAX_AGE: u64 = u64::MAX / 2;

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

/// Offsets of a canister and its parts in a file.
struct Offsets {
    start: u64,
    checksums: u64,
    module: u64,
    heap: u64,
    stable: u64,
}

impl Header {
    fn of(canister: &Canister, content: &Content<'_>) -> Self {
        Self {
            format: FORMAT,
            note: content.note.to_owned(),
            rules: content.rules.name().to_owned(),
            id: canister.settings.id,
            controllers: canister.settings.controllers.clone(),
            heap_limit: canister.settings.heap_limit.get(),
            environment: canister.environment().clone(),
            balance: canister.balance.to_string(),
            version: canister.version,
            time: canister.time,
            timer: canister.state.timer,
            certified_data: canister.state.certified_data.clone(),
            module_hash: hex::encode(&content.hash),
            module: content.module.len() as u64,
            heap: canister.state.heap.size() as u64,
            stable: canister.state.stable.size() as u64,
            globals: canister.state.globals.clone(),
        }
    }

    /// Checks that the canister counted by these rules.
    fn check_rules(&self, rules: Rules) -> Result<(), LoadError> {
        check_rules(&self.rules, rules)
    }

    /// Checks that a canister with that module, or without one, can have this state. Messages rely on
    /// it.
    fn check_fits(&self, module: Option<&Module>, rules: Rules) -> Result<(), LoadError> {
        let limits = &rules.set().memory;
        let largest = match module.map(|module| module.rewritten().address_width) {
            Some(AddressWidth::Bits32) => limits.heap32,
            Some(AddressWidth::Bits64) | None => limits.heap64,
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
        let most = max_variables(Some(rules)).max(max_variables(None));
        if check_environment(&self.environment, most).is_err() {
            return Err(LoadError::Damaged("its environment variables"));
        }
        let Some(rewritten) = module.map(Module::rewritten) else { return Ok(()) };
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

    /// Returns the offsets of a canister that begins at `start`, and of its parts after this header of
    /// `length` bytes.
    fn offsets(&self, start: u64, length: u64) -> Result<Offsets, LoadError> {
        let next_page = |offset: u64| offset.checked_next_multiple_of(WASM_PAGE);
        let offsets = || -> Option<Offsets> {
            let checksums = start.checked_add(PREAMBLE)?.checked_add(length)?;
            let module = checksums.checked_add(8)?;
            let heap = next_page(module.checked_add(self.module)?)?;
            let stable = next_page(heap.checked_add(self.heap)?)?;
            stable.checked_add(self.stable)?;
            Some(Offsets { start, checksums, module, heap, stable })
        };
        offsets().ok_or(LoadError::Damaged("its lengths are wrong"))
    }
}

/// Checks that a file was saved under these rules.
pub(crate) fn check_rules(saved: &str, rules: Rules) -> Result<(), LoadError> {
    if saved == rules.name() {
        return Ok(());
    }
    Err(LoadError::Rules { saved: saved.to_owned(), now: rules.name() })
}

/// The first bytes of a file, or of a canister in it: magic, length of the header, hash of the header
/// and of what follows it.
pub(crate) fn preamble(magic: &[u8; 8], header: &[u8], rest: &[u8]) -> Vec<u8> {
    let checksum = Sha256::new().chain_update(header).chain_update(rest).finalize();
    [&magic[..], &(header.len() as u64).to_le_bytes(), &checksum].concat()
}

/// Reads a header in JSON and the `rest` bytes after it, from `start` on, and checks their hash and
/// the format.
///
/// # Errors
///
/// If the file is something else, is damaged, or has another format.
pub(crate) fn read_preamble(
    file: &File,
    start: u64,
    magic: &[u8; 8],
    newest: u32,
    rest: u64,
) -> Result<(Vec<u8>, Vec<u8>), LoadError> {
    let after = start.checked_add(PREAMBLE).ok_or(LoadError::Damaged("its lengths are wrong"))?;
    let preamble = read_part(file, start, PREAMBLE)?;
    let (found, others) = preamble.split_at(8);
    let (length, checksum) = others.split_at(8);
    if found != magic {
        return Err(LoadError::Damaged("it does not start like one"));
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let text = read_part(file, after, length)?;
    let format: Format =
        serde_json::from_slice(&text).map_err(|_| LoadError::Damaged("its header"))?;
    if format.format != newest {
        return Err(LoadError::Version { saved: format.format, newest });
    }
    // The header was read, so the sum is an offset in the file.
    let rest = read_part(file, after + length, rest)?;
    let found = Sha256::new().chain_update(&text).chain_update(&rest).finalize();
    if found.as_slice() != checksum {
        return Err(LoadError::Damaged("its checksum"));
    }
    Ok((text, rest))
}

/// Returns true if a file contains a subnet.
pub(crate) fn is_subnet(file: &File) -> bool {
    read_part(file, 0, MAGIC.len() as u64).is_ok_and(|magic| magic == SUBNET_MAGIC)
}

/// Reads and checks the header of the canister that begins at `start`. Returns it with the offsets and
/// the checksums of the memories.
fn read_header(file: &File, start: u64) -> Result<(Header, Offsets, [u8; 8]), LoadError> {
    if start == 0 && is_subnet(file) {
        return Err(LoadError::Subnet);
    }
    let (text, rest) = read_preamble(file, start, &MAGIC, FORMAT, 8)?;
    let mut checksums = [0; 8];
    checksums.copy_from_slice(&rest);
    let header: Header =
        serde_json::from_slice(&text).map_err(|_| LoadError::Damaged("its header"))?;
    let offsets = header.offsets(start, text.len() as u64)?;
    Ok((header, offsets, checksums))
}

/// Reads a part of a file.
pub(crate) fn read_part(file: &File, offset: u64, length: u64) -> Result<Vec<u8>, LoadError> {
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
    let (canister, _) = load_at(&file, 0, rules, |module| compile(module).map(Some))?;
    Ok(canister)
}

/// Loads the canister that begins at `start`, and returns it with the bytes of its module. `compile`
/// may return no module: then the canister has none.
pub(crate) fn load_at(
    file: &File,
    start: u64,
    rules: Rules,
    compile: impl FnOnce(&[u8]) -> Result<Option<Module>, Reject>,
) -> Result<(Canister, Vec<u8>), LoadError> {
    let (header, offsets, expected) = read_header(file, start)?;
    header.check_rules(rules)?;
    let bytes = read_part(file, offsets.module, header.module)?;
    if Some(Sha256::digest(&bytes).into()) != hex::decode(&header.module_hash) {
        return Err(LoadError::Damaged("its module"));
    }
    let module = compile(&bytes)?;
    // Sizes are checked before anything of that size is read.
    header.check_fits(module.as_ref(), rules)?;
    check_memories(file, &header, &offsets, expected)?;
    Ok((open(file, header, &offsets, module)?, bytes))
}

/// Loads a canister with the given module, and the note in the file.
pub(crate) fn load_with_note(
    path: &Path,
    module: &Module,
) -> Result<(Canister, String), LoadError> {
    let file = files::open_own(path)?;
    let (mut header, offsets, expected) = read_header(&file, 0)?;
    header.check_rules(module.rules())?;
    if hex::decode(&header.module_hash) != Some(module.hash()) {
        return Err(LoadError::Damaged("it belongs to another module"));
    }
    header.check_fits(Some(module), module.rules())?;
    check_memories(&file, &header, &offsets, expected)?;
    let note = std::mem::take(&mut header.note);
    Ok((open(&file, header, &offsets, Some(module.clone()))?, note))
}

/// Returns the note in a file that [`Canister::save_with_note`] wrote. Only the header is checked.
///
/// # Errors
///
/// If the file cannot be read, is damaged, or has another version.
pub fn saved_note(path: &Path) -> Result<String, LoadError> {
    read_header(&files::open_own(path)?, 0).map(|(header, ..)| header.note)
}

/// Opens a canister that fits its module.
fn open(
    file: &File,
    header: Header,
    offsets: &Offsets,
    module: Option<Module>,
) -> Result<Canister, LoadError> {
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
        module,
        state,
        idle: IdleSlot::default(),
        reports_calls: false,
        readings: Readings::Ignored,
        balance,
        version: header.version,
        time: header.time,
        allocation: Allocation::default(),
        reserved: Cycles(0),
        stored: Bytes(0),
        halt: None,
        holds_keys: false,
        nodes: cycles::NODES as u32,
        certifier: None,
    })
}

#[cfg(test)]
mod tests;
