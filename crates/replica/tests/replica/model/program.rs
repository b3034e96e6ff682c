//! Random programs: what the functions of a canister do, as a list of operations for each.
//!
//! Addresses are usually close to a border: of an OS page, of a Wasm page, or of a memory. A few
//! programs are *vast*: they touch more pages than the page tracker keeps open, in few ranges.

use arbitrary::{Result, Unstructured};

use crate::fuzzing::content::WASM_PAGE;

const OS_PAGE: u64 = 4_096;
/// Heap of a vast program, in Wasm pages.
const VAST: u64 = 40_000;
/// Update methods of a program.
pub const UPDATES: usize = 4;
/// Query methods of a program.
pub const QUERIES: usize = 2;
/// Functions in the table of a program, for callbacks.
pub const CALLBACKS: usize = 4;
/// Longest range of a careful program.
const LONGEST_CAREFUL: u64 = 300;
/// Wasm pages by which a heap may grow.
const GROWTH: u64 = 3;
/// Time of all timers, in nanoseconds since 1970: later than any that a subnet reaches by itself.
pub const DUE: u64 = 1_700_000_000_000_000_000;
/// Bytes of the names of methods and canisters, which a program needs for calls.
pub const NAMES: u64 = 64;

/// Width of heap addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Bits32,
    Bits64,
}

/// The functions of a canister.
#[derive(Clone, Debug)]
pub struct Program {
    pub width: Width,
    /// First and largest size of the heap, in Wasm pages.
    pub pages: u64,
    pub largest: u64,
    /// First value of the global that the results of operations are mixed into.
    pub seed: u64,
    /// Address of the eight bytes of a reply.
    pub result_at: u64,
    /// Address of the names of canisters and methods. They are a data segment.
    pub names_at: u64,
    pub updates: Vec<Body>,
    pub queries: Vec<Body>,
    pub composite: Body,
    pub callbacks: Vec<Body>,
    /// A function that others call.
    pub helper: Vec<Op>,
    pub init: Body,
    pub pre_upgrade: Body,
    pub post_upgrade: Body,
    pub timer: Body,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Body {
    pub ops: Vec<Op>,
    pub end: End,
}

/// The end of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Return,
    /// Replies with the data that were appended.
    Reply,
    /// Stores the result in the heap, appends it and replies.
    ReplyResult,
    Reject,
    Unreachable,
    CallTrap,
}

/// The value of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Constant(u64),
    /// The number of turns, and a constant by exclusive or.
    Turn(u64),
}

/// Bytes of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    One,
    Two,
    Four,
    Eight,
}

impl Size {
    pub fn bytes(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The functions of stable memory with 32-bit or with 64-bit addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Stable32,
    Stable64,
}

/// The access of a loop to each address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Load,
    Store(Value),
    LoadAndStore(Value),
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Store {
        at: u64,
        size: Size,
        value: Value,
    },
    Load {
        at: u64,
        size: Size,
    },
    Fill {
        at: u64,
        byte: u8,
        length: u64,
    },
    Copy {
        to: u64,
        from: u64,
        length: u64,
    },
    /// Grows the heap by Wasm pages.
    Grow {
        pages: u64,
    },
    StableGrow {
        api: Api,
        pages: u64,
    },
    StableRead {
        api: Api,
        to: u64,
        from: u64,
        length: u64,
    },
    StableWrite {
        api: Api,
        to: u64,
        from: u64,
        length: u64,
    },
    ArgumentCopy {
        to: u64,
        from: u64,
        length: u64,
    },
    /// Copies the first bytes of the argument. Their number is the 32-bit word at an address.
    ArgumentPart {
        to: u64,
        length_at: u64,
    },
    Append {
        at: u64,
        length: u64,
    },
    /// Reads the instruction counter.
    Counter,
    IsController {
        at: u64,
        length: u64,
    },
    Certify {
        at: u64,
        length: u64,
    },
    /// Adds one to the number of turns.
    Turn,
    /// Ends a run of operators.
    Cut,
    Helper,
    /// Accesses 8 bytes at `count` addresses.
    Stride {
        first: u64,
        step: u64,
        count: u32,
        access: Access,
    },
    /// Copies 12 bytes of the argument to `at`, which are numbers of rounds of two loops and a
    /// number of bytes, and runs the loops. One of them uses many instructions in a short time.
    Burn {
        at: u64,
    },
    Call(Call),
    /// Sets the timer.
    SetTimer {
        at: u64,
    },
}

/// A call of an update method.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub canister: usize,
    pub method: usize,
    /// The argument: a range of the heap.
    pub at: u64,
    pub length: u64,
    /// Indices of callbacks.
    pub on_reply: usize,
    pub on_reject: usize,
    pub on_cleanup: Option<usize>,
}

/// Programs that call others, and those that do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    Alone,
    Subnet { canisters: usize },
}

/// The kind of a function that is generated, which decides on what it may do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Update(usize),
    Query,
    Callback(usize),
    /// A hook or a task, without an argument and without a caller that waits for an answer.
    Hook,
}

/// Generates a program.
pub fn program(input: &mut Unstructured<'_>, setting: Setting, width: Width) -> Result<Program> {
    let vast = setting == Setting::Alone && input.ratio(1, 16)?;
    let pages = if vast { VAST } else { input.int_in_range(1..=6)? };
    let careful = input.ratio(if setting == Setting::Alone { 1 } else { 3 }, 4)?;
    let places = Places { pages, width, vast, careful };
    let mut generator = Generator { input, places, setting };
    generator.program()
}

/// Addresses worth testing.
struct Places {
    pages: u64,
    width: Width,
    vast: bool,
    /// True if nearly everything is inside of the memories.
    careful: bool,
}

struct Generator<'i, 'b> {
    input: &'i mut Unstructured<'b>,
    places: Places,
    setting: Setting,
}

impl Generator<'_, '_> {
    fn program(&mut self) -> Result<Program> {
        let end = self.places.pages * WASM_PAGE;
        // The replica refuses data segments in the upper half of the addresses.
        let names_end = end.min(1 << 31);
        let updates = (0..UPDATES).map(|number| self.body(Kind::Update(number)));
        let mut updates = updates.collect::<Result<Vec<_>>>()?;
        if self.places.vast {
            self.make_vast(&mut updates)?;
        }
        let pages = self.input.int_in_range(1..=4)?;
        let mut init = vec![Op::StableGrow { api: Api::Stable64, pages }];
        if self.setting == Setting::Alone {
            init.extend(self.ops(Kind::Hook, 2)?);
        }
        Ok(Program {
            width: self.places.width,
            pages: self.places.pages,
            largest: self.places.pages + GROWTH,
            seed: self.input.arbitrary()?,
            result_at: *self.input.choose(&[0, OS_PAGE - 4, WASM_PAGE - 8, end - 8])?,
            names_at: *self.input.choose(&[128, OS_PAGE - 4, names_end - NAMES])?,
            updates,
            queries: (0..QUERIES).map(|_| self.body(Kind::Query)).collect::<Result<_>>()?,
            composite: self.body(Kind::Query)?,
            callbacks: (0..CALLBACKS)
                .map(|number| self.body(Kind::Callback(number)))
                .collect::<Result<_>>()?,
            helper: self.ops(Kind::Hook, 2)?,
            init: Body { ops: init, end: End::Return },
            pre_upgrade: self.body(Kind::Hook)?,
            post_upgrade: self.body(Kind::Hook)?,
            timer: self.body(Kind::Hook)?,
        })
    }

    /// Makes the first method touch many pages in two ranges, and the second one a few between them.
    fn make_vast(&mut self, updates: &mut [Body]) -> Result<()> {
        let access = match self.input.int_in_range(0..=3)? {
            0 => Access::Store(Value::Turn(0)),
            1 => Access::Store(Value::Constant(0)),
            _ => Access::LoadAndStore(Value::Constant(0)),
        };
        let many = match access {
            Access::LoadAndStore(_) => 4_200,
            Access::Load | Access::Store(_) => 8_300,
        };
        let stride = |first: u64, count, access| Op::Stride {
            first: first * WASM_PAGE,
            step: WASM_PAGE,
            count,
            access,
        };
        let last = self.input.int_in_range(20_000..=28_000)?;
        let ops = [stride(1_000, many, access), stride(last, many, access)];
        updates[0].ops.splice(0..0, ops);
        let between = self.input.int_in_range(12_000..=18_000)?;
        let count = self.input.int_in_range(1..=100)?;
        updates[1].ops.insert(0, stride(between, count, Access::Store(Value::Turn(1))));
        updates[1].ops.insert(0, Op::Turn);
        Ok(())
    }

    fn body(&mut self, kind: Kind) -> Result<Body> {
        let most = match (kind, self.setting) {
            (Kind::Hook, _) => 2,
            (_, Setting::Alone) => 7,
            (_, Setting::Subnet { .. }) => 4,
        };
        let mut ops = self.ops(kind, most)?;
        let calls = self.call(kind)?;
        if let Some(call) = calls {
            let at = self.input.int_in_range(0..=ops.len())?;
            ops.insert(at, Op::Call(call));
        }
        let end = match self.input.int_in_range(0..=15)? {
            0 => End::Unreachable,
            1 => End::CallTrap,
            2 => End::Return,
            // An answer before the call has ended would let two messages wait at once.
            _ if kind == Kind::Hook || calls.is_some() => End::Return,
            3 => End::Reject,
            4 | 5 => End::Reply,
            _ => End::ReplyResult,
        };
        Ok(Body { ops, end })
    }

    /// The call of a body, on a subnet. Methods call later ones and callbacks the last one, which
    /// calls nobody, so that every tree of calls ends.
    fn call(&mut self, kind: Kind) -> Result<Option<Call>> {
        let Setting::Subnet { canisters } = self.setting else { return Ok(None) };
        let last = UPDATES - 1;
        let (methods, callbacks) = match kind {
            Kind::Update(number) if number < last => (number + 1..=last, 0..=CALLBACKS - 1),
            Kind::Callback(number) if number + 1 < CALLBACKS => {
                (last..=last, number + 1..=CALLBACKS - 1)
            }
            _ => return Ok(None),
        };
        let often = if matches!(kind, Kind::Update(_)) { 3 } else { 1 };
        if !self.input.ratio(often, 4)? {
            return Ok(None);
        }
        let (at, length) = if self.input.ratio(1, 8)? {
            (self.heap_place()?, self.length()?)
        } else {
            (self.input.int_in_range(0..=60_000)?, self.input.int_in_range(0..=200)?)
        };
        let cleans = self.input.ratio(2, 3)?;
        Ok(Some(Call {
            canister: self.input.choose_index(canisters)?,
            method: self.input.int_in_range(methods)?,
            at,
            length,
            on_reply: self.input.int_in_range(callbacks.clone())?,
            on_reject: self.input.int_in_range(callbacks.clone())?,
            on_cleanup: if cleans { Some(self.input.int_in_range(callbacks)?) } else { None },
        }))
    }

    fn ops(&mut self, kind: Kind, most: usize) -> Result<Vec<Op>> {
        let mut ops = Vec::new();
        let often = if self.places.careful { 1 } else { 5 };
        for _ in 0..self.input.int_in_range(0..=most)? {
            if self.input.ratio(often, 32)? {
                ops.extend(self.copies_at_the_end()?);
            } else {
                ops.push(self.op(kind)?);
            }
        }
        Ok(ops)
    }

    /// Bytes that are written to a page of stable memory, and a short copy between there and the end
    /// of the heap, in most cases past it. The page is charged by then, and nothing else has changed
    /// the end of the heap, so that a part of the copy would be seen.
    fn copies_at_the_end(&mut self) -> Result<[Op; 3]> {
        let end = self.places.pages * WASM_PAGE;
        let (at, byte) = (self.input.int_in_range(1_000..=3_000)?, self.input.int_in_range(1..=9)?);
        let stable =
            self.input.int_in_range(1..=15)? * OS_PAGE - self.input.int_in_range(0..=500)?;
        let before = self.input.int_in_range(0..=40)?;
        let length = match self.input.int_in_range(0..=7)? {
            0 => self.input.int_in_range(0..=before)?,
            1 => *self.input.choose(&[127, 128, 129])?,
            _ => before + self.input.int_in_range(1..=24)?,
        };
        let (place, api) = (end - before, self.api()?);
        let fill = Op::Fill { at, byte, length };
        let write = Op::StableWrite { api, to: stable, from: at, length };
        let api = self.api()?;
        Ok(match self.input.ratio(3, 4)? {
            true => [fill, write, Op::StableRead { api, to: place, from: stable, length }],
            false => [fill, write, Op::StableWrite { api, to: stable, from: place, length }],
        })
    }

    fn op(&mut self, kind: Kind) -> Result<Op> {
        Ok(match self.input.int_in_range(0..=31)? {
            0..=3 => Op::Store { at: self.heap_place()?, size: self.size()?, value: self.value()? },
            4..=6 => Op::Load { at: self.heap_place()?, size: self.size()? },
            7 | 8 => {
                let (at, length) = (self.heap_place()?, self.length()?);
                Op::Fill { at, byte: self.input.int_in_range(0..=2)?, length }
            }
            9..=11 => self.copy()?,
            12 => Op::Grow { pages: *self.input.choose(&[0, 1, 2, GROWTH, GROWTH + 1, 65_535])? },
            13 => {
                let pages = *self.input.choose(&[0, 1, 2, 3, 7])?;
                Op::StableGrow { api: self.api()?, pages }
            }
            14..=17 => {
                let (to, from, length) = (self.heap_place()?, self.stable_place()?, self.length()?);
                Op::StableRead { api: self.api()?, to, from, length }
            }
            18..=21 => {
                let (to, from, length) = (self.stable_place()?, self.heap_place()?, self.length()?);
                Op::StableWrite { api: self.api()?, to, from, length }
            }
            22 | 23 if kind != Kind::Hook => {
                let (to, from) = (self.heap_place()?, self.input.int_in_range(0..=20)?);
                Op::ArgumentCopy { to, from, length: self.input.int_in_range(0..=20)? }
            }
            24 if kind != Kind::Hook => {
                Op::Append { at: self.heap_place()?, length: self.length()? }
            }
            25 => {
                let at = self.heap_place()?;
                Op::IsController { at, length: *self.input.choose(&[0, 1, 28, 29, 30, 31, 200])? }
            }
            26 if kind != Kind::Query => {
                Op::Certify { at: self.heap_place()?, length: self.input.int_in_range(0..=33)? }
            }
            27 => self.stride()?,
            28 | 30 if matches!(kind, Kind::Update(_)) && self.setting != Setting::Alone => {
                Op::SetTimer { at: DUE }
            }
            28 => Op::Cut,
            29 if kind != Kind::Hook => Op::Helper,
            30 => Op::Counter,
            _ => Op::Turn,
        })
    }

    /// A copy in the heap, in half of the cases a little further.
    fn copy(&mut self) -> Result<Op> {
        let (from, length) = (self.heap_place()?, self.length()?);
        let to = if self.input.ratio(1, 2)? {
            from.saturating_add(self.input.int_in_range(1..=300)?).min(self.last_address())
        } else {
            self.heap_place()?
        };
        // What a short copy onto itself touches depends on the processor, also on the real replica.
        let length = if to == from { length.max(600) } else { length };
        Ok(Op::Copy { to, from, length })
    }

    fn stride(&mut self) -> Result<Op> {
        let value = self.value()?;
        let access = *self.input.choose(&[
            Access::Load,
            Access::Store(value),
            Access::LoadAndStore(value),
        ])?;
        let step = *self.input.choose(&[8, OS_PAGE - 4, OS_PAGE, WASM_PAGE, 2 * WASM_PAGE])?;
        let step = if self.places.careful { 8 } else { step };
        let count = self.input.int_in_range(1..=if self.places.vast { 200 } else { 20 })?;
        Ok(Op::Stride { first: self.heap_place()?, step, count, access })
    }

    fn size(&mut self) -> Result<Size> {
        Ok(*self.input.choose(&[Size::One, Size::Two, Size::Four, Size::Eight, Size::Eight])?)
    }

    fn value(&mut self) -> Result<Value> {
        Ok(match self.input.int_in_range(0..=3)? {
            0 => Value::Constant(0),
            1 => Value::Constant(self.input.arbitrary()?),
            _ => Value::Turn(self.input.arbitrary()?),
        })
    }

    fn api(&mut self) -> Result<Api> {
        let wide = self.places.width == Width::Bits64 || self.input.arbitrary()?;
        Ok(if wide { Api::Stable64 } else { Api::Stable32 })
    }

    fn length(&mut self) -> Result<u64> {
        if self.places.careful {
            return self.input.int_in_range(0..=LONGEST_CAREFUL);
        }
        Ok(match self.input.int_in_range(0..=9)? {
            0..=5 => self.input.int_in_range(0..=33)?,
            6 => *self.input.choose(&[63, 64, 65, 127, 128, 129, 130])?,
            7 => *self.input.choose(&[200, 511, 512, 513, 1_000])?,
            8 => *self.input.choose(&[OS_PAGE - 1, OS_PAGE, OS_PAGE + 1, 10_000])?,
            _ => *self.input.choose(&[WASM_PAGE - 1, WASM_PAGE, WASM_PAGE + 1, 140_000])?,
        })
    }

    /// Bytes before or after a border.
    fn before(&mut self, border: u64) -> Result<u64> {
        let distance = match self.input.int_in_range(0..=3)? {
            0 => *self.input.choose(&[0, 1, 2, 4, 7, 8])?,
            1 => self.input.int_in_range(9..=33)?,
            2 => self.input.int_in_range(34..=260)?,
            _ => return Ok(border + self.input.int_in_range(0..=9)?),
        };
        Ok(border.saturating_sub(distance))
    }

    fn heap_place(&mut self) -> Result<u64> {
        let end = self.places.pages * WASM_PAGE;
        let at = match self.input.int_in_range(0..=9)? {
            0..=2 => self.before(end)?,
            3 => {
                let grown = self.input.int_in_range(1..=GROWTH)?;
                self.before(end + grown * WASM_PAGE)?
            }
            4 | 5 => {
                let page = self.input.int_in_range(0..=self.places.pages.min(4))?;
                self.before(page * WASM_PAGE)?
            }
            6 => {
                let page = self.input.int_in_range(1..=20)?;
                self.before(page * OS_PAGE)?
            }
            7 => *self.input.choose(&[0, 1 << 31, self.last_address() - 7, self.last_address()])?,
            _ => self.input.int_in_range(0..=end - 1)?,
        };
        let careful = if self.places.careful { end - LONGEST_CAREFUL } else { u64::MAX };
        Ok(at.min(careful).min(self.last_address()))
    }

    fn last_address(&self) -> u64 {
        match self.places.width {
            Width::Bits32 => u32::MAX.into(),
            // A load there ends past the largest address.
            Width::Bits64 => u64::MAX,
        }
    }

    fn stable_place(&mut self) -> Result<u64> {
        let page = self.input.int_in_range(0..=4)?;
        let at = match self.input.int_in_range(0..=5)? {
            0 | 1 => self.before(page * WASM_PAGE)?,
            2 | 3 => self.before(page * OS_PAGE)?,
            4 => self.input.int_in_range(0..=OS_PAGE)?,
            _ => self.input.int_in_range(0..=4 * WASM_PAGE)?,
        };
        // Stable memory has one page at least.
        let careful = if self.places.careful { WASM_PAGE - LONGEST_CAREFUL } else { u64::MAX };
        Ok(at.min(careful))
    }
}

impl Program {
    /// A program whose update methods do the given operations, with a page of stable memory.
    pub fn of(width: Width, pages: u64, updates: Vec<Vec<Op>>) -> Self {
        let body = |ops, end| Body { ops, end };
        let empty = || body(Vec::new(), End::Return);
        Self {
            width,
            pages,
            largest: pages + GROWTH,
            seed: 1,
            result_at: 0,
            names_at: 128,
            updates: updates.into_iter().map(|ops| body(ops, End::ReplyResult)).collect(),
            queries: (0..QUERIES).map(|_| empty()).collect(),
            composite: empty(),
            callbacks: (0..CALLBACKS).map(|_| empty()).collect(),
            helper: Vec::new(),
            init: body(vec![Op::StableGrow { api: Api::Stable64, pages: 1 }], End::Return),
            pre_upgrade: empty(),
            post_upgrade: empty(),
            timer: empty(),
        }
    }

    /// A function that uses a number of instructions, which the argument determines, before it does
    /// what `body` does.
    pub fn burning(&self, body: &Body) -> Body {
        let at = self.result_at / OS_PAGE * OS_PAGE;
        let mut ops = vec![Op::Burn { at }, Op::ArgumentPart { to: at, length_at: at + 8 }];
        ops.extend(&body.ops);
        Body { ops, end: body.end }
    }
}
