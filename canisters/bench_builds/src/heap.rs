//! `std::collections::BTreeMap<u64, String>` on the heap.

use stablebench_protocol::Result;
use stablebench_suite_users::canister::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes};
use stablebench_suite_users::work::{IdSet, Selected};
use stablebench_workload::Amount;
use std::collections::BTreeMap;
use std::hint::black_box;

/// The rows of the suite users.
#[derive(Default)]
pub struct Heap {
    map: BTreeMap<u64, String>,
}

impl KeyValue for Heap {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        for (id, payload) in self.map.range(position..) {
            let row = StoredRow { position: *id, id: *id, payload: payload.as_bytes() };
            if visit(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.map.last_key_value().map(|(id, _)| *id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.map.len() as u64)
    }

    /// Nothing: the rows are on the heap.
    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(0)
    }

    fn virtual_bytes(&self) -> u64 {
        0
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        work(self).map_err(Failed::kept)
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        let mut found = Amount::default();
        rows.each(|id| {
            if let Some(payload) = self.map.get(&id) {
                found += Amount { rows: 1, bytes: payload.len() as u64 };
                black_box(payload.clone());
            }
        });
        Ok(found)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let mut found = Amount::default();
        from.each(|id| found += copy_rows(self.map.range(id..), rows));
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        Ok(copy_rows(self.map.iter(), limit))
    }

    fn count(&mut self) -> Result<u64> {
        self.rows()
    }

    fn reset(&mut self) -> Result<()> {
        self.map.clear();
        Ok(())
    }
}

impl Writes for Heap {
    fn allocated_units(&mut self) -> Result<u64> {
        Ok(stablebench_harness::heap_pages())
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        rows.each(|id| {
            self.map.insert(id, payload.to_owned());
        });
        Ok(())
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.insert(rows, payload)
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.insert(rows, payload)
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        rows.each(|id| {
            self.map.remove(&id);
        });
        Ok(())
    }
}

/// Copies at most `limit` rows.
fn copy_rows<'a>(rows: impl Iterator<Item = (&'a u64, &'a String)>, limit: u64) -> Amount {
    let mut read = Amount::default();
    for (id, payload) in rows.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        read += Amount { rows: 1, bytes: payload.len() as u64 };
        black_box((*id, payload.clone()));
    }
    read
}
