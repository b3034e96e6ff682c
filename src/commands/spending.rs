//! The cost of a run on a network, reported before anything is spent.
//!
//! The same run on the embedded replica counts it: docs/networks.md states for which messages both
//! charge the same. Installs and snapshots are counted, but their prices and storage are not known.

use anyhow::{Context, Result, bail};

use super::replica::{Spending, embedded};
use crate::canisters::Built;
use crate::progress::Progress;
use crate::replica::Replica;
use crate::replica::options::ReplicaArgs;
use crate::replica::tally::{Tally, Usage};
use crate::report::number::{Grouped, Short};
use crate::report::price;
use crate::results::{FixtureInfo, Outcome, Prices, Results};
use crate::runner::Runner;
use stablebench_suite::plan::{Fixture, FixtureKey, Plan};

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

#[cfg(test)]
mod tests {
    use candid::Principal;

    use super::*;
    use crate::replica::Balance;

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
        insta::assert_snapshot!(report(&spending("ic"), &spent, &PRICES));
        let local = report(&spending("http://localhost:4943"), &spent, &PRICES);
        assert!(local.contains("on this machine nobody pays"), "{local}");
    }
}
