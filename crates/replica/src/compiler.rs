//! Compiles modules, and caches the compiled ones in a folder, so that none is validated, rewritten and
//! compiled twice.
//!
//! ```text
//!   HASH-VERSION.module in the folder, checked ───────────────────────┐
//!   upload → validate → instrument → compile with the engine's effort ┴→ Prepared → linked by a linker
//! ```
//!
//! `VERSION` identifies everything else that compiled code depends on: this crate, the rewriting,
//! the rules, the engine and its settings, the processor. A cache that cannot be read or written
//! only costs time. Entries contain machine code, so an entry is used only if it belongs to the user
//! and others cannot write to it. The folder must be as trusted as the program.
//!
//! `HASH` is SHA-256 of the module as it was uploaded. For its other forms, which are compiled when
//! they are first needed, it is SHA-256 of that and the form's name, and of modules that were compiled
//! with the least effort also of their engine.
//!
//! An entry is a file:
//!
//! ```text
//!   0        magic, 8 bytes
//!   8        length h of the header, u64, little-endian
//!   16       SHA-256 of everything that follows
//!   48       header, JSON: what it was made from, and properties of the rewritten module
//!   48 + h   active data of the module, segment by segment
//!   …        compiled code, to the end
//! ```

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmparser::ValType;
use wasmtime::{Config, Engine, Linker, OptLevel, RegallocAlgorithm};

use crate::backtrace::CAPTURED;
use crate::fault::{ErrorCode, Fault};
use crate::files::{self, hex};
use crate::instrument::{self, Instrumented, Metering};
use crate::memory::Creator;
use crate::rules::{Rules, WASM_STACK};
use crate::system_api::functions::{AddressWidth, SystemCall};
use crate::system_api::host::Host;
use crate::system_api::link;
use crate::validate::{self, ModuleInfo, Purpose};

/// Address space reserved for each memory. With this much, a 32-bit heap needs no bounds checks in
/// compiled code.
pub const RESERVED: usize = 4 << 30;
/// Inaccessible addresses after a memory, which small offsets may reach.
pub const GUARD: usize = 32 << 20;
/// Stack needed to run a canister, including the host's own frames.
pub const STACK: usize = WASM_STACK + (3 << 20);

/// The optimisation of a module by the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As much as possible, for modules that run for long.
    Full,
    /// Not at all: compiling takes half as long, running up to two and a half times as long.
    Least,
}

/// Creates an engine that executes as the replica's does: the same features, canonical NaNs, the
/// same stack. Unlike the replica's engine it optimizes.
///
/// # Errors
///
/// If the engine does not support this machine.
#[expect(unsafe_code, reason = "sets a compiler flag that has no safe setter")]
fn engine(rules: Rules, effort: Effort) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    let (level, registers, stack) = match effort {
        Effort::Full => (OptLevel::Speed, RegallocAlgorithm::Backtracking, WASM_STACK),
        // Functions need more stack without optimisation. With half of it, each recursion that
        // overflows the whole stack with optimisation overflows this one, and is repeated there.
        Effort::Least => (OptLevel::None, RegallocAlgorithm::SinglePass, WASM_STACK / 2),
    };
    if rules.charges_touches() {
        // A signal handler stores the charges for pages. The compiler must not assume that they
        // stay the same in a loop that stores nothing.
        // SAFETY: the flag turns an optimization off.
        unsafe { config.cranelift_flag_set("enable_alias_analysis", "false") };
    }
    config
        .cranelift_opt_level(level)
        .cranelift_regalloc_algorithm(registers)
        .cranelift_nan_canonicalization(true)
        .generate_address_map(false)
        .async_stack_size(WASM_STACK + (1 << 20))
        .max_wasm_stack(stack)
        .memory_guard_size(GUARD as u64)
        .memory_init_cow(false)
        // Memories do not move, but declaring that would limit their size to the reservation,
        // and stable memories are larger.
        .memory_may_move(true)
        .memory_reservation(RESERVED as u64)
        // The handler of page faults needs signals.
        .macos_use_mach_ports(false)
        .parallel_compilation(true)
        .wasm_branch_hinting(true)
        .wasm_backtrace_max_frames(NonZeroUsize::new(CAPTURED))
        .wasm_bulk_memory(true)
        .wasm_extended_const(false)
        .wasm_memory64(true)
        .wasm_multi_memory(true)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(true)
        .with_host_memory(Arc::new(Creator));
    Engine::new(&config)
}

/// Compiles and links modules with one effort.
pub(crate) struct Compiler {
    pub engine: Engine,
    pub effort: Effort,
    wasm32: Linker<Host>,
    wasm64: Linker<Host>,
}

impl Compiler {
    pub fn new(rules: Rules, effort: Effort) -> wasmtime::Result<Self> {
        let engine = engine(rules, effort)?;
        let mut wasm32 = Linker::new(&engine);
        link(&mut wasm32, AddressWidth::Bits32)?;
        let mut wasm64 = Linker::new(&engine);
        link(&mut wasm64, AddressWidth::Bits64)?;
        Ok(Self { engine, effort, wasm32, wasm64 })
    }

    /// The linker of modules whose heap addresses have this width.
    pub fn linker(&self, width: AddressWidth) -> &Linker<Host> {
        match width {
            AddressWidth::Bits32 => &self.wasm32,
            AddressWidth::Bits64 => &self.wasm64,
        }
    }
}

/// A module before it is linked to the System API, as the cache keeps it.
pub(crate) struct Prepared {
    pub info: ModuleInfo,
    /// Without the rewritten module itself, which is no longer needed.
    pub rewritten: Instrumented,
    pub compiled: wasmtime::Module,
}

impl Prepared {
    /// Validates, rewrites and compiles an uploaded module, plain or gzipped.
    pub fn new(
        engine: &Engine,
        uploaded: &[u8],
        metering: Metering,
        rules: Rules,
        purpose: Purpose,
    ) -> Result<Self, Fault> {
        let wasm = validate::decode(uploaded)?;
        let info = validate::validate(&wasm, rules, purpose)?;
        let mut rewritten =
            instrument::instrument(&wasm, metering, rules).map_err(|error| Fault::Module {
                code: ErrorCode::CanisterInvalidWasm,
                message: format!("Could not instrument wasm module of canister: {error}"),
            })?;
        let wasm = std::mem::take(&mut rewritten.wasm);
        let compiled = wasmtime::Module::new(engine, &wasm)
            .map_err(|error| Fault::Engine(format!("Failed to compile: {error:#}")))?;
        Ok(Self { info, rewritten, compiled })
    }
}

/// Version of this crate. The [rules](crate::rules::Rules) determine which server it matches.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Extension of files with compiled modules.
pub const MODULE: &str = ".module";
/// Larger than any entry; larger files are not read.
const MAX_ENTRY: u64 = 2 << 30;

/// A problem of the cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Note {
    /// An entry is damaged; the module is compiled again.
    #[error("{} is rebuilt: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
    /// An entry could not be written.
    #[error("{} could not be written: {error}", path.display())]
    NotKept {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

/// A handler of notes.
pub type NoteHandler = Box<dyn Fn(Note) + Send + Sync>;

/// A folder of prepared modules, or none.
pub(crate) struct Entries {
    folder: Option<PathBuf>,
    rules: Rules,
    version: String,
    handle_note: NoteHandler,
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries")
            .field("folder", &self.folder)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Entries {
    pub fn new(
        engine: &Engine,
        rules: Rules,
        folder: Option<PathBuf>,
        handle_note: NoteHandler,
    ) -> Self {
        let mut version = DefaultHasher::new();
        (VERSION, instrument::VERSION, FORMAT).hash(&mut version);
        // Compiled code does not depend on the kind of subnet.
        rules.name().hash(&mut version);
        engine.precompile_compatibility_hash().hash(&mut version);
        let version = format!("{:016x}", version.finish());
        Self { folder, rules, version, handle_note }
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns a form of the uploaded module, plain or gzipped, with this hash: the folder's entry, else
    /// prepared from the upload and written there.
    pub fn prepared(
        &self,
        compiler: &Compiler,
        hash: [u8; 32],
        uploaded: &[u8],
        form: Metering,
        purpose: Purpose,
    ) -> Result<Prepared, Fault> {
        let engine = &compiler.engine;
        let prepare = || Prepared::new(engine, uploaded, form, self.rules, purpose);
        let hash = hash_of(hash, form, compiler);
        let Some(path) = self.path(hash) else {
            return prepare();
        };
        let key = Key { hash, version: &self.version };
        match files::open_own(&path).and_then(|file| files::read_at_most(file, MAX_ENTRY)) {
            Ok(bytes) => match decode(engine, &key, &bytes) {
                Ok(prepared) => {
                    purpose.check(&prepared.info)?;
                    files::touch(&path);
                    return Ok(prepared);
                }
                Err(reason) => self.damaged(&path, reason),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.damaged(&path, error),
        }
        let prepared = prepare()?;
        let written = encode(&key, &prepared)
            .and_then(|bytes| files::write(&path, |mut file| file.write_all(&bytes)));
        if let Err(error) = written {
            (self.handle_note)(Note::NotKept { path, error });
        }
        Ok(prepared)
    }

    /// Returns `true` if the module with this hash is there in its usual form.
    pub fn contains(&self, hash: [u8; 32]) -> bool {
        self.path(hash).is_some_and(|path| path.exists())
    }

    /// The file of an entry, if there is a folder.
    fn path(&self, hash: [u8; 32]) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("{}-{}{MODULE}", hex::encode(&hash), self.version)))
    }

    fn damaged(&self, path: &Path, reason: impl fmt::Display) {
        (self.handle_note)(Note::Damaged { path: path.to_owned(), reason: reason.to_string() });
    }
}

/// Must change with the layout, the content of the header, and the set of modules that are kept.
const FORMAT: u32 = 4;

const MAGIC: [u8; 8] = *b"compiled";
const PREAMBLE: usize = 48;

/// Returns the hash that identifies a form of the module with the hash `uploaded`.
fn hash_of(uploaded: [u8; 32], form: Metering, compiler: &Compiler) -> [u8; 32] {
    let of = Sha256::new().chain_update(uploaded).chain_update(form.name());
    match (form, compiler.effort) {
        (Metering::Local, Effort::Full) => uploaded,
        (_, Effort::Full) => of.finalize().into(),
        (_, Effort::Least) => {
            // The version has the settings of the other engine only.
            let mut settings = DefaultHasher::new();
            compiler.engine.precompile_compatibility_hash().hash(&mut settings);
            of.chain_update(settings.finish().to_le_bytes()).finalize().into()
        }
    }
}

/// The source of an entry.
struct Key<'a> {
    /// The module and its form.
    hash: [u8; 32],
    /// Everything else.
    version: &'a str,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    hash: String,
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

/// The type of a mutable global.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Number {
    I32,
    I64,
    F32,
    F64,
    V128,
}

impl Number {
    /// `None` for references. Modules with mutable globals of references are refused.
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

/// Encodes an entry.
///
/// # Errors
///
/// If the engine cannot serialize its code, or a global is a reference.
fn encode(key: &Key<'_>, prepared: &Prepared) -> io::Result<Vec<u8>> {
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
        hash: hex::encode(&key.hash),
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

/// Decodes an entry.
///
/// # Errors
///
/// The reason why the entry cannot be used.
#[expect(unsafe_code, reason = "deserializes machine code, which the engine executes")]
fn decode(engine: &Engine, key: &Key<'_>, entry: &[u8]) -> Result<Prepared, &'static str> {
    let (preamble, rest) = entry.split_at_checked(PREAMBLE).ok_or("it is too short")?;
    let (magic, preamble) = preamble.split_at(8);
    let (length, checksum) = preamble.split_at(8);
    if magic != MAGIC {
        return Err("it is not a compiled module");
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
    if hex::decode(&header.hash) != Some(key.hash) || header.version != key.version {
        return Err("it belongs to another module or version");
    }
    let mut data = Vec::with_capacity(header.data.len());
    for (address, length) in header.data {
        data.push((address, cut(&mut rest, length)?));
    }
    // SAFETY: the checksum shows that the bytes are those that were written, and the version that
    // an equal engine serialized them.
    let compiled = unsafe { wasmtime::Module::deserialize(engine, rest) }
        .map_err(|_| "the engine refuses its code")?;
    let stable_calls = header
        .stable_calls
        .iter()
        .map(|name| SystemCall::from_name(name).ok_or("it has unknown calls"))
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
