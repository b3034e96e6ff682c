//! DoltLite: what is asked of SQLite in `bench`, and what is its own. Without a C compiler
//! its canister cannot be built; these tests say so then, and pass.

use super::canister::{Bench, CONTROLLER, Which, count, rows};
use super::contents::follow;
use super::sqlite::{configure, taken, works};
use candid::encode_args;
use stablebench_protocol::{
    Engine, Error, History, HistoryTask, Inspected, Job, JournalMode, KeyShape, LockingMode,
    Occupant, Part, Performed, Result, SqliteConfig, Storage, Synchronous, Sysbench, SysbenchTask,
    TempStore,
};

/// Fresh, where the canister can be built.
fn doltlite() -> Option<Bench> {
    Which::Doltlite.can_be_built().then(|| Bench::of(Which::Doltlite))
}

fn filled(rows: u64) -> Option<Bench> {
    let mut bench = doltlite()?;
    bench.measure("add_users", (Engine::Sqlite, 0_u64, 10_u64, rows));
    Some(bench)
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
        let Some(mut bench) = doltlite() else { return };
        configure(&mut bench, config).unwrap();
        follow(Engine::Sqlite, bench, seed);
    }
}

#[test]
fn it_is_doltlite_and_has_no_other_engine() {
    let Some(mut bench) = doltlite() else { return };
    let described = bench.describe();
    assert_eq!(described.occupant, Occupant::Nobody);
    let engines: Vec<Engine> = described.engines.iter().map(|there| there.engine).collect();
    assert_eq!(engines, [Engine::Sqlite]);
    assert_eq!(described.sqlite.unwrap().version, "3.55.0");
    assert!(described.crates.iter().any(|of| of.name == "doltlite" && of.version == "0.51.6"));
    for engine in [Engine::Btree, Engine::Append, Engine::Array] {
        let refused: Result<()> = bench.update("add_users", rows(engine, 0, 10, 1));
        assert_eq!(refused, Err(Error::EngineUnavailable { engine }));
    }
    assert_eq!(bench.describe().stable_pages, 0, "nobody has used stable memory");
}

/// They are left out of the names of settings, and told in the methodology.
#[test]
fn what_it_runs_with_where_nothing_is_asked_for() {
    let Some(mut bench) = doltlite() else { return };
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
fn what_means_nothing_to_it_is_refused_with_the_reason() {
    let base = SqliteConfig::default();
    let Some(filled) = filled(100) else { return };
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
fn rows_survive_an_upgrade_and_nothing_a_reinstallation() {
    let Some(mut bench) = filled(1_000) else { return };
    bench.do_it("set_payload", (7_u32,));
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
fn vacuum_gives_bytes_back() {
    let Some(mut bench) = filled(2_000) else { return };
    bench.measure("delete_users", rows(Engine::Sqlite, 0, 10, 1_500));
    let (digest, before) = (bench.digest(Engine::Sqlite, 1_000), bench.settings());
    for _ in 0..2 {
        bench.measure("vacuum", ());
        let after = bench.settings();
        assert!(after.page_count < before.page_count, "{before:?}, then {after:?}");
        assert_eq!(bench.digest(Engine::Sqlite, 1_000), digest);
    }
    bench.upgrade();
    assert_eq!(bench.digest(Engine::Sqlite, 1_000), digest);
    assert_eq!(bench.measure("insert_end", count(Engine::Sqlite, 5)).rows, 5);
}

#[test]
fn the_same_calls_cost_the_same() {
    let Some(bench) = filled(500) else { return };
    let both = [bench, filled(500).unwrap()].map(|mut bench| {
        let cost = bench.measure("insert_middle", count(Engine::Sqlite, 50));
        (cost, bench.contents())
    });
    assert_eq!(both[0], both[1]);
}

fn part(job: Job, count: u64) -> Part {
    Part { job, seed: 1, from: 0, count, each: false }
}

fn history(task: HistoryTask) -> Part {
    let count = if task == HistoryTask::Insert { 100 } else { 1 };
    part(Job::History(History { rows: 100, task }), count)
}

/// What fails after rows may have changed ends the message, and the next finds nothing of it.
#[test]
fn a_part_that_fails_leaves_nothing() {
    let Some(mut bench) = doltlite() else { return };
    for task in [HistoryTask::Create, HistoryTask::Insert, HistoryTask::Commit] {
        bench.update::<Performed>("perform", (history(task),)).unwrap();
    }
    bench.update::<Performed>("perform", (history(HistoryTask::Branch),)).unwrap();
    let inspect = |bench: &Bench| -> Inspected {
        bench.query("inspect", (history(HistoryTask::Diff).job,)).unwrap()
    };
    let before = inspect(&bench);
    // The branch is there already, before and after rows are changed on it.
    for task in [HistoryTask::Branch, HistoryTask::Diverge(10)] {
        let arguments = encode_args((history(task),)).unwrap();
        let again = bench.0.update(CONTROLLER, "perform", &arguments).unwrap();
        assert!(again.outcome.is_err(), "{task:?}");
        assert_eq!(inspect(&bench), before);
    }
    let diff: Performed = bench.update("perform", (history(HistoryTask::Diff),)).unwrap();
    assert_eq!(diff.measurement.rows, 0);
}

/// A commit survives an upgrade, and so do changes that are not committed.
#[test]
fn history_survives_an_upgrade() {
    let Some(mut bench) = doltlite() else { return };
    let tasks = [HistoryTask::Create, HistoryTask::Insert, HistoryTask::Commit];
    for task in tasks.into_iter().chain([HistoryTask::Diverge(20), HistoryTask::Change(10)]) {
        bench.update::<Performed>("perform", (history(task),)).unwrap();
    }
    let differ = |bench: &mut Bench, task| -> (u64, Option<stablebench_protocol::Digest>) {
        let read: Performed = bench.update("perform", (history(task),)).unwrap();
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

/// The database on the heap is another, and ends with the heap.
#[test]
fn there_is_a_database_on_the_heap() {
    let Some(mut bench) = doltlite() else { return };
    let job = |storage, task| {
        let shape = KeyShape::Integer;
        Job::Sysbench(Sysbench { shape, storage, autocommit: false, rows: 10, task })
    };
    for (task, operations) in [(SysbenchTask::Create, 1), (SysbenchTask::Populate, 10)] {
        let part = part(job(Storage::Heap, task), operations);
        bench.update::<Performed>("perform", (part,)).unwrap();
    }
    let inspect = |bench: &Bench, storage| -> Result<Inspected> {
        bench.query("inspect", (job(storage, SysbenchTask::Create),))
    };
    assert_eq!(inspect(&bench, Storage::Heap).unwrap().virtual_bytes, 0);
    assert!(inspect(&bench, Storage::Stable).unwrap().virtual_bytes > 0);
    bench.upgrade();
    let content = |bench: &Bench| -> Result<stablebench_protocol::DigestPart> {
        let nothing: Option<stablebench_protocol::DigestPart> = None;
        bench.query("content", (job(Storage::Heap, SysbenchTask::Create), nothing, 10_u64))
    };
    assert!(matches!(content(&bench), Err(Error::Sqlite { .. })));
}
