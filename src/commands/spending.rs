//! What a run on a network would cost, told before anything is spent.
//!
//! The same run on the embedded replica counts it: that takes the same cycles for the same
//! messages. What it cannot know, installs, snapshots and storage, is told beside it.

use anyhow::{Context, Result, bail};

use super::replica::embedded;
use super::run::{Planned, empty};
use crate::canisters::Built;
use crate::cli::RunArgs;
use crate::progress::Progress;
use crate::replica::network::{Address, Purse};
use crate::replica::tally::{Spent, Tally};
use crate::report::number::{Grouped, Short};
use crate::report::price;
use crate::results::{Outcome, Prices, Results, Store};
use crate::runner::Runner;
use crate::suites::outline::StoreKey;

/// Canisters on a network, and whether their cycles may be spent.
pub struct Spending {
    address: Address,
    purses: Vec<Purse>,
    yes: bool,
}

impl Spending {
    /// `yes` allows to spend on another machine's replica.
    pub fn new(address: &Address, purses: Vec<Purse>, yes: bool) -> Self {
        Self { address: address.clone(), purses, yes }
    }

    /// Tells what is left of a run would cost.
    ///
    /// # Errors
    ///
    /// Where that may not be spent, or cannot. Nothing was spent then.
    pub fn agree(
        &self,
        args: &RunArgs,
        planned: &Planned,
        built: &[Built],
        results: &Results,
        progress: &Progress,
    ) -> Result<()> {
        progress.note("what this costs: the same run on the embedded replica, first");
        let spent = estimate(args, planned, built, results, progress)
            .context("what the run costs could not be estimated on the embedded replica")?;
        let prices = &planned.outline().prices;
        let told = self.told(&spent, prices);
        if !self.yes && !self.address.is_local() {
            bail!(
                "nothing was spent: {} is not on this machine, so that cycles are real there; add \
                 --yes to spend them\n{told}",
                self.address
            );
        }
        progress.note(&told);
        for (purse, spent) in self.purses.iter().zip(&spent) {
            let cycles = price::cycles(spent.cycles, prices);
            if u128::from(cycles) > purse.cycles {
                bail!(
                    "the canister {id} has {} cycles, and the run needs about {}; give it some: dfx \
                     cycles top-up {id} 1T, or icp canister top-up {id} --amount 1t",
                    short(purse.cycles),
                    Short(cycles),
                    id = purse.canister,
                );
            }
        }
        Ok(())
    }

    fn told(&self, spent: &[Spent], prices: &Prices) -> String {
        let all: u64 = spent.iter().map(|spent| price::cycles(spent.cycles, prices)).sum();
        let mut told = format!(
            "about {} cycles, US$ {:.4} where 10^12 are US$ {}",
            Short(all),
            price::usd(all, 1.0, prices),
            prices.usd_per_trillion_cycles,
        );
        if self.address.is_local() {
            told += "; on this machine nobody pays for them";
        }
        for (purse, spent) in self.purses.iter().zip(spent) {
            told += &format!(
                "\n  {} {} (has {}): {} cycles in {} messages; beside that {} installs and {} \
                 snapshots, and storage",
                purse.name,
                purse.canister,
                short(purse.cycles),
                Short(price::cycles(spent.cycles, prices)),
                Grouped(spent.messages),
                Grouped(spent.installs),
                Grouped(spent.snapshots),
            );
        }
        told
    }
}

fn short(cycles: u128) -> Short {
    Short(u64::try_from(cycles).unwrap_or(u64::MAX))
}

/// Runs what is left of a plan on the embedded replica, in the order of the modules.
fn estimate(
    args: &RunArgs,
    planned: &Planned,
    built: &[Built],
    results: &Results,
    progress: &Progress,
) -> Result<Vec<Spent>> {
    let (replica, _) = embedded(&args.replica, progress)?;
    let tally = Tally::new(replica, built);
    let outline = planned.outline();
    let left = Results {
        stores: complete(planned, results),
        cases: results.cases.clone(),
        harness: results.harness.clone(),
        ..empty(outline, &tally, built)
    };
    let runner = Runner::new(&tally, built, outline, &Progress::Quiet, None, left)?;
    planned.measure(&runner, usize::try_from(args.jobs).unwrap_or(1))?;
    Ok(tally.spent())
}

/// The stores of which nothing is left to measure: a run does not populate them again. Others
/// it does, and what they then hold is not compared with another replica's.
fn complete(planned: &Planned, results: &Results) -> Vec<Store> {
    let done = |section: &str, name: &str, column: &str| {
        let case = results.case(section, name, column);
        case.is_some_and(|case| !matches!(case.outcome, Outcome::Failed { .. }))
    };
    let keys: Vec<StoreKey> = match planned {
        Planned::Users(plan) => {
            let complete = plan.stores.iter().filter(|store| {
                let column = store.setting.key();
                store.cases.iter().all(|case| done(&case.section.name(), &case.name, &column))
            });
            complete.map(|store| store.key()).collect()
        }
        Planned::Lanes(plan) => {
            let complete = plan.lanes.iter().filter(|lane| {
                let mut cases = lane.steps.iter().filter_map(|step| step.case.as_ref());
                cases.all(|(section, name)| done(section, name, &lane.column.key))
            });
            complete.map(|lane| lane.store()).collect()
        }
    };
    let kept = |store: &&Store| keys.iter().any(|key| key.is_of(store));
    results.stores.iter().filter(kept).cloned().collect()
}

#[cfg(test)]
mod tests {
    use candid::Principal;

    use super::*;

    const PRICES: Prices = Prices { nodes: 26, usd_per_trillion_cycles: 1.5 };

    fn spending(address: &str) -> Spending {
        let purse = |name: &str, cycles| Purse {
            name: name.to_owned(),
            canister: Principal::management_canister(),
            cycles,
        };
        let purses = vec![purse("bench", 3_000_000_000_000), purse("bench_vfs", u128::MAX)];
        Spending::new(&address.parse().unwrap(), purses, false)
    }

    /// A subnet of 26 nodes takes twice as much.
    #[test]
    fn what_is_told_is_the_sum_at_the_subnets_prices() {
        let spent = [
            Spent { messages: 1_200, cycles: 1_000_000_000_000, installs: 3, snapshots: 40 },
            Spent { messages: 1, cycles: 500_000_000_000, installs: 1, snapshots: 0 },
        ];
        let told = spending("ic").told(&spent, &PRICES);
        insta::assert_snapshot!(told);
        let local = spending("http://localhost:4943").told(&spent, &PRICES);
        assert!(local.contains("on this machine nobody pays"), "{local}");
    }
}
