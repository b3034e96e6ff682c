//! What single operations cost: the order of their costs, and the dearest.

use anyhow::{Result, bail};
use stablebench_protocol::OperationCost;

use super::buckets::buckets;
use crate::results::{Spread, Worst};

/// Percentiles by nearest rank: the smallest cost that at least so many percent of the
/// operations do not exceed.
///
/// # Errors
///
/// Without operations, or with fewer costs than ids.
pub(super) fn spread(each: &[OperationCost], ids: impl Iterator<Item = u64>) -> Result<Spread> {
    let ids: Vec<u64> = ids.collect();
    if each.is_empty() || each.len() != ids.len() {
        bail!("the canister told {} costs of {} operations", each.len(), ids.len());
    }
    let mut costs: Vec<u64> = each.iter().map(|cost| cost.instructions).collect();
    costs.sort_unstable();
    let rank = |percent: usize| costs[(costs.len() * percent).div_ceil(100).max(1) - 1];
    // The first of the dearest.
    let worst = (0..each.len()).rev().max_by_key(|index| each[*index].instructions).unwrap_or(0);
    let allocating = each.iter().filter(|cost| cost.allocated != 0);
    Ok(Spread {
        min: costs[0],
        p50: rank(50),
        p90: rank(90),
        p99: rank(99),
        max: costs[costs.len() - 1],
        sum: costs.iter().sum(),
        worst: Worst { index: worst as u64, id: ids[worst], allocated: each[worst].allocated },
        allocating: allocating.clone().count() as u64,
        allocating_sum: allocating.map(|cost| cost.instructions).sum(),
        buckets: buckets(&costs),
    })
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
    fn percentiles_are_costs_that_were_measured() {
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
    fn the_first_of_the_dearest_is_the_worst() {
        let spread = spread(&costs(&[5, 9, 9]), [70, 80, 90].into_iter()).unwrap();
        assert_eq!(spread.worst, Worst { index: 1, id: 80, allocated: 0 });
        assert_eq!((spread.p50, spread.p90, spread.p99), (9, 9, 9));
    }

    #[test]
    fn costs_and_ids_must_be_as_many() {
        assert!(spread(&[], [].into_iter()).is_err());
        assert!(spread(&costs(&[1]), 0..2).is_err());
    }
}
