//! Scenarios of the bench canister: the methods that a controller and a stranger may call; and the cost of
//! work, of operations whose counts and cycles [`Bench`] compares, and of whole suites through the tool.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use candid::types::FuncMode;
use candid::{CandidType, Deserialize, Reserved, utils::ArgumentEncoder};
use candid_parser::utils::CandidSource;
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, Error, Executed, Inspected, Job, JobPart, JournalMode,
    KeptPart, Measurement, PartCost, Phase, PhaseCost, Setting, SqliteConfig, SqliteSettings,
};
use stablebench_suite_cuckoo::{Cuckoo, CuckooKeys, CuckooTask};
use stablebench_suite_sql::{Sql, Value};
use stablebench_suite_users::{Operation, Selection, Users, UsersTask};
use stablebench_suite_vfs::{Vfs, VfsTask, VfsTransaction, VfsWork};

use crate::replica::{Bench, CACHE_HOME, Embedded, Replica, STRANGER};

const BTREE: Engine = Engine::BTREE;
const SQLITE: Engine = Engine::SQLITE;

/// Returns the queries or the updates of the interface.
fn methods(queries: bool) -> BTreeSet<String> {
    let text = include_str!("../../canisters/bench.did");
    let (env, service) = CandidSource::Text(text).load().unwrap();
    let service = service.unwrap();
    let methods = env.as_service(&service).unwrap().iter();
    let asked = methods.filter(|(_, function)| {
        env.as_func(function).unwrap().modes.contains(&FuncMode::Query) == queries
    });
    asked.map(|(name, _)| name.clone()).collect()
}

/// The result of the method `sql`, in part.
#[derive(CandidType, Deserialize)]
struct SqlResult {
    rows: Vec<Vec<Value>>,
}

/// Calls methods and records their names.
struct Calls {
    bench: Bench,
    called: BTreeSet<String>,
}

impl Calls {
    fn new(replica: &dyn Replica) -> Self {
        Self { bench: Bench::new(replica), called: BTreeSet::new() }
    }

    fn work(&mut self, method: &str, arguments: impl ArgumentEncoder, rows: u64) {
        self.called.insert(method.to_owned());
        self.bench.work(method, arguments, rows);
    }

    fn update<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> T
    where
        T: CandidType + DeserializeOwned,
    {
        self.called.insert(method.to_owned());
        self.bench.update(method, arguments)
    }

    fn query<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> T
    where
        T: CandidType + DeserializeOwned,
    {
        self.called.insert(method.to_owned());
        self.bench.query(method, arguments)
    }

    /// Sends an update by a stranger, which must be refused.
    fn refused<T>(&mut self, method: &str, arguments: impl ArgumentEncoder)
    where
        T: CandidType + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        self.called.insert(method.to_owned());
        let answer = self.bench.update_as::<T>(STRANGER, method, arguments);
        assert_eq!(answer, Err(Error::NotController), "{method}");
    }
}

/// Returns a job of the suite cuckoo, which inserts items into a map of its own.
fn build(items: u64) -> JobPart {
    let (keys, task) = (CuckooKeys::Sequential, CuckooTask::Build);
    let job = Cuckoo { engine: BTREE, first_hash: None, keys, buckets: 128, items, task };
    JobPart { job: Job::new(&job), seed: 1, from: 0, count: items, each: false }
}

/// Returns a job of the suite users, whose operations are measured one by one.
fn users(engine: Engine, operation: Operation) -> JobPart {
    let count = operation.selection().map_or(1, Selection::rows);
    let task = UsersTask::Operation { operation, transaction: None };
    let job = Job::new(&Users { engine, payload_bytes: 30, task });
    JobPart { job, seed: 1, from: 0, count, each: true }
}

/// Returns a job of the suite vfs in one transaction.
fn vfs(task: VfsTask, rows: u64) -> JobPart {
    let job = Job::new(&Vfs { transaction: VfsTransaction::Message, copy: true, task });
    JobPart { job, seed: 1, from: 0, count: rows, each: false }
}

pub fn controllers_call_every_method(replica: &dyn Replica) {
    let mut calls = Calls::new(replica);
    calls.update::<()>("set_payload", (30_u32,));
    let config = SqliteConfig { cache_size: Some(77), ..SqliteConfig::default() };
    let taken: SqliteSettings = calls.update("configure_sqlite", (config,));
    assert_eq!(taken.cache_size, 77);
    let settings: Vec<Setting> = calls.update("configure", (vec![Setting::new("cache_size", 77)],));
    assert_eq!(settings, taken.list());
    calls.work("add_users", (BTREE, 0_u64, 10_u64, 5_u64), 5);
    calls.work("add_users_btree", (50_u64, 10_u64, 5_u64), 5);
    calls.work("add_users_sqlite", (0_u64, 10_u64, 10_u64), 10);
    for engine in [BTREE, SQLITE] {
        calls.work("insert_middle", (engine, 2_u64), 2);
        calls.work("insert_end", (engine, 3_u64), 3);
        // 0, 5, … 55: ten are as they were put in; 55 is between.
        calls.work("read_users", (engine, 0_u64, 5_u64, 12_u64), 7);
        calls.work("scan_users", (engine, 4_u64), 4);
        calls.work("update_users", (engine, 0_u64, 10_u64, 3_u64), 3);
        calls.work("delete_users", (engine, 10_u64, 10_u64, 2_u64), 2);
    }
    let [btree, sqlite] = [BTREE, SQLITE].map(|engine| {
        let job = users(engine, Operation::Count).job;
        let part: DigestPart = calls.query("content", (job, None::<DigestPart>, 100_u64));
        // 10 + 2 + 3 − 2.
        assert_eq!((part.done, part.digest.rows), (true, 13), "{engine}");
        part.digest
    });
    assert_eq!(btree, sqlite, "both engines have the same rows");
    for engine in [BTREE, SQLITE] {
        let read = |ids: &[u64]| users(engine, Operation::Read(Selection::List(ids.to_vec())));
        let executed: Executed = calls.update("execute", (read(&[30, 7, 30]), None::<u64>));
        assert_eq!((executed.measurement.rows, executed.each.len()), (2, 3), "{engine}");
        let results: Option<Digest> = calls.query("results", (read(&[30, 7, 30]),));
        assert_eq!((results.unwrap().rows, results), (2, executed.results), "{engine}");
        calls.update::<()>("stage", (read(&[7, 30]),));
        let staged: PartCost = calls.query("run_query", ());
        assert_eq!(staged.measurement.rows, 1, "{engine}");
        let id = 1 + u64::from(engine == SQLITE);
        let run: PartCost = calls.update("run", (id,));
        assert_eq!((run.measurement.rows, run.each.len()), (1, 2), "{engine}");
    }
    let part = build(7);
    let results: Option<Digest> = calls.query("results", (part.clone(),));
    assert_eq!(results, None);
    let built: Executed = calls.update("execute", (part.clone(), None::<u64>));
    assert_eq!(built.measurement.rows, 7);
    let content: DigestPart =
        calls.query("content", (part.job.clone(), None::<DigestPart>, 100_u64));
    assert_eq!((content.done, content.digest.rows), (true, 7));
    let inspected: Inspected = calls.query("inspect", (part.job,));
    assert!(inspected.stored_bytes > 0, "{inspected:?}");
    calls.update::<()>("close_connection", ());
    calls.work("vacuum", (), 0);
    let settings: SqliteSettings = calls.query("sqlite_settings", ());
    assert_eq!(settings.cache_size, 77);
    calls.update::<()>("reset", (BTREE,));
    let description: Description = calls.query("describe", ());
    assert_eq!(description.payload_bytes, 30);
    let rows = |engine| {
        let found = description.engines.iter().find(|there| there.engine == engine);
        found.map(|there| there.rows)
    };
    assert_eq!((rows(BTREE), rows(SQLITE)), (Some(0), Some(13)));
    let filled: Executed = calls.update("execute", (vfs(VfsTask::Create, 1), None::<u64>));
    assert_eq!(filled.measurement.rows, 0);
    let insert = VfsTask::Work(VfsWork::Insert(0));
    let phases: Vec<PhaseCost> = calls.update("phases", (vfs(insert, 7), None::<u64>));
    let times = |phase| phases.iter().find(|cost| cost.phase == phase).unwrap().times;
    assert_eq!((times(Phase::Step), times(Phase::Commit)), (7, 1), "{phases:?}");
    let counted: SqlResult =
        calls.update("sql", ("SELECT count(*) + ?1 FROM users", vec![Value::Integer(2)]));
    assert_eq!(counted.rows, [[Value::Integer(15)]]);
    let settings = Job::new(&Sql::Configure(Vec::new()));
    let kept: KeptPart = calls.query("kept", (settings, 0_u64));
    assert!(!kept.bytes.is_empty() && kept.next.is_none());
    let all: BTreeSet<String> = methods(true).union(&methods(false)).cloned().collect();
    assert_eq!(calls.called, all);
}

pub fn strangers_may_only_query(replica: &dyn Replica) {
    let mut calls = Calls::new(replica);
    calls.bench.work("add_users", (BTREE, 0_u64, 10_u64, 20_u64), 20);
    calls.bench.work("add_users", (SQLITE, 0_u64, 10_u64, 20_u64), 20);
    let digest = calls.bench.digest(SQLITE);
    let settings: SqliteSettings = calls.bench.query("sqlite_settings", ());

    // A controller may call each of these.
    let (free, there) = ((5_u64, 10_u64, 1_u64), (SQLITE, 0_u64, 10_u64, 5_u64));
    calls.refused::<Measurement>("add_users", (BTREE, 5_u64, 10_u64, 1_u64));
    calls.refused::<Measurement>("add_users_btree", free);
    calls.refused::<Measurement>("add_users_sqlite", free);
    calls.refused::<Measurement>("insert_middle", (SQLITE, 1_u64));
    calls.refused::<Measurement>("insert_end", (SQLITE, 1_u64));
    calls.refused::<Measurement>("read_users", there);
    calls.refused::<Measurement>("scan_users", (SQLITE, 1_u64));
    calls.refused::<Measurement>("update_users", there);
    calls.refused::<Measurement>("delete_users", there);
    calls.refused::<()>("set_payload", (7_u32,));
    calls.refused::<()>("reset", (SQLITE,));
    calls.refused::<SqliteSettings>("configure_sqlite", (SqliteConfig::default(),));
    calls.refused::<()>("close_connection", ());
    calls.refused::<Measurement>("vacuum", ());
    calls.refused::<Vec<Setting>>("configure", (Vec::<Setting>::new(),));
    calls.refused::<()>("stage", (build(7),));
    calls.refused::<PartCost>("run", (1_u64,));
    calls.refused::<Executed>("execute", (build(7), None::<u64>));
    calls.refused::<Vec<PhaseCost>>("phases", (vfs(VfsTask::Create, 1), None::<u64>));
    calls.refused::<Reserved>("sql", ("SELECT 1", Vec::<Value>::new()));
    assert_eq!(calls.called, methods(false));

    let Calls { mut bench, .. } = calls;
    assert_eq!(bench.digest(SQLITE), digest, "nothing has changed");
    // Queries have the same answers for strangers and controllers.
    let read = Operation::Read(Selection::List(vec![30]));
    let part = users(SQLITE, read);
    let arguments = (part.job.clone(), None::<DigestPart>, 100_u64);
    let content: DigestPart = bench.query_as(STRANGER, "content", arguments).unwrap();
    assert_eq!(content.digest, digest);
    let results: Option<Digest> = bench.query_as(STRANGER, "results", (part,)).unwrap();
    assert_eq!(results.map(|results| results.rows), Some(1));
    assert_eq!(bench.query_as(STRANGER, "sqlite_settings", ()), Ok(settings));
    let description: Description = bench.query("describe", ());
    assert_eq!(bench.query_as(STRANGER, "describe", ()), Ok(description));
    let job = build(7).job;
    let none: DigestPart =
        bench.query_as(STRANGER, "content", (job.clone(), None::<DigestPart>, 100_u64)).unwrap();
    assert_eq!((none.done, none.digest.rows), (true, 0), "nothing was built");
    let inspected: Inspected = bench.query_as(STRANGER, "inspect", (job,)).unwrap();
    assert_eq!(inspected.objects, [], "a map has no SQLite b-trees");
    let kept: KeptPart =
        bench.query_as(STRANGER, "kept", (Job::new(&Sql::Configure(Vec::new())), 0_u64)).unwrap();
    assert!(!kept.bytes.is_empty());
    let queries =
        ["content", "describe", "inspect", "kept", "results", "run_query", "sqlite_settings"];
    assert_eq!(methods(true), queries.map(str::to_owned).into());
}

/// Rows before the measured work.
const ROWS: u64 = 400;

/// Measures SQLite in a journal mode.
pub fn counts_of_sqlite(replica: &dyn Replica, mode: JournalMode) {
    let mut bench = Bench::new(replica);
    let config = SqliteConfig { journal_mode: Some(mode), ..SqliteConfig::default() };
    let settings: SqliteSettings = bench.update("configure_sqlite", (config,));
    assert_eq!(settings.journal_mode, mode);
    work(&mut bench, Engine::SQLITE);
    bench.work("vacuum", (), 0);
    bench.update::<()>("close_connection", ());
    // `work` leaves three rows.
    bench.work("read_users", (Engine::SQLITE, 0_u64, 10_u64, 20_u64), 3);
    let after: SqliteSettings = bench.query("sqlite_settings", ());
    assert_eq!(after.journal_mode, mode);
}

/// Measures an engine without options.
pub fn counts_of_engine(replica: &dyn Replica, engine: Engine) {
    work(&mut Bench::new(replica), engine);
}

fn work(bench: &mut Bench, engine: Engine) {
    let description: Description = bench.query("describe", ());
    assert!(description.engines.iter().all(|there| there.rows == 0));
    bench.work("add_users", (engine, 0_u64, 10_u64, ROWS), ROWS);
    bench.update::<()>("set_payload", (300_u32,));
    let mut rows = ROWS;
    // A slot of the array has the size of the payload that it was created for.
    if engine == Engine::ARRAY {
        bench.update::<()>("set_payload", (100_u32,));
    }
    for added in [1, 20] {
        bench.work("insert_end", (engine, added), added);
        rows += added;
    }
    bench.work("insert_middle", (engine, 20_u64), 20);
    rows += 20;
    bench.work("scan_users", (engine, 50_u64), 50);
    // The append floor has no index: it supports only adding and scanning.
    if engine != Engine::APPEND {
        bench.work("read_users", (engine, 0_u64, 10_u64, 50_u64), 50);
        bench.work("update_users", (engine, 100_u64, 10_u64, 30_u64), 30);
        bench.work("delete_users", (engine, 0_u64, 10_u64, 30_u64), 30);
        rows -= 30;
    }
    assert_eq!(bench.digest(engine).rows, rows);
    bench.update::<()>("reset", (engine,));
    bench.work("add_users", (engine, 0_u64, 10_u64, 3_u64), 3);
    bench.query::<Description>("describe", ());
}

// Small runs of each suite: a server takes a second for each fork.
pub const USERS: &[&str] =
    &["users", "--rows=600", "--batches=1,20", "--journal-modes=persist,wal"];
pub const DB_BENCH: &[&str] = &["db-bench", "--num=2000"];
pub const KEYS: &[&str] =
    &["keys", "--rows=300", "--questions=5", "--schemas=b,d", "--keys=integer,uuidv7"];
pub const SYSBENCH: &[&str] = &["sysbench", "--rows=300", "--keys=composite"];
pub const SQL: &[&str] = &[
    "sql",
    "--builtin=ycsb-a",
    "--transactions=20",
    "--per-message=5",
    "--engines=sqlite/persist,sqlite-vfs",
];
pub const MIX: &[&str] =
    &["mix", "--rows=300", "--indexes=1", "--engines=btree,sqlite/wal,sqlite-vfs"];
pub const CUCKOO: &[&str] = &["cuckoo", "--num=256", "--keys=scattered"];

fn measure(suite: &[&str], replica: &dyn Replica, directory: &Path, name: &str) {
    let mut command = stablebench(directory);
    command.arg("run").args(suite).args(["--out", name]);
    replica.configure(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Runs a suite through the tool: its costs must be equal on both replicas.
pub fn suite(replica: &dyn Replica, suite: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    measure(suite, &Embedded(replica.rules()), directory.path(), "embedded.json");
    measure(suite, replica, directory.path(), "tested.json");
    assert_no_difference(directory.path(), "embedded.json", "tested.json");
}

/// Compares two results files with the tool.
pub fn assert_no_difference(directory: &Path, one: &str, other: &str) {
    let mut compare = stablebench(directory);
    let output = compare.args(["compare", one, other, "--threshold=0%"]).output().unwrap();
    let printed = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}");
}

/// Returns a command of the tool that runs in `directory`, without colours.
pub fn stablebench(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stablebench"));
    command.current_dir(directory).env("NO_COLOR", "1").env("XDG_CACHE_HOME", CACHE_HOME);
    command
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
