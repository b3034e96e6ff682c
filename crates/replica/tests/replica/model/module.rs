//! A program as a WebAssembly module, and prices of what it does.
//!
//! ```text
//!   globals   0 the result: what operations return, mixed │ 1 number of turns
//!   locals    after the parameters: an address │ a number of rounds
//!   table     the callbacks
//! ```
//!
//! The prices of operators, calls and pages are those of `docs/metering.md`. They are written here
//! again, because the model must not share a mistake with the replica.

use stablebench_replica::{Principal, Rules};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataCountSection, DataSection, ElementSection, Elements,
    EntityType, ExportKind, ExportSection, Function, FunctionSection, GlobalSection, GlobalType,
    ImportSection, InstructionSink, MemArg, MemorySection, MemoryType, Module, RefType,
    TableSection, TableType, TypeSection, ValType,
};

use super::program::{Access, Api, Body, Call, End, Op, Program, Size, UPDATES, Value, Width};

/// Bytes of a canister's id.
pub const ID: u64 = 10;
/// Bytes of a method's name.
pub const METHOD: u64 = 2;
/// Canisters whose ids a program contains.
pub const CANISTERS: usize = 3;
/// Operators in a round of [`Op::Burn`]: two constants, `f64.min` and `drop`. The compiler removes
/// them, but they are charged.
pub const BURNS: usize = 500;

const RESULT: u32 = 0;
const TURNS: u32 = 1;

/// The passive data segment with [`names`].
const NAMES: u32 = 1;

/// The id of a canister on a subnet.
pub fn id(number: usize) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number as u8, 1, 1])
}

/// Names of update methods, whose length is [`METHOD`].
pub fn update_name(number: usize) -> String {
    format!("u{number}")
}

/// Names of query methods.
pub fn query_name(number: usize) -> String {
    format!("q{number}")
}

/// The bytes of the data segment at [`Program::names_at`].
pub fn names() -> Vec<u8> {
    let ids = (0..CANISTERS).flat_map(|number| id(number).as_slice().to_vec());
    ids.chain((0..UPDATES).flat_map(|number| update_name(number).into_bytes())).collect()
}

/// Address of a canister's id.
pub fn id_at(program: &Program, canister: usize) -> u64 {
    program.names_at + canister as u64 * ID
}

/// Address of a method's name.
pub fn method_at(program: &Program, method: usize) -> u64 {
    program.names_at + CANISTERS as u64 * ID + method as u64 * METHOD
}

macro_rules! imports {
    ($($variant:ident $name:literal ($($param:ident),*) -> ($($result:ident)?);)*) => {
        /// An imported function.
        #[derive(Clone, Copy)]
        enum Import { $($variant),* }

        /// Names, parameters and results.
        const IMPORTS: &[(&str, &[Type], &[Type])] = &[
            $(($name, &[$(Type::$param),*], &[$(Type::$result)?])),*
        ];
    };
}

#[derive(Clone, Copy)]
enum Type {
    I32,
    I64,
    /// As wide as an address.
    Size,
}

impl Type {
    fn of(self, width: Width) -> ValType {
        match (self, width) {
            (Self::I32, _) | (Self::Size, Width::Bits32) => ValType::I32,
            (Self::I64, _) | (Self::Size, Width::Bits64) => ValType::I64,
        }
    }
}

imports! {
    ArgumentCopy "msg_arg_data_copy" (Size, Size, Size) -> ();
    Append "msg_reply_data_append" (Size, Size) -> ();
    Reply "msg_reply" () -> ();
    Reject "msg_reject" (Size, Size) -> ();
    Trap "trap" (Size, Size) -> ();
    Counter "performance_counter" (I32) -> (I64);
    IsController "is_controller" (Size, Size) -> (I32);
    Certify "certified_data_set" (Size, Size) -> ();
    SetTimer "global_timer_set" (I64) -> (I64);
    CallNew "call_new" (Size, Size, Size, Size, Size, Size, Size, Size) -> ();
    OnCleanup "call_on_cleanup" (Size, Size) -> ();
    CallAppend "call_data_append" (Size, Size) -> ();
    CallPerform "call_perform" () -> (I32);
    Grow64 "stable64_grow" (I64) -> (I64);
    Read64 "stable64_read" (I64, I64, I64) -> ();
    Write64 "stable64_write" (I64, I64, I64) -> ();
    Grow32 "stable_grow" (I32) -> (I32);
    Read32 "stable_read" (I32, I32, I32) -> ();
    Write32 "stable_write" (I32, I32, I32) -> ();
}

/// Functions that only modules with 32-bit heaps import: the last ones.
const ONLY_32_BIT: usize = 3;

/// The module of a program. Canisters that run by themselves have no timer.
pub fn module(program: &Program, on_subnet: bool) -> Vec<u8> {
    let width = program.width;
    let address = Type::Size.of(width);
    let mut types = TypeSection::new();
    types.ty().function([], []);
    types.ty().function([address], []);
    let mut imports = ImportSection::new();
    let narrow = if width == Width::Bits32 { 0 } else { ONLY_32_BIT };
    let imported = &IMPORTS[..IMPORTS.len() - narrow];
    for (ty, (name, params, results)) in (2..).zip(imported) {
        let of = |types: &[Type]| types.iter().map(|ty| ty.of(width)).collect::<Vec<_>>();
        types.ty().function(of(params), of(results));
        imports.import("ic0", name, EntityType::Function(ty));
    }

    let first = imported.len() as u32;
    let mut functions = Functions {
        program,
        first,
        types: FunctionSection::new(),
        code: CodeSection::new(),
        exports: ExportSection::new(),
    };
    functions.add(&Body { ops: program.helper.clone(), end: End::Return }, 0, None);
    let mut elements = Vec::new();
    for callback in &program.callbacks {
        elements.push(functions.add(callback, 1, None));
    }
    for (number, body) in program.updates.iter().enumerate() {
        functions.add(body, 0, Some(format!("canister_update {}", update_name(number))));
    }
    for (number, body) in program.queries.iter().enumerate() {
        functions.add(body, 0, Some(format!("canister_query {}", query_name(number))));
    }
    functions.add(&program.composite, 0, Some("canister_composite_query c".to_owned()));
    for (name, body) in [
        ("canister_update burn", program.burning(&program.updates[0])),
        ("canister_query burn_query", program.burning(&program.queries[0])),
        ("canister_init", program.init.clone()),
        ("canister_pre_upgrade", program.pre_upgrade.clone()),
        ("canister_post_upgrade", program.post_upgrade.clone()),
    ] {
        functions.add(&body, 0, Some(name.to_owned()));
    }
    if on_subnet {
        functions.add(&program.timer, 0, Some("canister_global_timer".to_owned()));
    }

    let mut tables = TableSection::new();
    tables.table(TableType {
        element_type: RefType::FUNCREF,
        table64: false,
        minimum: elements.len() as u64,
        maximum: None,
        shared: false,
    });
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: program.pages,
        maximum: Some(program.largest),
        memory64: width == Width::Bits64,
        shared: false,
        page_size_log2: None,
    });
    let mut globals = GlobalSection::new();
    let ty = GlobalType { val_type: ValType::I64, mutable: true, shared: false };
    globals.global(ty, &ConstExpr::i64_const(program.seed.cast_signed()));
    globals.global(ty, &ConstExpr::i64_const(0));
    let mut segments = ElementSection::new();
    let offset = ConstExpr::i32_const(0);
    segments.active(None, &offset, Elements::Functions(elements.into()));
    let mut data = DataSection::new();
    let offset = match width {
        Width::Bits32 => ConstExpr::i32_const(program.names_at as i32),
        Width::Bits64 => ConstExpr::i64_const(program.names_at.cast_signed()),
    };
    data.active(0, &offset, names());
    data.passive(names());

    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions.types).section(&tables);
    module.section(&memories).section(&globals).section(&functions.exports);
    module.section(&segments).section(&DataCountSection { count: data.len() });
    module.section(&functions.code).section(&data);
    module.finish()
}

struct Functions<'p> {
    program: &'p Program,
    /// Index of the first function that is not imported: the helper.
    first: u32,
    types: FunctionSection,
    code: CodeSection,
    exports: ExportSection,
}

impl Functions<'_> {
    fn add(&mut self, body: &Body, params: u32, export: Option<String>) -> u32 {
        let index = self.first + self.types.len();
        self.types.function(params);
        let mut function =
            Function::new([(1, Type::Size.of(self.program.width)), (1, ValType::I32)]);
        let (at, rounds) = (params, params + 1);
        let code = function.instructions();
        let mut encoder = Encoder { program: self.program, helper: self.first, code, at, rounds };
        body.ops.iter().for_each(|op| encoder.op(op));
        encoder.end(body.end);
        self.code.function(&function);
        if let Some(name) = export {
            self.exports.export(&name, ExportKind::Func, index);
        }
        index
    }
}

const WORD: MemArg = MemArg { offset: 0, align: 0, memory_index: 0 };

struct Encoder<'p, 'f> {
    program: &'p Program,
    helper: u32,
    code: InstructionSink<'f>,
    at: u32,
    rounds: u32,
}

impl Encoder<'_, '_> {
    fn op(&mut self, op: &Op) {
        match *op {
            Op::Store { at, size, value } => {
                self.address(at);
                self.value(value);
                self.store(size);
            }
            Op::Load { at, size } => {
                self.code.global_get(RESULT);
                self.address(at);
                self.load(size);
                self.mix();
            }
            Op::Fill { at, byte, length } => {
                self.address(at);
                self.code.i32_const(byte.into());
                self.address(length);
                self.code.memory_fill(0);
            }
            Op::Copy { to, from, length } => {
                self.addresses([to, from, length]);
                self.code.memory_copy(0, 0);
            }
            Op::Grow { pages } => {
                self.code.global_get(RESULT);
                self.address(pages);
                self.code.memory_grow(0);
                self.extend(self.program.width == Width::Bits32);
                self.mix();
            }
            Op::StableGrow { api, pages } => {
                self.code.global_get(RESULT);
                self.stable_addresses(api, [pages]);
                self.import(if api == Api::Stable32 { Import::Grow32 } else { Import::Grow64 });
                self.extend(api == Api::Stable32);
                self.mix();
            }
            Op::StableRead { api, to, from, length } => {
                self.stable_addresses(api, [to, from, length]);
                self.import(if api == Api::Stable32 { Import::Read32 } else { Import::Read64 });
            }
            Op::StableWrite { api, to, from, length } => {
                self.stable_addresses(api, [to, from, length]);
                self.import(if api == Api::Stable32 { Import::Write32 } else { Import::Write64 });
            }
            Op::ArgumentCopy { to, from, length } => {
                self.addresses([to, from, length]);
                self.import(Import::ArgumentCopy);
            }
            Op::ArgumentPart { to, length_at } => {
                self.addresses([to, 0, length_at]);
                match self.program.width {
                    Width::Bits32 => self.code.i32_load(WORD),
                    Width::Bits64 => self.code.i64_load32_u(WORD),
                };
                self.import(Import::ArgumentCopy);
            }
            Op::Append { at, length } => {
                self.addresses([at, length]);
                self.import(Import::Append);
            }
            Op::Counter => {
                self.code.global_get(RESULT).i32_const(0);
                self.import(Import::Counter);
                self.mix();
            }
            Op::IsController { at, length } => {
                self.code.global_get(RESULT);
                self.addresses([at, length]);
                self.import(Import::IsController);
                self.extend(true);
                self.mix();
            }
            Op::Certify { at, length } => {
                self.addresses([at, length]);
                self.import(Import::Certify);
            }
            Op::Turn => {
                self.code.global_get(TURNS).i64_const(1).i64_add().global_set(TURNS);
            }
            Op::Cut => {
                self.code.block(BlockType::Empty).end();
            }
            Op::Helper => {
                self.code.call(self.helper);
            }
            Op::Stride { first, step, count, access } => self.stride(first, step, count, access),
            Op::Burn { at } => self.burn(at),
            Op::Call(call) => self.call(&call),
            Op::SetTimer { at } => {
                self.code.global_get(RESULT).i64_const(at.cast_signed());
                self.import(Import::SetTimer);
                self.mix();
            }
        }
    }

    fn end(&mut self, end: End) {
        match end {
            End::Return => {}
            End::Reply => self.import(Import::Reply),
            End::ReplyResult => {
                self.address(self.program.result_at);
                self.code.global_get(RESULT).i64_store(WORD);
                self.addresses([self.program.result_at, 8]);
                self.import(Import::Append);
                self.import(Import::Reply);
            }
            End::Reject => {
                self.addresses([0, 0]);
                self.import(Import::Reject);
            }
            End::Unreachable => {
                self.code.unreachable();
            }
            End::CallTrap => {
                self.addresses([0, 0]);
                self.import(Import::Trap);
            }
        }
        self.code.end();
    }

    fn stride(&mut self, first: u64, step: u64, count: u32, access: Access) {
        let (at, rounds) = (self.at, self.rounds);
        self.address(first);
        self.code.local_set(at).i32_const(count.cast_signed()).local_set(rounds);
        self.code.loop_(BlockType::Empty);
        if matches!(access, Access::Load | Access::LoadAndStore(_)) {
            self.code.global_get(RESULT).local_get(at).i64_load(WORD);
            self.mix();
        }
        if let Access::Store(value) | Access::LoadAndStore(value) = access {
            self.code.local_get(at);
            self.value(value);
            self.code.i64_store(WORD);
        }
        self.code.local_get(at);
        self.address(step);
        match self.program.width {
            Width::Bits32 => self.code.i32_add(),
            Width::Bits64 => self.code.i64_add(),
        };
        self.code.local_set(at);
        self.next_round();
    }

    fn burn(&mut self, at: u64) {
        self.addresses([at, 0, 12]);
        self.import(Import::ArgumentCopy);
        for (at, burns) in [(at, BURNS), (at + 4, 0)] {
            self.address(at);
            self.code.i32_load(WORD).local_set(self.rounds).loop_(BlockType::Empty);
            for _ in 0..burns {
                self.code.f64_const(0.0.into()).f64_const(0.0.into()).f64_min().drop();
            }
            self.next_round();
        }
    }

    /// Ends a loop that is repeated until no rounds are left.
    fn next_round(&mut self) {
        let rounds = self.rounds;
        self.code.local_get(rounds).i32_const(1).i32_sub().local_tee(rounds).br_if(0).end();
    }

    fn call(&mut self, call: &Call) {
        // The names may have been overwritten.
        self.address(self.program.names_at);
        self.code.i32_const(0).i32_const(names().len() as i32).memory_init(0, NAMES);
        let (id, method) =
            (id_at(self.program, call.canister), method_at(self.program, call.method));
        self.addresses([id, ID, method, METHOD, call.on_reply as u64, 0, call.on_reject as u64, 0]);
        self.import(Import::CallNew);
        if let Some(cleanup) = call.on_cleanup {
            self.addresses([cleanup as u64, 0]);
            self.import(Import::OnCleanup);
        }
        self.addresses([call.at, call.length]);
        self.import(Import::CallAppend);
        self.code.global_get(RESULT);
        self.import(Import::CallPerform);
        self.extend(true);
        self.mix();
    }

    fn import(&mut self, import: Import) {
        self.code.call(import as u32);
    }

    fn address(&mut self, at: u64) {
        match self.program.width {
            Width::Bits32 => self.code.i32_const((at as u32).cast_signed()),
            Width::Bits64 => self.code.i64_const(at.cast_signed()),
        };
    }

    fn addresses<const COUNT: usize>(&mut self, addresses: [u64; COUNT]) {
        addresses.into_iter().for_each(|at| self.address(at));
    }

    fn stable_addresses<const COUNT: usize>(&mut self, api: Api, addresses: [u64; COUNT]) {
        for at in addresses {
            match api {
                Api::Stable32 => self.code.i32_const((at as u32).cast_signed()),
                Api::Stable64 => self.code.i64_const(at.cast_signed()),
            };
        }
    }

    fn value(&mut self, value: Value) {
        match value {
            Value::Constant(value) => self.code.i64_const(value.cast_signed()),
            Value::Turn(value) => {
                self.code.global_get(TURNS).i64_const(value.cast_signed()).i64_xor()
            }
        };
    }

    fn store(&mut self, size: Size) {
        match size {
            Size::One => self.code.i64_store8(WORD),
            Size::Two => self.code.i64_store16(WORD),
            Size::Four => self.code.i64_store32(WORD),
            Size::Eight => self.code.i64_store(WORD),
        };
    }

    fn load(&mut self, size: Size) {
        match size {
            Size::One => self.code.i64_load8_u(WORD),
            Size::Two => self.code.i64_load16_u(WORD),
            Size::Four => self.code.i64_load32_u(WORD),
            Size::Eight => self.code.i64_load(WORD),
        };
    }

    fn extend(&mut self, narrow: bool) {
        if narrow {
            self.code.i64_extend_i32_s();
        }
    }

    /// Mixes the number on the stack into the result, which is below it.
    fn mix(&mut self) {
        self.code.i64_xor().i64_const(1).i64_rotl().global_set(RESULT);
    }
}

/// A call, its operands and the operators around it.
const CALL: u64 = 5;
const CONSTANT: u64 = 1;
const LOCAL: u64 = 1;
const GLOBAL: u64 = 2;
const ARITHMETIC: u64 = 1;
const EXTEND: u64 = 1;
const BRANCH: u64 = 2;
const UNREACHABLE: u64 = 1;
const BULK: u64 = 100;
const MEMORY_GROW: u64 = 300;
const F64_MIN: u64 = 18;
const DROP: u64 = 1;

/// The first run of a function costs so much more.
pub const FUNCTION: u64 = 1;

/// System API calls, without the operator.
pub mod system {
    pub const MOST: u64 = 500;
    pub const PERFORMANCE_COUNTER: u64 = 200;
    pub const IS_CONTROLLER: u64 = 1_000;
    pub const CALL_NEW: u64 = 1_500;
    pub const CALL_PERFORM: u64 = 5_000;
    pub const BYTE_TRANSMITTED: u64 = 50;
    pub const STABLE_GROW: u64 = 100;
    pub const STABLE_COPY: u64 = 20;
}

/// Prices of pages.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// A stable page of 4 KiB that is written for the first time.
    pub stable_written: u64,
    /// A heap page of 4 KiB that changed.
    pub heap_changed: u64,
    /// The first touch of a Wasm page; as much for the first write.
    pub touched: Option<u64>,
}

impl Pages {
    pub fn of(rules: Rules, width: Width) -> Self {
        let wide = if width == Width::Bits64 { 4 } else { 1 };
        match rules.name() {
            "2025-10" => Self { stable_written: 1_000, heap_changed: 1_000 * wide, touched: None },
            "2026-08" => Self { stable_written: 0, heap_changed: 0, touched: Some(80_000) },
            other => panic!("the model has no prices of {other}"),
        }
    }
}

/// Operator prices in a module with addresses of a width.
#[derive(Clone, Copy)]
pub struct Operators(pub Width);

impl Operators {
    fn memory(self) -> u64 {
        match self.0 {
            Width::Bits32 => 1,
            Width::Bits64 => 2,
        }
    }

    /// Operators that mix a number into the result, with the `global.get` before it.
    fn mix(self) -> u64 {
        GLOBAL + ARITHMETIC + CONSTANT + ARITHMETIC + GLOBAL
    }

    fn value(self, value: Value) -> u64 {
        match value {
            Value::Constant(_) => CONSTANT,
            Value::Turn(_) => GLOBAL + CONSTANT + ARITHMETIC,
        }
    }

    /// The operators of an operation that belong to the run in which it begins.
    pub fn of(self, op: &Op) -> u64 {
        let narrow = if self.0 == Width::Bits32 { EXTEND } else { 0 };
        let extend = |api| if api == Api::Stable32 { EXTEND } else { 0 };
        match *op {
            Op::Store { value, .. } => CONSTANT + self.value(value) + self.memory(),
            Op::Load { .. } => CONSTANT + self.memory() + self.mix(),
            Op::Fill { .. } | Op::Copy { .. } => 3 * CONSTANT + BULK,
            Op::Grow { .. } => CONSTANT + MEMORY_GROW + narrow + self.mix(),
            Op::StableGrow { api, .. } => CONSTANT + CALL + extend(api) + self.mix(),
            Op::StableRead { .. } | Op::StableWrite { .. } | Op::ArgumentCopy { .. } => {
                3 * CONSTANT + CALL
            }
            Op::ArgumentPart { .. } => 3 * CONSTANT + self.memory() + CALL,
            Op::Append { .. } | Op::Certify { .. } => 2 * CONSTANT + CALL,
            Op::Counter | Op::SetTimer { .. } => CONSTANT + CALL + self.mix(),
            Op::IsController { .. } => 2 * CONSTANT + CALL + EXTEND + self.mix(),
            Op::Turn => GLOBAL + CONSTANT + ARITHMETIC + GLOBAL,
            Op::Cut => 0,
            Op::Helper => CALL,
            Op::Stride { .. } => 2 * CONSTANT + 2 * LOCAL,
            Op::Burn { .. } => 3 * CONSTANT + CALL + self.rounds(),
            Op::Call(Call { on_cleanup, .. }) => {
                let cleanup = on_cleanup.map_or(0, |_| 2 * CONSTANT + CALL);
                let init = 3 * CONSTANT + BULK;
                init + 8 * CONSTANT
                    + CALL
                    + cleanup
                    + 2 * CONSTANT
                    + CALL
                    + CALL
                    + EXTEND
                    + self.mix()
            }
        }
    }

    /// The operators at the end of a function.
    pub fn of_end(self, end: End) -> u64 {
        match end {
            End::Return => 0,
            End::Reply => CALL,
            End::ReplyResult => CONSTANT + GLOBAL + self.memory() + 2 * CONSTANT + 2 * CALL,
            End::Reject | End::CallTrap => 2 * CONSTANT + CALL,
            End::Unreachable => UNREACHABLE,
        }
    }

    /// The operators that load the number of rounds of a loop in [`Op::Burn`].
    pub fn rounds(self) -> u64 {
        CONSTANT + self.memory() + LOCAL
    }

    /// The operators that end a round.
    fn next_round(self) -> u64 {
        LOCAL + CONSTANT + ARITHMETIC + LOCAL + BRANCH
    }

    /// A round of each loop in [`Op::Burn`].
    pub fn burns(self) -> [u64; 2] {
        [BURNS as u64 * (2 * CONSTANT + F64_MIN + DROP) + self.next_round(), self.next_round()]
    }

    /// A round of [`Op::Stride`].
    pub fn stride(self, access: Access) -> u64 {
        let load = LOCAL + self.memory() + self.mix();
        let store = |value| LOCAL + self.value(value) + self.memory();
        let access = match access {
            Access::Load => load,
            Access::Store(value) => store(value),
            Access::LoadAndStore(value) => load + store(value),
        };
        access + LOCAL + CONSTANT + ARITHMETIC + LOCAL + self.next_round()
    }
}
