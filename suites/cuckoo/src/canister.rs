//! The suite cuckoo in a canister: items in the engine of the job, or in SQL.

mod points;

pub use points::{ByKey, Item, Points, require_single};

use crate::job::{Cuckoo, CuckooTask};
use crate::work::{CREATE, ITEM_BYTES, add_found, keys, script, value};
use stablebench_harness::sql::{self, MeasuredScript, Table};
use stablebench_harness::{Canister, MAX_MESSAGE_ROWS, Staged, Suite, measure, trap};
use stablebench_protocol::{Digest, Engine, Error, Inspected, Part, PartCost, Result, Storage};
use stablebench_workload::{Amount, ContentDigest};

const TABLE: Table<'static> = Table { name: "cuckoo", columns: "id, value", order: "id" };

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

impl<C: PointEngines> Suite<C> for Cuckoo {
    fn stage(self, part: &Part) -> Result<Staged<C>> {
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

    fn results(&self, canister: &mut C, part: &Part) -> Result<Option<Digest>> {
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

fn in_sql<C: Canister>(job: Cuckoo, part: &Part) -> Result<Staged<C>> {
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
