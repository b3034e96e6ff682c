//! A hash table in stable memory: slots of 16 bytes, linear probing, and a size that is chosen once.
//! The canister in Motoko has the same table.
//!
//! ```text
//!   slot   key + 1 (0: free), value; little-endian
//! ```

use ic_stable_structures::Memory;
use stablebench_harness::trap;

const SLOT: u64 = 16;
const PAGE: u64 = 65_536;

pub struct Table<M> {
    memory: M,
    bits: u32,
}

impl<M: Memory> Table<M> {
    /// Creates a table for so many entries and as many free slots in an empty memory.
    pub fn new(memory: M, entries: u64) -> Self {
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
    pub fn open(memory: M, bits: u32) -> Self {
        Self { memory, bits }
    }

    pub fn bits(&self) -> u32 {
        self.bits
    }

    pub fn bytes(&self) -> u64 {
        SLOT << self.bits
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let offset = self.slot(key) * SLOT;
        (self.load(offset) != 0).then(|| self.load(offset + 8))
    }

    pub fn put(&mut self, key: u64, value: u64) {
        let offset = self.slot(key) * SLOT;
        self.store(offset, key + 1);
        self.store(offset + 8, value);
    }

    /// Removes a key, and moves those behind it that would no longer be found.
    pub fn remove(&mut self, key: u64) -> bool {
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
    pub fn from(&self, slot: u64) -> impl Iterator<Item = (u64, u64, u64)> {
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
