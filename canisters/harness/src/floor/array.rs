//! An array of slots on bare stable memory, indexed by id.
//!
//! ```text
//! slot of id i, the (i / 5)th   bytes of the payload + 1, or 0 where free ↕ 4
//!                               payload, and what is left of the slot ↕ payload_bytes
//! ```
//!
//! One stable write or read a row, one `grow` a batch. The first batch decides how
//! long a payload a slot can hold. Ids are multiples of 5, so that rows fit between
//! those of the users workload, which are ten apart.

use super::header::Header;
use super::{CHUNK_BYTES, DATA, PAGE_BYTES, RawMemory, erase, grow_to};
use crate::{Done, Failed, KeyValue, Writes};
use stablebench_protocol::{Engine, Error, Result};
use stablebench_workload::{Amount, ContentDigest, IdSet, Selected};
use std::hint::black_box;
use std::ops::ControlFlow;

/// What ids must be multiples of.
pub const ID_MULTIPLE: u64 = 5;

pub(super) const SLOT_HEADER_BYTES: u64 = 4;

/// More than any canister has: offsets below cannot overflow.
pub(super) const MAX_BYTES: u64 = 1 << 40;

/// The engine.
#[derive(Clone, Debug, Default)]
pub struct Array<M> {
    memory: M,
    rows: u64,
    slots: u64,
    slot_payload_bytes: Option<u32>,
    /// A slot that is written or read by itself, kept so that none is allocated for each.
    pub(super) buffer: Vec<u8>,
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
            owner: Some(Engine::Array),
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

    /// How many slots there are, free ones included.
    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    /// Bytes of the longest payload that a slot holds.
    pub(super) fn slot_payload_bytes(&self) -> u32 {
        self.slot_payload_bytes.unwrap_or(0)
    }

    /// Writes to a slot that there is; `row` is what the slot begins with.
    pub(super) fn overwrite_slot(&mut self, slot: u64, row: &[u8]) {
        // One more stable read a row than an insert: rows are counted.
        self.rows += u64::from(!self.is_filled(slot));
        self.memory.write(self.offset(slot), row);
    }

    /// Frees a slot that there is.
    pub(super) fn free_slot(&mut self, slot: u64) {
        self.rows -= u64::from(self.is_filled(slot));
        self.memory.write(self.offset(slot), &[0; SLOT_HEADER_BYTES as usize]);
    }

    /// Reads the whole of a slot that there is.
    pub(super) fn read_slot(&self, slot: u64, bytes: &mut Vec<u8>) {
        bytes.resize(self.slot_bytes() as usize, 0);
        self.memory.read(self.offset(slot), bytes);
    }

    /// Makes slots up to the last that is needed, and decides how long they are where
    /// there are none.
    pub(super) fn make_slots(&mut self, last: u64, payload_bytes: u32) -> Result<()> {
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

    /// Copies at most `limit` rows from a slot on.
    fn copy_rows(&self, from: u64, limit: u64) -> Amount {
        let mut read = Amount::default();
        self.read_slots(from, limit, |slot, payload| {
            black_box((slot * ID_MULTIPLE, payload));
            read += Amount { rows: 1, bytes: payload.len() as u64 };
            if read.rows < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        read
    }

    /// Shows the rows from a slot on until told to stop, read in chunks of at most
    /// `limit` slots.
    pub(super) fn read_slots(
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

/// What a slot begins with that holds a payload.
fn row_of(payload: &str) -> Vec<u8> {
    let mut row = (payload.len() as u32 + 1).to_le_bytes().to_vec();
    row.extend(payload.as_bytes());
    row
}

/// The payload in a slot, where it is filled.
pub(super) fn payload_of(slot: &[u8]) -> Option<&[u8]> {
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

    fn walk(&mut self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        for slot in from.div_ceil(ID_MULTIPLE)..self.slots {
            if self.is_filled(slot) && visit(slot * ID_MULTIPLE).is_break() {
                break;
            }
        }
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

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let mut left = limit;
        let mut next = None;
        self.read_slots(position, limit, |slot, payload| {
            if left == 0 {
                next = Some(slot);
                return ControlFlow::Break(());
            }
            left -= 1;
            digest.add(slot * ID_MULTIPLE, payload);
            ControlFlow::Continue(())
        });
        Ok(next)
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
        self.make_slots(rows.largest() / ID_MULTIPLE, payload.len() as u32)?;
        self.write_rows(rows, payload);
        self.rows += rows.rows();
        Ok(())
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.make_slots(rows.largest() / ID_MULTIPLE, payload.len() as u32)?;
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
