//! An engine and the model, which do the same operations.

use super::canister::{Bench, count, in_transactions, rows, users_part, with_users};
use stablebench_protocol::{Engine, Measurement, Result};
use stablebench_suite_users::work::{Ids, UsersModel, stream};
use stablebench_suite_users::{Operation, Selection};
use stablebench_workload::Model;

/// An engine and the model.
pub struct Pair {
    pub engine: Engine,
    pub bench: Bench,
    pub model: UsersModel,
    /// The number of rows per message when the content is read back.
    limit: u64,
}

impl Pair {
    pub fn new(engine: Engine, bench: Bench, limit: u64) -> Self {
        Self { engine, bench, model: UsersModel::default(), limit }
    }

    /// Does an operation on both and compares the results. Returns the number of rows.
    pub fn apply(&mut self, operation: Operation, bytes: u32) -> Result<u64> {
        self.apply_in(operation, bytes, None)
    }

    /// The canister gets operations that the model refuses only by methods with checks.
    pub fn apply_in(
        &mut self,
        operation: Operation,
        bytes: u32,
        transaction: Option<u64>,
    ) -> Result<u64> {
        self.bench.call("set_payload", (bytes,));
        let case = format!("{} {operation:?}", self.engine);
        let part = with_users(&users_part(self.engine, operation.clone()), |users| {
            users.payload_bytes = bytes;
        });
        let part = in_transactions(&part, transaction);
        let expected = self.model.execute(&part);
        if let Some((method, first, step, number)) = method_of(&operation) {
            let arguments = rows(self.engine, first, step, number);
            let done: Result<Measurement> = self.bench.fork().update(method, arguments);
            let amount = expected.clone().map(|found| (found.rows, found.bytes));
            assert_eq!(done.map(|measured| (measured.rows, measured.bytes)), amount, "{case}");
        }
        let expected = expected?;
        let executed = self.bench.run_part(&part);
        let measured = executed.measurement;
        assert_eq!((measured.rows, measured.bytes), (expected.rows, expected.bytes), "{case}");
        assert_eq!(executed.results, expected.results, "{case}");
        self.compare(&case);
        Ok(expected.rows)
    }

    /// Adds rows whose ids the canister chooses; `ids` are the expected ones.
    pub fn place(&mut self, method: &str, ids: Ids, bytes: u32) {
        let measurement = self.bench.measure(method, (self.engine, ids.rows()));
        assert_eq!(measurement.rows, ids.rows());
        self.model.apply(&insert(ids), bytes).unwrap();
        self.compare(method);
    }

    pub fn compare(&self, after: &str) {
        let digest = self.bench.digest(self.engine, self.limit);
        assert_eq!(digest, self.model.content(), "{} {after}", self.engine);
    }
}

pub fn insert(ids: Ids) -> Operation {
    let (first, step, rows) = (ids.first(), ids.step(), ids.rows());
    Operation::Insert(Selection::Step { first, step, rows })
}

/// The method for the same operation by hand, and its arguments.
fn method_of(operation: &Operation) -> Option<(&'static str, u64, u64, u64)> {
    let (method, selection) = match operation {
        Operation::Insert(rows) => ("add_users", rows),
        Operation::Update(rows) => ("update_users", rows),
        Operation::Delete(rows) => ("delete_users", rows),
        Operation::Read(rows) => ("read_users", rows),
        _ => return None,
    };
    match selection {
        Selection::Step { first, step, rows } => Some((method, *first, *step, *rows)),
        Selection::List(_) => None,
    }
}

/// Follows a stream of operations, and compares with the model after each. Now and then, the
/// connection is closed or the canister upgraded.
pub fn follow(engine: Engine, bench: Bench, seed: u64) {
    let mut pair = Pair::new(engine, bench, 7);
    let (mut done, mut refused) = (0, 0);
    for (number, (operation, bytes)) in stream(seed).take(80).enumerate() {
        if number % 8 == 7 {
            match engine {
                Engine::LEVELDB => pair.bench.upgrade(),
                _ => pair.bench.call("close_connection", ()),
            }
        }
        let transaction = [None, Some(1), Some(5)][number % 3];
        match pair.apply_in(operation, bytes, transaction) {
            Ok(_) => done += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(done > 5 && refused > 5, "{done} done, {refused} refused");
    let scanned = pair.bench.measure("scan_users", count(engine, 10_000));
    assert_eq!(scanned.rows, pair.model.rows());
}
