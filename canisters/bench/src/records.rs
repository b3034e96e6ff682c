//! `StableBTreeMap<[u8; 16], Vec<u8>>` in memory 10: values under keys of 16 bytes.

use crate::allocator::Chunks;
use crate::manager::{self, Virtual, WASM_PAGE_BYTES};
use ic_stable_structures::{BTreeMap, Memory};
use stablebench_harness::{Records, VisitRecord};
use stablebench_protocol::{Engine, Error, Result};

const MEMORY: u8 = 10;

const KEY_BYTES: usize = 16;

type Key = [u8; KEY_BYTES];
type Map = BTreeMap<Key, Vec<u8>, Virtual>;

/// The engine.
pub struct BtreeRecords {
    memory: Virtual,
    map: Map,
}

impl Default for BtreeRecords {
    fn default() -> Self {
        let memory = manager::memory(MEMORY);
        Self { map: Map::init(memory.clone()), memory }
    }
}

fn key(bytes: &[u8]) -> Result<Key> {
    bytes.try_into().map_err(|_| Error::Unsupported {
        engine: Engine::Btree,
        operation: format!("hold keys of other than {KEY_BYTES} bytes"),
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
        let chunks = Chunks::read(&self.memory);
        Ok(chunks.map_or_else(|| self.virtual_bytes(), |chunks| chunks.bytes()))
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }

    fn allocated_units(&mut self) -> Result<u64> {
        Ok(Chunks::read(&self.memory).map_or(0, |chunks| chunks.number))
    }
}
