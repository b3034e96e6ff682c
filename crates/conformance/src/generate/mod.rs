//! Cases of our own, to be recorded.
//!
//! They have no expectations. The same seed makes the same cases, on every machine.
//!
//! | | |
//! |---|---|
//! | `modules` | each operator and each call of the System API, measured by itself |
//! | `random` | random programs: what operators and control flow cost together |
//! | `canister` | random calls of the bench canister: real code |

pub mod canister;
pub mod modules;
pub mod random;

use stablebench_workload::Rng;

/// One of the choices.
fn pick<'a, T: ?Sized>(rng: &mut Rng, choices: &[&'a T]) -> &'a T {
    choices[rng.below(choices.len() as u64) as usize]
}
