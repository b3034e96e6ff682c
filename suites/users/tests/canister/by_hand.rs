//! Methods that are called by hand: refused arguments, chosen places, and upgrades.

use crate::memory::HeapMemory;
use crate::support::HeapCanister;
use stablebench_harness::{Host, MAX_MESSAGE_BYTES, MAX_MESSAGE_ROWS};
use stablebench_protocol::{Engine, Error, Job, MAX_PAYLOAD_BYTES, Occupant};
use stablebench_suite_users::canister::ByHand;
use stablebench_suite_users::canister::floor::{Floor, RawMemory};
use stablebench_suite_users::work::UsersModel;
use stablebench_suite_users::{Operation, Selection, Users, UsersTask};
use stablebench_workload::Model;

fn count(engine: Engine) -> Job {
    let task = UsersTask::Operation { operation: Operation::Count, transaction: None };
    Job::new(&Users { engine, payload_bytes: 100, task })
}

fn host() -> Host<HeapCanister> {
    Host::new(HeapCanister::default())
}

#[test]
fn arguments_out_of_range_are_refused() {
    let mut host = host();
    let btree = Engine::BTREE;
    assert_eq!(host.add(btree, 0, 10, 0), Err(Error::NoRows));
    assert_eq!(host.scan(btree, 0), Err(Error::NoRows));
    assert_eq!(host.insert_middle(btree, 0), Err(Error::NoRows));
    assert_eq!(host.insert_end(btree, 0), Err(Error::NoRows));
    assert_eq!(host.content(&count(btree), None, 0), Err(Error::NoRows));
    assert_eq!(host.add(btree, 0, 0, 2), Err(Error::NoStep));
    assert_eq!(
        host.add(btree, 0, 10, MAX_MESSAGE_ROWS + 1),
        Err(Error::TooManyRows { limit: MAX_MESSAGE_BYTES / 112 }),
    );
    assert_eq!(host.add(btree, u64::MAX, 1, 2), Err(Error::IdOverflow { largest: u64::MAX }),);
    assert_eq!(
        host.add(Engine::SQLITE, 0, 1, 1),
        Err(Error::EngineUnavailable { engine: Engine::SQLITE }),
    );
    assert_eq!(host.vacuum(), Err(Error::EngineUnavailable { engine: Engine::SQLITE }),);
    assert_eq!(host.insert_middle(btree, 1), Err(Error::TooManyRows { limit: 0 }));
    assert_eq!(host.describe().unwrap().engines[0].rows, 0);
}

#[test]
fn long_payloads_make_messages_short() {
    let mut host = host();
    assert_eq!(
        host.set_payload(MAX_PAYLOAD_BYTES + 1),
        Err(Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES }),
    );
    host.set_payload(MAX_PAYLOAD_BYTES).unwrap();
    let limit = host.describe().unwrap().max_rows;
    assert_eq!(limit, MAX_MESSAGE_BYTES / (100_000 + 12));
    assert_eq!(host.add(Engine::BTREE, 0, 10, limit + 1), Err(Error::TooManyRows { limit }),);
}

#[test]
fn rows_go_into_the_middle_and_to_the_end() {
    for engine in [Engine::BTREE, Engine::APPEND, Engine::ARRAY] {
        let mut host = host();
        let mut model = UsersModel::default();
        host.add(engine, 0, 10, 1000).unwrap();
        host.insert_middle(engine, 100).unwrap();
        host.insert_end(engine, 10).unwrap();
        for (first, rows) in [(0, 1000), (5005, 100), (10_000, 10)] {
            let insert = Operation::Insert(Selection::Step { first, step: 10, rows });
            model.apply(&insert, 100).unwrap();
        }
        let part = host.content(&count(engine), None, 10_000).unwrap();
        assert!(part.done);
        assert_eq!(part.digest, model.content(), "{engine}");
        assert_eq!(host.content(&count(engine), Some(part), 1), Err(Error::DigestDone));
        // The half has moved from row 500 to row 505.
        assert_eq!(host.insert_middle(engine, 1), Err(Error::IdExists { id: 5055 }));
    }
}

#[test]
fn the_floor_has_one_owner_until_it_is_reset() {
    let mut host = host();
    host.add(Engine::APPEND, 0, 10, 10).unwrap();
    let taken = Error::StableMemoryTaken { occupant: Occupant::Floor(Engine::APPEND) };
    assert_eq!(host.add(Engine::ARRAY, 0, 10, 10), Err(taken));
    assert_eq!(host.describe().unwrap().occupant, Occupant::Floor(Engine::APPEND));
    host.reset(Engine::APPEND).unwrap();
    host.add(Engine::ARRAY, 5, 10, 10).unwrap();
    // Old bytes of the log are not rows.
    assert_eq!(host.scan(Engine::ARRAY, 1000).unwrap().rows, 10);
    assert_eq!(host.read(Engine::ARRAY, 0, 5, 100).unwrap().rows, 10);
}

#[test]
fn the_array_takes_what_fits_its_slots() {
    let mut host = host();
    host.set_payload(10).unwrap();
    assert_eq!(host.add(Engine::ARRAY, 5, 3, 2), Err(Error::IdNotMultiple { id: 8, multiple: 5 }),);
    host.add(Engine::ARRAY, 0, 5, 10).unwrap();
    host.set_payload(11).unwrap();
    assert_eq!(host.insert_end(Engine::ARRAY, 1), Err(Error::PayloadTooLong { limit: 10 }));
    host.set_payload(0).unwrap();
    host.insert_end(Engine::ARRAY, 1).unwrap();
    assert_eq!(host.read(Engine::ARRAY, 50, 10, 1).unwrap().rows, 1);
    assert!(matches!(host.add(Engine::ARRAY, 5 << 60, 5, 1), Err(Error::IdOverflow { .. }),));
}

#[test]
fn no_room_is_an_error_that_changes_nothing() {
    let mut host = host();
    // Of the 1000 pages, the first is the header's; a slot of 100 bytes is 104 long.
    let slots = 999 * 65536 / 104;
    assert_eq!(
        host.add(Engine::ARRAY, slots * 5, 5, 1),
        Err(Error::OutOfStableMemory { pages: 1001 }),
    );
    assert_eq!(host.describe().unwrap().occupant, Occupant::Manager);
    host.add(Engine::ARRAY, (slots - 1) * 5, 5, 1).unwrap();
    host.reset(Engine::ARRAY).unwrap();
    host.set_payload(MAX_PAYLOAD_BYTES).unwrap();
    host.add(Engine::APPEND, 0, 1, 600).unwrap();
    assert!(matches!(host.add(Engine::APPEND, 600, 1, 100), Err(Error::OutOfStableMemory { .. }),));
    assert_eq!(host.scan(Engine::APPEND, 1000).unwrap().rows, 600);
}

#[test]
fn rows_and_settings_survive_an_upgrade() {
    for engine in [Engine::APPEND, Engine::ARRAY] {
        let memory = HeapMemory::default();
        let mut host = Host::new(HeapCanister::upgraded(memory.clone()));
        host.set_payload(33).unwrap();
        host.add(engine, 0, 10, 50).unwrap();
        let before = host.content(&count(engine), None, 100).unwrap();
        host.pre_upgrade().unwrap();

        let mut host = Host::new(HeapCanister::upgraded(memory));
        host.post_upgrade();
        let description = host.describe().unwrap();
        assert_eq!(description.payload_bytes, 33);
        assert_eq!(description.occupant, Occupant::Floor(engine));
        assert_eq!(host.content(&count(engine), None, 100).unwrap(), before);
        host.insert_end(engine, 1).unwrap();
        assert_eq!(host.content(&count(engine), None, 100).unwrap().digest.rows, 51);
    }
}

#[test]
fn settings_survive_where_no_engine_was_used() {
    let memory = HeapMemory::default();
    let mut host = Host::new(HeapCanister::upgraded(memory.clone()));
    host.set_payload(7).unwrap();
    host.pre_upgrade().unwrap();
    assert_eq!(memory.pages(), 1);
    let mut host = Host::new(HeapCanister::upgraded(memory.clone()));
    host.post_upgrade();
    assert_eq!(host.describe().unwrap().payload_bytes, 7);
    assert_eq!(Floor::new(memory).owner(), None);
}

#[test]
fn ids_of_calls_rise() {
    let mut host = host();
    for (id, admitted) in [
        (None, Ok(())),
        (Some(0), Err(Error::Repeated { last: 0 })),
        (Some(1), Ok(())),
        (Some(1), Err(Error::Repeated { last: 1 })),
        (Some(u64::MAX), Ok(())),
        (None, Ok(())),
        (Some(5), Err(Error::Repeated { last: u64::MAX })),
    ] {
        assert_eq!(host.admit(id), admitted, "{id:?}");
    }
}

#[test]
fn dense_rows_between_sparse_ids_are_stepped_over() {
    let mut host = Host::new(HeapCanister::default());
    host.add(Engine::BTREE, 0, 1, 100_000).unwrap();
    assert_eq!(host.update(Engine::BTREE, 7, 1000, 100).unwrap().rows, 100);
    assert_eq!(host.update(Engine::BTREE, 7, 1000, 101), Err(Error::IdMissing { id: 100_007 }),);
    host.delete(Engine::BTREE, 50_007, 1000, 1).unwrap();
    assert_eq!(host.update(Engine::BTREE, 7, 1000, 100), Err(Error::IdMissing { id: 50_007 }),);
    assert_eq!(host.add(Engine::BTREE, 50_007, 1000, 2), Err(Error::IdExists { id: 51_007 }));
    assert_eq!(host.add(Engine::BTREE, 50_007, 1000, 1).unwrap().rows, 1);
}
