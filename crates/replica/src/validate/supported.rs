//! Features that the real replica supports and the embedded one does not: heartbeats, and timers
//! with a handler. Calls to other canisters are checked at run time.

use super::ModuleInfo;
use super::exports::EntryPoint;
use super::refusal::{Invalid, Refusal};
use crate::system_api::names::SystemCall;

/// The intended use of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Any message.
    Everything,
    /// Queries only. Heartbeats and timers never run.
    Queries,
}

impl Purpose {
    /// Checks that the embedded replica supports this use of an otherwise valid module.
    ///
    /// # Errors
    ///
    /// If the module needs a heartbeat or a timer.
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
