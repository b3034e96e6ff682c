//! SQLite through `ic-sqlite-vfs`: the same tests as for SQLite in `bench`, and its own.

use super::canister::{Bench, Which, count, follow, in_transactions, rows, users_part};
use super::sqlite::{configure, taken, works};
use stablebench_protocol::{
    Engine, Error, Inspected, Job, JobPart, JournalMode, LockingMode, Measurement, Occupant,
    PhaseCost, Result, SqliteConfig, Storage, Synchronous, TempStore,
};
use stablebench_suite_db_bench::{DbBench, DbBenchTask, DbBenchWrite};
use stablebench_suite_keys::{KeyKind, Keys, KeysTask, LinkSchema};
use stablebench_suite_sysbench::{KeyShape, Sysbench, SysbenchTask};
use stablebench_suite_users::{Operation, Selection};
use stablebench_suite_vfs::{Vfs, VfsTask, VfsTransaction, VfsWork};

const PAGE_SIZES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];

fn vfs(config: SqliteConfig) -> Bench {
    Bench::configured_of(Which::Vfs, config)
}

fn filled(rows: u64) -> Bench {
    let mut bench = Bench::of(Which::Vfs);
    bench.measure("add_users", (Engine::SQLITE, 0_u64, 10_u64, rows));
    bench
}

#[test]
fn it_follows_the_model_with_pages_of_every_size() {
    for (seed, page_size) in (20..).zip([512, 4096, 16_384]) {
        let bench = vfs(SqliteConfig { page_size: Some(page_size), ..SqliteConfig::default() });
        assert_eq!(bench.settings().page_size, page_size);
        follow(Engine::SQLITE, bench, seed);
    }
}

#[test]
fn it_has_no_other_engine() {
    let mut bench = Bench::of(Which::Vfs);
    let described = bench.describe();
    assert_eq!(described.occupant, Occupant::Nobody);
    let engines: Vec<Engine> = described.engines.iter().map(|there| there.engine).collect();
    assert_eq!(engines, [Engine::SQLITE]);
    let names: Vec<&str> = described.crates.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["ic-cdk", "ic-sqlite-vfs", "ic-stable-structures"]);
    let sqlite = described.sqlite.unwrap();
    assert!(sqlite.version.starts_with("3."), "{}", sqlite.version);
    assert!(sqlite.compile_options.contains(&"OMIT_WAL".to_owned()));
    for engine in [Engine::BTREE, Engine::APPEND, Engine::ARRAY] {
        let refused: Result<()> = bench.update("add_users", rows(engine, 0, 10, 1));
        assert_eq!(refused, Err(Error::EngineUnavailable { engine }));
    }
    assert_eq!(bench.describe().stable_pages, 0, "stable memory is unused");
}

#[test]
fn settings_of_the_library_are_refused_with_the_reason() {
    let base = SqliteConfig::default();
    let modes = [
        (JournalMode::Delete, "delete"),
        (JournalMode::Truncate, "truncate"),
        (JournalMode::Persist, "persist"),
        (JournalMode::Wal, "wal"),
        (JournalMode::Off, "off"),
    ];
    let levels = [
        (Synchronous::Normal, "normal"),
        (Synchronous::Full, "full"),
        (Synchronous::Extra, "extra"),
    ];
    let modes = modes.map(|(mode, word)| {
        ("journal_mode", word, "memory", SqliteConfig { journal_mode: Some(mode), ..base })
    });
    let levels = levels.map(|(level, word)| {
        ("synchronous", word, "off", SqliteConfig { synchronous: Some(level), ..base })
    });
    let normal = SqliteConfig { locking_mode: Some(LockingMode::Normal), ..base };
    let file = SqliteConfig { temp_store: Some(TempStore::File), ..base };
    let others =
        [("locking_mode", "normal", "exclusive", normal), ("temp_store", "file", "memory", file)];
    let bench = filled(100);
    let before = bench.contents();
    for (name, asked, got, config) in modes.into_iter().chain(levels).chain(others) {
        let mut bench = bench.fork();
        match configure(&mut bench, config) {
            Err(Error::SettingNotTaken { setting, asked: asked_for, got: in_effect, reason }) => {
                let reported = (setting.as_str(), asked_for.as_str(), in_effect.as_str());
                assert_eq!(reported, (name, asked, got));
                assert!(reason.unwrap().contains("ic-sqlite-vfs"), "{name}={asked}");
            }
            other => panic!("{config:?}: {other:?}"),
        }
        assert_eq!(bench.contents(), before, "{config:?}");
        works(&mut bench, 100);
    }
}

#[test]
fn the_page_size_is_taken_before_the_first_write_and_kept() {
    for page_size in PAGE_SIZES {
        let config = SqliteConfig {
            page_size: Some(page_size),
            cache_size: Some(-2_000),
            ..SqliteConfig::default()
        };
        let mut bench = vfs(config);
        let settings = bench.settings();
        assert_eq!((settings.page_size, settings.cache_size), (page_size, -2_000));
        bench.measure("add_users", rows(Engine::SQLITE, 0, 10, 500));
        let other = if page_size == 512 { 1024 } else { 512 };
        let refused = configure(&mut bench, SqliteConfig { page_size: Some(other), ..config });
        assert!(
            matches!(&refused, Err(Error::SettingNotTaken { setting, reason: Some(_), .. })
                if setting == "page_size"),
            "{refused:?}"
        );
        // The cache can change at any time.
        let cache = SqliteConfig { cache_size: Some(77), ..config };
        assert_eq!(configure(&mut bench, cache).unwrap().cache_size, 77);
        bench.upgrade();
        assert_eq!(
            taken(&bench.settings()),
            SqliteConfig { page_size: Some(page_size), ..taken(&bench.settings()) }
        );
        assert_eq!(bench.settings().cache_size, 77);
        works(&mut bench, 500);
    }
}

#[test]
fn rows_survive_an_upgrade_but_not_a_reinstallation() {
    let mut bench = filled(1_000);
    bench.call("set_payload", (7_u32,));
    let before = bench.contents();
    for _ in 0..2 {
        bench.upgrade();
        let after = bench.contents();
        // The state is in its own memory.
        assert!(after.stable_pages - before.stable_pages <= 128);
        assert_eq!(after.engines, before.engines);
        assert_eq!((after.payload_bytes, after.settings), (7, before.settings));
    }
    works(&mut bench, 1_000);
    bench.reinstall();
    assert_eq!(bench.describe().engines[0].rows, 0);
}

#[test]
fn the_size_of_transactions_changes_the_cost_and_not_the_content() {
    let filled = filled(1_000);
    let operation = Operation::Insert(Selection::Step { first: 5, step: 50, rows: 200 });
    let costs = [Some(200), Some(7), Some(1)].map(|transaction| {
        let mut bench = filled.fork();
        let part = users_part(Engine::SQLITE, operation.clone());
        let cost = bench.run_part(&in_transactions(&part, transaction)).measurement.instructions;
        (cost, bench.digest(Engine::SQLITE, 1_000))
    });
    assert!(costs.iter().all(|(_, digest)| *digest == costs[0].1 && digest.rows == 1_200));
    assert!(costs[0].0 < costs[1].0 && costs[1].0 < costs[2].0, "{costs:?}");
}

#[test]
fn the_first_work_is_cold_and_checks_leave_it_cold() {
    let mut bench = filled(2_000);
    bench.upgrade();
    let read = || Operation::Read(Selection::List(vec![5_000]));
    for operation in [read(), Operation::Update(Selection::List(vec![5_000])), Operation::Count] {
        let mut bench = bench.fork();
        let refused: Result<Measurement> =
            bench.update("delete_users", rows(Engine::SQLITE, 5, 10, 1));
        assert_eq!(refused, Err(Error::IdMissing { id: 5 }));
        let part = users_part(Engine::SQLITE, operation.clone());
        let mut again = || bench.run_part(&part).measurement.instructions;
        let (first, second, third) = (again(), again(), again());
        assert!(first > second, "{operation:?}: {first}, then {second}");
        assert!(first - second > 2 * second.abs_diff(third), "{first}, {second}, {third}");
    }
}

#[test]
fn vacuum_gives_pages_back() {
    let mut bench = filled(2_000);
    bench.measure("delete_users", rows(Engine::SQLITE, 0, 10, 1_500));
    let (digest, before) = (bench.digest(Engine::SQLITE, 1_000), bench.settings());
    bench.measure("vacuum", ());
    let after = bench.settings();
    assert!(after.page_count < before.page_count && after.freelist_count == 0);
    assert_eq!(bench.digest(Engine::SQLITE, 1_000), digest);
    works_after(&mut bench, digest.rows);
}

fn works_after(bench: &mut Bench, there: u64) {
    assert_eq!(bench.measure("insert_end", count(Engine::SQLITE, 5)).rows, 5);
    assert_eq!(bench.digest(Engine::SQLITE, 1_000).rows, there + 5);
}

fn part(job: Job, count: u64) -> JobPart {
    JobPart { job, seed: 1, from: 0, count, each: false }
}

/// A failure after rows may have changed traps, and the next message finds no change.
#[test]
fn a_part_that_fails_leaves_nothing() {
    let keys = |task| {
        part(
            Job::new(&Keys {
                schema: LinkSchema::Id,
                key: KeyKind::Integer,
                users: 1,
                movies: 1,
                watches: 1,
                rows_a_millisecond: 1,
                foreign_keys: true,
                task,
            }),
            1,
        )
    };
    let mut bench = Bench::of(Which::Vfs);
    for task in [KeysTask::Create, KeysTask::Users] {
        bench.run_part(&keys(task));
    }
    let inspect = |bench: &Bench| -> Inspected {
        bench.query("inspect", (keys(KeysTask::Create).job,)).unwrap()
    };
    let before = inspect(&bench);
    let reject = bench.trapped(&keys(KeysTask::Users));
    assert!(reject.contains("UNIQUE constraint failed"), "{reject}");
    assert_eq!(inspect(&bench), before);
    let movies = bench.run_part(&keys(KeysTask::Movies));
    assert_eq!(movies.measurement.rows, 1, "no transaction was left open");
    // Foreign keys are checked, and that cannot be changed.
    let create: Keys = keys(KeysTask::Create).job.decode().unwrap();
    let off = part(Job::new(&Keys { foreign_keys: false, ..create }), 1);
    let refused = Bench::of(Which::Vfs).execute_part(&off);
    assert!(
        matches!(&refused, Err(Error::SettingNotTaken { setting, reason: Some(_), .. })
            if setting == "foreign_keys"),
        "{refused:?}"
    );
}

#[test]
fn unsupported_parts_change_nothing() {
    let db_bench =
        |task| part(Job::new(&DbBench { engine: Engine::SQLITE, rowids: false, task }), 1);
    let mut bench = Bench::of(Which::Vfs);
    let ready = |sync| db_bench(DbBenchTask::Ready { fresh: true, sync });
    bench.run_part(&ready(false));
    let write = DbBenchWrite { random: false, keys: 1, value_bytes: 9, batch: 1, stream: 0 };
    bench.run_part(&db_bench(DbBenchTask::Write(write)));
    let inspect =
        |bench: &Bench| -> Inspected { bench.query("inspect", (ready(false).job,)).unwrap() };
    let before = inspect(&bench);
    let refused = bench.execute_part(&ready(true));
    assert!(
        matches!(&refused, Err(Error::SettingNotTaken { setting, reason: Some(_), .. })
            if setting == "synchronous"),
        "{refused:?}"
    );
    assert_eq!(inspect(&bench), before);
    let heap = Sysbench {
        shape: KeyShape::Integer,
        storage: Storage::Heap,
        autocommit: false,
        rows: 1,
        task: SysbenchTask::Create,
    };
    let refused = bench.execute_part(&part(Job::new(&heap), 1));
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
}

fn job(transaction: VfsTransaction, task: VfsTask) -> Job {
    Job::new(&Vfs { transaction, copy: true, task })
}

/// In both canisters, the costs of all phases are the work and the readings of the counter.
#[test]
fn phases_are_the_whole() {
    const ALL: VfsTransaction = VfsTransaction::Message;
    for which in Which::SQLITE {
        let mut filled = Bench::of(which);
        for (task, rows) in [(VfsTask::Create, 1), (VfsTask::Work(VfsWork::Insert(0)), 500)] {
            filled.run_part(&part(job(ALL, task), rows));
        }
        for (work, transaction) in [
            (VfsWork::Insert(500), ALL),
            (VfsWork::Insert(500), VfsTransaction::Operations(10)),
            (VfsWork::Update, ALL),
            (VfsWork::Upsert, VfsTransaction::Statement),
            (VfsWork::Read, ALL),
            (VfsWork::Scan, ALL),
            (VfsWork::List, ALL),
        ] {
            for before in [VfsTask::Close, VfsTask::Prepare(work), VfsTask::Warm(work)] {
                let mut bench = filled.fork();
                let ready = part(job(transaction, before), 100);
                bench.run_part(&ready);
                let work = part(job(transaction, VfsTask::Work(work)), 100);
                let mut other = bench.fork();
                let whole = bench.run_part(&work.clone());
                assert_eq!(whole.measurement.rows, 100);
                let phases: Vec<PhaseCost> = other.update("phases", (work.clone(),)).unwrap();
                let sum: u64 = phases.iter().map(|phase| phase.instructions).sum();
                let times: u64 = phases.iter().map(|phase| phase.times).sum();
                let whole = whole.measurement.instructions;
                let case = format!("{which:?} {work:?} {before:?}: {phases:?}");
                // Allocations of the two executions have other addresses: the same statements
                // cost up to 1.5 % more or less in each.
                let tolerance = times * 1_000 + 2_000 + whole * 3 / 200;
                assert!(sum.abs_diff(whole) <= tolerance, "{whole}, {sum}: {case}");
                let opened = phases[0].instructions > 100_000;
                assert_eq!(opened, before == VfsTask::Close, "{case}");
            }
        }
    }
}

#[test]
fn phases_are_reported_for_this_suite_only() {
    let ready = DbBenchTask::Ready { fresh: true, sync: false };
    let other = Job::new(&DbBench { engine: Engine::SQLITE, rowids: false, task: ready });
    for which in Which::SQLITE {
        for job in [other.clone(), job(VfsTransaction::Message, VfsTask::Close)] {
            let reported: Result<Vec<PhaseCost>> =
                Bench::of(which).update("phases", (part(job, 1),));
            assert!(matches!(reported, Err(Error::Unsupported { .. })), "{reported:?}");
        }
        let list = job(VfsTransaction::Message, VfsTask::Work(VfsWork::List));
        let reported = Bench::of(which).execute_part(&part(list, 32_767));
        assert_eq!(reported, Err(Error::TooManyRows { limit: 32_766 }));
    }
}
