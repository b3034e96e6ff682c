//! A file with a compiled module.
//!
//! ```text
//!   0        magic, 8 bytes
//!   8        length h of the header, u64, little-endian
//!   16       SHA-256 of all that follows
//!   48       header, JSON: what it was made from, and what the replica must know of it
//!   48 + h   active data of the module, segment by segment
//!   …        compiled code, to the end
//! ```

use std::io;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmparser::ValType;
use wasmtime::Engine;

use super::{hex, hex_of};
use crate::instrument::Instrumented;
use crate::module::Prepared;
use crate::system_api::names::{AddressWidth, SystemCall};
use crate::validate::ModuleInfo;

/// Changes with the layout, with what the header holds, and with which modules are kept.
pub const FORMAT: u32 = 3;

const MAGIC: [u8; 8] = *b"compiled";
const PREAMBLE: usize = 48;

/// What an entry was made from.
pub struct Key<'a> {
    /// SHA-256 of the module as it was uploaded.
    pub uploaded: [u8; 32],
    /// All else.
    pub version: &'a str,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    uploaded: String,
    version: String,
    info: ModuleInfo,
    address_width: AddressWidth,
    has_heap: bool,
    heap_pages: u64,
    has_start: bool,
    drops_segments: bool,
    tracks_pages: bool,
    stable_calls: Vec<String>,
    globals: Vec<(u32, Number)>,
    /// Address and length of each segment.
    data: Vec<(u64, u64)>,
}

/// The type of a global that is kept.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Number {
    I32,
    I64,
    F32,
    F64,
    V128,
}

impl Number {
    /// References are not kept, and modules with mutable ones are refused.
    fn of(ty: ValType) -> Option<Self> {
        Some(match ty {
            ValType::I32 => Self::I32,
            ValType::I64 => Self::I64,
            ValType::F32 => Self::F32,
            ValType::F64 => Self::F64,
            ValType::V128 => Self::V128,
            ValType::Ref(_) => return None,
        })
    }

    fn val_type(self) -> ValType {
        match self {
            Self::I32 => ValType::I32,
            Self::I64 => ValType::I64,
            Self::F32 => ValType::F32,
            Self::F64 => ValType::F64,
            Self::V128 => ValType::V128,
        }
    }
}

/// The bytes of an entry.
///
/// # Errors
///
/// If the engine cannot write its code down, or the module has globals that cannot be.
pub fn encode(key: &Key<'_>, prepared: &Prepared) -> io::Result<Vec<u8>> {
    let Instrumented {
        wasm: _,
        address_width,
        has_heap,
        heap_pages,
        globals,
        data,
        has_start,
        drops_segments,
        tracks_pages,
        stable_calls,
    } = &prepared.rewritten;
    let globals = globals
        .iter()
        .map(|(index, ty)| Some((*index, Number::of(*ty)?)))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| io::Error::other("it has globals that are references"))?;
    let header = serde_json::to_vec(&Header {
        uploaded: hex(&key.uploaded),
        version: key.version.to_owned(),
        info: prepared.info.clone(),
        address_width: *address_width,
        has_heap: *has_heap,
        heap_pages: *heap_pages,
        has_start: *has_start,
        drops_segments: *drops_segments,
        tracks_pages: *tracks_pages,
        stable_calls: stable_calls.iter().map(|call| call.name().to_owned()).collect(),
        globals,
        data: data.iter().map(|(address, bytes)| (*address, bytes.len() as u64)).collect(),
    })?;
    let code =
        prepared.compiled.serialize().map_err(|error| io::Error::other(error.to_string()))?;
    let mut entry = Vec::with_capacity(PREAMBLE + header.len() + code.len());
    entry.extend(MAGIC);
    entry.extend((header.len() as u64).to_le_bytes());
    entry.extend([0; 32]);
    entry.extend(header);
    for (_, bytes) in data {
        entry.extend(bytes);
    }
    entry.extend(code);
    let checksum = Sha256::digest(&entry[PREAMBLE..]);
    entry[16..PREAMBLE].copy_from_slice(&checksum);
    Ok(entry)
}

/// What the bytes of an entry say.
///
/// # Errors
///
/// What is wrong with them.
#[expect(unsafe_code, reason = "compiled modules are machine code, which the engine runs")]
pub fn decode(engine: &Engine, key: &Key<'_>, entry: &[u8]) -> Result<Prepared, &'static str> {
    let (preamble, rest) = entry.split_at_checked(PREAMBLE).ok_or("it is too short")?;
    let (magic, preamble) = preamble.split_at(8);
    let (length, checksum) = preamble.split_at(8);
    if magic != MAGIC {
        return Err("it holds no module");
    }
    if Sha256::digest(rest).as_slice() != checksum {
        return Err("its checksum is wrong");
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    let cut = |bytes: &mut &[u8], length: u64| -> Result<Vec<u8>, &'static str> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (front, back) = bytes.split_at_checked(length).ok_or("its lengths are wrong")?;
        *bytes = back;
        Ok(front.to_vec())
    };
    let mut rest = rest;
    let header = cut(&mut rest, length)?;
    let header: Header = serde_json::from_slice(&header).map_err(|_| "its header is wrong")?;
    if hex_of(&header.uploaded) != Some(key.uploaded) || header.version != key.version {
        return Err("it is that of another module or version");
    }
    let mut data = Vec::with_capacity(header.data.len());
    for (address, length) in header.data {
        data.push((address, cut(&mut rest, length)?));
    }
    // SAFETY: the checksum shows that the bytes are those that were written, and the
    // version that an engine like this one has serialized them.
    let compiled = unsafe { wasmtime::Module::deserialize(engine, rest) }
        .map_err(|_| "the engine does not take its code")?;
    let stable_calls = header
        .stable_calls
        .iter()
        .map(|name| SystemCall::from_name(name).ok_or("it names unknown calls"))
        .collect::<Result<_, _>>()?;
    let globals = header.globals.iter().map(|(index, ty)| (*index, ty.val_type())).collect();
    let rewritten = Instrumented {
        wasm: Vec::new(),
        address_width: header.address_width,
        has_heap: header.has_heap,
        heap_pages: header.heap_pages,
        globals,
        data,
        has_start: header.has_start,
        drops_segments: header.drops_segments,
        tracks_pages: header.tracks_pages,
        stable_calls,
    };
    Ok(Prepared { info: header.info, rewritten, compiled })
}
