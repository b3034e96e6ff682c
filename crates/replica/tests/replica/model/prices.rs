//! Prices from `docs/metering.md`: of operators, of calls and of pages. They are written here again,
//! because the model must not share a mistake with the replica.

use stablebench_replica::Rules;

use super::module::BURNS;
use super::program::{Access, Call, End, Op, Value, Width};

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
        let extend = |api| if api == super::program::Api::Stable32 { EXTEND } else { 0 };
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
