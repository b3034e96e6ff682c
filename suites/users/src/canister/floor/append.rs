//! A log of rows on bare stable memory, in the order they were written.
//!
//! ```text
//! row   id ↕ 8   bytes of the payload ↕ 4   payload
//! ```
//!
//! One stable write per row, one `grow` per batch. A row in the middle is appended like any other.
//! There is no index: rows cannot be looked up by id, changed or removed. To find out whether an id
//! exists, the log is read outside of the measurement, unless the id is larger than all others.

use super::{CHUNK_BYTES, DATA, Header, PAGE_BYTES, RawMemory, erase, grow_to};
use crate::canister::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes};
use crate::work::{IdSet, Selected};
use stablebench_protocol::{Engine, Error, Result};
use stablebench_workload::Amount;
use std::hint::black_box;
use std::ops::ControlFlow;

const ROW_HEADER_BYTES: usize = 12;

/// The engine.
#[derive(Clone, Debug, Default)]
pub struct Append<M> {
    memory: M,
    rows: u64,
    end: u64,
    last_id: u64,
}

impl<M: RawMemory> Append<M> {
    pub(super) fn new(memory: M) -> Self {
        Self { memory, rows: 0, end: 0, last_id: 0 }
    }

    pub(super) fn is_used(&self) -> bool {
        self.rows > 0
    }

    pub(super) fn header(&self) -> Header {
        Header {
            owner: Some(Engine::APPEND),
            rows: self.rows,
            end: self.end,
            last_id: self.last_id,
            slot_payload_bytes: 0,
        }
    }

    pub(super) fn restore(&mut self, header: &Header) {
        self.rows = header.rows;
        self.end = header.end;
        self.last_id = header.last_id;
    }

    /// Visits at most `limit` rows, starting at the byte `position` of the log.
    fn read_log(
        &self,
        position: u64,
        limit: u64,
        mut visit: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
    ) {
        let average = self.end / self.rows.max(1);
        let (mut chunk, mut at) = (Vec::new(), 0);
        let mut next = position;
        for row in 0..limit {
            if next >= self.end {
                break;
            }
            // A row that is not completely in the chunk begins the next one, which is not
            // larger than what is likely to be read.
            let likely = (limit - row).saturating_mul(average);
            for bytes in [likely.min(CHUNK_BYTES as u64), CHUNK_BYTES as u64] {
                if row_at(&chunk[at..]).is_none() {
                    chunk.resize(bytes.min(self.end - next) as usize, 0);
                    at = 0;
                    self.memory.read(DATA + next, &mut chunk);
                }
            }
            let Some((id, payload)) = row_at(&chunk[at..]) else {
                break;
            };
            if visit(StoredRow { position: next, id, payload }).is_break() {
                break;
            }
            let length = ROW_HEADER_BYTES + payload.len();
            at += length;
            next += length as u64;
        }
    }

    fn unsupported<T>(operation: &str) -> Result<T> {
        Err(Error::Unsupported { engine: Engine::APPEND, operation: operation.to_owned() })
    }
}

fn row_at(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let payload = rest.get(..u32::from_le_bytes(*length) as usize)?;
    Some((u64::from_le_bytes(*id), payload))
}

impl<M: RawMemory> KeyValue for Append<M> {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.read_log(position, u64::MAX, visit);
        Ok(())
    }

    fn first_present(&mut self, ids: &IdSet) -> Result<Option<u64>> {
        let mut found: Option<u64> = None;
        if self.rows > 0 && ids.first() <= self.last_id {
            self.read_log(0, u64::MAX, |StoredRow { id, .. }| {
                if ids.contains(id) && found.is_none_or(|found| id < found) {
                    found = Some(id);
                }
                ControlFlow::Continue(())
            });
        }
        Ok(found)
    }

    fn first_missing(&mut self, _: &IdSet) -> Result<Option<u64>> {
        Self::unsupported("change or remove rows")
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok((self.rows > 0).then_some(self.last_id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.rows)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(self.end)
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.pages() * PAGE_BYTES
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        work(self).map_err(Failed::kept)
    }

    fn read(&mut self, _: Selected<'_>) -> Result<Amount> {
        Self::unsupported("look rows up by id")
    }

    fn range(&mut self, _: Selected<'_>, _: u64) -> Result<Amount> {
        Self::unsupported("look rows up by id")
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        let mut read = Amount::default();
        self.read_log(0, limit, |StoredRow { id, payload, .. }| {
            black_box((id, payload));
            read += Amount { rows: 1, bytes: payload.len() as u64 };
            ControlFlow::Continue(())
        });
        Ok(read)
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.rows)
    }

    fn reset(&mut self) -> Result<()> {
        erase(&mut self.memory, self.end);
        self.restore(&Header::default());
        Ok(())
    }
}

impl<M: RawMemory> Writes for Append<M> {
    fn allocated_units(&mut self) -> Result<u64> {
        Ok(self.memory.pages())
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let row_bytes = (ROW_HEADER_BYTES + payload.len()) as u64;
        grow_to(&mut self.memory, DATA + self.end + rows.rows() * row_bytes)?;
        let mut row = vec![0; 8];
        row.extend((payload.len() as u32).to_le_bytes());
        row.extend(payload.as_bytes());
        rows.each(|id| {
            row[..8].copy_from_slice(&id.to_le_bytes());
            self.memory.write(DATA + self.end, &row);
            self.end += row_bytes;
        });
        self.rows += rows.rows();
        self.last_id = self.last_id.max(rows.largest());
        Ok(())
    }

    fn overwrite(&mut self, _: Selected<'_>, _: &str) -> Result<()> {
        Self::unsupported("change rows")
    }

    fn update(&mut self, _: Selected<'_>, _: &str) -> Result<()> {
        Self::unsupported("change rows")
    }

    fn delete(&mut self, _: Selected<'_>) -> Result<()> {
        Self::unsupported("remove rows")
    }
}
