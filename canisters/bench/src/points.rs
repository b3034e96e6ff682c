//! The engines of the suite cuckoo.
//!
//! ```text
//! array:  0   8  items
//!         8   …  items, 12 bytes each: key, value
//! ```

use crate::memory::{Virtual, WASM_PAGE_BYTES, memory, stored_bytes};
use ic_stable_structures::{BTreeMap, Memory};
use stablebench_cuckoo::{Builder, FirstHash, Plan};
use stablebench_protocol::{Engine, Error, Result};
use stablebench_suite_cuckoo::canister::{Item, Points, require_single};
use stablebench_suite_cuckoo::work::{ITEM_BYTES, Items, add_item};
use stablebench_suite_cuckoo::{Cuckoo, CuckooHash, Lookups};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;

/// The blocks of RocksDB's benchmark.
const BLOCK: u8 = 5;

/// Bytes before the items of the array.
const HEADER_BYTES: u64 = 8;
/// An item, as the length of an array.
const ITEM: usize = ITEM_BYTES as usize;

type HashTable = stablebench_cuckoo::Cuckoo<u64, [u8; 4], Virtual>;

const TABLE: u8 = 30;
const BTREE: u8 = 31;
const ARRAY: u8 = 32;

/// The engines, each in its own memory.
pub struct Engines {
    table: CuckooPoints,
    btree: BtreePoints,
    array: ArrayPoints,
}

impl Default for Engines {
    fn default() -> Self {
        Self {
            table: CuckooPoints::new(memory(TABLE)),
            btree: BtreePoints::new(memory(BTREE)),
            array: ArrayPoints::new(memory(ARRAY)),
        }
    }
}

impl Engines {
    /// Returns the engine of a job.
    pub fn engine(&mut self, job: &Cuckoo, seed: u64) -> Result<&mut dyn Points> {
        match job.engine {
            Engine::CUCKOO => {
                self.table.plan(job.buckets, job.first_hash.unwrap_or(CuckooHash::Murmur));
                Ok(&mut self.table)
            }
            Engine::BTREE => Ok(&mut self.btree),
            Engine::ARRAY => {
                self.array.places = Some(Items::new(job, seed));
                Ok(&mut self.array)
            }
            engine => Err(Error::EngineUnavailable { engine }),
        }
    }
}

/// Looks keys up one by one, in engines without batches.
#[inline]
fn one_by_one(
    engine: Engine,
    keys: &[u64],
    lookups: Lookups,
    mut get: impl FnMut(u64) -> Option<[u8; 4]>,
) -> Result<Amount> {
    require_single(engine, lookups)?;
    let mut found = Amount::default();
    for key in keys {
        count(&mut found, get(*key));
    }
    Ok(found)
}

/// Adds a value to the size of what was found.
#[inline]
fn count(found: &mut Amount, value: Option<[u8; 4]>) {
    if let Some(value) = value {
        *found += Amount { rows: 1, bytes: 4 };
        black_box(value);
    }
}

/// The cuckoo hash table. Like a connection, it is opened when it is needed.
struct CuckooPoints {
    memory: Virtual,
    plan: Plan,
    open: Open,
}

enum Open {
    No,
    Built(Builder<u64, [u8; 4], Virtual>),
    Read(HashTable),
}

impl CuckooPoints {
    fn new(memory: Virtual) -> Self {
        Self { memory, plan: Plan::for_items(0), open: Open::No }
    }

    /// Sets the plan of a table that is built from now on.
    fn plan(&mut self, buckets: u64, first_hash: CuckooHash) {
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
            Open::No | Open::Read(_) => Err(Error::EngineUnavailable { engine: Engine::CUCKOO }),
        }
    }

    fn table(&mut self) -> Result<&HashTable> {
        if !matches!(self.open, Open::Read(_)) {
            let table = HashTable::open(self.memory.clone());
            self.open = Open::Read(table.map_err(refused)?);
        }
        match &self.open {
            Open::Read(table) => Ok(table),
            Open::No | Open::Built(_) => Err(Error::EngineUnavailable { engine: Engine::CUCKOO }),
        }
    }
}

impl Points for CuckooPoints {
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
            return one_by_one(Engine::CUCKOO, keys, lookups, |key| table.get(&key));
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
        // A table can be read only once it is finished. A query finishes one that is being built, and
        // drops that change.
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
        self.table().map(HashTable::bytes)
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }
}

/// The error of the table.
fn refused(error: stablebench_cuckoo::Error) -> Error {
    match error {
        stablebench_cuckoo::Error::OutOfMemory { pages } => Error::OutOfStableMemory { pages },
        error => {
            Error::Unsupported { engine: Engine::CUCKOO, operation: format!("do that: {error}") }
        }
    }
}

/// `StableBTreeMap<u64, [u8; 4]>`, opened when it is needed.
struct BtreePoints {
    memory: Virtual,
    map: Option<BTreeMap<u64, [u8; 4], Virtual>>,
}

impl BtreePoints {
    fn new(memory: Virtual) -> Self {
        Self { memory, map: None }
    }

    fn map(&mut self) -> &mut BTreeMap<u64, [u8; 4], Virtual> {
        let memory = &self.memory;
        self.map.get_or_insert_with(|| BTreeMap::init(memory.clone()))
    }
}

impl Points for BtreePoints {
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
        one_by_one(Engine::BTREE, keys, lookups, |key| map.get(&key))
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
        Ok(stored_bytes(&self.memory))
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }
}

/// The floor: items one after the other. A lookup computes the place of an item from its key. No
/// engine that finds a key in stable memory can do with less than this one read.
struct ArrayPoints {
    memory: Virtual,
    /// The places of keys.
    places: Option<Items>,
    items: Option<u64>,
}

impl ArrayPoints {
    fn new(memory: Virtual) -> Self {
        Self { memory, places: None, items: None }
    }

    fn length(&mut self) -> u64 {
        let memory = &self.memory;
        *self.items.get_or_insert_with(|| {
            let mut items = [0; HEADER_BYTES as usize];
            if memory.size() > 0 {
                memory.read(0, &mut items);
            }
            u64::from_le_bytes(items)
        })
    }

    fn read(&self, place: u64) -> Item {
        let mut item = [0; ITEM];
        self.memory.read(HEADER_BYTES + place * ITEM_BYTES, &mut item);
        let [k0, k1, k2, k3, k4, k5, k6, k7, value @ ..] = item;
        (u64::from_le_bytes([k0, k1, k2, k3, k4, k5, k6, k7]), value)
    }

    #[inline]
    fn find(&self, items: u64, places: Items, key: u64) -> Option<[u8; 4]> {
        let place = places.index(key);
        if place >= items {
            return None;
        }
        let (found, value) = self.read(place);
        (found == key).then_some(value)
    }
}

impl Points for ArrayPoints {
    fn items(&mut self) -> Result<u64> {
        Ok(self.length())
    }

    fn add(&mut self, items: &[Item], _: bool) -> Result<()> {
        let first = self.length();
        let all = first + items.len() as u64;
        let pages = (HEADER_BYTES + all * ITEM_BYTES).div_ceil(WASM_PAGE_BYTES);
        let existing = self.memory.size();
        if pages > existing && self.memory.grow(pages - existing) < 0 {
            return Err(Error::OutOfStableMemory { pages });
        }
        for (place, (key, value)) in (first..).zip(items) {
            let mut item = [0; ITEM];
            item[..8].copy_from_slice(&key.to_le_bytes());
            item[8..].copy_from_slice(value);
            self.memory.write(HEADER_BYTES + place * ITEM_BYTES, &item);
        }
        self.memory.write(0, &all.to_le_bytes());
        self.items = Some(all);
        Ok(())
    }

    fn look_up(&mut self, keys: &[u64], lookups: Lookups) -> Result<Amount> {
        let items = self.length();
        let Some(places) = self.places else {
            return Ok(Amount::default());
        };
        one_by_one(Engine::ARRAY, keys, lookups, |key| self.find(items, places, key))
    }

    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>> {
        let items = self.length();
        Ok(self.places.and_then(|places| self.find(items, places, key)))
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let items = self.length();
        let end = position.saturating_add(limit).min(items);
        for place in position..end {
            let (key, value) = self.read(place);
            add_item(digest, key, &value);
        }
        Ok((end < items).then_some(end))
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(HEADER_BYTES + self.length() * ITEM_BYTES)
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }
}
