//! What the work must find and leave: the table as a map.

use super::{key, operations, updated_value, upserted_key, value};
use crate::sql::{ValueRef, add_row};
use crate::{ContentDigest, Expected, Tables};
use stablebench_protocol::{Digest, Job, Part, VfsTask, VfsWork};
use std::collections::BTreeMap;

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

impl Tables for VfsModel {
    fn perform(&mut self, part: &Part) -> Expected {
        let Job::Vfs(job) = &part.job else {
            return Expected::default();
        };
        let numbers = operations(part);
        let VfsTask::Work(work) = job.task else {
            return Expected::default();
        };
        match work {
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
        }
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (key, value) in &self.0 {
            let columns = [key, value].map(|text| ValueRef::Text(text.as_bytes()));
            add_row(&mut digest, 0, columns);
        }
        digest.value()
    }

    fn fork(&self) -> Box<dyn Tables> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::script;
    use super::*;
    use crate::sql::Value;
    use stablebench_protocol::{Vfs, VfsTransaction};

    fn part(work: VfsWork, from: u64, count: u64) -> Part {
        let transaction = VfsTransaction::Message;
        let job = Vfs { transaction, copy: true, task: VfsTask::Work(work) };
        Part { job: Job::Vfs(job), seed: 1, from, count, each: false }
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
        let written = model.perform(&part(VfsWork::Insert(0), 0, 10));
        assert_eq!((written.rows, written.bytes), (10, 10 * (9 + 25)));
        model.perform(&part(VfsWork::Insert(10), 0, 5));
        assert_eq!(model.perform(&part(VfsWork::Scan, 0, 100)).rows, 15);
        let listed = model.perform(&part(VfsWork::List, 3, 4));
        assert_eq!(listed, model.perform(&part(VfsWork::Read, 3, 4)), "keys are in their order");
        assert_eq!(listed, model.perform(&part(VfsWork::Scan, 3, 4)));
        let before = model.content();
        // Only 12, 13 and 14 are there.
        assert_eq!(model.perform(&part(VfsWork::Update, 12, 8)).rows, 3);
        assert_ne!(model.content(), before);
        assert_eq!(model.content().rows, 15);
        model.perform(&part(VfsWork::Upsert, 0, 7));
        model.perform(&part(VfsWork::Upsert, 0, 7));
        assert_eq!(model.content().rows, 22);
    }

    /// The script executed here: its statements and their parameters are the model's rows.
    #[test]
    fn the_script_names_the_models_rows() {
        let of = |work, from, count| {
            let part = part(work, from, count);
            let Job::Vfs(job) = &part.job else { unreachable!() };
            script(&part, job, work)
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
