//! How costs are spread: sixteen buckets a power of ten, as LevelDB's histograms have them.
//!
//! ```text
//!   10 12 14 16 18 20 25 30 35 40 45 50 60 70 80 90 | 100 120 140 …
//! ```

use crate::results::Bucket;

/// Where buckets begin, for costs from 10 up to 100.
const LIMITS: [u64; 16] = [10, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90];

/// The buckets that hold something; `costs` ascend.
pub(super) fn buckets(costs: &[u64]) -> Vec<Bucket> {
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
    fn buckets_hold_all_costs_in_their_order() {
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
