//! The header of a saved canister: what it is beside its memories, and where those are.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use ic_principal::Principal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::LoadError;
use crate::cache::hex;
use crate::canister::Canister;
use crate::environment;
use crate::memory::PAGE;
use crate::module::Module;
use crate::rules::Rules;
use crate::state::GlobalValue;
use crate::system_api::names::AddressWidth;
use crate::units::{Bytes, WASM_PAGE};

pub const FORMAT: u32 = 3;
pub const PREAMBLE: u64 = 48;

const MAGIC: [u8; 8] = *b"canister";
/// Larger than any header and any module that may be installed.
const MOST: u64 = 200 << 20;
/// No canister becomes as old, in changes or in nanoseconds since 1970.
const OLDEST: u64 = u64::MAX / 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub format: u32,
    /// What whoever saved it wants to know when loading it.
    pub note: String,
    /// Name of the rules by which it counted.
    pub rules: String,
    pub id: Principal,
    pub controllers: Vec<Principal>,
    pub heap_limit: u64,
    /// Environment variables. A file without any is as before there were some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// As text: JSON numbers are not that long everywhere.
    pub balance: String,
    pub version: u64,
    pub time: u64,
    pub timer: u64,
    pub certified_data: Vec<u8>,
    pub module_hash: String,
    /// Bytes of the module in this file.
    pub module: u64,
    pub heap: u64,
    pub stable: u64,
    pub globals: Vec<GlobalValue>,
}

/// The part of a header that every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Where the parts of a file begin.
pub struct Places {
    pub checksums: u64,
    pub module: u64,
    pub heap: u64,
    pub stable: u64,
}

impl Header {
    /// The header of a canister, if that has a module.
    pub fn of(canister: &Canister, module: u64, note: String) -> Option<Self> {
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
            module_hash: hex(&canister.module.as_ref()?.hash()),
            module,
            heap: canister.state.heap.size() as u64,
            stable: canister.state.stable.size() as u64,
            globals: canister.state.globals.clone(),
        })
    }

    /// Whether the canister counted by these rules.
    pub fn has_rules(&self, rules: Rules) -> Result<(), LoadError> {
        if self.rules == rules.name() {
            return Ok(());
        }
        Err(LoadError::Rules { saved: self.rules.clone(), now: rules.name() })
    }

    /// Whether a canister with that module can have come to keep what this says: messages
    /// take it as given.
    pub fn fits(&self, module: &Module) -> Result<(), LoadError> {
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
        if self.version > OLDEST || self.time > OLDEST {
            return Err(LoadError::Damaged("its age"));
        }
        // They may have been set before the module was installed.
        let most = environment::most(Some(module.rules())).max(environment::most(None));
        if environment::check(&self.environment, most).is_err() {
            return Err(LoadError::Damaged("its environment variables"));
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

    /// Where the parts behind this header of so many bytes begin.
    pub fn places(&self, length: u64) -> Result<Places, LoadError> {
        let next_page = |offset: u64| offset.checked_next_multiple_of(PAGE as u64);
        let places = || -> Option<Places> {
            let checksums = PREAMBLE.checked_add(length)?;
            let module = checksums.checked_add(8)?;
            let heap = next_page(module.checked_add(self.module)?)?;
            let stable = next_page(heap.checked_add(self.heap)?)?;
            Some(Places { checksums, module, heap, stable })
        };
        places().ok_or(LoadError::Damaged("its lengths are wrong"))
    }
}

/// What a file begins with.
pub fn preamble(header: &[u8], checksums: &[u8; 8]) -> Vec<u8> {
    let checksum = Sha256::new().chain_update(header).chain_update(checksums).finalize();
    [&MAGIC[..], &(header.len() as u64).to_le_bytes(), &checksum].concat()
}

/// The checked header of a file, where its parts are, and the checksums of its memories.
pub fn read(file: &File) -> Result<(Header, Places, [u8; 8]), LoadError> {
    let preamble = read_part(file, 0, PREAMBLE)?;
    let (magic, rest) = preamble.split_at(8);
    let (length, checksum) = rest.split_at(8);
    if magic != MAGIC {
        return Err(LoadError::Damaged("it does not begin as one"));
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
    let places = header.places(length)?;
    Ok((header, places, checksums))
}

/// A part of a file.
pub fn read_part(file: &File, offset: u64, length: u64) -> Result<Vec<u8>, LoadError> {
    if length > MOST {
        return Err(LoadError::Damaged("its lengths are wrong"));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, offset).map_err(|_| LoadError::Damaged("it is too short"))?;
    Ok(bytes)
}
