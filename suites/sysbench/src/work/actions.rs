//! The actions of operations, without any SQL: the script expresses them in SQL, the model applies
//! them to maps.
//!
//! Every row that a workload deletes is inserted again by the same operation, so that every row
//! exists when the next operation begins.

use super::tables::{C_BYTES, Record, Table, letters};
use super::{few, rng};
use crate::job::SysbenchWorkload::{self, *};
use crate::job::{Sysbench, SysbenchTask};
use stablebench_workload::Rng;

/// Rows per range, for most ranges.
pub const RANGE: u64 = 100;
/// Rows per range that is counted or joined.
pub const SHORT: u64 = 10;
/// Rows per range that is grouped.
pub const LONG: u64 = 1_000;
/// Rows of the second table that are joined.
pub const JOINED: u64 = 50;
/// Keys per list.
pub const POINTS: usize = 10;

/// The action of a statement. Ranges are given by their first row, or by their first `k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `c` of a row.
    Point(u64),
    /// `c` of [`RANGE`] rows.
    Range(u64),
    /// The sum of their `k`.
    Sum(u64),
    /// Their `c`, sorted.
    Order(u64),
    /// Their distinct `c`, sorted.
    Distinct(u64),
    /// Key and `c` of rows with a `k`.
    WithK(u64),
    /// All columns of [`POINTS`] rows, some of which may be equal.
    Points(Vec<u64>),
    /// The count of [`SHORT`] rows.
    Count(u64),
    /// The count of rows whose `k` is one of [`RANGE`] consecutive numbers.
    CountK(u64),
    /// Each `k` of [`LONG`] rows, sorted, and how many have it.
    Group(u64),
    /// The keys of [`SHORT`] rows and of those of the second table with the same `k`.
    Join(u64),
    /// The count of pairs of [`JOINED`] rows of the second table and main ones.
    JoinScan(u64),
    /// The count of rows of a table whose text contains another.
    Like(Table, String),
    /// Inserts a row that does not exist.
    Insert(Table, u64, Record),
    /// Inserts or replaces a row.
    Replace(Table, u64, Record),
    /// Changes `k`.
    SetK(u64, u64),
    /// Changes `c`.
    SetC(u64, String),
    /// Deletes a row.
    Delete(Table, u64),
}

/// The actions of operation `index` of a job; none for creating tables.
pub fn actions(job: &Sysbench, seed: u64, index: u64) -> Vec<Action> {
    match job.task {
        SysbenchTask::Create => Vec::new(),
        SysbenchTask::Populate => vec![populate(job.rows, seed, index)],
        SysbenchTask::Workload(of) => {
            let rng = rng(seed, super::name(of), index);
            match super::writes(of) {
                true => writes(of, job.rows, index, rng),
                false => reads(of, job.rows, rng),
            }
        }
    }
}

/// Inserts the main table's rows, then those of the second, then those of the third.
fn populate(rows: u64, seed: u64, index: u64) -> Action {
    let few = few(rows);
    let insert = |table, stream, row: u64| {
        let mut rng = rng(seed, stream, row);
        let record = match table {
            Table::Types => Record::types(&mut rng),
            Table::Main | Table::Second | Table::Bulk => Record::main(&mut rng, rows),
        };
        Action::Insert(table, row + 1, record)
    };
    if index < rows {
        insert(Table::Main, "sbtest1", index)
    } else if index - rows < few {
        insert(Table::Second, "sbtest2", index - rows)
    } else {
        insert(Table::Types, "sbtest_types", index - rows - few)
    }
}

/// The text that is searched in the main table; about one row in 320 contains it.
const SEARCHED: &str = "abc";

/// The actions of one operation; none if the workload writes.
fn reads(workload: SysbenchWorkload, rows: u64, mut rng: Rng) -> Vec<Action> {
    let rng = &mut rng;
    let action = match workload {
        PointSelect => Action::Point(row(rng, rows)),
        RangeSelect => Action::Range(range(rng, rows, RANGE)),
        SumRange => Action::Sum(range(rng, rows, RANGE)),
        OrderRange => Action::Order(range(rng, rows, RANGE)),
        DistinctRange => Action::Distinct(range(rng, rows, RANGE)),
        IndexScan => Action::WithK(row(rng, rows)),
        SelectRandomPoints => Action::Points((0..POINTS).map(|_| row(rng, rows)).collect()),
        SelectRandomRanges => Action::Count(range(rng, rows, SHORT)),
        CoveringIndexScan => Action::CountK(range(rng, rows, RANGE)),
        GroupbyScan => Action::Group(range(rng, rows, LONG)),
        IndexJoin => Action::Join(range(rng, rows, SHORT)),
        IndexJoinScan => Action::JoinScan(range(rng, few(rows), JOINED)),
        TypesTableScan => Action::Like(Table::Types, letters(rng, SEARCHED.len())),
        TableScan => Action::Like(Table::Main, SEARCHED.to_owned()),
        ReadOnly => {
            let mut actions = points(rng, rows);
            actions.extend(
                [Action::Range, Action::Sum, Action::Order, Action::Distinct]
                    .map(|action| action(range(rng, rows, RANGE))),
            );
            return actions;
        }
        BulkInsert | Insert | UpdateIndex | UpdateNonIndex | DeleteInsert | WriteOnly
        | TypesDeleteInsert | ReadWrite => return Vec::new(),
    };
    vec![action]
}

/// A random row of a table.
pub(super) fn row(rng: &mut Rng, rows: u64) -> u64 {
    1 + rng.below(rows)
}

/// The first of `length` consecutive rows.
fn range(rng: &mut Rng, rows: u64, length: u64) -> u64 {
    1 + rng.below(rows.saturating_sub(length).max(1))
}

/// Ten rows one by one.
fn points(rng: &mut Rng, rows: u64) -> Vec<Action> {
    (0..POINTS).map(|_| Action::Point(row(rng, rows))).collect()
}

/// The actions of operation `index`; none if the workload only reads.
fn writes(workload: SysbenchWorkload, rows: u64, index: u64, mut rng: Rng) -> Vec<Action> {
    let rng = &mut rng;
    match workload {
        BulkInsert => vec![Action::Insert(Table::Bulk, index + 1, Record::main(rng, rows))],
        Insert => vec![Action::Insert(Table::Main, rows + 1 + index, Record::main(rng, rows))],
        UpdateIndex => vec![set_k(rng, rows)],
        UpdateNonIndex => vec![set_c(rng, rows)],
        DeleteInsert => renew(rng, rows).to_vec(),
        WriteOnly => changes(rng, rows),
        TypesDeleteInsert => {
            let row = row(rng, few(rows));
            let record = Record::types(rng);
            vec![Action::Delete(Table::Types, row), Action::Replace(Table::Types, row, record)]
        }
        ReadWrite => {
            let mut actions = points(rng, rows);
            actions.push(Action::Range(range(rng, rows, RANGE)));
            actions.push(Action::Sum(range(rng, rows, RANGE)));
            actions.extend(changes(rng, rows));
            actions
        }
        PointSelect | RangeSelect | SumRange | OrderRange | DistinctRange | IndexScan
        | SelectRandomPoints | SelectRandomRanges | CoveringIndexScan | GroupbyScan | IndexJoin
        | IndexJoinScan | TypesTableScan | TableScan | ReadOnly => Vec::new(),
    }
}

/// Two updates, a delete and an insert.
fn changes(rng: &mut Rng, rows: u64) -> Vec<Action> {
    let mut actions = vec![set_k(rng, rows), set_c(rng, rows)];
    actions.extend(renew(rng, rows));
    actions
}

fn set_k(rng: &mut Rng, rows: u64) -> Action {
    Action::SetK(row(rng, rows), row(rng, rows))
}

fn set_c(rng: &mut Rng, rows: u64) -> Action {
    Action::SetC(row(rng, rows), letters(rng, C_BYTES))
}

/// Replaces a row by another.
fn renew(rng: &mut Rng, rows: u64) -> [Action; 2] {
    let row = row(rng, rows);
    let record = Record::main(rng, rows);
    [Action::Delete(Table::Main, row), Action::Replace(Table::Main, row, record)]
}
