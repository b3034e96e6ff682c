//! State of a canister between messages, and the globals of its module.
//!
//! The replica exports these globals of a module, which `canister_status` counts and snapshots list:
//!
//! ```text
//!   exports of the module that are globals, mutable or not, in their order
//!   then mutable globals without an export, by index
//!   then the instruction counter, a global of the replica, which is not listed here
//! ```
//!
//! Source: `export_mutable_globals` in `rs/embedders/src/wasm_utils/instrumentation.rs` of the
//! replica.

use std::collections::BTreeSet;
use std::io;

use wasmparser::{ConstExpr, ExternalKind, Operator, Parser, Payload, ValType};
use wasmtime::Val;

use crate::instrument::Instrumented;
use crate::memory::pages::push;
use crate::memory::{Image, PAGE};
use crate::units::WASM_PAGE;

/// State of a canister between messages.
#[derive(Clone, Debug)]
pub struct State {
    /// The heap.
    pub heap: Image,
    /// Stable memory.
    pub stable: Image,
    /// Mutable globals, in the order of the module; empty before the first message, when they
    /// have their initial values.
    pub globals: Vec<GlobalValue>,
    /// Certified data.
    pub certified_data: Vec<u8>,
    /// The global timer, 0 when not set.
    pub timer: u64,
    /// True if a message was committed only in part, so that the memories are inconsistent.
    pub torn: bool,
}

impl State {
    /// The state of a canister without a module.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn empty() -> io::Result<Self> {
        Ok(Self {
            heap: Image::new(),
            stable: Image::new(),
            globals: Vec::new(),
            certified_data: Vec::new(),
            timer: 0,
            torn: false,
        })
    }

    /// The state of a canister before the first function of `module` runs.
    pub fn initial(module: &Instrumented, stable: Image) -> io::Result<Self> {
        let mut heap = Image::new();
        let size = usize::try_from(module.heap_pages * WASM_PAGE)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut mapping = heap.map(size, 0)?;
        mapping.grow(size)?;
        let mut pages = BTreeSet::new();
        for (address, bytes) in &module.data {
            let outside = || io::Error::new(io::ErrorKind::InvalidData, "data outside the heap");
            let start = usize::try_from(*address).map_err(|_| outside())?;
            let end = start.checked_add(bytes.len()).ok_or_else(outside)?;
            mapping.bytes_mut().get_mut(start..end).ok_or_else(outside)?.copy_from_slice(bytes);
            pages.extend(start / PAGE..end.div_ceil(PAGE));
        }
        let mut ranges = Vec::new();
        pages.into_iter().for_each(|page| push(&mut ranges, page));
        heap.store(mapping.bytes(), &ranges)?;
        Ok(Self { heap, stable, ..Self::empty()? })
    }

    /// Replaces the heap by one that an upgrade keeps. A heap smaller than the first size of the
    /// module grows to it.
    pub fn keep_heap(&mut self, mut heap: Image) -> io::Result<()> {
        let size = self.heap.size();
        if heap.size() < size {
            let mut mapping = heap.map(size, 0)?;
            mapping.grow(size)?;
            heap.store(mapping.bytes(), &[])?;
        }
        self.heap = heap;
        Ok(())
    }
}

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
pub fn exported_globals(wasm: &[u8]) -> Vec<ExportedGlobal> {
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
        let all = exported_globals(&wasm);
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
