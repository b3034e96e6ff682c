//! Random programs.
//!
//! ```text
//!   functions 0 to n       (i32, i64) → i64; each calls only lower ones
//!    └ statements          nested: if, loop, br_table, blocks left early,
//!       └ expressions      stores, bulk copies, stable memory, calls, globals
//! ```
//!
//! Loops count down in their own locals, and calls are only generated where their estimated work,
//! multiplied by the iterations of the surrounding loops, is small, so every program ends soon. Most
//! programs cannot trap; the others may divide by zero, or convert, read or jump out of range.
//!
//! A method copies its argument to the heap, runs the last function, and replies with the counter and
//! a checksum of everything that was computed: values, the heap, and bytes read from stable memory.
//! Heap and stable memory persist from call to call.

use std::fmt::Write;

use stablebench_conformance::{Call, Case, MessageKind, Source};
use stablebench_workload::Rng;

/// Generates `count` programs with a few calls each.
pub fn cases(seed: u64, count: u16) -> Vec<Case> {
    let mut rng = Rng::new(seed);
    (0..count).map(|number| case(number, &mut rng)).collect()
}

/// One of the choices.
fn pick<'a, T: ?Sized>(rng: &mut Rng, choices: &[&'a T]) -> &'a T {
    choices[rng.below(choices.len() as u64) as usize]
}

fn case(number: u16, rng: &mut Rng) -> Case {
    let text = module(rng);
    let mut call = |kind, method: &str| {
        let bytes = 16 + rng.below(48);
        let arg: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
        Call::new(kind, method, arg)
    };
    let calls = vec![
        call(MessageKind::Update, "run"),
        call(MessageKind::Query, "peek"),
        call(MessageKind::Update, "run"),
        // The heap is emptied, stable memory stays.
        Call::new(MessageKind::Upgrade, "", []),
        call(MessageKind::Update, "run"),
    ];
    Case {
        name: format!("random_{number:03}"),
        group: "generated-random".to_owned(),
        module: Source::Wat(text),
        install: None,
        calls,
    }
}

/// Minimum size of stable memory in Wasm pages.
const STABLE_PAGES: u64 = 4;

/// A module with the methods `run` and `peek`.
fn module(rng: &mut Rng) -> String {
    let may_trap = rng.below(5) == 0;
    let count = 2 + rng.below(4) as usize;
    let mut functions = String::new();
    let mut work: Vec<u64> = Vec::new();
    for number in 0..count {
        let mut body = Body::new(may_trap, &work, rng);
        let (text, estimate) = body.function(number);
        functions += &text;
        work.push(estimate);
    }
    let listed: String = (0..count).map(|number| format!(" $f{number}")).collect();
    let last = count - 1;
    format!(
        r#"(module
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_arg_data_size" (func $size (result i32)))
  (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "stable64_size" (func $stable_size (result i64)))
  (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
  (import "ic0" "stable64_read" (func $stable_read (param i64 i64 i64)))
  (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
  (import "ic0" "stable_read" (func $stable_read32 (param i32 i32 i32)))
  (import "ic0" "stable_write" (func $stable_write32 (param i32 i32 i32)))
  (type $f (func (param $i32 i32) (param $i64 i64) (result i64)))
  (memory 2)
  (table {count} funcref)
  (elem (i32.const 0){listed})
  (global $sum (mut i64) (i64.const 0))
  (global $i32 (mut i32) (i32.const {})) (global $i64 (mut i64) (i64.const {}))
  (global $f32 (mut f32) (f32.const 0.5)) (global $f64 (mut f64) (f64.const -2.25))
  (func $mix (param $value i64)
    (global.set $sum (i64.add (i64.mul (i64.rotl (global.get $sum) (i64.const 13))
      (i64.const 0x9e3779b97f4a7c15)) (local.get $value))))
{functions}  (func $method (local $at i32)
    (call $copy (i32.const 0) (i32.const 0) (call $size))
    (if (i64.lt_u (call $stable_size) (i64.const {STABLE_PAGES}))
      (then (drop (call $stable_grow (i64.const {STABLE_PAGES})))))
    (call $mix (call $f{last} (i32.load (i32.const 0)) (i64.load (i32.const 8))))
    (loop $heap
      (call $mix (i64.load (local.get $at)))
      (br_if $heap (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 264)))
        (i32.const 65536))))
    (i64.store (i32.const 131064) (global.get $sum))
    (i64.store (i32.const 131056) (call $counter (i32.const 0)))
    (call $append (i32.const 131056) (i32.const 16))
    (call $reply))
  (export "canister_update run" (func $method))
  (export "canister_query peek" (func $method)))
"#,
        rng.next_u64() as i32,
        rng.next_u64() as i64,
    )
}

/// Largest estimated work of a message, in rough instructions.
const WORK: u64 = 300_000;
/// Stable addresses are below this number after masking; a read or write adds a few bytes.
const STABLE: u64 = 0x3_7fff;
/// Largest number of bytes moved at once.
const MOVED: u64 = 6_000;
/// Heap addresses of moved bytes are below this number after masking.
const MOVED_HEAP: u32 = 0x7fff;

/// A function under construction.
struct Body<'a> {
    rng: &'a mut Rng,
    may_trap: bool,
    /// Estimated work of the functions that it may call.
    callees: &'a [u64],
    work: u64,
    /// Iterations of the surrounding loops.
    rounds: u64,
    /// Number of loop counters so far.
    locals: u32,
    /// Labels of blocks that may be left.
    blocks: Vec<u32>,
}

impl<'a> Body<'a> {
    /// Creates a function that may call those with the indices of `callees`, which have the given
    /// estimated work.
    fn new(may_trap: bool, callees: &'a [u64], rng: &'a mut Rng) -> Self {
        Self { rng, may_trap, callees, work: 20, rounds: 1, locals: 0, blocks: Vec::new() }
    }

    /// Returns the function as text and its estimated work.
    fn function(&mut self, number: usize) -> (String, u64) {
        let statements = self.statements(3);
        let result = self.result();
        let mut text = format!(
            "  (func $f{number} (type $f) (param $i32 i32) (param $i64 i64) (result i64)\n    \
             (local $f32 f32) (local $f64 f64)"
        );
        for local in 0..self.locals {
            let _ = write!(text, " (local $n{local} i32)");
        }
        let _ = writeln!(text, "\n{statements}    {result})");
        (text, self.work)
    }

    /// The end of a function: a value, or a tail call.
    fn result(&mut self) -> String {
        let value = self.value(I64);
        match self.callee() {
            Some(callee) if self.rng.below(4) == 0 => {
                let argument = self.value(I32);
                format!("(return_call $f{callee} {argument} {value})")
            }
            _ => value,
        }
    }

    fn statements(&mut self, depth: u32) -> String {
        let count = 2 + self.rng.below(4);
        (0..count).map(|_| format!("    {}\n", self.statement(depth))).collect()
    }

    fn statement(&mut self, depth: u32) -> String {
        self.work += 15 * self.rounds;
        match self.rng.below(if depth == 0 { 8 } else { 13 }) {
            0 => {
                let ty = Type::any(self.rng);
                format!("(local.set ${} {})", ty.name(), self.value(ty))
            }
            1 => {
                let ty = Type::any(self.rng);
                format!("(global.set ${} {})", ty.name(), self.value(ty))
            }
            2 => self.store(),
            3 => self.call().unwrap_or_else(|| format!("(call $mix {})", self.value(I64))),
            4 => self.moved(),
            5 => match self.blocks.last() {
                Some(&block) => format!("(br_if $b{block} {})", self.value(I32)),
                None => format!("(drop {})", self.value(F64)),
            },
            6 if self.may_trap && self.rng.below(6) == 0 => {
                let value = self.value(I32);
                format!("(if (i32.eqz {value}) (then unreachable))")
            }
            6 | 7 => {
                let ty = Type::any(self.rng);
                let value = self.value(ty);
                format!("(call $mix {})", widened(ty, &value))
            }
            8 => {
                let (condition, yes) = (self.value(I32), self.statements(depth - 1));
                format!("(if {condition} (then\n{yes}    ))")
            }
            9 => {
                let condition = self.value(I32);
                let (yes, no) = (self.statements(depth - 1), self.statements(depth - 1));
                format!("(if {condition} (then\n{yes}    ) (else\n{no}    ))")
            }
            10 => self.repeated(depth - 1),
            11 => self.left_early(depth - 1),
            _ => self.switched(depth - 1),
        }
    }

    fn store(&mut self) -> String {
        let ty = Type::any(self.rng);
        let store = pick(self.rng, ty.stores());
        let at = address(1, self.may_trap, self.rng);
        format!("({}.{store} offset={} {at} {})", ty.name(), self.rng.below(8), self.value(ty))
    }

    /// A call of a lower function, directly or through the table.
    fn call(&mut self) -> Option<String> {
        let callee = self.callee()?;
        self.work += self.callees[callee] * self.rounds;
        let (narrow, wide) = (self.value(I32), self.value(I64));
        let past = if self.may_trap && self.rng.below(20) == 0 { 10 } else { 0 };
        Some(match self.rng.below(2) {
            0 => format!("(call $mix (call $f{callee} {narrow} {wide}))"),
            _ => format!(
                "(call $mix (call_indirect (type $f) {narrow} {wide} (i32.const {})))",
                callee + past
            ),
        })
    }

    /// A function whose estimated work still fits.
    fn callee(&mut self) -> Option<usize> {
        let callee = self.rng.below(self.callees.len() as u64) as usize;
        let work = self.callees.get(callee)?.saturating_mul(self.rounds);
        (self.work.saturating_add(work) < WORK).then_some(callee)
    }

    /// A copy in the heap, or from or to stable memory.
    fn moved(&mut self) -> String {
        let bytes = self.rng.below(if self.rounds > 20 { 100 } else { MOVED });
        self.work += (bytes + 3_000) * self.rounds;
        let heap = format!("(i32.and {} (i32.const {MOVED_HEAP}))", self.value(I32));
        let stable = self.value(I32);
        let stable = match self.may_trap && self.rng.below(10) == 0 {
            true => stable,
            false => format!("(i32.and {stable} (i32.const {STABLE}))"),
        };
        let wide = |narrow: &str| format!("(i64.extend_i32_u {narrow})");
        match self.rng.below(6) {
            0 => format!("(memory.fill {heap} {} (i32.const {bytes}))", self.value(I32)),
            1 => format!(
                "(memory.copy {heap} (i32.const {}) (i32.const {bytes}))",
                self.rng.below(40_000)
            ),
            2 => {
                format!("(call $stable_read {} {} (i64.const {bytes}))", wide(&heap), wide(&stable))
            }
            3 => format!(
                "(call $stable_write {} {} (i64.const {bytes}))",
                wide(&stable),
                wide(&heap)
            ),
            4 => format!("(call $stable_read32 {heap} {stable} (i32.const {bytes}))"),
            _ => format!("(call $stable_write32 {stable} {heap} (i32.const {bytes}))"),
        }
    }

    /// A loop that counts down.
    fn repeated(&mut self, depth: u32) -> String {
        let rounds = 1 + self.rng.below(8);
        let local = self.local();
        self.rounds *= rounds;
        // Leaving an outer block from a loop would end the loop in its first iteration.
        let outside = std::mem::take(&mut self.blocks);
        let body = self.statements(depth);
        self.blocks = outside;
        self.rounds /= rounds;
        format!(
            "(local.set $n{local} (i32.const {rounds})) (loop $l{local}\n{body}    \
             (br_if $l{local} (local.tee $n{local} (i32.sub (local.get $n{local}) (i32.const 1)))))"
        )
    }

    /// A block that may be left early.
    fn left_early(&mut self, depth: u32) -> String {
        let label = self.local();
        self.blocks.push(label);
        let body = self.statements(depth);
        self.blocks.pop();
        format!("(block $b{label}\n{body}    )")
    }

    /// Three branches of a `br_table`.
    fn switched(&mut self, depth: u32) -> String {
        let label = self.local();
        let value = self.value(I32);
        let (one, two) = (self.statements(depth), self.statements(depth));
        format!(
            "(block $s{label} (block $t{label} (block $u{label} \
             (br_table $u{label} $t{label} $s{label} (i32.rem_u {value} (i32.const 4))))\n{one}    \
             (br $s{label}))\n{two}    )"
        )
    }

    fn local(&mut self) -> u32 {
        self.locals += 1;
        self.locals - 1
    }

    fn value(&mut self, ty: Type) -> String {
        let depth = 1 + self.rng.below(3) as u32;
        self.work += (10 << depth) * self.rounds;
        expression(ty, depth, self.may_trap, self.rng)
    }
}

/// The bits of a value as an `i64`.
fn widened(ty: Type, value: &str) -> String {
    match ty {
        I32 => format!("(i64.extend_i32_u {value})"),
        I64 => value.to_owned(),
        F32 => format!("(i64.extend_i32_u (i32.reinterpret_f32 {value}))"),
        F64 => format!("(i64.reinterpret_f64 {value})"),
    }
}

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    I32,
    I64,
    F32,
    F64,
}

/// Heap addresses are below this number after masking.
const HEAP: u32 = 0xfff8;

/// Operand types, result type, and operators.
type Row = (&'static [Type], Type, &'static [&'static str]);

use Type::{F32, F64, I32, I64};

/// Operators that never trap.
#[rustfmt::skip]
const SAFE: &[Row] = &[
    (&[I32, I32], I32, &["add", "sub", "mul", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr",
        "eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"]),
    (&[I32], I32, &["clz", "ctz", "popcnt", "eqz", "extend8_s", "extend16_s"]),
    (&[I64], I32, &["wrap_i64"]),
    (&[F32], I32, &["trunc_sat_f32_s", "trunc_sat_f32_u", "reinterpret_f32"]),
    (&[F64], I32, &["trunc_sat_f64_s", "trunc_sat_f64_u"]),
    (&[I64, I64], I64, &["add", "sub", "mul", "and", "or", "xor", "shl", "shr_s", "shr_u", "rotl", "rotr"]),
    (&[I64], I64, &["clz", "ctz", "popcnt", "extend8_s", "extend16_s", "extend32_s"]),
    (&[I32], I64, &["extend_i32_s", "extend_i32_u"]),
    (&[F32], I64, &["trunc_sat_f32_s", "trunc_sat_f32_u"]),
    (&[F64], I64, &["trunc_sat_f64_s", "trunc_sat_f64_u", "reinterpret_f64"]),
    (&[F32, F32], F32, &["add", "sub", "mul", "div", "min", "max", "copysign"]),
    (&[F32], F32, &["abs", "neg", "ceil", "floor", "trunc", "nearest", "sqrt"]),
    (&[I32], F32, &["convert_i32_s", "convert_i32_u", "reinterpret_i32"]),
    (&[I64], F32, &["convert_i64_s", "convert_i64_u"]),
    (&[F64], F32, &["demote_f64"]),
    (&[F64, F64], F64, &["add", "sub", "mul", "div", "min", "max", "copysign"]),
    (&[F64], F64, &["abs", "neg", "ceil", "floor", "trunc", "nearest", "sqrt"]),
    (&[I32], F64, &["convert_i32_s", "convert_i32_u"]),
    (&[I64], F64, &["convert_i64_s", "convert_i64_u", "reinterpret_i64"]),
    (&[F32], F64, &["promote_f32"]),
];

/// Operators that trap on some operands.
#[rustfmt::skip]
const TRAPPING: &[Row] = &[
    (&[I32, I32], I32, &["div_s", "div_u", "rem_s", "rem_u"]),
    (&[I64, I64], I64, &["div_s", "div_u", "rem_s", "rem_u"]),
    (&[F32], I32, &["trunc_f32_s", "trunc_f32_u"]),
    (&[F64], I64, &["trunc_f64_s", "trunc_f64_u"]),
];

/// Comparisons of types other than `i32`.
#[rustfmt::skip]
const COMPARISONS: &[(Type, &[&str])] = &[
    (I64, &["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"]),
    (F32, &["eq", "ne", "lt", "gt", "le", "ge"]),
    (F64, &["eq", "ne", "lt", "gt", "le", "ge"]),
];

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    fn loads(self) -> &'static [&'static str] {
        match self {
            Self::I32 => &["load", "load8_s", "load8_u", "load16_s", "load16_u"],
            Self::I64 => &["load", "load8_s", "load16_u", "load32_s", "load32_u"],
            Self::F32 | Self::F64 => &["load"],
        }
    }

    fn stores(self) -> &'static [&'static str] {
        match self {
            Self::I32 => &["store", "store8", "store16"],
            Self::I64 => &["store", "store8", "store16", "store32"],
            Self::F32 | Self::F64 => &["store"],
        }
    }

    fn any(rng: &mut Rng) -> Self {
        [I32, I64, F32, F64][rng.below(4) as usize]
    }
}

/// An expression of a type with at most `depth` levels.
fn expression(ty: Type, depth: u32, may_trap: bool, rng: &mut Rng) -> String {
    if depth == 0 {
        return leaf(ty, rng);
    }
    let depth = depth - 1;
    let name = ty.name();
    match rng.below(12) {
        0 => leaf(ty, rng),
        1 => {
            let load = pick(rng, ty.loads());
            format!("({name}.{load} offset={} {})", rng.below(8), address(depth, may_trap, rng))
        }
        2 => {
            let [yes, no] = [(); 2].map(|()| expression(ty, depth, may_trap, rng));
            format!("(select {yes} {no} {})", expression(I32, depth, may_trap, rng))
        }
        3 => {
            let condition = expression(I32, depth, may_trap, rng);
            let [yes, no] = [(); 2].map(|()| expression(ty, depth, may_trap, rng));
            format!("(if (result {name}) {condition} (then {yes}) (else {no}))")
        }
        4 => format!("(local.tee ${name} {})", expression(ty, depth, may_trap, rng)),
        5 if ty == I32 => {
            let (of, operators) = COMPARISONS[rng.below(3) as usize];
            let operator = pick(rng, operators);
            let [one, other] = [(); 2].map(|()| expression(of, depth, may_trap, rng));
            format!("({}.{operator} {one} {other})", of.name())
        }
        6 if may_trap && rng.below(3) == 0 => operator(TRAPPING, ty, depth, may_trap, rng),
        _ => operator(SAFE, ty, depth, may_trap, rng),
    }
}

/// An operator of the table with this result, or a leaf if there is none.
fn operator(table: &[Row], ty: Type, depth: u32, may_trap: bool, rng: &mut Rng) -> String {
    let rows: Vec<&Row> = table.iter().filter(|row| row.1 == ty).collect();
    if rows.is_empty() {
        return leaf(ty, rng);
    }
    let (operands, _, names) = rows[rng.below(rows.len() as u64) as usize];
    let name = pick(rng, names);
    let operands: Vec<String> =
        operands.iter().map(|operand| expression(*operand, depth, may_trap, rng)).collect();
    format!("({}.{name} {})", ty.name(), operands.join(" "))
}

/// An address inside of the heap, or rarely, if it may trap, any address.
fn address(depth: u32, may_trap: bool, rng: &mut Rng) -> String {
    let value = expression(I32, depth, may_trap, rng);
    if may_trap && rng.below(40) == 0 {
        return value;
    }
    format!("(i32.and {value} (i32.const {HEAP}))")
}

fn leaf(ty: Type, rng: &mut Rng) -> String {
    let name = ty.name();
    match rng.below(3) {
        0 => format!("(local.get ${name})"),
        1 => format!("(global.get ${name})"),
        _ => format!("({name}.const {})", constant(ty, rng)),
    }
}

/// Small numbers, large ones, and edge cases.
fn constant(ty: Type, rng: &mut Rng) -> String {
    let small = rng.below(100);
    let any = rng.next_u64();
    match (ty, rng.below(4)) {
        (I32, 0) => (any as i32).to_string(),
        (I32, 1) => pick(rng, &["-1", "0x7fffffff", "-0x80000000", "0"]).to_owned(),
        (I64, 0) => (any as i64).to_string(),
        (I64, 1) => pick(rng, &["-1", "0x7fffffffffffffff", "-0x8000000000000000", "0"]).to_owned(),
        (F32 | F64, 0) => format!("-{small}.75"),
        (F32 | F64, 1) => pick(rng, &["nan", "inf", "-inf", "-0", "0x1p-126", "1e30"]).to_owned(),
        (F32 | F64, _) => format!("{small}.5"),
        (I32 | I64, _) => small.to_string(),
    }
}
