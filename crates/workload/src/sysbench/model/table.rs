//! A table: rows by number, and their numbers by `k`.

use std::collections::{BTreeMap, BTreeSet};

use crate::sysbench::record::Record;

/// The rows.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    records: BTreeMap<u64, Record>,
    by_k: BTreeSet<(u64, u64)>,
}

impl Rows {
    /// Every row, in order.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Record)> {
        self.records.iter().map(|(row, record)| (*row, record))
    }

    /// Those of `length` numbers from `first` on that there are.
    pub fn range(&self, first: u64, length: u64) -> impl Iterator<Item = (u64, &Record)> {
        self.records.range(first..first + length).map(|(row, record)| (*row, record))
    }

    /// Numbers of the rows whose `k` is from `least` to `most`.
    pub fn with_k(&self, least: u64, most: u64) -> impl Iterator<Item = u64> {
        self.by_k.range((least, 0)..=(most, u64::MAX)).map(|(_, row)| *row)
    }

    pub fn get(&self, row: u64) -> Option<&Record> {
        self.records.get(&row)
    }

    /// Puts a row in, in the place of one that is there.
    pub fn put(&mut self, row: u64, record: Record) {
        self.remove(row);
        self.by_k.insert((record.k(), row));
        self.records.insert(row, record);
    }

    /// Changes a row, and tells whether it was there.
    pub fn change(&mut self, row: u64, change: impl FnOnce(&mut Record)) -> bool {
        let Some(record) = self.records.get_mut(&row) else { return false };
        self.by_k.remove(&(record.k(), row));
        change(record);
        self.by_k.insert((record.k(), row));
        true
    }

    /// Removes a row, and tells whether it was there.
    pub fn remove(&mut self, row: u64) -> bool {
        let removed = self.records.remove(&row);
        removed.is_some_and(|record| self.by_k.remove(&(record.k(), row)))
    }
}
