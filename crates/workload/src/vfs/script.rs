//! The work in SQL.

use super::{key, operations, updated_value, upserted_key, value};
use crate::sql::{Call, Script, Transaction, Value};
use stablebench_protocol::{Part, Vfs, VfsTask, VfsTransaction};

/// The table.
pub const CREATE: &str = "CREATE TABLE bench (\
                          key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID";

/// Goes through the whole table.
pub const READ_ALL: &str = "SELECT sum(length(value)) FROM bench";

/// The part, statement by statement; of creating the table, nothing.
pub fn script(part: &Part, job: &Vfs) -> Script {
    let each = |statement: &str, parameters: &dyn Fn(u64) -> Vec<String>| {
        let call = |index| {
            let parameters = parameters(index).into_iter().map(Value::Text).collect();
            vec![Call { statement: 0, parameters }]
        };
        (statement.to_owned(), operations(part).map(call).collect())
    };
    let (statement, calls) = match job.task {
        VfsTask::Create => return Script { writes: true, ..Script::default() },
        VfsTask::Insert(after) => each("INSERT INTO bench(key, value) VALUES (?, ?)", &|index| {
            vec![key(after + index), value(after + index)]
        }),
        VfsTask::Upsert => each(
            "INSERT INTO bench(key, value) VALUES (?, ?) \
             ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            &|index| vec![upserted_key(index), updated_value(index)],
        ),
        VfsTask::Update => each("UPDATE bench SET value = ? WHERE key = ?", &|index| {
            vec![updated_value(index), key(index)]
        }),
        VfsTask::Read => each("SELECT value FROM bench WHERE key = ?", &|index| vec![key(index)]),
        VfsTask::Scan => {
            let parameters = vec![part.count, part.from];
            let parameters =
                parameters.into_iter().map(|number| Value::Integer(number as i64)).collect();
            let scan = "SELECT value FROM bench ORDER BY key LIMIT ? OFFSET ?";
            (scan.to_owned(), vec![vec![Call { statement: 0, parameters }]])
        }
        VfsTask::List => {
            let parameters: Vec<Value> =
                operations(part).map(|index| Value::Text(key(index))).collect();
            let places = vec!["?"; parameters.len()].join(",");
            let list = format!("SELECT value FROM bench WHERE key IN ({places}) ORDER BY key");
            (list, vec![vec![Call { statement: 0, parameters }]])
        }
    };
    Script {
        statements: vec![statement],
        operations: calls,
        transaction: match job.transaction {
            VfsTransaction::Message => Transaction::Message,
            VfsTransaction::Operations(size) => Transaction::Operations(size),
            VfsTransaction::Statement => Transaction::Statement,
        },
        writes: changes_rows(job.task),
        copies: job.copy,
    }
}

/// Whether a task changes rows.
pub fn changes_rows(task: VfsTask) -> bool {
    match task {
        VfsTask::Create | VfsTask::Insert(_) | VfsTask::Upsert | VfsTask::Update => true,
        VfsTask::Read | VfsTask::Scan | VfsTask::List => false,
    }
}
