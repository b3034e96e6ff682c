//! What the real replica installs and the embedded one cannot execute: heartbeats, and timers
//! that would run something. Calls to other canisters fail where they are made.

use super::ModuleInfo;
use super::exports::EntryPoint;
use super::refusal::{Invalid, Refusal};
use crate::system_api::names::SystemCall;

/// What a canister with the module is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// All that the replica does with canisters.
    Everything,
    /// Nothing that heartbeats or timers would have changed.
    Queries,
}

impl Purpose {
    /// Whether the embedded replica can do that with a module that is valid otherwise.
    ///
    /// # Errors
    ///
    /// What it would have to do by itself, beside the messages that it is sent.
    pub fn check(self, info: &ModuleInfo) -> Result<(), Refusal> {
        match self {
            Self::Everything => check(&info.imports, &info.entry_points).map_err(Refusal::from),
            Self::Queries => Ok(()),
        }
    }
}

fn check(imports: &[SystemCall], entry_points: &[EntryPoint]) -> Result<(), Invalid> {
    let exported = |entry_point| entry_points.contains(&entry_point);
    if exported(EntryPoint::Heartbeat) {
        return Err(Invalid::NotEmbedded(EntryPoint::Heartbeat.name()));
    }
    // A timer that is set without a function to run does nothing on the replica either.
    if exported(EntryPoint::GlobalTimer) && imports.contains(&SystemCall::GlobalTimerSet) {
        return Err(Invalid::NotEmbedded(SystemCall::GlobalTimerSet.name()));
    }
    Ok(())
}
