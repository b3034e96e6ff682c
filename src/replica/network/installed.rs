//! A fixture in a canister of a network, and its forks.
//!
//! A fork is the canister itself, which is restored before it is used again. With canister
//! snapshots:
//!
//! ```text
//!   fork      take a snapshot, or load it if the canister was forked since
//!   update    load it if the canister was forked since; the snapshot is then outdated
//! ```
//!
//! A replica on this machine may not support snapshots. Then the canister is reinstalled and sent
//! the same messages again. On other machines this would cost cycles, so a fork is refused.

use std::sync::Arc;

use anyhow::{Context, Result};

use super::error::NetworkError;
use super::link::Snapshot;
use super::sending::{Outcome, Retry, rising};
use super::slot::Slot;
use crate::replica::{Answer, Canister, Cost, Messages, Readings, Reject, Unmeasured};

/// A canister that contains a fixture.
pub(super) struct Installed {
    slot: Arc<Slot>,
    /// The cost of asking for the balance.
    price: u128,
    /// The cycles after the last message, if they are known.
    balance: Option<u128>,
    kept: Restoration,
    /// `true` if it was changed since the last snapshot.
    changed: bool,
    /// `true` if a fork may have changed it since.
    forked: bool,
    /// `true` if nodes may lag behind the last update.
    unsettled: bool,
    /// `true` if the next update has an id.
    numbered: bool,
}

/// The way to restore a canister.
enum Restoration {
    /// The messages so far; no snapshot was taken yet.
    Unknown(History),
    Snapshot(Snapshot),
    /// The messages so far, since there are no snapshots.
    History(History),
}

impl Installed {
    /// Reserves and empties the canister of `slot`.
    pub fn new(slot: Arc<Slot>) -> Result<Self> {
        slot.take()?;
        let mut installed = Self {
            slot,
            price: 0,
            balance: None,
            kept: Restoration::Unknown(History::default()),
            changed: true,
            forked: false,
            unsettled: true,
            numbered: false,
        };
        installed.price = installed.slot.price()?;
        Ok(installed)
    }

    /// Undoes the changes of a fork.
    fn restore(&mut self) -> Result<()> {
        if !self.forked {
            return Ok(());
        }
        (self.balance, self.unsettled) = (None, true);
        match &self.kept {
            Restoration::Snapshot(snapshot) => {
                self.slot.link.load_snapshot(self.slot.canister, snapshot)?;
            }
            Restoration::History(history) | Restoration::Unknown(history) => {
                history.repeat(&self.slot)?
            }
        }
        self.forked = false;
        Ok(())
    }

    /// Sends an update, whose cost is the decrease of the balance.
    fn send(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let retry = match std::mem::take(&mut self.numbered) {
            true => Retry::Numbered,
            false => Retry::Never,
        };
        let before = match self.balance.take() {
            Some(balance) => balance,
            None => self.slot.balance()?,
        };
        self.unsettled = true;
        let outcome = self.slot.update(method, argument, retry)?;
        let after = self.slot.balance()?;
        self.balance = Some(after);
        Ok(answer(outcome, before.saturating_sub(after).saturating_sub(self.price)))
    }

    fn ask(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        if std::mem::take(&mut self.unsettled) {
            self.slot.link.settle();
        }
        Ok(answer(self.slot.query(method, argument)?, 0))
    }

    /// Upgrades the canister. The network does not report the cost.
    fn renew(&mut self) -> Result<Cost> {
        (self.balance, self.unsettled) = (None, true);
        self.slot.upgrade()?.context("upgrading failed")?;
        Ok(Cost::default())
    }

    /// Records a message that changes the canister.
    fn changes(&mut self, sent: impl FnOnce() -> Sent) {
        self.changed = true;
        if let Restoration::Unknown(history) | Restoration::History(history) = &mut self.kept {
            history.push(sent());
        }
    }

    /// Takes a snapshot if the last one is outdated.
    fn keep(&mut self) -> Result<()> {
        if !self.changed || matches!(self.kept, Restoration::History(_)) {
            return Ok(());
        }
        let (link, canister) = (&self.slot.link, self.slot.canister);
        let old = match &self.kept {
            Restoration::Snapshot(snapshot) => Some(snapshot),
            Restoration::Unknown(_) | Restoration::History(_) => None,
        };
        self.balance = None;
        match (link.take_snapshot(canister, old)?, &mut self.kept) {
            (Ok(snapshot), kept) => *kept = Restoration::Snapshot(snapshot),
            (Err(reject), Restoration::Unknown(history)) if has_no_snapshots(&reject) => {
                if !link.is_local() {
                    return Err(Unmeasured::NotApplicable(format!(
                        "the network has no canister snapshots ({reject}), and populating it \
                         again for each case would cost cycles"
                    ))
                    .into());
                }
                self.kept = Restoration::History(std::mem::take(history));
            }
            (Err(reject), _) => {
                let method = "take_canister_snapshot".to_owned();
                return Err(NetworkError::Refused { method, reject }.into());
            }
        }
        self.changed = false;
        Ok(())
    }
}

impl Messages for Installed {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.restore()?;
        self.changes(|| Sent::Update { method: method.to_owned(), argument: argument.to_vec() });
        self.send(method, argument)
    }

    fn call_id(&mut self) -> u64 {
        self.numbered = true;
        rising()
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.restore()?;
        self.ask(method, argument)
    }

    fn upgrade(&mut self) -> Result<Cost> {
        self.restore()?;
        self.changes(|| Sent::Upgrade);
        self.renew()
    }
}

impl Canister for Installed {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        self.restore()?;
        self.keep()?;
        self.forked = true;
        Ok(Box::new(Fork(self)))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        if let Restoration::Snapshot(snapshot) = &self.kept {
            // `dfx canister snapshot list` shows it if deleting fails.
            let _ = self.slot.link.delete_snapshot(self.slot.canister, snapshot.clone());
        }
        self.slot.leave();
    }
}

/// The canister until it is restored.
struct Fork<'a>(&'a mut Installed);

impl Messages for Fork<'_> {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.0.send(method, argument)
    }

    fn call_id(&mut self) -> u64 {
        self.0.call_id()
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.0.ask(method, argument)
    }

    fn upgrade(&mut self) -> Result<Cost> {
        self.0.renew()
    }
}

/// Returns `true` if a replica does not support snapshots, as opposed to refusing this one.
fn has_no_snapshots(reject: &Reject) -> bool {
    matches!(
        reject.code.as_str(),
        "UnknownManagementMessage" | "CanisterMethodNotFound" | "CanisterRejectedMessage"
    )
}

fn answer(outcome: Outcome, cycles: u128) -> Answer {
    let cycles = u64::try_from(cycles).unwrap_or(u64::MAX);
    Answer { outcome, cost: Cost { cycles, inside: None }, readings: Readings::default() }
}

/// The messages since the canister was emptied.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Sent>);

/// A message. Ids of measured calls are in the arguments; an emptied canister accepts them again.
#[derive(Debug)]
pub(super) enum Sent {
    Update { method: String, argument: Vec<u8> },
    Upgrade,
}

impl History {
    pub fn push(&mut self, sent: Sent) {
        self.0.push(sent);
    }

    /// Empties the canister and sends all messages again. Execution is deterministic, so the
    /// canister refuses the same messages as before, which change nothing.
    ///
    /// # Errors
    ///
    /// [`Unmeasured::NotApplicable`] if the replica refuses to empty the canister.
    pub fn repeat(&self, slot: &Slot) -> Result<()> {
        slot.empty().map_err(|error| {
            Unmeasured::NotApplicable(format!(
                "the replica has no canister snapshots, and the canister cannot be populated again: {error:#}"
            ))
        })?;
        for sent in &self.0 {
            let repeated = match sent {
                Sent::Update { method, argument } => {
                    slot.update(method, argument, Retry::Never).map(drop)
                }
                Sent::Upgrade => slot.upgrade().map(drop),
            };
            repeated.context("populating the canister again")?;
        }
        Ok(())
    }
}
