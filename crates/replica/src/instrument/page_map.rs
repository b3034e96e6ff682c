//! A map of the Wasm pages that a message has touched, for rules that charge for touching.
//!
//! The map is a memory that no operator of the canister can access:
//!
//! ```text
//!   0       charges: instructions for heap pages, not yet subtracted from the counter, i64
//!   8       stable pages touched in this message, i64
//!   16      stable pages written in this message, i64
//!   24      price of touching a page, i64
//!   32      price of writing a page, i64; 0 where that is not charged
//!   65536   a byte for each Wasm page of stable memory: bit 0 written, bit 1 touched
//! ```
//!
//! The host tracks heap pages and adds to `charges` while compiled code runs
//! (`memory/touch.rs`). The actual counter is the module's minus `charges`, so checks compare the
//! module's counter with `charges` instead of zero.

use wasm_encoder::{InstructionSink, MemArg};

use crate::memory::Touches;
use crate::units::{WASM_PAGE, WasmPages};

/// Offsets in the map.
pub mod offset {
    /// Charges for heap pages.
    pub const CHARGES: u64 = 0;
    /// Stable pages touched.
    pub const TOUCHED: u64 = 8;
    /// Stable pages written.
    pub const WRITTEN: u64 = 16;
    /// Price of touching a page.
    pub const TOUCH_PRICE: u64 = 24;
    /// Price of writing a page.
    pub const WRITE_PRICE: u64 = 32;
    /// Marks of stable pages.
    pub const MARKS: u64 = 65_536;
}

/// Export name of the memory.
pub const EXPORT: &str = "page map";

/// Wasm pages of the memory, for a stable memory of at most `stable`.
pub const fn size(stable: WasmPages) -> u64 {
    (offset::MARKS + stable.get()).div_ceil(WASM_PAGE)
}

/// The map in the rewritten module.
#[derive(Clone, Copy, Debug)]
pub struct PageMap {
    /// Memory index.
    pub memory: u32,
}

impl PageMap {
    /// The memory argument for an offset.
    pub fn at(self, offset: u64) -> MemArg {
        MemArg { offset, align: 0, memory_index: self.memory }
    }

    /// Pushes an i64 field onto the stack.
    pub fn load(self, code: &mut InstructionSink<'_>, offset: u64) {
        code.i32_const(0).i64_load(self.at(offset));
    }
}

/// Stable pages that were touched, read from the bytes of a map.
pub fn stable_touches(map: &[u8]) -> Touches {
    Touches { touched: word(map, offset::TOUCHED), written: word(map, offset::WRITTEN) }
}

fn word(map: &[u8], offset: u64) -> u64 {
    let at = offset as usize;
    map.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
