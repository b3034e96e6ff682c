//! A seeded generator, and random choices of rows: uniform, or skewed by Zipf's law.
//!
//! The generator is SplitMix64, so that a seed gives the same numbers on every machine. For Zipf's
//! law, the sums of `1 / rank^0.99` are computed and searched with a random number, so that no
//! inverse has to be approximated. Powers are computed by `libm`, whose results do not depend on the
//! platform's own library. A random permutation spreads the ranks over the rows, so that the most
//! popular rows are not neighbours.

/// A seeded generator. Its state is the number of draws times a constant, plus the seed.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The high half of a product: as uniform as 64 bits allow, and without a division.
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u64
    }
}

/// The exponent that YCSB and others use.
pub const ZIPF_EXPONENT: f64 = 0.99;

/// `count` uniform numbers below `limit`.
pub fn uniform(rng: &mut Rng, limit: u64, count: u64) -> Vec<u64> {
    (0..count).map(|_| rng.below(limit)).collect()
}

/// `count` distinct numbers below `limit` in random order, or all of them if there are fewer.
pub fn distinct(rng: &mut Rng, limit: u64, count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..limit).collect();
    let count = count.min(limit);
    // The first steps of a Fisher–Yates shuffle.
    for place in 0..count {
        let other = place + rng.below(limit - place);
        numbers.swap(place as usize, other as usize);
    }
    numbers.truncate(count as usize);
    numbers
}

/// `count` numbers below `limit`, where the number of rank r occurs in proportion to `1 / r^0.99`.
pub fn zipf(rng: &mut Rng, limit: u64, count: u64) -> Vec<u64> {
    let by_rank = distinct(rng, limit, limit);
    let mut sums = Vec::with_capacity(by_rank.len());
    let mut sum = 0.0;
    for rank in 1..=limit {
        sum += libm::pow(rank as f64, -ZIPF_EXPONENT);
        sums.push(sum);
    }
    (0..count)
        .map(|_| {
            // 53 bits are what a float can hold of a number below one.
            let share = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = sums.partition_point(|below| *below <= share * sum);
            by_rank.get(rank).or(by_rank.last()).copied().unwrap_or(0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The first values of the published reference implementation for seed 1234567.
    #[test]
    fn reference_values() {
        let mut rng = Rng::new(1_234_567);
        let values = [(); 3].map(|()| rng.next_u64());
        assert_eq!(values, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn numbers_stay_below_the_limit() {
        let mut rng = Rng::new(0);
        assert!((0..1000).all(|_| rng.below(7) < 7));
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn distinct_numbers_are_distinct_and_all_there_are() {
        let mut numbers = distinct(&mut Rng::new(1), 100, 1_000);
        assert_ne!(numbers[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "they are in random order");
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
        assert!(distinct(&mut Rng::new(1), 0, 5).is_empty());
        assert_eq!(distinct(&mut Rng::new(1), 9, 4).len(), 4);
    }

    #[test]
    fn a_seed_is_a_choice() {
        for choose in [uniform, distinct, zipf] {
            let first = choose(&mut Rng::new(7), 1_000, 50);
            assert_eq!(first, choose(&mut Rng::new(7), 1_000, 50));
            assert_ne!(first, choose(&mut Rng::new(8), 1_000, 50));
            assert!(first.iter().all(|number| *number < 1_000));
        }
    }

    /// With three rows, ranks are asked for as 1 : 2^-0.99 : 3^-0.99.
    #[test]
    fn zipf_gives_each_rank_its_share() {
        const DRAWS: u64 = 100_000;
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for number in zipf(&mut Rng::new(3), 3, DRAWS) {
            *counts.entry(number).or_default() += 1;
        }
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let weights = [1.0, 0.503_477_8, 0.337_021_2];
        let sum: f64 = weights.iter().sum();
        for (count, weight) in counts.iter().zip(weights) {
            let expected = DRAWS as f64 * weight / sum;
            // Four standard deviations of a count.
            let allowed = 4.0 * expected.sqrt();
            assert!((*count as f64 - expected).abs() < allowed, "{count} of {expected}");
        }
    }

    /// One in a hundred rows gets more than half of what is asked for.
    #[test]
    fn zipf_is_skewed_and_its_favourites_are_apart() {
        let draws = zipf(&mut Rng::new(5), 10_000, 20_000);
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for number in draws {
            *counts.entry(number).or_default() += 1;
        }
        let mut by_count: Vec<(u64, u64)> =
            counts.into_iter().map(|(number, count)| (count, number)).collect();
        by_count.sort_unstable_by(|one, other| other.cmp(one));
        let top: u64 = by_count.iter().take(100).map(|(count, _)| count).sum();
        assert!(top > 10_000, "{top} of 20 000");
        let favourites: Vec<u64> = by_count.iter().take(2).map(|(_, number)| *number).collect();
        assert!(favourites[0].abs_diff(favourites[1]) > 1, "{favourites:?}");
    }
}
