//! A canister with one map from numbers to numbers: on the heap, or in stable memory.
//!
//! ```text
//!   stable memory   page 0    the state: the map in use, and the entries of one on the heap
//!                   page 1 …  a StableBTreeMap or a table; a map on the heap has none, and its
//!                             entries may continue here
//! ```

use std::collections::BTreeMap;

use candid::{decode_args, encode_args};
use ic_stable_structures::{DefaultMemoryImpl, Memory, RestrictedMemory, StableBTreeMap};
use rustc_hash::FxHashMap;
use stablebench_harness::{Canister, SuiteEntry, crate_versions, heap_pages, trap};
use stablebench_protocol::{CrateVersion, Engine, Error, Occupant};
use stablebench_suite_collections::Collections;
use stablebench_suite_collections::canister::{HasMap, Map};
use stablebench_workload::ContentDigest;

stablebench_harness::canister!(Bench, include_bytes!("../../harness/harness.did"));

/// The canister: the map in use, which the first job decides.
#[derive(Default)]
struct Bench {
    collection: Option<Collection>,
}

impl HasMap for Bench {
    type Map = Collection;

    fn map(&mut self, job: &Collections) -> Result<&mut Collection> {
        let unavailable = Error::EngineUnavailable { engine: job.engine };
        if self.collection.is_none() {
            self.collection = Some(Collection::new(job.engine, job.entries)?);
        }
        match &mut self.collection {
            Some(of) if of.engine() == job.engine => Ok(of),
            _ => Err(unavailable),
        }
    }
}

impl Canister for Bench {
    const SUITES: &'static [SuiteEntry<Self>] = &[SuiteEntry::of::<Collections>()];

    fn occupant(&self) -> Occupant {
        match &self.collection {
            Some(of) if of.is_stable() => Occupant::Floor(of.engine()),
            _ => Occupant::Nobody,
        }
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(env!("CRATE_VERSIONS"))
    }

    fn save(&mut self) -> Result<()> {
        match &self.collection {
            Some(collection) => collection.save(),
            None => Ok(()),
        }
    }

    fn load(&mut self) {
        if DefaultMemoryImpl::default().size() > 0 {
            self.collection = Some(Collection::load());
        }
    }
}

/// Maps by their names in jobs.
const HASH_MAP: Engine = Engine::named("hash_map");
const BTREE_MAP: Engine = Engine::named("btree_map");
const STABLE_BTREE_MAP: Engine = Engine::named("stable_btree_map");
const TABLE: Engine = Engine::named("table");

const PAGE: u64 = 65_536;
/// The most pages of stable memory: 500 GiB.
const MAX_PAGES: u64 = 500 << 14;

type Stable = RestrictedMemory<DefaultMemoryImpl>;

/// The map in use.
enum Collection {
    HashMap(FxHashMap<u64, u64>),
    BTreeMap(BTreeMap<u64, u64>),
    StableBTreeMap(StableBTreeMap<u64, u64, Stable>),
    Table(StableTable<Stable>),
}

/// The memory from page 1 on.
fn stable() -> Stable {
    RestrictedMemory::new(DefaultMemoryImpl::default(), 1..MAX_PAGES)
}

/// Writes to page 0 and the ones after it, which may not exist yet.
fn write(offset: u64, bytes: &[u8]) -> Result<()> {
    let memory = DefaultMemoryImpl::default();
    let pages = (offset + bytes.len() as u64).div_ceil(PAGE);
    let missing = pages.saturating_sub(memory.size());
    if missing > 0 && memory.grow(missing) < 0 {
        return Err(Error::OutOfStableMemory { pages: missing });
    }
    memory.write(offset, bytes);
    Ok(())
}

impl Collection {
    /// An empty map for so many entries.
    ///
    /// # Errors
    ///
    /// If there is no such map, or no room for it.
    fn new(engine: Engine, entries: u64) -> Result<Self> {
        match engine {
            HASH_MAP => Ok(Self::HashMap(FxHashMap::default())),
            BTREE_MAP => Ok(Self::BTreeMap(BTreeMap::new())),
            STABLE_BTREE_MAP | TABLE => {
                write(0, &[0; 8])?;
                Ok(match engine {
                    TABLE => Self::Table(StableTable::new(stable(), entries)),
                    _ => Self::StableBTreeMap(StableBTreeMap::new(stable())),
                })
            }
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn engine(&self) -> Engine {
        match self {
            Self::HashMap(_) => HASH_MAP,
            Self::BTreeMap(_) => BTREE_MAP,
            Self::StableBTreeMap(_) => STABLE_BTREE_MAP,
            Self::Table(_) => TABLE,
        }
    }

    /// Writes to stable memory what an upgrade keeps: the name of the map, the bits of a table, and
    /// the entries of a map on the heap, all in Candid.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn save(&self) -> Result<()> {
        let (bits, entries): (u32, Vec<(u64, u64)>) = match self {
            Self::HashMap(map) => (0, map.iter().map(|(key, value)| (*key, *value)).collect()),
            Self::BTreeMap(map) => (0, map.iter().map(|(key, value)| (*key, *value)).collect()),
            Self::StableBTreeMap(_) => (0, Vec::new()),
            Self::Table(table) => (table.bits(), Vec::new()),
        };
        let Ok(state) = encode_args((self.engine(), bits, entries)) else {
            trap(&"the state cannot be encoded");
        };
        write(0, &(state.len() as u64).to_le_bytes())?;
        write(8, &state)
    }

    /// Reads what was saved.
    fn load() -> Self {
        let memory = DefaultMemoryImpl::default();
        let mut length = [0; 8];
        memory.read(0, &mut length);
        let mut state = vec![0; u64::from_le_bytes(length) as usize];
        memory.read(8, &mut state);
        let Ok((engine, bits, entries)) = decode_args::<(Engine, u32, Vec<(u64, u64)>)>(&state)
        else {
            trap(&"the state cannot be decoded");
        };
        match engine {
            HASH_MAP => Self::HashMap(entries.into_iter().collect()),
            BTREE_MAP => Self::BTreeMap(entries.into_iter().collect()),
            TABLE => Self::Table(StableTable::open(stable(), bits)),
            _ => Self::StableBTreeMap(StableBTreeMap::load(stable())),
        }
    }
}

impl Map for Collection {
    fn put(&mut self, key: u64, value: u64) {
        match self {
            Self::HashMap(map) => drop(map.insert(key, value)),
            Self::BTreeMap(map) => drop(map.insert(key, value)),
            Self::StableBTreeMap(map) => drop(map.insert(key, value)),
            Self::Table(table) => table.put(key, value),
        }
    }

    fn get(&self, key: u64) -> Option<u64> {
        match self {
            Self::HashMap(map) => map.get(&key).copied(),
            Self::BTreeMap(map) => map.get(&key).copied(),
            Self::StableBTreeMap(map) => map.get(&key),
            Self::Table(table) => table.get(key),
        }
    }

    fn remove(&mut self, key: u64) -> bool {
        match self {
            Self::HashMap(map) => map.remove(&key).is_some(),
            Self::BTreeMap(map) => map.remove(&key).is_some(),
            Self::StableBTreeMap(map) => map.remove(&key).is_some(),
            Self::Table(table) => table.remove(key),
        }
    }

    fn add_to(&self, digest: &mut ContentDigest, from: u64, limit: u64) -> Option<u64> {
        // Positions are keys where the map is ordered, slots in a table, and else numbers.
        let entries: Box<dyn Iterator<Item = (u64, u64, u64)> + '_> = match self {
            Self::HashMap(map) => {
                let numbered = (0..).zip(map).map(|(at, (key, value))| (at, *key, *value));
                Box::new(numbered.skip(from as usize))
            }
            Self::BTreeMap(map) => {
                Box::new(map.range(from..).map(|(key, value)| (*key, *key, *value)))
            }
            Self::StableBTreeMap(map) => Box::new(map.range(from..).map(|entry| {
                let key = *entry.key();
                (key, key, entry.value())
            })),
            Self::Table(table) => Box::new(table.from(from)),
        };
        let mut left = limit;
        for (position, key, value) in entries {
            if left == 0 {
                return Some(position);
            }
            left -= 1;
            digest.add(key, &value.to_le_bytes());
        }
        None
    }

    /// Returns the bytes in stable memory or, for a map on the heap, all of the heap.
    fn bytes(&self) -> u64 {
        match self {
            Self::HashMap(_) | Self::BTreeMap(_) => heap_pages() * PAGE,
            Self::StableBTreeMap(_) => stable().size() * PAGE,
            Self::Table(table) => table.bytes(),
        }
    }

    fn is_stable(&self) -> bool {
        matches!(self, Self::StableBTreeMap(_) | Self::Table(_))
    }
}

const SLOT: u64 = 16;

/// A hash table in stable memory: slots of 16 bytes, linear probing, and a size that is chosen once.
/// The canister in Motoko has the same table.
///
/// ```text
///   slot   key + 1 (0: free), value; little-endian
/// ```
struct StableTable<M> {
    memory: M,
    bits: u32,
}

impl<M: Memory> StableTable<M> {
    /// Creates a table for so many entries and as many free slots in an empty memory.
    fn new(memory: M, entries: u64) -> Self {
        let mut bits = 1;
        while 1 << bits < 2 * entries {
            bits += 1;
        }
        if memory.grow((SLOT << bits).div_ceil(PAGE)) < 0 {
            trap(&"stable memory cannot grow");
        }
        Self { memory, bits }
    }

    /// Opens the table of a memory that has this number of bits.
    fn open(memory: M, bits: u32) -> Self {
        Self { memory, bits }
    }

    fn bits(&self) -> u32 {
        self.bits
    }

    fn bytes(&self) -> u64 {
        SLOT << self.bits
    }

    fn get(&self, key: u64) -> Option<u64> {
        let offset = self.slot(key) * SLOT;
        (self.load(offset) != 0).then(|| self.load(offset + 8))
    }

    fn put(&mut self, key: u64, value: u64) {
        let offset = self.slot(key) * SLOT;
        self.store(offset, key + 1);
        self.store(offset + 8, value);
    }

    /// Removes a key, and moves those behind it that would no longer be found.
    fn remove(&mut self, key: u64) -> bool {
        let last = self.mask();
        let mut free = self.slot(key);
        if self.load(free * SLOT) == 0 {
            return false;
        }
        let mut at = free;
        loop {
            at = (at + 1) & last;
            let found = self.load(at * SLOT);
            if found == 0 {
                break;
            }
            let home = self.first(found - 1);
            if at.wrapping_sub(home) & last >= at.wrapping_sub(free) & last {
                let value = self.load(at * SLOT + 8);
                self.store(free * SLOT, found);
                self.store(free * SLOT + 8, value);
                free = at;
            }
        }
        self.store(free * SLOT, 0);
        true
    }

    /// The entries from a slot on, each with the number of its slot.
    fn from(&self, slot: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        (slot..1 << self.bits).filter_map(|at| {
            let found = self.load(at * SLOT);
            (found > 0).then(|| (at, found - 1, self.load(at * SLOT + 8)))
        })
    }

    /// The slot of a key, or the free one where it belongs.
    fn slot(&self, key: u64) -> u64 {
        let last = self.mask();
        let mut at = self.first(key);
        loop {
            let found = self.load(at * SLOT);
            if found == 0 || found == key + 1 {
                return at;
            }
            at = (at + 1) & last;
        }
    }

    /// The slot where the search for a key begins.
    fn first(&self, key: u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.bits)
    }

    fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    fn load(&self, offset: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read(offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn store(&self, offset: u64, word: u64) {
        self.memory.write(offset, &word.to_le_bytes());
    }
}
