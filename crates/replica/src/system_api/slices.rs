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
//! The counter has a part of a long slice at a time, so that the host gets a word in between. What the
//! counter does not have yet is `hidden`; nothing that is counted depends on it.
//!
//! Source: `rs/canister_sandbox/src/dts.rs` of the replica.

use crate::fault::Fault;
use crate::limits::MAX_SLICES;
use crate::units::Instructions;

/// The most instructions that the counter has: about a second.
const PART: i64 = 1_000_000_000;

/// The instructions of a message that are not in the module's counter.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    total: i64,
    longest: i64,
    current: i64,
    before: i64,
    left: i64,
    /// Instructions of the slice that the counter does not have yet.
    hidden: i64,
    part: i64,
}

impl Slices {
    /// Creates the slices of a message with at most `total` instructions, each at most `slice`.
    pub fn new(total: Instructions, slice: Instructions) -> Self {
        Self::in_parts(total, slice, PART)
    }

    fn in_parts(total: Instructions, slice: Instructions, part: i64) -> Self {
        let total = i64::try_from(total.get()).unwrap_or(i64::MAX);
        let longest = i64::try_from(slice.get()).unwrap_or(i64::MAX).min(total);
        let slices = (total / longest.max(1)).min(MAX_SLICES);
        Self {
            total,
            longest,
            current: longest,
            before: 0,
            left: (2 * slices).clamp(4, MAX_SLICES),
            hidden: (longest - part).max(0),
            part,
        }
    }

    /// Initial value of the counter.
    pub fn first(&self) -> i64 {
        self.longest - self.hidden
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
        let left = counter.saturating_add(self.hidden);
        self.current.saturating_sub(left).max(0).min(i64::MAX - self.before)
    }

    /// Continues the slice, or starts the next one, and returns the counter.
    ///
    /// # Errors
    ///
    /// If no instructions are left, or the overrun exceeds a slice.
    pub fn next(&mut self, counter: i64) -> Result<i64, Fault> {
        let mut left = counter.saturating_add(self.hidden);
        if left < 0 {
            left = self.next_slice(left)?;
        }
        self.hidden = (left - self.part).max(0);
        Ok(left - self.hidden)
    }

    fn next_slice(&mut self, counter: i64) -> Result<i64, Fault> {
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

    /// A counter that has parts of the slices counts like one that has them whole.
    #[test]
    fn parts_of_slices_change_no_count() {
        let total = Instructions(2_000);
        for (part, charge) in [1, 7, 99, 100, 101]
            .into_iter()
            .flat_map(|part| [1, 3, 50, 100, 130, 199, 200, 400].map(|charge| (part, charge)))
        {
            let mut whole = Slices::new(total, SLICE);
            let mut parts = Slices::in_parts(total, SLICE, part);
            let (mut one, mut other) = (whole.first(), parts.first());
            loop {
                assert_eq!(whole.used(one), parts.used(other), "{part}, {charge}");
                one -= charge;
                other -= charge;
                let next = |slices: &mut Slices, counter| match counter {
                    0.. => Ok(counter),
                    _ => slices.next(counter),
                };
                assert_eq!(whole.used(one), parts.used(other), "{part}, {charge}");
                match (next(&mut whole, one), next(&mut parts, other)) {
                    (Ok(whole), Ok(parts)) => (one, other) = (whole, parts),
                    (ended, same) => {
                        assert_eq!(ended.map(|_| ()), same.map(|_| ()), "{part}, {charge}");
                        break;
                    }
                }
            }
        }
    }
}
