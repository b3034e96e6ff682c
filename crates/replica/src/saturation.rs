//! Cycles that a canister reserves for storage when the memory of its subnet becomes scarce.
//!
//! ```text
//!    0            threshold           capacity
//!    ├────────────────┼──────────────────┤
//!     reserves nothing  storage fees of up to 300 M seconds, in proportion to what is in use
//! ```
//!
//! Everything is divided by the number of cores, each of which may use its part in a round.
//!
//! Source: `ResourceSaturation` in `rs/cycles_account_manager/src/lib.rs`, and
//! `subnet_memory_saturation` in `rs/execution_environment/src/execution_environment.rs` of the
//! replica.

use crate::fault::Fault;
use crate::limits::{CORES, MAX_RESERVATION, SCARCE_MEMORY, SUBNET_CAPACITY, SUBNET_MEMORY};
use crate::rules::Rules;
use crate::units::{Bytes, Cycles};

/// Bytes of a subnet's memory that are in use, in the part of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saturation(Bytes);

const CAPACITY: u64 = SUBNET_CAPACITY.get() / CORES as u64;
const THRESHOLD: u64 = SCARCE_MEMORY.get() / CORES as u64;

impl Saturation {
    /// The saturation of a subnet whose canisters occupy this number of bytes.
    pub fn new(occupied: Bytes) -> Self {
        Self(Bytes(CAPACITY - Self::free(occupied).get()))
    }

    /// Returns the free memory of a subnet whose canisters occupy `occupied` bytes.
    pub fn free(occupied: Bytes) -> Bytes {
        Bytes(SUBNET_MEMORY.get().saturating_sub(occupied.get()) / CORES as u64)
    }

    /// The saturation with this number of bytes more.
    #[must_use]
    pub fn plus(self, bytes: Bytes) -> Self {
        Self(Bytes(self.0.get().saturating_add(bytes.get()).min(CAPACITY)))
    }

    /// Bytes that are not in use, in the part of one core.
    pub fn left(self) -> Bytes {
        Bytes(CAPACITY).saturating_sub(self.0)
    }

    /// True if cycles are reserved for every byte more.
    pub fn is_scarce(self) -> bool {
        self.0.get() > THRESHOLD
    }

    /// Cycles to reserve for this number of bytes more.
    pub fn reservation(self, rules: Rules, bytes: Bytes) -> Cycles {
        self.plus(bytes).total(rules) - self.total(rules)
    }

    /// Cycles to reserve for everything up to here.
    fn total(self, rules: Rules) -> Cycles {
        let above = self.0.get().saturating_sub(THRESHOLD);
        let seconds =
            u128::from(MAX_RESERVATION) * u128::from(above) / u128::from(CAPACITY - THRESHOLD);
        // The fee grows evenly from the threshold on: half of the last one on average.
        let fee = rules.fees().storage_gib_second;
        Cycles(u128::from(above) * fee * (seconds / 2) / (1 << 30))
    }
}

/// The cycles that a canister has reserved for storage, and the most that it wants to reserve.
#[derive(Clone, Copy, Debug)]
pub struct Reserve {
    /// Cycles that it has reserved.
    pub reserved: Cycles,
    /// The most that it wants to reserve.
    pub limit: Cycles,
    /// Memory of the subnet that is in use.
    pub saturation: Saturation,
}

impl Reserve {
    /// Returns the cycles to reserve for memory that grows by `bytes`, after it grew by `before`.
    ///
    /// # Errors
    ///
    /// If the canister does not want to reserve so much.
    pub fn growth(&self, rules: Rules, before: Bytes, bytes: Bytes) -> Result<Cycles, Fault> {
        let cycles = self.saturation.plus(before).reservation(rules, bytes);
        let earlier = self.saturation.reservation(rules, before);
        let excess = (self.reserved + earlier + cycles).get().saturating_sub(self.limit.get());
        match excess {
            0 => Ok(cycles),
            excess => {
                Err(Fault::ReservedCycles { bytes, limit: self.limit, excess: Cycles(excess) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn nothing_is_reserved_while_memory_is_free() {
        let rules = Rules::today();
        let free = Saturation::new(Bytes(0));
        // The replica keeps 10 GiB for itself.
        let below = Bytes((750 - 10) * GIB / 4);
        assert_eq!(free.reservation(rules, below), Cycles(0));
        assert!(free.reservation(rules, below + Bytes(GIB)) > Cycles(0));
        assert_eq!(free.reservation(rules, below), Cycles(0));
    }

    #[test]
    fn a_full_subnet_reserves_the_longest_time() {
        let rules = Rules::of_2025_10();
        let all = Saturation::new(Bytes(0)).reservation(rules, SUBNET_MEMORY);
        let above = u128::from((2_048 - 750) * GIB / 4);
        assert_eq!(all, Cycles(above * 127_000 * 150_000_000 / u128::from(GIB)));
    }

    #[test]
    fn parts_reserve_as_much_as_the_whole() {
        let rules = Rules::today();
        let reserve =
            |saturation: Saturation, gib: u64| saturation.reservation(rules, Bytes(gib * GIB));
        let start = Saturation::new(Bytes(600 * GIB));
        let parts = reserve(start, 100) + reserve(start.plus(Bytes(100 * GIB)), 50);
        assert_eq!(parts, reserve(start, 150));
    }
}
