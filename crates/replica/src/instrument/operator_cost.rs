//! Prices of WebAssembly operators, in instructions.
//!
//! The table [`PRICES`] lists every operator that a canister may contain. Other operators have no
//! price: a module that contains one is refused, so that nothing is ever counted by a guess.
//!
//! Source: `instruction_to_cost` in the replica's
//! `rs/embedders/src/wasm_utils/instrumentation.rs`, measured on a PocketIC
//! server by the `opcodes` cases of the conformance suite.

use std::sync::LazyLock;

use wasmparser::Operator;

use crate::rules::Rules;
use crate::system_api::names::AddressWidth;

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
        pub const OPERATORS: &[&str] = &[$(stringify!($op)),*];

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
pub fn operator_cost(operator: &Operator<'_>, heap: AddressWidth, rules: Rules) -> Option<u64> {
    match BY_INDEX[index(operator)?]? {
        MEMORY => Some(match heap {
            AddressWidth::Bits32 => 1,
            AddressWidth::Bits64 => 2,
        }),
        BY_RULES => Some(rules.set().return_call_indirect.get()),
        price => Some(u64::from(price)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

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
}
