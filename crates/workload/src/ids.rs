//! Which rows a batch is about.
//!
//! The users workload populates ids 0, 10, 20, … and then adds rows either between
//! the rows around the half, or after the last:
//!
//! ```text
//! populated   0   10   20   30   40   50   60   70      (8 rows)
//! middle                         45   55                (2 rows; the half is row 4)
//! end                                               80  90
//! ```

use stablebench_protocol::{Error, Result};

/// The distance between the ids of the users workload.
pub const STEP: u64 = 10;

/// Ids `first`, `first + step`, …, none of which overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    first: u64,
    step: u64,
    rows: u64,
}

impl Ids {
    /// `rows` ids from `first`, `step` apart.
    ///
    /// # Errors
    ///
    /// Without rows, with a step of 0 between several rows, or past `u64::MAX`.
    pub fn new(first: u64, step: u64, rows: u64) -> Result<Self> {
        let gaps = rows.checked_sub(1).ok_or(Error::NoRows)?;
        if step == 0 && gaps > 0 {
            return Err(Error::NoStep);
        }
        gaps.checked_mul(step)
            .and_then(|span| first.checked_add(span))
            .ok_or(Error::IdOverflow { largest: u64::MAX })?;
        Ok(Self { first, step, rows })
    }

    /// `rows` ids halfway between the ids around the half, where the ids up to `last`
    /// are multiples of [`STEP`].
    ///
    /// # Errors
    ///
    /// Without rows, or where they would not fit before `last`.
    pub fn middle(last: Option<u64>, rows: u64) -> Result<Self> {
        let last_row = last.unwrap_or(0) / STEP;
        // Not (last_row + 1) / 2: the same, but cannot overflow.
        let half = last_row / 2 + last_row % 2;
        let limit = last_row - half;
        if rows > limit {
            return Err(Error::TooManyRows { limit });
        }
        Self::new(half * STEP + STEP / 2, STEP, rows)
    }

    /// `rows` ids after `last`, or from 0 where there is no row.
    ///
    /// # Errors
    ///
    /// Without rows, or past `u64::MAX`.
    pub fn end(last: Option<u64>, rows: u64) -> Result<Self> {
        let first = match last {
            None => 0,
            Some(last) => (last / STEP)
                .checked_add(1)
                .and_then(|row| row.checked_mul(STEP))
                .ok_or(Error::IdOverflow { largest: u64::MAX })?,
        };
        Self::new(first, STEP, rows)
    }

    /// The smallest id.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The largest id.
    pub fn last(&self) -> u64 {
        self.first + self.step * (self.rows - 1)
    }

    /// The distance between two ids.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// How many ids; at least one.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The ids in ascending order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let Self { first, step, rows } = *self;
        (0..rows).map(move |row| first + row * step)
    }

    /// At most `rows` ids, after the first `skipped`; nothing where none is left.
    pub fn part(&self, skipped: u64, rows: u64) -> Option<Self> {
        let rows = self.rows.checked_sub(skipped)?.min(rows);
        // Not past the last of all where some are left.
        (rows > 0).then(|| Self { first: self.first + self.step * skipped, rows, ..*self })
    }

    /// The smallest of the ids that is not below `id`.
    pub fn at_or_after(&self, id: u64) -> Option<u64> {
        if id <= self.first {
            return Some(self.first);
        }
        if id > self.last() {
            return None;
        }
        // The step is not 0: with one row alone, one of the two above holds.
        Some(self.first + (id - self.first).div_ceil(self.step) * self.step)
    }

    /// Whether `id` is one of the ids.
    pub fn contains(&self, id: u64) -> bool {
        self.at_or_after(id) == Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_middle_is_between_the_rows_around_the_half() {
        let last = |rows: u64| Some((rows - 1) * STEP);
        assert_eq!(Ids::middle(last(1_000_000), 1).unwrap().first(), 500_000 * 10 + 5);
        assert_eq!(Ids::middle(last(8), 2), Ids::new(45, 10, 2));
        assert_eq!(Ids::middle(last(9), 2), Ids::new(45, 10, 2));
        assert_eq!(Ids::middle(last(8), 3).unwrap().last(), 65);
        assert_eq!(Ids::middle(last(8), 4), Err(Error::TooManyRows { limit: 3 }));
        assert_eq!(Ids::middle(None, 1), Err(Error::TooManyRows { limit: 0 }));
        assert_eq!(Ids::middle(last(8), 0), Err(Error::NoRows));
    }

    #[test]
    fn the_end_is_after_the_last_row() {
        assert_eq!(Ids::end(None, 2), Ids::new(0, 10, 2));
        assert_eq!(Ids::end(Some(0), 2), Ids::new(10, 10, 2));
        assert_eq!(Ids::end(Some(75), 1), Ids::new(80, 10, 1));
        assert_eq!(Ids::end(Some(u64::MAX), 1), Err(Error::IdOverflow { largest: u64::MAX }));
    }

    #[test]
    fn the_last_id_that_fits_is_taken_and_the_next_is_refused() {
        assert_eq!(Ids::new(u64::MAX, 7, 1).unwrap().last(), u64::MAX);
        assert_eq!(Ids::new(u64::MAX - 7, 7, 2).unwrap().last(), u64::MAX);
        let overflow = Err(Error::IdOverflow { largest: u64::MAX });
        assert_eq!(Ids::new(u64::MAX - 6, 7, 2), overflow);
        assert_eq!(Ids::new(0, u64::MAX, 3), overflow);
        assert_eq!(Ids::new(0, 0, 2), Err(Error::NoStep));
        assert_eq!(Ids::new(5, 0, 1).unwrap().iter().collect::<Vec<_>>(), [5]);
    }

    proptest! {
        #[test]
        fn membership_agrees_with_the_list(
            first in 0u64..100, step in 1u64..20, rows in 1u64..30, id in 0u64..800,
        ) {
            let ids = Ids::new(first, step, rows).unwrap();
            let list: Vec<u64> = ids.iter().collect();
            prop_assert_eq!(list.len() as u64, rows);
            prop_assert_eq!(*list.last().unwrap(), ids.last());
            prop_assert_eq!(ids.contains(id), list.contains(&id));
            prop_assert_eq!(ids.at_or_after(id), list.iter().copied().find(|&one| one >= id));
        }

        #[test]
        fn nothing_overflows(first: u64, step: u64, rows: u64) {
            if let Ok(ids) = Ids::new(first, step, rows) {
                let last = u128::from(first) + u128::from(step) * (u128::from(rows) - 1);
                prop_assert_eq!(u128::from(ids.last()), last);
            }
            let _ = (Ids::middle(Some(first), rows), Ids::end(Some(first), rows));
        }
    }
}
