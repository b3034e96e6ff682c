//! The suite cuckoo: a part of its jobs, on the store that it names.

use crate::host::Run;
use crate::points::{Item, Points};
use crate::sql::{self, Measured, Table};
use crate::{Canister, MAX_MESSAGE_ROWS, instructions, measure, trap};
use stablebench_protocol::{
    Cuckoo, CuckooTask, Digest, DigestPart, Engine, Error, Inspected, Lookups, Part, PointStore,
    Result, Storage, Worked,
};
use stablebench_workload::cuckoo::items::{ITEM_BYTES, value};
use stablebench_workload::cuckoo::model::add_found;
use stablebench_workload::cuckoo::{self, CREATE};
use stablebench_workload::{Amount, ContentDigest};

const TABLE: Table<'static> = Table { name: "cuckoo", columns: "id, value", order: "id" };

pub fn staged<C: Canister>(job: &Cuckoo, part: &Part) -> Result<Run<C>> {
    if part.count > MAX_MESSAGE_ROWS {
        return Err(Error::TooManyRows { limit: MAX_MESSAGE_ROWS });
    }
    if part.each {
        return Err(unsupported(job.store, "measure each lookup".to_owned()));
    }
    let job = *job;
    if job.store == PointStore::Sqlite {
        return on_sql(job, part);
    }
    let (seed, from) = (part.seed, part.from);
    let keys = cuckoo::keys(part, &job);
    Ok(match job.task {
        CuckooTask::Build => {
            let items: Vec<Item> = keys.iter().map(|key| (*key, value(*key))).collect();
            Box::new(move |canister: &mut C| add(canister.points(&job, seed)?, &job, from, &items))
        }
        CuckooTask::Hit(lookups) | CuckooTask::Miss(lookups) => {
            Box::new(move |canister: &mut C| {
                let points = canister.points(&job, seed)?;
                let measurement = measure(|| points.look_up(&keys, lookups))?;
                Ok(Worked { measurement, each: Vec::new() })
            })
        }
    })
}

pub fn results<C: Canister>(canister: &mut C, job: &Cuckoo, part: &Part) -> Result<Option<Digest>> {
    if job.task == CuckooTask::Build {
        return Ok(None);
    }
    if job.store == PointStore::Sqlite {
        return sql::results(canister.sql(Storage::Stable)?, &cuckoo::script(part, job));
    }
    let points = canister.points(job, part.seed)?;
    let mut results = ContentDigest::default();
    for key in cuckoo::keys(part, job) {
        if let Some(value) = points.get(key)? {
            let place = results.value().rows;
            add_found(&mut results, place, &value);
        }
    }
    Ok(Some(results.value()))
}

fn on_sql<C: Canister>(job: Cuckoo, part: &Part) -> Result<Run<C>> {
    if let CuckooTask::Hit(Lookups::Batch(_)) | CuckooTask::Miss(Lookups::Batch(_)) = job.task {
        return Err(unsupported(job.store, "look up in batches".to_owned()));
    }
    let creates = job.task == CuckooTask::Build && part.from == 0;
    let measured = Measured::new(cuckoo::script(part, &job), false);
    Ok(Box::new(move |canister: &mut C| {
        let sql = canister.sql(Storage::Stable)?;
        if creates {
            sql.batch(CREATE)?;
        }
        measured.run(sql)
    }))
}

fn add(points: &mut dyn Points, job: &Cuckoo, from: u64, items: &[Item]) -> Result<Worked> {
    if from == 0 {
        points.prepare()?;
    }
    let there = points.items()?;
    let rows = items.len() as u64;
    let end = from.saturating_add(rows);
    if there != from || end > job.items {
        let what = format!("add items {from} to {end} of {}: it has {there}", job.items);
        return Err(unsupported(job.store, what));
    }
    let added = measure(|| {
        points.add(items, end == job.items)?;
        Ok(Amount { rows, bytes: rows * ITEM_BYTES })
    });
    match added {
        Ok(measurement) => Ok(Worked { measurement, each: Vec::new() }),
        // Some of the items may be there; the system takes them away again.
        Err(error) => trap(&error),
    }
}

pub fn content<C: Canister>(
    canister: &mut C,
    job: &Cuckoo,
    part: Option<DigestPart>,
    limit: u64,
) -> Result<DigestPart> {
    if job.store == PointStore::Sqlite {
        return sql::content(canister.sql(Storage::Stable)?, &[TABLE], part, limit);
    }
    let part = part.unwrap_or_default();
    let mut digest = ContentDigest::from(part.digest);
    // Which seed the keys are of does not matter to who reads all of them.
    let next = canister.points(job, 0)?.digest(part.position, limit, &mut digest)?;
    let digest: Digest = digest.value();
    Ok(DigestPart {
        digest,
        position: next.unwrap_or(digest.rows),
        done: next.is_none(),
        message_instructions: instructions(),
    })
}

pub fn inspect<C: Canister>(canister: &mut C, job: &Cuckoo) -> Result<Inspected> {
    if job.store == PointStore::Sqlite {
        return sql::inspect(canister.sql(Storage::Stable)?);
    }
    let points = canister.points(job, 0)?;
    Ok(Inspected {
        stored_bytes: points.stored_bytes()?,
        virtual_bytes: points.virtual_bytes(),
        cache_bytes: 0,
        sqlite: None,
        objects: Vec::new(),
    })
}

/// What a store cannot do.
pub fn unsupported(store: PointStore, operation: String) -> Error {
    Error::Unsupported { engine: engine(store), operation }
}

fn engine(store: PointStore) -> Engine {
    match store {
        PointStore::Cuckoo(_) => Engine::Cuckoo,
        PointStore::Btree => Engine::Btree,
        PointStore::Sqlite => Engine::Sqlite,
        PointStore::Array => Engine::Array,
    }
}
