//! Jobs of the users suite: work on rows, random deletes and inserts, and work on the connection of
//! SQLite.
//!
//! Work is an operation and the rows that it selects. Rows have the ids 0, 10, 20, …; rows that are
//! added in between end in 5.

use std::fmt;

use crate::job::{Operation, Selection, Users, UsersTask};
use crate::work::{Ids, STEP, Selected};
use anyhow::Result;
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{self as protocol, Engine, JobPart};
use stablebench_workload::Rng;
use stablebench_workload::random::{distinct, uniform, zipf};

use stablebench_suite::job::{Chosen, Job, Work};
use stablebench_suite::report::number::Grouped;

/// An operation on rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Insert,
    /// Upsert of rows that exist.
    Overwrite,
    Update,
    Delete,
    /// Lookups of rows that exist.
    Read,
    /// Lookups of rows that do not exist.
    Miss,
    /// Reads of so many rows in order, each from a row that exists.
    Range(u64),
    /// A read of all rows in order.
    Scan,
    /// The number of rows.
    Count,
}

/// The rows that an operation selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neighbours in the middle of the table.
    Middle,
    /// After the last row.
    End,
    /// Evenly spaced over all rows, ascending.
    Spread,
    /// Any row with the same likelihood.
    Uniform,
    /// The rows of [`Uniform`](Self::Uniform), in the order of their ids.
    Sorted,
    /// Any of so many neighbours in the middle, with the same likelihood.
    Among(u64),
    /// Some rows much more often than others.
    Zipf,
    /// All rows.
    All,
}

/// Work on the rows of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowWork {
    pub verb: Verb,
    pub access: Access,
    /// Rows, lookups or ranges.
    pub operations: u64,
    /// Operations a transaction; `None` for all in one.
    pub transaction: Option<u64>,
}

/// The ids of a table before the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableIds {
    /// No row yet.
    Empty,
    /// The ids 0, 10, 20, …
    Populated(u64),
    /// The same after random deletes and inserts.
    Churned(u64),
}

/// One row of so many is deleted by a churn, and another one inserted.
const CHURNED_ONE_IN: u64 = 10;

impl RowWork {
    /// Work in one transaction.
    pub fn new(verb: Verb, access: Access, operations: u64) -> Self {
        Self { verb, access, operations, transaction: None }
    }

    /// The operation as canisters take it, the same for every engine.
    ///
    /// # Errors
    ///
    /// If the rows do not fit into the table.
    pub fn operation(&self, table: TableIds, seed: u64) -> Result<Operation> {
        let selection = || self.select(&Keys::of(table, seed), seed);
        Ok(match self.verb {
            Verb::Insert => Operation::Insert(selection()?),
            Verb::Overwrite => Operation::Overwrite(selection()?),
            Verb::Update => Operation::Update(selection()?),
            Verb::Delete => Operation::Delete(selection()?),
            Verb::Read | Verb::Miss => Operation::Read(selection()?),
            Verb::Range(rows) => Operation::Range { from: selection()?, rows },
            Verb::Scan => Operation::Scan(self.operations),
            Verb::Count => Operation::Count,
        })
    }

    /// Returns `true` if the rows fit into a table of so many rows.
    pub fn fits(&self, rows: u64) -> bool {
        let last = rows.saturating_sub(1) * STEP;
        match (self.verb, self.access) {
            (Verb::Insert, Access::Middle) => Ids::middle(Some(last), self.operations).is_ok(),
            (Verb::Insert, Access::Spread | Access::Uniform | Access::Sorted) => {
                self.operations <= rows
            }
            _ => true,
        }
    }

    fn select(&self, keys: &Keys, seed: u64) -> Result<Selection> {
        let (rows, count) = (keys.rows, self.operations);
        // Sorted access selects the same rows as uniform access.
        let drawn = if self.access == Access::Sorted { Access::Uniform } else { self.access };
        let mut rng = random(seed, &format!("{} {drawn}", self.verb));
        let last = (rows > 0).then(|| keys.last());
        let absent = matches!(self.verb, Verb::Insert | Verb::Miss);
        let offset = if absent { STEP / 2 } else { 0 };
        let middle = |count: u64| (rows / 2).saturating_sub(count / 2);
        // A row can be inserted or deleted only once.
        let once = matches!(self.verb, Verb::Insert | Verb::Delete);
        let mut numbers = match self.access {
            Access::Middle if self.verb == Verb::Insert => {
                return Ok(step(Ids::middle(last, count)?));
            }
            Access::Middle => {
                let first = middle(count);
                (first..first + count.min(rows)).collect()
            }
            Access::End => return Ok(step(Ids::end(last, count)?)),
            Access::Spread | Access::All => {
                let apart = (rows / count.max(1)).max(1);
                return Ok(step(Ids::new(offset, STEP * apart, count)?));
            }
            Access::Zipf => zipf(&mut rng, rows, count),
            Access::Uniform | Access::Sorted if once => distinct(&mut rng, rows, count),
            Access::Uniform | Access::Sorted => uniform(&mut rng, rows, count),
            Access::Among(set) => {
                let set = set.min(rows);
                let first = middle(set);
                let drawn = uniform(&mut rng, set, count);
                drawn.into_iter().map(|number| first + number).collect()
            }
        };
        if self.access == Access::Sorted {
            numbers.sort_unstable();
        }
        let id = |number| keys.id(number) + offset;
        Ok(Selection::List(numbers.into_iter().map(id).collect()))
    }
}

/// The ids of a table, ascending.
struct Keys {
    rows: u64,
    /// `None` for 0, 10, 20, …
    ids: Option<Vec<u64>>,
}

impl Keys {
    fn of(table: TableIds, seed: u64) -> Self {
        match table {
            TableIds::Empty => Self { rows: 0, ids: None },
            TableIds::Populated(rows) => Self { rows, ids: None },
            TableIds::Churned(rows) => {
                let churn = Churn::of(rows, seed);
                let mut deleted = churn.deleted;
                deleted.sort_unstable();
                let all = (0..rows).map(|number| number * STEP);
                let mut ids: Vec<u64> =
                    all.filter(|id| deleted.binary_search(id).is_err()).collect();
                ids.extend(churn.inserted);
                ids.sort_unstable();
                Self { rows: ids.len() as u64, ids: Some(ids) }
            }
        }
    }

    fn id(&self, number: u64) -> u64 {
        match &self.ids {
            None => number * STEP,
            Some(ids) => ids.get(number as usize).copied().unwrap_or_default(),
        }
    }

    fn last(&self) -> u64 {
        self.id(self.rows.saturating_sub(1))
    }
}

/// Random rows that are deleted, and as many that are inserted between others.
pub struct Churn {
    pub deleted: Vec<u64>,
    pub inserted: Vec<u64>,
}

impl Churn {
    /// The churn of a populated table of so many rows.
    pub fn of(rows: u64, seed: u64) -> Self {
        let count = rows / CHURNED_ONE_IN;
        let mut rng = random(seed, "churn");
        let deleted = distinct(&mut rng, rows, count);
        let inserted = distinct(&mut rng, rows, count);
        Self {
            deleted: deleted.into_iter().map(|number| number * STEP).collect(),
            inserted: inserted.into_iter().map(|number| number * STEP + STEP / 2).collect(),
        }
    }
}

/// A generator for one purpose, so that one choice does not depend on another.
fn random(seed: u64, purpose: &str) -> Rng {
    let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(purpose).finalize();
    let mut start = [0; 8];
    start.copy_from_slice(&hash[..8]);
    Rng::new(u64::from_le_bytes(start))
}

fn step(ids: Ids) -> Selection {
    Selection::Step { first: ids.first(), step: ids.step(), rows: ids.rows() }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert => f.write_str("insert"),
            Self::Overwrite => f.write_str("overwrite"),
            Self::Update => f.write_str("update"),
            Self::Delete => f.write_str("delete"),
            Self::Read => f.write_str("read"),
            Self::Miss => f.write_str("read missing"),
            Self::Range(rows) => write!(f, "range of {}", Grouped(*rows)),
            Self::Scan => f.write_str("scan"),
            Self::Count => f.write_str("count"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Middle => "middle",
            Self::End => "end",
            Self::Spread => "evenly spaced",
            Self::Uniform => "uniform",
            Self::Sorted => "uniform, sorted",
            Self::Among(rows) => return write!(f, "among {}", Grouped(*rows)),
            Self::Zipf => "Zipf",
            Self::All => "all",
        };
        f.write_str(name)
    }
}

/// The rows of an engine, on which jobs are done.
#[derive(Clone, Copy, Debug)]
pub struct EngineRows {
    pub engine: Engine,
    /// Bytes of each row's text.
    pub payload: u32,
}

/// A task, and the rows on which it is done.
#[derive(Clone, Copy, Debug)]
struct RowsJob {
    rows: EngineRows,
    task: RowsTask,
}

#[derive(Clone, Copy, Debug)]
enum RowsTask {
    Rows { table: TableIds, work: RowWork },
    Churn { rows: u64, deletes: bool },
    Close,
    Vacuum,
}

impl EngineRows {
    /// Work on rows, which follow from the seed.
    pub fn rows(self, table: TableIds, work: RowWork) -> Job {
        self.job(RowsTask::Rows { table, work })
    }

    /// Inserts all rows of a table.
    pub fn populate(self, rows: u64) -> Job {
        self.rows(TableIds::Empty, RowWork::new(Verb::Insert, Access::End, rows))
    }

    /// Random deletes of a churn, or its inserts.
    pub fn churn(self, rows: u64, deletes: bool) -> Job {
        self.job(RowsTask::Churn { rows, deletes })
    }

    /// Closes the connection of SQLite.
    pub fn close(self) -> Job {
        self.job(RowsTask::Close)
    }

    /// `VACUUM`.
    pub fn vacuum(self) -> Job {
        self.job(RowsTask::Vacuum)
    }

    fn job(self, task: RowsTask) -> Job {
        Job::new(RowsJob { rows: self, task })
    }
}

impl Work for RowsJob {
    fn choose(&self, operations: u64, seed: u64) -> Result<Box<dyn Chosen>> {
        let task = match self.task {
            RowsTask::Rows { table, work } => {
                let work = RowWork { operations, ..work };
                let operation = work.operation(table, seed)?;
                UsersTask::Operation { operation, transaction: work.transaction }
            }
            RowsTask::Churn { rows, deletes } => {
                let churn = Churn::of(rows, seed);
                let operation = match deletes {
                    true => Operation::Delete(Selection::List(churn.deleted)),
                    false => Operation::Insert(Selection::List(churn.inserted)),
                };
                UsersTask::Operation { operation, transaction: None }
            }
            RowsTask::Close => UsersTask::Close,
            RowsTask::Vacuum => UsersTask::Vacuum,
        };
        let EngineRows { engine, payload } = self.rows;
        let job = Users { engine, payload_bytes: payload, task };
        let encoded = protocol::Job::new(&job);
        Ok(Box::new(WithRows { job, encoded, seed, operations }))
    }

    fn is_random(&self) -> bool {
        !matches!(
            self.task,
            RowsTask::Rows { table: TableIds::Empty, work } if work.access == Access::End
        )
    }

    fn payload(&self) -> Option<u32> {
        matches!(self.task, RowsTask::Rows { .. }).then_some(self.rows.payload)
    }

    fn most_operations(&self, rows: u64) -> Option<u64> {
        match self.task {
            // The range of ids is limited.
            RowsTask::Rows { work: RowWork { verb: Verb::Insert, .. }, .. } => {
                Some(u64::MAX / STEP - rows)
            }
            RowsTask::Rows { work, .. } => Some(work.operations.min(rows)),
            RowsTask::Churn { .. } | RowsTask::Close | RowsTask::Vacuum => None,
        }
    }
}

/// A job whose rows are chosen.
struct WithRows {
    job: Users,
    encoded: protocol::Job,
    seed: u64,
    operations: u64,
}

impl WithRows {
    fn selection(&self) -> Option<&Selection> {
        match &self.job.task {
            UsersTask::Operation { operation, .. } => operation.selection(),
            UsersTask::Close | UsersTask::Vacuum => None,
        }
    }

    /// The same work on the rows of a list.
    fn with_ids(&self, ids: Vec<u64>) -> Users {
        let mut job = self.job.clone();
        if let UsersTask::Operation { operation, .. } = &mut job.task {
            match operation {
                Operation::Insert(rows)
                | Operation::Overwrite(rows)
                | Operation::Update(rows)
                | Operation::Delete(rows)
                | Operation::Read(rows)
                | Operation::Range { from: rows, .. } => *rows = Selection::List(ids),
                Operation::Scan(_) | Operation::Count => {}
            }
        }
        job
    }
}

impl Chosen for WithRows {
    fn part(&self, from: u64, count: u64, each: bool) -> JobPart {
        let of =
            |job: protocol::Job, from, count| JobPart { job, seed: self.seed, from, count, each };
        match self.selection() {
            // A message without the ids of other messages is shorter.
            Some(Selection::List(ids)) if count < self.operations => {
                let part = ids.iter().skip(from as usize).take(count as usize);
                of(protocol::Job::new(&self.with_ids(part.copied().collect())), 0, count)
            }
            Some(_) => of(self.encoded.clone(), from, count),
            // Reading or counting all rows is one operation of a canister.
            None => of(self.encoded.clone(), 0, 1),
        }
    }

    fn whole(&self) -> JobPart {
        self.part(0, self.operations, false)
    }

    fn tables(&self) -> protocol::Job {
        let task = UsersTask::Operation { operation: Operation::Count, transaction: None };
        protocol::Job::new(&Users { task, ..self.job })
    }

    fn ids(&self) -> Result<Option<Vec<u64>>> {
        let Some(rows) = self.selection() else { return Ok(None) };
        let mut ids = Vec::new();
        Selected::new(rows)?.each(|id| ids.push(id));
        Ok(Some(ids))
    }

    fn is_single(&self) -> bool {
        self.selection().is_none()
    }
}

#[cfg(test)]
mod tests {
    use crate::work::UsersModel;
    use stablebench_workload::Model;

    use super::*;

    const EVERYWHERE: [Access; 6] = [
        Access::Middle,
        Access::Spread,
        Access::Uniform,
        Access::Sorted,
        Access::Among(7),
        Access::Zipf,
    ];

    fn ids(verb: Verb, access: Access, operations: u64, rows: u64) -> Vec<u64> {
        let work = RowWork::new(verb, access, operations);
        let operation = work.operation(TableIds::Populated(rows), 1).unwrap();
        let mut ids = Vec::new();
        Selected::new(operation.selection().unwrap()).unwrap().each(|id| ids.push(id));
        ids
    }

    fn numbers(verb: Verb, access: Access, operations: u64) -> Vec<u64> {
        ids(verb, access, operations, 1_000).into_iter().map(|id| id / STEP).collect()
    }

    #[test]
    fn sorted_rows_are_the_uniform_ones() {
        for verb in [Verb::Insert, Verb::Update, Verb::Read] {
            let mut uniform = numbers(verb, Access::Uniform, 100);
            assert!(!uniform.is_sorted());
            uniform.sort_unstable();
            assert_eq!(numbers(verb, Access::Sorted, 100), uniform);
        }
    }

    #[test]
    fn a_working_set_is_in_the_middle() {
        let mut found = numbers(Verb::Read, Access::Among(20), 500);
        found.sort_unstable();
        found.dedup();
        assert!(found.iter().copied().eq(490..510), "{found:?}");
        let all = numbers(Verb::Read, Access::Among(5_000), 500);
        assert!(all.iter().all(|row| *row < 1_000));
    }

    #[test]
    fn reads_select_rows_that_exist_and_inserts_rows_that_do_not() {
        for (verb, accesses, exist) in [
            (Verb::Read, &EVERYWHERE[..], true),
            (Verb::Update, &EVERYWHERE, true),
            (Verb::Delete, &[Access::Middle, Access::Uniform], true),
            (
                Verb::Insert,
                &[Access::Uniform, Access::Sorted, Access::Spread, Access::Middle, Access::End],
                false,
            ),
            (Verb::Miss, &[Access::Uniform], false),
        ] {
            for access in accesses {
                let ids = ids(verb, *access, 30, 100);
                assert_eq!(ids.len(), 30, "{verb} {access}");
                for id in ids {
                    assert_eq!(id % 10 == 0 && id < 1_000, exist, "{verb} {access} {id}");
                }
            }
        }
    }

    #[test]
    fn churn_keeps_the_number_of_rows() {
        let (mut model, churn) = (UsersModel::default(), Churn::of(200, 3));
        let all = Selection::Step { first: 0, step: STEP, rows: 200 };
        model.apply(&Operation::Insert(all), 3).unwrap();
        assert_eq!((churn.deleted.len(), churn.inserted.len()), (20, 20));
        model.apply(&Operation::Delete(Selection::List(churn.deleted.clone())), 3).unwrap();
        model.apply(&Operation::Insert(Selection::List(churn.inserted)), 3).unwrap();
        assert_eq!(model.rows(), 200);
        let keys = Keys::of(TableIds::Churned(200), 3);
        let list = Selection::List((0..200).map(|number| keys.id(number)).collect());
        assert_eq!(model.apply(&Operation::Read(list), 3).unwrap().rows, 200);
        let deleted = Operation::Read(Selection::List(churn.deleted));
        assert_eq!(model.apply(&deleted, 3).unwrap().rows, 0);
    }

    #[test]
    fn rows_fit_between_others_as_far_as_there_is_room() {
        let insert = |access, operations| RowWork::new(Verb::Insert, access, operations);
        assert!(insert(Access::Middle, 499).fits(1_000));
        assert!(!insert(Access::Middle, 501).fits(1_000));
        assert!(!insert(Access::Uniform, 1_001).fits(1_000));
        assert!(insert(Access::End, 1_001).fits(1_000));
    }

    const ROWS: EngineRows = EngineRows { engine: Engine::BTREE, payload: 7 };

    fn chosen(table: TableIds, work: RowWork) -> Box<dyn Chosen> {
        ROWS.rows(table, work).choose(work.operations, 1).unwrap()
    }

    /// Rows 0, 10, … as a model.
    fn populated(rows: u64) -> UsersModel {
        let mut model = UsersModel::default();
        let all = ROWS.populate(rows).choose(rows, 1).unwrap();
        // Several messages continue each other.
        model.execute(&all.part(0, 30, false)).unwrap();
        model.execute(&all.part(30, rows - 30, false)).unwrap();
        model
    }

    #[test]
    fn parts_are_the_whole() {
        for access in [Access::Middle, Access::Uniform] {
            let chosen = chosen(TableIds::Populated(100), RowWork::new(Verb::Insert, access, 30));
            let (mut whole, mut parts) = (populated(100), populated(100));
            whole.execute(&chosen.whole()).unwrap();
            for from in [0, 7, 14, 21, 28] {
                let part = chosen.part(from, 7.min(30 - from), false);
                assert!(part.job.work.len() <= chosen.whole().job.work.len());
                parts.execute(&part).unwrap();
            }
            assert_eq!(parts.content(), whole.content(), "{access}");
            assert_eq!(whole.content().rows, 130);
            assert_eq!(chosen.ids().unwrap().unwrap().len(), 30);
        }
    }

    #[test]
    fn reading_all_rows_is_one_operation_of_a_canister() {
        for verb in [Verb::Scan, Verb::Count] {
            let chosen = chosen(TableIds::Populated(100), RowWork::new(verb, Access::All, 100));
            assert!(chosen.is_single() && chosen.ids().unwrap().is_none());
            assert_eq!((chosen.whole().from, chosen.whole().count), (0, 1));
            assert_eq!(populated(100).execute(&chosen.whole()).unwrap().rows, 100);
        }
    }

    #[test]
    fn only_populating_is_the_same_for_every_seed() {
        assert!(!ROWS.populate(100).is_random());
        let uniform = RowWork::new(Verb::Read, Access::Uniform, 5);
        assert!(ROWS.rows(TableIds::Populated(100), uniform).is_random());
        assert!(ROWS.churn(100, true).is_random());
    }
}
