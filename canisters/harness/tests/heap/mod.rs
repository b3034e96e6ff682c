//! An engine of keys and values on the heap, for the tests of suites.

use stablebench_harness::{Records, VisitRecord};
use stablebench_protocol::{Error, Result};
use std::collections::BTreeMap;

/// The minimum of a new engine of keys and values: a map on the heap. A unit of storage is a key.
#[derive(Default)]
pub struct HeapRecords {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    before: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Records for HeapRecords {
    fn clear(&mut self) -> Result<()> {
        self.values.clear();
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        assert!(self.before.is_none(), "one transaction at a time");
        self.before = Some(self.values.clone());
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        assert!(self.before.take().is_some(), "what is committed was begun");
        Ok(())
    }

    fn rollback(&mut self, _: &Error) -> bool {
        self.values = self.before.take().expect("what is rolled back was begun");
        true
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        assert!(self.before.is_some(), "values are put in a transaction");
        self.values.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        assert!(self.before.is_some(), "keys are removed in a transaction");
        self.values.remove(key);
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.values.get(key);
        value.into_iter().for_each(|value| visit(value));
        Ok(value.is_some())
    }

    fn scan(&mut self, from: &[u8], visit: &mut VisitRecord<'_>) -> Result<()> {
        let mut from = self.values.range(from.to_vec()..);
        let _ = from.try_for_each(|(key, value)| visit(key, value));
        Ok(())
    }

    fn last_key(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.values.last_key_value().map(|(key, _)| key.clone()))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.values.len() as u64)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(self.values.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum())
    }

    fn virtual_bytes(&self) -> u64 {
        0
    }

    fn allocated_units(&mut self) -> Result<u64> {
        self.rows()
    }
}
