//! A canister that is built with many options: the users workload on `StableBTreeMap`, on SQLite and
//! on the heap, and computations without rows.
//!
//! The engines in stable memory are the files of the canister `bench`, and use the same memories. An
//! upgrade keeps none of their rows: a build is installed, measured and dropped.

#[path = "../../bench/src/btree.rs"]
#[allow(dead_code, reason = "the suite db-bench is not part of this canister")]
mod btree;
#[path = "../../bench/src/memory.rs"]
#[allow(dead_code, reason = "the canister bench uses more of it")]
mod memory;
#[path = "../../bench/src/sqlite.rs"]
#[allow(dead_code, reason = "upgrades and other suites are not part of this canister")]
mod sqlite;
#[path = "../../bench/src/statements.rs"]
mod statements;

use btree::Btree;
use sqlite::Sqlite;
use stablebench_harness::{Canister, SavedState, SuiteEntry, crate_versions, is_managed};
use stablebench_protocol::{CrateVersion, Error, Occupant, SqliteDescription};
use stablebench_suite_builds::{Builds, HEAP};
use stablebench_suite_users::Users;
use stablebench_suite_users::canister::{
    Database, Done, Failed, KeyValue, PayloadBytes, RowEngines, StoredRow, VisitRow, Writes,
};
use stablebench_suite_users::work::{IdSet, Selected};
use stablebench_workload::Amount;
use std::collections::BTreeMap;
use std::hint::black_box;

#[cfg(feature = "talc")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

stablebench_harness::canister!(Bench, include_bytes!("../../bench.did"));
stablebench_suite_users::methods_by_hand!();
stablebench_suite_users::no_sql_method!();

struct Bench {
    btree: Option<Btree>,
    heap: HeapMap,
    sqlite: Sqlite,
    payload: PayloadBytes,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            btree: None,
            heap: HeapMap::default(),
            sqlite: sqlite::restore(&SavedState::default()),
            payload: PayloadBytes::default(),
        }
    }
}

impl Canister for Bench {
    const SUITES: &'static [SuiteEntry<Self>] =
        &[SuiteEntry::of::<Users>(), SuiteEntry::of::<Builds>()];

    fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        stablebench_suite_users::canister::configure(self, settings)
    }

    fn describe(&mut self) -> Result<Description> {
        stablebench_suite_users::canister::describe(self)
    }

    fn occupant(&self) -> Occupant {
        if is_managed() { Occupant::Manager } else { Occupant::Nobody }
    }

    fn sqlite_description(&self) -> Option<SqliteDescription> {
        Some(sqlite::describe())
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(env!("CRATE_VERSIONS"))
    }

    fn save(&mut self) -> Result<()> {
        self.sqlite.close();
        Ok(())
    }

    fn load(&mut self) {}
}

impl RowEngines for Bench {
    const ENGINES: &'static [Engine] = &[Engine::BTREE, Engine::SQLITE, HEAP];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::BTREE => Ok(self.btree.get_or_insert_default()),
            Engine::SQLITE => Ok(self.sqlite.users()),
            HEAP => Ok(&mut self.heap),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn database(&mut self) -> Result<&mut dyn Database> {
        Ok(&mut self.sqlite)
    }

    fn payload(&mut self) -> &mut PayloadBytes {
        &mut self.payload
    }
}

/// The rows of the suite users in a `std::collections::BTreeMap` on the heap.
#[derive(Default)]
struct HeapMap {
    map: BTreeMap<u64, String>,
}

impl KeyValue for HeapMap {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        for (id, payload) in self.map.range(position..) {
            let row = StoredRow { position: *id, id: *id, payload: payload.as_bytes() };
            if visit(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.map.last_key_value().map(|(id, _)| *id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.map.len() as u64)
    }

    /// Nothing: the rows are on the heap.
    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(0)
    }

    fn virtual_bytes(&self) -> u64 {
        0
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        work(self).map_err(Failed::kept)
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        let mut found = Amount::default();
        rows.each(|id| {
            if let Some(payload) = self.map.get(&id) {
                found += Amount { rows: 1, bytes: payload.len() as u64 };
                black_box(payload.clone());
            }
        });
        Ok(found)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let mut found = Amount::default();
        from.each(|id| found += copy_rows(self.map.range(id..), rows));
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        Ok(copy_rows(self.map.iter(), limit))
    }

    fn count(&mut self) -> Result<u64> {
        self.rows()
    }

    fn reset(&mut self) -> Result<()> {
        self.map.clear();
        Ok(())
    }
}

impl Writes for HeapMap {
    fn allocated_units(&mut self) -> Result<u64> {
        Ok(stablebench_harness::heap_pages())
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        rows.each(|id| {
            self.map.insert(id, payload.to_owned());
        });
        Ok(())
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.insert(rows, payload)
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.insert(rows, payload)
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        rows.each(|id| {
            self.map.remove(&id);
        });
        Ok(())
    }
}

/// Copies at most `limit` rows.
fn copy_rows<'a>(rows: impl Iterator<Item = (&'a u64, &'a String)>, limit: u64) -> Amount {
    let mut read = Amount::default();
    for (id, payload) in rows.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        read += Amount { rows: 1, bytes: payload.len() as u64 };
        black_box((*id, payload.clone()));
    }
    read
}
