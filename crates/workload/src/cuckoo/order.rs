//! Numbers in a random order, each of them once, and any of them without the others.
//!
//! A number is cut into two halves of bits, and one half after the other is changed by
//! a hash of the other (a Feistel network): that shuffles the numbers below a power of
//! four. What falls outside of the limit is shuffled again until it is inside.

use crate::Rng;

const ROUNDS: u64 = 4;

/// The numbers below a limit, shuffled.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    limit: u64,
    seed: u64,
    /// Bits of a half.
    half: u32,
}

impl Order {
    /// The order of a seed.
    pub fn new(limit: u64, seed: u64) -> Self {
        let bits = u64::BITS - limit.saturating_sub(1).leading_zeros();
        Self { limit, seed, half: bits.div_ceil(2) }
    }

    /// The number at a position; from the limit on, the same order again. 0 where there
    /// are no numbers.
    pub fn place(&self, position: u64) -> u64 {
        let Some(mut number) = position.checked_rem(self.limit) else {
            return 0;
        };
        loop {
            number = self.shuffled(number);
            if number < self.limit {
                return number;
            }
        }
    }

    fn shuffled(&self, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut high, mut low) = (number >> self.half, number & mask);
        for round in 0..ROUNDS {
            let state = self.seed ^ (round << 62) ^ low;
            (high, low) = (low, high ^ (Rng::new(state).next_u64() & mask));
        }
        high << self.half | low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_once() {
        for limit in [1, 2, 3, 7, 64, 65, 1_000, 4_096] {
            let order = Order::new(limit, 5);
            let mut numbers: Vec<u64> = (0..limit).map(|position| order.place(position)).collect();
            let again: Vec<u64> =
                (limit..2 * limit).map(|position| order.place(position)).collect();
            assert_eq!(numbers, again);
            numbers.sort_unstable();
            assert_eq!(numbers, (0..limit).collect::<Vec<_>>());
        }
        assert_eq!(Order::new(0, 5).place(3), 0);
    }

    #[test]
    fn the_order_looks_random_and_follows_from_the_seed() {
        let numbers = |seed| {
            let order = Order::new(1_000, seed);
            (0..1_000).map(|position| order.place(position)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        let ascents = numbers(1).windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((450..550).contains(&ascents), "{ascents}");
        let distances: Vec<u64> =
            numbers(1).windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
        let mean = distances.iter().sum::<u64>() / 999;
        assert!((300..366).contains(&mean), "a third of the limit: {mean}");
    }
}
