//! `StableBTreeMap<u64, [u8; 4]>`.

use super::one_by_one;
use crate::allocator::Chunks;
use crate::manager::{Virtual, WASM_PAGE_BYTES};
use ic_stable_structures::{BTreeMap, Memory};
use stablebench_harness::Points;
use stablebench_harness::points::Item;
use stablebench_protocol::{Engine, Lookups, Result};
use stablebench_workload::cuckoo::model::add_item;
use stablebench_workload::{Amount, ContentDigest};

/// The engine, opened by the first work that needs it.
pub struct Btree {
    memory: Virtual,
    map: Option<BTreeMap<u64, [u8; 4], Virtual>>,
}

impl Btree {
    pub fn new(memory: Virtual) -> Self {
        Self { memory, map: None }
    }

    fn map(&mut self) -> &mut BTreeMap<u64, [u8; 4], Virtual> {
        let memory = &self.memory;
        self.map.get_or_insert_with(|| BTreeMap::init(memory.clone()))
    }
}

impl Points for Btree {
    fn prepare(&mut self) -> Result<()> {
        self.map();
        Ok(())
    }

    fn items(&mut self) -> Result<u64> {
        Ok(self.map().len())
    }

    fn add(&mut self, items: &[Item], _: bool) -> Result<()> {
        let map = self.map();
        for (key, value) in items {
            map.insert(*key, *value);
        }
        Ok(())
    }

    fn look_up(&mut self, keys: &[u64], lookups: Lookups) -> Result<Amount> {
        let map = self.map();
        one_by_one(Engine::Btree, keys, lookups, |key| map.get(&key))
    }

    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>> {
        Ok(self.map().get(&key))
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
            add_item(digest, *entry.key(), &entry.value());
        }
        Ok(None)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        let chunks = Chunks::read(&self.memory);
        Ok(chunks.map_or_else(|| self.virtual_bytes(), |chunks| chunks.bytes()))
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }
}
