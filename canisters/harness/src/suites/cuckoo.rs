//! The suite cuckoo: a part of its jobs, on the store that it names.

use crate::points::{Item, Points};
use crate::sql::{self, Table};
use crate::{Canister, MAX_MESSAGE_ROWS, instructions, measure, trap};
use stablebench_protocol::{
    Cuckoo, CuckooTask, Digest, DigestPart, Engine, Error, Inspected, Lookups, Part, Performed,
    PointStore, Result, Storage,
};
use stablebench_workload::cuckoo::items::{ITEM_BYTES, value};
use stablebench_workload::cuckoo::model::add_found;
use stablebench_workload::cuckoo::{self, CREATE};
use stablebench_workload::{Amount, ContentDigest};

const TABLE: Table<'static> = Table { name: "cuckoo", columns: "id, value", order: "id" };

pub fn perform<C: Canister>(canister: &mut C, job: &Cuckoo, part: &Part) -> Result<Performed> {
    if part.count > MAX_MESSAGE_ROWS {
        return Err(Error::TooManyRows { limit: MAX_MESSAGE_ROWS });
    }
    if part.each {
        return Err(unsupported(job.store, "measure each lookup".to_owned()));
    }
    if job.store == PointStore::Sqlite {
        return on_sql(canister, job, part);
    }
    let points = canister.points(job, part.seed)?;
    let keys = cuckoo::keys(part, job);
    match job.task {
        CuckooTask::Build => add(points, job, part, &keys),
        CuckooTask::Hit(lookups) | CuckooTask::Miss(lookups) => look_up(points, &keys, lookups),
    }
}

fn on_sql<C: Canister>(canister: &mut C, job: &Cuckoo, part: &Part) -> Result<Performed> {
    if let CuckooTask::Hit(Lookups::Batch(_)) | CuckooTask::Miss(Lookups::Batch(_)) = job.task {
        return Err(unsupported(job.store, "look up in batches".to_owned()));
    }
    let sql = canister.sql(Storage::Stable)?;
    if job.task == CuckooTask::Build && part.from == 0 {
        sql.batch(CREATE)?;
    }
    sql::perform(sql, &cuckoo::script(part, job), false)
}

fn add(points: &mut dyn Points, job: &Cuckoo, part: &Part, keys: &[u64]) -> Result<Performed> {
    if part.from == 0 {
        points.prepare()?;
    }
    let there = points.items()?;
    let end = part.from.saturating_add(part.count);
    if there != part.from || end > job.items {
        let what = format!("add items {} to {end} of {}: it has {there}", part.from, job.items);
        return Err(unsupported(job.store, what));
    }
    let items: Vec<Item> = keys.iter().map(|key| (*key, value(*key))).collect();
    let rows = part.count;
    let added = measure(|| {
        points.add(&items, end == job.items)?;
        Ok(Amount { rows, bytes: rows * ITEM_BYTES })
    });
    match added {
        Ok(measurement) => Ok(Performed { measurement, each: Vec::new(), results: None }),
        // Some of the items may be there; the system takes them away again.
        Err(error) => trap(&error),
    }
}

fn look_up(points: &mut dyn Points, keys: &[u64], lookups: Lookups) -> Result<Performed> {
    let measurement = measure(|| points.look_up(keys, lookups))?;
    let mut results = ContentDigest::default();
    for key in keys {
        if let Some(value) = points.get(*key)? {
            let place = results.value().rows;
            add_found(&mut results, place, &value);
        }
    }
    Ok(Performed { measurement, each: Vec::new(), results: Some(results.value()) })
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
