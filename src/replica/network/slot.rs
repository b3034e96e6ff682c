//! A canister of ours on a network. It holds one store at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use candid::Principal;

use super::call::{Again, Call};
use super::error::NetworkError;
use super::link::Link;
use super::management::{Asking, Mode, Status};
use super::ours::Ours;
use super::sending::Outcome;
use crate::replica::Reject;

/// A canister, and what it is.
pub(super) struct Slot {
    pub link: Arc<Link>,
    pub canister: Principal,
    pub ours: Ours,
    /// Its module in the form in which it was deployed.
    form: Arc<[u8]>,
    /// Whether a store is in it.
    taken: AtomicBool,
    /// Whether it was emptied, and no update was sent since.
    fresh: AtomicBool,
    /// Whether its status can be had by updates alone.
    asks: AtomicBool,
}

impl Slot {
    pub fn new(link: Arc<Link>, canister: Principal, ours: Ours, form: Arc<[u8]>) -> Self {
        let no = || AtomicBool::new(false);
        Self { link, canister, ours, form, taken: no(), fresh: no(), asks: no() }
    }

    /// Makes the canister one store's, and empties it.
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

    /// The store is over.
    pub fn leave(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// Installs the module anew.
    pub fn empty(&self) -> Result<()> {
        self.install(Mode::Reinstall)?.context("installing failed")?;
        self.fresh.store(true, Ordering::Release);
        Ok(())
    }

    /// Upgrades to the module that is there.
    pub fn upgrade(&self) -> Result<Result<(), Reject>> {
        self.install(Mode::Upgrade)
    }

    fn install(&self, mode: Mode) -> Result<Result<(), Reject>> {
        self.fresh.store(false, Ordering::Release);
        self.link.install(self.canister, mode, &self.form)
    }

    pub fn update(&self, method: &str, argument: &[u8], again: Again) -> Result<Outcome> {
        self.fresh.store(false, Ordering::Release);
        self.link.update(&Call::to(self.canister, method, argument), again)
    }

    pub fn query(&self, method: &str, argument: &[u8]) -> Result<Outcome> {
        self.link.query(&Call::to(self.canister, method, argument))
    }

    /// What the canister has, asked by a query where one machine is the whole replica, unless it
    /// takes none: elsewhere a node that answers a query may be behind.
    pub fn status(&self) -> Result<Status> {
        if !self.link.is_local() || self.asks.load(Ordering::Acquire) {
            return self.link.canister_status(self.canister, Asking::Update);
        }
        match self.link.canister_status(self.canister, Asking::Query) {
            Err(error) if matches!(error.downcast_ref(), Some(NetworkError::Refused { .. })) => {
                self.asks.store(true, Ordering::Release);
                self.link.canister_status(self.canister, Asking::Update)
            }
            status => status,
        }
    }

    /// The canister's cycles.
    pub fn balance(&self) -> Result<u128> {
        Ok(u128::try_from(self.status()?.cycles.0).unwrap_or(u128::MAX))
    }

    /// What asking for the balance costs the canister itself, which is then in the balance.
    pub fn price(&self) -> Result<u128> {
        let before = self.balance()?;
        Ok(before.saturating_sub(self.balance()?))
    }
}
