//! The operations of the suite sysbench: SQL statements like those of that program, on tables whose primary
//! key has one of four shapes.
//!
//! ```text
//!   sbtest1       key, k INTEGER with an index, c TEXT of 60, pad TEXT of 30      rows
//!   sbtest2       the same                                             at most 1 000 rows
//!   sbtest_types  key, ival INTEGER, rval REAL, tval TEXT of 50        at most 1 000 rows
//!   sbtest_bulk   like sbtest1, without the index                                 empty
//! ```
//!
//! Rows are numbered from 1; a key is a number in a shape. `k` is a random number of a row of
//! sbtest1, texts are random lower-case letters. Operation i of a workload follows from the seed, the
//! workload's name, the number of rows, and i, and not from the shape of the key, so that every shape
//! does the same work.
//!
//! An operation is a list of actions without any SQL: the script expresses them in SQL, the model applies
//! them to maps. Every row that a workload deletes is inserted again by the same operation, so that every
//! row exists when the next operation begins.

mod model;
#[cfg(test)]
mod tests;

pub use model::{
    CONTENT, SHAPES, SysbenchModel, content_columns, content_order, create, table_name,
};

use crate::job::SysbenchWorkload::{self, *};
use crate::job::{KeyShape, Sysbench, SysbenchTask};
use model::{
    C_BYTES, SysbenchRow, SysbenchTable, between, columns, integer, is, key, letters, of_table,
    one_of, parameters,
};
use stablebench_protocol::JobPart;
use stablebench_workload::Rng;
use stablebench_workload::sql::{Script, StatementCall, Transaction, Value};

/// The maximum number of rows of the second and third table.
pub const FEW: u64 = 1_000;

/// The number of rows of the main table for the published numbers of operations.
pub const PUBLISHED_ROWS: u64 = 100_000;

/// Each workload, its name, and its published number of operations.
pub const WORKLOADS: [(SysbenchWorkload, &str, u64); 23] = [
    (PointSelect, "point_select", 10_000),
    (RangeSelect, "range_select", 1_000),
    (SumRange, "sum_range", 1_000),
    (OrderRange, "order_range", 100),
    (DistinctRange, "distinct_range", 100),
    (IndexScan, "index_scan", 1_000),
    (SelectRandomPoints, "select_random_points", 1_000),
    (SelectRandomRanges, "select_random_ranges", 1_000),
    (CoveringIndexScan, "covering_index_scan", 1_000),
    (GroupbyScan, "groupby_scan", 100),
    (IndexJoin, "index_join", 500),
    (IndexJoinScan, "index_join_scan", 100),
    (TypesTableScan, "types_table_scan", 100),
    (TableScan, "table_scan", 100),
    (ReadOnly, "read_only", 1_000),
    (BulkInsert, "bulk_insert", PUBLISHED_ROWS),
    (Insert, "insert", 5_000),
    (UpdateIndex, "update_index", 10_000),
    (UpdateNonIndex, "update_non_index", 10_000),
    (DeleteInsert, "delete_insert", 5_000),
    (WriteOnly, "write_only", 1_000),
    (TypesDeleteInsert, "types_delete_insert", 5_000),
    (ReadWrite, "read_write", 1_000),
];

/// The published name.
pub fn name(workload: SysbenchWorkload) -> &'static str {
    of(workload).map_or("", |(_, name, _)| name)
}

/// The number of operations of a workload: the published one in proportion to the rows of the main
/// table, rounded down; at least one.
pub fn operations(workload: SysbenchWorkload, rows: u64) -> u64 {
    let published = of(workload).map_or(0, |(_, _, operations)| *operations);
    let scaled = u128::from(published) * u128::from(rows) / u128::from(PUBLISHED_ROWS);
    u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
}

/// Returns `true` if a workload changes rows.
pub fn writes(workload: SysbenchWorkload) -> bool {
    matches!(
        workload,
        BulkInsert
            | Insert
            | UpdateIndex
            | UpdateNonIndex
            | DeleteInsert
            | WriteOnly
            | TypesDeleteInsert
            | ReadWrite
    )
}

/// Returns `true` if a task changes rows.
pub fn changes_rows(task: SysbenchTask) -> bool {
    match task {
        SysbenchTask::Create | SysbenchTask::Populate => true,
        SysbenchTask::Workload(workload) => writes(workload),
    }
}

/// The number of rows that populating inserts.
pub fn populated(rows: u64) -> u64 {
    rows.saturating_add(2 * few(rows))
}

fn of(workload: SysbenchWorkload) -> Option<&'static (SysbenchWorkload, &'static str, u64)> {
    WORKLOADS.iter().find(|(one, _, _)| *one == workload)
}

/// The number of rows of the second and third table.
pub fn few(rows: u64) -> u64 {
    rows.min(FEW)
}

/// The generator of one operation.
fn rng(seed: u64, stream: &str, index: u64) -> Rng {
    // FNV-1a, so that the name alone decides.
    let name = stream.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = Rng::new(Rng::new(seed).next_u64() ^ name).next_u64();
    Rng::new(Rng::new(mixed ^ index).next_u64())
}

/// Rows per range, for most ranges.
const RANGE: u64 = 100;
/// Rows per range that is counted or joined.
const SHORT: u64 = 10;
/// Rows per range that is grouped.
const LONG: u64 = 1_000;
/// Rows of the second table that are joined.
const JOINED: u64 = 50;
/// Keys per list.
const POINTS: usize = 10;

/// The action of a statement. Ranges are given by their first row, or by their first `k`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
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
    Like(SysbenchTable, String),
    /// Inserts a row that does not exist.
    Insert(SysbenchTable, u64, SysbenchRow),
    /// Inserts or replaces a row.
    Replace(SysbenchTable, u64, SysbenchRow),
    /// Changes `k`.
    SetK(u64, u64),
    /// Changes `c`.
    SetC(u64, String),
    /// Deletes a row.
    Delete(SysbenchTable, u64),
}

/// The actions of operation `index` of a job; none for creating tables.
fn actions(job: &Sysbench, seed: u64, index: u64) -> Vec<Action> {
    match job.task {
        SysbenchTask::Create => Vec::new(),
        SysbenchTask::Populate => vec![populate(job.rows, seed, index)],
        SysbenchTask::Workload(of) => {
            let rng = rng(seed, name(of), index);
            match writes(of) {
                true => write_actions(of, job.rows, index, rng),
                false => read_actions(of, job.rows, rng),
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
            SysbenchTable::Types => SysbenchRow::types(&mut rng),
            SysbenchTable::Main | SysbenchTable::Second | SysbenchTable::Bulk => {
                SysbenchRow::main(&mut rng, rows)
            }
        };
        Action::Insert(table, row + 1, record)
    };
    if index < rows {
        insert(SysbenchTable::Main, "sbtest1", index)
    } else if index - rows < few {
        insert(SysbenchTable::Second, "sbtest2", index - rows)
    } else {
        insert(SysbenchTable::Types, "sbtest_types", index - rows - few)
    }
}

/// The text that is searched in the main table; about one row in 320 contains it.
const SEARCHED: &str = "abc";

/// The actions of one operation; none if the workload writes.
fn read_actions(workload: SysbenchWorkload, rows: u64, mut rng: Rng) -> Vec<Action> {
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
        TypesTableScan => Action::Like(SysbenchTable::Types, letters(rng, SEARCHED.len())),
        TableScan => Action::Like(SysbenchTable::Main, SEARCHED.to_owned()),
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
fn row(rng: &mut Rng, rows: u64) -> u64 {
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
fn write_actions(workload: SysbenchWorkload, rows: u64, index: u64, mut rng: Rng) -> Vec<Action> {
    let rng = &mut rng;
    match workload {
        BulkInsert => {
            vec![Action::Insert(SysbenchTable::Bulk, index + 1, SysbenchRow::main(rng, rows))]
        }
        Insert => vec![Action::Insert(
            SysbenchTable::Main,
            rows + 1 + index,
            SysbenchRow::main(rng, rows),
        )],
        UpdateIndex => vec![set_k(rng, rows)],
        UpdateNonIndex => vec![set_c(rng, rows)],
        DeleteInsert => renew(rng, rows).to_vec(),
        WriteOnly => changes(rng, rows),
        TypesDeleteInsert => {
            let row = row(rng, few(rows));
            let record = SysbenchRow::types(rng);
            vec![
                Action::Delete(SysbenchTable::Types, row),
                Action::Replace(SysbenchTable::Types, row, record),
            ]
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
    let record = SysbenchRow::main(rng, rows);
    [Action::Delete(SysbenchTable::Main, row), Action::Replace(SysbenchTable::Main, row, record)]
}

/// A part of a job in SQL; nothing for one that creates the tables.
pub fn script(job: &Sysbench, part: &JobPart) -> Script {
    let mut script = Script {
        transaction: match job.autocommit {
            true => Transaction::Statement,
            false => Transaction::Message,
        },
        writes: changes_rows(job.task),
        ..Script::default()
    };
    for index in part.from..part.from.saturating_add(part.count) {
        let calls = actions(job, part.seed, index).into_iter().map(|action| {
            let (statement, parameters) = call(job.shape, &action);
            let known = script.statements.iter().position(|text| *text == statement);
            let statement = known.unwrap_or_else(|| {
                script.statements.push(statement);
                script.statements.len() - 1
            });
            StatementCall { statement, parameters }
        });
        let calls = calls.collect();
        script.operations.push(calls);
    }
    script
}

/// A statement and its parameters.
fn call(shape: KeyShape, action: &Action) -> (String, Vec<Value>) {
    let main = table_name(SysbenchTable::Main);
    let second = table_name(SysbenchTable::Second);
    let range =
        |first: u64, length: u64| [key(shape, first), key(shape, first + length - 1)].concat();
    let ranged = |select: &str, rest: &str, first, length| {
        let between = between(shape, "");
        (format!("SELECT {select} FROM {main} WHERE {between}{rest}"), range(first, length))
    };
    match action {
        Action::Point(row) => {
            (format!("SELECT c FROM {main} WHERE {}", is(shape)), key(shape, *row))
        }
        Action::Range(first) => ranged("c", "", *first, RANGE),
        Action::Sum(first) => ranged("sum(k)", "", *first, RANGE),
        Action::Order(first) => ranged("c", " ORDER BY c", *first, RANGE),
        Action::Distinct(first) => ranged("DISTINCT c", " ORDER BY c", *first, RANGE),
        Action::WithK(k) => {
            let columns = columns(shape, "");
            (format!("SELECT {columns}, c FROM {main} WHERE k = ?"), vec![integer(*k)])
        }
        Action::Points(rows) => (
            format!(
                "SELECT {}, k, c, pad FROM {main} WHERE {}",
                columns(shape, ""),
                one_of(shape, rows.len())
            ),
            rows.iter().flat_map(|row| key(shape, *row)).collect(),
        ),
        Action::Count(first) => ranged("count(k)", "", *first, SHORT),
        Action::CountK(first) => (
            format!("SELECT count(k) FROM {main} WHERE k BETWEEN ? AND ?"),
            vec![integer(*first), integer(first + RANGE - 1)],
        ),
        Action::Group(first) => ranged("k, count(*)", " GROUP BY k ORDER BY k", *first, LONG),
        Action::Join(first) => (
            format!(
                "SELECT {}, {} FROM {main} AS m JOIN {second} AS s ON m.k = s.k WHERE {}",
                columns(shape, "m."),
                columns(shape, "s."),
                between(shape, "m.")
            ),
            range(*first, SHORT),
        ),
        Action::JoinScan(first) => (
            format!(
                "SELECT count(*) FROM {main} AS m JOIN {second} AS s ON m.k = s.k WHERE {}",
                between(shape, "s.")
            ),
            range(*first, JOINED),
        ),
        Action::Like(table, text) => {
            let column = if *table == SysbenchTable::Types { "tval" } else { "c" };
            let pattern = Value::Text(format!("%{text}%"));
            let name = table_name(*table);
            (format!("SELECT count(*) FROM {name} WHERE {column} LIKE ?"), vec![pattern])
        }
        Action::Insert(table, row, record) => put("INSERT", shape, *table, *row, record),
        Action::Replace(table, row, record) => {
            put("INSERT OR REPLACE", shape, *table, *row, record)
        }
        Action::SetK(row, k) => set(shape, "k", integer(*k), *row),
        Action::SetC(row, c) => set(shape, "c", Value::Text(c.clone()), *row),
        Action::Delete(table, row) => {
            let shape = of_table(shape, *table);
            (format!("DELETE FROM {} WHERE {}", table_name(*table), is(shape)), key(shape, *row))
        }
    }
}

fn put(
    verb: &str,
    shape: KeyShape,
    table: SysbenchTable,
    row: u64,
    record: &SysbenchRow,
) -> (String, Vec<Value>) {
    let shape = of_table(shape, table);
    // Parameters are never REAL, but the quotient of one is.
    let columns = match record {
        SysbenchRow::Main { .. } => "?, ?, ?",
        SysbenchRow::Types { .. } => "?, ? / 1000.0, ?",
    };
    let key_parameters = parameters(shape);
    (
        format!("{verb} INTO {} VALUES ({key_parameters}, {columns})", table_name(table)),
        [key(shape, row), record.values()].concat(),
    )
}

fn set(shape: KeyShape, column: &str, value: Value, row: u64) -> (String, Vec<Value>) {
    (
        format!("UPDATE {} SET {column} = ? WHERE {}", table_name(SysbenchTable::Main), is(shape)),
        [vec![value], key(shape, row)].concat(),
    )
}
