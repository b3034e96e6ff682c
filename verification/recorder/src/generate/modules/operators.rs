//! Measurements, and those of operators. A measurement is code between two readings of the counter,
//! compared with other code.
//!
//! ```text
//!   start ◄ counter
//!   if (i32.const 1) { with × times }          in a run of its own
//!   if (i32.const 1) { end ◄ counter }         in a run of its own
//!   answer end − start
//!   the same for without
//! ```
//!
//! Both answers include the cost of the readings; their difference is the additional cost of `with`.
//! [`AddedWork`] describes it, so that it can be computed from prices.
//!
//! Operands are small positive numbers, on which no operator traps.

use std::fmt::Write;

use stablebench_workload::Rng;

/// Operations that one iteration of a measurement executes more with `with` than with `without`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedWork {
    /// Operators of `with`, by their names in WebAssembly text.
    pub operators: Vec<String>,
    /// Operators of `without`.
    pub less: Vec<String>,
    /// Functions entered.
    pub functions: u64,
    /// Bytes of bulk operators.
    pub bytes: u64,
    /// System API calls and their arguments, without the operator `call`.
    pub calls: Vec<(&'static str, Vec<u64>)>,
}

/// An update method that measures, and replies with two little-endian u64s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The method's name.
    pub name: String,
    /// The measured code, as WebAssembly text.
    pub with: String,
    /// The code with which it is compared.
    pub without: String,
    /// Number of repetitions between the readings.
    pub times: u64,
    /// The difference.
    pub work: AddedWork,
}

impl Measurement {
    /// Creates a measurement that compares code with no code, once.
    pub fn of(name: impl Into<String>, with: impl Into<String>, operators: &[&str]) -> Self {
        Self {
            name: name.into(),
            with: with.into(),
            without: String::new(),
            times: 1,
            work: AddedWork { operators: owned(operators), ..AddedWork::default() },
        }
    }

    /// Sets the code for comparison, which executes the operators `less`.
    #[must_use]
    pub fn compared_with(mut self, without: impl Into<String>, less: &[&str]) -> Self {
        self.without = without.into();
        self.work.less = owned(less);
        self
    }

    /// Sets the number of repetitions.
    #[must_use]
    pub fn repeated(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Sets the number of functions entered.
    #[must_use]
    pub fn entering(mut self, functions: u64) -> Self {
        self.work.functions = functions;
        self
    }

    /// Sets the bytes of bulk operators.
    #[must_use]
    pub fn about(mut self, bytes: u64) -> Self {
        self.work.bytes = bytes;
        self
    }

    /// Adds a System API call.
    #[must_use]
    pub fn calling(mut self, name: &'static str, args: &[u64]) -> Self {
        self.work.calls.push((name, args.to_vec()));
        self
    }

    /// The method, as WebAssembly text.
    pub(super) fn method(&self) -> String {
        let mut text = format!(
            "  (func (export \"canister_update {}\")\n    (local $start i64) (local $end i64) \
             (local $narrow i32) (local $wide i64)\n",
            self.name
        );
        for code in [&self.with, &self.without] {
            text += "    (local.set $start (call $counter (i32.const 0)))\n";
            text += "    (if (i32.const 1) (then";
            for _ in 0..self.times {
                let _ = write!(text, " {code}");
            }
            text += "))\n    (if (i32.const 1) (then \
                     (local.set $end (call $counter (i32.const 0)))))\n    \
                     (call $answer (i64.sub (local.get $end) (local.get $start)))\n";
        }
        text + "    (call $reply))\n"
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Measurements that share a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The subject of the group.
    pub name: &'static str,
    /// Imports other than those of all modules.
    pub imports: String,
    /// Measurements, one for each method.
    pub measurements: Vec<Measurement>,
    /// The argument of every call.
    pub argument: Vec<u8>,
}

/// Operands are below this address.
pub(super) const OPERANDS: u64 = 60_000;

/// A random number of repetitions.
pub(super) fn times(rng: &mut Rng) -> u64 {
    1 + rng.below(4)
}

/// Type of an operand.
#[derive(Clone, Copy)]
enum Operand {
    I32,
    I64,
    F32,
    F64,
    V128,
    /// An `i32` that is an address in the heap.
    Address,
}

use Operand::{Address, F32, F64, I32, I64, V128};

/// Operands, whether there is a result, and the operators of this shape.
type Shape = (&'static [Operand], bool, &'static str);

/// All operators, by group.
#[rustfmt::skip]
const OPERATORS: &[(&str, &[Shape])] = &[
    ("i32", &[
        (&[I32], true, "i32.eqz i32.clz i32.ctz i32.popcnt i32.extend8_s i32.extend16_s"),
        (&[I32, I32], true,
         "i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u \
          i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u i32.and i32.or i32.xor \
          i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr"),
        (&[I64], true, "i32.wrap_i64"),
        (&[F32], true, "i32.trunc_f32_s i32.trunc_f32_u i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.reinterpret_f32"),
        (&[F64], true, "i32.trunc_f64_s i32.trunc_f64_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u"),
        (&[Address], true, "i32.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u"),
        (&[Address, I32], false, "i32.store i32.store8 i32.store16"),
        (&[I32, I32, I32], true, "select"),
    ]),
    ("i64", &[
        (&[I64], true, "i64.eqz i64.clz i64.ctz i64.popcnt i64.extend8_s i64.extend16_s i64.extend32_s"),
        (&[I64, I64], true,
         "i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u \
          i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u i64.and i64.or i64.xor \
          i64.shl i64.shr_s i64.shr_u i64.rotl i64.rotr"),
        (&[I32], true, "i64.extend_i32_s i64.extend_i32_u"),
        (&[F32], true, "i64.trunc_f32_s i64.trunc_f32_u i64.trunc_sat_f32_s i64.trunc_sat_f32_u"),
        (&[F64], true, "i64.trunc_f64_s i64.trunc_f64_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u i64.reinterpret_f64"),
        (&[Address], true,
         "i64.load i64.load8_s i64.load8_u i64.load16_s i64.load16_u i64.load32_s i64.load32_u"),
        (&[Address, I64], false, "i64.store i64.store8 i64.store16 i64.store32"),
    ]),
    ("f32", &[
        (&[F32], true, "f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt"),
        (&[F32, F32], true,
         "f32.eq f32.ne f32.lt f32.gt f32.le f32.ge \
          f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign"),
        (&[I32], true, "f32.convert_i32_s f32.convert_i32_u f32.reinterpret_i32"),
        (&[I64], true, "f32.convert_i64_s f32.convert_i64_u"),
        (&[F64], true, "f32.demote_f64"),
        (&[Address], true, "f32.load"),
        (&[Address, F32], false, "f32.store"),
    ]),
    ("f64", &[
        (&[F64], true, "f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt"),
        (&[F64, F64], true,
         "f64.eq f64.ne f64.lt f64.gt f64.le f64.ge \
          f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign"),
        (&[I32], true, "f64.convert_i32_s f64.convert_i32_u"),
        (&[I64], true, "f64.convert_i64_s f64.convert_i64_u f64.reinterpret_i64"),
        (&[F32], true, "f64.promote_f32"),
        (&[Address], true, "f64.load"),
        (&[Address, F64], false, "f64.store"),
    ]),
    ("v128", &[
        (&[V128], true, "v128.not v128.any_true"),
        (&[V128, V128], true, "v128.and v128.andnot v128.or v128.xor"),
        (&[V128, V128, V128], true, "v128.bitselect"),
        (&[Address], true,
         "v128.load v128.load8x8_s v128.load8x8_u v128.load16x4_s v128.load16x4_u v128.load32x2_s \
          v128.load32x2_u v128.load8_splat v128.load16_splat v128.load32_splat v128.load64_splat \
          v128.load32_zero v128.load64_zero"),
        (&[Address, V128], false, "v128.store"),
        (&[Address, V128], true, "v128.load8_lane v128.load16_lane v128.load32_lane v128.load64_lane"),
        (&[Address, V128], false, "v128.store8_lane v128.store16_lane v128.store32_lane v128.store64_lane"),
    ]),
    ("i8x16", &[
        (&[I32], true, "i8x16.splat"),
        (&[V128], true,
         "i8x16.extract_lane_s i8x16.extract_lane_u i8x16.abs i8x16.neg i8x16.popcnt i8x16.all_true i8x16.bitmask"),
        (&[V128, I32], true, "i8x16.replace_lane i8x16.shl i8x16.shr_s i8x16.shr_u"),
        (&[V128, V128], true,
         "i8x16.shuffle i8x16.swizzle i8x16.eq i8x16.ne i8x16.lt_s i8x16.lt_u i8x16.gt_s i8x16.gt_u \
          i8x16.le_s i8x16.le_u i8x16.ge_s i8x16.ge_u i8x16.narrow_i16x8_s i8x16.narrow_i16x8_u i8x16.add \
          i8x16.add_sat_s i8x16.add_sat_u i8x16.sub i8x16.sub_sat_s i8x16.sub_sat_u i8x16.min_s i8x16.min_u \
          i8x16.max_s i8x16.max_u i8x16.avgr_u"),
    ]),
    ("i16x8", &[
        (&[I32], true, "i16x8.splat"),
        (&[V128], true,
         "i16x8.extract_lane_s i16x8.extract_lane_u i16x8.abs i16x8.neg i16x8.all_true i16x8.bitmask \
          i16x8.extadd_pairwise_i8x16_s i16x8.extadd_pairwise_i8x16_u i16x8.extend_low_i8x16_s \
          i16x8.extend_high_i8x16_s i16x8.extend_low_i8x16_u i16x8.extend_high_i8x16_u"),
        (&[V128, I32], true, "i16x8.replace_lane i16x8.shl i16x8.shr_s i16x8.shr_u"),
        (&[V128, V128], true,
         "i16x8.eq i16x8.ne i16x8.lt_s i16x8.lt_u i16x8.gt_s i16x8.gt_u i16x8.le_s i16x8.le_u i16x8.ge_s \
          i16x8.ge_u i16x8.q15mulr_sat_s i16x8.narrow_i32x4_s i16x8.narrow_i32x4_u i16x8.add i16x8.add_sat_s \
          i16x8.add_sat_u i16x8.sub i16x8.sub_sat_s i16x8.sub_sat_u i16x8.mul i16x8.min_s i16x8.min_u \
          i16x8.max_s i16x8.max_u i16x8.avgr_u i16x8.extmul_low_i8x16_s i16x8.extmul_high_i8x16_s \
          i16x8.extmul_low_i8x16_u i16x8.extmul_high_i8x16_u"),
    ]),
    ("i32x4", &[
        (&[I32], true, "i32x4.splat"),
        (&[V128], true,
         "i32x4.extract_lane i32x4.abs i32x4.neg i32x4.all_true i32x4.bitmask i32x4.extadd_pairwise_i16x8_s \
          i32x4.extadd_pairwise_i16x8_u i32x4.extend_low_i16x8_s i32x4.extend_high_i16x8_s \
          i32x4.extend_low_i16x8_u i32x4.extend_high_i16x8_u i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u \
          i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero"),
        (&[V128, I32], true, "i32x4.replace_lane i32x4.shl i32x4.shr_s i32x4.shr_u"),
        (&[V128, V128], true,
         "i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u i32x4.le_s i32x4.le_u i32x4.ge_s \
          i32x4.ge_u i32x4.add i32x4.sub i32x4.mul i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u \
          i32x4.dot_i16x8_s i32x4.extmul_low_i16x8_s i32x4.extmul_high_i16x8_s i32x4.extmul_low_i16x8_u \
          i32x4.extmul_high_i16x8_u"),
    ]),
    ("i64x2", &[
        (&[I64], true, "i64x2.splat"),
        (&[V128], true,
         "i64x2.extract_lane i64x2.abs i64x2.neg i64x2.all_true i64x2.bitmask i64x2.extend_low_i32x4_s \
          i64x2.extend_high_i32x4_s i64x2.extend_low_i32x4_u i64x2.extend_high_i32x4_u"),
        (&[V128, I64], true, "i64x2.replace_lane"),
        (&[V128, I32], true, "i64x2.shl i64x2.shr_s i64x2.shr_u"),
        (&[V128, V128], true,
         "i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s i64x2.le_s i64x2.ge_s i64x2.add i64x2.sub i64x2.mul \
          i64x2.extmul_low_i32x4_s i64x2.extmul_high_i32x4_s i64x2.extmul_low_i32x4_u i64x2.extmul_high_i32x4_u"),
    ]),
    ("f32x4", &[
        (&[F32], true, "f32x4.splat"),
        (&[V128], true,
         "f32x4.extract_lane f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest f32x4.abs f32x4.neg f32x4.sqrt \
          f32x4.convert_i32x4_s f32x4.convert_i32x4_u f32x4.demote_f64x2_zero"),
        (&[V128, F32], true, "f32x4.replace_lane"),
        (&[V128, V128], true,
         "f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge f32x4.add f32x4.sub f32x4.mul f32x4.div \
          f32x4.min f32x4.max f32x4.pmin f32x4.pmax"),
    ]),
    ("f64x2", &[
        (&[F64], true, "f64x2.splat"),
        (&[V128], true,
         "f64x2.extract_lane f64x2.ceil f64x2.floor f64x2.trunc f64x2.nearest f64x2.abs f64x2.neg f64x2.sqrt \
          f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u f64x2.promote_low_f32x4"),
        (&[V128, F64], true, "f64x2.replace_lane"),
        (&[V128, V128], true,
         "f64x2.eq f64x2.ne f64x2.lt f64x2.gt f64x2.le f64x2.ge f64x2.add f64x2.sub f64x2.mul f64x2.div \
          f64x2.min f64x2.max f64x2.pmin f64x2.pmax"),
    ]),
];

pub(super) fn groups(rng: &mut Rng) -> Vec<Group> {
    let group = |(name, shapes): &(&'static str, &[Shape])| Group {
        name,
        imports: String::new(),
        measurements: shapes
            .iter()
            .flat_map(|shape| shape.2.split_whitespace().map(move |operator| (shape, operator)))
            .map(|(shape, operator)| measurement(operator, shape, rng))
            .collect(),
        argument: Vec::new(),
    };
    let mut groups: Vec<Group> = OPERATORS.iter().map(group).collect();
    groups.push(control(rng));
    groups
}

/// Measures the operator on its operands, compared with the operands alone.
fn measurement(operator: &str, (operands, result, _): &Shape, rng: &mut Rng) -> Measurement {
    let operands: Vec<String> = operands.iter().map(|operand| operand.constant(rng)).collect();
    let code = format!("({operator}{} {})", immediates(operator, rng), operands.join(" "));
    let with = if *result { format!("(drop {code})") } else { code };
    let without: String =
        operands.iter().map(|operand| format!("(drop {operand})")).collect::<Vec<_>>().join(" ");
    let mut more = vec![operator];
    more.extend(result.then_some("drop"));
    let less = vec!["drop"; operands.len()];
    Measurement::of(operator, with, &more).compared_with(without, &less).repeated(times(rng))
}

/// The text between an operator's name and its operands.
fn immediates(operator: &str, rng: &mut Rng) -> String {
    let (shape, name) = operator.split_once('.').unwrap_or(("", operator));
    let lanes = |bits: u64| 128 / bits;
    let mut text = String::new();
    if name.starts_with("load") || name.starts_with("store") {
        text += &format!(" offset={}", rng.below(64));
    }
    let lanes = match (shape, name) {
        (_, "shuffle") => {
            let order: Vec<String> = (0..16).map(|_| rng.below(32).to_string()).collect();
            return format!(" {}", order.join(" "));
        }
        (_, "load8_lane" | "store8_lane") => lanes(8),
        (_, "load16_lane" | "store16_lane") => lanes(16),
        (_, "load32_lane" | "store32_lane") => lanes(32),
        (_, "load64_lane" | "store64_lane") => lanes(64),
        (_, "extract_lane" | "extract_lane_s" | "extract_lane_u" | "replace_lane") => {
            shape.split_once('x').and_then(|(_, lanes)| lanes.parse().ok()).unwrap_or(1)
        }
        _ => return text,
    };
    text + &format!(" {}", rng.below(lanes))
}

impl Operand {
    fn constant(self, rng: &mut Rng) -> String {
        let number = 1 + rng.below(1_000);
        match self {
            Self::I32 => format!("(i32.const {number})"),
            Self::I64 => format!("(i64.const {number})"),
            Self::F32 => format!("(f32.const {number}.5)"),
            Self::F64 => format!("(f64.const {number}.5)"),
            Self::V128 => format!("(v128.const i64x2 {} {})", rng.next_u64(), rng.next_u64()),
            Self::Address => format!("(i32.const {})", rng.below(OPERANDS)),
        }
    }
}

/// Operators that are not measured, with the reason.
pub const UNMEASURED: &[(&str, &str)] = &[(
    "unreachable",
    "the message ends, so the counter cannot be read after it; every module has a method of that \
     name, whose cycles include the price",
)];

/// Control flow, variables, references: operators that need context.
fn control(rng: &mut Rng) -> Group {
    let mut measurements = variables(rng);
    measurements.extend(branches(rng));
    measurements.extend(calls());
    measurements.extend([loops(rng), nested(rng)]);
    for measurement in &mut measurements {
        measurement.times = times(rng);
    }
    Group { name: "control", imports: String::new(), measurements, argument: Vec::new() }
}

fn variables(rng: &mut Rng) -> Vec<Measurement> {
    let mut number = || rng.next_u64() >> 40;
    vec![
        Measurement::of("nop", "nop", &["nop"]),
        Measurement::of("drop", format!("(drop (i32.const {}))", number()), &["i32.const", "drop"]),
        Measurement::of(
            "i64.const",
            format!("(drop (i64.const -{}))", number()),
            &["i64.const", "drop"],
        ),
        Measurement::of(
            "f32.const",
            format!("(drop (f32.const {}.25))", number()),
            &["f32.const", "drop"],
        ),
        Measurement::of("f64.const", "(drop (f64.const nan))", &["f64.const", "drop"]),
        Measurement::of(
            "v128.const",
            format!("(drop (v128.const i64x2 {} 0))", number()),
            &["v128.const", "drop"],
        ),
        Measurement::of("local.get", "(drop (local.get $narrow))", &["local.get", "drop"]),
        Measurement::of(
            "local.set",
            "(local.set $narrow (i32.const 1))",
            &["i32.const", "local.set"],
        ),
        Measurement::of(
            "local.tee",
            "(drop (local.tee $wide (i64.const 1)))",
            &["i64.const", "local.tee", "drop"],
        ),
        Measurement::of("global.get", "(drop (global.get $wide))", &["global.get", "drop"]),
        Measurement::of(
            "global.set",
            "(global.set $narrow (i32.const 1))",
            &["i32.const", "global.set"],
        ),
        Measurement::of(
            "select_of_a_type",
            format!(
                "(drop (select (result i64) (i64.const 1) (i64.const 2) (i32.const {})))",
                number() % 2
            ),
            &["i64.const", "i64.const", "i32.const", "typed_select", "drop"],
        ),
        Measurement::of("ref.null", "(drop (ref.null func))", &["ref.null", "drop"]),
        Measurement::of("ref.func", "(drop (ref.func $empty))", &["ref.func", "drop"]),
        Measurement::of("ref.is_null", "(drop (ref.is_null (ref.null func)))", &["ref.is_null"])
            .compared_with("(drop (ref.null func))", &[]),
    ]
}

fn branches(rng: &mut Rng) -> Vec<Measurement> {
    let case = rng.below(3);
    vec![
        Measurement::of("block", "(block nop)", &["block", "nop", "end"]),
        Measurement::of(
            "if_taken",
            "(if (i32.const 1) (then nop nop))",
            &["i32.const", "if", "nop", "nop"],
        ),
        Measurement::of("if_not_taken", "(if (i32.const 0) (then nop))", &["i32.const", "if"]),
        Measurement::of(
            "else_not_taken",
            "(if (i32.const 1) (then nop) (else nop nop))",
            &["i32.const", "if", "nop", "else"],
        ),
        Measurement::of(
            "else_taken",
            "(if (i32.const 0) (then nop) (else nop nop))",
            &["i32.const", "if", "else", "nop", "nop"],
        ),
        // The code after a branch is another run, and never charged.
        Measurement::of("br", "(block (br 0) nop nop)", &["block", "br"]),
        Measurement::of(
            "br_if_taken",
            "(block (br_if 0 (i32.const 1)) nop)",
            &["block", "i32.const", "br_if"],
        ),
        Measurement::of(
            "br_if_not_taken",
            "(block (br_if 0 (i32.const 0)) nop)",
            &["block", "i32.const", "br_if", "nop"],
        ),
        Measurement::of(
            "br_table",
            format!("(block (block (block (br_table 0 1 2 (i32.const {case}))) nop) nop)"),
            &[&["block", "block", "block", "i32.const", "br_table"], &["nop"; 2][case as usize..]]
                .concat(),
        ),
        Measurement::of("loop", "(loop nop)", &["loop", "nop"]),
    ]
}

fn calls() -> Vec<Measurement> {
    vec![
        Measurement::of("call", "(call $empty)", &["call"]).entering(1),
        Measurement::of(
            "call_indirect",
            "(call_indirect (type $plain) (i32.const 0))",
            &["i32.const", "call_indirect"],
        )
        .entering(1),
        Measurement::of("return", "(call $returns)", &["return"])
            .compared_with("(call $empty)", &[]),
        Measurement::of("return_call", "(call $tail)", &["return_call"])
            .compared_with("(call $empty)", &[])
            .entering(1),
        Measurement::of(
            "return_call_indirect",
            "(call $tail_indirect)",
            &["i32.const", "return_call_indirect"],
        )
        .compared_with("(call $empty)", &[])
        .entering(1),
    ]
}

/// Operators of one iteration of a loop that counts down.
const COUNTED: [&str; 6] = ["local.get", "i32.const", "i32.sub", "local.tee", "br_if", "nop"];

fn loops(rng: &mut Rng) -> Measurement {
    let rounds = 1 + rng.below(100);
    let code = format!(
        "(local.set $narrow (i32.const {rounds})) (loop $again nop (br_if $again \
         (local.tee $narrow (i32.sub (local.get $narrow) (i32.const 1)))))"
    );
    let mut operators = vec!["i32.const", "local.set", "loop"];
    operators.extend(COUNTED.repeat(rounds as usize));
    Measurement::of("loop_counted", code, &operators)
}

/// A loop inside of a loop, each left by a branch out of a block.
fn nested(rng: &mut Rng) -> Measurement {
    let (outer, inner) = (1 + rng.below(9), 1 + rng.below(9));
    let code = format!(
        "(local.set $wide (i64.const {outer})) (block $done (loop $outer \
         (br_if $done (i64.eqz (local.get $wide))) \
         (local.set $wide (i64.sub (local.get $wide) (i64.const 1))) \
         (local.set $narrow (i32.const {inner})) (loop $again nop (br_if $again \
         (local.tee $narrow (i32.sub (local.get $narrow) (i32.const 1))))) (br $outer)))"
    );
    let tested = ["local.get", "i64.eqz", "br_if"];
    let counted = ["local.get", "i64.const", "i64.sub", "local.set", "i32.const", "local.set"];
    let mut operators = vec!["i64.const", "local.set", "block", "loop"];
    for _ in 0..outer {
        operators.extend(tested);
        operators.extend(counted);
        operators.push("loop");
        operators.extend(COUNTED.repeat(inner as usize));
        operators.push("br");
    }
    operators.extend(tested);
    Measurement::of("loop_nested", code, &operators)
}
