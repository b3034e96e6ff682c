//! The suite cuckoo in a canister: items in the engine of the job, or in SQL.

use crate::job::{Cuckoo, CuckooTask, Lookups};
use crate::work::{CREATE, ITEM_BYTES, add_found, add_item, keys, script, value};
use stablebench_harness::sql::{self, ContentTable, MeasuredScript};
use stablebench_harness::{Canister, MAX_MESSAGE_ROWS, Records, Staged, Suite, measure, trap};
use stablebench_protocol::{Digest, Engine, Error, Inspected, JobPart, PartCost, Result, Storage};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

const TABLE: ContentTable<'static> =
    ContentTable { name: "cuckoo", columns: "id, value", order: "id" };

/// A canister with engines of items.
pub trait PointEngines: Canister {
    /// Returns the engine of a job; not SQLite.
    ///
    /// # Errors
    ///
    /// If the canister does not have it, or another engine owns the stable memory.
    fn points(&mut self, job: &Cuckoo, _seed: u64) -> Result<&mut dyn Points> {
        Err(Error::EngineUnavailable { engine: job.engine })
    }
}

/// A key and its value.
pub type Item = (u64, [u8; 4]);

/// An engine to which items are added in the order of their keys, and which looks keys up.
pub trait Points {
    /// Prepares what is not part of the work, before the first item.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns the number of items.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn items(&mut self) -> Result<u64>;

    /// Work: adds items. With the last items, completes the table.
    ///
    /// # Errors
    ///
    /// The engine's; items may have been added.
    fn add(&mut self, items: &[Item], last: bool) -> Result<()>;

    /// Work: looks keys up and copies the values of those that exist.
    ///
    /// # Errors
    ///
    /// The engine's; if it does not support this kind of lookups.
    fn look_up(&mut self, keys: &[u64], lookups: Lookups) -> Result<Amount>;

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>>;

    /// Adds at most `limit` items to the digest, starting at `position`; 0 is the beginning. Returns
    /// the next position, or nothing if no item is left.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>>;

    /// Returns the bytes in use, including the free space inside.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn stored_bytes(&mut self) -> Result<u64>;

    /// Returns the bytes of the virtual memory that contains the items.
    fn virtual_bytes(&self) -> u64;
}

/// Refuses lookups of several keys in one call.
///
/// # Errors
///
/// If several keys are looked up.
pub fn require_single(engine: Engine, lookups: Lookups) -> Result<()> {
    match lookups {
        Lookups::Single => Ok(()),
        Lookups::Batch(_) => {
            Err(Error::Unsupported { engine, operation: "look up in batches".to_owned() })
        }
    }
}

impl<C: PointEngines> Suite<C> for Cuckoo {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        if part.count > MAX_MESSAGE_ROWS {
            return Err(Error::TooManyRows { limit: MAX_MESSAGE_ROWS });
        }
        if part.each {
            return Err(unsupported(&self, "measure each lookup"));
        }
        if self.engine == Engine::SQLITE {
            return in_sql(self, part);
        }
        let (seed, from) = (part.seed, part.from);
        let keys = keys(part, &self);
        Ok(match self.task {
            CuckooTask::Build => {
                let items: Vec<Item> = keys.iter().map(|key| (*key, value(*key))).collect();
                Staged::writing(move |canister: &mut C| {
                    add(canister.points(&self, seed)?, &self, from, &items)
                })
            }
            CuckooTask::Hit(lookups) | CuckooTask::Miss(lookups) => {
                Staged::new(false, move |canister: &mut C| {
                    let points = canister.points(&self, seed)?;
                    Ok(measure(|| points.look_up(&keys, lookups))?.into())
                })
            }
        })
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        if self.task == CuckooTask::Build {
            return Ok(None);
        }
        if self.engine == Engine::SQLITE {
            return sql::results(canister.sql(Storage::Stable)?, &script(part, self));
        }
        let points = canister.points(self, part.seed)?;
        let mut results = ContentDigest::default();
        for key in keys(part, self) {
            if let Some(value) = points.get(key)? {
                let place = results.value().rows;
                add_found(&mut results, place, &value);
            }
        }
        Ok(Some(results.value()))
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        if self.engine == Engine::SQLITE {
            let sql = canister.sql(Storage::Stable)?;
            return sql::content(sql, &[TABLE], position, limit, digest);
        }
        // The content does not depend on the seed.
        canister.points(self, 0)?.digest(position, limit, digest)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        if self.engine == Engine::SQLITE {
            return sql::inspect(canister.sql(Storage::Stable)?);
        }
        let points = canister.points(self, 0)?;
        Ok(Inspected {
            stored_bytes: points.stored_bytes()?,
            virtual_bytes: points.virtual_bytes(),
            cache_bytes: 0,
            sqlite: None,
            objects: Vec::new(),
        })
    }
}

fn in_sql<C: Canister>(job: Cuckoo, part: &JobPart) -> Result<Staged<C>> {
    if let CuckooTask::Hit(lookups) | CuckooTask::Miss(lookups) = job.task {
        require_single(job.engine, lookups)?;
    }
    let creates = job.task == CuckooTask::Build && part.from == 0;
    let measured = MeasuredScript::new(script(part, &job), false);
    Ok(Staged::new(measured.writes(), move |canister: &mut C| {
        let sql = canister.sql(Storage::Stable)?;
        if creates {
            sql.batch(CREATE)?;
        }
        measured.run(sql)
    }))
}

fn add(points: &mut dyn Points, job: &Cuckoo, from: u64, items: &[Item]) -> Result<PartCost> {
    if from == 0 {
        points.prepare()?;
    }
    let existing = points.items()?;
    let rows = items.len() as u64;
    let end = from.saturating_add(rows);
    if existing != from || end > job.items {
        let what = format!("add items {from} to {end} of {}: it has {existing}", job.items);
        return Err(unsupported(job, &what));
    }
    let added = measure(|| {
        points.add(items, end == job.items)?;
        Ok(Amount { rows, bytes: rows * ITEM_BYTES })
    });
    match added {
        Ok(measurement) => Ok(measurement.into()),
        // Some of the items may have been added: the system undoes that.
        Err(error) => trap(&error),
    }
}

fn unsupported(job: &Cuckoo, operation: &str) -> Error {
    Error::Unsupported { engine: job.engine, operation: operation.to_owned() }
}

/// Items in any engine of keys and values, looked up one by one.
///
/// A key is 8 bytes, big-endian: the order of keys is the order of items.
#[derive(Clone, Debug)]
pub struct ByKey<R> {
    /// The name of the engine.
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
        require_single(self.engine, lookups)?;
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
        self.records.scan(&position.to_be_bytes(), &mut |key, value| {
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
        })?;
        Ok(next)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.records.stored_bytes()
    }

    fn virtual_bytes(&self) -> u64 {
        self.records.virtual_bytes()
    }
}
