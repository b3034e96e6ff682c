//! Canisters on the heap.

use stablebench_harness::floor::{Floor, RawMemory};
use stablebench_harness::{
    ById, ByKey, Canister, Done, Failed, KeyValue, Points, Records, State, StoredRow, SuiteEntry,
    VisitRecord, VisitRow, Writes,
};
use stablebench_protocol::{CrateVersion, Cuckoo, DbBench, Engine, Error, Occupant, Result, Users};
use stablebench_workload::{Amount, IdSet, Selected};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Stable memory of at most `limit` pages.
#[derive(Clone)]
pub struct HeapMemory {
    bytes: Rc<RefCell<Vec<u8>>>,
    limit: u64,
}

impl Default for HeapMemory {
    fn default() -> Self {
        Self { bytes: Rc::default(), limit: 1000 }
    }
}

impl RawMemory for HeapMemory {
    fn pages(&self) -> u64 {
        self.bytes.borrow().len() as u64 / 65536
    }

    fn grow(&mut self, pages: u64) -> bool {
        let pages = self.pages() + pages;
        let fits = pages <= self.limit;
        if fits {
            self.bytes.borrow_mut().resize(pages as usize * 65536, 0);
        }
        fits
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.bytes.borrow_mut()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.bytes.borrow()[offset as usize..][..bytes.len()]);
    }
}

/// A canister with a map in place of `StableBTreeMap`, and the floor.
#[derive(Default)]
pub struct HeapCanister {
    pub map: HeapMap,
    pub floor: Floor<HeapMemory>,
}

impl HeapCanister {
    /// The canister after an upgrade, which keeps stable memory only.
    pub fn upgraded(memory: HeapMemory) -> Self {
        Self { map: HeapMap::default(), floor: Floor::new(memory) }
    }
}

impl Canister for HeapCanister {
    const SUITES: &'static [SuiteEntry<Self>] =
        &[SuiteEntry::of::<Users>(), SuiteEntry::of::<DbBench>()];
    const ENGINES: &'static [Engine] = &[Engine::BTREE, Engine::APPEND, Engine::ARRAY];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::BTREE => Ok(&mut self.map),
            Engine::APPEND | Engine::ARRAY => self.floor.engine(engine),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn records(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        self.floor.records(job.engine)
    }

    fn occupant(&self) -> Occupant {
        self.floor.owner().map_or(Occupant::Manager, Occupant::Floor)
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self, payload_bytes: u32) -> Result<()> {
        self.floor.save(State { payload_bytes, ..State::default() })
    }

    fn load(&mut self) -> u32 {
        self.floor.load().unwrap_or_default().payload_bytes
    }
}

/// A map on the heap with transactions. A unit of storage is a row. Every write of the id `fails_at` fails.
#[derive(Default)]
pub struct HeapMap {
    rows: BTreeMap<u64, String>,
    /// True if a transaction is open.
    open: bool,
    pub fails_at: Option<u64>,
    /// The number of committed transactions.
    pub committed: u64,
}

pub fn failure() -> Error {
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

/// The minimum of a new engine of keys and values: a map on the heap. A unit of storage is a key.
#[derive(Default)]
pub struct HeapRecords {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    before: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Records for HeapRecords {
    fn clear(&mut self) -> Result<()> {
        self.values.clear();
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        assert!(self.before.is_none(), "one transaction at a time");
        self.before = Some(self.values.clone());
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        assert!(self.before.take().is_some(), "what is committed was begun");
        Ok(())
    }

    fn rollback(&mut self, _: &Error) -> bool {
        self.values = self.before.take().expect("what is rolled back was begun");
        true
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        assert!(self.before.is_some(), "values are put in a transaction");
        self.values.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        assert!(self.before.is_some(), "keys are removed in a transaction");
        self.values.remove(key);
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.values.get(key);
        value.into_iter().for_each(|value| visit(value));
        Ok(value.is_some())
    }

    fn scan(&mut self, from: &[u8], visit: &mut VisitRecord<'_>) -> Result<()> {
        let mut from = self.values.range(from.to_vec()..);
        let _ = from.try_for_each(|(key, value)| visit(key, value));
        Ok(())
    }

    fn last_key(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.values.last_key_value().map(|(key, _)| key.clone()))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.values.len() as u64)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(self.values.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum())
    }

    fn virtual_bytes(&self) -> u64 {
        0
    }

    fn allocated_units(&mut self) -> Result<u64> {
        self.rows()
    }
}

/// A canister with such engines: one for users and db-bench, and one for cuckoo.
pub struct RecordsCanister {
    rows: ById<HeapRecords>,
    items: ByKey<HeapRecords>,
}

impl Default for RecordsCanister {
    fn default() -> Self {
        let items = ByKey { engine: Engine::BTREE, records: HeapRecords::default() };
        Self { rows: ById::default(), items }
    }
}

impl Canister for RecordsCanister {
    const SUITES: &'static [SuiteEntry<Self>] =
        &[SuiteEntry::of::<Users>(), SuiteEntry::of::<DbBench>(), SuiteEntry::of::<Cuckoo>()];
    const ENGINES: &'static [Engine] = &[Engine::BTREE];

    fn engine(&mut self, _: Engine) -> Result<&mut dyn KeyValue> {
        Ok(&mut self.rows)
    }

    fn records(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        match job.engine {
            Engine::BTREE => Ok(&mut self.rows.0),
            engine => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn points(&mut self, _: &Cuckoo, _: u64) -> Result<&mut dyn Points> {
        Ok(&mut self.items)
    }

    fn occupant(&self) -> Occupant {
        Occupant::Manager
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self, _: u32) -> Result<()> {
        Ok(())
    }

    fn load(&mut self) -> u32 {
        0
    }
}
