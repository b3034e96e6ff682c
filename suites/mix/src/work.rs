//! The operations of a message, and the model that checks them.
//!
//! ```text
//!   row i of those before    id (i + 1) · 10, version 0
//!   new row                  an id between two of them, or after the last
//!   columns                  hashes of seed, id, version and column, with 60 bits; the payload repeats a letter
//! ```
//!
//! Reads, updates and scans choose even rows of the place, and deletions odd ones, each once: so that no
//! operation misses its row.

use crate::job::{Mix, MixTask, Operations, Place};
use stablebench_protocol::{Digest, JobPart, Result};
use stablebench_workload::sql::{Script, StatementCall, Transaction, Value, add_row};
use stablebench_workload::{ContentDigest, Expected, Model, Rng};
use std::collections::BTreeMap;
use std::ops::Range;

/// The distance of ids.
pub const STEP: u64 = 10;
/// The rows of the places `middle` and `end`.
pub const NEAR: u64 = 1_000;
/// The rows of a scan.
pub const SCANNED: u64 = 100;
/// The bits of an indexed column.
pub const COLUMN_BITS: u32 = 60;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixRow {
    pub id: u64,
    /// The indexed columns.
    pub columns: Vec<u64>,
    pub payload: String,
}

/// An operation of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Insert(MixRow),
    Read(u64),
    Update(MixRow),
    Delete(u64),
    /// The rows from an id on.
    Scan(u64),
}

/// The values of rows and the choices of messages, which follow from the seed.
#[derive(Clone, Copy, Debug)]
pub struct OperationGenerator<'a> {
    pub job: &'a Mix,
    pub seed: u64,
}

impl OperationGenerator<'_> {
    /// The operations with these numbers: rows of a table that is filled, or messages.
    pub fn operations(&self, numbers: Range<u64>) -> Vec<Vec<Operation>> {
        match self.job.task {
            MixTask::Create => Vec::new(),
            MixTask::Fill => {
                numbers.map(|row| vec![Operation::Insert(self.row((row + 1) * STEP, 0))]).collect()
            }
            MixTask::Message(operations) => {
                numbers.map(|number| self.message(&operations, number)).collect()
            }
        }
    }

    /// The row with an id, changed `version` times.
    fn row(&self, id: u64, version: u64) -> MixRow {
        let column = |column: u32| {
            let of = hash(self.seed, &[id, version, column.into()]);
            of >> (u64::BITS - COLUMN_BITS)
        };
        let letter = if version == 0 { "a" } else { "b" };
        MixRow {
            id,
            columns: (0..self.job.indexes).map(column).collect(),
            payload: letter.repeat(self.job.payload as usize),
        }
    }

    fn message(&self, operations: &Operations, number: u64) -> Vec<Operation> {
        let numbers = |count: u64| number * count..(number + 1) * count;
        let choose = |kind: u64, nth: u64| self.kept(hash(self.seed, &[kind, nth]));
        let mut all = Vec::new();
        all.extend(
            numbers(operations.insert).map(|nth| Operation::Insert(self.row(self.new_id(nth), 0))),
        );
        all.extend(numbers(operations.read).map(|nth| Operation::Read(choose(1, nth))));
        all.extend(
            numbers(operations.update)
                .map(|nth| Operation::Update(self.row(choose(2, nth), nth + 1))),
        );
        all.extend(numbers(operations.delete).map(|nth| Operation::Delete(self.deleted(nth))));
        all.extend(numbers(operations.scan).map(|nth| Operation::Scan(choose(3, nth))));
        all
    }

    /// The rows of the place.
    fn place(&self) -> Range<u64> {
        let rows = self.job.rows;
        match self.job.at {
            Place::Random => 0..rows,
            Place::Middle => rows / 2..(rows / 2 + NEAR).min(rows),
            Place::End => rows.saturating_sub(NEAR)..rows,
        }
    }

    /// The id of a row that is never deleted.
    fn kept(&self, random: u64) -> u64 {
        let place = self.place();
        let half = (place.end - place.start).div_ceil(2);
        (place.start + random % half.max(1) * 2 + 1) * STEP
    }

    /// The id of the row that is deleted as the nth.
    fn deleted(&self, nth: u64) -> u64 {
        let place = self.place();
        let half = (place.end - place.start) / 2;
        let random = match self.job.at {
            Place::Random => permuted(nth, half, self.seed),
            Place::Middle | Place::End => nth,
        };
        (place.start + random * 2 + 2) * STEP
    }

    /// The id of the nth new row.
    fn new_id(&self, nth: u64) -> u64 {
        let rows = self.job.rows;
        // The ids after a row, at which rounds of new rows are.
        let after =
            |row: u64, round: u64| (row + 1) * STEP + 1 + (round + STEP / 2 - 1) % (STEP - 1);
        match self.job.at {
            Place::End => (rows + 1 + nth) * STEP,
            Place::Random => after(permuted(nth % rows, rows, !self.seed), nth / rows),
            Place::Middle => {
                let half = rows - rows / 2;
                after(rows / 2 + nth % half, nth / half)
            }
        }
    }
}

/// The largest numbers of insertions and deletions that find a place.
pub fn room(job: &Mix) -> (u64, u64) {
    let place = OperationGenerator { job, seed: 0 }.place();
    let insertions = match job.at {
        Place::End => u64::MAX,
        Place::Random => job.rows.saturating_mul(STEP - 1),
        Place::Middle => (job.rows - job.rows / 2).saturating_mul(STEP - 1),
    };
    (insertions, (place.end - place.start) / 2)
}

fn hash(seed: u64, numbers: &[u64]) -> u64 {
    numbers.iter().fold(Rng::new(seed).next_u64(), |hash, number| {
        Rng::new(Rng::new(hash ^ number).next_u64()).next_u64()
    })
}

/// A permutation of the numbers below `limit`: a Feistel network over as many bits, which is repeated
/// while its result is not below.
fn permuted(number: u64, limit: u64, seed: u64) -> u64 {
    let bits = (u64::BITS - limit.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1 << bits) - 1;
    let mut number = number;
    loop {
        let (mut left, mut right) = (number >> bits & mask, number & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ hash(seed, &[round, right]) & mask);
        }
        number = left << bits | right;
        if number < limit || limit == 0 {
            return number;
        }
    }
}

/// `SELECT` of all columns.
fn columns(indexes: u32) -> String {
    let names: String = (1..=indexes).map(|column| format!("k{column}, ")).collect();
    format!("id, {names}payload")
}

/// The statements that create the table and its indexes.
pub fn create(indexes: u32) -> String {
    let names: String =
        (1..=indexes).map(|column| format!("k{column} INTEGER NOT NULL, ")).collect();
    let indexes: String = (1..=indexes)
        .map(|column| format!("CREATE INDEX mix_k{column} ON mix(k{column});\n"))
        .collect();
    format!("CREATE TABLE mix (id INTEGER PRIMARY KEY, {names}payload TEXT NOT NULL);\n{indexes}")
}

/// The tables that are read back: the table, and each index, which has the rows that it finds.
pub fn contents(indexes: u32) -> Vec<[String; 3]> {
    let rows = ["mix".to_owned(), columns(indexes), "id".to_owned()];
    let index = |column: u32| {
        let columns = format!("k{column}, id");
        [format!("mix INDEXED BY mix_k{column}"), columns.clone(), columns]
    };
    [rows].into_iter().chain((1..=indexes).map(index)).collect()
}

/// Operations in SQL.
pub fn script(job: &Mix, seed: u64, from: u64, count: u64) -> Script {
    let columns = columns(job.indexes);
    let places = vec!["?"; job.indexes as usize + 2].join(", ");
    let set: String = (1..=job.indexes).map(|column| format!("k{column} = ?, ")).collect();
    // In the order of `Operation`.
    let statements = [
        format!("INSERT INTO mix VALUES ({places})"),
        format!("SELECT {columns} FROM mix WHERE id = ?"),
        format!("UPDATE mix SET {set}payload = ? WHERE id = ?"),
        "DELETE FROM mix WHERE id = ?".to_owned(),
        format!("SELECT {columns} FROM mix WHERE id >= ? ORDER BY id LIMIT {SCANNED}"),
    ];
    let operations = OperationGenerator { job, seed }.operations(from..from.saturating_add(count));
    let number = |number: u64| Value::Integer(number as i64);
    let call = |operation: Operation| {
        let (statement, parameters) = match operation {
            Operation::Insert(row) => (0, row.values()),
            Operation::Read(id) => (1, vec![number(id)]),
            Operation::Update(row) => {
                let id = number(row.id);
                let values = row.values().into_iter().skip(1);
                (2, values.chain([id]).collect())
            }
            Operation::Delete(id) => (3, vec![number(id)]),
            Operation::Scan(id) => (4, vec![number(id)]),
        };
        StatementCall { statement, parameters }
    };
    let used = |statement: usize| match job.task {
        MixTask::Create => false,
        MixTask::Fill => statement == 0,
        MixTask::Message(all) => {
            [all.insert, all.read, all.update, all.delete, all.scan][statement] > 0
        }
    };
    // Only statements that are executed are prepared.
    let places: Vec<usize> = (0..statements.len()).filter(|statement| used(*statement)).collect();
    let placed = |call: StatementCall| StatementCall {
        statement: places.iter().position(|place| *place == call.statement).unwrap_or(0),
        ..call
    };
    Script {
        statements: places.iter().map(|place| statements[*place].clone()).collect(),
        operations: operations
            .into_iter()
            .map(|calls| calls.into_iter().map(call).map(placed).collect())
            .collect(),
        transaction: match job.task {
            MixTask::Message(_) => Transaction::Operations(1),
            MixTask::Create | MixTask::Fill => Transaction::Message,
        },
        writes: match job.task {
            MixTask::Message(operations) => operations.write(),
            MixTask::Create | MixTask::Fill => true,
        },
        ..Script::default()
    }
}

impl MixRow {
    /// The values of the columns in SQL.
    pub fn values(&self) -> Vec<Value> {
        let numbers = [self.id].into_iter().chain(self.columns.iter().copied());
        let numbers = numbers.map(|number| Value::Integer(number as i64));
        numbers.chain([Value::Text(self.payload.clone())]).collect()
    }

    /// The bytes of its values.
    pub fn bytes(&self) -> u64 {
        8 + 8 * self.columns.len() as u64 + self.payload.len() as u64
    }

    /// Adds it to a digest.
    pub fn digest(&self, digest: &mut ContentDigest, place: u64) {
        add_row(digest, place, self.values().iter().map(Value::as_ref));
    }

    /// Adds its entry in an index to a digest of all content.
    pub fn digest_entry(digest: &mut ContentDigest, index: u64, column: u64, id: u64) {
        let values = [column, id].map(|number| Value::Integer(number as i64));
        add_row(digest, index + 1, values.iter().map(Value::as_ref));
    }
}

/// The table, in memory.
#[derive(Clone, Debug, Default)]
pub struct MixModel {
    rows: BTreeMap<u64, MixRow>,
}

impl Model for MixModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        let job: Mix = part.job.decode()?;
        let numbers = part.from..part.from.saturating_add(part.count);
        let mut expected = Expected::default();
        let mut results = ContentDigest::default();
        let mut found = |row: &MixRow| {
            let place = results.value().rows;
            row.digest(&mut results, place);
            row.bytes()
        };
        for operation in (OperationGenerator { job: &job, seed: part.seed })
            .operations(numbers)
            .into_iter()
            .flatten()
        {
            let mut add = |rows, bytes| {
                expected.rows += rows;
                expected.bytes += bytes;
            };
            match operation {
                Operation::Insert(row) | Operation::Update(row) => {
                    add(1, row.bytes());
                    self.rows.insert(row.id, row);
                }
                Operation::Read(id) => {
                    if let Some(row) = self.rows.get(&id) {
                        add(1, found(row));
                    }
                }
                Operation::Delete(id) => add(u64::from(self.rows.remove(&id).is_some()), 8),
                Operation::Scan(id) => {
                    for row in self.rows.range(id..).take(SCANNED as usize) {
                        add(1, found(row.1));
                    }
                }
            }
        }
        if let MixTask::Message(operations) = job.task
            && !operations.write()
        {
            expected.results = Some(results.value());
        }
        Ok(expected)
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for row in self.rows.values() {
            row.digest(&mut digest, 0);
            for (index, column) in (0..).zip(&row.columns) {
                MixRow::digest_entry(&mut digest, index, *column, row.id);
            }
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
    use stablebench_protocol::{Engine, Job};
    use std::collections::BTreeSet;

    fn job(rows: u64, at: Place, task: MixTask) -> Mix {
        Mix { engine: Engine::BTREE, rows, payload: 3, indexes: 2, at, task }
    }

    #[test]
    fn a_permutation_has_each_number_once() {
        for limit in [1, 2, 3, 10, 1_000, 1_025] {
            let numbers: BTreeSet<u64> =
                (0..limit).map(|number| permuted(number, limit, 7)).collect();
            assert_eq!(numbers.len() as u64, limit);
            assert_eq!(numbers.last(), Some(&(limit - 1)));
        }
    }

    /// Up to the last operation that has room.
    #[test]
    fn no_operation_misses_its_row() {
        for at in [Place::Middle, Place::End, Place::Random] {
            for rows in [4, 5, 100, 2_500] {
                let (insertions, deletions) = room(&job(rows, at, MixTask::Create));
                let mut model = MixModel::default();
                let part = |task, count| {
                    let job = Job::new(&job(rows, at, task));
                    JobPart { job, seed: 7, from: 0, count, each: false }
                };
                model.execute(&part(MixTask::Fill, rows)).unwrap();
                let all = Operations { insert: 3, read: 2, update: 2, delete: 1, scan: 0 };
                let messages = deletions.min(insertions / 3);
                let expected = model.execute(&part(MixTask::Message(all), messages)).unwrap();
                assert_eq!(expected.rows, 8 * messages, "{at:?}, {rows} rows");
                assert_eq!(model.rows.len() as u64, rows + 2 * messages);
            }
        }
    }
}
