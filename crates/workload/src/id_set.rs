//! The ids of a selection in ascending order, each once: what checks work on.

use crate::ids::Ids;
use crate::selected::{Kind, Selected};
use stablebench_protocol::{Error, Result};

/// At least one id.
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
    /// The ids, of which any may be selected more than once.
    pub fn of(selected: Selected<'_>) -> Self {
        match selected.kind() {
            Kind::Step(ids) => ids.into(),
            Kind::List(ids) => {
                let mut sorted = ids.to_vec();
                sorted.sort_unstable();
                sorted.dedup();
                Self(Form::Sorted(sorted))
            }
        }
    }

    /// The ids, none of which may be selected more than once.
    ///
    /// # Errors
    ///
    /// The smallest that is.
    pub fn once(selected: Selected<'_>) -> Result<Self> {
        match selected.kind() {
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

    /// The smallest of the ids that is not below `id`.
    pub fn at_or_after(&self, id: u64) -> Option<u64> {
        match &self.0 {
            Form::Step(ids) => ids.at_or_after(id),
            Form::Sorted(ids) => ids.get(ids.partition_point(|&one| one < id)).copied(),
        }
    }

    /// Whether `id` is one of the ids.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_id_that_is_there_twice_is_told() {
        let list = [9, 4, 7, 4, 9];
        let selected = Selected::list(&list).unwrap();
        assert_eq!(IdSet::once(selected), Err(Error::IdTwice { id: 4 }));
        assert_eq!(IdSet::of(selected).iter().collect::<Vec<_>>(), [4, 7, 9]);
        let once = IdSet::once(Selected::list(&list[..3]).unwrap()).unwrap();
        assert_eq!(once, IdSet::of(selected));
    }

    proptest! {
        #[test]
        fn a_set_is_a_set(list in prop::collection::vec(0u64..60, 1..30), id in 0u64..70) {
            let set = IdSet::of(Selected::list(&list).unwrap());
            let expected: BTreeSet<u64> = list.iter().copied().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), Vec::from_iter(expected.clone()));
            prop_assert_eq!(Some(set.first()), expected.first().copied());
            prop_assert_eq!(Some(set.last()), expected.last().copied());
            prop_assert_eq!(set.at_or_after(id), expected.range(id..).next().copied());
            prop_assert_eq!(set.contains(id), expected.contains(&id));
            let odd = expected.iter().copied().find(|id| id % 5 != 0);
            prop_assert_eq!(set.first_not_multiple(5), odd);
        }

        #[test]
        fn a_step_is_its_list(first in 0u64..50, step in 1u64..20, rows in 1u64..20, id in 0u64..99) {
            let ids = Ids::new(first, step, rows).unwrap();
            let list: Vec<u64> = ids.iter().collect();
            let (set, listed) = (IdSet::from(ids), IdSet::of(Selected::list(&list).unwrap()));
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), list);
            prop_assert_eq!(set.at_or_after(id), listed.at_or_after(id));
            prop_assert_eq!(set.first_not_multiple(5), listed.first_not_multiple(5));
            prop_assert_eq!((set.first(), set.last()), (listed.first(), listed.last()));
        }
    }
}
