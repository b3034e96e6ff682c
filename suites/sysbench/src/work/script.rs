//! Actions in SQL.

use super::actions::{Action, JOINED, LONG, RANGE, SHORT, actions};
use super::changes_rows;
use super::tables::{
    Record, Table, between, columns, integer, is, key, name, of_table, one_of, parameters,
};
use crate::job::{KeyShape, Sysbench};
use stablebench_protocol::Part;
use stablebench_workload::sql::{Call, Script, Transaction, Value};

/// A part of a job in SQL; nothing for one that creates the tables.
pub fn script(job: &Sysbench, part: &Part) -> Script {
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
            Call { statement, parameters }
        });
        let calls = calls.collect();
        script.operations.push(calls);
    }
    script
}

/// A statement and its parameters.
fn call(shape: KeyShape, action: &Action) -> (String, Vec<Value>) {
    let main = name(Table::Main);
    let second = name(Table::Second);
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
            let column = if *table == Table::Types { "tval" } else { "c" };
            let pattern = Value::Text(format!("%{text}%"));
            let name = name(*table);
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
            (format!("DELETE FROM {} WHERE {}", name(*table), is(shape)), key(shape, *row))
        }
    }
}

fn put(
    verb: &str,
    shape: KeyShape,
    table: Table,
    row: u64,
    record: &Record,
) -> (String, Vec<Value>) {
    let shape = of_table(shape, table);
    // Parameters are never REAL, but the quotient of one is.
    let columns = match record {
        Record::Main { .. } => "?, ?, ?",
        Record::Types { .. } => "?, ? / 1000.0, ?",
    };
    let key_parameters = parameters(shape);
    (
        format!("{verb} INTO {} VALUES ({key_parameters}, {columns})", name(table)),
        [key(shape, row), record.values()].concat(),
    )
}

fn set(shape: KeyShape, column: &str, value: Value, row: u64) -> (String, Vec<Value>) {
    (
        format!("UPDATE {} SET {column} = ? WHERE {}", name(Table::Main), is(shape)),
        [vec![value], key(shape, row)].concat(),
    )
}
