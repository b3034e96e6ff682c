//! The suite users in a canister: operations on rows of an id and a text, in transactions.
//!
//! A canister implements [`KeyValue`] for each of its engines, or takes one of these:
//!
//! ```text
//!   ById         rows in any engine of keys and values
//!   UsersTable   rows in any SQL engine
//!   floor        rows on bare stable memory
//! ```
//!
//! It lists them as [`RowEngines`], and exports the methods that are called by hand. Operations are
//! measured:
//!
//! ```text
//! begin │ operations … │ commit │ begin │ …      measured as a whole
//!         └ counter, operation, counter          each one, if asked for;
//!                              units of storage   between two of them
//! ```

mod by_hand;
mod engines;
pub mod floor;
mod table;

pub use by_hand::ByHand;
pub use engines::{
    ById, Database, Done, Failed, KeyValue, PayloadBytes, RowEngines, StoredRow, VisitRow, Writes,
    configure, describe, digest_rows,
};
pub use table::{Databases, UsersTable};

use crate::job::{Operation, Users, UsersTask};
use crate::work::{IdSet, Payload, Selected, check_single, selected};
use stablebench_harness::{
    MAX_EACH, Staged, Suite, instructions, max_rows, measure, measure_step, trap,
};
use stablebench_protocol::{
    Digest, Engine, Error, Inspected, JobPart, MAX_PAYLOAD_BYTES, OperationCost, PartCost, Result,
};
use stablebench_workload::{Amount, ContentDigest};
use std::ops::ControlFlow;

impl<C: RowEngines> Suite<C> for Users {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        let Self { engine, payload_bytes, task } = self;
        check_payload(payload_bytes)?;
        let UsersTask::Operation { operation, transaction } = task else {
            check_single(part)?;
            require_connection(engine)?;
            let vacuum = task == UsersTask::Vacuum;
            return Ok(Staged::writing(move |canister: &mut C| connection(canister, vacuum)));
        };
        let (from, count) = (part.from, part.count);
        let work = ValidOperation::of_part(&operation, from, count, payload_bytes)?;
        let manner = Manner { transaction, each: part.each };
        manner.check(&work)?;
        let (writes, text) = (operation.writes(), work.text(payload_bytes));
        Ok(Staged::new(writes, move |canister: &mut C| {
            let work = ValidOperation::of_part(&operation, from, count, payload_bytes)?;
            let engine = canister.engine(engine)?;
            engine.prepare()?;
            work.measure(engine, &text, manner)
        }))
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        let UsersTask::Operation { operation, .. } = &self.task else {
            return Ok(None);
        };
        let work = ValidOperation::of_part(operation, part.from, part.count, self.payload_bytes)?;
        let engine = canister.engine(self.engine)?;
        engine.prepare()?;
        work.results(engine)
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        check_rows(limit, max_rows(self.payload_bytes))?;
        let engine = canister.engine(self.engine)?;
        engine.prepare()?;
        digest_rows(engine, position, limit, digest)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        let engine = canister.engine(self.engine)?;
        // A connection that is closed has no cache.
        let (virtual_bytes, cache_bytes) = (engine.virtual_bytes(), engine.cache_bytes());
        engine.prepare()?;
        let stored_bytes = engine.stored_bytes()?;
        let sqlite = match self.engine {
            Engine::SQLITE => Some(canister.database()?.settings()?),
            _ => None,
        };
        Ok(Inspected { stored_bytes, virtual_bytes, cache_bytes, sqlite, objects: Vec::new() })
    }
}

fn require_connection(engine: Engine) -> Result<()> {
    match engine {
        Engine::SQLITE => Ok(()),
        _ => {
            let operation = "close or vacuum a connection".to_owned();
            Err(Error::Unsupported { engine, operation })
        }
    }
}

/// Closes or vacuums the connection.
fn connection<C: RowEngines>(canister: &mut C, vacuum: bool) -> Result<PartCost> {
    let database = canister.database()?;
    let measurement = if vacuum {
        database.open()?;
        measure_step(|| database.vacuum())
    } else {
        measure_step(|| {
            database.close();
            Ok(())
        })
    };
    measurement.map(PartCost::from)
}

/// Refuses zero rows, and more than `limit`.
fn check_rows(rows: u64, limit: u64) -> Result<()> {
    match rows {
        0 => Err(Error::NoRows),
        rows if rows > limit => Err(Error::TooManyRows { limit }),
        _ => Ok(()),
    }
}

/// Refuses payloads that are too long.
fn check_payload(bytes: u32) -> Result<()> {
    if bytes > MAX_PAYLOAD_BYTES {
        return Err(Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES });
    }
    Ok(())
}

/// An operation with valid arguments.
#[derive(Clone, Copy, Debug)]
enum ValidOperation<'a> {
    /// Changes rows.
    Write(Write, Selected<'a>),
    /// Looks up rows at each id.
    Lookup(Lookup, Selected<'a>),
    /// Reads the first rows.
    Scan(u64),
    /// Counts all rows.
    Count,
}

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Insert,
    Overwrite,
    Update,
    Delete,
}

/// The rows that are read at each id.
#[derive(Clone, Copy, Debug)]
enum Lookup {
    /// The row.
    Row,
    /// This number of rows in order.
    Range(u64),
}

/// The manner of doing work.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    /// Operations per transaction; without a number, all are one.
    transaction: Option<u64>,
    /// True if each operation is also measured.
    each: bool,
}

impl Manner {
    fn check(&self, work: &ValidOperation<'_>) -> Result<()> {
        if self.transaction == Some(0) {
            return Err(Error::EmptyTransaction);
        }
        if self.each && work.operations() > MAX_EACH {
            return Err(Error::TooManyEach { limit: MAX_EACH });
        }
        Ok(())
    }
}

impl<'a> ValidOperation<'a> {
    /// The whole of an operation; a message can process `limit` rows.
    fn new(operation: &'a Operation, limit: u64) -> Result<Self> {
        let count = operation.selection().map_or(1, |rows| rows.rows());
        Self::select(operation, 0, count, limit)
    }

    fn of_part(
        operation: &'a Operation,
        from: u64,
        count: u64,
        payload_bytes: u32,
    ) -> Result<Self> {
        Self::select(operation, from, count, max_rows(payload_bytes))
    }

    fn select(operation: &'a Operation, from: u64, count: u64, limit: u64) -> Result<Self> {
        let select = |rows| {
            check_rows(count, limit)?;
            selected(rows, from, count)
        };
        if operation.selection().is_none() && (from, count) != (0, 1) {
            return Err(Error::TooManyRows { limit: 1 });
        }
        Ok(match operation {
            Operation::Insert(rows) => Self::Write(Write::Insert, select(rows)?),
            Operation::Overwrite(rows) => Self::Write(Write::Overwrite, select(rows)?),
            Operation::Update(rows) => Self::Write(Write::Update, select(rows)?),
            Operation::Delete(rows) => Self::Write(Write::Delete, select(rows)?),
            Operation::Read(rows) => Self::Lookup(Lookup::Row, select(rows)?),
            Operation::Range { from, rows } => {
                let from = select(from)?;
                check_rows(from.rows().saturating_mul(*rows), limit)?;
                Self::Lookup(Lookup::Range(*rows), from)
            }
            Operation::Scan(rows) => {
                check_rows(*rows, limit)?;
                Self::Scan(*rows)
            }
            Operation::Count => Self::Count,
        })
    }

    fn operations(&self) -> u64 {
        match self {
            Self::Write(_, rows) | Self::Lookup(_, rows) => rows.rows(),
            Self::Scan(_) | Self::Count => 1,
        }
    }

    /// Returns the text that is written.
    fn text(&self, bytes: u32) -> String {
        match self {
            Self::Write(Write::Insert, _) => Payload::New.text(bytes),
            Self::Write(Write::Overwrite | Write::Update, _) => Payload::Updated.text(bytes),
            _ => String::new(),
        }
    }

    /// Refuses rows that the engine cannot store, and rows that exist or are missing and should
    /// not.
    fn check(&self, engine: &mut dyn KeyValue, payload_bytes: u32) -> Result<()> {
        match *self {
            Self::Write(write, rows) => {
                let ids = match write {
                    Write::Insert | Write::Delete => IdSet::once(rows)?,
                    Write::Overwrite | Write::Update => IdSet::of(rows),
                };
                engine.admit(&ids, if write == Write::Delete { 0 } else { payload_bytes })?;
                let wrong = match write {
                    Write::Insert => engine.first_present(&ids)?.map(|id| Error::IdExists { id }),
                    Write::Overwrite => None,
                    Write::Update | Write::Delete => {
                        engine.first_missing(&ids)?.map(|id| Error::IdMissing { id })
                    }
                };
                wrong.map_or(Ok(()), Err)
            }
            Self::Lookup(_, rows) => engine.admit(&IdSet::of(rows), 0),
            Self::Scan(_) | Self::Count => Ok(()),
        }
    }

    /// Does the work, measured.
    fn measure(
        &self,
        engine: &mut dyn KeyValue,
        payload: &str,
        manner: Manner,
    ) -> Result<PartCost> {
        let mut each = Vec::new();
        if manner.each {
            // Allocating is not part of the work.
            each.reserve_exact(self.operations() as usize);
        }
        let measurement = measure(|| match *self {
            Self::Write(write, rows) => {
                let transaction = manner.transaction.unwrap_or(u64::MAX);
                let costs = manner.each.then_some(&mut each);
                write_rows(engine, write, rows, payload, transaction, costs)
            }
            Self::Lookup(lookup, rows) if manner.each => {
                look_up_each(engine, lookup, rows, &mut each)
            }
            Self::Lookup(lookup, rows) => lookup.run(engine, rows),
            Self::Scan(limit) if manner.each => timed(&mut each, || engine.scan(limit)),
            Self::Scan(limit) => engine.scan(limit),
            Self::Count if manner.each => timed(&mut each, || count(engine)),
            Self::Count => count(engine),
        })?;
        Ok(PartCost { measurement, each })
    }

    /// Returns the digest of the rows that the work reads; nothing if it writes.
    fn results(&self, engine: &mut dyn KeyValue) -> Result<Option<Digest>> {
        let mut digest = ContentDigest::default();
        match *self {
            Self::Write(..) => return Ok(None),
            Self::Lookup(lookup, rows) => {
                // Refuses engines without an index.
                rows.part(0, 1).map_or(Ok(Amount::default()), |row| lookup.run(engine, row))?;
                rows.try_each(|id| lookup.digest(engine, id, &mut digest))?;
            }
            Self::Scan(limit) => drop(digest_rows(engine, 0, limit, &mut digest)?),
            Self::Count => {}
        }
        Ok(Some(digest.value()))
    }
}

impl Write {
    /// Changes rows and returns the size of the work.
    #[inline]
    fn run(self, engine: &mut dyn Writes, rows: Selected<'_>, payload: &str) -> Result<Amount> {
        match self {
            Self::Insert => engine.insert(rows, payload),
            Self::Overwrite => engine.overwrite(rows, payload),
            Self::Update => engine.update(rows, payload),
            Self::Delete => engine.delete(rows),
        }?;
        // A row that is removed has no payload.
        let rows = rows.rows();
        Ok(Amount { rows, bytes: rows * payload.len() as u64 })
    }
}

impl Lookup {
    /// Reads rows and returns the size of the work.
    #[inline]
    fn run(self, engine: &mut dyn KeyValue, rows: Selected<'_>) -> Result<Amount> {
        match self {
            Self::Row => engine.read(rows),
            Self::Range(length) => engine.range(rows, length),
        }
    }

    /// Adds the rows at an id to a digest.
    fn digest(self, engine: &mut dyn KeyValue, id: u64, digest: &mut ContentDigest) -> Result<()> {
        let Self::Range(rows) = self else {
            let visit: &mut VisitRow<'_> = &mut |row| {
                if row.id == id {
                    digest.add(id, row.payload);
                }
                ControlFlow::Break(())
            };
            return engine.visit(id, visit);
        };
        digest_rows(engine, id, rows, digest).map(drop)
    }
}

fn count(engine: &mut dyn KeyValue) -> Result<Amount> {
    engine.count().map(|rows| Amount { rows, bytes: 0 })
}

/// Changes rows in transactions of a number of operations.
fn write_rows(
    engine: &mut dyn KeyValue,
    write: Write,
    rows: Selected<'_>,
    payload: &str,
    transaction: u64,
    mut costs: Option<&mut Vec<OperationCost>>,
) -> Result<Amount> {
    let mut done = Amount::default();
    while let Some(part) = rows.part(done.rows, transaction) {
        let mut in_part = Amount::default();
        let outcome = engine.transaction(&mut |engine| match &mut costs {
            None => {
                in_part = write.run(engine, part, payload)?;
                Ok(())
            }
            Some(costs) => write_each(engine, write, part, payload, costs, &mut in_part),
        });
        if let Err(Failed { because, undone }) = outcome {
            if done.rows > 0 || (in_part.rows > 0 && !undone) {
                // A call that is refused changes nothing: the system undoes the rest.
                trap(&because);
            }
            return Err(because);
        }
        done += in_part;
    }
    Ok(done)
}

/// Changes rows one by one; `done` is the size of what succeeded.
fn write_each(
    engine: &mut dyn Writes,
    write: Write,
    rows: Selected<'_>,
    payload: &str,
    costs: &mut Vec<OperationCost>,
    done: &mut Amount,
) -> Result<()> {
    let mut units = engine.allocated_units()?;
    while let Some(row) = rows.part(done.rows, 1) {
        let before = instructions();
        let outcome = write.run(engine, row, payload);
        let after = instructions();
        *done += outcome?;
        let units_now = engine.allocated_units()?;
        let allocated = units_now.wrapping_sub(units) as i64;
        costs.push(OperationCost { instructions: after - before, allocated });
        units = units_now;
    }
    Ok(())
}

/// Looks ids up one by one.
fn look_up_each(
    engine: &mut dyn KeyValue,
    lookup: Lookup,
    rows: Selected<'_>,
    costs: &mut Vec<OperationCost>,
) -> Result<Amount> {
    let mut found = Amount::default();
    let mut looked_up = 0;
    while let Some(row) = rows.part(looked_up, 1) {
        found += timed(costs, || lookup.run(engine, row))?;
        looked_up += 1;
    }
    Ok(found)
}

/// Measures an operation that takes no storage.
fn timed(
    costs: &mut Vec<OperationCost>,
    operation: impl FnOnce() -> Result<Amount>,
) -> Result<Amount> {
    let before = instructions();
    let outcome = operation();
    let after = instructions();
    costs.push(OperationCost { instructions: after - before, allocated: 0 });
    outcome
}
