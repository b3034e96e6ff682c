//! Canisters in files.
//!
//! ```text
//!   0        magic, 8 bytes
//!   8        length h of the header, u64, little-endian
//!   16       SHA-256 of header and module
//!   48       header, JSON
//!   48 + h   module as it was uploaded
//!   …        heap, from the next page of 4 KiB
//!   …        stable memory, from the next page
//! ```
//!
//! Memories are not read when a file is loaded but mapped, so the file must not
//! change while the canister is used.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ic_principal::Principal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::canister::{Canister, Settings};
use crate::limits;
use crate::memory::{Image, PAGE};
use crate::module::Module;
use crate::reject::Reject;
use crate::run::{GlobalValue, State};
use crate::system_api::names::AddressWidth;
use crate::units::{Bytes, Cycles, WASM_PAGE};

const MAGIC: [u8; 8] = *b"canister";
const FORMAT: u32 = 1;
const PREAMBLE: u64 = 48;
/// Larger than any header and any module that may be installed.
const MOST: u64 = 200 << 20;

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
    /// Its module is refused.
    #[error("its module was refused: {0}")]
    Module(#[from] Reject),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    id: Principal,
    controllers: Vec<Principal>,
    heap_limit: u64,
    /// As text: JSON numbers are not that long everywhere.
    balance: String,
    version: u64,
    time: u64,
    timer: u64,
    certified_data: Vec<u8>,
    module: u64,
    heap: u64,
    stable: u64,
    globals: Vec<GlobalValue>,
}

impl Header {
    /// What a canister with that module can have come to keep: messages take it as given.
    fn fits(&self, module: &Module) -> Result<(), LoadError> {
        let rewritten = module.rewritten();
        let largest = match rewritten.address_width {
            AddressWidth::Bits32 => limits::MAX_HEAP,
            AddressWidth::Bits64 => limits::MAX_HEAP64,
        };
        for (bytes, largest) in [(self.heap, largest), (self.stable, limits::MAX_STABLE)] {
            if !bytes.is_multiple_of(WASM_PAGE) || bytes > Bytes::from(largest).get() {
                return Err(LoadError::Damaged("its sizes"));
            }
        }
        // Before the first message there are none.
        let types = rewritten.globals.iter().map(|(_, ty)| *ty);
        if !self.globals.is_empty() && !types.eq(self.globals.iter().map(|value| value.ty())) {
            return Err(LoadError::Damaged("its globals"));
        }
        if self.heap < rewritten.heap_pages * WASM_PAGE {
            return Err(LoadError::Damaged("its sizes"));
        }
        Ok(())
    }
}

fn next_page(offset: u64) -> u64 {
    offset.next_multiple_of(PAGE as u64)
}

impl Canister {
    /// Saves the canister, module and all, as a whole or not at all.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or the canister has no module.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let module = self
            .module
            .as_ref()
            .ok_or_else(|| io::Error::other("the canister has no module"))?
            .uploaded();
        let header = serde_json::to_vec(&Header {
            format: FORMAT,
            id: self.settings.id,
            controllers: self.settings.controllers.clone(),
            heap_limit: self.settings.heap_limit.get(),
            balance: self.balance.to_string(),
            version: self.version,
            time: self.time,
            timer: self.state.timer,
            certified_data: self.state.certified_data.clone(),
            module: module.len() as u64,
            heap: self.state.heap.size() as u64,
            stable: self.state.stable.size() as u64,
            globals: self.state.globals.clone(),
        })?;
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let temporary = tempfile::NamedTempFile::new_in(directory)?;
        let file = temporary.as_file();
        let checksum = Sha256::new().chain_update(&header).chain_update(module).finalize();
        file.write_all_at(&MAGIC, 0)?;
        file.write_all_at(&(header.len() as u64).to_le_bytes(), 8)?;
        file.write_all_at(&checksum, 16)?;
        file.write_all_at(&header, PREAMBLE)?;
        file.write_all_at(module, PREAMBLE + header.len() as u64)?;
        let heap = next_page(PREAMBLE + (header.len() + module.len()) as u64);
        let stable = next_page(heap + self.state.heap.size() as u64);
        self.state.heap.save(file, heap)?;
        self.state.stable.save(file, stable)?;
        file.sync_all()?;
        temporary.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Loads a canister, its module compiled by `compile`.
pub(crate) fn load(
    path: &Path,
    compile: impl FnOnce(&[u8]) -> Result<Module, Reject>,
) -> Result<Canister, LoadError> {
    let file = File::open(path)?;
    let mut preamble = [0; PREAMBLE as usize];
    file.read_exact_at(&mut preamble, 0).map_err(|_| LoadError::Damaged("it is too short"))?;
    let (magic, rest) = preamble.split_at(8);
    let (length, checksum) = rest.split_at(8);
    if magic != MAGIC {
        return Err(LoadError::Damaged("it does not begin as one"));
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let read = |offset: u64, length: u64| -> Result<Vec<u8>, LoadError> {
        if length > MOST {
            return Err(LoadError::Damaged("its lengths are wrong"));
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact_at(&mut bytes, offset)
            .map_err(|_| LoadError::Damaged("it is too short"))?;
        Ok(bytes)
    };
    let text = read(PREAMBLE, length)?;
    let format: Format =
        serde_json::from_slice(&text).map_err(|_| LoadError::Damaged("its header"))?;
    if format.format != FORMAT {
        return Err(LoadError::Version(format.format));
    }
    let header: Header =
        serde_json::from_slice(&text).map_err(|_| LoadError::Damaged("its header"))?;
    let module = read(PREAMBLE + length, header.module)?;
    let found = Sha256::new().chain_update(&text).chain_update(&module).finalize();
    if found.as_slice() != checksum {
        return Err(LoadError::Damaged("its checksum"));
    }
    let compiled = compile(&module)?;
    header.fits(&compiled)?;
    let heap = next_page(PREAMBLE + length + header.module);
    let stable = heap
        .checked_add(header.heap)
        .and_then(|end| end.checked_next_multiple_of(PAGE as u64))
        .ok_or(LoadError::Damaged("its lengths are wrong"))?;
    let image = |offset, size| -> Result<Image, LoadError> {
        let size = usize::try_from(size).map_err(|_| LoadError::Damaged("its lengths"))?;
        Image::open(file.try_clone()?, offset, size)
            .map_err(|_| LoadError::Damaged("it is too short"))
    };
    let state = State {
        heap: image(heap, header.heap)?,
        stable: image(stable, header.stable)?,
        globals: header.globals,
        certified_data: header.certified_data,
        timer: header.timer,
    };
    let balance = Cycles(header.balance.parse().map_err(|_| LoadError::Damaged("its cycles"))?);
    Ok(Canister {
        settings: std::sync::Arc::new(Settings {
            id: header.id,
            controllers: header.controllers,
            balance,
            heap_limit: Bytes(header.heap_limit),
        }),
        module: Some(compiled),
        state,
        balance,
        version: header.version,
        time: header.time,
    })
}

/// The part of a header that every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Replica;

    const MODULE: &str = r#"(module
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (memory 2)
        (global $n (mut i64) (i64.const 7))
        (func (export "canister_update bump")
            (global.set $n (i64.add (global.get $n) (i64.const 1)))
            (i64.store (i32.const 70000) (global.get $n))
            (drop (call $grow (i64.const 1)))
            (call $write (i64.const 65528) (i64.const 70000) (i64.const 8))
            (call $reply))
        (func (export "canister_query show")
            (call $read (i64.const 8) (i64.const 65528) (i64.const 8))
            (i64.store (i32.const 16) (i64.load (i32.const 70000)))
            (i64.store (i32.const 24) (global.get $n))
            (call $append (i32.const 8) (i32.const 24))
            (call $reply)))"#;

    #[test]
    fn a_saved_canister_goes_on_where_it_was() {
        let anyone = Principal::anonymous();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("canister");
        let replica = Replica::new(None).unwrap();
        let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        assert!(canister.save(&path).is_err(), "nothing is installed");
        canister.install(&module, anyone, &[]).unwrap().outcome.unwrap();
        canister.update(anyone, "bump", &[]).unwrap().outcome.unwrap();
        canister.save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();

        let mut loaded = replica.load(&path).unwrap();
        let show =
            |canister: &Canister| canister.query(anyone, "show", &[]).unwrap().outcome.unwrap();
        assert_eq!(show(&loaded), show(&canister));
        assert_eq!(show(&loaded), [8_u64.to_le_bytes(); 3].concat());
        let again = |canister: &mut Canister| {
            let execution = canister.update(anyone, "bump", &[]).unwrap();
            (execution.instructions, execution.charge, execution.cycles, execution.memory)
        };
        assert_eq!(again(&mut loaded), again(&mut canister));
        assert_eq!(loaded.balance(), canister.balance());
        assert_eq!(show(&loaded), [9_u64.to_le_bytes(); 3].concat());
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "the file stays as it was");
    }

    #[test]
    fn damaged_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("canister");
        let replica = Replica::new(None).unwrap();
        let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
        canister.save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for end in [0, 7, 47, 60, 300, whole.len() - 1] {
            std::fs::write(&path, &whole[..end]).unwrap();
            assert!(matches!(replica.load(&path), Err(LoadError::Damaged(_))), "cut at {end}");
        }
        for at in [0, 9, 20, 50, 400] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            std::fs::write(&path, &bytes).unwrap();
            assert!(replica.load(&path).is_err(), "changed at {at}");
        }
        assert!(matches!(replica.load(&directory.path().join("none")), Err(LoadError::Io(_))));
    }

    /// Files that are whole, and say what cannot be.
    #[test]
    fn sizes_and_globals_that_do_not_fit_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("canister");
        let replica = Replica::new(None).unwrap();
        let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
        canister.update(Principal::anonymous(), "bump", &[]).unwrap().outcome.unwrap();
        canister.save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let length = u64::from_le_bytes(whole[8..16].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&whole[48..48 + length]).unwrap();

        let load = |field: &str, value: serde_json::Value| {
            let mut header = header.clone();
            header[field] = value;
            let header = serde_json::to_vec(&header).unwrap();
            let checksum = Sha256::new().chain_update(&header).chain_update(module.uploaded());
            let mut bytes = MAGIC.to_vec();
            bytes.extend((header.len() as u64).to_le_bytes());
            bytes.extend(checksum.finalize());
            bytes.extend(header);
            bytes.extend(module.uploaded());
            std::fs::write(&path, &bytes).unwrap();
            // As long as it may say, without being so.
            File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
            replica.load(&path)
        };
        let same = load("version", 7.into()).unwrap();
        assert_eq!(same.heap_size().get(), 2);
        for (field, value) in [
            ("heap", 4_096.into()),
            ("heap", 65_536.into()),
            ("heap", (5_u64 << 30).into()),
            ("heap", u64::MAX.into()),
            ("heap", (u64::MAX - 65_535).into()),
            ("stable", 4_096.into()),
            ("stable", ((500_u64 << 30) + 65_536).into()),
            ("globals", serde_json::json!([{ "I32": 7 }])),
            ("globals", serde_json::json!([{ "I64": 7 }, { "I64": 7 }])),
        ] {
            let shown = format!("{field}: {value}");
            assert!(matches!(load(field, value), Err(LoadError::Damaged(_))), "{shown}");
        }
    }
}
