//! The cost of a run on a network: a replica that counts the messages to another one.
//!
//! It counts everything that a network charges a canister for: the cycles of updates as the
//! embedded replica charges them, and the number of installs and snapshots, whose prices only the
//! network knows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use stablebench_replica::Difference;

use super::{Answer, Canister, Cost, Identity, Messages, Replica};
use crate::canisters::Built;

/// The use of the canisters with one module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of updates.
    pub messages: u64,
    /// Cycles of the updates.
    pub cycles: u64,
    /// Number of installs and upgrades.
    pub installs: u64,
    /// Number of snapshots that were taken or loaded.
    pub snapshots: u64,
}

/// A replica that counts the messages to `replica`.
pub struct Tally<'a, R> {
    replica: R,
    built: &'a [Built],
    spent: Spendings,
}

/// The counts in the order of the modules, and whether the canister is freshly installed.
#[derive(Clone)]
struct Spendings(Arc<Mutex<Vec<(Usage, bool)>>>);

impl<'a, R: Replica> Tally<'a, R> {
    /// Counts messages to canisters with these modules.
    pub fn new(replica: R, built: &'a [Built]) -> Self {
        let spent = built.iter().map(|_| (Usage::default(), false)).collect();
        Self { replica, built, spent: Spendings(Arc::new(Mutex::new(spent))) }
    }

    /// Returns the counts so far, in the order of the modules.
    pub fn spent(&self) -> Vec<Usage> {
        self.spent.lock().iter().map(|(spent, _)| *spent).collect()
    }
}

impl Spendings {
    fn lock(&self) -> MutexGuard<'_, Vec<(Usage, bool)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Replica> Replica for Tally<'_, R> {
    fn identity(&self) -> Identity {
        self.replica.identity()
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let module = self.built.iter().position(|built| built.wasm == wasm);
        let module = module.context("this module is not in the plan")?;
        let canister = self.replica.install(wasm)?;
        let (spent, fresh) = &mut self.spent.lock()[module];
        // A network's canister is emptied only if it was used.
        spent.installs += u64::from(!*fresh);
        *fresh = true;
        let account = Account { spent: self.spent.clone(), module };
        Ok(Box::new(Counted { inner: canister, account, changed: true, forked: false }))
    }
}

/// The counter of one canister.
#[derive(Clone)]
struct Account {
    spent: Spendings,
    module: usize,
}

impl Account {
    fn count(&self, count: impl FnOnce(&mut Usage)) {
        let (spent, fresh) = &mut self.spent.lock()[self.module];
        *fresh = false;
        count(spent);
    }

    fn message(&self, answer: &Answer) {
        self.count(|spent| {
            spent.messages += 1;
            spent.cycles += answer.cost.cycles;
        });
    }
}

/// A canister, or a fork of it, whose messages are counted.
struct Counted<M> {
    inner: M,
    account: Account,
    /// `true` if it was changed since the last snapshot.
    changed: bool,
    /// `true` if it was forked since.
    forked: bool,
}

impl<M> Counted<M> {
    /// Counts loading the snapshot, before the canister itself is used again.
    fn restore(&mut self) {
        if std::mem::take(&mut self.forked) {
            self.account.count(|spent| spent.snapshots += 1);
        }
    }
}

impl<M: Messages> Messages for Counted<M> {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.restore();
        self.changed = true;
        let answer = self.inner.update(method, argument)?;
        self.account.message(&answer);
        Ok(answer)
    }

    fn call_id(&mut self) -> u64 {
        self.inner.call_id()
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.restore();
        self.inner.query(method, argument)
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.restore();
        self.inner.query_all(method, argument)
    }

    fn difference(&self) -> Result<Option<Difference>> {
        self.inner.difference()
    }

    fn upgrade(&mut self) -> Result<Cost> {
        self.restore();
        self.changed = true;
        self.account.count(|spent| spent.installs += 1);
        self.inner.upgrade()
    }
}

impl Canister for Counted<Box<dyn Canister>> {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        self.restore();
        if std::mem::take(&mut self.changed) {
            self.account.count(|spent| spent.snapshots += 1);
        }
        self.forked = true;
        let account = self.account.clone();
        let inner = self.inner.fork()?;
        Ok(Box::new(Counted { inner, account, changed: false, forked: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::embedded::Embedded;

    #[test]
    fn messages_and_their_cycles_are_counted_by_module() {
        let wasm = wat::parse_str(include_str!("counter.wat")).unwrap();
        let built =
            |name: &str, wasm: Vec<u8>| Built { name: name.to_owned(), wasm, programs: Vec::new() };
        let modules = [built("other", b"other".to_vec()), built("counter", wasm.clone())];
        let tally = Tally::new(
            Embedded::new(
                stablebench_replica::Effort::Full,
                stablebench_replica::Rules::today(),
                None,
                |_| {},
            )
            .unwrap(),
            &modules,
        );
        drop(tally.install(&wasm).unwrap());
        assert_eq!(tally.spent()[1], Usage { installs: 1, ..Usage::default() });
        let mut canister = tally.install(&wasm).unwrap();
        let mut cycles = canister.update("count", &[]).unwrap().cost.cycles;
        for _ in 0..2 {
            let mut fork = canister.fork().unwrap();
            cycles += fork.update("count", &[]).unwrap().cost.cycles;
            fork.upgrade().unwrap();
        }
        cycles += canister.update("count", &[]).unwrap().cost.cycles;
        drop(canister);
        drop(tally.install(&wasm).unwrap());
        // One install of the fresh canister, two upgrades, and one install at the end; one snapshot is
        // taken, and loaded before the second fork and before the last message.
        let expected = Usage { messages: 4, cycles, installs: 4, snapshots: 3 };
        assert_eq!(tally.spent(), [Usage::default(), expected]);
        assert!(cycles > 4 * 6_000_000);
    }
}
