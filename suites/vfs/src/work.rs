//! The vfs suite: a table with text keys and text values, as in the benchmark that the authors of
//! `ic-sqlite-vfs` publish.
//!
//! ```text
//!   CREATE TABLE bench (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID
//!
//!   key     k00000042   inserted        value   value-00000042-stable-vfs
//!           w00000042   upserted                updated-00000042-stable-vfs, if it was
//!                                               upserted or updated
//! ```

use crate::job::{Vfs, VfsTask, VfsTransaction, VfsWork};
use stablebench_protocol::{Digest, JobPart, Result};
use stablebench_workload::sql::{Script, StatementCall, Transaction, Value, ValueRef, add_row};
use stablebench_workload::{ContentDigest, Expected, Model};
use std::collections::BTreeMap;
use std::ops::Range;

/// The key of a row that is inserted.
pub fn key(index: u64) -> String {
    format!("k{index:08}")
}

/// The key of a row that is upserted.
pub fn upserted_key(index: u64) -> String {
    format!("w{index:08}")
}

/// The value of a row that is inserted.
pub fn value(index: u64) -> String {
    format!("value-{index:08}-stable-vfs")
}

/// The value of a row that is upserted or updated.
pub fn updated_value(index: u64) -> String {
    format!("updated-{index:08}-stable-vfs")
}

fn operations(part: &JobPart) -> Range<u64> {
    part.from..part.from.saturating_add(part.count)
}

/// The statement that creates the table.
pub const CREATE: &str = "CREATE TABLE bench (\
                          key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID";

/// The statement that reads the whole table.
pub const READ_ALL: &str = "SELECT sum(length(value)) FROM bench";

/// The work of a part in SQL.
pub fn script(part: &JobPart, job: &Vfs, work: VfsWork) -> Script {
    let each = |statement: &str, parameters: &dyn Fn(u64) -> Vec<String>| {
        let call = |index| {
            let parameters = parameters(index).into_iter().map(Value::Text).collect();
            vec![StatementCall { statement: 0, parameters }]
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
            (scan.to_owned(), vec![vec![StatementCall { statement: 0, parameters }]])
        }
        VfsWork::List => {
            let parameters: Vec<Value> =
                operations(part).map(|index| Value::Text(key(index))).collect();
            let places = vec!["?"; parameters.len()].join(",");
            let list = format!("SELECT value FROM bench WHERE key IN ({places}) ORDER BY key");
            (list, vec![vec![StatementCall { statement: 0, parameters }]])
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

/// Returns `true` if the work changes rows.
pub fn changes_rows(work: VfsWork) -> bool {
    match work {
        VfsWork::Insert(_) | VfsWork::Upsert | VfsWork::Update => true,
        VfsWork::Read | VfsWork::Scan | VfsWork::List => false,
    }
}

/// The table.
#[derive(Clone, Debug, Default)]
pub struct VfsModel(BTreeMap<String, String>);

impl VfsModel {
    fn write(&mut self, rows: impl Iterator<Item = (String, String)>) -> Expected {
        let mut expected = Expected::default();
        for (key, value) in rows {
            expected.rows += 1;
            expected.bytes += (key.len() + value.len()) as u64;
            self.0.insert(key, value);
        }
        expected
    }
}

fn read<'a>(values: impl Iterator<Item = &'a String>) -> Expected {
    let mut expected = Expected::default();
    let mut results = ContentDigest::default();
    for value in values {
        add_row(&mut results, expected.rows, [ValueRef::Text(value.as_bytes())]);
        expected.rows += 1;
        expected.bytes += value.len() as u64;
    }
    Expected { results: Some(results.value()), ..expected }
}

impl Model for VfsModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        let job: Vfs = part.job.decode()?;
        let numbers = operations(part);
        let VfsTask::Work(work) = job.task else {
            return Ok(Expected::default());
        };
        Ok(match work {
            VfsWork::Insert(after) => {
                self.write(numbers.map(|index| (key(after + index), value(after + index))))
            }
            VfsWork::Upsert => {
                self.write(numbers.map(|index| (upserted_key(index), updated_value(index))))
            }
            VfsWork::Update => {
                let rows = numbers.map(|index| (key(index), updated_value(index)));
                let there: Vec<_> = rows.filter(|(key, _)| self.0.contains_key(key)).collect();
                self.write(there.into_iter())
            }
            VfsWork::Read | VfsWork::List => {
                read(numbers.filter_map(|index| self.0.get(&key(index))))
            }
            VfsWork::Scan => {
                let (from, count) = (part.from as usize, part.count as usize);
                read(self.0.values().skip(from).take(count))
            }
        })
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (key, value) in &self.0 {
            let columns = [key, value].map(|text| ValueRef::Text(text.as_bytes()));
            add_row(&mut digest, 0, columns);
        }
        digest.value()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_protocol::Job;

    fn part(work: VfsWork, from: u64, count: u64) -> JobPart {
        let transaction = VfsTransaction::Message;
        let job = Vfs { transaction, copy: true, task: VfsTask::Work(work) };
        JobPart { job: Job::new(&job), seed: 1, from, count, each: false }
    }

    #[test]
    fn rows_are_as_published() {
        assert_eq!(key(42), "k00000042");
        assert_eq!(upserted_key(42), "w00000042");
        assert_eq!(value(42), "value-00000042-stable-vfs");
        assert_eq!(updated_value(42), "updated-00000042-stable-vfs");
    }

    #[test]
    fn what_is_written_is_read() {
        let mut model = VfsModel::default();
        let written = model.execute(&part(VfsWork::Insert(0), 0, 10)).unwrap();
        assert_eq!((written.rows, written.bytes), (10, 10 * (9 + 25)));
        model.execute(&part(VfsWork::Insert(10), 0, 5)).unwrap();
        assert_eq!(model.execute(&part(VfsWork::Scan, 0, 100)).unwrap().rows, 15);
        let listed = model.execute(&part(VfsWork::List, 3, 4)).unwrap();
        assert_eq!(
            listed,
            model.execute(&part(VfsWork::Read, 3, 4)).unwrap(),
            "keys are in their order"
        );
        assert_eq!(listed, model.execute(&part(VfsWork::Scan, 3, 4)).unwrap());
        let before = model.content();
        // Only 12, 13 and 14 are there.
        assert_eq!(model.execute(&part(VfsWork::Update, 12, 8)).unwrap().rows, 3);
        assert_ne!(model.content(), before);
        assert_eq!(model.content().rows, 15);
        model.execute(&part(VfsWork::Upsert, 0, 7)).unwrap();
        model.execute(&part(VfsWork::Upsert, 0, 7)).unwrap();
        assert_eq!(model.content().rows, 22);
    }

    /// The script executed here: its statements and their parameters are the model's rows.
    #[test]
    fn the_script_names_the_models_rows() {
        let of = |work, from, count| {
            let part = part(work, from, count);
            script(&part, &part.job.decode().unwrap(), work)
        };
        let insert = of(VfsWork::Insert(7), 1, 2);
        let texts: Vec<Value> =
            insert.operations.iter().flatten().flat_map(|call| call.parameters.clone()).collect();
        let expected = [key(8), value(8), key(9), value(9)].map(Value::Text);
        assert_eq!(texts, expected);
        assert!(insert.writes);
        let list = of(VfsWork::List, 0, 3);
        assert!(list.statements[0].contains("IN (?,?,?)"));
        assert_eq!(list.operations.len(), 1);
        assert!(!list.writes);
    }
}
