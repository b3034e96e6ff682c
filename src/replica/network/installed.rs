//! A store in a canister of a network, and its forks.
//!
//! A fork is the canister itself, put back before it is used again. With canister snapshots:
//!
//! ```text
//!   fork      take a snapshot, or load it if a fork has been there since
//!   update    load it if a fork has been there since; the snapshot is then old
//! ```
//!
//! A replica on this machine may have none. Then what the store was sent is sent to it again,
//! after a reinstall. Elsewhere that would be paid for, so that a fork is refused.

use std::sync::Arc;

use anyhow::{Context, Result};

use super::call::{Again, rising};
use super::error::NetworkError;
use super::history::{History, Sent};
use super::management::Snapshot;
use super::sending::Outcome;
use super::slot::Slot;
use crate::replica::{Answer, Canister, Cost, Messages, Readings, Reject, Unmeasured};

/// A canister with a module and a store in it.
pub(super) struct Installed {
    slot: Arc<Slot>,
    /// What asking for the balance costs.
    price: u128,
    /// Cycles after the last message, where they are known.
    balance: Option<u128>,
    kept: Kept,
    /// Whether it was changed since it was kept.
    changed: bool,
    /// Whether a fork may have changed it since.
    forked: bool,
    /// Whether queries come after an update.
    unsettled: bool,
    /// Whether the next update has an id.
    numbered: bool,
}

/// What a canister is put back by.
enum Kept {
    /// What it was sent; a snapshot was not asked for yet.
    Unknown(History),
    Snapshot(Snapshot),
    /// What it was sent, since there are no snapshots.
    History(History),
}

impl Installed {
    /// Empties the canister of `slot` and makes it one store's.
    pub fn new(slot: Arc<Slot>) -> Result<Self> {
        slot.take()?;
        let mut installed = Self {
            slot,
            price: 0,
            balance: None,
            kept: Kept::Unknown(History::default()),
            changed: true,
            forked: false,
            unsettled: true,
            numbered: false,
        };
        installed.price = installed.slot.price()?;
        Ok(installed)
    }

    /// Undoes what a fork did.
    fn restore(&mut self) -> Result<()> {
        if !self.forked {
            return Ok(());
        }
        (self.balance, self.unsettled) = (None, true);
        match &self.kept {
            Kept::Snapshot(snapshot) => {
                self.slot.link.load_snapshot(self.slot.canister, snapshot)?;
            }
            Kept::History(history) | Kept::Unknown(history) => history.repeat(&self.slot)?,
        }
        self.forked = false;
        Ok(())
    }

    /// Sends an update, which is measured by what the balance loses.
    fn send(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let again = match std::mem::take(&mut self.numbered) {
            true => Again::Numbered,
            false => Again::Never,
        };
        let before = match self.balance.take() {
            Some(balance) => balance,
            None => self.slot.balance()?,
        };
        self.unsettled = true;
        let outcome = self.slot.update(method, argument, again)?;
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

    fn renew(&mut self) -> Result<()> {
        (self.balance, self.unsettled) = (None, true);
        self.slot.upgrade()?.context("upgrading failed")
    }

    /// What is sent from now on is not in what is kept.
    fn changes(&mut self, sent: impl FnOnce() -> Sent) {
        self.changed = true;
        if let Kept::Unknown(history) | Kept::History(history) = &mut self.kept {
            history.push(sent());
        }
    }

    /// Keeps the canister as it is now.
    fn keep(&mut self) -> Result<()> {
        if !self.changed || matches!(self.kept, Kept::History(_)) {
            return Ok(());
        }
        let (link, canister) = (&self.slot.link, self.slot.canister);
        let old = match &self.kept {
            Kept::Snapshot(snapshot) => Some(snapshot),
            Kept::Unknown(_) | Kept::History(_) => None,
        };
        self.balance = None;
        match (link.take_snapshot(canister, old)?, &mut self.kept) {
            (Ok(snapshot), kept) => *kept = Kept::Snapshot(snapshot),
            (Err(reject), Kept::Unknown(history)) if has_no_snapshots(&reject) => {
                if !link.is_local() {
                    return Err(Unmeasured::NotApplicable(format!(
                        "the network has no canister snapshots ({reject}), and populating a store \
                         again for each case would be paid for"
                    ))
                    .into());
                }
                self.kept = Kept::History(std::mem::take(history));
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

    fn upgrade(&mut self) -> Result<()> {
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
        if let Kept::Snapshot(snapshot) = &self.kept {
            // What is left of it is found by: dfx canister snapshot list.
            let _ = self.slot.link.delete_snapshot(self.slot.canister, snapshot.clone());
        }
        self.slot.leave();
    }
}

/// The canister, until it is put back.
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

    fn upgrade(&mut self) -> Result<()> {
        self.0.renew()
    }
}

/// Whether a replica knows nothing of canister snapshots, as opposed to refusing this one.
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
