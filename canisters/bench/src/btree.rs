//! `StableBTreeMap<u64, String>` in memory 0.

use crate::allocator::Chunks;
use crate::manager::{self, Virtual, WASM_PAGE_BYTES};
use ic_stable_structures::btreemap::Iter;
use ic_stable_structures::{BTreeMap, Memory};
use stablebench_harness::{Done, Failed, KeyValue, Writes};
use stablebench_protocol::Result;
use stablebench_workload::{Amount, ContentDigest, IdSet, Selected};
use std::hint::black_box;
use std::ops::ControlFlow;

const MEMORY: u8 = 0;

type Map = BTreeMap<u64, String, Virtual>;

/// The engine. Like a connection, the map is opened by the first work that needs it.
pub struct Btree {
    memory: Virtual,
    map: Option<Map>,
    /// Whether checks opened a map that the message found closed.
    opened_for_checks: bool,
}

impl Default for Btree {
    fn default() -> Self {
        Self { memory: manager::memory(MEMORY), map: None, opened_for_checks: false }
    }
}

impl Btree {
    fn map(&mut self) -> &mut Map {
        let memory = &self.memory;
        self.map.get_or_insert_with(|| BTreeMap::init(memory.clone()))
    }

    /// For checks: notes whether the map was closed before.
    fn check(&mut self) -> &mut Map {
        self.opened_for_checks |= self.map.is_none();
        self.map()
    }
}

impl KeyValue for Btree {
    fn prepare(&mut self) -> Result<()> {
        self.opened_for_checks = false;
        if self.memory.size() == 0 {
            // Opening creates it, as a table is created.
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

    fn walk(&mut self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        let _ = self.check().keys_range(from..).try_for_each(visit);
        Ok(())
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.check().last_key_value().map(|(id, _)| id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.check().len())
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        let chunks = Chunks::read(&self.memory);
        Ok(chunks.map_or_else(|| self.virtual_bytes(), |chunks| chunks.bytes()))
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

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let mut left = limit;
        for entry in self.map().range(position..) {
            if left == 0 {
                return Ok(Some(*entry.key()));
            }
            left -= 1;
            digest.add(*entry.key(), entry.value().as_bytes());
        }
        Ok(None)
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
