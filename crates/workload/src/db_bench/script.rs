//! The benchmarks in SQL.

use super::operation::{key, random_key, write};
use crate::sql::{Call, Script, Transaction, Value};
use stablebench_protocol::{DbBench, DbBenchTask, Part};

/// Of a part of a job.
pub fn script(job: &DbBench, part: &Part) -> Script {
    let operations = part.from..part.from.saturating_add(part.count);
    match &job.task {
        // Its statements cannot be prepared before those in front of them are executed.
        DbBenchTask::Ready { .. } => Script { writes: true, ..Script::default() },
        DbBenchTask::Write(benchmark) => {
            let write = |index| {
                let (number, source) = write(part.seed, benchmark, index);
                let value = Value::Blob(source.value(benchmark.value_bytes));
                vec![call(vec![blob(number), value])]
            };
            Script {
                statements: vec!["REPLACE INTO test (key, value) VALUES (?, ?)".to_owned()],
                operations: operations.map(write).collect(),
                // A row by itself is a transaction by itself, which nothing begins or ends.
                transaction: match benchmark.batch {
                    0 | 1 => Transaction::Statement,
                    batch => Transaction::Operations(batch),
                },
                writes: true,
                ..Script::default()
            }
        }
        DbBenchTask::ReadRandom { keys, stream } => {
            let read = |index| vec![call(vec![blob(random_key(part.seed, *keys, *stream, index))])];
            reads("SELECT * FROM test WHERE key = ?", operations.map(read).collect())
        }
        DbBenchTask::ReadSequential { rows } => {
            let select = "SELECT * FROM test ORDER BY key";
            let whole = part.from == 0 && part.count >= *rows;
            if whole {
                return reads(select, vec![vec![call(Vec::new())]]);
            }
            let bounds = [part.count, part.from].map(|number| Value::Integer(number as i64));
            reads(&format!("{select} LIMIT ? OFFSET ?"), vec![vec![call(bounds.to_vec())]])
        }
    }
}

/// Removes the table.
pub const DROP: &str = "DROP TABLE IF EXISTS test";

/// Creates the table.
pub fn create(rowids: bool) -> String {
    let mut statement = "CREATE TABLE test (key blob, value blob, PRIMARY KEY(key))".to_owned();
    statement += if rowids { "" } else { " WITHOUT ROWID" };
    statement
}

fn reads(statement: &str, operations: Vec<Vec<Call>>) -> Script {
    Script {
        statements: vec![statement.to_owned()],
        operations,
        transaction: Transaction::Statement,
        writes: false,
        ..Script::default()
    }
}

/// Of the script's only statement.
fn call(parameters: Vec<Value>) -> Call {
    Call { statement: 0, parameters }
}

fn blob(number: u64) -> Value {
    Value::Blob(key(number).to_vec())
}
