//! Charges for the WebAssembly operators of a function, in instructions.
//!
//! The table [`PRICES`] lists every operator that a canister may contain. Other operators have no
//! price: a module that contains one is refused, so that nothing is ever counted by a guess.
//!
//! A function body is split into straight-line runs. A run ends after an operator that branches or at
//! which branches meet. Its whole cost is charged at its start:
//!
//! ```text
//!   operators   local.get  i32.const  if      i32.add  end     …
//!   runs       |--------- 4 ---------|------ 1 -------|-----
//!              ^ charged here, with a check          ^
//! ```
//!
//! The first run of a function costs one more. Only the first runs of a function and of a loop body
//! check the counter; they are charged even if they cost nothing. Other runs are charged only if
//! they cost something.
//!
//! Source: `instruction_to_cost` in the replica's
//! `rs/embedders/src/wasm_utils/instrumentation.rs`, measured on a PocketIC
//! server by the `opcodes` cases of the conformance suite.

use std::sync::LazyLock;

use wasmparser::{Operator, Parser, Payload};

use super::instrumented::Error;
use crate::rules::Rules;
use crate::system_api::functions::AddressWidth;

/// Marks loads and stores, which cost twice as much in 64-bit heaps.
const MEMORY: u16 = u16::MAX;
/// Marks the operator whose price is in the rule set.
const BY_RULES: u16 = u16::MAX - 1;

/// Prices and the operators that have them. [`MEMORY`] marks loads and stores, [`BY_RULES`] the
/// price that differs between rule sets.
#[rustfmt::skip]
const PRICES: &[(u16, &str)] = &[
    (0, "Block Loop Else End"),
    (1, "I32Const I64Const F32Const F64Const V128Const Nop Drop Return Unreachable \
         LocalGet LocalSet LocalTee Select TypedSelect RefNull"),
    (1, "I32Eqz I32Eq I32Ne I32LtS I32LtU I32GtS I32GtU I32LeS I32LeU I32GeS I32GeU \
         I64Eqz I64Eq I64Ne I64LtS I64LtU I64GtS I64GtU I64LeS I64LeU I64GeS I64GeU"),
    (1, "I32Clz I32Ctz I32Popcnt I32Add I32Sub I32Mul I32And I32Or I32Xor I32Shl I32ShrS I32ShrU I32Rotl I32Rotr \
         I64Clz I64Ctz I64Popcnt I64Add I64Sub I64Mul I64And I64Or I64Xor I64Shl I64ShrS I64ShrU I64Rotl I64Rotr"),
    (1, "I32WrapI64 I64ExtendI32S I64ExtendI32U I32Extend8S I32Extend16S I64Extend8S I64Extend16S I64Extend32S \
         I32ReinterpretF32 I64ReinterpretF64 F32ReinterpretI32 F64ReinterpretI64 \
         F32DemoteF64 F64PromoteF32 F32Abs F32Neg F64Abs F64Neg"),
    (MEMORY, "I32Load I64Load F32Load F64Load I32Load8S I32Load8U I32Load16S I32Load16U \
         I64Load8S I64Load8U I64Load16S I64Load16U I64Load32S I64Load32U \
         I32Store I64Store F32Store F64Store I32Store8 I32Store16 I64Store8 I64Store16 I64Store32"),
    (2, "If Br BrIf BrTable GlobalGet GlobalSet"),
    (2, "F32Ceil F32Floor F32Trunc F32Nearest F32Add F32Sub F32Mul F32Copysign \
         F64Ceil F64Floor F64Trunc F64Nearest F64Add F64Sub F64Mul"),
    (3, "F32Div F64Copysign ReturnCall F32Eq F32Ne F32Lt F32Gt F32Le F32Ge F64Eq F64Ne F64Lt F64Gt F64Le F64Ge \
         F32ConvertI32S F32ConvertI64S F64ConvertI32S F64ConvertI64S"),
    (5, "Call F64Div F32Sqrt TableGet RefIsNull"),
    (8, "F64Sqrt"),
    (10, "I32DivS I32DivU I32RemS I32RemU I64DivS I64DivU I64RemS I64RemU CallIndirect"),
    (16, "F32ConvertI32U F32ConvertI64U F64ConvertI32U F64ConvertI64U"),
    (18, "F32Min F32Max F64Min F64Max"),
    (20, "MemorySize I32TruncF32S I32TruncF32U I32TruncF64S I32TruncF64U \
         I64TruncF32S I64TruncF32U I64TruncF64S I64TruncF64U \
         I32TruncSatF32S I32TruncSatF32U I32TruncSatF64S I32TruncSatF64U \
         I64TruncSatF32S I64TruncSatF32U I64TruncSatF64S I64TruncSatF64U"),
    (BY_RULES, "ReturnCallIndirect"),
    (100, "MemoryFill MemoryCopy MemoryInit TableSize"),
    (130, "RefFunc"),
    (300, "MemoryGrow DataDrop ElemDrop"),

    (MEMORY, "V128Load V128Load8x8S V128Load8x8U V128Load16x4S V128Load16x4U V128Load32x2S V128Load32x2U \
         V128Load8Splat V128Load16Splat V128Load32Splat V128Load64Splat V128Load32Zero V128Load64Zero V128Store \
         V128Load8Lane V128Load16Lane V128Load32Lane V128Load64Lane \
         V128Store8Lane V128Store16Lane V128Store32Lane V128Store64Lane"),
    (1, "I8x16ExtractLaneS I8x16ExtractLaneU I8x16ReplaceLane I16x8ExtractLaneS I16x8ExtractLaneU I16x8ReplaceLane \
         I32x4ExtractLane I32x4ReplaceLane I64x2ExtractLane I64x2ReplaceLane \
         F32x4ExtractLane F32x4ReplaceLane F64x2ExtractLane F64x2ReplaceLane \
         I8x16Swizzle I8x16Splat I16x8Splat I32x4Splat I64x2Splat F32x4Splat F64x2Splat"),
    (1, "I8x16Eq I8x16Ne I8x16LtS I8x16GtS I8x16LeS I8x16LeU I8x16GeS I8x16GeU \
         I16x8Eq I16x8Ne I16x8LtS I16x8GtS I16x8LeS I16x8LeU I16x8GeS I16x8GeU \
         I32x4Eq I32x4Ne I32x4LtS I32x4GtS I32x4LeS I32x4LeU I32x4GeS I32x4GeU \
         I64x2Eq I64x2Ne I64x2LtS I64x2GtS I64x2LeS I64x2GeS \
         F32x4Eq F32x4Ne F32x4Lt F32x4Gt F32x4Le F32x4Ge F64x2Eq F64x2Ne F64x2Lt F64x2Gt F64x2Le F64x2Ge \
         V128Not V128And V128AndNot V128Or V128Xor V128Bitselect V128AnyTrue"),
    (1, "I8x16Abs I8x16Neg I8x16AllTrue I8x16Bitmask I8x16NarrowI16x8S I8x16NarrowI16x8U \
         I8x16Add I8x16AddSatS I8x16AddSatU I8x16Sub I8x16SubSatS I8x16SubSatU \
         I8x16MinS I8x16MinU I8x16MaxS I8x16MaxU I8x16AvgrU"),
    (1, "I16x8ExtAddPairwiseI8x16S I16x8Abs I16x8Neg I16x8Q15MulrSatS I16x8AllTrue I16x8Bitmask \
         I16x8NarrowI32x4S I16x8NarrowI32x4U I16x8ExtendLowI8x16S I16x8ExtendHighI8x16S \
         I16x8ExtendLowI8x16U I16x8ExtendHighI8x16U I16x8Add I16x8AddSatS I16x8AddSatU \
         I16x8Sub I16x8SubSatS I16x8SubSatU I16x8Mul I16x8MinS I16x8MinU I16x8MaxS I16x8MaxU I16x8AvgrU \
         I16x8ExtMulLowI8x16S I16x8ExtMulLowI8x16U"),
    (1, "I32x4ExtAddPairwiseI16x8S I32x4Abs I32x4Neg I32x4AllTrue I32x4Bitmask \
         I32x4ExtendLowI16x8S I32x4ExtendHighI16x8S I32x4ExtendLowI16x8U I32x4ExtendHighI16x8U \
         I32x4Add I32x4Sub I32x4MinS I32x4MinU I32x4MaxS I32x4MaxU I32x4DotI16x8S"),
    (1, "I64x2Abs I64x2Neg I64x2AllTrue I64x2Bitmask I64x2ExtendLowI32x4S I64x2ExtendHighI32x4S \
         I64x2ExtendLowI32x4U I64x2ExtendHighI32x4U I64x2Add I64x2Sub \
         I64x2ExtMulLowI32x4S I64x2ExtMulHighI32x4S I64x2ExtMulLowI32x4U I64x2ExtMulHighI32x4U"),
    (1, "F32x4PMin F32x4PMax F64x2PMin F64x2PMax F32x4ConvertI32x4S F64x2ConvertLowI32x4S \
         F64x2ConvertLowI32x4U F32x4DemoteF64x2Zero F64x2PromoteLowF32x4"),
    (2, "I8x16LtU I8x16GtU I16x8LtU I16x8GtU I32x4LtU I32x4GtU I8x16ShrU \
         I16x8Shl I16x8ShrS I16x8ShrU I32x4Shl I32x4ShrS I32x4ShrU I64x2Shl I64x2ShrU \
         I16x8ExtAddPairwiseI8x16U I16x8ExtMulHighI8x16S I16x8ExtMulHighI8x16U I32x4Mul \
         I32x4ExtMulLowI16x8S I32x4ExtMulHighI16x8S I32x4ExtMulLowI16x8U I32x4ExtMulHighI16x8U"),
    (2, "F32x4Abs F32x4Neg F32x4Ceil F32x4Floor F32x4Trunc F32x4Nearest F32x4Add F32x4Sub F32x4Mul \
         F64x2Abs F64x2Neg F64x2Ceil F64x2Floor F64x2Trunc F64x2Nearest F64x2Add F64x2Sub F64x2Mul \
         I32x4TruncSatF32x4S I32x4TruncSatF64x2SZero"),
    (3, "I8x16Shuffle I8x16Popcnt I8x16Shl I8x16ShrS I64x2ShrS I32x4ExtAddPairwiseI16x8U I32x4TruncSatF64x2UZero"),
    (4, "I64x2Mul F32x4Min F32x4Max F64x2Min I32x4TruncSatF32x4U F32x4ConvertI32x4U"),
    (5, "F64x2Max F32x4Sqrt"),
    (10, "F32x4Div"),
    (12, "F64x2Div"),
    (14, "F64x2Sqrt"),
];

macro_rules! define_index {
    ($( @$proposal:ident $op:ident $({ $($arg:ident: $ty:ty),* })? => $visit:ident ($($ann:tt)*) )*) => {
        /// Every operator of the parser, in its order.
        const OPERATORS: &[&str] = &[$(stringify!($op)),*];

        #[allow(clippy::upper_case_acronyms)]
        enum Index { $($op),* }

        fn index(operator: &Operator<'_>) -> Option<usize> {
            match operator {
                $(Operator::$op { .. } => Some(Index::$op as usize),)*
                // The enum is non-exhaustive. New operators have no price.
                _ => None,
            }
        }
    };
}
wasmparser::for_each_operator!(define_index);

static BY_INDEX: LazyLock<Vec<Option<u16>>> = LazyLock::new(|| {
    let priced: std::collections::BTreeMap<&str, u16> = PRICES
        .iter()
        .flat_map(|(price, names)| names.split_whitespace().map(|name| (name, *price)))
        .collect();
    OPERATORS.iter().map(|name| priced.get(name).copied()).collect()
});

/// The static cost of `operator`, or `None` if it has no price.
fn operator_cost(operator: &Operator<'_>, heap: AddressWidth, rules: Rules) -> Option<u64> {
    match BY_INDEX[index(operator)?]? {
        MEMORY => Some(match heap {
            AddressWidth::Bits32 => 1,
            AddressWidth::Bits64 => 2,
        }),
        BY_RULES => Some(rules.set().return_call_indirect.get()),
        price => Some(u64::from(price)),
    }
}

/// A charge before the operator at `position`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Index of the operator that the charge precedes.
    pub position: usize,
    /// Kind of the charge.
    pub kind: ChargeKind,
}

/// Amount of a charge, and whether the counter is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeKind {
    /// The cost of the run that starts here.
    Run {
        /// Instructions.
        cost: u64,
        /// True at the start of a function or loop, where the counter is checked.
        check: bool,
    },
    /// The size operand on top of the stack, with a check.
    Size,
}

/// The operator at this position has no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpriced(pub usize);

/// The charges of a function body, in order of position.
///
/// # Errors
///
/// [`Unpriced`] if an operator has no price.
pub fn charges(
    body: &[Operator<'_>],
    heap: AddressWidth,
    rules: Rules,
) -> Result<Vec<Charge>, Unpriced> {
    let mut charges = Vec::new();
    // The size operators of the current run.
    let mut sizes: Vec<Charge> = Vec::new();
    let (mut start, mut cost, mut check) = (0, 1, true);
    for (position, operator) in body.iter().enumerate() {
        cost += operator_cost(operator, heap, rules).ok_or(Unpriced(position))?;
        match operator {
            Operator::MemoryFill { .. }
            | Operator::MemoryCopy { .. }
            | Operator::MemoryInit { .. } => {
                sizes.push(Charge { position, kind: ChargeKind::Size });
            }
            _ if ends_run(operator) => {
                // A size operator at the start of a run is charged before the run.
                let leading = sizes.iter().take_while(|size| size.position == start).count();
                charges.extend(sizes.drain(..leading));
                if cost > 0 || check {
                    charges.push(Charge { position: start, kind: ChargeKind::Run { cost, check } });
                }
                charges.append(&mut sizes);
                (start, cost, check) = (position + 1, 0, matches!(operator, Operator::Loop { .. }));
            }
            _ => {}
        }
    }
    Ok(charges)
}

/// Returns true if a run ends after the operator.
pub fn ends_run(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::Loop { .. }
            | Operator::If { .. }
            | Operator::Else
            | Operator::End
            | Operator::Br { .. }
            | Operator::BrIf { .. }
            | Operator::BrTable { .. }
            | Operator::Return
            | Operator::Unreachable
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. }
    )
}

/// Instructions for compiling an operator: `DEFAULT_COST_TO_COMPILE_WASM_INSTRUCTION`.
const COMPILING: u64 = 6_000;

// Operators that are compiled, as `compiling_estimate` counts them.
const CHECKED_RUN: u64 = 10;
const RUN: u64 = 4;
const SIZE: u64 = 3;
const SIZE_64: u64 = 1;
const MEMORY_GROW: u64 = 3;
const GLOBAL: u64 = 2;

/// Returns an estimate of what the Internet Computer charges for compiling a module that has passed
/// validation, in instructions.
///
/// It charges for each operator that it compiles: those of the module, and those that its own metering
/// adds.
///
/// ```text
///   each operator, `end` included                    1
///   the start of a function or a loop body          10   the counter is reduced and checked
///   another run of operators that costs something    4   the counter is reduced
///   the size of a bulk memory operation              3   with 64-bit addresses 1
///   memory.grow                                      3
///   a global, imported ones excluded                 2
/// ```
///
/// Left out are the functions that the replica adds to each module, some hundred operators: they are
/// not the same in all its versions. Source: `rs/embedders/src/wasm_utils/instrumentation.rs`. No server
/// has confirmed the estimate.
///
/// # Errors
///
/// If it cannot be parsed, or an operator has no price.
pub fn compiling_estimate(wasm: &[u8], rules: Rules) -> Result<u64, Error> {
    let (mut operators, mut function) = (0, 0);
    let mut heap = AddressWidth::Bits32;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::MemorySection(memories) => {
                for memory in memories {
                    if memory?.memory64 {
                        heap = AddressWidth::Bits64;
                    }
                }
            }
            Payload::GlobalSection(globals) => operators += GLOBAL * u64::from(globals.count()),
            Payload::CodeSectionEntry(body) => {
                let body =
                    body.get_operators_reader()?.into_iter().collect::<Result<Vec<_>, _>>()?;
                operators += compiled_operators(&body, heap, rules).map_err(|Unpriced(at)| {
                    Error::Unpriced { function, operator: format!("{:?}", body[at]) }
                })?;
                function += 1;
            }
            _ => {}
        }
    }
    Ok(operators * COMPILING)
}

/// Returns the number of operators of a function, with those of metering.
fn compiled_operators(
    body: &[Operator<'_>],
    heap: AddressWidth,
    rules: Rules,
) -> Result<u64, Unpriced> {
    let charges = charges(body, heap, rules)?;
    let added = charges.iter().map(|charge| match charge.kind {
        ChargeKind::Run { check: true, .. } => CHECKED_RUN,
        ChargeKind::Run { check: false, .. } => RUN,
        // The size of `memory.init` has 32 bits.
        ChargeKind::Size => match (&body[charge.position], heap) {
            (Operator::MemoryInit { .. }, _) | (_, AddressWidth::Bits32) => SIZE,
            (_, AddressWidth::Bits64) => SIZE_64,
        },
    });
    let grows = body.iter().filter(|operator| matches!(operator, Operator::MemoryGrow { .. }));
    Ok(body.len() as u64 + added.sum::<u64>() + MEMORY_GROW * grows.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use wasmparser::{BlockType, MemArg};

    /// Lists every operator of the parser with its price, so that new operators and changed
    /// prices are noticed.
    #[test]
    fn price_of_every_operator() {
        let mut printed = String::new();
        for (name, price) in OPERATORS.iter().zip(BY_INDEX.iter()) {
            match price {
                Some(MEMORY) => writeln!(printed, "{name} 1 (2 in wasm64)"),
                Some(BY_RULES) => {
                    writeln!(printed, "{name} {}", Rules::today().set().return_call_indirect)
                }
                Some(price) => writeln!(printed, "{name} {price}"),
                None => writeln!(printed, "{name} refused"),
            }
            .unwrap();
        }
        insta::assert_snapshot!(printed);
    }

    #[test]
    fn each_priced_name_is_an_operator_named_once() {
        let mut names: Vec<&str> =
            PRICES.iter().flat_map(|(_, names)| names.split_whitespace()).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1], "priced twice");
        }
        for name in names {
            assert!(OPERATORS.contains(&name), "{name} is not an operator");
        }
    }

    fn run(position: usize, cost: u64, check: bool) -> Charge {
        Charge { position, kind: ChargeKind::Run { cost, check } }
    }

    #[test]
    fn an_empty_function_costs_one() {
        assert_eq!(
            charges(&[Operator::End], AddressWidth::Bits32, Rules::today()),
            Ok(vec![run(0, 1, true)])
        );
    }

    #[test]
    fn a_loop_is_checked_even_if_it_costs_nothing() {
        let body = [
            Operator::Loop { blockty: BlockType::Empty },
            Operator::Loop { blockty: BlockType::Empty },
            Operator::End,
            Operator::End,
            Operator::End,
        ];
        assert_eq!(
            charges(&body, AddressWidth::Bits32, Rules::today()),
            Ok(vec![run(0, 1, true), run(1, 0, true), run(2, 0, true)])
        );
    }

    #[test]
    fn a_size_is_charged_after_its_run() {
        let body = [
            Operator::I32Const { value: 0 },
            Operator::I32Const { value: 0 },
            Operator::I32Const { value: 9 },
            Operator::MemoryFill { mem: 0 },
            Operator::End,
        ];
        assert_eq!(
            charges(&body, AddressWidth::Bits32, Rules::today()),
            Ok(vec![run(0, 104, true), Charge { position: 3, kind: ChargeKind::Size }])
        );
    }

    #[test]
    fn loads_cost_twice_in_wasm64() {
        let memarg = MemArg { align: 0, max_align: 0, offset: 0, memory: 0 };
        let body = [Operator::I32Load { memarg }, Operator::End];
        assert_eq!(charges(&body, AddressWidth::Bits32, Rules::today()), Ok(vec![run(0, 2, true)]));
        assert_eq!(charges(&body, AddressWidth::Bits64, Rules::today()), Ok(vec![run(0, 3, true)]));
    }

    #[test]
    fn an_operator_without_a_price_is_an_error() {
        let body = [
            Operator::Nop,
            Operator::I32AtomicLoad {
                memarg: MemArg { align: 2, max_align: 2, offset: 0, memory: 0 },
            },
        ];
        assert_eq!(charges(&body, AddressWidth::Bits32, Rules::today()), Err(Unpriced(1)));
    }

    /// Returns the number of operators of a module in text.
    fn operators(module: &str) -> u64 {
        compiling_estimate(&wat::parse_str(module).unwrap(), Rules::today()).unwrap() / COMPILING
    }

    #[test]
    fn operators_of_metering_are_counted() {
        assert_eq!(operators("(module)"), 0);
        assert_eq!(operators("(module (global i32 (i32.const 1)))"), GLOBAL);
        // `end`, and the start of the function.
        assert_eq!(operators("(module (func))"), 1 + CHECKED_RUN);
        // if, nop, end, end: the run before `if`, and the one with `nop`.
        let branch = "(module (func (param i32) local.get 0 if nop end))";
        assert_eq!(operators(branch), 5 + CHECKED_RUN + RUN);
        let looping = "(module (func loop nop end))";
        assert_eq!(operators(looping), 4 + 2 * CHECKED_RUN);
    }

    #[test]
    fn sizes_and_growth_are_counted_by_the_width_of_addresses() {
        let fill = |width: &str| {
            format!(
                "(module (memory {width} 1) (func ({width}.const 0) (i32.const 0) \
                 ({width}.const 1) memory.fill ({width}.const 1) memory.grow drop))"
            )
        };
        let operators_of = 8 + CHECKED_RUN + MEMORY_GROW;
        assert_eq!(operators(&fill("i32")), operators_of + SIZE);
        assert_eq!(operators(&fill("i64")), operators_of + SIZE_64);
    }
}
