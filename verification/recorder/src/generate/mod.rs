//! Generated cases, to be recorded.
//!
//! They have no expected answers. The same seed generates the same cases on every machine.
//!
//! | | |
//! |---|---|
//! | `modules` | measurements of each operator and each System API call |
//! | `random` | random programs: the cost of operators and control flow together |
//! | `canister` | random calls to the bench canister: real code |
//! | `calls` | random calls between canisters |
//! | `management` | calls of the management canister |
//! | `settings` | what settings do: heap limits, low memory, environment, storage, reserved cycles |
//! | `motoko` | Motoko's actors |
//! | `services` | HTTPS outcalls and threshold signatures |
//! | `snapshots` | snapshots that are read and uploaded |

pub mod calls;
pub mod canister;
pub mod management;
pub mod modules;
pub mod motoko;
pub mod random;
pub mod services;
pub mod settings;
pub mod snapshots;
mod steps;

use stablebench_workload::Rng;

/// One of the choices.
fn pick<'a, T: ?Sized>(rng: &mut Rng, choices: &[&'a T]) -> &'a T {
    choices[rng.below(choices.len() as u64) as usize]
}
