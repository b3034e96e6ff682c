//! An estimate of what the Internet Computer charges for compiling a module.
//!
//! It charges for each operator that it compiles: those of the module, and those that its own metering
//! adds.
//!
//! ```text
//!   each operator, `end` included                    1
//!   the start of a function or a loop body          10   the counter is reduced and checked
//!   another run of operators that costs something    4   the counter is reduced
//!   the size of a bulk memory operation              3   with 64-bit addresses 1
//!   memory.grow                                      3
//!   a global, imported ones excluded                 2
//! ```
//!
//! Left out are the functions that the replica adds to each module, some hundred operators: they are
//! not the same in all its versions. Source: `rs/embedders/src/wasm_utils/instrumentation.rs`. No server
//! has confirmed the estimate.

use wasmparser::{Operator, Parser, Payload};

use super::blocks::{ChargeKind, charges};
use super::instrumented::Error;
use crate::rules::Rules;
use crate::system_api::names::AddressWidth;

/// Instructions for an operator: `DEFAULT_COST_TO_COMPILE_WASM_INSTRUCTION`.
const INSTRUCTIONS: u64 = 6_000;

const CHECKED_RUN: u64 = 10;
const RUN: u64 = 4;
const SIZE: u64 = 3;
const SIZE_64: u64 = 1;
const MEMORY_GROW: u64 = 3;
const GLOBAL: u64 = 2;

/// Returns the estimate in instructions, for a module that has passed validation.
///
/// # Errors
///
/// If it cannot be parsed, or an operator has no price.
pub fn estimate(wasm: &[u8], rules: Rules) -> Result<u64, Error> {
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
                operators += of_body(&body, heap, rules).map_err(|at| Error::Unpriced {
                    function,
                    operator: format!("{:?}", body[at]),
                })?;
                function += 1;
            }
            _ => {}
        }
    }
    Ok(operators * INSTRUCTIONS)
}

/// Returns the number of operators of a function, with those of metering.
fn of_body(body: &[Operator<'_>], heap: AddressWidth, rules: Rules) -> Result<u64, usize> {
    let charges = charges(body, heap, rules).map_err(|unpriced| unpriced.0)?;
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

    /// Returns the number of operators of a module in text.
    fn operators(module: &str) -> u64 {
        estimate(&wat::parse_str(module).unwrap(), Rules::today()).unwrap() / INSTRUCTIONS
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
