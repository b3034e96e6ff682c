//! The benchmarks in SQL.

use super::operation::{key, random_key, write};
use crate::sql::{Call, Script, Transaction, Value};
use stablebench_protocol::{DbBench, DbBenchTask, Part};

/// All rows, in no order.
pub const CONTENT: &str = "SELECT key, value FROM test";

/// Of a part of a job.
pub fn script(job: &DbBench, part: &Part) -> Script {
    let operations = part.from..part.from.saturating_add(part.count);
    match &job.task {
        DbBenchTask::Ready { fresh, sync } => ready(job.rowids, *fresh, *sync),
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
            }
        }
        DbBenchTask::ReadRandom { keys, stream } => {
            let read = |index| vec![call(vec![blob(random_key(part.seed, *keys, *stream, index))])];
            reads("SELECT * FROM test WHERE key = ?", operations.map(read).collect())
        }
        DbBenchTask::ReadSequential => {
            let range = vec![call(vec![blob(operations.start), blob(operations.end)])];
            let select = "SELECT * FROM test WHERE key >= ? AND key < ? ORDER BY key";
            reads(select, vec![range])
        }
    }
}

/// Without pages that a table left behind, the database is as a new one.
fn ready(rowids: bool, fresh: bool, sync: bool) -> Script {
    let level = if sync { "FULL" } else { "OFF" };
    let mut statements = vec![format!("PRAGMA synchronous = {level}")];
    if fresh {
        let kind = if rowids { "" } else { " WITHOUT ROWID" };
        let create = format!("CREATE TABLE test (key blob, value blob, PRIMARY KEY(key)){kind}");
        statements.extend(["DROP TABLE IF EXISTS test".to_owned(), "VACUUM".to_owned(), create]);
    }
    let call = |statement| Call { statement, parameters: Vec::new() };
    Script {
        operations: vec![(0..statements.len()).map(call).collect()],
        statements,
        transaction: Transaction::Statement,
        writes: true,
    }
}

fn reads(statement: &str, operations: Vec<Vec<Call>>) -> Script {
    Script {
        statements: vec![statement.to_owned()],
        operations,
        transaction: Transaction::Statement,
        writes: false,
    }
}

/// Of the script's only statement.
fn call(parameters: Vec<Value>) -> Call {
    Call { statement: 0, parameters }
}

fn blob(number: u64) -> Value {
    Value::Blob(key(number).to_vec())
}
