//! The cost of a run on a network, reported before anything is spent.
//!
//! The same run on the embedded replica counts it: docs/networks.md states for which messages both
//! charge the same. It counts everything that a network charges a canister for: the cycles of updates,
//! and the number of installs and snapshots, but their prices and storage are not known.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use stablebench_replica::Difference;
use stablebench_suite::plan::{Fixture, FixtureKey, Plan};

use super::replica::{Spending, embedded};
use crate::canisters::Built;
use crate::progress::Progress;
use crate::replica::options::ReplicaArgs;
use crate::replica::{Answer, Canister, Cost, Identity, Messages, Replica};
use crate::report::number::{Grouped, Short};
use crate::report::price;
use crate::results::{FixtureInfo, Outcome, Prices, Results};
use crate::runner::Runner;

/// Reports what the rest of a run would cost.
///
/// # Errors
///
/// If the cycles may not be spent, or are not there. Nothing was spent then.
pub fn agree(
    spending: &Spending,
    args: &ReplicaArgs,
    jobs: usize,
    plan: &Plan,
    built: &[Built],
    results: &Results,
    progress: &Progress,
) -> Result<()> {
    progress.note("estimating the cost: the same run on the embedded replica, first");
    let step = progress.spinner("estimating the cost");
    let spent = estimate(args, jobs, plan, built, results, progress)
        .context("what the run costs could not be estimated on the embedded replica")?;
    step.done("");
    let prices = &results.prices;
    let report = report(spending, &spent, prices);
    if !spending.yes && !spending.address.is_local() {
        bail!(
            "nothing was spent: {} is not on this machine, so that cycles are real there; add \
             --yes to spend them\n{report}",
            spending.address
        );
    }
    progress.note(&report);
    for (balance, spent) in spending.balances.iter().zip(&spent) {
        let cycles = price::cycles(spent.cycles, prices);
        if u128::from(cycles) > balance.cycles {
            bail!(
                "the canister {id} has {} cycles, and the run needs about {}; give it some: dfx \
                 cycles top-up {id} 1T, or icp canister top-up {id} --amount 1t",
                short(balance.cycles),
                Short(cycles),
                id = balance.canister,
            );
        }
    }
    Ok(())
}

fn report(spending: &Spending, spent: &[Usage], prices: &Prices) -> String {
    let all: u64 = spent.iter().map(|spent| price::cycles(spent.cycles, prices)).sum();
    let mut report = format!(
        "about {} cycles, US$ {:.4} where 10^12 are US$ {}",
        Short(all),
        price::usd(all, 1.0, prices),
        prices.usd_per_trillion_cycles,
    );
    if spending.address.is_local() {
        report += "; on this machine nobody pays for them";
    }
    for (balance, spent) in spending.balances.iter().zip(spent) {
        report += &format!(
            "\n  {} {} (has {}): {} cycles in {} messages; plus {} installs and {} snapshots, \
             and storage",
            balance.name,
            balance.canister,
            short(balance.cycles),
            Short(price::cycles(spent.cycles, prices)),
            Grouped(spent.messages),
            Grouped(spent.installs),
            Grouped(spent.snapshots),
        );
    }
    report
}

fn short(cycles: u128) -> Short {
    Short(u64::try_from(cycles).unwrap_or(u64::MAX))
}

/// Runs the rest of a plan on the embedded replica. Returns the counts in the order of the modules.
fn estimate(
    args: &ReplicaArgs,
    jobs: usize,
    plan: &Plan,
    built: &[Built],
    results: &Results,
    progress: &Progress,
) -> Result<Vec<Usage>> {
    let (replica, _) = embedded(args, progress)?;
    let tally = Tally::new(replica, built);
    let left =
        Results { replica: tally.identity(), fixtures: complete(plan, results), ..results.clone() };
    let runner = Runner::new(&tally, built, plan, &Progress::Quiet, None, left)?;
    runner.run(jobs)?;
    Ok(tally.spent())
}

/// The fixtures of which nothing is left to measure: a run does not populate them again. It does
/// populate others, whose contents are not compared with another replica's.
fn complete(plan: &Plan, results: &Results) -> Vec<FixtureInfo> {
    let done = |fixture: &&Fixture| {
        fixture.cases().all(|(section, name)| {
            let case = results.case(section, name, &fixture.configuration.key);
            case.is_some_and(|case| !matches!(case.outcome, Outcome::Failed { .. }))
        })
    };
    let keys: Vec<FixtureKey> = plan.fixtures.iter().filter(done).map(Fixture::key).collect();
    let kept = |fixture: &&FixtureInfo| keys.iter().any(|key| key.is_of(fixture));
    results.fixtures.iter().filter(kept).cloned().collect()
}

/// The use of the canisters with one module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Number of updates.
    messages: u64,
    /// Cycles of the updates.
    cycles: u64,
    /// Number of installs and upgrades.
    installs: u64,
    /// Number of snapshots that were taken or loaded.
    snapshots: u64,
}

/// A replica that counts the messages to `replica`.
struct Tally<'a, R> {
    replica: R,
    built: &'a [Built],
    spent: Spendings,
}

/// The counts in the order of the modules, and whether the canister is freshly installed.
#[derive(Clone)]
struct Spendings(Arc<Mutex<Vec<(Usage, bool)>>>);

impl<'a, R: Replica> Tally<'a, R> {
    /// Counts messages to canisters with these modules.
    fn new(replica: R, built: &'a [Built]) -> Self {
        let spent = built.iter().map(|_| (Usage::default(), false)).collect();
        Self { replica, built, spent: Spendings(Arc::new(Mutex::new(spent))) }
    }

    /// Returns the counts so far, in the order of the modules.
    fn spent(&self) -> Vec<Usage> {
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
    use candid::Principal;

    use super::*;
    use crate::replica::Balance;
    use crate::replica::embedded::Embedded;

    const PRICES: Prices = Prices { nodes: 26, usd_per_trillion_cycles: 1.5 };

    fn spending(address: &str) -> Spending {
        let balance = |name: &str, cycles| Balance {
            name: name.to_owned(),
            canister: Principal::management_canister(),
            cycles,
        };
        let balances = vec![balance("bench", 3_000_000_000_000), balance("bench_vfs", u128::MAX)];
        Spending { address: address.parse().unwrap(), balances, yes: false }
    }

    /// A subnet of 26 nodes charges twice as much.
    #[test]
    fn the_report_has_the_sum_at_the_subnets_prices() {
        let spent = [
            Usage { messages: 1_200, cycles: 1_000_000_000_000, installs: 3, snapshots: 40 },
            Usage { messages: 1, cycles: 500_000_000_000, installs: 1, snapshots: 0 },
        ];
        let expected = "about 3.00 T cycles, US$ 4.5000 where 10^12 are US$ 1.5\
             \n  bench aaaaa-aa (has 3.00 T): 2.00 T cycles in 1 200 messages; plus 3 installs and 40 \
             snapshots, and storage\
             \n  bench_vfs aaaaa-aa (has 18446744 T): 1.00 T cycles in 1 messages; plus 1 installs and 0 \
             snapshots, and storage";
        assert_eq!(report(&spending("ic"), &spent, &PRICES), expected);
        let local = report(&spending("http://localhost:4943"), &spent, &PRICES);
        assert!(local.contains("on this machine nobody pays"), "{local}");
    }

    #[test]
    fn messages_and_their_cycles_are_counted_by_module() {
        let wasm = wat::parse_str(include_str!("../replica/counter.wat")).unwrap();
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
