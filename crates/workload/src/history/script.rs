//! The work in SQL. Commits, branches and merges are functions that a statement calls.

use super::{BRANCH, Version, changed_ids, step};
use crate::sql::{Call, Script, Transaction, Value};
use stablebench_protocol::{History, HistoryTask, Part};

const CREATE: &str = "CREATE TABLE history (id INTEGER PRIMARY KEY, value TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO history (id, value) VALUES (?, ?)";
const COMMIT: &str = "SELECT dolt_commit('-A', '-m', 'work')";

/// How a part is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Statements without parameters, whose rows nobody wants.
    Batch(String),
    /// Statements and what they are executed with.
    Script(Script),
}

/// The work of a part.
pub fn work(job: &History, part: &Part) -> Work {
    let rows = job.rows;
    match job.task {
        HistoryTask::Create => Work::Batch(format!("{CREATE};{COMMIT};")),
        HistoryTask::Insert => Work::Script(insert(part)),
        HistoryTask::Change(changed) => Work::Script(one(change(rows, changed), true)),
        HistoryTask::Commit => Work::Script(one(COMMIT.to_owned(), true)),
        HistoryTask::Branch => Work::Script(one(branch(), true)),
        HistoryTask::Checkout => Work::Script(one(checkout(BRANCH), true)),
        HistoryTask::Merge => Work::Script(one(format!("SELECT dolt_merge('{BRANCH}')"), true)),
        HistoryTask::Diff => Work::Script(one(diff("HEAD", "WORKING"), false)),
        HistoryTask::DiffBranch => Work::Script(one(diff("main", BRANCH), false)),
        HistoryTask::Diverge(changed) => Work::Batch(diverge(rows, changed)),
        HistoryTask::Part(changed) => {
            let last = rows.saturating_sub(1);
            let value = Version::ChangedHere.value(last);
            let here = format!("UPDATE history SET value = '{value}' WHERE id = {last}");
            Work::Batch(format!("{}{here};{COMMIT};", diverge(rows, changed)))
        }
    }
}

fn insert(part: &Part) -> Script {
    let row = |id: u64| {
        let parameters = vec![Value::Integer(id as i64), Value::Text(Version::Inserted.value(id))];
        vec![Call { statement: 0, parameters }]
    };
    Script {
        statements: vec![INSERT.to_owned()],
        operations: (part.from..part.from.saturating_add(part.count)).map(row).collect(),
        writes: true,
        ..Script::default()
    }
}

/// One statement, a transaction of its own.
fn one(statement: String, writes: bool) -> Script {
    Script {
        statements: vec![statement],
        operations: vec![vec![Call { statement: 0, parameters: Vec::new() }]],
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

/// The value is put together as [`Version::value`] does.
fn change(rows: u64, changed: u64) -> String {
    let value =
        "substr(printf('changed-%08d-', id) || replace(hex(zeroblob(50)), '0', '.'), 1, 100)";
    let last = changed_ids(rows, changed).last().unwrap_or(0);
    let step = step(rows, changed);
    format!("UPDATE history SET value = {value} WHERE id <= {last} AND id % {step} = 0")
}

fn diverge(rows: u64, changed: u64) -> String {
    let (branch, there, back) = (branch(), checkout(BRANCH), checkout("main"));
    format!("{branch};{there};{};{COMMIT};{back};", change(rows, changed))
}

fn diff(from: &str, to: &str) -> String {
    format!(
        "SELECT diff_type, from_id, from_value, to_id, to_value \
         FROM dolt_diff_history('{from}', '{to}') ORDER BY to_id"
    )
}
