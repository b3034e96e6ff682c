//! An array of slots on bare stable memory, indexed by id.
//!
//! ```text
//! slot of id i, the (i / 5)th   bytes of the payload + 1, or 0 if free ↕ 4
//!                               payload, and the rest of the slot ↕ payload_bytes
//! ```
//!
//! One stable write or read per row, one `grow` per batch. The first batch decides the maximum length
//! of a payload. Ids are multiples of 5, so that rows fit between those of the users workload, which
//! are ten apart.
//!
//! The array is also an engine of keys and values, whose keys are digits:
//!
//! ```text
//! slot of key n   bytes of the rest + 1, or 0 if free ↕ 4
//!                 key ↕ 16   value, and the rest of the slot
//! ```
//!
//! There, the first value decides the maximum length of a value, and the number of keys is counted:
//! one stable read and one stable write per value.

use super::{CHUNK_BYTES, DATA, Header, PAGE_BYTES, RawMemory, erase, grow_to};
use crate::canister::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes};
use crate::work::{IdSet, Selected};
use stablebench_harness::{Records, VisitRecord};
use stablebench_protocol::{Engine, Error, Result};
use stablebench_workload::Amount;
use stablebench_workload::digits::{self, KEY_BYTES};
use std::hint::black_box;
use std::ops::ControlFlow;

/// The number that divides every id.
pub const ID_MULTIPLE: u64 = 5;

const SLOT_HEADER_BYTES: u64 = 4;

/// More than any canister has: offsets below cannot overflow.
const MAX_BYTES: u64 = 1 << 40;

/// The number of slots that are read at once to look at rows, not measured.
const VISITED_SLOTS: u64 = 256;

/// The engine.
#[derive(Clone, Debug, Default)]
pub struct Array<M> {
    memory: M,
    rows: u64,
    slots: u64,
    slot_payload_bytes: Option<u32>,
    /// The buffer of single slots.
    buffer: Vec<u8>,
}

impl<M: RawMemory> Array<M> {
    pub(super) fn new(memory: M) -> Self {
        Self { memory, rows: 0, slots: 0, slot_payload_bytes: None, buffer: Vec::new() }
    }

    pub(super) fn is_used(&self) -> bool {
        self.slot_payload_bytes.is_some()
    }

    pub(super) fn header(&self) -> Header {
        Header {
            owner: Some(Engine::ARRAY),
            rows: self.rows,
            end: self.slots,
            last_id: 0,
            slot_payload_bytes: self.slot_payload_bytes.unwrap_or(0),
        }
    }

    pub(super) fn restore(&mut self, header: &Header) {
        self.rows = header.rows;
        self.slots = header.end;
        self.slot_payload_bytes = header.owner.map(|_| header.slot_payload_bytes);
    }

    fn slot_bytes(&self) -> u64 {
        SLOT_HEADER_BYTES + u64::from(self.slot_payload_bytes())
    }

    fn offset(&self, slot: u64) -> u64 {
        DATA + slot * self.slot_bytes()
    }

    fn is_filled(&self, slot: u64) -> bool {
        let mut header = [0; SLOT_HEADER_BYTES as usize];
        self.memory.read(self.offset(slot), &mut header);
        header != [0; SLOT_HEADER_BYTES as usize]
    }

    /// The maximum length of a payload, in bytes.
    fn slot_payload_bytes(&self) -> u32 {
        self.slot_payload_bytes.unwrap_or(0)
    }

    /// Writes to an existing slot; `row` is its beginning.
    fn overwrite_slot(&mut self, slot: u64, row: &[u8]) {
        // One more stable read per row than an insert: rows are counted.
        self.rows += u64::from(!self.is_filled(slot));
        self.memory.write(self.offset(slot), row);
    }

    /// Frees an existing slot.
    fn free_slot(&mut self, slot: u64) {
        self.rows -= u64::from(self.is_filled(slot));
        self.memory.write(self.offset(slot), &[0; SLOT_HEADER_BYTES as usize]);
    }

    /// Reads the whole of an existing slot.
    fn read_slot(&self, slot: u64, bytes: &mut Vec<u8>) {
        bytes.resize(self.slot_bytes() as usize, 0);
        self.memory.read(self.offset(slot), bytes);
    }

    /// Creates slots up to the last one needed. Decides their length if there are none.
    fn create_slots(&mut self, last: u64, payload_bytes: u32) -> Result<()> {
        let bytes = *self.slot_payload_bytes.get_or_insert(payload_bytes);
        let slots = self.slots.max(last + 1);
        let end = DATA + slots * (SLOT_HEADER_BYTES + u64::from(bytes));
        if let Err(error) = grow_to(&mut self.memory, end) {
            // The array is not used before its first row is written.
            self.slot_payload_bytes = self.slot_payload_bytes.filter(|_| self.slots > 0);
            return Err(error);
        }
        self.slots = slots;
        Ok(())
    }

    fn write_rows(&mut self, rows: Selected<'_>, payload: &str) {
        let row = row_of(payload);
        rows.each(|id| {
            let offset = self.offset(id / ID_MULTIPLE);
            self.memory.write(offset, &row);
        });
    }

    /// Copies at most `limit` rows, starting at a slot.
    fn copy_rows(&self, from: u64, limit: u64) -> Amount {
        let mut read = Amount::default();
        self.read_slots(from, limit, |slot, payload| {
            black_box((slot * ID_MULTIPLE, payload));
            read += Amount { rows: 1, bytes: payload.len() as u64 };
            if read.rows < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        read
    }

    /// Visits the rows, starting at a slot. Reads chunks of at most `limit` slots.
    fn read_slots(
        &self,
        from: u64,
        limit: u64,
        mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) {
        let slot_bytes = self.slot_bytes();
        let chunk_slots = (CHUNK_BYTES as u64 / slot_bytes).min(limit).max(1);
        let mut chunk = vec![0; (chunk_slots * slot_bytes) as usize];
        let mut first = from;
        while first < self.slots {
            let slots = chunk_slots.min(self.slots - first);
            let bytes = &mut chunk[..(slots * slot_bytes) as usize];
            self.memory.read(self.offset(first), bytes);
            for (slot, bytes) in (first..).zip(bytes.chunks_exact(slot_bytes as usize)) {
                if let Some(payload) = payload_of(bytes)
                    && visit(slot, payload).is_break()
                {
                    return;
                }
            }
            first += slots;
        }
    }
}

/// The beginning of a slot with a payload.
fn row_of(payload: &str) -> Vec<u8> {
    let mut row = (payload.len() as u32 + 1).to_le_bytes().to_vec();
    row.extend(payload.as_bytes());
    row
}

/// The payload of a slot; nothing if it is free.
fn payload_of(slot: &[u8]) -> Option<&[u8]> {
    let (header, rest) = slot.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*header).checked_sub(1)?;
    rest.get(..length as usize)
}

impl<M: RawMemory> KeyValue for Array<M> {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn admit(&self, ids: &IdSet, payload_bytes: u32) -> Result<()> {
        let slot_payload_bytes = self.slot_payload_bytes.unwrap_or(payload_bytes);
        if payload_bytes > slot_payload_bytes {
            return Err(Error::PayloadTooLong { limit: slot_payload_bytes });
        }
        let slots = MAX_BYTES / (SLOT_HEADER_BYTES + u64::from(slot_payload_bytes));
        let largest = (slots - 1) * ID_MULTIPLE;
        if ids.last() > largest {
            return Err(Error::IdOverflow { largest });
        }
        match ids.first_not_multiple(ID_MULTIPLE) {
            Some(id) => Err(Error::IdNotMultiple { id, multiple: ID_MULTIPLE }),
            None => Ok(()),
        }
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.read_slots(position.div_ceil(ID_MULTIPLE), VISITED_SLOTS, |slot, payload| {
            let id = slot * ID_MULTIPLE;
            visit(StoredRow { position: id, id, payload })
        });
        Ok(())
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        let last = (0..self.slots).rev().find(|slot| self.is_filled(*slot));
        Ok(last.map(|slot| slot * ID_MULTIPLE))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.rows)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(self.slots * self.slot_bytes())
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.pages() * PAGE_BYTES
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        work(self).map_err(Failed::kept)
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        let mut slot = vec![0; self.slot_bytes() as usize];
        let mut found = Amount::default();
        rows.each(|id| {
            if id / ID_MULTIPLE < self.slots {
                self.memory.read(self.offset(id / ID_MULTIPLE), &mut slot);
                if let Some(payload) = payload_of(&slot) {
                    black_box(payload);
                    found += Amount { rows: 1, bytes: payload.len() as u64 };
                }
            }
        });
        Ok(found)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let mut found = Amount::default();
        from.each(|id| found += self.copy_rows(id.div_ceil(ID_MULTIPLE), rows));
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        Ok(self.copy_rows(0, limit))
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.rows)
    }

    fn reset(&mut self) -> Result<()> {
        let bytes = self.slots * self.slot_bytes();
        erase(&mut self.memory, bytes);
        self.restore(&Header::default());
        Ok(())
    }
}

impl<M: RawMemory> Writes for Array<M> {
    fn allocated_units(&mut self) -> Result<u64> {
        Ok(self.memory.pages())
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.create_slots(rows.largest() / ID_MULTIPLE, payload.len() as u32)?;
        self.write_rows(rows, payload);
        self.rows += rows.rows();
        Ok(())
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.create_slots(rows.largest() / ID_MULTIPLE, payload.len() as u32)?;
        let row = row_of(payload);
        rows.each(|id| self.overwrite_slot(id / ID_MULTIPLE, &row));
        Ok(())
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.write_rows(rows, payload);
        Ok(())
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        rows.each(|id| {
            let offset = self.offset(id / ID_MULTIPLE);
            self.memory.write(offset, &[0; SLOT_HEADER_BYTES as usize]);
        });
        self.rows -= rows.rows();
        Ok(())
    }
}

/// The slot of a key.
fn slot_of(key: &[u8]) -> Result<u64> {
    digits::number(key).ok_or_else(|| Error::Unsupported {
        engine: Engine::ARRAY,
        operation: format!("store keys other than {KEY_BYTES} digits"),
    })
}

/// The key and the value of a slot; nothing if it is free.
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
        self.create_slots(slot, bytes)?;
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
        if slot < self.slots {
            self.free_slot(slot);
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let slot = slot_of(key)?;
        if slot >= self.slots {
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
        Ok(last.map(|slot| digits::key(slot).to_vec()))
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
