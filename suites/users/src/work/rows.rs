//! The rows of an operation, and their texts.
//!
//! The users workload populates ids 0, 10, 20, … and then adds rows either between the rows around
//! the half, or after the last:
//!
//! ```text
//! populated   0   10   20   30   40   50   60   70      (8 rows)
//! middle                         45   55                (2 rows; the half is row 4)
//! end                                               80  90
//! ```
//!
//! A new row contains a number of `a`. A row that was updated contains as many `b`, so that an
//! update that did not happen shows in the digest.

use crate::types::Selection;
use stablebench_protocol::{Error, MAX_PAYLOAD_BYTES, Result};

/// The distance between the ids of the users workload.
pub const STEP: u64 = 10;

/// The ids `first`, `first + step`, …, none of which overflows.
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
    /// Without rows, or if they do not fit before `last`.
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

    /// `rows` ids after `last`, or from 0 if there is no row.
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

    /// The number of ids; at least one.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The ids in ascending order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        let Self { first, step, rows } = *self;
        (0..rows).map(move |row| first + row * step)
    }

    /// At most `rows` ids after the first `skipped`; nothing if none is left.
    pub fn part(&self, skipped: u64, rows: u64) -> Option<Self> {
        let rows = self.rows.checked_sub(skipped)?.min(rows);
        (rows > 0).then(|| Self { first: self.first + self.step * skipped, rows, ..*self })
    }

    /// The index of one of the ids.
    pub fn index(&self, id: u64) -> u64 {
        (id - self.first).checked_div(self.step).unwrap_or(0)
    }

    /// These ids and the next ones, if those continue these.
    pub fn joined(&self, next: Self) -> Option<Self> {
        let continues = self.step > 0
            && next.step == self.step
            && self.last().checked_add(self.step) == Some(next.first);
        continues.then_some(Self { rows: self.rows + next.rows, ..*self })
    }

    /// The smallest of the ids that is at least `id`.
    pub fn at_or_after(&self, id: u64) -> Option<u64> {
        if id <= self.first {
            return Some(self.first);
        }
        if id > self.last() {
            return None;
        }
        // The step is not 0: a single row satisfies one of the conditions above.
        Some(self.first + (id - self.first).div_ceil(self.step) * self.step)
    }

    /// Returns `true` if `id` is one of the ids.
    pub fn contains(&self, id: u64) -> bool {
        self.at_or_after(id) == Some(id)
    }
}

/// The rows of an operation in its order: ids at equal distances, or a borrowed list; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected<'a>(Kind<'a>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    Step(Ids),
    List(&'a [u64]),
}

impl From<Ids> for Selected<'_> {
    fn from(ids: Ids) -> Self {
        Self(Kind::Step(ids))
    }
}

impl<'a> Selected<'a> {
    /// The rows that were asked for over the wire.
    ///
    /// # Errors
    ///
    /// Those of [`Ids::new`] and [`list`](Self::list).
    pub fn new(selection: &'a Selection) -> Result<Self> {
        match selection {
            Selection::Step { first, step, rows } => Ids::new(*first, *step, *rows).map(Self::from),
            Selection::List(ids) => Self::list(ids),
        }
    }

    /// The ids of a list.
    ///
    /// # Errors
    ///
    /// If it is empty.
    pub fn list(ids: &'a [u64]) -> Result<Self> {
        if ids.is_empty() { Err(Error::NoRows) } else { Ok(Self(Kind::List(ids))) }
    }

    /// The number of ids; at least one.
    pub fn rows(self) -> u64 {
        match self.0 {
            Kind::Step(ids) => ids.rows(),
            Kind::List(ids) => ids.len() as u64,
        }
    }

    /// The largest of the ids.
    pub fn largest(self) -> u64 {
        match self.0 {
            Kind::Step(ids) => ids.last(),
            Kind::List(ids) => ids.iter().copied().max().unwrap_or(0),
        }
    }

    /// At most `rows` ids after the first `skipped`; nothing if none is left.
    pub fn part(self, skipped: u64, rows: u64) -> Option<Self> {
        match self.0 {
            Kind::Step(ids) => ids.part(skipped, rows).map(Self::from),
            Kind::List(ids) => {
                let rest = ids.get(usize::try_from(skipped).ok()?..)?;
                let rows = usize::try_from(rows).unwrap_or(usize::MAX).min(rest.len());
                Self::list(&rest[..rows]).ok()
            }
        }
    }

    /// Visits the ids in their order.
    #[inline(always)]
    pub fn each(self, visit: impl FnMut(u64)) {
        // One loop per kind, so that neither pays for the other.
        match self.0 {
            Kind::Step(ids) => ids.iter().for_each(visit),
            Kind::List(ids) => ids.iter().copied().for_each(visit),
        }
    }

    /// Visits the ids in their order until a visit fails.
    ///
    /// # Errors
    ///
    /// The visit's.
    #[inline(always)]
    pub fn try_each<E>(
        self,
        visit: impl FnMut(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match self.0 {
            Kind::Step(ids) => ids.iter().try_for_each(visit),
            Kind::List(ids) => ids.iter().copied().try_for_each(visit),
        }
    }
}

/// The ids of an operation in ascending order, each once; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdSet(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Step(Ids),
    Sorted(Vec<u64>),
}

impl From<Ids> for IdSet {
    fn from(ids: Ids) -> Self {
        Self(Form::Step(ids))
    }
}

impl IdSet {
    /// The ids; each may be selected more than once.
    pub fn of(selected: Selected<'_>) -> Self {
        match selected.0 {
            Kind::Step(ids) => ids.into(),
            Kind::List(ids) => {
                let mut sorted = ids.to_vec();
                sorted.sort_unstable();
                sorted.dedup();
                Self(Form::Sorted(sorted))
            }
        }
    }

    /// The ids; none may be selected more than once.
    ///
    /// # Errors
    ///
    /// The smallest id that is.
    pub fn once(selected: Selected<'_>) -> Result<Self> {
        match selected.0 {
            Kind::Step(ids) => Ok(ids.into()),
            Kind::List(ids) => {
                let mut sorted = ids.to_vec();
                sorted.sort_unstable();
                match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(pair) => Err(Error::IdTwice { id: pair[0] }),
                    None => Ok(Self(Form::Sorted(sorted))),
                }
            }
        }
    }

    /// The ids, if they are at equal distances by definition.
    pub fn as_step(&self) -> Option<Ids> {
        match self.0 {
            Form::Step(ids) => Some(ids),
            Form::Sorted(_) => None,
        }
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (step, sorted) = match &self.0 {
            Form::Step(ids) => (Some(ids.iter()), [].as_slice()),
            Form::Sorted(ids) => (None, ids.as_slice()),
        };
        step.into_iter().flatten().chain(sorted.iter().copied())
    }

    /// The smallest id.
    pub fn first(&self) -> u64 {
        match &self.0 {
            Form::Step(ids) => ids.first(),
            Form::Sorted(ids) => ids.first().copied().unwrap_or(0),
        }
    }

    /// The largest id.
    pub fn last(&self) -> u64 {
        match &self.0 {
            Form::Step(ids) => ids.last(),
            Form::Sorted(ids) => ids.last().copied().unwrap_or(0),
        }
    }

    /// The smallest of the ids that is at least `id`.
    pub fn at_or_after(&self, id: u64) -> Option<u64> {
        match &self.0 {
            Form::Step(ids) => ids.at_or_after(id),
            Form::Sorted(ids) => ids.get(ids.partition_point(|&one| one < id)).copied(),
        }
    }

    /// Returns `true` if `id` is one of the ids.
    pub fn contains(&self, id: u64) -> bool {
        self.at_or_after(id) == Some(id)
    }

    /// The smallest of the ids that is not a multiple.
    pub fn first_not_multiple(&self, multiple: u64) -> Option<u64> {
        if let Form::Step(ids) = &self.0
            && ids.step().is_multiple_of(multiple)
            && ids.first().is_multiple_of(multiple)
        {
            return None;
        }
        self.iter().find(|id| !id.is_multiple_of(multiple))
    }
}

/// The kind of text of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The text of a row as inserted.
    New,
    /// The text of a row as updated.
    Updated,
}

impl Payload {
    /// The text with `bytes` bytes, at most [`MAX_PAYLOAD_BYTES`].
    pub fn text(self, bytes: u32) -> String {
        let letter = match self {
            Self::New => "a",
            Self::Updated => "b",
        };
        letter.repeat(bytes.min(MAX_PAYLOAD_BYTES) as usize)
    }
}

#[cfg(test)]
mod tests;
