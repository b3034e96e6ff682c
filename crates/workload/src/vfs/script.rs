//! The work in SQL.

use super::{key, operations, updated_value, upserted_key, value};
use crate::sql::{Call, Script, Transaction, Value};
use stablebench_protocol::{Part, Vfs, VfsTransaction, VfsWork};

/// The table.
pub const CREATE: &str = "CREATE TABLE bench (\
                          key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID";

/// Goes through the whole table.
pub const READ_ALL: &str = "SELECT sum(length(value)) FROM bench";

/// Work of a part, statement by statement.
pub fn script(part: &Part, job: &Vfs, work: VfsWork) -> Script {
    let each = |statement: &str, parameters: &dyn Fn(u64) -> Vec<String>| {
        let call = |index| {
            let parameters = parameters(index).into_iter().map(Value::Text).collect();
            vec![Call { statement: 0, parameters }]
        };
        (statement.to_owned(), operations(part).map(call).collect())
    };
    let (statement, calls) = match work {
        VfsWork::Insert(after) => each("INSERT INTO bench(key, value) VALUES (?, ?)", &|index| {
            vec![key(after + index), value(after + index)]
        }),
        VfsWork::Upsert => each(
            "INSERT INTO bench(key, value) VALUES (?, ?) \
             ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            &|index| vec![upserted_key(index), updated_value(index)],
        ),
        VfsWork::Update => each("UPDATE bench SET value = ? WHERE key = ?", &|index| {
            vec![updated_value(index), key(index)]
        }),
        VfsWork::Read => each("SELECT value FROM bench WHERE key = ?", &|index| vec![key(index)]),
        VfsWork::Scan => {
            let parameters = vec![part.count, part.from];
            let parameters =
                parameters.into_iter().map(|number| Value::Integer(number as i64)).collect();
            let scan = "SELECT value FROM bench ORDER BY key LIMIT ? OFFSET ?";
            (scan.to_owned(), vec![vec![Call { statement: 0, parameters }]])
        }
        VfsWork::List => {
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
        writes: changes_rows(work),
        copies: job.copy,
    }
}

/// Whether work changes rows.
pub fn changes_rows(work: VfsWork) -> bool {
    match work {
        VfsWork::Insert(_) | VfsWork::Upsert | VfsWork::Update => true,
        VfsWork::Read | VfsWork::Scan | VfsWork::List => false,
    }
}
