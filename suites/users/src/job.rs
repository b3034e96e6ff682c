//! Jobs of the suite: work on rows, random deletes and inserts, and work on the connection of SQLite.

use crate::types::{Operation, Selection, Users, UsersTask};
use crate::work::{STEP, Selected};
use anyhow::Result;
use stablebench_protocol::{self as protocol, Engine, Part};
use stablebench_suite::job::{Chosen, Job, Work as Jobs};

use crate::rows::{Access, Churn, Table, Verb, Work};

/// The rows of an engine, on which jobs are done.
#[derive(Clone, Copy, Debug)]
pub struct EngineRows {
    pub engine: Engine,
    /// Bytes of each row's text.
    pub payload: u32,
}

/// A task, and the rows on which it is done.
#[derive(Clone, Copy, Debug)]
struct Planned {
    rows: EngineRows,
    task: Task,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Rows { table: Table, work: Work },
    Churn { rows: u64, deletes: bool },
    Close,
    Vacuum,
}

impl EngineRows {
    /// Work on rows, which follow from the seed.
    pub fn rows(self, table: Table, work: Work) -> Job {
        self.job(Task::Rows { table, work })
    }

    /// Inserts all rows of a table.
    pub fn populate(self, rows: u64) -> Job {
        self.rows(Table::Empty, Work::new(Verb::Insert, Access::End, rows))
    }

    /// Random deletes of a churn, or its inserts.
    pub fn churn(self, rows: u64, deletes: bool) -> Job {
        self.job(Task::Churn { rows, deletes })
    }

    /// Closes the connection of SQLite.
    pub fn close(self) -> Job {
        self.job(Task::Close)
    }

    /// `VACUUM`.
    pub fn vacuum(self) -> Job {
        self.job(Task::Vacuum)
    }

    fn job(self, task: Task) -> Job {
        Job::new(Planned { rows: self, task })
    }
}

impl Jobs for Planned {
    fn choose(&self, operations: u64, seed: u64) -> Result<Box<dyn Chosen>> {
        let task = match self.task {
            Task::Rows { table, work } => {
                let work = Work { operations, ..work };
                let operation = work.operation(table, seed)?;
                UsersTask::Operation { operation, transaction: work.transaction }
            }
            Task::Churn { rows, deletes } => {
                let churn = Churn::of(rows, seed);
                let operation = match deletes {
                    true => Operation::Delete(Selection::List(churn.deleted)),
                    false => Operation::Insert(Selection::List(churn.inserted)),
                };
                UsersTask::Operation { operation, transaction: None }
            }
            Task::Close => UsersTask::Close,
            Task::Vacuum => UsersTask::Vacuum,
        };
        let EngineRows { engine, payload } = self.rows;
        let job = Users { engine, payload_bytes: payload, task };
        let encoded = protocol::Job::new(&job);
        Ok(Box::new(WithRows { job, encoded, seed, operations }))
    }

    fn is_random(&self) -> bool {
        !matches!(self.task, Task::Rows { table: Table::Empty, work } if work.access == Access::End)
    }

    fn payload(&self) -> Option<u32> {
        matches!(self.task, Task::Rows { .. }).then_some(self.rows.payload)
    }

    fn most_operations(&self, rows: u64) -> Option<u64> {
        match self.task {
            // The range of ids is limited.
            Task::Rows { work: Work { verb: Verb::Insert, .. }, .. } => {
                Some(u64::MAX / STEP - rows)
            }
            Task::Rows { work, .. } => Some(work.operations.min(rows)),
            Task::Churn { .. } | Task::Close | Task::Vacuum => None,
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
    fn part(&self, from: u64, count: u64, each: bool) -> Part {
        let of = |job: protocol::Job, from, count| Part { job, seed: self.seed, from, count, each };
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

    fn whole(&self) -> Part {
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

    const ROWS: EngineRows = EngineRows { engine: Engine::BTREE, payload: 7 };

    fn chosen(table: Table, work: Work) -> Box<dyn Chosen> {
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
            let chosen = chosen(Table::Populated(100), Work::new(Verb::Insert, access, 30));
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
            let chosen = chosen(Table::Populated(100), Work::new(verb, Access::All, 100));
            assert!(chosen.is_single() && chosen.ids().unwrap().is_none());
            assert_eq!((chosen.whole().from, chosen.whole().count), (0, 1));
            assert_eq!(populated(100).execute(&chosen.whole()).unwrap().rows, 100);
        }
    }

    #[test]
    fn only_populating_is_the_same_for_every_seed() {
        assert!(!ROWS.populate(100).is_random());
        let uniform = Work::new(Verb::Read, Access::Uniform, 5);
        assert!(ROWS.rows(Table::Populated(100), uniform).is_random());
        assert!(ROWS.churn(100, true).is_random());
    }
}
