//! The work in SQL.

use super::items;
use crate::sql::{Call, Script, Value};
use stablebench_protocol::{Cuckoo, CuckooTask, Part};

/// The table.
pub const CREATE: &str = "CREATE TABLE cuckoo (id INTEGER PRIMARY KEY, value BLOB NOT NULL)";

const INSERT: &str = "INSERT INTO cuckoo (id, value) VALUES (?, ?)";
const SELECT: &str = "SELECT value FROM cuckoo WHERE id = ?";

/// The part, statement by statement.
pub fn script(part: &Part, job: &Cuckoo) -> Script {
    let writes = job.task == CuckooTask::Build;
    let call = |key: u64| {
        let mut parameters = vec![Value::Integer(key as i64)];
        if writes {
            parameters.push(Value::Blob(items::value(key).to_vec()));
        }
        vec![Call { statement: 0, parameters }]
    };
    Script {
        statements: vec![if writes { INSERT } else { SELECT }.to_owned()],
        operations: super::keys(part, job).into_iter().map(call).collect(),
        writes,
        ..Script::default()
    }
}
