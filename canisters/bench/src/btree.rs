//! `StableBTreeMap<u64, String>` in memory 0.

use crate::manager::{self, Virtual};
use ic_stable_structures::{BTreeMap, Memory};
use stablebench_harness::KeyValue;
use stablebench_protocol::Result;
use stablebench_workload::{ContentDigest, Ids};
use std::hint::black_box;
use std::ops::ControlFlow;

const MEMORY: u8 = 0;
const WASM_PAGE_BYTES: u64 = 65536;

/// The engine.
pub struct Btree {
    map: BTreeMap<u64, String, Virtual>,
    memory: Virtual,
}

impl Default for Btree {
    fn default() -> Self {
        let memory = manager::memory(MEMORY);
        Self { map: BTreeMap::init(memory.clone()), memory }
    }
}

impl KeyValue for Btree {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn admit(&self, _: Ids, _: u32) -> Result<()> {
        Ok(())
    }

    fn walk(&mut self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        let _ = self.map.keys_range(from..).try_for_each(visit);
        Ok(())
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.map.last_key_value().map(|(id, _)| id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.map.len())
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(self.memory.size() * WASM_PAGE_BYTES)
    }

    fn insert(&mut self, ids: Ids, payload: &str) -> Result<()> {
        for id in ids.iter() {
            self.map.insert(id, payload.to_owned());
        }
        Ok(())
    }

    fn read(&mut self, ids: Ids) -> Result<u64> {
        let mut found = 0;
        for id in ids.iter() {
            if let Some(payload) = self.map.get(&id) {
                black_box(payload);
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<u64> {
        let mut rows = 0;
        for entry in self.map.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            black_box((*entry.key(), entry.value()));
            rows += 1;
        }
        Ok(rows)
    }

    fn update(&mut self, ids: Ids, payload: &str) -> Result<()> {
        self.insert(ids, payload)
    }

    fn delete(&mut self, ids: Ids) -> Result<()> {
        for id in ids.iter() {
            self.map.remove(&id);
        }
        Ok(())
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let mut left = limit;
        for entry in self.map.range(position..) {
            if left == 0 {
                return Ok(Some(*entry.key()));
            }
            left -= 1;
            digest.add(*entry.key(), entry.value().as_bytes());
        }
        Ok(None)
    }

    fn reset(&mut self) -> Result<()> {
        self.map.clear_new();
        Ok(())
    }
}
