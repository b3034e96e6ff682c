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

/// Rows in the plainest way.
#[derive(Clone, Default)]
struct Plain(BTreeMap<u64, (Payload, u32)>);

impl Plain {
    fn digest(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (id, (payload, bytes)) in &self.0 {
            digest.add(*id, payload.text(*bytes).as_bytes());
        }
        digest.value()
    }

    fn apply(&mut self, operation: &Operation, bytes: u32) -> Result<Expected> {
        let ids = |rows: &Selection| {
            let mut ids = Vec::new();
            Selected::new(rows).map(|rows| rows.each(|id| ids.push(id))).map(|()| ids)
        };
        let twice = |ids: &[u64]| {
            let mut sorted = ids.to_vec();
            sorted.sort_unstable();
            let pair = sorted.windows(2).find(|pair| pair[0] == pair[1])?;
            Some(Error::IdTwice { id: pair[0] })
        };
        let there = |ids: &[u64], wanted| {
            let wrong = ids.iter().filter(|id| self.0.contains_key(id) != wanted);
            wrong.min().copied()
        };
        let read = |rows: Vec<(u64, (Payload, u32))>| {
            let mut digest = ContentDigest::default();
            let mut bytes = 0;
            for (id, (payload, length)) in &rows {
                digest.add(*id, payload.text(*length).as_bytes());
                bytes += u64::from(*length);
            }
            Ok(Expected { rows: rows.len() as u64, bytes, results: Some(digest.value()) })
        };
        let after = |id: u64, rows: u64| {
            self.0.range(id..).take(rows as usize).map(|(id, row)| (*id, *row)).collect::<Vec<_>>()
        };
        let (written, payload) = match operation {
            Operation::Insert(rows) => {
                let ids = ids(rows)?;
                twice(&ids).map_or(Ok(()), Err)?;
                if let Some(id) = there(&ids, false) {
                    return Err(Error::IdExists { id });
                }
                (ids, Some(Payload::New))
            }
            Operation::Overwrite(rows) => (ids(rows)?, Some(Payload::Updated)),
            Operation::Update(rows) => (ids(rows)?, Some(Payload::Updated)),
            Operation::Delete(rows) => {
                let ids = ids(rows)?;
                twice(&ids).map_or(Ok(()), Err)?;
                (ids, None)
            }
            Operation::Read(rows) => {
                let rows = ids(rows)?;
                return read(rows.iter().filter_map(|id| Some((*id, *self.0.get(id)?))).collect());
            }
            Operation::Range { rows: 0, .. } | Operation::Scan(0) => return Err(Error::NoRows),
            Operation::Range { from, rows } => {
                return read(ids(from)?.iter().flat_map(|id| after(*id, *rows)).collect());
            }
            Operation::Scan(rows) => return read(after(0, *rows)),
            Operation::Count => {
                let results = Some(Digest::default());
                return Ok(Expected { rows: self.0.len() as u64, bytes: 0, results });
            }
        };
        if let Operation::Update(_) | Operation::Delete(_) = operation
            && let Some(id) = there(&written, true)
        {
            return Err(Error::IdMissing { id });
        }
        for id in &written {
            match payload {
                Some(payload) => drop(self.0.insert(*id, (payload, bytes))),
                None => drop(self.0.remove(id)),
            }
        }
        let rows = written.len() as u64;
        let bytes = payload.map_or(0, |_| rows * u64::from(bytes));
        Ok(Expected { rows, bytes, results: None })
    }
}

fn step(first: u64, step: u64, rows: u64) -> Selection {
    Selection::Step { first, step, rows }
}

fn list(ids: &[u64]) -> Selection {
    Selection::List(ids.to_vec())
}

fn part(operation: Operation, from: u64, count: u64) -> JobPart {
    let task = UsersTask::Operation { operation, transaction: None };
    let users = Users { engine: Engine::BTREE, payload_bytes: 9, task };
    JobPart { job: Job::new(&users), seed: 1, from, count, each: false }
}

fn populated(rows: u64, bytes: u32) -> UsersModel {
    let mut model = UsersModel::default();
    model.apply(&Operation::Insert(step(0, STEP, rows)), bytes).unwrap();
    model
}

proptest! {
    /// Populated rows are implicit, or there are none.
    #[test]
    fn the_model_is_a_plain_map(seed: u64, first in 0..30_u64) {
        let (mut model, mut plain) = (UsersModel::default(), Plain::default());
        if first > 0 {
            for (from, rows) in [(0, first), (first * STEP, 7)] {
                let insert = Operation::Insert(step(from, STEP, rows));
                prop_assert_eq!(model.apply(&insert, 50), plain.apply(&insert, 50));
            }
            prop_assert!(model.changes.is_empty());
        }
        for (operation, bytes) in stream(seed).take(60) {
            let before = model.content();
            let outcome = model.apply(&operation, bytes);
            prop_assert_eq!(&outcome, &plain.apply(&operation, bytes), "{:?}", operation);
            prop_assert_eq!(model.content(), plain.digest(), "{:?}", operation);
            if outcome.is_err() || !operation.writes() {
                prop_assert_eq!(model.content(), before);
            }
            prop_assert_eq!(model.rows(), plain.0.len() as u64);
            prop_assert_eq!(model.last_id(), plain.0.last_key_value().map(|(id, _)| *id));
            let mut ids: Vec<u64> = plain.0.keys().copied().collect();
            prop_assert_eq!(model.ids().collect::<Vec<_>>(), ids.clone());
            ids.reverse();
            let descending: Vec<u64> = model.rows_up_to(u64::MAX).map(|(id, _)| id).collect();
            prop_assert_eq!(descending, ids);
        }
    }

    #[test]
    fn parts_are_the_whole(seed: u64, size in 1..9_u64) {
        let (mut whole, mut parts) = (populated(20, 9), populated(20, 9));
        for (operation, _) in stream(seed).take(30) {
            let count = operation.selection().map_or(1, Selection::rows);
            let expected = whole.fork().execute(&part(operation.clone(), 0, count));
            let mut sum = Expected::default();
            let mut fork = parts.clone();
            let done = (0..count).step_by(size as usize).try_for_each(|from| {
                let found = fork.execute(&part(operation.clone(), from, size.min(count - from)))?;
                sum.rows += found.rows;
                sum.bytes += found.bytes;
                Ok::<_, Error>(())
            });
            // Only the whole can find an id that is listed twice in different parts.
            if let (Ok(expected), Ok(())) = (expected, done) {
                prop_assert_eq!((sum.rows, sum.bytes), (expected.rows, expected.bytes));
                whole.execute(&part(operation, 0, count)).unwrap();
                prop_assert_eq!(fork.content(), whole.content());
                parts = fork;
            }
        }
    }
}

#[test]
fn what_is_written_is_read() {
    let mut model = populated(5, 3);
    let rows = list(&[40, 7, 40, 0]);
    let amount = |expected: Expected| (expected.rows, expected.bytes);
    assert_eq!(model.apply(&Operation::Update(rows.clone()), 9), Err(Error::IdMissing { id: 7 }));
    let twice = Err(Error::IdTwice { id: 40 });
    assert_eq!(model.apply(&Operation::Insert(rows.clone()), 9), twice);
    assert_eq!(model.apply(&Operation::Delete(rows.clone()), 9), twice);
    let read = Operation::Read(rows.clone());
    assert_eq!(amount(model.apply(&read, 0).unwrap()), (3, 9));
    model.apply(&Operation::Overwrite(rows), 100).unwrap();
    assert_eq!(amount(model.apply(&read, 0).unwrap()), (4, 400));
    // 7 and 10, 10 and 20, and nothing.
    let range = Operation::Range { from: list(&[5, 10, 41]), rows: 2 };
    assert_eq!(amount(model.apply(&range, 0).unwrap()), (4, 109));
    assert_eq!(amount(model.apply(&Operation::Scan(3), 0).unwrap()), (3, 203));
    assert_eq!(amount(model.apply(&Operation::Count, 0).unwrap()), (6, 0));
    assert_eq!(model.apply(&Operation::Scan(0), 0), Err(Error::NoRows));
}

#[test]
fn parts_outside_of_an_operation_are_refused() {
    let mut model = populated(5, 3);
    let insert = Operation::Insert(list(&[5, 15, 25]));
    assert_eq!(model.execute(&part(insert.clone(), 1, 0)), Err(Error::NoRows));
    for (from, count) in [(0, 4), (3, 1), (2, u64::MAX)] {
        let refused = model.execute(&part(insert.clone(), from, count));
        assert_eq!(refused, Err(Error::TooManyRows { limit: 3 }), "{from} {count}");
    }
    assert_eq!(model.execute(&part(Operation::Count, 0, 2)), Err(Error::TooManyRows { limit: 1 }));
    assert_eq!(model.execute(&part(insert, 2, 1)).unwrap().rows, 1);
    assert_eq!(model.last_id(), Some(40));
    assert!(model.get(25).is_some() && model.get(5).is_none());
}

#[test]
fn a_million_rows_are_cheap() {
    let mut model = populated(1_000_000, 100);
    let insert = Operation::Insert(step(5_000_005, STEP, 10_000));
    model.apply(&insert, 100).unwrap();
    assert_eq!(model.content().rows, 1_010_000);
    assert_eq!(model.changes.len(), 10_000);
    assert_eq!(model.fork().content(), model.content());
}

#[test]
fn neighbours_are_the_rows_around_those_that_are_written() {
    let mut churned = populated(5_000, 7);
    churned.apply(&Operation::Delete(step(30, 70, 500)), 7).unwrap();
    churned.apply(&Operation::Insert(step(15, 90, 500)), 7).unwrap();
    for model in [populated(5_000, 7), churned, populated(3, 7)] {
        let ids: Vec<u64> = model.ids().collect();
        let there = [ids[0], ids[ids.len() / 2], ids[ids.len() - 1]];
        for operation in [
            Operation::Insert(step(25_003, 10, 40)),
            Operation::Insert(step(ids[ids.len() - 1] + 10, 10, 40)),
            Operation::Insert(list(&[1, 49_001])),
            Operation::Update(list(&there)),
            Operation::Update(list(&there[1..2])),
            Operation::Overwrite(list(&there[2..])),
            Operation::Delete(list(&there[..1])),
            Operation::Delete(list(&there[1..2])),
        ] {
            let mut model = model.clone();
            let count = operation.selection().map_or(1, Selection::rows);
            let part = part(operation.clone(), 0, count);
            model.execute(&part).unwrap();
            let neighbours = model.neighbours(&part).unwrap();
            let read = |model: &UsersModel| {
                let mut found = Found::default();
                let rows = model.rows_from(neighbours.position);
                found.add_all(rows, neighbours.digest.rows);
                found.digest.value()
            };
            assert_eq!(read(&model), neighbours.digest, "{operation:?}");
            let least = (MARGIN as u64).min(model.rows());
            assert!(neighbours.digest.rows >= least, "{operation:?}: {neighbours:?}");
            // A missing row is noticed.
            let (first, _) = model.rows_from(neighbours.position).next().unwrap();
            model.remove(first);
            assert_ne!(read(&model), neighbours.digest, "{operation:?}");
        }
        let read = part(Operation::Scan(3), 0, 1);
        assert_eq!(model.neighbours(&read), None);
    }
}

/// The log: rows as populated, in the order of their ids, and new rows after them.
#[test]
fn neighbours_in_the_log_are_at_its_end() {
    for rows in [3, 2_500] {
        for insert in [list(&[5, 15]), step(25_000, 10, 9)] {
            let mut model = populated(rows, 9);
            let mut part = part(Operation::Insert(insert.clone()), 0, insert.rows());
            let mut users: Users = part.job.decode().unwrap();
            users.engine = Engine::APPEND;
            part.job = Job::new(&users);
            model.execute(&part).unwrap();
            let neighbours = model.neighbours(&part).unwrap();
            let skipped = rows.saturating_sub(MARGIN as u64);
            assert_eq!(neighbours.position, skipped * 21);
            assert_eq!(neighbours.digest.rows, rows - skipped + insert.rows());
            let mut whole = ContentDigest::default();
            Ids::new(0, STEP, rows).unwrap().iter().take(skipped as usize).for_each(|id| {
                whole.add(id, "a".repeat(9).as_bytes());
            });
            let mut others = ContentDigest::from(model.content());
            Ids::new(0, STEP, rows).unwrap().iter().take(skipped as usize).for_each(|id| {
                others.remove(id, "a".repeat(9).as_bytes());
            });
            assert_eq!(others.value(), neighbours.digest);
        }
    }
}

#[test]
fn a_seed_determines_the_stream() {
    let first: Vec<_> = stream(7).take(50).collect();
    assert_eq!(first, stream(7).take(50).collect::<Vec<_>>());
    assert_ne!(first, stream(8).take(50).collect::<Vec<_>>());
}

#[test]
fn rows_between_positions_are_those_with_ids_in_between() {
    let mut model = UsersModel::default();
    for (operation, bytes) in stream(3).take(200) {
        let _ = model.apply(&operation, bytes);
    }
    let tables = |engine| {
        let task = UsersTask::Operation { operation: Operation::Count, transaction: None };
        Job::new(&Users { engine, payload_bytes: 100, task })
    };
    let all: Vec<u64> = model.ids().collect();
    for (from, to) in [(0, None), (0, Some(250)), (250, None), (101, Some(402))] {
        let ids = all.iter().copied().filter(|id| *id >= from && to.is_none_or(|to| *id < to));
        let list = Operation::Read(Selection::List(ids.collect()));
        let expected = model.apply(&list, 100).unwrap().results;
        assert_eq!(model.between(&tables(Engine::BTREE), from, to), expected, "{from} {to:?}");
    }
    assert_eq!(model.between(&tables(Engine::BTREE), 0, None), Some(model.content()));
    let nothing = Some(Digest::default());
    assert_eq!(model.between(&tables(Engine::BTREE), 300, Some(300)), nothing);
    // The floors keep the number of rows on the heap.
    for floor in [Engine::APPEND, Engine::ARRAY] {
        assert_eq!(model.between(&tables(floor), 0, None), None);
    }
}
