//! The history suite: a table whose rows are changed, committed, branched and merged.
//!
//! ```text
//!   CREATE TABLE history (id INTEGER PRIMARY KEY, value TEXT NOT NULL)
//!
//!   id      0, 1, 2, …
//!   value   row-00000042-     and dots, 100 bytes: as inserted
//!           changed-00000042- the same: changed
//!           here-00000000-    the same: the row that is changed on the first branch
//! ```
//!
//! Changed rows are spread evenly over the table, starting with its first row. The row that is
//! changed on the first branch is the last. Commits, branches and merges are SQL functions of
//! DoltLite.

use crate::job::{History, HistoryTask};
use stablebench_protocol::{Digest, JobPart, Result};
use stablebench_workload::sql::{Script, StatementCall, Transaction, Value, ValueRef, add_row};
use stablebench_workload::{ContentDigest, Expected, Model};

/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;

/// The second branch.
pub const BRANCH: &str = "other";

/// Bytes of a commit's hash in hexadecimal.
const HASH_BYTES: u64 = 40;

/// The version of a row, which its value shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    #[default]
    Inserted,
    Changed,
    ChangedHere,
}

impl Version {
    fn value(self, id: u64) -> String {
        let word = match self {
            Self::Inserted => "row",
            Self::Changed => "changed",
            Self::ChangedHere => "here",
        };
        format!("{:.<VALUE_BYTES$}", format!("{word}-{id:08}-"))
    }
}

/// The distance between rows that are changed, so that `changed` of `rows` are.
fn step(rows: u64, changed: u64) -> u64 {
    (rows / changed.max(1)).max(1)
}

/// The ids of rows that are changed.
fn changed_ids(rows: u64, changed: u64) -> impl Iterator<Item = u64> {
    let step = step(rows, changed);
    (0..changed.min(rows)).map(move |number| number * step)
}

const CREATE: &str = "CREATE TABLE history (id INTEGER PRIMARY KEY, value TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO history (id, value) VALUES (?, ?)";
const COMMIT: &str = "SELECT dolt_commit('-A', '-m', 'work')";

/// A part in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlPart {
    /// Statements without parameters, whose rows are ignored.
    Batch(String),
    /// Statements and their parameters.
    Script(Script),
}

/// Returns a part in SQL.
pub fn sql_part(job: &History, part: &JobPart) -> SqlPart {
    let rows = job.rows;
    match job.task {
        HistoryTask::Create => SqlPart::Batch(format!("{CREATE};{COMMIT};")),
        HistoryTask::Insert => SqlPart::Script(insert(part)),
        HistoryTask::Change(changed) => SqlPart::Script(one(change_sql(rows, changed), true)),
        HistoryTask::Commit => SqlPart::Script(one(COMMIT.to_owned(), true)),
        HistoryTask::Branch => SqlPart::Script(one(branch(), true)),
        HistoryTask::Checkout => SqlPart::Script(one(checkout(BRANCH), true)),
        HistoryTask::Merge => SqlPart::Script(one(format!("SELECT dolt_merge('{BRANCH}')"), true)),
        HistoryTask::Diff => SqlPart::Script(one(diff_sql("HEAD", "WORKING"), false)),
        HistoryTask::DiffBranch => SqlPart::Script(one(diff_sql("main", BRANCH), false)),
        HistoryTask::Diverge(changed) => SqlPart::Batch(diverge(rows, changed)),
        HistoryTask::Part(changed) => {
            let last = rows.saturating_sub(1);
            let value = Version::ChangedHere.value(last);
            let here = format!("UPDATE history SET value = '{value}' WHERE id = {last}");
            SqlPart::Batch(format!("{}{here};{COMMIT};", diverge(rows, changed)))
        }
    }
}

fn insert(part: &JobPart) -> Script {
    let row = |id: u64| {
        let parameters = vec![Value::Integer(id as i64), Value::Text(Version::Inserted.value(id))];
        vec![StatementCall { statement: 0, parameters }]
    };
    Script {
        statements: vec![INSERT.to_owned()],
        operations: (part.from..part.from.saturating_add(part.count)).map(row).collect(),
        writes: true,
        ..Script::default()
    }
}

/// One statement, which is its own transaction.
fn one(statement: String, writes: bool) -> Script {
    Script {
        statements: vec![statement],
        operations: vec![vec![StatementCall { statement: 0, parameters: Vec::new() }]],
        transaction: Transaction::Statement,
        writes,
        ..Script::default()
    }
}

fn branch() -> String {
    format!("SELECT dolt_branch('{BRANCH}')")
}

fn checkout(branch: &str) -> String {
    format!("SELECT dolt_checkout('{branch}')")
}

/// The value is the one of [`Version::value`].
fn change_sql(rows: u64, changed: u64) -> String {
    let value =
        "substr(printf('changed-%08d-', id) || replace(hex(zeroblob(50)), '0', '.'), 1, 100)";
    let last = changed_ids(rows, changed).last().unwrap_or(0);
    let step = step(rows, changed);
    format!("UPDATE history SET value = {value} WHERE id <= {last} AND id % {step} = 0")
}

fn diverge(rows: u64, changed: u64) -> String {
    let (branch, there, back) = (branch(), checkout(BRANCH), checkout("main"));
    format!("{branch};{there};{};{COMMIT};{back};", change_sql(rows, changed))
}

fn diff_sql(from: &str, to: &str) -> String {
    format!(
        "SELECT diff_type, from_id, from_value, to_id, to_value \
         FROM dolt_diff_history('{from}', '{to}') ORDER BY to_id"
    )
}

/// The table on the current branch, as it was committed there, and on the other branch.
#[derive(Clone, Debug, Default)]
pub struct HistoryModel {
    here: Vec<Version>,
    committed: Vec<Version>,
    other: Vec<Version>,
}

/// The result of a function that returns a number.
const NUMBER: Expected = Expected { rows: 1, bytes: 8, results: None };
/// The result of a function that returns a commit's hash.
const HASH: Expected = Expected { rows: 1, bytes: HASH_BYTES, results: None };

impl HistoryModel {
    fn task(&mut self, job: &History, part: &JobPart) -> Expected {
        match job.task {
            HistoryTask::Create => Expected::default(),
            HistoryTask::Insert => {
                let ids = part.from..part.from.saturating_add(part.count);
                let bytes =
                    ids.clone().map(|id| 8 + Version::Inserted.value(id).len() as u64).sum();
                self.here.resize(ids.end as usize, Version::Inserted);
                Expected { rows: part.count, bytes, results: None }
            }
            HistoryTask::Change(changed) => {
                let rows = change(&mut self.here, changed);
                Expected { rows, bytes: 0, results: None }
            }
            HistoryTask::Commit => {
                self.committed = self.here.clone();
                HASH
            }
            HistoryTask::Branch => {
                self.other = self.committed.clone();
                NUMBER
            }
            HistoryTask::Diverge(changed) => {
                self.diverge(changed);
                Expected::default()
            }
            HistoryTask::Part(changed) => {
                self.diverge(changed);
                if let Some(last) = self.here.last_mut() {
                    *last = Version::ChangedHere;
                }
                self.committed = self.here.clone();
                Expected::default()
            }
            HistoryTask::Checkout => {
                self.here = self.other.clone();
                self.committed = self.here.clone();
                NUMBER
            }
            HistoryTask::Merge => {
                for (here, there) in self.here.iter_mut().zip(&self.other) {
                    if *there == Version::Changed {
                        *here = *there;
                    }
                }
                self.committed = self.here.clone();
                HASH
            }
            HistoryTask::Diff => diff(&self.committed, &self.here),
            HistoryTask::DiffBranch => diff(&self.committed, &self.other),
        }
    }

    fn diverge(&mut self, changed: u64) {
        self.other = self.committed.clone();
        change(&mut self.other, changed);
    }
}

/// Changes rows and returns their number.
fn change(table: &mut [Version], changed: u64) -> u64 {
    let ids: Vec<u64> = changed_ids(table.len() as u64, changed).collect();
    for id in &ids {
        table[*id as usize] = Version::Changed;
    }
    ids.len() as u64
}

/// The rows that differ, before and after.
fn diff(before: &[Version], after: &[Version]) -> Expected {
    const MODIFIED: &str = "modified";
    let mut expected = Expected::default();
    let mut results = ContentDigest::default();
    for (id, (from, to)) in (0_u64..).zip(before.iter().zip(after)) {
        if from == to {
            continue;
        }
        let (from, to, number) = (from.value(id), to.value(id), ValueRef::Integer(id as i64));
        let columns = [
            ValueRef::Text(MODIFIED.as_bytes()),
            number,
            ValueRef::Text(from.as_bytes()),
            number,
            ValueRef::Text(to.as_bytes()),
        ];
        expected.bytes += columns.iter().map(|column| column.bytes()).sum::<u64>();
        add_row(&mut results, expected.rows, columns);
        expected.rows += 1;
    }
    Expected { results: Some(results.value()), ..expected }
}

impl Model for HistoryModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        Ok(self.task(&part.job.decode()?, part))
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (id, version) in (0_u64..).zip(&self.here) {
            let value = version.value(id);
            let columns = [ValueRef::Integer(id as i64), ValueRef::Text(value.as_bytes())];
            add_row(&mut digest, 0, columns);
        }
        digest.value()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_protocol::Job;

    fn done(model: &mut HistoryModel, task: HistoryTask) -> Expected {
        let count = if task == HistoryTask::Insert { 100 } else { 1 };
        let job = Job::new(&History { rows: 100, task });
        model.execute(&JobPart { job, seed: 1, from: 0, count, each: false }).unwrap()
    }

    fn filled() -> HistoryModel {
        let mut model = HistoryModel::default();
        for task in [HistoryTask::Create, HistoryTask::Insert, HistoryTask::Commit] {
            done(&mut model, task);
        }
        model
    }

    #[test]
    fn values_have_their_length_and_tell_their_row() {
        for (version, begins) in [
            (Version::Inserted, "row-00000042-."),
            (Version::Changed, "changed-00000042-."),
            (Version::ChangedHere, "here-00000042-."),
        ] {
            let value = version.value(42);
            assert!(value.starts_with(begins) && value.len() == VALUE_BYTES, "{value}");
        }
    }

    #[test]
    fn as_many_rows_are_changed_as_asked_for_and_differ_until_they_are_committed() {
        for changed in [1, 7, 10, 99, 100] {
            let mut model = filled();
            assert_eq!(done(&mut model, HistoryTask::Change(changed)).rows, changed);
            assert_eq!(done(&mut model, HistoryTask::Diff).rows, changed);
            done(&mut model, HistoryTask::Commit);
            assert_eq!(done(&mut model, HistoryTask::Diff).rows, 0);
        }
    }

    #[test]
    fn a_branch_is_left_as_it_is_and_merged_as_a_whole() {
        let mut model = filled();
        let before = model.content();
        done(&mut model, HistoryTask::Diverge(10));
        assert_eq!(model.content(), before);
        assert_eq!(done(&mut model, HistoryTask::DiffBranch).rows, 10);
        let mut there = model.clone();
        done(&mut there, HistoryTask::Checkout);
        let mut merged = model.clone();
        done(&mut merged, HistoryTask::Merge);
        assert_eq!(there.content(), merged.content());

        let mut parted = filled();
        done(&mut parted, HistoryTask::Part(10));
        assert_eq!(done(&mut parted, HistoryTask::DiffBranch).rows, 11, "one here, ten there");
        done(&mut parted, HistoryTask::Merge);
        assert_ne!(parted.content(), merged.content());
        assert_eq!(done(&mut parted, HistoryTask::DiffBranch).rows, 1);
    }
}
