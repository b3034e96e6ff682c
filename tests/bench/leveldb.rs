//! LevelDB: the same tests as for other engines, and its own.

use super::canister::{Bench, Which, count, follow, in_transactions, rows, users_part, with_users};
use candid::{CandidType, Principal};
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Digest, Engine, Error, Executed, Inspected, Job, JobPart, Measurement, Occupant, Result,
    Setting, SqliteConfig, SqliteSettings,
};
use stablebench_suite_db_bench::{DbBench, DbBenchTask, DbBenchWrite};
use stablebench_suite_users::{Operation, Selection};
use stablebench_workload::digits::KEY_BYTES;

const STRANGER: Principal = Principal::from_slice(&[7]);
const LEVELDB: Engine = Engine::LEVELDB;

/// Settings of LevelDB; nothing for a default.
#[derive(Clone, Copy)]
struct Config {
    compression: Option<&'static str>,
    write_buffer_size: Option<u32>,
}

const DEFAULT: Config = Config { compression: None, write_buffer_size: None };
/// The minimum buffer: few rows make tables of several levels.
const SMALL: Config = Config { compression: Some("none"), write_buffer_size: Some(64 << 10) };
const SNAPPY: Config = Config { compression: Some("snappy"), ..SMALL };

impl Config {
    fn settings(self) -> Vec<Setting> {
        let compression = self.compression.map(|value| Setting::new("compression", value));
        let size = self.write_buffer_size.map(|value| Setting::new("write_buffer_size", value));
        compression.into_iter().chain(size).collect()
    }
}

fn configure(bench: &mut Bench, config: Config) -> Result<Vec<Setting>> {
    bench.update("configure", (config.settings(),))
}

fn leveldb(config: Config) -> Bench {
    let mut bench = Bench::of(Which::Leveldb);
    let taken = configure(&mut bench, config).unwrap();
    assert!(config.settings().iter().all(|setting| taken.contains(setting)), "{taken:?}");
    assert_eq!(taken.len(), 2);
    bench
}

fn filled(config: Config, rows: u64) -> Bench {
    let mut bench = leveldb(config);
    bench.measure("add_users", (LEVELDB, 0_u64, 10_u64, rows));
    bench
}

fn digest(bench: &Bench) -> Digest {
    bench.digest(LEVELDB, 10_000)
}

#[test]
fn it_follows_the_model_compressed_or_not() {
    for (seed, config) in (40..).zip([SMALL, SNAPPY, Config { write_buffer_size: None, ..SNAPPY }])
    {
        follow(LEVELDB, leveldb(config), seed);
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
    for engine in [Engine::BTREE, Engine::APPEND, Engine::ARRAY, Engine::SQLITE] {
        let refused: Result<()> = bench.update("add_users", rows(engine, 0, 10, 1));
        assert_eq!(refused, Err(Error::EngineUnavailable { engine }));
    }
    let none = Err(Error::EngineUnavailable { engine: Engine::SQLITE });
    let config = (SqliteConfig::default(),);
    assert_eq!(bench.update::<SqliteSettings>("configure_sqlite", config), none.clone());
    let sqlite = JobPart { job: job(Engine::SQLITE, READY), ..part(READY, 1) };
    assert_eq!(bench.execute_part(&sqlite).map(drop), none.map(drop));
    assert_eq!(bench.describe().stable_pages, 0, "stable memory is unused");
}

#[test]
fn settings_are_read_back_may_change_and_survive_an_upgrade() {
    let default = Config { compression: Some("none"), write_buffer_size: Some(4 << 20) };
    let mut bench = Bench::of(Which::Leveldb);
    assert_eq!(configure(&mut bench, DEFAULT), Ok(default.settings()));
    bench.measure("add_users", rows(LEVELDB, 0, 10, 1_000));
    let before = digest(&bench);
    // Rows stay, however they are compressed.
    assert_eq!(configure(&mut bench, SNAPPY), Ok(SNAPPY.settings()));
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
        let asked = Config { write_buffer_size: Some(bytes), ..SMALL };
        let refused = configure(&mut bench, asked).unwrap_err().to_string();
        assert!(refused.contains("between 65536 and 1073741824"), "{refused}");
    }
    for (name, value) in [("compression", "zstd"), ("block_size", "4096")] {
        let refused: Result<Vec<Setting>> =
            bench.update("configure", (vec![Setting::new(name, value)],));
        assert!(matches!(&refused, Err(Error::InvalidSetting { .. })), "{refused:?}");
    }
    assert_eq!(bench.contents(), contents);
}

/// Rows in the table on the heap, whose log is partly on the heap too, and rows in files.
#[test]
fn rows_survive_upgrades_but_not_a_reinstallation() {
    for (config, rows) in [(DEFAULT, 300_u64), (SMALL, 5_000)] {
        let mut bench = leveldb(config);
        bench.call("set_payload", (57_u32,));
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
    bench.call("set_payload", (7_u32,));
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

/// The number is known or has to be counted.
#[test]
fn the_number_of_rows_is_described() {
    let mut bench = filled(SMALL, 2_000);
    let described = |bench: &Bench| bench.describe_engine(LEVELDB).rows;
    assert_eq!(described(&bench), 2_000);
    bench.measure("delete_users", rows(LEVELDB, 0, 10, 700));
    bench.measure("insert_end", count(LEVELDB, 50));
    assert_eq!(described(&bench), 1_350);
    let refused: Result<Measurement> = bench.update("insert_middle", count(LEVELDB, u64::MAX));
    assert!(refused.is_err());
    let operation = Operation::Overwrite(Selection::Step { first: 0, step: 5, rows: 1_500 });
    bench.run_part(&in_transactions(&users_part(LEVELDB, operation), Some(100)));
    let expected = digest(&bench).rows;
    assert_eq!(described(&bench), expected);
    bench.upgrade();
    assert_eq!(described(&bench), expected);
    bench.measure("insert_end", count(LEVELDB, 5));
    assert_eq!(described(&bench), expected + 5);
    let counted = bench.run_part(&users_part(LEVELDB, Operation::Count)).measurement;
    assert_eq!(counted.rows, expected + 5);
    assert!(counted.instructions > 1_000 * expected, "it reads them all");
    bench.call("reset", (LEVELDB,));
    assert_eq!(described(&bench), 0);
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
fn a_reset_engine_reuses_its_memory() {
    let mut bench = filled(SMALL, 8_000);
    let mut pages = Vec::new();
    for _ in 0..3 {
        bench.call("reset", (LEVELDB,));
        assert_eq!(digest(&bench), Digest::default());
        bench.measure("add_users", (LEVELDB, 0_u64, 10_u64, 8_000_u64));
        let described = bench.describe_engine(LEVELDB);
        let bytes = (described.virtual_bytes, described.stored_bytes);
        pages.push((bench.describe().stable_pages, bytes));
    }
    assert!(pages.iter().all(|of| *of == pages[0]), "{pages:?}");
}

/// The message runs out of instructions.
#[test]
fn a_message_that_traps_changes_nothing() {
    let mut bench = filled(SMALL, 2_000);
    let before = bench.contents();
    let insert = Operation::Insert(Selection::Step { first: 1, step: 10, rows: 100_000 });
    let part = in_transactions(&users_part(LEVELDB, insert), Some(100));
    bench.trapped(&with_users(&part, |users| users.payload_bytes = 10_000));
    assert_eq!(bench.contents(), before);
    bench.measure("insert_end", count(LEVELDB, 10));
    bench.upgrade();
    assert_eq!(digest(&bench).rows, before.engines[0].1.rows + 10);
}

#[test]
fn calls_on_existing_or_missing_rows_change_nothing() {
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
    refused::<Vec<Setting>>(&mut bench, "configure", (SNAPPY.settings(),));
    refused::<Measurement>(&mut bench, "insert_end", count(LEVELDB, 1));
    refused::<()>(&mut bench, "reset", (LEVELDB,));
    refused::<Executed>(&mut bench, "execute", (part(READY, 1),));
    assert_eq!(bench.contents(), before);
}

const READY: DbBenchTask = DbBenchTask::Ready { fresh: true, sync: false };

fn job(engine: Engine, task: DbBenchTask) -> Job {
    Job::new(&DbBench { engine, rowids: false, task })
}

fn part(task: DbBenchTask, count: u64) -> JobPart {
    JobPart { job: job(LEVELDB, task), seed: 1, from: 0, count, each: true }
}

fn execute(bench: &mut Bench, task: DbBenchTask, count: u64) -> Executed {
    bench.run_part(&part(task, count))
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
    bench.content(&job(engine, READY), 9_000)
}

/// A benchmark writes the same keys and values as in another engine, and an upgrade keeps them.
#[test]
fn benchmarks_write_the_same_as_in_other_engines() {
    let mut btree = Bench::new();
    for task in [READY, write(1)] {
        let part = JobPart { job: job(Engine::BTREE, task), ..part(task, 3_000) };
        btree.run_part(&part);
    }
    let expected = content(&btree, Engine::BTREE);
    for batch in [1, 100, 1_000] {
        let mut bench = leveldb(SNAPPY);
        execute(&mut bench, READY, 1);
        let written = execute(&mut bench, write(batch), 3_000);
        assert_eq!(written.measurement.bytes, 3_000 * (KEY_BYTES as u64 + 100));
        assert_eq!(content(&bench, LEVELDB), expected, "{batch}");
        // If a put is its own batch, it is all of the work.
        let puts: u64 = written.each.iter().map(|each| each.instructions).sum();
        let share = puts * 100 / written.measurement.instructions;
        assert!(if batch == 1 { share > 90 } else { share < 50 }, "{batch}: {share} %");
        bench.upgrade();
        assert_eq!(content(&bench, LEVELDB), expected, "{batch}");
        let inspected: Inspected = bench.query("inspect", (job(LEVELDB, READY),)).unwrap();
        assert!(inspected.stored_bytes > 10_000 && inspected.virtual_bytes > 5 << 20);
        execute(&mut bench, READY, 1);
        assert_eq!(content(&bench, LEVELDB), Digest::default());
        assert_eq!(bench.describe_engine(LEVELDB).rows, 0, "the users' rows are elsewhere");
    }
}

/// Without syncing, the end of the log waits on the heap. It is not lost.
#[test]
fn synced_batches_are_in_the_files_when_the_message_ends() {
    let [plain, synced] = [false, true].map(|sync| {
        let mut bench = Bench::of(Which::Leveldb);
        execute(&mut bench, DbBenchTask::Ready { fresh: true, sync }, 1);
        execute(&mut bench, write(1), 20);
        let inspected: Inspected = bench.query("inspect", (job(LEVELDB, READY),)).unwrap();
        let before = content(&bench, LEVELDB);
        bench.upgrade();
        assert_eq!(content(&bench, LEVELDB), before);
        inspected.stored_bytes
    });
    assert!(synced > plain + 20 * 116, "{synced}, {plain}");
}
