//! A canister on some replica, as the scenarios see it.

use std::process::Command;

pub use candid::Principal;
pub use stablebench_replica::Rules;

/// The controller of every canister.
pub const CONTROLLER: Principal = Principal::anonymous();
/// Someone else.
pub const STRANGER: Principal = Principal::from_slice(&[7]);

/// How code is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Install,
    Reinstall,
    Upgrade,
}

/// How a message was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The replica's error code by name.
    pub code: String,
    pub message: String,
}

/// A reply or a reject.
pub type Outcome = Result<Vec<u8>, Reject>;

/// What became of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    pub outcome: Outcome,
    /// What the canister paid.
    pub cycles: u128,
}

/// Something that canisters run on. What is no answer of a canister's panics.
pub trait Replica: Send + Sync {
    /// The first canister of a subnet of its own: without code, with 1 000 T cycles.
    fn create(&self) -> Box<dyn Canister>;

    /// The rules by which it charges.
    fn rules(&self) -> Rules;

    /// Makes the tool run on this replica.
    fn choose(&self, command: &mut Command);
}

/// A canister.
pub trait Canister {
    fn install(&mut self, mode: Mode, wasm: &[u8], argument: &[u8]) -> Result<(), Reject>;
    fn update(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Updated;
    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome;

    /// Keeps the canister as it is, in place of what was kept before.
    fn keep(&mut self);

    /// Puts the canister back to what was kept.
    fn put_back(&mut self);
}
