//! Canisters on the heap.

use crate::heap::HeapRecords;
use crate::memory::HeapMemory;
use stablebench_harness::{Canister, State, SuiteEntry};
use stablebench_protocol::{CrateVersion, Description, Engine, Error, Occupant, Result, Setting};
use stablebench_suite_users::Users;
use stablebench_suite_users::canister::floor::Floor;
use stablebench_suite_users::canister::{
    ById, Done, Failed, KeyValue, PayloadBytes, RowEngines, StoredRow, VisitRow, Writes,
};
use stablebench_suite_users::work::{IdSet, Selected};
use stablebench_workload::Amount;
use std::collections::BTreeMap;

/// A canister with a map in place of `StableBTreeMap`, and the floor.
#[derive(Default)]
pub struct HeapCanister {
    pub map: HeapMap,
    pub floor: Floor<HeapMemory>,
    payload: PayloadBytes,
}

impl HeapCanister {
    /// The canister after an upgrade, which keeps stable memory only.
    pub fn upgraded(memory: HeapMemory) -> Self {
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
        self.floor.save(State { payload_bytes: self.payload.0, ..State::default() })
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

/// A canister with an engine of keys and values.
#[derive(Default)]
pub struct RecordsCanister {
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
