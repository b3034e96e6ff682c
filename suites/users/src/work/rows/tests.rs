use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

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

#[test]
fn a_payload_has_the_length_asked_for() {
    for bytes in [0, 1, 100, MAX_PAYLOAD_BYTES] {
        assert_eq!(Payload::New.text(bytes), "a".repeat(bytes as usize));
        assert_eq!(Payload::Updated.text(bytes), "b".repeat(bytes as usize));
    }
}
