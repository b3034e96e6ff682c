//! Engines against models, over seeded streams of operations and parts of jobs.

use crate::heap::HeapRecords;
use crate::memory::HeapMemory;
use crate::{HeapCanister, RecordsCanister, failure};
use stablebench_harness::{Host, MAX_EACH, MAX_MESSAGE_BYTES, MAX_MESSAGE_ROWS, Records};
use stablebench_protocol::{
    Digest, DigestPart, Engine, Error, Executed, Job, JobPart, MAX_PAYLOAD_BYTES, Occupant,
    OperationCost, Result,
};
use stablebench_suite_users::canister::floor::Floor;
use stablebench_suite_users::canister::{ByHand, RowEngines};
use stablebench_suite_users::work::{UsersModel, stream};
use stablebench_suite_users::{Operation, Selection, Users, UsersTask};
use stablebench_workload::digits::key;
use stablebench_workload::{Expected, Model, Rng};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

const ENGINE: Engine = Engine::BTREE;

fn list(ids: &[u64]) -> Selection {
    Selection::List(ids.to_vec())
}

fn step(rows: u64) -> Selection {
    Selection::Step { first: 0, step: 10, rows }
}

/// All of an operation, with payloads of 100 bytes, in one transaction.
fn users(engine: Engine, operation: Operation) -> (Users, u64) {
    let count = operation.selection().map_or(1, Selection::rows);
    let task = UsersTask::Operation { operation, transaction: None };
    (Users { engine, payload_bytes: 100, task }, count)
}

fn all((users, count): (Users, u64)) -> JobPart {
    JobPart { job: Job::new(&users), seed: 1, from: 0, count, each: false }
}

fn work(operation: Operation) -> JobPart {
    all(users(ENGINE, operation))
}

/// The same part in transactions of a size, and one by one.
fn in_transactions(part: JobPart, size: Option<u64>, each: bool) -> JobPart {
    let mut users: Users = part.job.decode().unwrap();
    if let UsersTask::Operation { transaction, .. } = &mut users.task {
        *transaction = size;
    }
    JobPart { job: Job::new(&users), each, ..part }
}

fn digest<C: RowEngines>(host: &mut Host<C>, job: &Job, limit: u64) -> Digest {
    let mut part: Option<DigestPart> = None;
    loop {
        let next = host.content(job, part, limit).unwrap();
        if next.done {
            return next.digest;
        }
        assert_eq!(next.digest.rows - part.map_or(0, |part| part.digest.rows), limit);
        part = Some(next);
    }
}

/// Follows a stream of operations, of which an engine gets those that the model accepts.
fn follow<C: RowEngines + Default>(engine: Engine, seed: u64) {
    let mut host = Host::new(C::default());
    let mut model = UsersModel::default();
    // Slots of the array are as long as the first payload: it begins with the longest.
    let first = Operation::Insert(list(&[5000]));
    let task = UsersTask::Operation { operation: first, transaction: None };
    let first = all((Users { engine, payload_bytes: 200, task }, 1));
    host.execute(&first).unwrap();
    model.execute(&first).unwrap();
    let (mut done, mut refused) = (0, 0);
    for (number, (operation, bytes)) in stream(seed).take(120).enumerate() {
        let sizes = [None, Some(1), Some(7), Some(1_000)];
        let (mut users, count) = users(engine, operation.clone());
        users.payload_bytes = bytes;
        let whole =
            in_transactions(all((users, count)), sizes[number % sizes.len()], number % 3 == 0);
        let mut next = model.clone();
        let Ok(mut expected) = next.execute(&whole) else {
            refused += 1;
            continue;
        };
        // Sometimes in two parts.
        let cut = if number % 5 == 0 { count / 2 } else { 0 };
        let parts = [(0, cut), (cut, count - cut)].into_iter().filter(|(_, count)| *count > 0);
        let mut found = Expected::default();
        let outcome = parts.clone().try_for_each(|(from, count)| {
            let executed = host.execute(&JobPart { from, count, ..whole.clone() })?;
            assert_eq!(executed.each.len() as u64, if whole.each { count } else { 0 });
            found.rows += executed.measurement.rows;
            found.bytes += executed.measurement.bytes;
            found.results = executed.results;
            Ok(())
        });
        match outcome {
            Err(Error::Unsupported { .. }) => {
                assert_eq!(engine, Engine::APPEND);
                continue;
            }
            outcome => outcome.unwrap(),
        }
        if parts.count() > 1 {
            // Each part has results of its own.
            (found.results, expected.results) = (None, None);
        }
        if engine == Engine::APPEND && matches!(operation, Operation::Scan(_)) {
            // The first rows of the log are others than the first ids.
            (found.bytes, expected.bytes) = (0, 0);
            (found.results, expected.results) = (None, None);
        }
        assert_eq!(found, expected, "{operation:?}");
        model = next;
        done += 1;
        assert_eq!(digest(&mut host, &whole.job, 7), model.content(), "{operation:?}");
    }
    assert!(done > 10 && refused > 10, "{done} done, {refused} refused");
    assert_eq!(host.scan(engine, 10_000).unwrap().rows, model.rows());
}

#[test]
fn a_map_follows_the_model() {
    (0..50).for_each(|seed| follow::<HeapCanister>(Engine::BTREE, seed));
}

/// An engine that implements `Records` alone is an engine of the users suite.
#[test]
fn any_engine_of_keys_and_values_follows_the_model() {
    (0..50).for_each(|seed| follow::<RecordsCanister>(Engine::BTREE, seed));
}

#[test]
fn the_array_follows_the_model() {
    (0..50).for_each(|seed| follow::<HeapCanister>(Engine::ARRAY, seed));
}

#[test]
fn the_log_follows_the_model() {
    (0..50).for_each(|seed| follow::<HeapCanister>(Engine::APPEND, seed));
}

/// Rows 0, 10, … 990.
fn filled() -> Host<HeapCanister> {
    let mut host = Host::new(HeapCanister::default());
    host.add(ENGINE, 0, 10, 100).unwrap();
    host
}

#[track_caller]
fn refused(host: &mut Host<HeapCanister>, part: &JobPart, error: Error) {
    let before = host.describe().unwrap();
    assert_eq!(host.stage(part), Err(error.clone()));
    assert_eq!(host.execute(part), Err(error));
    assert_eq!(host.describe().unwrap(), before);
}

#[test]
fn invalid_parts_are_refused() {
    let mut host = filled();
    for operation in [
        Operation::Insert,
        Operation::Overwrite,
        Operation::Update,
        Operation::Delete,
        Operation::Read,
        |from| Operation::Range { from, rows: 1 },
    ] {
        refused(&mut host, &work(operation(list(&[]))), Error::NoRows);
        let part = work(operation(list(&[1, 2, 3])));
        for (from, count) in [(0, 4), (1, 3), (3, 1)] {
            let outside = JobPart { from, count, ..part.clone() };
            refused(&mut host, &outside, Error::TooManyRows { limit: 3 });
        }
        let overflowing = JobPart { from: 1, count: u64::MAX, ..part };
        refused(&mut host, &overflowing, Error::IdOverflow { largest: u64::MAX });
    }
    for operation in [Operation::Scan(9), Operation::Count] {
        for (from, count) in [(0, 2), (1, 1)] {
            let outside = JobPart { from, count, ..work(operation.clone()) };
            refused(&mut host, &outside, Error::TooManyRows { limit: 1 });
        }
        let none = in_transactions(work(operation), Some(0), false);
        refused(&mut host, &none, Error::EmptyTransaction);
    }
    let mut long = users(ENGINE, Operation::Count);
    long.0.payload_bytes = MAX_PAYLOAD_BYTES + 1;
    refused(&mut host, &all(long), Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES });
}

#[test]
fn jobs_of_other_suites_are_refused() {
    let mut host = filled();
    let suite = "rocksdb".to_owned();
    let job = Job { suite: suite.clone(), work: Vec::new() };
    let part = JobPart { job: job.clone(), ..work(Operation::Count) };
    refused(&mut host, &part, Error::SuiteUnavailable { suite: suite.clone() });
    assert_eq!(host.inspect(&job), Err(Error::SuiteUnavailable { suite: suite.clone() }));
    assert_eq!(host.content(&job, None, 1), Err(Error::SuiteUnavailable { suite }));
    let job = Job { suite: "users".to_owned(), work: b"DIDL".to_vec() };
    let part = JobPart { job, ..part };
    assert!(
        matches!(host.execute(&part), Err(Error::InvalidJob { suite, .. }) if suite == "users")
    );
}

#[test]
fn a_message_has_a_maximum_number_of_rows() {
    let mut host = filled();
    let limit = MAX_MESSAGE_BYTES / 112;
    let range = |starts, rows| work(Operation::Range { from: step(starts), rows });
    for many in [
        work(Operation::Read(step(limit + 1))),
        work(Operation::Scan(limit + 1)),
        range(1, limit + 1),
        range(2, limit / 2 + 1),
        range(2, u64::MAX),
    ] {
        refused(&mut host, &many, Error::TooManyRows { limit });
    }
    for none in [range(1, 0), work(Operation::Scan(0)), work(Operation::Read(step(0)))] {
        refused(&mut host, &none, Error::NoRows);
    }
    let found = host.execute(&range(2, limit / 2)).unwrap().measurement;
    assert_eq!((found.rows, found.bytes), (199, 19_900));
    host.set_payload(0).unwrap();
    assert_eq!(host.describe().unwrap().max_rows, MAX_MESSAGE_ROWS);
}

#[test]
fn a_reply_has_the_costs_of_a_maximum_number_of_operations() {
    let mut host = Host::new(HeapCanister::default());
    let insert = |rows| JobPart { each: true, ..work(Operation::Insert(step(rows))) };
    refused(&mut host, &insert(MAX_EACH + 1), Error::TooManyEach { limit: MAX_EACH });
    let executed = host.execute(&insert(MAX_EACH)).unwrap();
    assert_eq!(executed.each.len() as u64, MAX_EACH);
    let reply = candid::encode_one(Result::<Executed>::Ok(executed)).unwrap();
    assert!(reply.len() < 2 << 20, "{} bytes", reply.len());
}

#[test]
fn a_query_does_not_write() {
    let mut host = filled();
    let (existing, free) = (list(&[20, 10]), list(&[25, 5]));
    for write in [
        Operation::Insert(free.clone()),
        Operation::Overwrite(free),
        Operation::Update(existing.clone()),
        Operation::Delete(existing.clone()),
    ] {
        host.stage(&work(write)).unwrap();
        assert_eq!(host.run_query(), Err(Error::WritesInQuery));
        host.run().unwrap();
    }
    for read in [
        Operation::Read(existing.clone()),
        Operation::Range { from: existing, rows: 3 },
        Operation::Scan(7),
        Operation::Count,
    ] {
        let read = work(read);
        host.stage(&read).unwrap();
        let found = host.run_query().unwrap().measurement;
        assert_eq!(found, host.execute(&read).unwrap().measurement);
        assert_eq!(host.run_query().unwrap().measurement.rows, 0, "a staged part runs once");
    }
}

#[test]
fn rows_are_changed_in_transactions() {
    for (transaction, committed) in
        [(None, 1), (Some(1), 30), (Some(7), 5), (Some(30), 1), (Some(u64::MAX), 1)]
    {
        for each in [false, true] {
            let mut host = Host::new(HeapCanister::default());
            let insert = in_transactions(work(Operation::Insert(step(30))), transaction, each);
            let executed = host.execute(&insert).unwrap();
            assert_eq!((executed.measurement.rows, executed.measurement.bytes), (30, 3_000));
            let cost = OperationCost { instructions: 0, allocated: 1 };
            assert_eq!(executed.each, vec![cost; if each { 30 } else { 0 }]);
            let delete =
                in_transactions(work(Operation::Delete(list(&[20, 0]))), transaction, each);
            let executed = host.execute(&delete).unwrap();
            assert_eq!((executed.measurement.rows, executed.measurement.bytes), (2, 0));
            assert!(executed.each.iter().all(|cost| cost.allocated == -1));
            let map = &host.into_canister().map;
            assert_eq!(map.committed, committed + if transaction == Some(1) { 2 } else { 1 });
        }
    }
}

/// A host whose map fails at the id 205, and an insert whose 21st row has it.
fn failing(transaction: Option<u64>, each: bool) -> (Host<HeapCanister>, JobPart) {
    let mut canister = HeapCanister::default();
    canister.map.fails_at = Some(205);
    let mut host = Host::new(canister);
    host.add(ENGINE, 0, 10, 100).unwrap();
    let insert = Operation::Insert(Selection::Step { first: 5, step: 10, rows: 30 });
    (host, in_transactions(work(insert), transaction, each))
}

#[test]
fn a_transaction_that_fails_leaves_nothing() {
    for each in [false, true] {
        for transaction in [None, Some(21), Some(1_000)] {
            let (mut host, insert) = failing(transaction, each);
            let before = host.describe().unwrap();
            assert_eq!(host.execute(&insert), Err(failure()));
            assert_eq!(host.describe().unwrap(), before);
            // And the next one succeeds.
            host.add(ENGINE, 1, 10, 10).unwrap();
        }
        for transaction in [Some(1), Some(7), Some(20)] {
            let (mut host, insert) = failing(transaction, each);
            // Earlier transactions are committed: the message must trap.
            let outcome = catch_unwind(AssertUnwindSafe(|| host.execute(&insert)));
            let message = outcome.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(*message, failure().to_string());
        }
    }
}

#[test]
fn without_transactions_an_operation_that_succeeded_is_undone_by_a_trap() {
    // The memory of the test ends before the second slot; the first one fits. A slot has 104 bytes,
    // and the first page is the header's.
    let pages = 1 + u64::div_ceil(1_000_001 * 104, 65_536);
    let insert = all(users(Engine::ARRAY, Operation::Insert(list(&[0, 5 * 1_000_000]))));
    for trapping in [
        in_transactions(insert.clone(), None, true),
        in_transactions(insert.clone(), Some(1), false),
    ] {
        let mut host = Host::new(HeapCanister::default());
        let before = host.describe().unwrap();
        assert_eq!(host.execute(&insert), Err(Error::OutOfStableMemory { pages }));
        assert_eq!(host.describe().unwrap(), before);
        let outcome = catch_unwind(AssertUnwindSafe(|| host.execute(&trapping)));
        assert!(outcome.is_err(), "{outcome:?}");
    }
}

#[test]
fn a_connection_is_a_database_s() {
    let mut host = filled();
    for task in [UsersTask::Close, UsersTask::Vacuum] {
        for engine in [Engine::BTREE, Engine::SQLITE] {
            let job = Users { engine, payload_bytes: 100, task: task.clone() };
            let refused = host.execute(&all((job, 1))).unwrap_err();
            match engine {
                Engine::SQLITE => assert_eq!(refused, Error::EngineUnavailable { engine }),
                _ => assert!(matches!(refused, Error::Unsupported { .. }), "{refused}"),
            }
        }
    }
}

#[test]
fn an_inspection_describes_the_engine() {
    let mut host = filled();
    let inspected = host.inspect(&work(Operation::Count).job).unwrap();
    assert_eq!(inspected.stored_bytes, host.describe().unwrap().engines[0].stored_bytes);
    assert_eq!((inspected.sqlite, inspected.objects), (None, Vec::new()));
}

/// Keys and values.
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The longest value, which comes first: slots of the array hold what the first one does.
const LONGEST: u64 = 50;

fn read_all(engine: &mut dyn Records, from: &[u8], limit: usize) -> Map {
    let mut rows = Map::new();
    let mut last = None;
    engine
        .scan(from, &mut |key, value| {
            assert!(last.as_deref() < Some(key), "keys ascend");
            last = Some(key.to_vec());
            rows.insert(key.to_vec(), value.to_vec());
            if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
    rows
}

fn check(engine: &mut dyn Records, seed: u64) {
    let (mut rng, mut map) = (Rng::new(seed), Map::new());
    engine.prepare().unwrap();
    let mut first = Some(LONGEST);
    for step in 0..300u64 {
        let key = key(rng.below(40)).to_vec();
        match rng.below(20) {
            _ if first.is_some() => {
                let value = vec![7; first.take().unwrap() as usize];
                engine.begin().unwrap();
                engine.put(&key, &value).unwrap();
                engine.commit().unwrap();
                map.insert(key, value);
            }
            0 => {
                engine.clear().unwrap();
                map.clear();
                first = Some(LONGEST);
            }
            1..12 => {
                engine.begin().unwrap();
                for nth in 0..rng.below(4) {
                    let key = stablebench_workload::digits::key(rng.below(40));
                    let value = vec![step as u8 ^ nth as u8; rng.below(LONGEST + 1) as usize];
                    engine.put(&key, &value).unwrap();
                    map.insert(key.to_vec(), value);
                }
                engine.commit().unwrap();
            }
            12..14 => {
                engine.begin().unwrap();
                engine.delete(&key).unwrap();
                engine.commit().unwrap();
                map.remove(&key);
            }
            14..17 => {
                let mut found = None;
                let there = engine.get(&key, &mut |value| found = Some(value.to_vec())).unwrap();
                assert_eq!((there, &found), (map.contains_key(&key), &map.get(&key).cloned()));
            }
            _ => {
                let limit = 1 + rng.below(10) as usize;
                let expected = map.range(key.clone()..).take(limit);
                let expected: Map = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
                assert_eq!(read_all(engine, &key, limit), expected);
            }
        }
        assert_eq!(engine.rows().unwrap(), map.len() as u64);
        assert_eq!(engine.last_key().unwrap(), map.last_key_value().map(|(key, _)| key.clone()));
    }
    assert_eq!(read_all(engine, &key(0), usize::MAX), map);
}

#[test]
fn a_map_on_the_heap_holds_what_was_put() {
    (0..30).for_each(|seed| check(&mut HeapRecords::default(), seed));
}

#[test]
fn the_array_of_slots_holds_what_was_put() {
    for seed in 0..30 {
        let mut floor = Floor::new(HeapMemory::default());
        check(floor.records(Engine::ARRAY).unwrap(), seed);
    }
}

#[test]
fn the_array_has_keys_of_digits_and_slots_of_one_length() {
    let mut floor = Floor::new(HeapMemory::default());
    for engine in [Engine::BTREE, Engine::SQLITE, Engine::APPEND] {
        let refused = floor.records(engine).err();
        assert_eq!(refused, Some(Error::EngineUnavailable { engine }));
    }
    let array = floor.records(Engine::ARRAY).unwrap();
    for key in [&b"1"[..], b"000000000000000x"] {
        assert!(matches!(array.put(key, b""), Err(Error::Unsupported { .. })));
    }
    assert!(matches!(array.put(&key(9_999_999_999_999_999), b""), Err(Error::IdOverflow { .. })));
    assert!(matches!(array.put(&key(10_000_000), &[0; 100]), Err(Error::OutOfStableMemory { .. })));
    array.put(&key(5), b"longest").unwrap();
    assert_eq!(array.put(&key(5), b"too long"), Err(Error::PayloadTooLong { limit: 7 }));
    // Six slots of a length, a key and a value.
    assert_eq!(array.stored_bytes(), Ok(6 * (4 + 16 + 7)));
    assert_eq!(floor.owner(), Some(Engine::ARRAY));
    floor.records(Engine::ARRAY).unwrap().clear().unwrap();
    assert_eq!(floor.owner(), None);
    // The log of rows and the array do not share the memory.
    let mut floor = Floor::new(HeapMemory::default());
    let rows = stablebench_suite_users::work::Ids::new(0, 10, 1).unwrap();
    let log = floor.engine(Engine::APPEND).unwrap();
    log.transaction(&mut |log| log.insert(rows.into(), "a")).unwrap();
    let refused = floor.records(Engine::ARRAY).err();
    let occupant = Occupant::Floor(Engine::APPEND);
    assert_eq!(refused, Some(Error::StableMemoryTaken { occupant }));
}

#[test]
fn keys_and_values_survive_an_upgrade() {
    let memory = HeapMemory::default();
    let mut floor = Floor::new(memory.clone());
    floor.records(Engine::ARRAY).unwrap().put(&key(3), b"three").unwrap();
    floor.save(stablebench_harness::SavedState::default()).unwrap();
    let mut floor = Floor::new(memory);
    floor.load().unwrap();
    let array = floor.records(Engine::ARRAY).unwrap();
    assert_eq!(read_all(array, &key(0), 9), Map::from([(key(3).to_vec(), b"three".to_vec())]));
}
