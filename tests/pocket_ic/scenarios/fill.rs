//! A canister that uses as many instructions as it is told to, and what it costs.

use crate::canister::Rules;

/// The module.
pub const FILL: &str = include_str!("fill.wat");

/// A function, and each operator that is not named below.
const ONE: u64 = 1;
const BR_IF: u64 = 2;
const CALL: u64 = 5;
const MEMORY_FILL: u64 = 100;
const SYSTEM_CALL: u64 = 500;
const PERFORMANCE_COUNTER: u64 = 200;
/// A byte of a reply.
const REPLIED: u64 = 50;

/// What one round fills.
const CHUNK: u64 = 65_536;
/// Filling it: three constants, the fill; `get`, constant, `sub`, `tee`, `br_if`.
const ROUND: u64 = 3 * ONE + MEMORY_FILL + CHUNK + 4 * ONE + BR_IF;
/// Of `$fill` beside rounds and bytes: the function, three constants and the argument of
/// 8 bytes; constant, `load`, `set`; three operands, one with an address, and the fill.
const FILLING: u64 = ONE + 3 * ONE + CALL + SYSTEM_CALL + 8 + 3 * ONE + 4 * ONE + MEMORY_FILL;
/// Of `$answer` until the counter is read, which is after all operators of the function
/// were charged for: the function, four constants, `store`, four calls.
const READING: u64 = ONE + 4 * ONE + ONE + 4 * CALL + PERFORMANCE_COUNTER;
/// Of `$answer` after that.
const ANSWERING: u64 = SYSTEM_CALL + 8 * REPLIED + SYSTEM_CALL;

/// Wasm pages of the heap: one is filled, the argument goes to the other.
const PAGES: u64 = 2;

/// The argument with which a whole update uses exactly `instructions` under those rules, and
/// what it answers then.
pub fn updating(rules: Rules, instructions: u64) -> ([u8; 8], u64) {
    let prices = rules.pages();
    using(instructions, PAGES * (prices.wasm_page_touched + prices.wasm_page_written).get())
}

/// The same of a query, which does not pay for writing to pages.
pub fn querying(rules: Rules, instructions: u64) -> ([u8; 8], u64) {
    using(instructions, PAGES * rules.pages().wasm_page_touched.get())
}

fn using(instructions: u64, pages: u64) -> ([u8; 8], u64) {
    let filling = instructions - (FILLING + READING + ANSWERING + pages);
    let times = u32::try_from(filling / ROUND).unwrap();
    let rest = u32::try_from(filling % ROUND).unwrap();
    assert!(times > 0 && u64::from(rest) <= CHUNK, "{instructions} cannot be used");
    let mut argument = [0; 8];
    argument[..4].copy_from_slice(&times.to_le_bytes());
    argument[4..].copy_from_slice(&rest.to_le_bytes());
    (argument, instructions - ANSWERING)
}

/// The number of a reply.
pub fn number(reply: &[u8]) -> u64 {
    u64::from_le_bytes(reply.try_into().unwrap())
}
