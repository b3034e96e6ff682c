use crate::points::{Item, Points};
use crate::{Records, VisitRecord};
use stablebench_protocol::{Engine, Error, Lookups, Result};
use stablebench_workload::cuckoo::model::add_item;
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

/// Items of the suite cuckoo in any engine of keys and values, looked up one by one.
///
/// A key is 8 bytes, the highest first: the order of keys is the order of items.
#[derive(Clone, Debug)]
pub struct ByKey<R> {
    /// What the engine is called.
    pub engine: Engine,
    /// The engine.
    pub records: R,
}

impl<R: Records> Points for ByKey<R> {
    fn prepare(&mut self) -> Result<()> {
        self.records.prepare()
    }

    fn items(&mut self) -> Result<u64> {
        self.records.rows()
    }

    fn add(&mut self, items: &[Item], _: bool) -> Result<()> {
        self.records.begin()?;
        for (key, value) in items {
            self.records.put(&key.to_be_bytes(), value)?;
        }
        self.records.commit()
    }

    fn look_up(&mut self, keys: &[u64], lookups: Lookups) -> Result<Amount> {
        if lookups != Lookups::Single {
            let operation = "look up in batches".to_owned();
            return Err(Error::Unsupported { engine: self.engine, operation });
        }
        let mut found = Amount::default();
        for key in keys {
            self.records.get(&key.to_be_bytes(), &mut |value| {
                black_box(value);
                found += Amount { rows: 1, bytes: value.len() as u64 };
            })?;
        }
        Ok(found)
    }

    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>> {
        let mut found = None;
        self.records.get(&key.to_be_bytes(), &mut |value| found = value.try_into().ok())?;
        Ok(found)
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let (mut left, mut next) = (limit, None);
        let visit: &mut VisitRecord<'_> = &mut |key, value| {
            let Ok(key) = key.try_into().map(u64::from_be_bytes) else {
                return ControlFlow::Break(());
            };
            if left == 0 {
                next = Some(key);
                return ControlFlow::Break(());
            }
            left -= 1;
            add_item(digest, key, value);
            ControlFlow::Continue(())
        };
        self.records.scan(&position.to_be_bytes(), visit)?;
        Ok(next)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.records.stored_bytes()
    }

    fn virtual_bytes(&self) -> u64 {
        self.records.virtual_bytes()
    }
}
