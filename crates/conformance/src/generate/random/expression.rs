//! Expressions: trees of operators over constants, variables and the heap.

use stablebench_workload::Rng;

use super::super::pick;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    I32,
    I64,
    F32,
    F64,
}

/// Addresses that expressions load from and store to are below, once masked.
pub(super) const HEAP: u32 = 0xfff8;

/// Operators with operands of types and a result of a type.
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

/// Comparisons of types beside `i32`.
#[rustfmt::skip]
const COMPARISONS: &[(Type, &[&str])] = &[
    (I64, &["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"]),
    (F32, &["eq", "ne", "lt", "gt", "le", "ge"]),
    (F64, &["eq", "ne", "lt", "gt", "le", "ge"]),
];

impl Type {
    pub(super) fn name(self) -> &'static str {
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

    pub(super) fn stores(self) -> &'static [&'static str] {
        match self {
            Self::I32 => &["store", "store8", "store16"],
            Self::I64 => &["store", "store8", "store16", "store32"],
            Self::F32 | Self::F64 => &["store"],
        }
    }

    pub(super) fn any(rng: &mut Rng) -> Self {
        [I32, I64, F32, F64][rng.below(4) as usize]
    }
}

/// An expression of a type, so deep at the most.
pub(super) fn expression(ty: Type, depth: u32, may_trap: bool, rng: &mut Rng) -> String {
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

/// An operator of the table with this result; a leaf if there is none.
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

/// An address inside the heap, or, seldom and where that may be, anywhere.
pub(super) fn address(depth: u32, may_trap: bool, rng: &mut Rng) -> String {
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

/// Small numbers, large ones, and those where something changes.
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
