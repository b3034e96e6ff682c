//! What single statements do, without any SQL: the script says it in SQL, the model does
//! it on maps.

use stablebench_protocol::{Sysbench, SysbenchTask};

use super::record::Record;
use super::{few, reads, rng, workload, writes};

/// Rows of most ranges.
pub const RANGE: u64 = 100;
/// Rows of ranges that are counted or joined.
pub const SHORT: u64 = 10;
/// Rows of ranges that are grouped.
pub const LONG: u64 = 1_000;
/// Rows of the second table that are joined.
pub const JOINED: u64 = 50;
/// Keys of a list.
pub const POINTS: usize = 10;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The main one.
    Main,
    /// The one that is joined.
    Second,
    /// The one with columns of several types.
    Types,
    /// The one that starts empty.
    Bulk,
}

/// What a statement does. Ranges are named by their first row, or by their first `k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `c` of a row.
    Point(u64),
    /// `c` of [`RANGE`] rows.
    Range(u64),
    /// The sum of their `k`.
    Sum(u64),
    /// `c` of them, sorted.
    Order(u64),
    /// The different `c` of them, sorted.
    Distinct(u64),
    /// Key and `c` of rows with a `k`.
    WithK(u64),
    /// All columns of [`POINTS`] rows, some of which may be the same.
    Points(Vec<u64>),
    /// The count of [`SHORT`] rows.
    Count(u64),
    /// The count of rows whose `k` is one of [`RANGE`] that follow each other.
    CountK(u64),
    /// Each `k` of [`LONG`] rows, sorted, and how many have it.
    Group(u64),
    /// The keys of [`SHORT`] rows and of those of the second table with the same `k`.
    Join(u64),
    /// The count of pairs of [`JOINED`] rows of the second table and main ones.
    JoinScan(u64),
    /// The count of rows of a table whose last or third column has a text inside.
    Like(Table, String),
    /// A row that is not there.
    Insert(Table, u64, Record),
    /// A row, whether or not it is there.
    Replace(Table, u64, Record),
    /// Another `k`.
    SetK(u64, u64),
    /// Another `c`.
    SetC(u64, String),
    /// A row goes.
    Delete(Table, u64),
}

/// The actions of operation `index` of a job, but for creating tables.
pub fn actions(job: &Sysbench, seed: u64, index: u64) -> Vec<Action> {
    match job.task {
        SysbenchTask::Create => Vec::new(),
        SysbenchTask::Populate => vec![populate(job.rows, seed, index)],
        SysbenchTask::Workload(of) => {
            let rng = rng(seed, workload::name(of), index);
            match workload::writes(of) {
                true => writes::actions(of, job.rows, index, rng),
                false => reads::actions(of, job.rows, rng),
            }
        }
    }
}

/// The main table's rows, then those of the second, then those of the third.
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
