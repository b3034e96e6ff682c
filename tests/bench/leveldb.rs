//! LevelDB: what is asked of the other engines, and what is its own.

use super::canister::{Bench, Which, count, rows};
use super::contents::follow;
use candid::{CandidType, Principal};
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Compression, Cuckoo, CuckooKeys, CuckooTask, DbBench, DbBenchTask, DbBenchWrite, Digest,
    DigestPart, Engine, Error, Inspected, Job, LeveldbConfig, Measurement, Occupant, Operation,
    Part, Performed, PointStore, Result, Selection, SqliteConfig, SqliteSettings, Work, Worked,
};
use stablebench_workload::db_bench::KEY_BYTES;

const STRANGER: Principal = Principal::from_slice(&[7]);
const LEVELDB: Engine = Engine::Leveldb;

/// The least that it takes: tables of several levels come of few rows.
const SMALL: LeveldbConfig =
    LeveldbConfig { compression: Some(Compression::None), write_buffer_size: Some(64 << 10) };
const SNAPPY: LeveldbConfig = LeveldbConfig { compression: Some(Compression::Snappy), ..SMALL };

fn leveldb(config: LeveldbConfig) -> Bench {
    let mut bench = Bench::of(Which::Leveldb);
    assert_eq!(bench.update("configure_leveldb", (config,)), Ok(config));
    bench
}

fn filled(config: LeveldbConfig, rows: u64) -> Bench {
    let mut bench = leveldb(config);
    bench.measure("add_users", (LEVELDB, 0_u64, 10_u64, rows));
    bench
}

fn digest(bench: &Bench) -> Digest {
    bench.digest(LEVELDB, 10_000)
}

#[test]
fn it_follows_the_model_compressed_or_not() {
    for (seed, config) in
        (40..).zip([SMALL, SNAPPY, LeveldbConfig { write_buffer_size: None, ..SNAPPY }])
    {
        let mut bench = Bench::of(Which::Leveldb);
        bench.update::<LeveldbConfig>("configure_leveldb", (config,)).unwrap();
        follow(LEVELDB, bench, seed);
    }
}

#[test]
fn it_has_no_other_engine() {
    let mut bench = Bench::of(Which::Leveldb);
    let described = bench.describe();
    assert_eq!(described.occupant, Occupant::Nobody);
    let engines: Vec<Engine> = described.engines.iter().map(|there| there.engine).collect();
    assert_eq!(engines, [LEVELDB]);
    let crates: Vec<(&str, bool)> = described
        .crates
        .iter()
        .map(|of| (of.name.as_str(), of.version.starts_with(|first: char| first.is_ascii_digit())))
        .collect();
    let names = ["ic-cdk", "ic-stable-structures", "rusty-leveldb", "snap"];
    assert_eq!(crates, names.map(|name| (name, true)));
    assert_eq!(described.sqlite, None);
    for engine in [Engine::Btree, Engine::Append, Engine::Array, Engine::Sqlite] {
        let refused: Result<()> = bench.update("add_users", rows(engine, 0, 10, 1));
        assert_eq!(refused, Err(Error::EngineUnavailable { engine }));
    }
    let none = Err(Error::EngineUnavailable { engine: Engine::Sqlite });
    let config = (SqliteConfig::default(),);
    assert_eq!(bench.update::<SqliteSettings>("configure_sqlite", config), none);
    let cuckoo = Job::Cuckoo(Cuckoo {
        store: PointStore::Btree,
        keys: CuckooKeys::Sequential,
        buckets: 16,
        items: 8,
        task: CuckooTask::Build,
    });
    let part = Part { job: cuckoo, seed: 1, from: 0, count: 8, each: false };
    let refused = bench.update::<Performed>("perform", (part,));
    assert_eq!(refused, Err(Error::EngineUnavailable { engine: Engine::Cuckoo }));
    assert_eq!(bench.describe().stable_pages, 0, "nobody has used stable memory");
}

#[test]
fn settings_are_read_back_may_change_and_survive_an_upgrade() {
    let default =
        LeveldbConfig { compression: Some(Compression::None), write_buffer_size: Some(4 << 20) };
    let mut bench = Bench::of(Which::Leveldb);
    let configure = |bench: &mut Bench, config: LeveldbConfig| {
        bench.update::<LeveldbConfig>("configure_leveldb", (config,))
    };
    assert_eq!(configure(&mut bench, LeveldbConfig::default()), Ok(default));
    bench.measure("add_users", rows(LEVELDB, 0, 10, 1_000));
    let before = digest(&bench);
    // Rows stay, whatever they are compressed by.
    assert_eq!(configure(&mut bench, SNAPPY), Ok(SNAPPY));
    assert_eq!(digest(&bench), before);
    bench.measure("insert_end", count(LEVELDB, 2_000));
    bench.upgrade();
    bench.measure("insert_end", count(LEVELDB, 2_000));
    let small = bench.describe_engine(LEVELDB).stored_bytes;
    let plain = {
        let mut bench = filled(SMALL, 1_000);
        (0..2).for_each(|_| {
            bench.measure("insert_end", count(LEVELDB, 2_000));
        });
        bench.describe_engine(LEVELDB).stored_bytes
    };
    assert!(small < plain * 3 / 4, "{small}, {plain}");

    let contents = bench.contents();
    for bytes in [0, 65_535, (1 << 30) + 1, u32::MAX] {
        let asked = LeveldbConfig { write_buffer_size: Some(bytes), ..SMALL };
        let refused = configure(&mut bench, asked).unwrap_err();
        assert!(
            matches!(&refused, Error::Unsupported { engine: LEVELDB, operation }
                if operation.contains("between 65536 and 1073741824")),
            "{refused:?}"
        );
    }
    assert_eq!(bench.contents(), contents);
}

/// In the table on the heap, whose log is half on the heap as well, and in files.
#[test]
fn rows_survive_upgrades_and_nothing_a_reinstallation() {
    for (config, rows) in [(LeveldbConfig::default(), 300_u64), (SMALL, 5_000)] {
        let mut bench = Bench::of(Which::Leveldb);
        bench.update::<LeveldbConfig>("configure_leveldb", (config,)).unwrap();
        bench.do_it("set_payload", (57_u32,));
        bench.measure("add_users", (LEVELDB, 0_u64, 10_u64, rows));
        let mut expected = digest(&bench);
        for _ in 0..3 {
            bench.upgrade();
            assert_eq!(digest(&bench), expected);
            assert_eq!(bench.describe().payload_bytes, 57);
            bench.measure("insert_end", count(LEVELDB, 10));
            bench.measure("delete_users", (LEVELDB, 0_u64, 10_u64, 1_u64));
            bench.measure("add_users", (LEVELDB, 0_u64, 10_u64, 1_u64));
            let after = digest(&bench);
            assert_eq!(after.rows, expected.rows + 10);
            expected = after;
        }
        bench.reinstall();
        let described = bench.describe();
        assert_eq!((described.occupant, described.stable_pages), (Occupant::Nobody, 0));
    }
}

#[test]
fn an_upgrade_of_a_fresh_canister_keeps_the_payload() {
    let mut bench = Bench::of(Which::Leveldb);
    bench.do_it("set_payload", (7_u32,));
    bench.upgrade();
    assert_eq!(bench.describe().payload_bytes, 7);
    assert_eq!(bench.measure("insert_end", count(LEVELDB, 3)).rows, 3);
    bench.upgrade();
    assert_eq!(digest(&bench).rows, 3);
}

#[test]
fn the_first_work_after_an_upgrade_opens_the_database_and_checks_do_not() {
    let mut bench = filled(SMALL, 3_000);
    let read =
        |bench: &mut Bench| bench.measure("read_users", rows(LEVELDB, 0, 200, 10)).instructions;
    read(&mut bench);
    let warm = read(&mut bench);
    bench.upgrade();
    let mut refused = bench.fork();
    let cold = read(&mut bench);
    assert!(cold > 2 * warm, "{cold} cold, {warm} warm");
    let missing: Result<Measurement> = refused.update("delete_users", rows(LEVELDB, 5, 10, 1));
    assert_eq!(missing, Err(Error::IdMissing { id: 5 }));
    let still = read(&mut refused);
    assert!(still > 2 * warm, "{still} cold, {warm} warm");
}

/// Whether the number was kept or has to be counted.
#[test]
fn the_number_of_rows_is_told() {
    let mut bench = filled(SMALL, 2_000);
    let told = |bench: &Bench| bench.describe_engine(LEVELDB).rows;
    assert_eq!(told(&bench), 2_000);
    bench.measure("delete_users", rows(LEVELDB, 0, 10, 700));
    bench.measure("insert_end", count(LEVELDB, 50));
    assert_eq!(told(&bench), 1_350);
    let refused: Result<Measurement> = bench.update("insert_middle", count(LEVELDB, u64::MAX));
    assert!(refused.is_err());
    let operation = Operation::Overwrite(Selection::Step { first: 0, step: 5, rows: 1_500 });
    bench.work(&Work { engine: LEVELDB, operation, transaction: Some(100), each: false });
    let expected = digest(&bench).rows;
    assert_eq!(told(&bench), expected);
    bench.upgrade();
    assert_eq!(told(&bench), expected);
    bench.measure("insert_end", count(LEVELDB, 5));
    assert_eq!(told(&bench), expected + 5);
    let counting =
        Work { engine: LEVELDB, operation: Operation::Count, transaction: None, each: false };
    let counted = bench.work(&counting).measurement;
    assert_eq!(counted.rows, expected + 5);
    assert!(counted.instructions > 1_000 * expected, "it reads them all");
    bench.do_it("reset", (LEVELDB,));
    assert_eq!(told(&bench), 0);
}

#[test]
fn two_canisters_cost_the_same() {
    let costs = || {
        let mut bench = filled(SMALL, 4_000);
        let mut costs = vec![bench.describe().stable_pages];
        for step in [30, 70, 110] {
            let read = bench.measure("read_users", rows(LEVELDB, 0, step, 300));
            let scan = bench.measure("scan_users", count(LEVELDB, 4_000));
            let update = bench.measure("update_users", rows(LEVELDB, 0, step, 300));
            costs.extend([read, scan, update].map(|of| of.instructions));
        }
        bench.upgrade();
        costs.push(bench.measure("insert_end", count(LEVELDB, 900)).instructions);
        costs
    };
    assert_eq!(costs(), costs());
}

#[test]
fn a_store_that_is_emptied_and_filled_again_takes_no_more_stable_memory() {
    let mut bench = filled(SMALL, 8_000);
    let mut pages = Vec::new();
    for _ in 0..3 {
        bench.do_it("reset", (LEVELDB,));
        assert_eq!(digest(&bench), Digest::default());
        bench.measure("add_users", (LEVELDB, 0_u64, 10_u64, 8_000_u64));
        let there = bench.describe_engine(LEVELDB);
        pages.push((bench.describe().stable_pages, there.virtual_bytes, there.stored_bytes));
    }
    assert!(pages.iter().all(|of| *of == pages[0]), "{pages:?}");
}

/// Without a limit on stable memory that is near, a message runs out of instructions.
#[test]
fn a_message_that_is_too_much_leaves_everything_as_it_was() {
    let mut bench = filled(SMALL, 2_000);
    let before = bench.contents();
    bench.do_it("set_payload", (10_000_u32,));
    let work = Work {
        engine: LEVELDB,
        operation: Operation::Insert(Selection::Step { first: 1, step: 10, rows: 100_000 }),
        transaction: Some(100),
        each: false,
    };
    let arguments = candid::encode_args((work, None::<u64>)).unwrap();
    let trapped = bench.0.update(super::canister::CONTROLLER, "work", &arguments).unwrap();
    assert!(trapped.outcome.is_err());
    bench.do_it("set_payload", (100_u32,));
    assert_eq!(bench.contents(), before);
    bench.measure("insert_end", count(LEVELDB, 10));
    bench.upgrade();
    assert_eq!(digest(&bench).rows, before.engines[0].1.rows + 10);
}

#[test]
fn rows_that_are_there_or_missing_refuse_a_call_that_changes_nothing() {
    let mut bench = filled(SNAPPY, 1_000);
    let before = bench.contents();
    for (method, arguments, error) in [
        ("add_users", rows(LEVELDB, 5, 5, 2), Error::IdExists { id: 10 }),
        ("update_users", rows(LEVELDB, 0, 5, 9), Error::IdMissing { id: 5 }),
        ("delete_users", rows(LEVELDB, 9_990, 10, 2), Error::IdMissing { id: 10_000 }),
    ] {
        assert_eq!(bench.update::<Measurement>(method, arguments), Err(error), "{method}");
        assert_eq!(bench.contents(), before, "{method}");
    }
}

#[test]
fn updates_are_for_controllers() {
    fn refused<T>(bench: &mut Bench, method: &str, arguments: impl candid::utils::ArgumentEncoder)
    where
        T: CandidType + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let (done, _) = bench.execute::<T>(STRANGER, method, arguments);
        assert_eq!(done, Err(Error::NotController), "{method}");
    }
    let mut bench = filled(SMALL, 100);
    let before = bench.contents();
    refused::<LeveldbConfig>(&mut bench, "configure_leveldb", (SNAPPY,));
    refused::<Measurement>(&mut bench, "insert_end", count(LEVELDB, 1));
    refused::<()>(&mut bench, "reset", (LEVELDB,));
    refused::<Performed>(&mut bench, "perform", (part(READY, 1),));
    let counting =
        Work { engine: LEVELDB, operation: Operation::Count, transaction: None, each: false };
    refused::<Worked>(&mut bench, "work", (counting,));
    assert_eq!(bench.contents(), before);
}

const READY: DbBenchTask = DbBenchTask::Ready { fresh: true, sync: false };

fn job(engine: Engine, task: DbBenchTask) -> Job {
    Job::DbBench(DbBench { engine, rowids: false, task })
}

fn part(task: DbBenchTask, count: u64) -> Part {
    Part { job: job(LEVELDB, task), seed: 1, from: 0, count, each: true }
}

fn perform(bench: &mut Bench, task: DbBenchTask, count: u64) -> Performed {
    bench.update("perform", (part(task, count),)).unwrap()
}

fn write(batch: u64) -> DbBenchTask {
    DbBenchTask::Write(DbBenchWrite {
        random: true,
        keys: 3_000,
        value_bytes: 100,
        batch,
        stream: 0,
    })
}

fn content(bench: &Bench, engine: Engine) -> Digest {
    let part = None::<DigestPart>;
    let part: DigestPart = bench.query("content", (job(engine, READY), part, 9_000_u64)).unwrap();
    assert!(part.done);
    part.digest
}

/// What a benchmark leaves is what it leaves in another engine, through an upgrade.
#[test]
fn benchmarks_leave_what_other_engines_have() {
    let mut btree = Bench::new();
    for task in [READY, write(1)] {
        let part = Part { job: job(Engine::Btree, task), ..part(task, 3_000) };
        btree.update::<Performed>("perform", (part,)).unwrap();
    }
    let expected = content(&btree, Engine::Btree);
    for batch in [1, 100, 1_000] {
        let mut bench = leveldb(SNAPPY);
        perform(&mut bench, READY, 1);
        let written = perform(&mut bench, write(batch), 3_000);
        assert_eq!(written.measurement.bytes, 3_000 * (KEY_BYTES as u64 + 100));
        assert_eq!(content(&bench, LEVELDB), expected, "{batch}");
        // A put is all of its work where it is a batch of its own.
        let puts: u64 = written.each.iter().map(|each| each.instructions).sum();
        let share = puts * 100 / written.measurement.instructions;
        assert!(if batch == 1 { share > 90 } else { share < 50 }, "{batch}: {share} %");
        bench.upgrade();
        assert_eq!(content(&bench, LEVELDB), expected, "{batch}");
        let inspected: Inspected = bench.query("inspect", (job(LEVELDB, READY),)).unwrap();
        assert!(inspected.stored_bytes > 10_000 && inspected.virtual_bytes > 5 << 20);
        perform(&mut bench, READY, 1);
        assert_eq!(content(&bench, LEVELDB), Digest::default());
        assert_eq!(bench.describe_engine(LEVELDB).rows, 0, "the users' rows are elsewhere");
    }
}

/// Where the end of the log waits, and that it is nowhere lost.
#[test]
fn synced_batches_are_in_the_files_when_the_message_ends() {
    let [plain, synced] = [false, true].map(|sync| {
        let mut bench = Bench::of(Which::Leveldb);
        perform(&mut bench, DbBenchTask::Ready { fresh: true, sync }, 1);
        perform(&mut bench, write(1), 20);
        let inspected: Inspected = bench.query("inspect", (job(LEVELDB, READY),)).unwrap();
        let before = content(&bench, LEVELDB);
        bench.upgrade();
        assert_eq!(content(&bench, LEVELDB), before);
        inspected.stored_bytes
    });
    assert!(synced > plain + 20 * 116, "{synced}, {plain}");
}
