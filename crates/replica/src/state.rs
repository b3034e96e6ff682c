//! What a canister keeps between messages.

use std::io;

use wasmparser::ValType;
use wasmtime::Val;

use crate::memory::Image;

/// What a canister keeps between messages.
#[derive(Clone, Debug)]
pub struct State {
    /// The heap.
    pub heap: Image,
    /// Stable memory.
    pub stable: Image,
    /// Mutable globals, in the order of the module; empty before the first run,
    /// when they have the values that the module gives them.
    pub globals: Vec<GlobalValue>,
    /// Certified data.
    pub certified_data: Vec<u8>,
    /// The global timer, 0 when not set.
    pub timer: u64,
    /// Whether a message was kept in part: the memories are of two moments.
    pub torn: bool,
}

impl State {
    /// What a canister without a module keeps.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn empty() -> io::Result<Self> {
        Ok(Self {
            heap: Image::new()?,
            stable: Image::new()?,
            globals: Vec::new(),
            certified_data: Vec::new(),
            timer: 0,
            torn: false,
        })
    }
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
    /// The value, unless it is a reference.
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

    /// Its type.
    pub fn ty(self) -> ValType {
        match self {
            Self::I32(_) => ValType::I32,
            Self::I64(_) => ValType::I64,
            Self::F32(_) => ValType::F32,
            Self::F64(_) => ValType::F64,
            Self::V128(_) => ValType::V128,
        }
    }

    /// The value as the engine has it.
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
