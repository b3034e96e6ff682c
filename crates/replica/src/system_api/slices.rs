//! The instructions of a message, divided into slices as the replica does.
//!
//! The module counts down the remaining instructions of the slice. When a check finds a negative
//! counter, the next slice starts, shortened by what the last one overran:
//!
//! ```text
//!   limit of the message  |----------------------------------------|
//!   slices                |--- 2 G ---|--- 2 G ---|··
//!   counter               2 G ↘ −3   → 2 G − 3 ↘
//! ```
//!
//! Source: `rs/canister_sandbox/src/dts.rs` of the replica.

use crate::fault::Fault;
use crate::limits::MAX_SLICES;
use crate::units::Instructions;

/// The instructions of a message that are not in the module's counter.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    total: i64,
    longest: i64,
    current: i64,
    before: i64,
    left: i64,
}

impl Slices {
    /// Creates the slices of a message with at most `total` instructions, each at most `slice`.
    pub fn new(total: Instructions, slice: Instructions) -> Self {
        let total = i64::try_from(total.get()).unwrap_or(i64::MAX);
        let longest = i64::try_from(slice.get()).unwrap_or(i64::MAX).min(total);
        let slices = (total / longest.max(1)).min(MAX_SLICES);
        Self {
            total,
            longest,
            current: longest,
            before: 0,
            left: (2 * slices).clamp(4, MAX_SLICES),
        }
    }

    /// Initial value of the counter.
    pub fn first(&self) -> i64 {
        self.longest
    }

    /// Instructions used so far, with `counter` left of the slice.
    pub fn used(&self, counter: i64) -> Instructions {
        Instructions((self.before + self.in_slice(counter)).max(0).cast_unsigned())
    }

    /// Instructions used so far as in [`Slices::used`], at most the message's limit.
    pub fn used_within_limit(&self, counter: i64) -> Instructions {
        Instructions(self.used(counter).get().min(self.total.cast_unsigned()))
    }

    fn in_slice(&self, counter: i64) -> i64 {
        self.current.saturating_sub(counter).max(0).min(i64::MAX - self.before)
    }

    /// Starts the next slice and returns its counter.
    ///
    /// # Errors
    ///
    /// If no instructions are left, or the overrun exceeds a slice.
    pub fn next(&mut self, counter: i64) -> Result<i64, Fault> {
        if self.current >= self.total - self.before || self.left <= 1 {
            return Err(Fault::Instructions(Instructions(self.total.cast_unsigned())));
        }
        let used = self.current.saturating_sub(counter).max(0);
        let overrun = (used - self.current).max(0);
        // The replica checks the carry against what was left before this slice here, and against
        // what is left after it when the next slice starts.
        if (self.longest - overrun).clamp(0, (self.total - self.before).max(0)) == 0 {
            return Err(Fault::Slice {
                used: Instructions(used.cast_unsigned()),
                limit: Instructions(self.longest.cast_unsigned()),
            });
        }
        self.before = self.before.saturating_add(used);
        self.current = (self.longest - overrun).clamp(0, (self.total - self.before).max(0));
        self.left -= 1;
        Ok(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Instructions = Instructions(100);

    #[test]
    fn a_slice_shortens_the_next_by_what_it_overran() {
        let mut slices = Slices::new(Instructions(1_000), SLICE);
        assert_eq!(slices.first(), 100);
        assert_eq!(slices.next(-30), Ok(70));
        assert_eq!(slices.used(70), Instructions(130));
        assert_eq!(slices.used(0), Instructions(200));
    }

    #[test]
    fn overrunning_a_whole_slice_is_refused_one_less_is_not() {
        let mut slices = Slices::new(Instructions(1_000), SLICE);
        assert_eq!(slices.next(-99), Ok(1));
        let mut slices = Slices::new(Instructions(1_000), SLICE);
        let used = Instructions(200);
        assert_eq!(slices.next(-100), Err(Fault::Slice { used, limit: SLICE }));
    }

    #[test]
    fn the_last_slice_ends_the_message() {
        let mut slices = Slices::new(Instructions(200), SLICE);
        assert_eq!(slices.next(-1), Ok(99));
        assert_eq!(slices.next(-1), Err(Fault::Instructions(Instructions(200))));
        assert_eq!(slices.used(-1), Instructions(201));
        assert_eq!(slices.used_within_limit(-1), Instructions(200));
    }

    #[test]
    fn a_query_has_one_slice() {
        let mut slices = Slices::new(Instructions(50), Instructions(50));
        assert_eq!(slices.next(-1), Err(Fault::Instructions(Instructions(50))));
    }
}
