//! What a store was sent, to send it once more where a replica has no snapshots.

use anyhow::{Context, Result};

use super::call::Again;
use super::slot::Slot;
use crate::replica::Unmeasured;

/// Everything since the canister was emptied.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Sent>);

/// One message. Ids of measured calls are in the arguments; a canister that was emptied takes
/// them again.
#[derive(Debug)]
pub(super) enum Sent {
    Update { method: String, argument: Vec<u8> },
    Upgrade,
}

impl History {
    pub fn push(&mut self, sent: Sent) {
        self.0.push(sent);
    }

    /// Empties the canister and sends it everything again. What a canister refuses now it has
    /// refused before: execution is deterministic, and a message that comes to a limit changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Unmeasured::NotApplicable`] where the replica refuses to have the canister emptied.
    pub fn repeat(&self, slot: &Slot) -> Result<()> {
        slot.empty().map_err(|error| {
            Unmeasured::NotApplicable(format!(
                "the replica has no canister snapshots, and cannot make the store anew: {error:#}"
            ))
        })?;
        for sent in &self.0 {
            let again = match sent {
                Sent::Update { method, argument } => {
                    slot.update(method, argument, Again::Never).map(drop)
                }
                Sent::Upgrade => slot.upgrade().map(drop),
            };
            again.context("making the store anew")?;
        }
        Ok(())
    }
}
