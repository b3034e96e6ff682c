//! Splits a function body into straight-line runs and computes the cost of each.
//!
//! A run ends after an operator that branches or at which branches meet. Its whole cost is charged
//! at its start:
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

use wasmparser::Operator;

use super::operator_cost::operator_cost;
use crate::rules::Rules;
use crate::system_api::names::AddressWidth;

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

#[cfg(test)]
mod tests {
    use super::*;
    use wasmparser::{BlockType, MemArg};

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
}
