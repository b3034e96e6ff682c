//! A benchmark canister on the embedded replica: calls of its methods, and the model that it follows.

use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use candid::utils::ArgumentEncoder;
use candid::{CandidType, decode_one, encode_args};
use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, EngineDescription, Executed, Job, JobPart,
    Measurement, Occupant, PartCost, Result, SqliteConfig, SqliteSettings,
};
use stablebench_replica::{Canister, Execution, Module, Principal, Replica};
use stablebench_suite_users::work::{Ids, UsersModel, stream};
use stablebench_suite_users::{Operation, Selection, Users, UsersTask};
use stablebench_workload::Model;

pub const CONTROLLER: Principal = Principal::anonymous();

/// The engines of the canister `bench`.
pub const ENGINES: [Engine; 4] = [Engine::BTREE, Engine::SQLITE, Engine::APPEND, Engine::ARRAY];

/// Those above the floor.
pub const MANAGED: [Engine; 2] = [Engine::BTREE, Engine::SQLITE];

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

macro_rules! module_of {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/canisters/modules/",
            $name,
            ".wasm.gz"
        ))
    };
}

/// The list that the program has.
#[allow(dead_code, reason = "xtask uses the rest")]
#[path = "../../src/canisters/list.rs"]
pub mod list;

/// The canisters of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Bench,
    Vfs,
    Leveldb,
    Doltlite,
    /// Without engines.
    Calls,
    /// Without engines of the suite users.
    Collections,
}

impl Which {
    /// The canisters with engines that share these tests.
    pub const ENGINES: [Self; 3] = [Self::Bench, Self::Vfs, Self::Leveldb];

    /// The canisters with the harness.
    pub const ALL: [Self; 6] =
        [Self::Bench, Self::Vfs, Self::Leveldb, Self::Doltlite, Self::Calls, Self::Collections];

    /// The canisters with SQLite itself.
    pub const SQLITE: [Self; 2] = [Self::Bench, Self::Vfs];

    pub fn source(self) -> list::Source {
        match self {
            Self::Bench => list::BENCH,
            Self::Vfs => list::BENCH_VFS,
            Self::Leveldb => list::BENCH_LEVELDB,
            Self::Doltlite => list::BENCH_DOLTLITE,
            Self::Calls => list::BENCH_CALLS,
            Self::Collections => list::BENCH_COLLECTIONS,
        }
    }

    /// Methods that are not in the interface, because their arguments are plain bytes.
    pub fn raw_methods(self) -> &'static [&'static str] {
        match self {
            Self::Calls => &["give", "take"],
            _ => &[],
        }
    }

    /// The plain module. The command-line tests use the same compiled form of it.
    pub fn module(self) -> &'static Module {
        static MODULES: [OnceLock<Module>; Which::ALL.len()] =
            [const { OnceLock::new() }; Which::ALL.len()];
        MODULES[self as usize]
            .get_or_init(|| replica().compile(&plain(self.source().deployable())).unwrap())
    }
}

/// Returns what is in a file in gzip.
pub fn plain(file: &[u8]) -> Vec<u8> {
    let mut wasm = Vec::new();
    GzDecoder::new(file).read_to_end(&mut wasm).unwrap();
    wasm
}

pub fn replica() -> &'static Replica {
    static REPLICA: OnceLock<Replica> = OnceLock::new();
    REPLICA.get_or_init(|| {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stablebench");
        Replica::new(stablebench_replica::Rules::of_2025_10(), Some(cache)).unwrap()
    })
}

pub fn module() -> &'static Module {
    Which::Bench.module()
}

/// The arguments of a method on the rows `first`, `first + step`, ….
pub fn rows(engine: Engine, first: u64, step: u64, rows: u64) -> (Engine, u64, u64, u64) {
    (engine, first, step, rows)
}

/// The arguments of a method on a number of rows.
pub fn count(engine: Engine, rows: u64) -> (Engine, u64) {
    (engine, rows)
}

/// A canister.
#[derive(Debug)]
pub struct Bench(pub Canister);

impl Bench {
    /// The fresh canister `bench`.
    pub fn new() -> Self {
        Self::of(Which::Bench)
    }

    /// A fresh canister.
    pub fn of(which: Which) -> Self {
        let mut bench = Self(replica().create_canister().unwrap());
        bench.install(which.module());
        bench
    }

    /// The fresh canister `bench` with settings of SQLite.
    pub fn configured(config: SqliteConfig) -> Self {
        Self::configured_of(Which::Bench, config)
    }

    pub fn configured_of(which: Which, config: SqliteConfig) -> Self {
        let mut bench = Self::of(which);
        let settings: Result<SqliteSettings> = bench.update("configure_sqlite", (config,));
        settings.unwrap_or_else(|error| panic!("{config:?}: {error}"));
        bench
    }

    /// The canister `bench` with rows 0, 10, … in some engines.
    pub fn filled(engines: &[Engine], rows: u64) -> Self {
        let mut bench = Self::new();
        for &engine in engines {
            bench.measure("add_users", (engine, 0_u64, 10_u64, rows));
        }
        bench
    }

    pub fn fork(&self) -> Self {
        Self(self.0.fork())
    }

    pub fn reinstall(&mut self) {
        let module = self.0.module().unwrap().clone();
        self.install(&module);
    }

    fn install(&mut self, module: &Module) {
        let arguments = encode_args(()).unwrap();
        let execution = self.0.install(module, CONTROLLER, &arguments);
        execution.unwrap().outcome.unwrap();
    }

    pub fn upgrade(&mut self) {
        let module = self.0.module().unwrap().clone();
        let arguments = encode_args(()).unwrap();
        let execution = self.0.upgrade(&module, CONTROLLER, &arguments);
        execution.unwrap().outcome.unwrap();
    }

    /// Calls an update, and returns the costs too.
    pub fn execute<T>(
        &mut self,
        caller: Principal,
        method: &str,
        arguments: impl ArgumentEncoder,
    ) -> (Result<T>, Execution)
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        let execution = self.0.update(caller, method, &arguments).unwrap();
        (answer(method, &execution), execution)
    }

    /// Calls an update as the controller.
    pub fn update<T>(&mut self, method: &str, arguments: impl ArgumentEncoder) -> Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        self.execute(CONTROLLER, method, arguments).0
    }

    /// Calls an update that measures and must not fail.
    pub fn measure(&mut self, method: &str, arguments: impl ArgumentEncoder) -> Measurement {
        self.update(method, arguments).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Executes a part, which must not fail.
    pub fn run_part(&mut self, part: &JobPart) -> Executed {
        self.execute_part(part).unwrap_or_else(|error| panic!("{part:?}: {error}"))
    }

    /// Executes a part.
    pub fn execute_part(&mut self, part: &JobPart) -> Result<Executed> {
        self.update("execute", (part,))
    }

    /// Executes a part that must trap, and returns the message.
    pub fn trapped(&mut self, part: &JobPart) -> String {
        let arguments = encode_args((part,)).unwrap();
        let execution = self.0.update(CONTROLLER, "execute", &arguments).unwrap();
        execution.outcome.unwrap_err().to_string()
    }

    /// Stages a part and runs it in a query.
    pub fn run_in_query(&self, part: &JobPart) -> Result<PartCost> {
        let mut fork = self.fork();
        fork.call("stage", (part,));
        fork.query("run_query", ())
    }

    /// Describes the content of an engine.
    pub fn describe_engine(&self, engine: Engine) -> EngineDescription {
        let engines = self.describe().engines.into_iter();
        let mut of_engine = engines.filter(|described| described.engine == engine);
        of_engine.next().unwrap_or_else(|| panic!("{engine} is missing"))
    }

    /// Calls an update without a result that must not fail.
    pub fn call(&mut self, method: &str, arguments: impl ArgumentEncoder) {
        self.update::<()>(method, arguments).unwrap_or_else(|error| panic!("{method}: {error}"));
    }

    pub fn query<T>(&self, method: &str, arguments: impl ArgumentEncoder) -> Result<T>
    where
        T: CandidType + DeserializeOwned,
    {
        let arguments = encode_args(arguments).unwrap();
        answer(method, &self.0.query(CONTROLLER, method, &arguments).unwrap())
    }

    pub fn describe(&self) -> Description {
        self.query("describe", ()).unwrap()
    }

    pub fn settings(&self) -> SqliteSettings {
        self.query("sqlite_settings", ()).unwrap()
    }

    /// The digest of all rows of the suite users, `limit` rows per message.
    pub fn digest(&self, engine: Engine, limit: u64) -> Digest {
        self.content(&users_part(engine, Operation::Count).job, limit)
    }

    /// The digest of all rows of a job's tables, `limit` rows per message.
    pub fn content(&self, job: &Job, limit: u64) -> Digest {
        let mut part: Option<DigestPart> = None;
        loop {
            let next: DigestPart = self.query("content", (job, part, limit)).unwrap();
            let seen = next.digest.rows - part.map_or(0, |part| part.digest.rows);
            if next.done {
                assert!(seen <= limit, "{seen} rows, at most {limit}");
                return next.digest;
            }
            assert_eq!(seen, limit, "a message that is not the last");
            part = Some(next);
        }
    }

    /// Everything that a refused call must not change.
    pub fn contents(&self) -> Contents {
        let description = self.describe();
        let engines = description.engines.iter();
        Contents {
            occupant: description.occupant,
            payload_bytes: description.payload_bytes,
            stable_pages: description.stable_pages,
            engines: engines
                .map(|engine| {
                    // Checks may cache what they read; that is not content.
                    let engine = EngineDescription { cache_bytes: 0, ..*engine };
                    (engine, self.digest(engine.engine, 10_000))
                })
                .collect(),
            settings: self.query("sqlite_settings", ()).ok(),
        }
    }
}

/// The content of a canister.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    pub occupant: Occupant,
    pub payload_bytes: u32,
    pub stable_pages: u64,
    pub engines: Vec<(EngineDescription, Digest)>,
    /// SQLite's, if it can be used.
    pub settings: Option<SqliteSettings>,
}

fn answer<T>(method: &str, execution: &Execution) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let reply = execution.outcome.as_ref();
    let reply = reply.unwrap_or_else(|reject| panic!("{method}: {reject}"));
    decode_one(reply).unwrap_or_else(|error| panic!("{method} returned another type: {error}"))
}

/// All of an operation of the suite users, with payloads of 100 bytes, in one transaction.
pub fn users_part(engine: Engine, operation: Operation) -> JobPart {
    let count = operation.selection().map_or(1, Selection::rows);
    let task = UsersTask::Operation { operation, transaction: None };
    JobPart { count, ..whole(&Users { engine, payload_bytes: 100, task }) }
}

/// A job of one operation.
pub fn whole<J: stablebench_protocol::SuiteJob>(job: &J) -> JobPart {
    JobPart { job: Job::new(job), seed: 1, from: 0, count: 1, each: false }
}

/// The same part of the suite users, changed.
pub fn with_users(part: &JobPart, change: impl FnOnce(&mut Users)) -> JobPart {
    let mut users: Users = part.job.decode().unwrap();
    change(&mut users);
    JobPart { job: Job::new(&users), ..part.clone() }
}

/// The same part of the suite users in transactions of a size.
pub fn in_transactions(part: &JobPart, size: Option<u64>) -> JobPart {
    with_users(part, |users| {
        if let UsersTask::Operation { transaction, .. } = &mut users.task {
            *transaction = size;
        }
    })
}

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
