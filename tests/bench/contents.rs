//! Each engine does what the model does.

use super::canister::{Bench, count, rows};
use stablebench_protocol::{
    Engine, Error, JournalMode, Measurement, Operation, Result, Selection, SqliteConfig,
    SqliteSettings, Work, Worked,
};
use stablebench_workload::operations::stream;
use stablebench_workload::{Amount, Ids, Model};

/// An engine and the model, which get the same operations.
struct Pair {
    engine: Engine,
    bench: Bench,
    model: Model,
    /// Rows that a message of the digest is about.
    limit: u64,
}

impl Pair {
    fn new(engine: Engine, bench: Bench, limit: u64) -> Self {
        let model = Model::default();
        Self { engine, bench, model, limit }
    }

    /// Does the same to both, and compares what comes of it; answers the rows.
    fn apply(&mut self, operation: Operation, bytes: u32) -> Result<u64> {
        self.apply_in(operation, bytes, None)
    }

    fn apply_in(
        &mut self,
        operation: Operation,
        bytes: u32,
        transaction: Option<u64>,
    ) -> Result<u64> {
        self.bench.do_it("set_payload", (bytes,));
        let expected = self.model.apply(&operation, bytes);
        let amount = |done: Result<Measurement>| {
            done.map(|measurement| Amount { rows: measurement.rows, bytes: measurement.bytes })
        };
        let case = format!("{} {operation:?}", self.engine);
        if let Some((method, first, step, number)) = method_of(&operation) {
            let arguments = rows(self.engine, first, step, number);
            let done = self.bench.fork().update(method, arguments);
            assert_eq!(amount(done), expected, "{case}");
        }
        let work = Work { engine: self.engine, operation, transaction, each: false };
        let done = self.bench.update::<Worked>("work", (work,));
        assert_eq!(amount(done.map(|worked| worked.measurement)), expected, "{case}");
        self.compare(&case);
        expected.map(|amount| amount.rows)
    }

    /// Adds rows where the canister chooses the ids; `ids` says which.
    fn place(&mut self, method: &str, ids: Ids, bytes: u32) {
        let measurement = self.bench.measure(method, (self.engine, ids.rows()));
        assert_eq!(measurement.rows, ids.rows());
        self.model.insert(ids, bytes).unwrap();
        self.compare(method);
    }

    fn compare(&self, after: &str) {
        let digest = self.bench.digest(self.engine, self.limit);
        assert_eq!(digest, self.model.digest(), "{} {after}", self.engine);
    }
}

/// The method that does nothing but the operation, and its arguments.
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

fn step(first: u64, step: u64, rows: u64) -> Selection {
    Selection::Step { first, step, rows }
}

fn ids(first: u64, step: u64, rows: u64) -> Ids {
    Ids::new(first, step, rows).unwrap()
}

/// The methods that need no index.
fn fill(engine: Engine) -> Pair {
    let mut pair = Pair::new(engine, Bench::new(), 97);
    let bytes = 100;
    let insert = Operation::Insert;
    assert_eq!(pair.apply(insert(step(0, 10, 1_000)), bytes), Ok(1_000));
    let middle = Ids::middle(pair.model.last_id(), 50).unwrap();
    assert_eq!(middle.first(), 5_005);
    pair.place("insert_middle", middle, bytes);
    let end = Ids::end(pair.model.last_id(), 30).unwrap();
    assert_eq!(end.first(), 10_000);
    pair.place("insert_end", end, bytes);
    let refused = pair.apply(insert(step(10_285, 5, 3)), bytes);
    assert_eq!(refused, Err(Error::IdExists { id: 10_290 }));
    for (limit, scanned) in [(1, 1), (500, 500), (5_000, 1_080)] {
        let measurement = pair.bench.measure("scan_users", count(engine, limit));
        assert_eq!(measurement.rows, scanned);
    }
    pair
}

#[test]
fn rows_are_added_looked_up_changed_and_removed() {
    for engine in [Engine::Btree, Engine::Sqlite, Engine::Array] {
        let mut pair = fill(engine);
        let read = |rows| (Operation::Read(rows), 0);
        // Rows around the half and after the end: every second id is there.
        let mut apply = |(operation, bytes)| pair.apply(operation, bytes);
        assert_eq!(apply(read(step(0, 10, 1_000))), Ok(1_000));
        assert_eq!(apply(read(step(0, 5, 400))), Ok(200));
        assert_eq!(apply(read(step(5_000, 5, 100))), Ok(100));
        assert_eq!(apply(read(step(10_300, 10, 100))), Ok(0));

        // Shorter texts than before, and for SQLite and the map longer ones too.
        let longest = if engine == Engine::Array { 100 } else { 5_000 };
        for bytes in [0, 37, longest] {
            let update = |rows| (Operation::Update(rows), bytes);
            assert_eq!(apply(update(step(100, 20, 40))), Ok(40));
            let missing = apply(update(step(100, 15, 40)));
            assert_eq!(missing, Err(Error::IdMissing { id: 115 }));
            // Half of these are new the first time.
            let overwrite = Operation::Overwrite(step(3_000, 5, 20));
            assert_eq!(apply((overwrite, bytes)), Ok(20));
            let repeated = Selection::List(vec![4_000, 55, 4_000, 20]);
            assert_eq!(apply((Operation::Overwrite(repeated), bytes)), Ok(4));
        }
        let delete = |rows| (Operation::Delete(rows), 0);
        assert_eq!(apply(delete(step(0, 30, 100))), Ok(100));
        let missing = apply(delete(step(40, 10, 100)));
        assert_eq!(missing, Err(Error::IdMissing { id: 60 }));
        assert_eq!(apply(read(step(2_000, 10, 100))), Ok(67));
        let shuffled = Selection::List(vec![20, 9_000, 4_010, 20, 10]);
        assert_eq!(apply(read(shuffled.clone())), Ok(5));
        assert_eq!(apply((Operation::Range { from: shuffled, rows: 3 }, 0)), Ok(15));
        // What was removed can be added again.
        assert_eq!(apply((Operation::Insert(step(0, 30, 100)), 1)), Ok(100));
        let removed = Selection::List(vec![30, 9_990, 10]);
        assert_eq!(apply(delete(removed.clone())), Ok(3));
        assert_eq!(apply((Operation::Insert(removed), 9)), Ok(3));
        // 1 080 rows, and 11 that were overwritten into being.
        assert_eq!(apply((Operation::Count, 0)), Ok(1_091));
    }
}

#[test]
fn a_log_is_added_to_and_scanned_and_nothing_else() {
    let mut pair = fill(Engine::Append);
    let before = pair.bench.contents();
    for (method, operation) in [
        ("read_users", "look rows up by id"),
        ("update_users", "change or remove rows"),
        ("delete_users", "change or remove rows"),
    ] {
        let arguments = rows(Engine::Append, 0, 10, 1);
        let done: Result<Measurement> = pair.bench.update(method, arguments);
        let unsupported =
            Error::Unsupported { engine: Engine::Append, operation: operation.to_owned() };
        assert_eq!(done, Err(unsupported), "{method}");
    }
    let work =
        |operation| Work { engine: Engine::Append, operation, transaction: None, each: false };
    for operation in [
        Operation::Overwrite(step(0, 10, 1)),
        Operation::Range { from: step(0, 10, 1), rows: 1 },
        Operation::Update(step(0, 10, 1)),
    ] {
        let done = pair.bench.update::<Worked>("work", (work(operation),));
        assert!(matches!(done, Err(Error::Unsupported { engine: Engine::Append, .. })), "{done:?}");
    }
    assert_eq!(pair.bench.contents(), before);
    assert_eq!(pair.bench.work(&work(Operation::Count)).measurement.rows, 1_080);
}

#[test]
fn the_methods_named_for_an_engine_add_to_it() {
    for (method, engine) in
        [("add_users_btree", Engine::Btree), ("add_users_sqlite", Engine::Sqlite)]
    {
        let mut pair = Pair::new(engine, Bench::new(), 7);
        let measurement = pair.bench.measure(method, (5_u64, 3_u64, 40_u64));
        assert_eq!(measurement.rows, 40);
        pair.model.insert(ids(5, 3, 40), 100).unwrap();
        pair.compare(method);
    }
}

#[test]
fn every_limit_gives_the_same_digest() {
    for engine in Engine::ALL {
        let bench = Bench::filled(&[engine], 100);
        let mut model = Model::default();
        model.insert(ids(0, 10, 100), 100).unwrap();
        for limit in [1, 2, 99, 100, 101, 1_000_000] {
            let digest = bench.digest(engine, limit);
            assert_eq!(digest, model.digest(), "{engine}, {limit} rows a message");
        }
    }
}

/// Does what a stream of operations says, and compares with the model after each.
pub fn follow(engine: Engine, bench: Bench, seed: u64) {
    let mut pair = Pair::new(engine, bench, 7);
    let (mut done, mut refused) = (0, 0);
    for (number, (operation, bytes)) in stream(seed).take(80).enumerate() {
        // Now and then, the connection is cold.
        if number % 8 == 7 {
            match engine {
                Engine::Leveldb => pair.bench.upgrade(),
                _ => pair.bench.do_it("close_connection", ()),
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

#[test]
fn the_map_follows_the_model() {
    (0..8).for_each(|seed| follow(Engine::Btree, Bench::new(), seed));
}

#[test]
fn sqlite_follows_the_model_in_every_journal_mode() {
    use JournalMode::*;
    // Small pages: rows are split, and the larger ones overflow.
    for (seed, mode) in (10..).zip([Delete, Truncate, Persist, Memory, Wal, Off]) {
        let bench = Bench::configured(SqliteConfig {
            journal_mode: Some(mode),
            page_size: Some(512),
            ..SqliteConfig::default()
        });
        let settings: SqliteSettings = bench.settings();
        assert_eq!((settings.journal_mode, settings.page_size), (mode, 512));
        follow(Engine::Sqlite, bench, seed);
    }
}

#[test]
fn describe_tells_the_digest_of_what_one_message_can_read() {
    for engine in Engine::ALL {
        let mut bench = Bench::filled(&[engine], 10_000);
        let told = |bench: &Bench| {
            let described = bench.describe().engines.into_iter();
            let mut of_engine = described.filter(|there| there.engine == engine);
            of_engine.next().unwrap().digest
        };
        assert_eq!(told(&bench), Some(bench.digest(engine, 3_000)), "{engine}");
        bench.measure("insert_end", count(engine, 1));
        assert_eq!(told(&bench), None, "{engine}");
    }
}
