//! Operators that take operands from the stack and give at most one result.
//!
//! Operands are small positive numbers, on which no operator traps.

use stablebench_workload::Rng;

use super::measurement::{Group, Measurement, OPERANDS, times};

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
    OPERATORS.iter().map(group).collect()
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
