//! The suite on canisters that need no wasm: their endpoints, and the methods that are called by hand,
//! with refused arguments, chosen places, and upgrades.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(missing_docs)]

#[path = "../../../../canisters/harness/tests/heap/mod.rs"]
mod heap;
mod memory;
mod models;

use heap::HeapRecords;
use memory::HeapMemory;
use stablebench_harness::{
    Canister, Host, MAX_MESSAGE_BYTES, MAX_MESSAGE_ROWS, SavedState, SuiteEntry,
};
use stablebench_protocol::{
    CrateVersion, Description, Engine, Error, Job, MAX_PAYLOAD_BYTES, Occupant, Result, Setting,
};
use stablebench_suite_users::canister::floor::{Floor, RawMemory};
use stablebench_suite_users::canister::{
    ByHand, ById, Done, Failed, KeyValue, PayloadBytes, RowEngines, StoredRow, VisitRow, Writes,
};
use stablebench_suite_users::work::{IdSet, Selected, UsersModel};
use stablebench_suite_users::{Operation, Selection, Users, UsersTask};
use stablebench_workload::{Amount, Model};
use std::collections::BTreeMap;

/// A canister with a map in place of `StableBTreeMap`, and the floor.
#[derive(Default)]
struct HeapCanister {
    map: HeapMap,
    floor: Floor<HeapMemory>,
    payload: PayloadBytes,
}

impl HeapCanister {
    /// The canister after an upgrade, which keeps stable memory only.
    fn upgraded(memory: HeapMemory) -> Self {
        Self { floor: Floor::new(memory), ..Self::default() }
    }
}

impl Canister for HeapCanister {
    const SUITES: &'static [SuiteEntry<Self>] = &[SuiteEntry::of::<Users>()];

    fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        stablebench_suite_users::canister::configure(self, settings)
    }

    fn describe(&mut self) -> Result<Description> {
        stablebench_suite_users::canister::describe(self)
    }

    fn occupant(&self) -> Occupant {
        self.floor.owner().map_or(Occupant::Manager, Occupant::Floor)
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self) -> Result<()> {
        self.floor.save(SavedState { payload_bytes: self.payload.0, ..SavedState::default() })
    }

    fn load(&mut self) {
        self.payload = PayloadBytes(self.floor.load().unwrap_or_default().payload_bytes);
    }
}

impl RowEngines for HeapCanister {
    const ENGINES: &'static [Engine] = &[Engine::BTREE, Engine::APPEND, Engine::ARRAY];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::BTREE => Ok(&mut self.map),
            Engine::APPEND | Engine::ARRAY => self.floor.engine(engine),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn payload(&mut self) -> &mut PayloadBytes {
        &mut self.payload
    }
}

/// A map on the heap with transactions. A unit of storage is a row. Every write of the id `fails_at` fails.
#[derive(Default)]
struct HeapMap {
    rows: BTreeMap<u64, String>,
    /// True if a transaction is open.
    open: bool,
    fails_at: Option<u64>,
    /// The number of committed transactions.
    committed: u64,
}

fn failure() -> Error {
    Error::Sqlite { message: "a failure of the test".to_owned() }
}

impl HeapMap {
    fn write(&mut self, rows: Selected<'_>, payload: Option<&str>) -> Result<()> {
        assert!(self.open, "rows are written in a transaction");
        rows.try_each(|id| {
            if self.fails_at == Some(id) {
                return Err(failure());
            }
            match payload {
                Some(payload) => self.rows.insert(id, payload.to_owned()),
                None => self.rows.remove(&id),
            };
            Ok(())
        })
    }

    fn amount<'a>(rows: impl Iterator<Item = &'a String>) -> Amount {
        rows.fold(Amount::default(), |amount, text| Amount {
            rows: amount.rows + 1,
            bytes: amount.bytes + text.len() as u64,
        })
    }
}

impl KeyValue for HeapMap {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        let _ = self.rows.range(position..).try_for_each(|(id, payload)| {
            visit(StoredRow { position: *id, id: *id, payload: payload.as_bytes() })
        });
        Ok(())
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.rows.last_key_value().map(|(id, _)| *id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.rows.len() as u64)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(Self::amount(self.rows.values()).bytes)
    }

    fn virtual_bytes(&self) -> u64 {
        0
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        let before = self.rows.clone();
        self.open = true;
        let outcome = work(self);
        self.open = false;
        match outcome {
            Ok(()) => {
                self.committed += 1;
                Ok(())
            }
            Err(because) => {
                assert_eq!(because, failure());
                self.rows = before;
                Err(Failed::undone(because))
            }
        }
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        let mut found = Amount::default();
        rows.each(|id| found += Self::amount(self.rows.get(&id).into_iter()));
        Ok(found)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let mut found = Amount::default();
        from.each(|id| {
            let rows = self.rows.range(id..).take(rows as usize);
            found += Self::amount(rows.map(|(_, text)| text));
        });
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        Ok(Self::amount(self.rows.values().take(limit as usize)))
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.rows.len() as u64)
    }

    fn reset(&mut self) -> Result<()> {
        self.rows.clear();
        Ok(())
    }
}

impl Writes for HeapMap {
    fn allocated_units(&mut self) -> Result<u64> {
        Ok(self.rows.len() as u64)
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.write(rows, Some(payload))
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.write(rows, Some(payload))
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.write(rows, Some(payload))
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        self.write(rows, None)
    }
}

/// A canister with an engine of keys and values.
#[derive(Default)]
struct RecordsCanister {
    rows: ById<HeapRecords>,
    payload: PayloadBytes,
}

impl Canister for RecordsCanister {
    const SUITES: &'static [SuiteEntry<Self>] = &[SuiteEntry::of::<Users>()];

    fn describe(&mut self) -> Result<Description> {
        stablebench_suite_users::canister::describe(self)
    }

    fn occupant(&self) -> Occupant {
        Occupant::Manager
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self) -> Result<()> {
        Ok(())
    }

    fn load(&mut self) {}
}

impl RowEngines for RecordsCanister {
    const ENGINES: &'static [Engine] = &[Engine::BTREE];

    fn engine(&mut self, _: Engine) -> Result<&mut dyn KeyValue> {
        Ok(&mut self.rows)
    }

    fn payload(&mut self) -> &mut PayloadBytes {
        &mut self.payload
    }
}

/// Two macros define the endpoints of every canister that offers the suite, so that the interface is
/// checked here.
mod endpoints {
    use super::HeapCanister;
    use candid_parser::utils::{CandidSource, service_equal};

    stablebench_harness::canister!(HeapCanister, include_bytes!("../../../../canisters/bench.did"));
    stablebench_suite_users::methods_by_hand!();

    candid::export_service!();

    #[test]
    fn the_candid_file_is_the_interface() {
        let exported = __export_service();
        let file = include_str!("../../../../canisters/bench.did");
        // Another suite has this method.
        let (before, sql) = file.split_once("  sql : (").unwrap();
        let file = format!("{before}{}", sql.split_once(";\n").unwrap().1);
        if let Err(error) = service_equal(CandidSource::Text(&exported), CandidSource::Text(&file))
        {
            panic!("{error}\nThe interface is:\n{exported}");
        }
    }
}

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
