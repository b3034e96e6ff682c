//! The rows that an operation is about, in the order in which it is about them.

use crate::ids::Ids;
use stablebench_protocol::{Error, Result, Selection};

/// Ids a step apart, or a list; at least one. Nothing is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected<'a>(Kind<'a>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    Step(Ids),
    List(&'a [u64]),
}

impl From<Ids> for Selected<'_> {
    fn from(ids: Ids) -> Self {
        Self(Kind::Step(ids))
    }
}

impl<'a> Selected<'a> {
    /// What was asked for over the wire.
    ///
    /// # Errors
    ///
    /// Those of [`Ids::new`]; of a list, that it is empty.
    pub fn new(selection: &'a Selection) -> Result<Self> {
        match selection {
            Selection::Step { first, step, rows } => Ids::new(*first, *step, *rows).map(Self::from),
            Selection::List(ids) => Self::list(ids),
        }
    }

    /// How many ids are asked for, sound or not.
    pub fn asked(selection: &Selection) -> u64 {
        match selection {
            Selection::Step { rows, .. } => *rows,
            Selection::List(ids) => ids.len() as u64,
        }
    }

    /// The ids of a list.
    ///
    /// # Errors
    ///
    /// Where it is empty.
    pub fn list(ids: &'a [u64]) -> Result<Self> {
        if ids.is_empty() { Err(Error::NoRows) } else { Ok(Self(Kind::List(ids))) }
    }

    pub(crate) fn kind(self) -> Kind<'a> {
        self.0
    }

    /// How many ids; at least one.
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

    /// At most `rows` ids, after the first `skipped`; nothing where none is left.
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
        // One loop a kind, so that neither pays for the other.
        match self.0 {
            Kind::Step(ids) => ids.iter().for_each(visit),
            Kind::List(ids) => ids.iter().copied().for_each(visit),
        }
    }

    /// Visits the ids in their order, until a visit fails.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(selected: Selected<'_>) -> Vec<u64> {
        let mut ids = Vec::new();
        selected.each(|id| ids.push(id));
        ids
    }

    #[test]
    fn an_empty_list_is_refused() {
        let none = Selection::List(Vec::new());
        assert_eq!(Selected::new(&none), Err(Error::NoRows));
        let none = Selection::Step { first: 0, step: 1, rows: 0 };
        assert_eq!(Selected::new(&none), Err(Error::NoRows));
    }

    #[test]
    fn a_visit_that_fails_is_the_last() {
        for selected in
            [Selected::from(Ids::new(7, 1, 9).unwrap()), Selected::list(&[7, 8, 9, 8]).unwrap()]
        {
            let mut seen = Vec::new();
            let outcome = selected.try_each(|id| {
                seen.push(id);
                if id < 8 { Ok(()) } else { Err(id) }
            });
            assert_eq!((outcome, seen), (Err(8), vec![7, 8]));
        }
    }

    proptest! {
        #[test]
        fn parts_make_the_whole(
            list in prop::collection::vec(any::<u64>(), 1..40), size in 1u64..50,
        ) {
            let step = Ids::new(list[0] >> 1, 3, list.len() as u64).unwrap();
            for whole in [Selected::list(&list).unwrap(), Selected::from(step)] {
                let ids = all(whole);
                prop_assert_eq!(ids.len() as u64, whole.rows());
                prop_assert_eq!(ids.iter().max(), Some(&whole.largest()));
                let mut parts = Vec::new();
                while let Some(part) = whole.part(parts.len() as u64, size) {
                    prop_assert!(part.rows() <= size);
                    parts.extend(all(part));
                }
                prop_assert_eq!(parts, ids);
                prop_assert_eq!(whole.part(0, 0), None);
            }
        }
    }
}
