//! The map in use, and its state over an upgrade.

use std::collections::BTreeMap;

use candid::{decode_args, encode_args};
use ic_stable_structures::{DefaultMemoryImpl, Memory as _, RestrictedMemory, StableBTreeMap};
use rustc_hash::FxHashMap;
use stablebench_harness::{heap_pages, trap};
use stablebench_protocol::{Engine, Error, Result};
use stablebench_suite_collections::canister::Map;
use stablebench_workload::ContentDigest;

use crate::table::Table;

/// Maps by their names in jobs.
const HASH_MAP: Engine = Engine::named("hash_map");
const BTREE_MAP: Engine = Engine::named("btree_map");
const STABLE_BTREE_MAP: Engine = Engine::named("stable_btree_map");
const TABLE: Engine = Engine::named("table");

const PAGE: u64 = 65_536;
/// The most pages of stable memory: 500 GiB.
const MAX_PAGES: u64 = 500 << 14;

type Stable = RestrictedMemory<DefaultMemoryImpl>;

pub enum Collection {
    HashMap(FxHashMap<u64, u64>),
    BTreeMap(BTreeMap<u64, u64>),
    StableBTreeMap(StableBTreeMap<u64, u64, Stable>),
    Table(Table<Stable>),
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
    pub fn new(engine: Engine, entries: u64) -> Result<Self> {
        match engine {
            HASH_MAP => Ok(Self::HashMap(FxHashMap::default())),
            BTREE_MAP => Ok(Self::BTreeMap(BTreeMap::new())),
            STABLE_BTREE_MAP | TABLE => {
                write(0, &[0; 8])?;
                Ok(match engine {
                    TABLE => Self::Table(Table::new(stable(), entries)),
                    _ => Self::StableBTreeMap(StableBTreeMap::new(stable())),
                })
            }
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    pub fn engine(&self) -> Engine {
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
    pub fn save(&self) -> Result<()> {
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
    pub fn load() -> Self {
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
            TABLE => Self::Table(Table::open(stable(), bits)),
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
