//! Functions and statements.

use std::fmt::Write;

use stablebench_workload::Rng;

use super::super::pick;
use super::expression::{Type, address, expression};

/// Most work that a message is estimated to do, in rough instructions.
const WORK: u64 = 300_000;
/// Stable addresses are below, once masked; a read or write adds a few bytes.
const STABLE: u64 = 0x3_7fff;
/// Most bytes moved at once.
const MOVED: u64 = 6_000;
/// Heap addresses from which bytes are moved are below, once masked.
const MOVED_HEAP: u32 = 0x7fff;

/// A function that is being written.
pub(super) struct Body<'a> {
    rng: &'a mut Rng,
    may_trap: bool,
    /// Estimated work of the functions that may be called.
    callees: &'a [u64],
    work: u64,
    /// Rounds of the loops around.
    rounds: u64,
    /// Counters of loops so far.
    locals: u32,
    /// Labels that may be left for.
    blocks: Vec<u32>,
}

impl<'a> Body<'a> {
    /// A function that may call those with the numbers of `callees`, whose estimated work
    /// that is.
    pub(super) fn new(may_trap: bool, callees: &'a [u64], rng: &'a mut Rng) -> Self {
        Self { rng, may_trap, callees, work: 20, rounds: 1, locals: 0, blocks: Vec::new() }
    }

    /// The function as text, and its estimated work.
    pub(super) fn function(&mut self, number: usize) -> (String, u64) {
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

    /// What a function ends with: a value, or the call of another in its place.
    fn result(&mut self) -> String {
        let value = self.value(Type::I64);
        match self.callee() {
            Some(callee) if self.rng.below(4) == 0 => {
                let argument = self.value(Type::I32);
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
            3 => self.call().unwrap_or_else(|| format!("(call $mix {})", self.value(Type::I64))),
            4 => self.moved(),
            5 => match self.blocks.last() {
                Some(&block) => format!("(br_if $b{block} {})", self.value(Type::I32)),
                None => format!("(drop {})", self.value(Type::F64)),
            },
            6 if self.may_trap && self.rng.below(6) == 0 => {
                let value = self.value(Type::I32);
                format!("(if (i32.eqz {value}) (then unreachable))")
            }
            6 | 7 => {
                let ty = Type::any(self.rng);
                let value = self.value(ty);
                format!("(call $mix {})", widened(ty, &value))
            }
            8 => {
                let (condition, yes) = (self.value(Type::I32), self.statements(depth - 1));
                format!("(if {condition} (then\n{yes}    ))")
            }
            9 => {
                let condition = self.value(Type::I32);
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

    /// A call of a function below, by its name or by its place in the table.
    fn call(&mut self) -> Option<String> {
        let callee = self.callee()?;
        self.work += self.callees[callee] * self.rounds;
        let (narrow, wide) = (self.value(Type::I32), self.value(Type::I64));
        let past = if self.may_trap && self.rng.below(20) == 0 { 10 } else { 0 };
        Some(match self.rng.below(2) {
            0 => format!("(call $mix (call $f{callee} {narrow} {wide}))"),
            _ => format!(
                "(call $mix (call_indirect (type $f) {narrow} {wide} (i32.const {})))",
                callee + past
            ),
        })
    }

    /// A function whose work still fits here.
    fn callee(&mut self) -> Option<usize> {
        let callee = self.rng.below(self.callees.len() as u64) as usize;
        let work = self.callees.get(callee)?.saturating_mul(self.rounds);
        (self.work.saturating_add(work) < WORK).then_some(callee)
    }

    /// Bytes from one place to another: in the heap, or from or to stable memory.
    fn moved(&mut self) -> String {
        let bytes = self.rng.below(if self.rounds > 20 { 100 } else { MOVED });
        self.work += (bytes + 3_000) * self.rounds;
        let heap = format!("(i32.and {} (i32.const {MOVED_HEAP}))", self.value(Type::I32));
        let stable = self.value(Type::I32);
        let stable = match self.may_trap && self.rng.below(10) == 0 {
            true => stable,
            false => format!("(i32.and {stable} (i32.const {STABLE}))"),
        };
        let wide = |narrow: &str| format!("(i64.extend_i32_u {narrow})");
        match self.rng.below(6) {
            0 => format!("(memory.fill {heap} {} (i32.const {bytes}))", self.value(Type::I32)),
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
        // What is left from inside a loop would be left in its first round alone.
        let outside = std::mem::take(&mut self.blocks);
        let body = self.statements(depth);
        self.blocks = outside;
        self.rounds /= rounds;
        format!(
            "(local.set $n{local} (i32.const {rounds})) (loop $l{local}\n{body}    \
             (br_if $l{local} (local.tee $n{local} (i32.sub (local.get $n{local}) (i32.const 1)))))"
        )
    }

    /// A block that may be left before its end.
    fn left_early(&mut self, depth: u32) -> String {
        let label = self.local();
        self.blocks.push(label);
        let body = self.statements(depth);
        self.blocks.pop();
        format!("(block $b{label}\n{body}    )")
    }

    /// Three ways by a table.
    fn switched(&mut self, depth: u32) -> String {
        let label = self.local();
        let value = self.value(Type::I32);
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
        Type::I32 => format!("(i64.extend_i32_u {value})"),
        Type::I64 => value.to_owned(),
        Type::F32 => format!("(i64.extend_i32_u (i32.reinterpret_f32 {value}))"),
        Type::F64 => format!("(i64.reinterpret_f64 {value})"),
    }
}
