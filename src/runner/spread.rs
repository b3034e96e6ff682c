//! The distribution of the costs of single operations: percentiles, the most expensive one, and
//! sixteen buckets a power of ten, as LevelDB's histograms have them.
//!
//! ```text
//!   10 12 14 16 18 20 25 30 35 40 45 50 60 70 80 90 | 100 120 140 …
//! ```

use anyhow::{Result, bail};
use stablebench_protocol::OperationCost;

use crate::results::{Bucket, Spread, Worst};

/// Returns the distribution of costs, with percentiles by nearest rank: the smallest cost that at
/// least this percentage of the operations does not exceed.
///
/// # Errors
///
/// If there are no operations, or fewer costs than ids.
pub(super) fn spread(each: &[OperationCost], ids: impl Iterator<Item = u64>) -> Result<Spread> {
    let ids: Vec<u64> = ids.collect();
    if each.is_empty() || each.len() != ids.len() {
        bail!("the canister reports {} costs of {} operations", each.len(), ids.len());
    }
    let mut costs: Vec<u64> = each.iter().map(|cost| cost.instructions).collect();
    costs.sort_unstable();
    let rank = |percent: usize| costs[(costs.len() * percent).div_ceil(100).max(1) - 1];
    // The first of the most expensive ones.
    let worst = (0..each.len()).rev().max_by_key(|index| each[*index].instructions).unwrap_or(0);
    let allocating = each.iter().filter(|cost| cost.allocated != 0);
    Ok(Spread {
        min: costs[0],
        p50: rank(50),
        p90: rank(90),
        p95: None,
        p99: rank(99),
        max: costs[costs.len() - 1],
        sum: costs.iter().sum(),
        worst: Worst { index: worst as u64, id: ids[worst], allocated: each[worst].allocated },
        worst_work: None,
        allocating: allocating.clone().count() as u64,
        allocating_sum: allocating.map(|cost| cost.instructions).sum(),
        buckets: buckets(&costs),
    })
}

/// Returns the distribution of the costs of described operations, with the most expensive one in words.
///
/// # Errors
///
/// If there are none.
pub(super) fn described(costs: &[u64], worst: Option<String>) -> Result<Spread> {
    let each: Vec<OperationCost> = costs
        .iter()
        .map(|instructions| OperationCost { instructions: *instructions, allocated: 0 })
        .collect();
    let spread = spread(&each, 0..each.len() as u64)?;
    let mut costs = costs.to_vec();
    costs.sort_unstable();
    let p95 = costs.get((costs.len() * 95).div_ceil(100).max(1) - 1).copied();
    Ok(Spread { p95, worst_work: worst, ..spread })
}

/// The lower bounds of the buckets for costs from 10 up to 100.
const LIMITS: [u64; 16] = [10, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90];

/// The buckets that are not empty; `costs` ascend.
fn buckets(costs: &[u64]) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    for &cost in costs {
        match buckets.last_mut() {
            Some(last) if cost < last.below => last.count += 1,
            _ => {
                let (from, below) = bounds(cost);
                buckets.push(Bucket { from, below, count: 1 });
            }
        }
    }
    buckets
}

/// The bucket of a cost.
fn bounds(cost: u64) -> (u64, u64) {
    let mut unit: u64 = 1;
    while cost / unit >= 100 {
        unit *= 10;
    }
    // Below 10, each cost is a bucket.
    let place = LIMITS.partition_point(|limit| *limit <= cost / unit);
    match (place.checked_sub(1), LIMITS.get(place)) {
        (None, _) => (cost, cost + 1),
        (Some(last), below) => (LIMITS[last] * unit, below.unwrap_or(&100).saturating_mul(unit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(instructions: &[u64]) -> Vec<OperationCost> {
        let cost = |instructions: &u64| OperationCost {
            instructions: *instructions,
            allocated: i64::from(*instructions >= 900),
        };
        instructions.iter().map(cost).collect()
    }

    #[test]
    fn percentiles_are_measured_costs() {
        let each = costs(&(1..=1_000).rev().collect::<Vec<_>>());
        let spread = spread(&each, 0..1_000).unwrap();
        assert_eq!(
            (spread.min, spread.p50, spread.p90, spread.p99, spread.max),
            (1, 500, 900, 990, 1_000)
        );
        assert_eq!(spread.sum, 500_500);
        assert_eq!(spread.worst, Worst { index: 0, id: 0, allocated: 1 });
        assert_eq!((spread.allocating, spread.allocating_sum), (101, (900..=1_000).sum()));
    }

    #[test]
    fn the_worst_is_the_first_of_the_most_expensive() {
        let spread = spread(&costs(&[5, 9, 9]), [70, 80, 90].into_iter()).unwrap();
        assert_eq!(spread.worst, Worst { index: 1, id: 80, allocated: 0 });
        assert_eq!((spread.p50, spread.p90, spread.p99), (9, 9, 9));
    }

    #[test]
    fn different_numbers_of_costs_and_ids_are_refused() {
        assert!(spread(&[], [].into_iter()).is_err());
        assert!(spread(&costs(&[1]), 0..2).is_err());
    }

    #[test]
    fn each_cost_is_in_its_bucket() {
        for (cost, expected) in [
            (0, (0, 1)),
            (9, (9, 10)),
            (10, (10, 12)),
            (11, (10, 12)),
            (12, (12, 14)),
            (99, (90, 100)),
            (100, (100, 120)),
            (119, (100, 120)),
            (120, (120, 140)),
            (52_499, (50_000, 60_000)),
            (999_999, (900_000, 1_000_000)),
        ] {
            assert_eq!(bounds(cost), expected, "{cost}");
        }
        let (from, below) = bounds(u64::MAX);
        assert!(from < below && below == u64::MAX);
    }

    #[test]
    fn buckets_contain_all_costs_in_order() {
        let mut costs: Vec<u64> = (0..5_000).map(|number| number * number % 70_001).collect();
        costs.sort_unstable();
        let buckets = buckets(&costs);
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 5_000);
        assert!(buckets.iter().all(|bucket| bucket.from < bucket.below && bucket.count > 0));
        assert!(buckets.windows(2).all(|pair| pair[0].below <= pair[1].from));
        let first = buckets[5];
        let inside = costs.iter().filter(|cost| (first.from..first.below).contains(*cost));
        assert_eq!(inside.count() as u64, first.count);
    }
}
