//! The cuckoo hash table.

use super::{count, one_by_one, out_of_memory};
use crate::manager::{Virtual, WASM_PAGE_BYTES};
use ic_stable_structures::Memory;
use stablebench_cuckoo::{Builder, Cuckoo, FirstHash, Plan};
use stablebench_harness::Points;
use stablebench_harness::points::Item;
use stablebench_protocol::{CuckooHash, Engine, Error, Lookups, Result};
use stablebench_workload::cuckoo::model::add_item;
use stablebench_workload::{Amount, ContentDigest};

/// RocksDB's benchmark has blocks of 5.
const BLOCK: u8 = 5;

/// The engine. Like a connection, the table is opened by the first work that needs it.
pub struct Table {
    memory: Virtual,
    plan: Plan,
    open: Open,
}

enum Open {
    No,
    Built(Builder<u64, [u8; 4], Virtual>),
    Read(Cuckoo<u64, [u8; 4], Virtual>),
}

impl Table {
    pub fn new(memory: Virtual) -> Self {
        Self { memory, plan: Plan::for_items(0), open: Open::No }
    }

    /// What a table is built with, if it is built now.
    pub fn plan(&mut self, buckets: u64, first_hash: CuckooHash) {
        let first_hash = match first_hash {
            CuckooHash::Murmur => FirstHash::Murmur,
            CuckooHash::Identity => FirstHash::Identity,
        };
        self.plan = Plan { buckets, block: BLOCK, first_hash, ..Plan::for_items(0) };
    }

    fn builder(&mut self) -> Result<&mut Builder<u64, [u8; 4], Virtual>> {
        if !matches!(self.open, Open::Built(_)) {
            let memory = self.memory.clone();
            let builder = match memory.size() {
                0 => Builder::new(memory, self.plan),
                _ => Builder::resume(memory),
            };
            self.open = Open::Built(builder.map_err(refused)?);
        }
        match &mut self.open {
            Open::Built(builder) => Ok(builder),
            Open::No | Open::Read(_) => Err(Error::EngineUnavailable { engine: Engine::Cuckoo }),
        }
    }

    fn table(&mut self) -> Result<&Cuckoo<u64, [u8; 4], Virtual>> {
        if !matches!(self.open, Open::Read(_)) {
            let table = Cuckoo::open(self.memory.clone());
            self.open = Open::Read(table.map_err(refused)?);
        }
        match &self.open {
            Open::Read(table) => Ok(table),
            Open::No | Open::Built(_) => Err(Error::EngineUnavailable { engine: Engine::Cuckoo }),
        }
    }
}

impl Points for Table {
    fn prepare(&mut self) -> Result<()> {
        self.builder().map(drop)
    }

    fn items(&mut self) -> Result<u64> {
        self.builder().map(|builder| builder.items())
    }

    fn add(&mut self, items: &[Item], last: bool) -> Result<()> {
        self.builder()?.extend(items.iter().copied()).map_err(refused)?;
        if last {
            self.open = match std::mem::replace(&mut self.open, Open::No) {
                Open::Built(builder) => Open::Read(builder.finish()),
                open => open,
            };
        }
        Ok(())
    }

    fn look_up(&mut self, keys: &[u64], lookups: Lookups) -> Result<Amount> {
        let table = self.table()?;
        let Lookups::Batch(size) = lookups else {
            return one_by_one(Engine::Cuckoo, keys, lookups, |key| table.get(&key));
        };
        let mut found = Amount::default();
        for keys in keys.chunks(size.max(1) as usize) {
            for value in table.get_many(keys) {
                count(&mut found, value);
            }
        }
        Ok(found)
    }

    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>> {
        self.table().map(|table| table.get(&key))
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        // A table that is being built can be read only once it is finished; what it holds
        // by then is looked at in a query, whose changes are dropped.
        if let Open::Built(_) | Open::No = self.open
            && let Ok(builder) = Builder::<u64, [u8; 4], _>::resume(self.memory.clone())
        {
            self.open = Open::Read(builder.finish());
        }
        let mut items = self.table()?.iter_from(position);
        for _ in 0..limit {
            let Some((key, value)) = items.next() else {
                return Ok(None);
            };
            add_item(digest, key, &value);
        }
        Ok(Some(items.position()))
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.table().map(Cuckoo::bytes)
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }
}

/// What the table says for itself.
fn refused(error: stablebench_cuckoo::Error) -> Error {
    match error {
        stablebench_cuckoo::Error::OutOfMemory { pages } => out_of_memory(pages),
        error => {
            Error::Unsupported { engine: Engine::Cuckoo, operation: format!("do that: {error}") }
        }
    }
}
