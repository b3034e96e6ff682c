//! The array of slots as an engine of keys and values: a key of digits says which slot.
//!
//! ```text
//! slot of key n   bytes of the rest + 1, or 0 where free ↕ 4
//!                 key ↕ 16   value, and what is left of the slot
//! ```
//!
//! The first value decides how long a value can be, and how many keys there are is
//! counted: one stable read and one stable write a value that is put.

use super::RawMemory;
use super::array::{Array, ID_MULTIPLE, MAX_BYTES, SLOT_HEADER_BYTES, payload_of};
use crate::records::{Records, VisitRecord};
use crate::{KeyValue, Writes};
use stablebench_protocol::{Engine, Error, Result};
use stablebench_workload::db_bench::{self, KEY_BYTES};
use std::ops::ControlFlow;

/// Which slot a key has.
fn slot_of(key: &[u8]) -> Result<u64> {
    db_bench::number(key).ok_or_else(|| Error::Unsupported {
        engine: Engine::Array,
        operation: format!("hold keys other than {KEY_BYTES} digits"),
    })
}

/// The key and the value of a slot that is filled.
fn split(slot: &[u8]) -> Option<(&[u8], &[u8])> {
    payload_of(slot)?.split_at_checked(KEY_BYTES)
}

impl<M: RawMemory> Records for Array<M> {
    fn clear(&mut self) -> Result<()> {
        KeyValue::reset(self)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let slot = slot_of(key)?;
        let bytes = (KEY_BYTES + value.len()) as u32;
        let limit = if self.is_used() { self.slot_payload_bytes() } else { bytes };
        if bytes > limit {
            return Err(Error::PayloadTooLong { limit: limit.saturating_sub(KEY_BYTES as u32) });
        }
        let slots = MAX_BYTES / (u64::from(limit) + SLOT_HEADER_BYTES);
        if slot >= slots {
            return Err(Error::IdOverflow { largest: slots - 1 });
        }
        self.make_slots(slot, bytes)?;
        let mut row = std::mem::take(&mut self.buffer);
        row.clear();
        row.extend_from_slice(&(bytes + 1).to_le_bytes());
        row.extend_from_slice(key);
        row.extend_from_slice(value);
        self.overwrite_slot(slot, &row);
        self.buffer = row;
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let slot = slot_of(key)?;
        if slot < self.slots() {
            self.free_slot(slot);
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let slot = slot_of(key)?;
        if slot >= self.slots() {
            return Ok(false);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        self.read_slot(slot, &mut buffer);
        let value = split(&buffer).map(|(_, value)| value);
        if let Some(value) = value {
            visit(value);
        }
        let found = value.is_some();
        self.buffer = buffer;
        Ok(found)
    }

    fn scan(&mut self, from: &[u8], visit: &mut VisitRecord<'_>) -> Result<()> {
        let from = slot_of(from)?;
        self.read_slots(from, u64::MAX, |_, payload| match payload.split_at_checked(KEY_BYTES) {
            Some((key, value)) => visit(key, value),
            None => ControlFlow::Continue(()),
        });
        Ok(())
    }

    fn last_key(&mut self) -> Result<Option<Vec<u8>>> {
        let last = KeyValue::last_id(self)?.map(|id| id / ID_MULTIPLE);
        Ok(last.map(|slot| db_bench::key(slot).to_vec()))
    }

    fn rows(&mut self) -> Result<u64> {
        KeyValue::rows(self)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        KeyValue::stored_bytes(self)
    }

    fn virtual_bytes(&self) -> u64 {
        KeyValue::virtual_bytes(self)
    }

    fn allocated_units(&mut self) -> Result<u64> {
        Writes::allocated_units(self)
    }
}
