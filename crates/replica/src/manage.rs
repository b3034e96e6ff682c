//! What the management canister changes of a canister, beside its code. Each change makes
//! a new version of it ([`Canister::version`]).

use std::sync::Arc;

use ic_principal::Principal;

use crate::canister::{Canister, ROUND, Settings};
use crate::live::Spare;
use crate::units::{Bytes, Cycles};

impl Canister {
    /// What stays the same for all messages.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How often the canister changed: `ic0.canister_version`.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Changes who may manage the canister, and the largest heap of an update, 0 for none.
    pub fn configure(&mut self, controllers: Vec<Principal>, heap_limit: Bytes) {
        let settings = Arc::make_mut(&mut self.settings);
        settings.controllers = controllers;
        settings.heap_limit = heap_limit;
        self.version += 1;
    }

    /// Counts a change that is kept elsewhere: of another setting, or of whether the canister
    /// runs.
    pub fn count_change(&mut self) {
        self.version += 1;
    }

    /// Adds cycles.
    pub fn add_cycles(&mut self, cycles: Cycles) {
        self.balance = Cycles(self.balance.get().saturating_add(cycles.get()));
    }

    /// The next message comes at this time, nanoseconds since 1970, and in any case after the
    /// last. Where this is not called, messages are a second apart.
    pub fn set_time(&mut self, time: u64) {
        self.time = time.max(self.time.saturating_sub(ROUND) + 1);
    }

    /// Nanoseconds since 1970 at which the next message comes.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Takes module, memories and all else that code can see from `snapshot`, a fork made
    /// earlier. Id, settings, environment variables, cycles and time stay; the timer is off.
    pub fn restore(&mut self, snapshot: &Self) {
        self.module = snapshot.module.clone();
        self.state = snapshot.state.clone();
        self.state.timer = 0;
        self.spare = Spare::default();
        self.version += 1;
    }
}
