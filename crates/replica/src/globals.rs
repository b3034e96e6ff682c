//! The globals of a module that the replica exports, which `canister_status` counts and snapshots
//! list.
//!
//! ```text
//!   exports of the module that are globals, mutable or not, in their order
//!   then mutable globals without an export, by index
//!   then the instruction counter, a global of the replica, which is not listed here
//! ```
//!
//! Source: `export_mutable_globals` in `rs/embedders/src/wasm_utils/instrumentation.rs` of the
//! replica.

use wasmparser::{ConstExpr, ExternalKind, Operator, Parser, Payload, ValType};
use wasmtime::Val;

/// A global that the replica exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportedGlobal {
    /// The index in the module.
    pub index: u32,
    /// The type.
    pub ty: ValType,
    /// The initial value; `None` for a reference, which the replica does not support.
    pub initial: Option<GlobalValue>,
    /// The position among the mutable globals, by index; `None` for a constant.
    pub mutable: Option<usize>,
}

/// The value of a mutable global, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum GlobalValue {
    /// `i32`
    I32(i32),
    /// `i64`
    I64(i64),
    /// `f32`
    F32(u32),
    /// `f64`
    F64(u64),
    /// `v128`
    V128(u128),
}

impl GlobalValue {
    /// The value, or `None` for a reference.
    pub fn read(value: &Val) -> Option<Self> {
        Some(match value {
            Val::I32(value) => Self::I32(*value),
            Val::I64(value) => Self::I64(*value),
            Val::F32(bits) => Self::F32(*bits),
            Val::F64(bits) => Self::F64(*bits),
            Val::V128(bits) => Self::V128(bits.as_u128()),
            _ => return None,
        })
    }

    /// Type of the value.
    pub fn ty(self) -> ValType {
        match self {
            Self::I32(_) => ValType::I32,
            Self::I64(_) => ValType::I64,
            Self::F32(_) => ValType::F32,
            Self::F64(_) => ValType::F64,
            Self::V128(_) => ValType::V128,
        }
    }

    /// The value as the engine represents it.
    pub fn value(self) -> Val {
        match self {
            Self::I32(value) => Val::I32(value),
            Self::I64(value) => Val::I64(value),
            Self::F32(bits) => Val::F32(bits),
            Self::F64(bits) => Val::F64(bits),
            Self::V128(bits) => Val::V128(bits.into()),
        }
    }
}

/// Returns the globals that the replica exports of a module that passed validation.
pub fn exported(wasm: &[u8]) -> Vec<ExportedGlobal> {
    let (mut globals, mut exports) = (Vec::new(), Vec::new());
    let mut mutable = 0..;
    for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
        match payload {
            Payload::GlobalSection(section) => {
                // Canisters import only functions.
                for (index, global) in (0..).zip(section.into_iter().map_while(Result::ok)) {
                    globals.push(ExportedGlobal {
                        index,
                        ty: global.ty.content_type,
                        initial: initial(&global.init_expr),
                        mutable: global.ty.mutable.then(|| mutable.next()).flatten(),
                    });
                }
            }
            Payload::ExportSection(section) => exports.extend(
                section
                    .into_iter()
                    .map_while(Result::ok)
                    .filter(|export| export.kind == ExternalKind::Global)
                    .map(|export| export.index),
            ),
            Payload::CodeSectionStart { .. } => break,
            _ => {}
        }
    }
    let named = exports.iter().filter_map(|index| globals.get(*index as usize)).copied();
    let unnamed = globals.iter().copied();
    let unnamed = unnamed.filter(|it| it.mutable.is_some() && !exports.contains(&it.index));
    named.chain(unnamed).collect()
}

fn initial(expression: &ConstExpr<'_>) -> Option<GlobalValue> {
    match expression.get_operators_reader().read().ok()? {
        Operator::I32Const { value } => Some(GlobalValue::I32(value)),
        Operator::I64Const { value } => Some(GlobalValue::I64(value)),
        Operator::F32Const { value } => Some(GlobalValue::F32(value.bits())),
        Operator::F64Const { value } => Some(GlobalValue::F64(value.bits())),
        Operator::V128Const { value } => Some(GlobalValue::V128(value.i128().cast_unsigned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exported_globals_come_first() {
        let wasm = wat::parse_str(
            r#"(module
                (global $a (mut i32) (i32.const 1))
                (global $b i64 (i64.const 2))
                (global $c (mut f32) (f32.const 3))
                (global $d f64 (f64.const 4))
                (global $e (mut v128) (v128.const i64x2 5 6))
                (export "last" (global $e)) (export "again" (global $e))
                (export "constant" (global $b)))"#,
        )
        .unwrap();
        let all = exported(&wasm);
        let indices: Vec<u32> = all.iter().map(|it| it.index).collect();
        assert_eq!(indices, [4, 4, 1, 0, 2]);
        let mutable: Vec<Option<usize>> = all.iter().map(|it| it.mutable).collect();
        assert_eq!(mutable, [Some(2), Some(2), None, Some(0), Some(1)]);
        let initial: Vec<GlobalValue> = all.iter().filter_map(|it| it.initial).collect();
        let v128 = GlobalValue::V128(5 | 6 << 64);
        let rest = [GlobalValue::I64(2), GlobalValue::I32(1), GlobalValue::F32(3f32.to_bits())];
        assert_eq!(initial, [[v128, v128].as_slice(), &rest].concat());
    }
}
