//! Each engine does what the model does.

use super::canister::{Bench, count, rows};
use stablebench_protocol::{
    Engine, Error, JournalMode, Measurement, Result, SqliteConfig, SqliteSettings,
};
use stablebench_workload::operations::stream;
use stablebench_workload::{Ids, Model, Operation};

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

    /// Does the same to both, and compares what comes of it.
    fn apply(&mut self, operation: Operation) -> Result<u64> {
        let (method, ids, expected) = match operation {
            Operation::Insert { ids, bytes } => {
                self.bench.do_it("set_payload", (bytes,));
                let expected = self.model.insert(ids, bytes);
                ("add_users", ids, expected.map(|()| ids.rows()))
            }
            Operation::Update { ids, bytes } => {
                self.bench.do_it("set_payload", (bytes,));
                let expected = self.model.update(ids, bytes);
                ("update_users", ids, expected.map(|()| ids.rows()))
            }
            Operation::Delete { ids } => {
                let expected = self.model.delete(ids);
                ("delete_users", ids, expected.map(|()| ids.rows()))
            }
            Operation::Read { ids } => ("read_users", ids, Ok(self.model.read(ids))),
        };
        let arguments = (self.engine, ids.first(), ids.step(), ids.rows());
        let done: Result<Measurement> = self.bench.update(method, arguments);
        assert_eq!(
            done.map(|measurement| measurement.rows),
            expected,
            "{} {operation:?}",
            self.engine
        );
        self.compare(&format!("{operation:?}"));
        expected
    }

    /// Adds rows where the canister chooses the ids; `ids` says which.
    fn place(&mut self, method: &str, ids: Ids, bytes: u32) {
        let measurement = self.bench.work(method, (self.engine, ids.rows()));
        assert_eq!(measurement.rows, ids.rows());
        self.model.insert(ids, bytes).unwrap();
        self.compare(method);
    }

    fn compare(&self, after: &str) {
        let digest = self.bench.digest(self.engine, self.limit);
        assert_eq!(digest, self.model.digest(), "{} {after}", self.engine);
    }
}

fn ids(first: u64, step: u64, rows: u64) -> Ids {
    Ids::new(first, step, rows).unwrap()
}

/// The methods that need no index.
fn fill(engine: Engine) -> Pair {
    let mut pair = Pair::new(engine, Bench::new(), 97);
    let bytes = 100;
    let insert = |ids| Operation::Insert { ids, bytes };
    assert_eq!(pair.apply(insert(ids(0, 10, 1_000))), Ok(1_000));
    let middle = Ids::middle(pair.model.last_id(), 50).unwrap();
    assert_eq!(middle.first(), 5_005);
    pair.place("insert_middle", middle, bytes);
    let end = Ids::end(pair.model.last_id(), 30).unwrap();
    assert_eq!(end.first(), 10_000);
    pair.place("insert_end", end, bytes);
    let refused = pair.apply(insert(ids(10_285, 5, 3)));
    assert_eq!(refused, Err(Error::IdExists { id: 10_290 }));
    for (limit, scanned) in [(1, 1), (500, 500), (5_000, 1_080)] {
        let measurement = pair.bench.work("scan_users", count(engine, limit));
        assert_eq!(measurement.rows, scanned);
    }
    pair
}

#[test]
fn rows_are_added_looked_up_changed_and_removed() {
    for engine in [Engine::Btree, Engine::Sqlite, Engine::Array] {
        let mut pair = fill(engine);
        let read = |ids| Operation::Read { ids };
        // Rows around the half and after the end: every second id is there.
        assert_eq!(pair.apply(read(ids(0, 10, 1_000))), Ok(1_000));
        assert_eq!(pair.apply(read(ids(0, 5, 400))), Ok(200));
        assert_eq!(pair.apply(read(ids(5_000, 5, 100))), Ok(100));
        assert_eq!(pair.apply(read(ids(10_300, 10, 100))), Ok(0));

        // Shorter texts than before, and for SQLite and the map longer ones too.
        let longest = if engine == Engine::Array { 100 } else { 5_000 };
        for bytes in [0, 37, longest] {
            let update = |ids| Operation::Update { ids, bytes };
            assert_eq!(pair.apply(update(ids(100, 20, 40))), Ok(40));
            let missing = pair.apply(update(ids(100, 15, 40)));
            assert_eq!(missing, Err(Error::IdMissing { id: 115 }));
        }
        let delete = |ids| Operation::Delete { ids };
        assert_eq!(pair.apply(delete(ids(0, 30, 100))), Ok(100));
        let missing = pair.apply(delete(ids(40, 10, 100)));
        assert_eq!(missing, Err(Error::IdMissing { id: 60 }));
        assert_eq!(pair.apply(read(ids(0, 10, 300))), Ok(200));
        // What was removed can be added again.
        let again = Operation::Insert { ids: ids(0, 30, 100), bytes: 1 };
        assert_eq!(pair.apply(again), Ok(100));
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
    assert_eq!(pair.bench.contents(), before);
}

#[test]
fn the_methods_named_for_an_engine_add_to_it() {
    for (method, engine) in
        [("add_users_btree", Engine::Btree), ("add_users_sqlite", Engine::Sqlite)]
    {
        let mut pair = Pair::new(engine, Bench::new(), 7);
        let measurement = pair.bench.work(method, (5_u64, 3_u64, 40_u64));
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

fn follow(engine: Engine, bench: Bench, seed: u64) {
    let mut pair = Pair::new(engine, bench, 7);
    let (mut done, mut refused) = (0, 0);
    for (number, operation) in stream(seed).take(60).enumerate() {
        // Now and then, the connection is cold.
        if number % 8 == 7 {
            pair.bench.do_it("close_connection", ());
        }
        match pair.apply(operation) {
            Ok(_) => done += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(done > 5 && refused > 5, "{done} done, {refused} refused");
    let scanned = pair.bench.work("scan_users", count(engine, 10_000));
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
        bench.work("insert_end", count(engine, 1));
        assert_eq!(told(&bench), None, "{engine}");
    }
}
