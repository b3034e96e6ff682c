//! The canisters of a network that may be measured in, and fixtures in them. Nothing is sent to any other.
//!
//! A canister may be used if a replica certifies that its module is the one that is built here,
//! plain or as `wasm.gz`, and if it describes itself. Its controllers are certified too. It
//! contains one fixture at a time.
//!
//! A fork of a fixture is the canister itself, which is restored before it is used again. With canister
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
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use candid::{Principal, encode_args};
use sha2::{Digest, Sha256};
use stablebench_protocol::Description;

use super::link::{Asking, InstallMode, Link, RunState, Snapshot, Status};
use super::sending::{Call, NetworkError, Outcome, Retry, rising};
use crate::canisters::{Built, deployable};
use crate::replica::{Answer, Canister, Cost, Messages, Readings, Reject, Unmeasured, decode};

/// A canister that may be measured in.
pub(super) struct Slot {
    pub link: Arc<Link>,
    pub canister: Principal,
    pub module: Module,
    /// The module, plain or in gzip as it was deployed.
    form: Arc<[u8]>,
    /// `true` while a fixture is in it.
    taken: AtomicBool,
    /// `true` if it was emptied and no update was sent since.
    fresh: AtomicBool,
    /// `true` if it answers queries for its status with errors.
    status_needs_update: AtomicBool,
}

impl Slot {
    pub fn new(link: Arc<Link>, canister: Principal, module: Module, form: Arc<[u8]>) -> Self {
        let no = || AtomicBool::new(false);
        Self { link, canister, module, form, taken: no(), fresh: no(), status_needs_update: no() }
    }

    /// Reserves the canister for one fixture, and empties it.
    pub fn take(&self) -> Result<()> {
        let canister = self.canister;
        if self.taken.swap(true, Ordering::AcqRel) {
            return Err(NetworkError::InUse { canister }.into());
        }
        if !self.fresh.load(Ordering::Acquire) {
            self.empty().inspect_err(|_| self.leave())?;
        }
        Ok(())
    }

    /// Releases the canister.
    pub fn leave(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// Reinstalls the module.
    pub fn empty(&self) -> Result<()> {
        self.install(InstallMode::Reinstall)?.context("installing failed")?;
        self.fresh.store(true, Ordering::Release);
        Ok(())
    }

    /// Upgrades to the same module.
    pub fn upgrade(&self) -> Result<Result<(), Reject>> {
        self.install(InstallMode::Upgrade)
    }

    fn install(&self, mode: InstallMode) -> Result<Result<(), Reject>> {
        self.fresh.store(false, Ordering::Release);
        self.link.install(self.canister, mode, &self.form)
    }

    pub fn update(&self, method: &str, argument: &[u8], retry: Retry) -> Result<Outcome> {
        self.fresh.store(false, Ordering::Release);
        self.link.update(&Call::to(self.canister, method, argument), retry)
    }

    pub fn query(&self, method: &str, argument: &[u8]) -> Result<Outcome> {
        self.link.query(&Call::to(self.canister, method, argument))
    }

    /// Returns the canister's status: by a query if the replica is on this machine and supports it,
    /// else by an update, since a node that answers a query may lag behind.
    pub fn status(&self) -> Result<Status> {
        if !self.link.is_local() || self.status_needs_update.load(Ordering::Acquire) {
            return self.link.canister_status(self.canister, Asking::Update);
        }
        match self.link.canister_status(self.canister, Asking::Query) {
            Err(error) if matches!(error.downcast_ref(), Some(NetworkError::Refused { .. })) => {
                self.status_needs_update.store(true, Ordering::Release);
                self.link.canister_status(self.canister, Asking::Update)
            }
            status => status,
        }
    }

    /// Returns the canister's cycles.
    pub fn balance(&self) -> Result<u128> {
        Ok(u128::try_from(self.status()?.cycles.0).unwrap_or(u128::MAX))
    }

    /// Returns the cost of asking for the balance, which the canister pays itself.
    pub fn price(&self) -> Result<u128> {
        let before = self.balance()?;
        Ok(before.saturating_sub(self.balance()?))
    }
}

/// A module in both forms in which it may be deployed.
#[derive(Clone, Debug)]
pub(super) struct Module {
    pub name: String,
    plain: Arc<[u8]>,
    compressed: Arc<[u8]>,
}

impl Module {
    pub fn new(built: &Built) -> Result<Self> {
        let compressed = deployable(&built.wasm)?.into();
        Ok(Self { name: built.name.clone(), plain: built.wasm.as_slice().into(), compressed })
    }

    /// Returns the form with this hash.
    fn with_hash(&self, hash: &[u8]) -> Option<&Arc<[u8]>> {
        [&self.plain, &self.compressed].into_iter().find(|form| *Sha256::digest(form) == *hash)
    }

    /// Returns `true` if the plain module is `wasm`.
    pub fn is(&self, wasm: &[u8]) -> bool {
        *self.plain == *wasm
    }

    fn foreign(&self, found: &[(Principal, Option<Vec<u8>>)]) -> NetworkError {
        let found = found.iter().map(|(canister, hash)| match hash {
            Some(hash) => format!("  the module of {canister} is {}\n", hex(hash)),
            None => format!("  {canister} has no module\n"),
        });
        NetworkError::Foreign {
            name: self.name.clone(),
            found: found.collect(),
            plain: hex(&Sha256::digest(&self.plain)),
            compressed: hex(&Sha256::digest(&self.compressed)),
        }
    }
}

/// Finds a canister for each module. Changes nothing.
///
/// # Errors
///
/// If a canister is missing, has another module, is not running, or is not controlled by the caller.
pub(super) fn slots(
    link: &Arc<Link>,
    needed: &[Built],
    canisters: &[Principal],
) -> Result<Vec<Arc<Slot>>> {
    let mut found = Vec::new();
    for canister in canisters {
        found.push((*canister, module_hash(link, *canister)?));
    }
    let mut slots = Vec::new();
    for built in needed {
        let module = Module::new(built)?;
        let form = found.iter().find_map(|(canister, hash)| {
            Some((*canister, module.with_hash(hash.as_deref()?)?.clone()))
        });
        let (canister, form) = form.ok_or_else(|| module.foreign(&found))?;
        let slot = Slot::new(link.clone(), canister, module, form);
        check(&slot)?;
        slots.push(Arc::new(slot));
    }
    Ok(slots)
}

fn module_hash(link: &Link, canister: Principal) -> Result<Option<Vec<u8>>> {
    let hash = link.module_hash(canister)?;
    // Every existing canister has a list of controllers, which may be empty.
    if hash.is_none() && link.controllers(canister)?.is_none() {
        let url = link.address().to_string();
        return Err(NetworkError::NoCanister { canister, url, source: None }.into());
    }
    Ok(hash)
}

fn check(slot: &Slot) -> Result<()> {
    let canister = slot.canister;
    let caller = slot.link.caller();
    let controllers = slot.link.controllers(canister)?;
    if !controllers.is_some_and(|controllers| controllers.contains(&caller)) {
        return Err(NetworkError::NotController { canister, caller }.into());
    }
    if slot.status()?.status != RunState::Running {
        return Err(NetworkError::Stopped { canister }.into());
    }
    let answer = slot.query("describe", &encode_args(())?)?;
    let described: Result<Description> = decode("describe", answer);
    described.map_err(|source| NetworkError::Undescribed { canister, source })?;
    Ok(())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

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
struct History(Vec<Sent>);

/// A message. Ids of measured calls are in the arguments; an emptied canister accepts them again.
#[derive(Debug)]
enum Sent {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn module() -> Module {
        let wasm = b"\0asm\x01\0\0\0".to_vec();
        Module::new(&Built { name: "bench".to_owned(), wasm, programs: Vec::new() }).unwrap()
    }

    #[test]
    fn both_forms_are_recognised_and_no_others() {
        let module = module();
        let plain = Sha256::digest(b"\0asm\x01\0\0\0");
        assert_eq!(**module.with_hash(&plain).unwrap(), *b"\0asm\x01\0\0\0");
        let compressed = deployable(b"\0asm\x01\0\0\0").unwrap();
        assert_eq!(**module.with_hash(&Sha256::digest(&compressed)).unwrap(), *compressed);
        for hash in [&[][..], &plain[..31], &Sha256::digest(b"another")] {
            assert!(module.with_hash(hash).is_none(), "{hash:?}");
        }
        assert!(module.is(b"\0asm\x01\0\0\0") && !module.is(&compressed));
    }

    #[test]
    fn the_error_for_another_module_has_all_hashes_and_the_next_step() {
        let module = module();
        let anonymous = Principal::anonymous();
        let management = Principal::management_canister();
        let error = module.foreign(&[(anonymous, Some(vec![0xab; 32])), (management, None)]);
        let text = error.to_string();
        for part in [
            &format!("the module of 2vxsx-fae is {}", "ab".repeat(32)),
            "aaaaa-aa has no module",
            "bench is 93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476 as wasm,",
            "dfx deploy bench or icp deploy bench",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
