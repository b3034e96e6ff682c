//! Re-encodes a module with charges, stable memory and exports added.
//!
//! Index spaces of the new module:
//!
//! ```text
//!   functions  remaining imports │ host functions │ the module's │ helpers, stable calls, long copies │ …
//!   globals    the module's │ counter │ accessible │ writable │ calls, bytes │ … │ …
//!   memories   heap │ stable │ byte map │ page map, if touching pages is charged │ …
//! ```
//!
//! The parts of the profiled form come last: two functions and a wrapper for each import, globals,
//! a memory.

use wasm_encoder::reencode::{Reencode, utils};
use wasm_encoder::{
    BlockType, BranchHints, CodeSection, ConstExpr, DataCountSection, DataSection, DataSegment,
    DataSegmentMode, ElementSection, EntityType, ExportKind, ExportSection, Function,
    FunctionSection, GlobalSection, GlobalType, ImportSection, MemorySection, MemoryType, Module,
    TableSection, TypeSection, ValType,
};
use wasmparser::{
    ElementItems, ExternalKind, FunctionBody, Operator, Parser, Payload, TableInit, TypeRef,
};

use super::body::{Bodies, FunctionMap, Metering, Wide};
use super::instrumented::page_map::{self, PageMap};
use super::instrumented::profiled::{self, Profiler};
use super::instrumented::{Data, Error, Globals, HOST, Instrumented, TABLE};
use super::stable::{self, Added, Api, Counted, Direction};
use crate::rules::Rules;
use crate::system_api::functions::{AddressWidth, SystemCall};
use crate::units::{OS_PAGE, WASM_PAGE};

/// The stable calls that become functions of the module.
const STABLE_CALLS: [&str; 8] = [
    "stable_size",
    "stable_grow",
    "stable_read",
    "stable_write",
    "stable64_size",
    "stable64_grow",
    "stable64_read",
    "stable64_write",
];

/// True if the System API call becomes a function of the module.
pub fn is_stable_call(name: &str) -> bool {
    STABLE_CALLS.contains(&name)
}

/// Number of functions that rewritten modules import from the host, after the other imports.
pub const HOST_FUNCTIONS: u32 = 4;

/// A thousand less than the engine allows.
const MANY_LOCALS: u32 = 49_000;

/// Globals that rewriting adds, besides two for each stable call. Each is an i64, initially 0.
const ADDED_GLOBALS: u32 = 3;

/// Rewrites `wasm`, which must have passed validation.
///
/// # Errors
///
/// If an operator has no price, or the module contains what validation refuses.
pub fn instrument(wasm: &[u8], metering: Metering, rules: Rules) -> Result<Instrumented, Error> {
    let sections = Sections::parse(wasm)?;
    Rewriter::new(&sections, metering, rules)?.rewrite()
}

struct Rewriter<'s, 'a> {
    sections: &'s Sections<'a>,
    address_width: AddressWidth,
    metering: Metering,
    rules: Rules,
    map: FunctionMap,
    added: Added,
    /// Charges the size operand on top of the stack and leaves it there.
    charge_size: u32,
    /// The stable calls that the module imports.
    stable_calls: Vec<&'static str>,
    /// Functions behind the wrappers of imports in the profiled form.
    unframed: Vec<u32>,
    /// Functions that take arguments on the stack as 64 bits.
    wide: Wide,
    /// Index of the first of their types.
    first_wide_type: u32,
    /// Index of the first added function type.
    first_added_type: u32,
    /// True if a function drops a segment.
    drops_segments: bool,
}

/// Added function types, in order, starting at `first_added_type`.
fn added_types(size: ValType) -> Vec<(Vec<ValType>, Vec<ValType>)> {
    use ValType::{I32, I64};
    vec![
        (vec![], vec![]),
        (vec![size, size], vec![size]),
        (vec![I64, I64, I32], vec![I32]),
        (vec![I32], vec![]),
        (vec![size], vec![size]),
    ]
}

impl<'s, 'a> Rewriter<'s, 'a> {
    fn new(sections: &'s Sections<'a>, metering: Metering, rules: Rules) -> Result<Self, Error> {
        let address_width = match sections.memory {
            Some(memory) if memory.memory64 => AddressWidth::Bits64,
            _ => AddressWidth::Bits32,
        };
        let mut map = Vec::new();
        let mut stable_calls = Vec::new();
        let mut kept = 0;
        // Placeholder until the number of functions is known.
        const LATER: u32 = u32::MAX;
        for import in &sections.imports {
            let TypeRef::Func(_) = import.ty else {
                return Err(Error::Unsupported("an import that is not a function"));
            };
            match STABLE_CALLS.iter().find(|name| **name == import.name) {
                Some(name) => {
                    stable_calls.push(*name);
                    map.push(LATER);
                }
                None => {
                    map.push(kept);
                    kept += 1;
                }
            }
        }
        let first_host = kept;
        let first_own = first_host + HOST_FUNCTIONS;
        let own = u32::try_from(sections.functions.len())
            .map_err(|_| Error::Unsupported("more than 4 G functions"))?;
        map.extend(first_own..first_own + own);
        let charge_size = first_own + own;
        let later = map.iter_mut().filter(|slot| **slot == LATER);
        for (index, slot) in (charge_size + 1..).zip(later) {
            *slot = index;
        }
        let globals = sections.globals.len() as u32;
        let imports = sections.imports.len();
        let page_map =
            (rules.charges_touches() && metering != Metering::Off).then_some(PageMap { memory: 3 });
        let mut unframed = Vec::new();
        let mut profiler = None;
        if metering == Metering::Profiled {
            let long = long_copies(&stable_calls, address_width).len();
            let enter = charge_size + 1 + (stable_calls.len() + long) as u32;
            profiler = Some(Profiler {
                tree: if page_map.is_some() { 4 } else { 3 },
                globals: globals + ADDED_GLOBALS + 2 * stable_calls.len() as u32,
                enter,
                leave: enter + 1,
                counter: globals,
                pages: page_map.map(|map| (map, enter + 2)),
            });
            let framed = enter + 2 + u32::from(page_map.is_some())..;
            unframed = framed
                .zip(&mut map[..imports])
                .map(|(framed, slot)| std::mem::replace(slot, framed))
                .collect();
        }
        Ok(Self {
            sections,
            address_width,
            metering,
            rules,
            map: FunctionMap(map),
            added: Added {
                heap: 0,
                stable: 1,
                byte_map: 2,
                counter: globals,
                accessible: globals + 1,
                writable: globals + 2,
                out_of_instructions: first_host,
                heap_grown: first_host + 1,
                may_grow_stable: first_host + 2,
                fail: first_host + 3,
                metered: metering != Metering::Off,
                stable_os_pages: (rules.set().memory.stable.get() * WASM_PAGE / OS_PAGE)
                    .cast_signed(),
                os_page_written: rules.pages().stable_os_page_written.get().cast_signed(),
                page_map,
                profiler,
            },
            charge_size,
            stable_calls,
            unframed,
            wide: match sections.has_many_locals()? {
                true => Wide::default(),
                false => {
                    Wide::of(imports, &sections.functions, &sections.params, &sections.known()?)
                }
            },
            first_wide_type: 0,
            first_added_type: sections.params.len() as u32,
            drops_segments: false,
        })
    }

    /// Globals of the stable call with this number.
    fn counted(&self, number: usize) -> Counted {
        let calls = self.added.counter + ADDED_GLOBALS + 2 * number as u32;
        Counted { calls, bytes: calls + 1 }
    }

    fn size_type(&self) -> ValType {
        match self.address_width {
            AddressWidth::Bits32 => ValType::I32,
            AddressWidth::Bits64 => ValType::I64,
        }
    }

    fn rewrite(mut self) -> Result<Instrumented, Error> {
        let (data_section, data) = self.data()?;
        let (exports, globals) = self.exports()?;
        let (types, imports, functions) = (self.types()?, self.imports()?, self.functions());
        let (memories, heap_pages) = self.memories();
        let (code, hints) = self.code()?;

        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions);
        if let Some(reader) = self.sections.tables.clone() {
            let mut tables = TableSection::new();
            self.map.parse_table_section(&mut tables, reader)?;
            module.section(&tables);
        }
        module.section(&memories).section(&self.globals()?).section(&exports);
        if let Some(reader) = self.sections.elements.clone() {
            let mut elements = ElementSection::new();
            self.map.parse_element_section(&mut elements, reader)?;
            module.section(&elements);
        }
        if let Some(count) = self.sections.data_count {
            module.section(&DataCountSection { count });
        }
        module.section(&hints).section(&code);
        if !self.sections.data.is_empty() {
            module.section(&data_section);
        }
        Ok(Instrumented {
            wasm: module.finish(),
            address_width: self.address_width,
            has_heap: self.sections.memory.is_some(),
            heap_pages,
            globals,
            data,
            drops_segments: self.drops_segments,
            tracks_pages: self.added.page_map.is_some(),
            stable_calls: self
                .stable_calls
                .iter()
                .filter_map(|name| SystemCall::from_name(name))
                .collect(),
            has_start: self.sections.start.is_some(),
        })
    }

    fn types(&mut self) -> Result<TypeSection, Error> {
        let mut types = TypeSection::new();
        if let Some(reader) = self.sections.types.clone() {
            self.map.parse_type_section(&mut types, reader)?;
        }
        for (params, results) in added_types(self.size_type()) {
            types.ty().function(params, results);
        }
        // The types of stable calls, for each address width.
        for api in [Api::Stable32, Api::Stable64] {
            types.ty().function([api.address(); 3], []);
            types.ty().function([], [api.address()]);
            types.ty().function([api.address()], [api.address()]);
        }
        if self.added.profiler.is_some() {
            let sections = self.sections;
            for results in sections.results.iter().filter(|results| results.len() > 1) {
                let results: Vec<ValType> = self.val_types(results)?;
                types.ty().function([], results);
            }
        }
        self.first_wide_type = types.len();
        let sections = self.sections;
        for (ty, params) in self.wide.types(&sections.params) {
            let results = self.val_types(&sections.results[ty])?;
            types.ty().function(self.val_types(&params)?, results);
        }
        Ok(types)
    }

    fn val_types(&mut self, types: &[wasmparser::ValType]) -> Result<Vec<ValType>, Error> {
        types.iter().map(|ty| Ok(self.map.val_type(*ty)?)).collect()
    }

    /// The type of a block with the results of functions of type `ty`. Several results need their
    /// own type; those come after all others, in order.
    fn results(&mut self, ty: u32) -> Result<BlockType, Error> {
        let sections = self.sections;
        let all = &sections.results;
        let missing = || Error::Unsupported("a function without a type");
        let results = all.get(ty as usize).ok_or_else(missing)?;
        Ok(match results[..] {
            [] => BlockType::Empty,
            [result] => BlockType::Result(self.map.val_type(result)?),
            _ => {
                let before = all[..ty as usize].iter().filter(|results| results.len() > 1).count();
                let last = self.first_added_type + added_types(self.size_type()).len() as u32 + 6;
                BlockType::FunctionType(last + before as u32)
            }
        })
    }

    fn imports(&self) -> Result<ImportSection, Error> {
        let mut imports = ImportSection::new();
        for import in &self.sections.imports {
            if let TypeRef::Func(ty) = import.ty
                && !STABLE_CALLS.contains(&import.name)
            {
                imports.import(import.module, import.name, EntityType::Function(ty));
            }
        }
        let names = ["out_of_instructions", "heap_grown", "may_grow_stable", "fail"];
        for (name, ty) in names.iter().zip(self.first_added_type..) {
            imports.import(HOST, name, EntityType::Function(ty));
        }
        Ok(imports)
    }

    fn functions(&self) -> FunctionSection {
        let mut functions = FunctionSection::new();
        let imported = self.sections.imports.len() as u32;
        for (index, ty) in (imported..).zip(&self.sections.functions) {
            let wide = self.wide.position(index).map(|position| self.first_wide_type + position);
            functions.function(wide.unwrap_or(*ty));
        }
        functions.function(self.first_added_type + 4);
        let long = long_copies(&self.stable_calls, self.address_width);
        for name in self.stable_calls.iter().copied().chain(long) {
            let (api, rest) = stable_call(name);
            let base = self.first_added_type
                + 5
                + match api {
                    Api::Stable32 => 0,
                    Api::Stable64 => 3,
                };
            functions.function(match rest {
                "size" => base + 1,
                "grow" => base + 2,
                _ => base,
            });
        }
        if self.added.profiler.is_some() {
            functions.function(self.first_added_type + 3).function(self.first_added_type);
            if self.added.page_map.is_some() {
                functions.function(self.first_added_type);
            }
            for import in &self.sections.imports {
                if let TypeRef::Func(ty) = import.ty {
                    functions.function(ty);
                }
            }
        }
        functions
    }

    fn memories(&self) -> (MemorySection, u64) {
        let limits = &self.rules.set().memory;
        let mut memories = MemorySection::new();
        let largest = match self.address_width {
            AddressWidth::Bits32 => limits.heap32,
            AddressWidth::Bits64 => limits.heap64,
        };
        // A canister without a heap gets an empty one, so that memory indices are fixed.
        let (minimum, maximum) = self.sections.memory.map_or((0, 0), |memory| {
            (memory.initial, memory.maximum.unwrap_or(u64::MAX).min(largest.get()))
        });
        let stable = limits.stable.get();
        let page_map = self.added.page_map.map(|_| {
            let pages = page_map::size(limits.stable);
            (pages, pages, false)
        });
        let byte_map = stable * WASM_PAGE / OS_PAGE / WASM_PAGE;
        let tree = self.added.profiler.map(|_| (profiled::PAGES, profiled::PAGES, false));
        for (minimum, maximum, memory64) in [
            (minimum, maximum, self.address_width == AddressWidth::Bits64),
            (0, stable, true),
            (byte_map, byte_map, false),
        ]
        .into_iter()
        .chain(page_map)
        .chain(tree)
        {
            memories.memory(MemoryType {
                minimum,
                maximum: Some(maximum),
                memory64,
                shared: false,
                page_size_log2: None,
            });
        }
        (memories, minimum)
    }

    fn globals(&mut self) -> Result<GlobalSection, Error> {
        let mut globals = GlobalSection::new();
        for global in &self.sections.globals {
            utils::parse_global(&mut self.map, &mut globals, global.clone())?;
        }
        for _ in 0..ADDED_GLOBALS + 2 * self.stable_calls.len() as u32 {
            globals.global(
                GlobalType { val_type: ValType::I64, mutable: true, shared: false },
                &ConstExpr::i64_const(0),
            );
        }
        for (_, val_type, first) in self.added.profiler.iter().flat_map(|_| profiled::GLOBALS) {
            let first = match val_type {
                ValType::I32 => ConstExpr::i32_const(first),
                _ => ConstExpr::i64_const(first.into()),
            };
            globals.global(GlobalType { val_type, mutable: true, shared: false }, &first);
        }
        Ok(globals)
    }

    fn exports(&mut self) -> Result<(ExportSection, Globals), Error> {
        let mut exports = ExportSection::new();
        for export in &self.sections.exports {
            if matches!(export.kind, ExternalKind::Func) {
                let function = self.map.function_index(export.index)?;
                // The prefix prevents collisions with the added exports.
                exports.export(&format!("function {}", export.name), ExportKind::Func, function);
            }
        }
        let mut mutable = Vec::new();
        for (index, global) in (0..).zip(&self.sections.globals) {
            if global.ty.mutable {
                exports.export(&format!("global {index}"), ExportKind::Global, index);
                mutable.push((index, global.ty.content_type));
            }
        }
        for (name, kind, index) in [
            ("heap", ExportKind::Memory, self.added.heap),
            ("stable", ExportKind::Memory, self.added.stable),
            ("byte map", ExportKind::Memory, self.added.byte_map),
            ("counter", ExportKind::Global, self.added.counter),
            ("accessible", ExportKind::Global, self.added.accessible),
            ("writable", ExportKind::Global, self.added.writable),
        ] {
            exports.export(name, kind, index);
        }
        if self.sections.tables.is_some() {
            exports.export(TABLE, ExportKind::Table, 0);
        }
        if let Some(map) = self.added.page_map {
            exports.export(page_map::EXPORT, ExportKind::Memory, map.memory);
        }
        for number in 0..self.stable_calls.len() {
            let Counted { calls, bytes } = self.counted(number);
            exports.export(&format!("calls {number}"), ExportKind::Global, calls);
            exports.export(&format!("bytes {number}"), ExportKind::Global, bytes);
        }
        if let Some(profiler) = self.added.profiler {
            exports.export(profiled::export::TREE, ExportKind::Memory, profiler.tree);
            for ((name, ..), index) in profiled::GLOBALS.iter().zip(profiler.globals..) {
                exports.export(name, ExportKind::Global, index);
            }
            if let Some((_, settle)) = profiler.pages {
                exports.export(profiled::export::SETTLE_PAGES, ExportKind::Func, settle);
            }
        }
        if let Some(start) = self.sections.start {
            exports.export("start", ExportKind::Func, self.map.function_index(start)?);
        }
        Ok((exports, mutable))
    }

    fn data(&mut self) -> Result<(DataSection, Data), Error> {
        let mut section = DataSection::new();
        let mut active = Vec::new();
        for data in &self.sections.data {
            match &data.kind {
                wasmparser::DataKind::Passive => {
                    section.passive(data.data.iter().copied());
                }
                wasmparser::DataKind::Active { offset_expr, .. } => {
                    let mut reader = offset_expr.get_operators_reader();
                    let address = match reader.read()? {
                        Operator::I32Const { value } => u64::from(value.cast_unsigned()),
                        Operator::I64Const { value } => value.cast_unsigned(),
                        _ => return Err(Error::Unsupported("a data offset that is not constant")),
                    };
                    active.push((address, data.data.to_vec()));
                    section
                        .segment(DataSegment { mode: DataSegmentMode::Passive, data: [0_u8; 0] });
                }
            }
        }
        Ok((section, active))
    }

    fn code(&mut self) -> Result<(CodeSection, BranchHints), Error> {
        let (mut code, mut hints) = (CodeSection::new(), BranchHints::new());
        let imported = self.sections.imports.len() as u32;
        let sections = self.sections;
        for ((index, body), ty) in (imported..).zip(&sections.bodies).zip(&sections.functions) {
            let params = sections
                .params
                .get(*ty as usize)
                .ok_or(Error::Unsupported("a function without a type"))?
                .len() as u32;
            let number = self.map.function_index(index)?;
            let results = self.results(*ty)?;
            let body = Bodies {
                map: &mut self.map,
                added: &self.added,
                charge_size: self.charge_size,
                address_width: self.address_width,
                metering: self.metering,
                rules: self.rules,
                wide: &self.wide,
            }
            .encode(index, body, params, results)?;
            code.function(&body.function);
            self.drops_segments |= body.drops_segments;
            if !body.hints.is_empty() {
                hints.function_hints(number, body.hints);
            }
        }
        code.function(&self.charge_size_function());
        let (added, heap) = (&self.added, self.address_width);
        let mut long = self.charge_size + 1 + self.stable_calls.len() as u32;
        let mut copies = Vec::new();
        for (number, name) in self.stable_calls.iter().enumerate() {
            let counted = self.counted(number);
            let (api, rest) = stable_call(name);
            let direction = match rest {
                "size" => {
                    code.function(&stable::size(added, counted, api));
                    continue;
                }
                "grow" => {
                    code.function(&stable::grow(added, counted, api));
                    continue;
                }
                "read" => Direction::Read,
                _ => Direction::Write,
            };
            let copy = stable::copy(added, counted, api, direction, heap);
            match heap {
                AddressWidth::Bits64 => {
                    code.function(&copy);
                }
                AddressWidth::Bits32 => {
                    code.function(&stable::short_copy(added, counted, api, direction, long));
                    long += 1;
                    copies.push(copy);
                }
            }
        }
        for copy in copies {
            code.function(&copy);
        }
        if let Some(profiler) = self.added.profiler {
            code.function(&profiler.enter_function()).function(&profiler.leave_function());
            if let Some(map) = self.added.page_map {
                code.function(&profiler.settle_pages_function(map));
            }
            let imports = (0..).zip(&self.sections.imports).zip(&self.unframed);
            for ((frame, import), target) in imports {
                let TypeRef::Func(ty) = import.ty else {
                    continue;
                };
                let params = self.sections.params.get(ty as usize).map_or(0, Vec::len);
                code.function(&profiler.framed(frame, params as u32, *target));
            }
        }
        Ok((code, hints))
    }

    fn charge_size_function(&self) -> Function {
        let (size, amount, scratch) = (0, 1, 2);
        let mut function = Function::new([(2, ValType::I64)]);
        let mut code = function.instructions();
        code.local_get(size);
        if self.address_width == AddressWidth::Bits32 {
            code.i64_extend_i32_u();
        }
        code.local_set(amount);
        stable::charge(&mut code, &self.added, amount, scratch);
        code.local_get(size).end();
        function
    }
}

/// Those stable calls of a module that have a second function, after the functions of all calls.
pub fn long_copies<'n>(calls: &[&'n str], heap: AddressWidth) -> Vec<&'n str> {
    let is_copy = |name: &&str| matches!(stable_call(name).1, "read" | "write");
    match heap {
        AddressWidth::Bits32 => calls.iter().copied().filter(is_copy).collect(),
        AddressWidth::Bits64 => Vec::new(),
    }
}

/// Splits `stable64_read` into its API and `read`.
fn stable_call(name: &str) -> (Api, &str) {
    match name.strip_prefix("stable64_") {
        Some(rest) => (Api::Stable64, rest),
        None => (Api::Stable32, name.strip_prefix("stable_").unwrap_or(name)),
    }
}

/// The sections of a module.
#[derive(Default)]
struct Sections<'a> {
    /// Function types.
    types: Option<wasmparser::TypeSectionReader<'a>>,
    /// Parameters of each function type.
    params: Vec<Vec<wasmparser::ValType>>,
    /// Results of each function type.
    results: Vec<Vec<wasmparser::ValType>>,
    /// Imports.
    imports: Vec<wasmparser::Import<'a>>,
    /// Type of each function of the module.
    functions: Vec<u32>,
    /// Tables.
    tables: Option<wasmparser::TableSectionReader<'a>>,
    /// The heap.
    memory: Option<wasmparser::MemoryType>,
    /// Globals.
    globals: Vec<wasmparser::Global<'a>>,
    /// Exports.
    exports: Vec<wasmparser::Export<'a>>,
    /// The start function.
    start: Option<u32>,
    /// Element segments.
    elements: Option<wasmparser::ElementSectionReader<'a>>,
    /// Number of data segments, from the data count section.
    data_count: Option<u32>,
    /// Bodies of the functions.
    bodies: Vec<FunctionBody<'a>>,
    /// Data segments.
    data: Vec<wasmparser::Data<'a>>,
}

impl<'a> Sections<'a> {
    /// Reads a valid module.
    ///
    /// # Errors
    ///
    /// If the module is not valid.
    fn parse(wasm: &'a [u8]) -> Result<Self, Error> {
        let mut sections = Self::default();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(reader) => {
                    for ty in reader.clone().into_iter_err_on_gc_types() {
                        let ty = ty?;
                        sections.params.push(ty.params().to_vec());
                        sections.results.push(ty.results().to_vec());
                    }
                    sections.types = Some(reader);
                }
                Payload::ImportSection(reader) => {
                    sections.imports = reader.into_imports().collect::<Result<_, _>>()?;
                }
                Payload::FunctionSection(reader) => {
                    sections.functions = reader.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::TableSection(reader) => sections.tables = Some(reader),
                Payload::MemorySection(reader) => {
                    sections.memory = reader.into_iter().next().transpose()?;
                }
                Payload::GlobalSection(reader) => {
                    sections.globals = reader.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::ExportSection(reader) => {
                    sections.exports = reader.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::StartSection { func, .. } => sections.start = Some(func),
                Payload::ElementSection(reader) => sections.elements = Some(reader),
                Payload::DataCountSection { count, .. } => sections.data_count = Some(count),
                Payload::CodeSectionEntry(body) => sections.bodies.push(body),
                Payload::DataSection(reader) => {
                    sections.data = reader.into_iter().collect::<Result<_, _>>()?;
                }
                _ => {}
            }
        }
        Ok(sections)
    }

    /// True if a function has so many locals that no more should be added.
    fn has_many_locals(&self) -> Result<bool, Error> {
        for body in &self.bodies {
            let mut locals = 0_u32;
            for local in body.get_locals_reader()? {
                locals = locals.saturating_add(local?.0);
            }
            if locals > MANY_LOCALS {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The functions that others than direct calls may reach, if only by a reference.
    fn known(&self) -> Result<Vec<u32>, Error> {
        let mut known: Vec<u32> = self.start.into_iter().collect();
        let functions = self.exports.iter().filter(|export| export.kind == ExternalKind::Func);
        known.extend(functions.map(|export| export.index));
        let mut referenced = |expression: wasmparser::ConstExpr<'_>| -> Result<(), Error> {
            for operator in expression.get_operators_reader() {
                if let Operator::RefFunc { function_index } = operator? {
                    known.push(function_index);
                }
            }
            Ok(())
        };
        for global in &self.globals {
            referenced(global.init_expr.clone())?;
        }
        for table in self.tables.clone().into_iter().flatten() {
            if let TableInit::Expr(expression) = table?.init {
                referenced(expression)?;
            }
        }
        let mut listed = Vec::new();
        for element in self.elements.clone().into_iter().flatten() {
            match element?.items {
                ElementItems::Functions(functions) => {
                    for function in functions {
                        listed.push(function?);
                    }
                }
                ElementItems::Expressions(_, expressions) => {
                    for expression in expressions {
                        referenced(expression?)?;
                    }
                }
            }
        }
        known.extend(listed);
        Ok(known)
    }
}
