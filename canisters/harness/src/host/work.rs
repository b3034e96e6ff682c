//! Work on rows: checks first, then the work, measured.

use super::perform::{Manner, perform};
use super::task::{Task, Write};
use super::{Host, MAX_EACH};
use crate::{Canister, KeyValue};
use stablebench_protocol::{
    Engine, Error, Measurement, Operation, Result, Selection, Work, Worked,
};
use stablebench_workload::Ids;

impl<C: Canister> Host<C> {
    /// Does any work.
    ///
    /// # Errors
    ///
    /// Where the arguments are unsound, rows are there that must not be, or are missing
    /// that must be there.
    pub fn work(&mut self, work: &Work) -> Result<Worked> {
        let (task, manner) = self.parse(work)?;
        self.checked(work.engine, manner, |_| Ok(task))
    }

    /// Does work that changes no rows.
    ///
    /// # Errors
    ///
    /// Those of [`work`](Self::work); where the work would change rows.
    pub fn look(&mut self, work: &Work) -> Result<Worked> {
        let (task, manner) = self.parse(work)?;
        if task.writes() {
            return Err(Error::WritesInQuery);
        }
        self.checked(work.engine, manner, |_| Ok(task))
    }

    /// Adds `rows` rows from `first`, `step` apart.
    ///
    /// # Errors
    ///
    /// Where the ids are unsound or exist already.
    pub fn add(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement> {
        self.measure(engine, Operation::Insert(Selection::Step { first, step, rows }))
    }

    /// Adds rows between the rows around the half; see [`Ids::middle`].
    ///
    /// # Errors
    ///
    /// Where they do not fit there, or exist already.
    pub fn insert_middle(&mut self, engine: Engine, rows: u64) -> Result<Measurement> {
        self.place(engine, rows, Ids::middle)
    }

    /// Adds rows after the last; see [`Ids::end`].
    ///
    /// # Errors
    ///
    /// Where ids would overflow.
    pub fn insert_end(&mut self, engine: Engine, rows: u64) -> Result<Measurement> {
        self.place(engine, rows, Ids::end)
    }

    /// Looks rows up, one by one. Ids that are missing are looked up too; the
    /// measurement's `rows` are those found.
    ///
    /// # Errors
    ///
    /// Where the ids are unsound.
    pub fn read(
        &mut self,
        engine: Engine,
        first: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        self.measure(engine, Operation::Read(Selection::Step { first, step, rows }))
    }

    /// Reads the first `limit` rows.
    ///
    /// # Errors
    ///
    /// Where the limit is 0 or too high.
    pub fn scan(&mut self, engine: Engine, limit: u64) -> Result<Measurement> {
        self.measure(engine, Operation::Scan(limit))
    }

    /// Replaces the payloads of rows by those of updated ones.
    ///
    /// # Errors
    ///
    /// Where the ids are unsound or one is missing.
    pub fn update(
        &mut self,
        engine: Engine,
        first: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        self.measure(engine, Operation::Update(Selection::Step { first, step, rows }))
    }

    /// Removes rows.
    ///
    /// # Errors
    ///
    /// Where the ids are unsound or one is missing.
    pub fn delete(
        &mut self,
        engine: Engine,
        first: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        self.measure(engine, Operation::Delete(Selection::Step { first, step, rows }))
    }

    fn measure(&mut self, engine: Engine, operation: Operation) -> Result<Measurement> {
        let work = Work { engine, operation, transaction: None, each: false };
        self.work(&work).map(|worked| worked.measurement)
    }

    fn place(
        &mut self,
        engine: Engine,
        rows: u64,
        choose: impl FnOnce(Option<u64>, u64) -> Result<Ids>,
    ) -> Result<Measurement> {
        self.check_rows(rows)?;
        let worked = self.checked(engine, Manner::default(), |engine| {
            let ids = choose(engine.last_id()?, rows)?;
            Ok(Task::Write(Write::Insert, ids.into()))
        })?;
        Ok(worked.measurement)
    }

    pub(super) fn parse<'a>(&self, work: &'a Work) -> Result<(Task<'a>, Manner)> {
        let task = Task::new(&work.operation, self.max_rows())?;
        if work.transaction == Some(0) {
            return Err(Error::EmptyTransaction);
        }
        if work.each && task.operations() > MAX_EACH {
            return Err(Error::TooManyEach { limit: MAX_EACH });
        }
        Ok((task, Manner { transaction: work.transaction, each: work.each }))
    }

    /// Checks, which leave the engine as they found it, passed or not; then the work.
    fn checked<'a>(
        &mut self,
        engine: Engine,
        manner: Manner,
        choose: impl FnOnce(&mut dyn KeyValue) -> Result<Task<'a>>,
    ) -> Result<Worked> {
        let payload_bytes = self.payload_bytes;
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        let checked = choose(engine).and_then(|task| {
            task.check(engine, payload_bytes)?;
            Ok(task)
        });
        engine.settle();
        let task = checked?;
        let payload = task.payload(payload_bytes);
        perform(engine, &task, &payload, manner)
    }
}
