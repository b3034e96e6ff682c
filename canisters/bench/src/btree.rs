//! `StableBTreeMap<u64, String>` in memory 0, and `StableBTreeMap<[u8; 16], Vec<u8>>` in memory 10.

use crate::memory::{Chunks, Virtual, WASM_PAGE_BYTES, memory, stored_bytes};
use ic_stable_structures::btreemap::Iter;
use ic_stable_structures::{BTreeMap, Memory};
use stablebench_harness::{Records, VisitRecord};
use stablebench_protocol::{Engine, Error, Result};
use stablebench_suite_users::canister::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes};
use stablebench_suite_users::work::{IdSet, Selected};
use stablebench_workload::Amount;
use std::hint::black_box;

const ROWS: u8 = 0;
const RECORDS: u8 = 10;

const KEY_BYTES: usize = 16;

type Map = BTreeMap<u64, String, Virtual>;
type Key = [u8; KEY_BYTES];
type RecordMap = BTreeMap<Key, Vec<u8>, Virtual>;

/// The rows of the suite users. Like a connection, the map is opened when it is needed.
pub struct Btree {
    memory: Virtual,
    map: Option<Map>,
    /// True if checks opened a map that was closed before the message.
    opened_for_checks: bool,
}

impl Default for Btree {
    fn default() -> Self {
        Self { memory: memory(ROWS), map: None, opened_for_checks: false }
    }
}

impl Btree {
    fn map(&mut self) -> &mut Map {
        let memory = &self.memory;
        self.map.get_or_insert_with(|| BTreeMap::init(memory.clone()))
    }

    /// The map for checks, which record whether it was closed before.
    fn check(&mut self) -> &mut Map {
        self.opened_for_checks |= self.map.is_none();
        self.map()
    }
}

impl KeyValue for Btree {
    fn prepare(&mut self) -> Result<()> {
        self.opened_for_checks = false;
        if self.memory.size() == 0 {
            // Opening creates it, like a table.
            self.map();
        }
        Ok(())
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.opened_for_checks) {
            self.map = None;
        }
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        for entry in self.check().range(position..) {
            let (id, payload) = (*entry.key(), entry.value());
            if visit(StoredRow { position: id, id, payload: payload.as_bytes() }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.check().last_key_value().map(|(id, _)| id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.check().len())
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(stored_bytes(&self.memory))
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        work(self).map_err(Failed::kept)
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        let map = self.map();
        let mut found = Amount::default();
        rows.each(|id| {
            if let Some(payload) = map.get(&id) {
                found += Amount { rows: 1, bytes: payload.len() as u64 };
                black_box(payload);
            }
        });
        Ok(found)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let map = self.map();
        let mut found = Amount::default();
        from.each(|id| found += copy_rows(map.range(id..), rows));
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        Ok(copy_rows(self.map().iter(), limit))
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.map().len())
    }

    fn reset(&mut self) -> Result<()> {
        self.map().clear_new();
        Ok(())
    }
}

impl Writes for Btree {
    fn allocated_units(&mut self) -> Result<u64> {
        Ok(Chunks::read(&self.memory).map_or(0, |chunks| chunks.number))
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let map = self.map();
        rows.each(|id| {
            map.insert(id, payload.to_owned());
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
        let map = self.map();
        rows.each(|id| {
            map.remove(&id);
        });
        Ok(())
    }
}

/// Copies at most `limit` rows.
fn copy_rows(entries: Iter<'_, u64, String, Virtual>, limit: u64) -> Amount {
    let mut read = Amount::default();
    for entry in entries.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        let (id, payload) = (*entry.key(), entry.value());
        read += Amount { rows: 1, bytes: payload.len() as u64 };
        black_box((id, payload));
    }
    read
}

/// Values under keys of 16 bytes, of the suite db-bench.
pub struct BtreeRecords {
    memory: Virtual,
    map: RecordMap,
}

impl Default for BtreeRecords {
    fn default() -> Self {
        let memory = memory(RECORDS);
        Self { map: RecordMap::init(memory.clone()), memory }
    }
}

fn key(bytes: &[u8]) -> Result<Key> {
    bytes.try_into().map_err(|_| Error::Unsupported {
        engine: Engine::BTREE,
        operation: format!("store keys of other than {KEY_BYTES} bytes"),
    })
}

impl Records for BtreeRecords {
    fn clear(&mut self) -> Result<()> {
        self.map.clear_new();
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.map.insert(self::key(key)?, value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.map.remove(&self::key(key)?);
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.map.get(&self::key(key)?);
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn scan(&mut self, from: &[u8], visit: &mut VisitRecord<'_>) -> Result<()> {
        for entry in self.map.range(key(from)?..) {
            if visit(entry.key(), &entry.value()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last_key(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.map.last_key_value().map(|(key, _)| key.to_vec()))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.map.len())
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(stored_bytes(&self.memory))
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }

    fn allocated_units(&mut self) -> Result<u64> {
        Ok(Chunks::read(&self.memory).map_or(0, |chunks| chunks.number))
    }
}
