//! DoltLite: the same tests as for SQLite in `bench`, and its own.

use super::canister::{Bench, Which, count, follow, rows};
use super::sqlite::{configure, taken, works};
use stablebench_protocol::{
    Digest, DigestPart, Engine, Error, Inspected, Job, JobPart, JournalMode, LockingMode, Occupant,
    Result, SqliteConfig, Storage, Synchronous, TempStore,
};
use stablebench_suite_history::{History, HistoryTask};
use stablebench_suite_sysbench::{KeyShape, Sysbench, SysbenchTask};

/// The fresh canister.
fn doltlite() -> Bench {
    Bench::of(Which::Doltlite)
}

fn filled(rows: u64) -> Bench {
    let mut bench = doltlite();
    bench.measure("add_users", (Engine::SQLITE, 0_u64, 10_u64, rows));
    bench
}

#[test]
fn it_follows_the_model() {
    let small = SqliteConfig {
        cache_size: Some(10),
        synchronous: Some(Synchronous::Full),
        locking_mode: Some(LockingMode::Normal),
        ..SqliteConfig::default()
    };
    for (seed, config) in (60..).zip([SqliteConfig::default(), small]) {
        let mut bench = doltlite();
        configure(&mut bench, config).unwrap();
        follow(Engine::SQLITE, bench, seed);
    }
}

#[test]
fn the_canister_has_doltlite_only() {
    let mut bench = doltlite();
    let described = bench.describe();
    assert_eq!(described.occupant, Occupant::Nobody);
    let engines: Vec<Engine> = described.engines.iter().map(|there| there.engine).collect();
    assert_eq!(engines, [Engine::SQLITE]);
    assert_eq!(described.sqlite.unwrap().version, "3.55.0");
    assert!(described.crates.iter().any(|of| of.name == "doltlite" && of.version == "0.51.6"));
    for engine in [Engine::BTREE, Engine::APPEND, Engine::ARRAY] {
        let refused: Result<()> = bench.update("add_users", rows(engine, 0, 10, 1));
        assert_eq!(refused, Err(Error::EngineUnavailable { engine }));
    }
    assert_eq!(bench.describe().stable_pages, 0, "stable memory is unused");
}

/// Names of configurations do not include the defaults; the methodology lists them.
#[test]
fn the_defaults_of_settings() {
    let mut bench = doltlite();
    let settings = configure(&mut bench, SqliteConfig::default()).unwrap();
    let expected = SqliteConfig {
        journal_mode: Some(JournalMode::Wal),
        synchronous: Some(Synchronous::Off),
        locking_mode: Some(LockingMode::Exclusive),
        temp_store: Some(TempStore::Memory),
        page_size: Some(4096),
        cache_size: Some(-65_536),
    };
    assert_eq!(taken(&settings), expected);
}

#[test]
fn settings_without_meaning_are_refused_with_the_reason() {
    let base = SqliteConfig::default();
    let filled = filled(100);
    let before = filled.contents();
    for (name, config) in [
        ("page_size", SqliteConfig { page_size: Some(8192), ..base }),
        ("journal_mode", SqliteConfig { journal_mode: Some(JournalMode::Memory), ..base }),
    ] {
        let mut bench = filled.fork();
        match configure(&mut bench, config) {
            Err(Error::SettingNotTaken { setting, reason: Some(reason), .. }) => {
                assert_eq!(setting, name);
                assert!(reason.contains("DoltLite"), "{reason}");
            }
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(bench.contents(), before, "{name}");
        works(&mut bench, 100);
    }
    let config = SqliteConfig {
        cache_size: Some(-2_000),
        synchronous: Some(Synchronous::Full),
        locking_mode: Some(LockingMode::Normal),
        temp_store: Some(TempStore::File),
        ..base
    };
    let mut bench = filled.fork();
    let settings = configure(&mut bench, config).unwrap();
    assert_eq!((settings.cache_size, settings.synchronous), (-2_000, Synchronous::Full));
    assert_eq!(
        (settings.locking_mode, settings.temp_store),
        (LockingMode::Normal, TempStore::File)
    );
    works(&mut bench, 100);
    bench.upgrade();
    assert_eq!(taken(&bench.settings()), taken(&settings));
}

#[test]
fn rows_survive_an_upgrade_but_not_a_reinstallation() {
    let mut bench = filled(1_000);
    bench.call("set_payload", (7_u32,));
    let before = bench.contents();
    for _ in 0..2 {
        bench.upgrade();
        let after = bench.contents();
        assert_eq!(after.engines[0].1, before.engines[0].1);
        assert_eq!((after.payload_bytes, after.settings), (7, before.settings));
    }
    works(&mut bench, 1_000);
    bench.reinstall();
    assert_eq!(bench.describe().engines[0].rows, 0);
}

#[test]
fn vacuum_releases_bytes() {
    let mut bench = filled(2_000);
    bench.measure("delete_users", rows(Engine::SQLITE, 0, 10, 1_500));
    let (digest, before) = (bench.digest(Engine::SQLITE, 1_000), bench.settings());
    for _ in 0..2 {
        bench.measure("vacuum", ());
        let after = bench.settings();
        assert!(after.page_count < before.page_count, "{before:?}, then {after:?}");
        assert_eq!(bench.digest(Engine::SQLITE, 1_000), digest);
    }
    bench.upgrade();
    assert_eq!(bench.digest(Engine::SQLITE, 1_000), digest);
    assert_eq!(bench.measure("insert_end", count(Engine::SQLITE, 5)).rows, 5);
}

#[test]
fn the_same_calls_cost_the_same() {
    let bench = filled(500);
    let both = [bench, filled(500)].map(|mut bench| {
        let cost = bench.measure("insert_middle", count(Engine::SQLITE, 50));
        (cost, bench.contents())
    });
    assert_eq!(both[0], both[1]);
}

fn part(job: Job, count: u64) -> JobPart {
    JobPart { job, seed: 1, from: 0, count, each: false }
}

fn history(task: HistoryTask) -> JobPart {
    let count = if task == HistoryTask::Insert { 100 } else { 1 };
    part(Job::new(&History { rows: 100, task }), count)
}

/// A failure after rows may have changed traps, and the next message finds no change.
#[test]
fn a_part_that_fails_leaves_nothing() {
    let mut bench = doltlite();
    for task in [HistoryTask::Create, HistoryTask::Insert, HistoryTask::Commit] {
        bench.run_part(&history(task));
    }
    bench.run_part(&history(HistoryTask::Branch));
    let inspect = |bench: &Bench| -> Inspected {
        bench.query("inspect", (history(HistoryTask::Diff).job,)).unwrap()
    };
    let before = inspect(&bench);
    // The branch exists already, before and after rows are changed on it.
    for task in [HistoryTask::Branch, HistoryTask::Diverge(10)] {
        bench.trapped(&history(task));
        assert_eq!(inspect(&bench), before);
    }
    let diff = bench.run_part(&history(HistoryTask::Diff));
    assert_eq!(diff.measurement.rows, 0);
}

/// A commit survives an upgrade, and so do changes that are not committed.
#[test]
fn history_survives_an_upgrade() {
    let mut bench = doltlite();
    let tasks = [HistoryTask::Create, HistoryTask::Insert, HistoryTask::Commit];
    for task in tasks.into_iter().chain([HistoryTask::Diverge(20), HistoryTask::Change(10)]) {
        bench.run_part(&history(task));
    }
    let differ = |bench: &mut Bench, task| -> (u64, Option<Digest>) {
        let read = bench.run_part(&history(task));
        (read.measurement.rows, read.results)
    };
    let reads = [(HistoryTask::Diff, 10), (HistoryTask::DiffBranch, 20)];
    let before = reads.map(|(task, _)| differ(&mut bench, task));
    bench.upgrade();
    for ((task, rows), before) in reads.into_iter().zip(before) {
        assert_eq!(differ(&mut bench, task), before, "{task:?}");
        assert_eq!(before.0, rows);
    }
}

/// The database on the heap is another one, and an upgrade removes it.
#[test]
fn a_database_on_the_heap() {
    let mut bench = doltlite();
    let job = |storage, task| {
        let shape = KeyShape::Integer;
        Job::new(&Sysbench { shape, storage, autocommit: false, rows: 10, task })
    };
    for (task, operations) in [(SysbenchTask::Create, 1), (SysbenchTask::Populate, 10)] {
        let part = part(job(Storage::Heap, task), operations);
        bench.run_part(&part);
    }
    let inspect = |bench: &Bench, storage| -> Result<Inspected> {
        bench.query("inspect", (job(storage, SysbenchTask::Create),))
    };
    assert_eq!(inspect(&bench, Storage::Heap).unwrap().virtual_bytes, 0);
    assert!(inspect(&bench, Storage::Stable).unwrap().virtual_bytes > 0);
    bench.upgrade();
    let content = |bench: &Bench| -> Result<DigestPart> {
        let nothing: Option<DigestPart> = None;
        bench.query("content", (job(Storage::Heap, SysbenchTask::Create), nothing, 10_u64))
    };
    assert!(matches!(content(&bench), Err(Error::Sqlite { .. })));
}
