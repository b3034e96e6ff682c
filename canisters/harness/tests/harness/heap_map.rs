//! A map on the heap, with transactions, that can be made to fail.

use stablebench_harness::{Done, Failed, KeyValue, Writes};
use stablebench_protocol::{Error, Result};
use stablebench_workload::{Amount, ContentDigest, IdSet, Selected};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A unit of storage is a row. Every write of the id `fails_at` fails.
#[derive(Default)]
pub struct HeapMap {
    rows: BTreeMap<u64, String>,
    /// Whether a transaction is open.
    open: bool,
    pub fails_at: Option<u64>,
    /// Transactions that were committed.
    pub committed: u64,
}

pub fn failure() -> Error {
    Error::Sqlite { message: "as the test has it".to_owned() }
}

impl HeapMap {
    fn write(&mut self, rows: Selected<'_>, payload: Option<&str>) -> Result<()> {
        assert!(self.open, "rows are written in a transaction");
        rows.try_each(|id| {
            if self.fails_at == Some(id) {
                return Err(failure());
            }
            match payload {
                Some(payload) => self.rows.insert(id, payload.to_owned()),
                None => self.rows.remove(&id),
            };
            Ok(())
        })
    }

    fn amount<'a>(rows: impl Iterator<Item = &'a String>) -> Amount {
        rows.fold(Amount::default(), |amount, text| Amount {
            rows: amount.rows + 1,
            bytes: amount.bytes + text.len() as u64,
        })
    }
}

impl KeyValue for HeapMap {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn walk(&mut self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        let _ = self.rows.range(from..).try_for_each(|(id, _)| visit(*id));
        Ok(())
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.rows.last_key_value().map(|(id, _)| *id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.rows.len() as u64)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(Self::amount(self.rows.values()).bytes)
    }

    fn virtual_bytes(&self) -> u64 {
        0
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        let before = self.rows.clone();
        self.open = true;
        let outcome = work(self);
        self.open = false;
        match outcome {
            Ok(()) => {
                self.committed += 1;
                Ok(())
            }
            Err(because) => {
                assert_eq!(because, failure());
                self.rows = before;
                Err(Failed::undone(because))
            }
        }
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        let mut found = Amount::default();
        rows.each(|id| found += Self::amount(self.rows.get(&id).into_iter()));
        Ok(found)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let mut found = Amount::default();
        from.each(|id| {
            let rows = self.rows.range(id..).take(rows as usize);
            found += Self::amount(rows.map(|(_, text)| text));
        });
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        Ok(Self::amount(self.rows.values().take(limit as usize)))
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.rows.len() as u64)
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let mut rows = self.rows.range(position..);
        for (id, payload) in rows.by_ref().take(limit as usize) {
            digest.add(*id, payload.as_bytes());
        }
        Ok(rows.next().map(|(id, _)| *id))
    }

    fn reset(&mut self) -> Result<()> {
        self.rows.clear();
        Ok(())
    }
}

impl Writes for HeapMap {
    fn allocated_units(&mut self) -> Result<u64> {
        Ok(self.rows.len() as u64)
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.write(rows, Some(payload))
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.write(rows, Some(payload))
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.write(rows, Some(payload))
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        self.write(rows, None)
    }
}
