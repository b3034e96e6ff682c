//! What the locals of a module's functions may cost when it is compiled: a limit of this
//! replica alone.
//!
//! The compiler keeps, of each local, a table of its values by the blocks of the function, so
//! the time and the memory of compiling a function grow with the product of both:
//!
//! ```text
//! cost of a function = (parameters + locals) × (1 + operators that begin blocks)
//! cost of a module   = the sum of its functions'
//! ```
//!
//! WebAssembly allows 50 000 locals a function. One function of a few kilobytes can so take
//! gigabytes to compile, and 50 000 of them many minutes. The network came to limit locals too,
//! with a number that is not known here.

use wasmparser::{BinaryReaderError, FunctionBody, Operator};

use super::refusal::Invalid;
use super::sections::Sections;

/// The highest cost of a function, at about 16 bytes each. The costliest function of the
/// canisters here has 0.3 million.
const MOST_OF_FUNCTION: u64 = 50_000_000;
/// The highest cost of a module, at up to 75 ns of a processor each. The costliest canister here
/// has 6 million.
const MOST: u64 = 500_000_000;

pub(super) fn check(sections: &Sections<'_>) -> Result<(), Invalid> {
    let unreadable = |error| Invalid::Decoding(format!("Error from wasmparser: {error}"));
    let mut sum = 0_u64;
    for (index, body) in (sections.imported_functions()..).zip(&sections.bodies) {
        let ty = u32::try_from(index).ok().and_then(|index| sections.signature(index));
        let parameters = ty.map_or(0, |ty| ty.params().len()) as u64;
        let locals = parameters + locals(body).map_err(unreadable)?;
        let blocks = 1 + blocks(body).map_err(unreadable)?;
        let cost = locals.saturating_mul(blocks);
        if cost > MOST_OF_FUNCTION {
            let allowed = MOST_OF_FUNCTION;
            return Err(Invalid::TooManyLocals { index, locals, blocks, allowed });
        }
        sum = sum.saturating_add(cost);
    }
    if sum > MOST {
        return Err(Invalid::TooManyLocalsTogether { cost: sum, allowed: MOST });
    }
    Ok(())
}

fn locals(body: &FunctionBody<'_>) -> Result<u64, BinaryReaderError> {
    let mut sum = 0;
    for group in body.get_locals_reader()? {
        sum += u64::from(group?.0);
    }
    Ok(sum)
}

/// Operators behind which the compiler begins a block.
fn blocks(body: &FunctionBody<'_>) -> Result<u64, BinaryReaderError> {
    let mut sum = 0;
    for operator in body.get_operators_reader()? {
        sum += match operator? {
            Operator::Block { .. }
            | Operator::Loop { .. }
            | Operator::If { .. }
            | Operator::Else
            | Operator::Br { .. }
            | Operator::BrIf { .. }
            | Operator::Return => 1,
            Operator::BrTable { targets } => 1 + u64::from(targets.len()),
            _ => 0,
        };
    }
    Ok(sum)
}
