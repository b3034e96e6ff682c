//! The System API of stable memory as WebAssembly functions.
//!
//! Stable memory is a second memory with 64-bit addresses. A third memory, the byte map, has one
//! byte for each 4 KiB page of it:
//!
//! ```text
//!   bit 0  written in this message
//!   bit 1  read or written in this message
//!   bit 2  its Wasm page was charged as touched   under rules that
//!   bit 3  its Wasm page was charged as written    charge for that
//! ```
//!
//! These frequent calls never leave WebAssembly. Charges and the order of checks follow the
//! replica's `rs/embedders/src/wasm_utils/system_api_replacements.rs`:
//!
//! ```text
//!   20 + bytes → bounds → pages accessed → pages written
//!              → 1 000 per page written for the first time → mark → copy
//! ```
//!
//! Under rules that charge for touched Wasm pages, the price of those replaces the 1 000. It is
//! charged after the copy and checked against the limit at the next check.
//!
//! Each function also counts its calls in a global at its start, and copied bytes after the copy.
//! This is not metered.

use wasm_encoder::{BlockType, Function, InstructionSink, MemArg, ValType};

use super::instrumented::page_map::{self, PageMap};
use super::instrumented::profiled::{OS_PAGES_FRAME, Profiler, STABLE_PAGE_FRAME};
use crate::rules::{STABLE_READ_COST, STABLE_WRITE_COST};
use crate::system_api::functions::AddressWidth;

/// Indices that these functions use.
#[derive(Clone, Copy, Debug)]
pub struct Added {
    /// Memory index of the heap.
    pub heap: u32,
    /// Memory index of stable memory.
    pub stable: u32,
    /// Memory index of the byte map.
    pub byte_map: u32,
    /// Global: instructions left of the slice.
    pub counter: u32,
    /// Global: stable pages that this message may still access.
    pub accessible: u32,
    /// Global: stable pages that this message may still write.
    pub writable: u32,
    /// Host function: the slice is used up.
    pub out_of_instructions: u32,
    /// Host function: the heap has grown.
    pub heap_grown: u32,
    /// Host function: returns whether stable memory may grow.
    pub may_grow_stable: u32,
    /// Host function: ends the message with the error of a code.
    pub fail: u32,
    /// True if anything is charged.
    pub metered: bool,
    /// Number of stable pages of 4 KiB that the byte map has.
    pub stable_os_pages: i64,
    /// Price of the first write to a stable page of 4 KiB.
    pub os_page_written: i64,
    /// The map of touched Wasm pages, if touching is charged.
    pub page_map: Option<PageMap>,
    /// The profiler, in the profiled form.
    pub profiler: Option<Profiler>,
}

/// Globals that count the calls of one function.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Global: number of calls.
    pub calls: u32,
    /// Global: number of bytes copied.
    pub bytes: u32,
}

impl Counted {
    /// Counts a call at its start.
    fn count(self, code: &mut InstructionSink<'_>) {
        code.global_get(self.calls).i64_const(1).i64_add().global_set(self.calls);
    }
}

/// Error codes that these functions report to the host.
pub mod failure {
    /// An address outside of the heap.
    pub const HEAP_OUT_OF_BOUNDS: i32 = 0;
    /// An address outside of stable memory.
    pub const STABLE_OUT_OF_BOUNDS: i32 = 1;
    /// A 32-bit call on more than 4 GiB.
    pub const STABLE_TOO_BIG: i32 = 2;
    /// The message accessed too many stable pages.
    pub const ACCESS_LIMIT: i32 = 3;
    /// The message wrote too many stable pages.
    pub const WRITE_LIMIT: i32 = 4;
}

const PAGES_OF_4_GIB: i64 = 65_536;
const ACCESSED: i32 = 2;
const WRITTEN_AND_ACCESSED: i32 = 3;
/// Set in addition if the surrounding Wasm page was charged as touched, and as written.
const TOUCH_CHARGED: i32 = 4;
const WRITE_CHARGED: i32 = 8;
/// Longest copy made with loads and stores; a longer one calls the engine's copy routine.
const SHORT_COPY: i64 = 128;

/// Charges the i64 in local `amount`, saturating, and checks the counter.
pub fn charge(code: &mut InstructionSink<'_>, added: &Added, amount: u32, scratch: u32) {
    if !added.metered {
        return;
    }
    subtract(code, added, amount, scratch);
    check(code, added);
}

/// Subtracts the i64 in local `amount` from the counter, saturating.
fn subtract(code: &mut InstructionSink<'_>, added: &Added, amount: u32, scratch: u32) {
    code.global_get(added.counter)
        .local_get(amount)
        .i64_sub()
        .local_tee(scratch)
        .i64_const(i64::MIN)
        .local_get(scratch)
        .global_get(added.counter)
        .i64_le_s()
        .select()
        .global_set(added.counter);
}

/// Calls the host if the counter is negative.
pub fn check(code: &mut InstructionSink<'_>, added: &Added) {
    if let Some(profiler) = added.profiler {
        profiler.settle_pages(code);
    }
    code.global_get(added.counter);
    added.push_charges(code);
    code.i64_lt_s().if_(BlockType::Empty).call(added.out_of_instructions).end();
}

impl Added {
    /// Pushes the lower bound of the counter: charges for heap pages that are not subtracted from
    /// it yet.
    pub fn push_charges(&self, code: &mut InstructionSink<'_>) {
        match self.page_map {
            Some(map) => map.load(code, page_map::offset::CHARGES),
            None => {
                code.i64_const(0);
            }
        }
    }
}

fn fail_if(code: &mut InstructionSink<'_>, added: &Added, failure: i32) {
    code.if_(BlockType::Empty).i32_const(failure).call(added.fail).end();
}

/// The 32-bit or 64-bit API of stable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `stable_*`.
    Stable32,
    /// `stable64_*`.
    Stable64,
}

impl Api {
    /// Type of an address and a length.
    pub fn address(self) -> ValType {
        match self {
            Self::Stable32 => ValType::I32,
            Self::Stable64 => ValType::I64,
        }
    }

    /// The number of the API in calls to the host.
    pub fn number(self) -> i32 {
        match self {
            Self::Stable32 => 0,
            Self::Stable64 => 1,
        }
    }
}

/// `stable_size() → pages`.
pub fn size(added: &Added, counted: Counted, api: Api) -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    counted.count(&mut code);
    if api == Api::Stable32 {
        fail_if_too_big(&mut code, added);
    }
    code.memory_size(added.stable);
    if api == Api::Stable32 {
        code.i32_wrap_i64();
    }
    code.end();
    function
}

/// `stable_grow(pages) → pages before, or −1`.
pub fn grow(added: &Added, counted: Counted, api: Api) -> Function {
    const PAGES: u32 = 0;
    let mut function = Function::new([]);
    let mut code = function.instructions();
    counted.count(&mut code);
    let pages = |code: &mut InstructionSink<'_>| {
        code.local_get(PAGES);
        if api == Api::Stable32 {
            code.i64_extend_i32_u();
        }
    };
    code.memory_size(added.stable);
    pages(&mut code);
    code.i32_const(api.number()).call(added.may_grow_stable);
    code.if_(BlockType::Result(ValType::I64));
    pages(&mut code);
    code.memory_grow(added.stable).else_().i64_const(-1).end();
    if api == Api::Stable32 {
        code.i32_wrap_i64();
    }
    code.end();
    function
}

fn fail_if_too_big(code: &mut InstructionSink<'_>, added: &Added) {
    code.memory_size(added.stable).i64_const(PAGES_OF_4_GIB).i64_gt_u();
    fail_if(code, added, failure::STABLE_TOO_BIG);
}

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `stable_read(dst, src, size)`: from stable memory to the heap.
    Read,
    /// `stable_write(dst, src, size)`: from the heap to stable memory.
    Write,
}

// Parameters of the 64-bit functions; 32-bit calls widen them to the same locals.
const FIRST: u32 = 0;
const SECOND: u32 = 1;
const LENGTH: u32 = 2;

/// `stable_read` or `stable_write`. If the start of the call is in another function, [`short_copy`], that
/// has `counted` the call.
pub fn copy(
    added: &Added,
    counted: Counted,
    api: Api,
    direction: Direction,
    heap: AddressWidth,
) -> Function {
    let narrow = if added.page_map.is_some() { 7 } else { 5 };
    let mut function = Function::new([(6, ValType::I64), (narrow, ValType::I32)]);
    let locals = CopyLocals {
        to: 3,
        from: 4,
        length: 5,
        amount: 6,
        stable_end: 7,
        scratch: 8,
        page: 9,
        last: 10,
        new_accessed: 11,
        new_written: 12,
        flags: 13,
        fresh: 14,
        mark: 15,
    };
    let mut code = function.instructions();
    CopyBody { added, counted, api, direction, heap, locals }.emit(&mut code);
    code.end();
    function
}

/// The start of `stable_read` or `stable_write` with a heap of 32 bits. It executes a typical call
/// completely; `long` is the index of [`copy`], which does all others.
///
/// The function is one of its own because it needs few registers, so that it saves none.
pub fn short_copy(
    added: &Added,
    counted: Counted,
    api: Api,
    direction: Direction,
    long: u32,
) -> Function {
    let wide = if api == Api::Stable32 { 5 } else { 2 };
    let mut function = Function::new([(wide, ValType::I64)]);
    let mut code = function.instructions();
    counted.count(&mut code);
    let [to, from, length, left, rest] = match api {
        Api::Stable32 => [3, 4, 5, 6, 7],
        Api::Stable64 => [FIRST, SECOND, LENGTH, 3, 4],
    };
    if api == Api::Stable32 {
        for (parameter, local) in [(FIRST, to), (SECOND, from), (LENGTH, length)] {
            code.local_get(parameter).i64_extend_i32_u().local_set(local);
        }
    }
    let of = ShortCopy { added, api, direction, to, from, length, left, rest };
    code.block(BlockType::Empty);
    of.check(&mut code);
    code.global_get(counted.bytes).local_get(length).i64_add().global_set(counted.bytes);
    of.copy(&mut code);
    code.return_().end();
    code.local_get(FIRST).local_get(SECOND).local_get(LENGTH).return_call(long).end();
    function
}

/// Marks of a page for which everything is charged.
fn settled_mark(added: &Added, direction: Direction) -> i32 {
    let charged = match (added.page_map, direction) {
        (None, _) => 0,
        (Some(_), Direction::Read) => TOUCH_CHARGED,
        (Some(_), Direction::Write) => TOUCH_CHARGED | WRITE_CHARGED,
    };
    direction.mark() | charged
}

impl Direction {
    /// Marks of a page that is accessed.
    fn mark(self) -> i32 {
        match self {
            Self::Read => ACCESSED,
            Self::Write => WRITTEN_AND_ACCESSED,
        }
    }

    /// The charge for a call, without that for its bytes.
    fn fixed(self) -> i64 {
        match self {
            Self::Read => STABLE_READ_COST,
            Self::Write => STABLE_WRITE_COST,
        }
    }
}

/// A copy of a few bytes within a stable page that is already marked, with enough instructions left.
struct ShortCopy<'a> {
    added: &'a Added,
    api: Api,
    direction: Direction,
    to: u32,
    from: u32,
    length: u32,
    /// Local: instructions that are left.
    left: u32,
    /// Local: bytes that are not in the last word.
    rest: u32,
}

impl ShortCopy<'_> {
    fn stable_and_heap(&self) -> (u32, u32) {
        match self.direction {
            Direction::Read => (self.from, self.to),
            Direction::Write => (self.to, self.from),
        }
    }

    /// Leaves the block if this is no such copy, and charges for it otherwise. A call that fails is no
    /// such copy, so the order of the checks is of no importance.
    fn check(&self, code: &mut InstructionSink<'_>) {
        let (stable, heap) = self.stable_and_heap();
        let (added, length) = (self.added, self.length);
        code.local_get(length).i64_const(1).i64_sub().i64_const(SHORT_COPY).i64_ge_u().br_if(0);
        if self.api == Api::Stable32 {
            code.memory_size(added.stable).i64_const(PAGES_OF_4_GIB).i64_gt_u().br_if(0);
        }
        // An index into the byte map. It has 32 bits, of which the address would lose some.
        let page = self.rest;
        code.local_get(stable).i64_const(12).i64_shr_u().local_tee(page);
        code.i64_const(added.stable_os_pages).i64_ge_u().br_if(0);
        code.local_get(stable).local_get(length).i64_add().i64_const(1).i64_sub();
        code.i64_const(12).i64_shr_u().local_get(page).i64_ne().br_if(0);
        // A page that is marked is inside of stable memory.
        let mark = settled_mark(added, self.direction);
        let byte = MemArg { offset: 0, align: 0, memory_index: added.byte_map };
        code.local_get(page).i32_wrap_i64().i32_load8_u(byte);
        code.i32_const(mark).i32_and().i32_const(mark).i32_ne().br_if(0);
        code.local_get(heap).i64_const((1 << 32) - SHORT_COPY).i64_gt_u().br_if(0);
        // A copy that ends outside of the heap copies and touches nothing, not even the part inside.
        code.local_get(heap).local_get(length).i64_add();
        code.memory_size(added.heap).i64_extend_i32_u().i64_const(16).i64_shl();
        code.i64_gt_u().br_if(0);
        if added.metered {
            code.global_get(added.counter).local_get(length).i64_sub();
            code.i64_const(self.direction.fixed()).i64_sub().local_tee(self.left);
            added.push_charges(code);
            code.i64_lt_s().br_if(0);
            code.local_get(self.left).global_set(added.counter);
        }
    }

    /// Copies 1 to `SHORT_COPY` bytes in as few words as possible. The last words may overlap.
    fn copy(&self, code: &mut InstructionSink<'_>) {
        let (length, rest) = (self.length, self.rest);
        // Words, and one that ends at the last byte.
        code.local_get(length).i64_const(16).i64_ge_u().if_(BlockType::Empty);
        code.local_get(length).i64_const(16).i64_sub().local_set(rest);
        code.block(BlockType::Empty).loop_(BlockType::Empty);
        code.local_get(rest).i64_const(0).i64_le_s().br_if(1);
        self.copy_word(code, 16);
        for local in [self.to, self.from] {
            code.local_get(local).i64_const(16).i64_add().local_set(local);
        }
        code.local_get(rest).i64_const(16).i64_sub().local_set(rest);
        code.br(0).end().end();
        // Negative if the last word starts before the previous one ends.
        self.copy_further(code, 16);
        code.else_();
        for width in [8, 4, 2] {
            code.local_get(length).i64_const(width).i64_ge_u().if_(BlockType::Empty);
            self.copy_word(code, width);
            code.local_get(length).i64_const(width).i64_sub().local_set(rest);
            self.copy_further(code, width);
            code.else_();
        }
        self.copy_word(code, 1);
        code.end().end().end().end();
    }

    /// Copies the last word.
    fn copy_further(&self, code: &mut InstructionSink<'_>, width: i64) {
        for local in [self.to, self.from] {
            code.local_get(local).local_get(self.rest).i64_add().local_set(local);
        }
        self.copy_word(code, width);
    }

    fn copy_word(&self, code: &mut InstructionSink<'_>, width: i64) {
        let (_, heap) = self.stable_and_heap();
        let at = |memory_index| MemArg { offset: 0, align: 0, memory_index };
        let (in_stable, in_heap) = (at(self.added.stable), at(self.added.heap));
        for local in [self.to, self.from] {
            code.local_get(local);
            if local == heap {
                code.i32_wrap_i64();
            }
        }
        let (source, target) = match self.direction {
            Direction::Read => (in_stable, in_heap),
            Direction::Write => (in_heap, in_stable),
        };
        match width {
            16 => code.v128_load(source).v128_store(target),
            8 => code.i64_load(source).i64_store(target),
            4 => code.i64_load32_u(source).i64_store32(target),
            2 => code.i64_load16_u(source).i64_store16(target),
            _ => code.i64_load8_u(source).i64_store8(target),
        };
    }
}

struct CopyLocals {
    to: u32,
    from: u32,
    length: u32,
    amount: u32,
    stable_end: u32,
    scratch: u32,
    page: u32,
    last: u32,
    new_accessed: u32,
    new_written: u32,
    flags: u32,
    /// 1 if the message had not touched any page of the range; only with a page map.
    fresh: u32,
    /// Marks to set on the pages; only with a page map.
    mark: u32,
}

struct CopyBody<'a> {
    added: &'a Added,
    counted: Counted,
    api: Api,
    direction: Direction,
    heap: AddressWidth,
    locals: CopyLocals,
}

impl CopyBody<'_> {
    fn emit(&self, code: &mut InstructionSink<'_>) {
        let l = &self.locals;
        if self.heap == AddressWidth::Bits64 {
            self.counted.count(code);
        }
        for (parameter, local) in [(FIRST, l.to), (SECOND, l.from), (LENGTH, l.length)] {
            self.wide(code, parameter);
            code.local_set(local);
        }
        let fixed = self.direction.fixed();
        code.local_get(l.length).i64_const(fixed).i64_add().local_set(l.amount);
        charge(code, self.added, l.amount, l.scratch);
        // A 32-bit write checks its bounds even if it writes nothing.
        if (self.api, self.direction) == (Api::Stable32, Direction::Write) {
            self.check_bounds(code);
            self.return_if_empty(code);
        } else {
            self.return_if_empty(code);
            self.check_bounds(code);
        }
        self.count_pages(code);
        self.copy_bytes(code);
        if let Some(map) = self.added.page_map {
            self.charge_wasm_pages(code, map);
        }
        self.count_bytes(code);
    }

    /// Counts the copied bytes; the parameter still has their number.
    fn count_bytes(&self, code: &mut InstructionSink<'_>) {
        code.global_get(self.counted.bytes);
        self.wide(code, LENGTH);
        code.i64_add().global_set(self.counted.bytes);
    }

    /// Pushes a parameter as the 64-bit functions take it.
    fn wide(&self, code: &mut InstructionSink<'_>, parameter: u32) {
        code.local_get(parameter);
        if self.api == Api::Stable32 {
            code.i64_extend_i32_u();
        }
    }

    fn return_if_empty(&self, code: &mut InstructionSink<'_>) {
        code.local_get(self.locals.length).i64_eqz().if_(BlockType::Empty).return_().end();
    }

    fn stable_and_heap(&self) -> (u32, u32) {
        match self.direction {
            Direction::Read => (self.locals.from, self.locals.to),
            Direction::Write => (self.locals.to, self.locals.from),
        }
    }

    fn check_bounds(&self, code: &mut InstructionSink<'_>) {
        let l = &self.locals;
        let (stable, heap) = self.stable_and_heap();
        if self.api == Api::Stable32 {
            fail_if_too_big(code, self.added);
        }
        code.local_get(stable).local_get(l.length).i64_add().local_set(l.stable_end);
        if self.api == Api::Stable64 {
            code.local_get(l.stable_end).local_get(stable).i64_le_u();
            fail_if(code, self.added, failure::STABLE_OUT_OF_BOUNDS);
        }
        code.local_get(l.stable_end)
            .memory_size(self.added.stable)
            .i64_const(16)
            .i64_shl()
            .i64_gt_u();
        fail_if(code, self.added, failure::STABLE_OUT_OF_BOUNDS);
        if self.api == Api::Stable64 && self.heap == AddressWidth::Bits32 {
            for local in [heap, l.length] {
                code.local_get(local).i64_const(i64::from(u32::MAX)).i64_gt_u();
                fail_if(code, self.added, failure::HEAP_OUT_OF_BOUNDS);
            }
        }
    }

    fn byte(&self) -> MemArg {
        MemArg { offset: 0, align: 0, memory_index: self.added.byte_map }
    }

    /// Counts the pages that this message touches for the first time, checks them against the
    /// limits, charges newly written ones and marks all.
    fn count_pages(&self, code: &mut InstructionSink<'_>) {
        let l = &self.locals;
        let (stable, _) = self.stable_and_heap();
        code.local_get(stable).i64_const(12).i64_shr_u().i32_wrap_i64().local_set(l.page);
        code.local_get(l.stable_end)
            .i64_const(1)
            .i64_sub()
            .i64_const(12)
            .i64_shr_u()
            .i32_wrap_i64()
            .local_set(l.last);
        let mark = settled_mark(self.added, self.direction);
        if self.added.page_map.is_some() {
            code.i32_const(0).local_set(l.fresh);
        }

        // Nearly every call stays within one page that is already marked.
        code.block(BlockType::Empty);
        code.local_get(l.page)
            .local_get(l.last)
            .i32_eq()
            .local_get(l.page)
            .i32_load8_u(self.byte())
            .i32_const(mark)
            .i32_and()
            .i32_const(mark)
            .i32_eq()
            .i32_and()
            .br_if(0);

        code.i32_const(0).local_set(l.new_accessed).i32_const(0).local_set(l.new_written);
        self.each_page(code, |code| {
            code.local_get(l.page).i32_load8_u(self.byte()).local_set(l.flags);
            for (bit, count) in [(1, l.new_accessed), (0, l.new_written)] {
                code.local_get(count)
                    .local_get(l.flags)
                    .i32_const(bit)
                    .i32_shr_u()
                    .i32_const(-1)
                    .i32_xor()
                    .i32_const(1)
                    .i32_and()
                    .i32_add()
                    .local_set(count);
            }
        });
        self.hold_against(code, l.new_accessed, self.added.accessible, failure::ACCESS_LIMIT);
        if self.direction == Direction::Write {
            self.hold_against(code, l.new_written, self.added.writable, failure::WRITE_LIMIT);
            if self.added.os_page_written > 0 {
                self.charge_os_pages(code);
            }
        }
        if self.added.page_map.is_some() && self.direction == Direction::Read {
            // A first read is free: its Wasm pages are charged at their next touch.
            let (stable, _) = self.stable_and_heap();
            // True if all pages are new.
            code.local_get(l.last).local_get(stable).i64_const(12).i64_shr_u().i32_wrap_i64();
            code.i32_sub().i32_const(1).i32_add().local_get(l.new_accessed).i32_eq();
            code.local_set(l.fresh);
        }
        if self.added.page_map.is_some() {
            code.i32_const(self.direction.mark()).i32_const(mark).local_get(l.fresh).select();
            code.local_set(l.mark);
        }
        self.each_page(code, |code| {
            code.local_get(l.page).local_get(l.page).i32_load8_u(self.byte());
            match self.added.page_map {
                Some(_) => code.local_get(l.mark),
                None => code.i32_const(mark),
            };
            code.i32_or().i32_store8(self.byte());
        });
        self.take(code, l.new_accessed, self.added.accessible);
        if self.direction == Direction::Write {
            self.take(code, l.new_written, self.added.writable);
        }
        code.end();
    }

    /// Charges for the pages of 4 KiB that the message had not written.
    fn charge_os_pages(&self, code: &mut InstructionSink<'_>) {
        let l = &self.locals;
        code.local_get(l.new_written)
            .i64_extend_i32_u()
            .i64_const(self.added.os_page_written)
            .i64_mul()
            .local_set(l.amount);
        if let Some(profiler) = self.added.profiler {
            profiler.enter(code, OS_PAGES_FRAME);
        }
        charge(code, self.added, l.amount, l.scratch);
        if let Some(profiler) = self.added.profiler {
            profiler.leave(code);
        }
    }

    /// Charges for the Wasm pages of the range that the message had not touched or written, unless
    /// this is a free first read.
    fn charge_wasm_pages(&self, code: &mut InstructionSink<'_>, map: PageMap) {
        let l = &self.locals;
        let (stable, _) = self.stable_and_heap();
        let page_of = |code: &mut InstructionSink<'_>, local| {
            code.local_get(local).i64_const(16).i64_shr_u().i32_wrap_i64();
        };
        code.block(BlockType::Empty);
        code.local_get(l.fresh).br_if(0);
        page_of(code, stable);
        code.local_set(l.page);
        code.local_get(l.stable_end).i64_const(1).i64_sub().local_set(l.amount);
        page_of(code, l.amount);
        code.local_set(l.last);
        let mark = self.direction.mark();
        let marks = map.at(page_map::offset::MARKS);
        // Nearly every call concerns one page that was already charged.
        code.local_get(l.page).local_get(l.last).i32_eq();
        code.local_get(l.page).i32_load8_u(marks).i32_const(mark).i32_and();
        code.i32_const(mark).i32_eq().i32_and().br_if(0);

        code.i32_const(0).local_set(l.new_accessed).i32_const(0).local_set(l.new_written);
        code.loop_(BlockType::Empty);
        code.local_get(l.page).i32_load8_u(marks).local_set(l.flags);
        for (bit, count) in [(1, l.new_accessed), (0, l.new_written)] {
            if (mark >> bit) & 1 != 0 {
                code.local_get(count).i32_const(1).local_get(l.flags).i32_const(bit).i32_shr_u();
                code.i32_const(1).i32_and().i32_sub().i32_add().local_set(count);
            }
        }
        code.local_get(l.page).local_get(l.flags).i32_const(mark).i32_or().i32_store8(marks);
        code.local_get(l.page).i32_const(1).i32_add().local_tee(l.page);
        code.local_get(l.last).i32_le_u().br_if(0).end();

        use page_map::offset::{TOUCH_PRICE, TOUCHED, WRITE_PRICE, WRITTEN};
        code.i64_const(0).local_set(l.amount);
        for (count, sum, price) in
            [(l.new_accessed, TOUCHED, TOUCH_PRICE), (l.new_written, WRITTEN, WRITE_PRICE)]
        {
            code.i32_const(0);
            map.load(code, sum);
            code.local_get(count).i64_extend_i32_u().i64_add().i64_store(map.at(sum));
            code.local_get(l.amount).local_get(count).i64_extend_i32_u();
            map.load(code, price);
            code.i64_mul().i64_add().local_set(l.amount);
        }
        if let Some(profiler) = self.added.profiler {
            profiler.enter(code, STABLE_PAGE_FRAME);
        }
        subtract(code, self.added, l.amount, l.scratch);
        if let Some(profiler) = self.added.profiler {
            profiler.leave(code);
        }
        code.end();
    }

    /// Emits `body` for each page of the range.
    fn each_page(&self, code: &mut InstructionSink<'_>, body: impl Fn(&mut InstructionSink<'_>)) {
        let l = &self.locals;
        let (stable, _) = self.stable_and_heap();
        code.local_get(stable).i64_const(12).i64_shr_u().i32_wrap_i64().local_set(l.page);
        code.loop_(BlockType::Empty);
        body(code);
        code.local_get(l.page)
            .i32_const(1)
            .i32_add()
            .local_tee(l.page)
            .local_get(l.last)
            .i32_le_u()
            .br_if(0)
            .end();
    }

    fn hold_against(&self, code: &mut InstructionSink<'_>, count: u32, limit: u32, failure: i32) {
        code.local_get(count).i64_extend_i32_u().global_get(limit).i64_gt_u();
        fail_if(code, self.added, failure);
    }

    fn take(&self, code: &mut InstructionSink<'_>, count: u32, limit: u32) {
        code.global_get(limit).local_get(count).i64_extend_i32_u().i64_sub().global_set(limit);
    }

    fn heap_address(&self, code: &mut InstructionSink<'_>, local: u32) {
        code.local_get(local);
        if self.heap == AddressWidth::Bits32 {
            code.i32_wrap_i64();
        }
    }

    fn copy_bytes(&self, code: &mut InstructionSink<'_>) {
        let l = &self.locals;
        match self.direction {
            Direction::Read => {
                self.heap_address(code, l.to);
                code.local_get(l.from);
            }
            Direction::Write => {
                code.local_get(l.to);
                self.heap_address(code, l.from);
            }
        }
        self.heap_address(code, l.length);
        match self.direction {
            Direction::Read => code.memory_copy(self.added.heap, self.added.stable),
            Direction::Write => code.memory_copy(self.added.stable, self.added.heap),
        };
    }
}
