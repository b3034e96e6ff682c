//! The floor: items one after the other, and who looks one up knows which it is. Nothing
//! that finds a key in stable memory can do with less than this one read.
//!
//! ```text
//! 0   8  items
//! 8   …  items, 12 bytes each: key, value
//! ```

use super::{one_by_one, out_of_memory};
use crate::manager::{Virtual, WASM_PAGE_BYTES};
use ic_stable_structures::Memory;
use stablebench_harness::Points;
use stablebench_harness::points::Item;
use stablebench_protocol::{Engine, Lookups, Result};
use stablebench_workload::cuckoo::Items;
use stablebench_workload::cuckoo::items::ITEM_BYTES;
use stablebench_workload::cuckoo::model::add_item;
use stablebench_workload::{Amount, ContentDigest};

const HEADER_BYTES: u64 = 8;
/// An item, as a length of an array.
const ITEM: usize = ITEM_BYTES as usize;

/// The engine.
pub struct Array {
    memory: Virtual,
    places: Option<Items>,
    items: Option<u64>,
}

impl Array {
    pub fn new(memory: Virtual) -> Self {
        Self { memory, places: None, items: None }
    }

    /// How the place of a key follows from it.
    pub fn places(&mut self, places: Items) {
        self.places = Some(places);
    }

    fn number(&mut self) -> u64 {
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

impl Points for Array {
    fn items(&mut self) -> Result<u64> {
        Ok(self.number())
    }

    fn add(&mut self, items: &[Item], _: bool) -> Result<()> {
        let first = self.number();
        let all = first + items.len() as u64;
        let pages = (HEADER_BYTES + all * ITEM_BYTES).div_ceil(WASM_PAGE_BYTES);
        let there = self.memory.size();
        if pages > there && self.memory.grow(pages - there) < 0 {
            return Err(out_of_memory(pages));
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
        let items = self.number();
        let Some(places) = self.places else {
            return Ok(Amount::default());
        };
        one_by_one(Engine::Array, keys, lookups, |key| self.find(items, places, key))
    }

    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>> {
        let items = self.number();
        Ok(self.places.and_then(|places| self.find(items, places, key)))
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let items = self.number();
        let end = position.saturating_add(limit).min(items);
        for place in position..end {
            let (key, value) = self.read(place);
            add_item(digest, key, &value);
        }
        Ok((end < items).then_some(end))
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(HEADER_BYTES + self.number() * ITEM_BYTES)
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.size() * WASM_PAGE_BYTES
    }
}
