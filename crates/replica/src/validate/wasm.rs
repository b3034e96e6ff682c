//! Decodes an upload into a plain module, validates the WebAssembly, and parses its sections.
//!
//! The first bytes determine the format: `\0asm` is a plain module, `1f 8b 08` is gzip with
//! deflate. The last four bytes of a gzip upload claim the uncompressed size:
//!
//! ```text
//! header | deflate stream | CRC-32 u32 | size modulo 2^32 u32     (little-endian)
//! ```
//!
//! The claim is checked against the limit before anything is inflated, and at most one byte more
//! than claimed is inflated. Only the first gzip member counts.
//!
//! The plain module must be valid for the replica's engine: WebAssembly 2.0 with tail calls and 64-bit
//! memories and tables; without several memories, relaxed SIMD, extended constant expressions,
//! garbage collection, typed function references, exceptions and threads.
//!
//! A valid module is parsed into plain tables, [`Sections`], which all other rules read.

use std::borrow::Cow;
use std::io::{self, Read};

use flate2::Crc;
use flate2::bufread::{DeflateDecoder, GzDecoder};
use wasmparser::{
    BinaryReaderError, CompositeInnerType, ConstExpr, DataKind, ElementItems, ElementKind, Export,
    FuncType, FuncValidatorAllocations, FunctionBody, GlobalType, Import, Imports, KnownCustom,
    MemoryType, Name, NameSectionReader, Naming, Operator, Parser, Payload, TableType, TypeRef,
    ValidPayload, Validator, WasmFeatures,
};

use super::refusal::{Invalid, Refusal};
use crate::rules::ModuleLimits;
use crate::system_api::functions::AddressWidth;
use crate::units::WasmPages;

/// Largest module after decompression.
const MAX_MODULE: u64 = 100 << 20;

const WASM_MAGIC: &[u8] = b"\0asm";
const GZIP_MAGIC: &[u8] = b"\x1f\x8b\x08";
/// A header and a trailer have 18 bytes, but the replica only requires 16.
const SHORTEST_GZIP: usize = 16;

/// Returns the plain module of an upload, which is a module or a module in gzip.
///
/// # Errors
///
/// If the upload is neither, is larger than 100 MiB, or is broken gzip. For broken gzip, the text
/// after `failed to decode compressed Wasm module: ` is the replica's if the stream is truncated
/// or its checksum is wrong, and that of `flate2` otherwise.
pub fn decode(module: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    if module.starts_with(WASM_MAGIC) {
        check_size(module.len() as u64)?;
        return Ok(Cow::Borrowed(module));
    }
    if !module.starts_with(GZIP_MAGIC) {
        return Err(Invalid::Decoding("unsupported canister module format".into()).into());
    }
    let claimed = match module.last_chunk::<4>() {
        Some(size) if module.len() >= SHORTEST_GZIP => u32::from_le_bytes(*size),
        _ => {
            let words = "invalid Wasm module: gzip stream is too short";
            return Err(Invalid::Decoding(words.into()).into());
        }
    };
    check_size(u64::from(claimed))?;

    let plain = inflate(module, u64::from(claimed) + 1).map_err(|error| {
        Invalid::Decoding(format!("failed to decode compressed Wasm module: {}", words(&error)))
    })?;
    if plain.len() as u64 != u64::from(claimed) {
        let found = plain.len();
        return Err(Invalid::Decoding(format!(
            "specified uncompressed size {claimed} does not match extracted size {found}"
        ))
        .into());
    }
    Ok(Cow::Owned(plain))
}

fn check_size(size: u64) -> Result<(), Invalid> {
    if size > MAX_MODULE {
        return Err(Invalid::ModuleTooLarge { size, allowed: MAX_MODULE });
    }
    Ok(())
}

/// Inflates at most `limit` bytes of the first gzip member. The checksum is checked if the stream
/// ends before the limit.
fn inflate(gzip: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut whole = GzDecoder::new(gzip);
    if whole.header().is_none() {
        // The first read returns the header's error.
        whole.read_exact(&mut [0])?;
    }
    // `GzDecoder` also compares the member's own size, which the replica does not, so it only
    // skips the header here.
    let stream = whole.into_inner();
    let mut plain = Vec::new();
    let mut deflate = DeflateDecoder::new(stream).take(limit);
    deflate.read_to_end(&mut plain)?;
    if (plain.len() as u64) < limit {
        check_trailer(deflate.into_inner().into_inner(), &plain)?;
    }
    Ok(plain)
}

fn check_trailer(mut trailer: &[u8], plain: &[u8]) -> io::Result<()> {
    let mut fields = [0; 8];
    trailer.read_exact(&mut fields)?;
    let [a, b, c, d, ..] = fields;
    let expected = u32::from_le_bytes([a, b, c, d]);
    let mut crc = Crc::new();
    crc.update(plain);
    if crc.sum() != expected {
        let words = format!("CRC32 mismatched: value={}, expected={expected}", crc.sum());
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    Ok(())
}

/// The replica reports a truncated stream with the text of the standard library.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "failed to fill whole buffer".into(),
        _ => error.to_string(),
    }
}

/// Proposals that are enabled in the replica's validation.
const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::MEMORY64)
    .union(WasmFeatures::GC_TYPES);

/// Messages that the validator has changed since the replica's version of it.
const REWORDED: &[(&str, &str)] = &[(
    "invalid memop alignment: alignment must not be larger",
    "malformed memop alignment: alignment must not be larger",
)];

pub(super) fn check(wasm: &[u8], limits: &ModuleLimits) -> Result<(), Invalid> {
    check_code_size(wasm, limits)?;
    check_features(wasm).map_err(|error| Invalid::Wasm(reworded(&error.to_string())))?;
    check_no_exact_imports(wasm)
}

fn reworded(words: &str) -> String {
    match REWORDED.iter().find(|(now, _)| words.starts_with(now)) {
        Some((now, then)) => words.replacen(now, then, 1),
        None => words.to_owned(),
    }
}

/// Reads up to the code section. Garbage before it is a decoding error; garbage after it is left to
/// the validator.
fn check_code_size(wasm: &[u8], limits: &ModuleLimits) -> Result<(), Invalid> {
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload
            .map_err(|error| Invalid::Decoding(format!("Error finding code section: {error}")))?;
        if let Payload::CodeSectionStart { size, .. } = payload {
            let allowed = limits.code.get();
            if u64::from(size) > allowed {
                return Err(Invalid::CodeTooLarge { size, allowed });
            }
            break;
        }
    }
    Ok(())
}

/// Validates function bodies after all sections, so that errors in later sections come first.
fn check_features(wasm: &[u8]) -> wasmparser::Result<()> {
    let mut validator = Validator::new_with_features(FEATURES);
    let mut functions = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        if let ValidPayload::Func(function, body) = validator.payload(&payload?)? {
            functions.push((function, body));
        }
    }
    let mut allocations = FuncValidatorAllocations::default();
    for (function, body) in functions {
        let mut validator = function.into_validator(allocations);
        validator.validate(&body)?;
        allocations = validator.into_allocations();
    }
    Ok(())
}

/// Refuses a kind of import that is newer than the replica's validator. This validator accepts it
/// although the proposal is disabled.
fn check_no_exact_imports(wasm: &[u8]) -> Result<(), Invalid> {
    let refused = |error: BinaryReaderError| Invalid::Wasm(error.to_string());
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::ImportSection(imports) = payload.map_err(refused)? else {
            continue;
        };
        for imports in imports {
            if let Imports::Single(start, import) = imports.map_err(refused)?
                && let TypeRef::FuncExact(_) = import.ty
            {
                let kind = start + encoded_len(import.module) + encoded_len(import.name);
                return Err(Invalid::Wasm(format!(
                    "invalid leading byte (0x20) for external kind (at offset {kind:#x})"
                )));
            }
        }
        break;
    }
    Ok(())
}

/// Size of a name with its length prefix, which has seven bits per byte.
fn encoded_len(name: &str) -> usize {
    let bits = usize::BITS - name.len().leading_zeros();
    name.len() + bits.div_ceil(7).max(1) as usize
}

/// The sections of a module. Tables, memories and globals do not include imported ones.
#[derive(Default)]
pub(super) struct Sections<'a> {
    /// By type index; `None` for types other than functions.
    types: Vec<Option<FuncType>>,
    pub imports: Vec<Import<'a>>,
    /// Type index of each function, imported functions first.
    functions: Vec<u32>,
    pub tables: Vec<TableType>,
    pub memories: Vec<MemoryType>,
    pub globals: Vec<GlobalType>,
    pub exports: Vec<Export<'a>>,
    pub start: Option<u32>,
    pub elements: Vec<Elements>,
    pub data: Vec<Data>,
    pub bodies: Vec<FunctionBody<'a>>,
    /// Names and contents.
    pub custom: Vec<(&'a str, &'a [u8])>,
    /// Names of functions, by index.
    pub function_names: Vec<(u32, &'a str)>,
}

/// An active element segment, which initializes a part of a table.
pub(super) struct Elements {
    pub table: u32,
    pub offset: Option<Constant>,
    pub len: u32,
}

/// An active data segment, which initializes a part of the heap.
pub(super) struct Data {
    pub offset: Option<Constant>,
    pub len: usize,
}

/// A constant expression that is a single constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constant {
    I32(i32),
    I64(i64),
}

impl Constant {
    fn of(expression: &ConstExpr<'_>) -> Result<Option<Self>, BinaryReaderError> {
        let mut operators = expression.get_operators_reader();
        let constant = match operators.read()? {
            Operator::I32Const { value } => Some(Self::I32(value)),
            Operator::I64Const { value } => Some(Self::I64(value)),
            _ => None,
        };
        Ok(constant.filter(|_| matches!(operators.read(), Ok(Operator::End))))
    }
}

impl<'a> Sections<'a> {
    /// Parses a module that passed the validator.
    ///
    /// # Errors
    ///
    /// If function names cannot be read. The validator skips custom sections.
    pub fn parse(wasm: &'a [u8]) -> Result<Self, Invalid> {
        Self::read(wasm)
            .map_err(|error| Invalid::Decoding(format!("Error from wasmparser: {error}")))
    }

    fn read(wasm: &'a [u8]) -> Result<Self, BinaryReaderError> {
        let mut sections = Self::default();
        for payload in Parser::new(0).parse_all(wasm) {
            sections.add(payload?)?;
        }
        Ok(sections)
    }

    fn add(&mut self, payload: Payload<'a>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::TypeSection(groups) => {
                for group in groups {
                    self.types.extend(group?.into_types().map(
                        |ty| match ty.composite_type.inner {
                            CompositeInnerType::Func(function) => Some(function),
                            _ => None,
                        },
                    ));
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    if let TypeRef::Func(ty) | TypeRef::FuncExact(ty) = import.ty {
                        self.functions.push(ty);
                    }
                    self.imports.push(import);
                }
            }
            Payload::FunctionSection(types) => {
                for ty in types {
                    self.functions.push(ty?);
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    self.tables.push(table?.ty);
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    self.memories.push(memory?);
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    self.globals.push(global?.ty);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    self.exports.push(export?);
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(segments) => {
                for segment in segments {
                    let segment = segment?;
                    if let ElementKind::Active { table_index, offset_expr } = segment.kind {
                        self.elements.push(Elements {
                            table: table_index.unwrap_or(0),
                            offset: Constant::of(&offset_expr)?,
                            len: match segment.items {
                                ElementItems::Functions(items) => items.count(),
                                ElementItems::Expressions(_, items) => items.count(),
                            },
                        });
                    }
                }
            }
            Payload::DataSection(segments) => {
                for segment in segments {
                    let segment = segment?;
                    if let DataKind::Active { offset_expr, .. } = segment.kind {
                        let offset = Constant::of(&offset_expr)?;
                        self.data.push(Data { offset, len: segment.data.len() });
                    }
                }
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            Payload::CustomSection(section) => match section.as_known() {
                KnownCustom::Name(names) => self.read_function_names(names)?,
                _ => self.custom.push((section.name(), section.data())),
            },
            _ => {}
        }
        Ok(())
    }

    /// The signature of a function; `None` for an invalid index or type.
    pub fn signature(&self, function: u32) -> Option<&FuncType> {
        self.type_of(*self.functions.get(function as usize)?)
    }

    /// The function type at a type index.
    pub fn type_of(&self, index: u32) -> Option<&FuncType> {
        self.types.get(index as usize)?.as_ref()
    }

    /// Number of imported functions.
    pub fn imported_functions(&self) -> usize {
        self.functions.len().saturating_sub(self.bodies.len())
    }

    /// Width of heap addresses. The replica ignores the width of an imported memory.
    pub fn address_width(&self) -> AddressWidth {
        match self.memories.first() {
            Some(memory) if memory.memory64 => AddressWidth::Bits64,
            _ => AddressWidth::Bits32,
        }
    }

    /// Initial size of the heap, 0 without a heap.
    pub fn initial_pages(&self) -> WasmPages {
        WasmPages(self.memories.first().map_or(0, |memory| memory.initial))
    }

    /// Reads function names, which the replica uses for backtraces. It refuses a module in which
    /// they cannot be read.
    fn read_function_names(
        &mut self,
        names: NameSectionReader<'a>,
    ) -> Result<(), BinaryReaderError> {
        for subsection in names {
            if let Name::Function(functions) = subsection? {
                for function in functions {
                    let Naming { index, name } = function?;
                    self.function_names.push((index, name));
                }
            }
        }
        Ok(())
    }
}
