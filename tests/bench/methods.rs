//! Methods of the canisters: callers, arguments and parts of jobs that are refused, repeated calls, and measurements,
//! which agree with the replica.
//!
//! The conformance cases contain what a PocketIC server counted for `users.wasm.gz`, a canister that
//! does the same inserts in the plainest way. Here it runs next to the canister `bench`, with fewer
//! rows: measurements are the engines' work and next to nothing else.

use super::canister::{
    Bench, CONTROLLER, ENGINES, MANAGED, Which, count, module, replica, root, rows, users_part,
};
use candid::utils::ArgumentEncoder;
use candid::{CandidType, Principal, Reserved, decode_one, encode_args};
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, Error, Executed, Inspected, Job, JobPart, KeptPart,
    MAX_PAYLOAD_BYTES, Measurement, Occupant, PartCost, PhaseCost, Result, Setting, SqliteConfig,
    SqliteSettings,
};
use stablebench_replica::{Canister, Execution, MethodKind};
use stablebench_suite_keys::{KeyKind, Keys, KeysTask, LinkSchema};
use stablebench_suite_sql::{Sql, Value};
use stablebench_suite_users::{Operation, Selection};
use std::collections::BTreeSet;

/// The methods with ids.
const BY_ID: [&str; 4] = ["add_users", "read_users", "update_users", "delete_users"];
const LARGEST_SQLITE_ID: u64 = i64::MAX as u64;

/// Rows 0, 10, … 990 in both engines.
fn filled() -> Bench {
    Bench::filled(&MANAGED, 100)
}

/// Calls methods that must be refused.
struct Refusals(Bench);

impl Refusals {
    #[track_caller]
    fn expect(&mut self, error: Error, method: &str, arguments: impl ArgumentEncoder) {
        let before = self.0.contents();
        let done: Result<Measurement> = self.0.update(method, arguments);
        assert_eq!(done, Err(error), "{method}");
        assert_eq!(self.0.contents(), before, "{method}");
    }
}

#[test]
fn no_rows_or_too_many() {
    let mut refused = Refusals(filled());
    // 1 GiB, with 12 bytes per row in addition to the payload.
    let limit = (1 << 30) / 112;
    for engine in MANAGED {
        for (number, error) in [
            (0, Error::NoRows),
            (limit + 1, Error::TooManyRows { limit }),
            (u64::MAX, Error::TooManyRows { limit }),
        ] {
            for method in BY_ID {
                refused.expect(error.clone(), method, rows(engine, 5, 10, number));
            }
            for method in ["insert_middle", "insert_end", "scan_users"] {
                refused.expect(error.clone(), method, count(engine, number));
            }
            let job = users_part(engine, Operation::Count).job;
            let content: Result<DigestPart> =
                refused.0.query("content", (job, None::<DigestPart>, number));
            assert_eq!(content, Err(error));
        }
    }
    refused.0.call("set_payload", (7_u32,));
    let limit = 10_000_000;
    assert_eq!(refused.0.describe().max_rows, limit, "however short the rows");
    refused.expect(Error::TooManyRows { limit }, "insert_end", count(MANAGED[0], limit + 1));
    refused.expect(Error::NoRows, "add_users_btree", (5_u64, 10_u64, 0_u64));
    refused.expect(Error::NoRows, "add_users_sqlite", (5_u64, 10_u64, 0_u64));
}

#[test]
fn a_step_of_zero_is_for_one_row() {
    let mut refused = Refusals(filled());
    for engine in MANAGED {
        for method in BY_ID {
            refused.expect(Error::NoStep, method, rows(engine, 5, 0, 2));
        }
        for method in BY_ID {
            let done = refused.0.measure(method, rows(engine, 5, 0, 1));
            assert_eq!(done.rows, 1, "{engine}: {method}");
        }
    }
}

#[test]
fn existing_and_missing_ids() {
    let mut refused = Refusals(filled());
    for engine in MANAGED {
        // 985, 990, 995
        let exists = Error::IdExists { id: 990 };
        refused.expect(exists, "add_users", rows(engine, 985, 5, 3));
        for method in ["update_users", "delete_users"] {
            let end = Error::IdMissing { id: 1_000 };
            refused.expect(end, method, rows(engine, 980, 10, 3));
            let between = Error::IdMissing { id: 5 };
            refused.expect(between, method, rows(engine, 5, 10, 1));
            let late = Error::IdMissing { id: 1_000 };
            refused.expect(late, method, rows(engine, 0, 10, 101));
        }
    }
}

#[test]
fn the_middle_has_room_for_less_than_half() {
    for engine in MANAGED {
        let mut refused = Refusals(filled());
        // The half is row 50, the last is row 99; rows go between two.
        let limit = Error::TooManyRows { limit: 49 };
        refused.expect(limit, "insert_middle", count(engine, 50));
        let done = refused.0.measure("insert_middle", count(engine, 49));
        assert_eq!(done.rows, 49);
        let exists = Error::IdExists { id: 505 };
        refused.expect(exists, "insert_middle", count(engine, 1));
    }
}

#[test]
fn ids_end_at_64_bits_and_for_sqlite_at_63() {
    let mut refused = Refusals(filled());
    let u64_overflow = Error::IdOverflow { largest: u64::MAX };
    let i64_overflow = Error::IdOverflow { largest: LARGEST_SQLITE_ID };
    for method in BY_ID {
        for engine in MANAGED {
            for (first, step, number) in [(u64::MAX - 8, 9, 2), (1, u64::MAX, 2)] {
                let arguments = rows(engine, first, step, number);
                refused.expect(u64_overflow.clone(), method, arguments);
            }
        }
        for first in [LARGEST_SQLITE_ID, LARGEST_SQLITE_ID + 1, u64::MAX - 1] {
            let arguments = rows(Engine::SQLITE, first, 1, 2);
            refused.expect(i64_overflow.clone(), method, arguments);
        }
    }
    // The last that fits can be added, read, changed and removed.
    for (engine, largest, overflow) in
        [(Engine::BTREE, u64::MAX, u64_overflow), (Engine::SQLITE, LARGEST_SQLITE_ID, i64_overflow)]
    {
        for method in BY_ID {
            if method == "read_users" {
                refused.expect(overflow.clone(), "insert_end", count(engine, 1));
            }
            let done = refused.0.measure(method, rows(engine, largest - 9, 9, 2));
            assert_eq!(done.rows, 2, "{engine}: {method}");
        }
    }
}

#[test]
fn payloads_have_a_maximum_length() {
    let mut refused = Refusals(filled());
    let limit = Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES };
    for bytes in [100_001_u32, u32::MAX] {
        let before = refused.0.contents();
        let done: Result<()> = refused.0.update("set_payload", (bytes,));
        assert_eq!(done, Err(limit.clone()));
        assert_eq!(refused.0.contents(), before);
    }
    refused.0.call("set_payload", (100_000_u32,));
    // Half of the 2 GiB that a message may write, with 12 bytes per row in addition to the payload.
    let most = (1 << 30) / 100_012;
    assert_eq!(refused.0.describe().max_rows, most);
    for engine in MANAGED {
        let limit = Error::TooManyRows { limit: most };
        refused.expect(limit, "insert_end", count(engine, most + 1));
        assert_eq!(refused.0.measure("insert_end", count(engine, 3)).rows, 3);
        let read = refused.0.measure("read_users", rows(engine, 1_000, 10, 3));
        assert_eq!(read.rows, 3);
    }
    assert_eq!(refused.0.digest(Engine::BTREE, 10), refused.0.digest(Engine::SQLITE, 10));
}

#[test]
fn a_complete_digest_is_not_continued() {
    let bench = filled();
    let job = users_part(Engine::SQLITE, Operation::Count).job;
    let ask = |part| bench.query::<DigestPart>("content", (&job, part, 100_u64));
    let part = ask(None::<DigestPart>).unwrap();
    assert!(part.done, "100 rows of 100");
    assert_eq!(ask(Some(part)), Err(Error::DigestDone));
}

#[test]
fn the_floor_needs_memory_without_a_manager() {
    let mut refused = Refusals(filled());
    for engine in [Engine::APPEND, Engine::ARRAY] {
        let taken = Error::StableMemoryTaken { occupant: Occupant::Manager };
        for method in BY_ID {
            refused.expect(taken.clone(), method, rows(engine, 5, 10, 1));
        }
        for method in ["insert_middle", "insert_end", "scan_users"] {
            refused.expect(taken.clone(), method, count(engine, 1));
        }
    }
}

#[test]
fn a_fresh_canister_keeps_its_payload_and_has_no_rows() {
    let largest = LARGEST_SQLITE_ID;
    for engine in MANAGED {
        let mut bench = Bench::new();
        let nothing_before = Error::TooManyRows { limit: 0 };
        let done: Result<Measurement> = bench.update("insert_middle", count(engine, 1));
        assert_eq!(done, Err(nothing_before));
        let done: Result<Measurement> = bench.update("update_users", rows(engine, 7, 1, 1));
        assert_eq!(done, Err(Error::IdMissing { id: 7 }));
        let done: Result<Measurement> =
            bench.update("add_users", rows(Engine::SQLITE, largest, 1, 2));
        assert_eq!(done, Err(Error::IdOverflow { largest }));
        assert_eq!(bench.describe().payload_bytes, 100);
        assert_eq!(bench.digest(engine, 1).rows, 0);
        assert_eq!(bench.measure("scan_users", count(engine, 5)).rows, 0);
        assert_eq!(bench.measure("insert_end", count(engine, 5)).rows, 5);
    }
}

#[test]
fn arguments_of_other_types_trap() {
    let mut bench = filled();
    let before = bench.contents();
    let number = encode_args((1_u64, 5_u64, 10_u64, 1_u64)).unwrap();
    let long = encode_args(("an engine with a very long name", 5_u64, 10_u64, 1_u64)).unwrap();
    let negative = encode_args((Engine::BTREE, -5_i64, 10_u64, 1_u64)).unwrap();
    for arguments in [number, long, negative, b"DIDL".to_vec(), Vec::new()] {
        let execution = bench.0.update(CONTROLLER, "add_users", &arguments).unwrap();
        assert!(execution.outcome.is_err(), "{arguments:?}");
        assert_eq!(bench.contents(), before);
    }
}

#[test]
fn other_engines_are_refused() {
    let mut refused = Refusals(filled());
    for name in ["rocksdb", "", "SQLITE", "cuckoo"] {
        let engine: Engine = name.parse().unwrap();
        refused.expect(Error::EngineUnavailable { engine }, "insert_end", count(engine, 1));
    }
}

/// The cost of reading the counter: `performance_counter` has a price of 200. The
/// operators around both calls lie in one straight run, which is charged where it
/// begins, so between the two values there is the price alone.
const COUNTER: u64 = 200;

/// A call that measures.
#[derive(Clone, Copy, Debug)]
enum Call {
    Rows(&'static str, Engine, u64),
    Count(&'static str, Engine, u64),
    Vacuum,
}

impl Call {
    fn on(self, bench: &mut Bench) -> (Measurement, Execution) {
        let (measured, execution): (Result<Measurement>, _) = match self {
            Self::Rows(method, engine, first) => {
                bench.execute(CONTROLLER, method, rows(engine, first, 10, 200))
            }
            Self::Count(method, engine, number) => {
                bench.execute(CONTROLLER, method, count(engine, number))
            }
            Self::Vacuum => bench.execute(CONTROLLER, "vacuum", ()),
        };
        let measurement = measured.unwrap_or_else(|error| panic!("{self:?}: {error}"));
        (measurement, execution)
    }
}

/// All calls that measure an engine with 1 000 rows.
fn calls(engine: Engine) -> Vec<Call> {
    let mut calls = vec![
        Call::Rows("add_users", engine, 10_000),
        Call::Count("insert_middle", engine, 100),
        Call::Count("insert_end", engine, 1_000),
        Call::Count("scan_users", engine, 500),
    ];
    if engine != Engine::APPEND {
        let by_id = ["read_users", "update_users", "delete_users"];
        calls.extend(by_id.map(|method| Call::Rows(method, engine, 1_000)));
    }
    if engine == Engine::SQLITE {
        calls.push(Call::Vacuum);
    }
    calls
}

#[test]
fn a_measurement_is_part_of_its_message() {
    for engine in ENGINES {
        let filled = Bench::filled(&[engine], 1_000);
        for work in calls(engine) {
            let mut bench = filled.fork();
            let (heap, stable) = (bench.0.heap_size(), bench.0.stable_size());
            let (measurement, execution) = work.on(&mut bench);
            let case = format!("{work:?}: {measurement:?}, {execution:?}");

            assert_eq!(measurement.counter_overhead, COUNTER, "{case}");
            assert!(measurement.instructions > COUNTER, "{case}");
            // Before the work, the counter was read three times.
            let least = measurement.instructions + 2 * COUNTER;
            assert!(measurement.message_instructions > least, "{case}");
            // After it, the reply is written.
            let message = execution.instructions.get();
            assert!(message > measurement.message_instructions, "{case}");
            let changed = execution.memory.heap_changed.get();
            assert_eq!(execution.charge.get(), message + 1_000 * changed, "{case}");

            // Checks may have grown the heap; stable memory only the work grows.
            assert!(measurement.heap_pages_before >= heap.get(), "{case}");
            assert!(measurement.heap_pages_after >= measurement.heap_pages_before, "{case}");
            // Writing the reply may grow the heap once more.
            let in_the_end = execution.memory.heap.get();
            assert!((0..=1).contains(&(in_the_end - measurement.heap_pages_after)), "{case}");
            assert_eq!(measurement.stable_pages_before, stable.get(), "{case}");
            assert_eq!(measurement.stable_pages_after, execution.memory.stable.get(), "{case}");
            assert_eq!(bench.describe().stable_pages, bench.0.stable_size().get());
            assert_eq!(bench.describe().heap_pages, bench.0.heap_size().get());
        }
    }
}

#[test]
fn more_rows_cost_more() {
    for engine in ENGINES {
        let filled = Bench::filled(&[engine], 1_000);
        let cost = |number| {
            let measurement = filled.fork().measure("insert_end", count(engine, number));
            measurement.instructions
        };
        let (ten, hundred, thousand) = (cost(10), cost(100), cost(1_000));
        // A batch has its own price, so that ten times the rows are at most about ten times as
        // expensive; and rows are not free.
        assert!(ten < hundred && hundred * 5 < thousand, "{engine}");
        assert!(thousand < hundred * 12, "{engine}: {hundred}, {thousand}");
    }
}

#[test]
fn the_floor_is_below() {
    let cost = |engine| {
        let mut bench = Bench::filled(&[engine], 1_000);
        bench.measure("insert_end", count(engine, 1_000)).instructions
    };
    for above in [Engine::BTREE, Engine::SQLITE] {
        for floor in [Engine::APPEND, Engine::ARRAY] {
            assert!(cost(floor) < cost(above), "{floor} and {above}");
        }
    }
}

#[test]
fn calls_can_be_repeated() {
    for engine in ENGINES {
        let (one, other) = (Bench::filled(&[engine], 1_000), Bench::filled(&[engine], 1_000));
        for work in calls(engine) {
            let first = counts(work.on(&mut one.fork()));
            assert_eq!(first, counts(work.on(&mut one.fork())), "a second fork");
            assert_eq!(first, counts(work.on(&mut other.fork())), "another canister");
        }
    }
}

/// Everything except the wall time.
fn counts((measurement, execution): (Measurement, Execution)) -> impl PartialEq + std::fmt::Debug {
    let counts = (execution.instructions, execution.charge, execution.cycles);
    let reply = execution.outcome.unwrap();
    (measurement, counts, execution.memory, reply)
}

const POPULATED: u64 = 10_000;

fn recorded() -> Canister {
    let path = root().join("crates/conformance/cases/users.wasm.gz");
    let module = replica().compile(&std::fs::read(path).unwrap()).unwrap();
    let mut canister = replica().create_canister().unwrap();
    let installed = canister.install(&module, CONTROLLER, b"").unwrap();
    installed.outcome.unwrap();
    let argument = encode_args(("PERSIST",)).unwrap();
    let created = canister.update(CONTROLLER, "create_tables", &argument);
    created.unwrap().outcome.unwrap();
    canister
}

#[test]
fn inserts_cost_the_same_as_in_the_recorded_canister() {
    // SQLite is precompiled and the same code in both. Here it is called through the traits of all SQL
    // engines, which take some 150 instructions per row. The map is Rust, which each canister inlines
    // in its own way: here it costs 2.5 to 5.5 percent less.
    for (engine, method, percent) in
        [(Engine::BTREE, "add_users_btree", 8), (Engine::SQLITE, "add_users_sqlite", 2)]
    {
        let mut recorded = recorded();
        let mut bench = Bench::new();
        let mut costs = |first: u64, number: u64| {
            let argument = encode_args((first, 10_u64, number)).unwrap();
            let execution = recorded.update(CONTROLLER, method, &argument).unwrap();
            let theirs: u64 = decode_one(&execution.outcome.unwrap()).unwrap();
            let ours = bench.measure("add_users", rows(engine, first, 10, number));
            (ours.instructions, theirs)
        };
        let end = POPULATED * 10;
        for (first, number) in
            [(0, POPULATED), (end / 2 + 5, 1), (end / 2 + 15, 100), (end, 1), (end + 10, 1_000)]
        {
            let (ours, theirs) = costs(first, number);
            let most = theirs * percent / 100;
            assert!(
                ours.abs_diff(theirs) <= most,
                "{engine}, {number} rows from {first}: {ours} here, {theirs} recorded"
            );
        }
    }
}

const STRANGER: Principal = Principal::from_slice(&[7]);

/// Calls as a stranger, and returns the method's name.
fn refused_to_a_stranger<'a, T>(
    bench: &mut Bench,
    method: &'a str,
    arguments: impl ArgumentEncoder,
) -> &'a str
where
    T: CandidType + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let before = bench.contents();
    let (done, _) = bench.execute::<T>(STRANGER, method, arguments);
    assert_eq!(done, Err(Error::NotController), "{method}");
    assert_eq!(bench.contents(), before, "{method}");
    method
}

#[test]
fn updates_are_for_controllers() {
    let mut bench = Bench::filled(&[Engine::BTREE, Engine::SQLITE], 100);
    let one = &mut bench;
    let (btree, range) = (Engine::BTREE, (5_u64, 10_u64, 1_u64));
    let there = rows(btree, 0, 10, 5);
    // A controller may make each of these calls.
    let tried = BTreeSet::from([
        refused_to_a_stranger::<()>(one, "stage", (create(),)),
        refused_to_a_stranger::<PartCost>(one, "run", (1_u64,)),
        refused_to_a_stranger::<Executed>(one, "execute", (create(),)),
        refused_to_a_stranger::<Vec<Setting>>(one, "configure", (Vec::<Setting>::new(),)),
        refused_to_a_stranger::<Vec<PhaseCost>>(one, "phases", (create(),)),
        refused_to_a_stranger::<Measurement>(one, "add_users", rows(btree, 5, 10, 1)),
        refused_to_a_stranger::<Measurement>(one, "add_users_btree", range),
        refused_to_a_stranger::<Measurement>(one, "add_users_sqlite", range),
        refused_to_a_stranger::<Measurement>(one, "insert_middle", count(btree, 1)),
        refused_to_a_stranger::<Measurement>(one, "insert_end", count(btree, 1)),
        refused_to_a_stranger::<Measurement>(one, "read_users", there),
        refused_to_a_stranger::<Measurement>(one, "scan_users", count(btree, 1)),
        refused_to_a_stranger::<Measurement>(one, "update_users", there),
        refused_to_a_stranger::<Measurement>(one, "delete_users", there),
        refused_to_a_stranger::<()>(one, "set_payload", (7_u32,)),
        refused_to_a_stranger::<()>(one, "reset", (Engine::SQLITE,)),
        refused_to_a_stranger::<SqliteSettings>(one, "configure_sqlite", (small_cache(),)),
        refused_to_a_stranger::<()>(one, "close_connection", ()),
        refused_to_a_stranger::<Measurement>(one, "vacuum", ()),
        refused_to_a_stranger::<Reserved>(one, "sql", ("select 1", Vec::<Value>::new())),
    ]);
    assert_eq!(tried, methods(MethodKind::Update));
}

#[test]
fn queries_are_for_everyone() {
    let bench = Bench::filled(&[Engine::BTREE, Engine::SQLITE], 100);
    let ask = |method, arguments: Vec<u8>| {
        let execution = bench.0.query(STRANGER, method, &arguments).unwrap();
        execution.outcome.unwrap()
    };
    let count = users_part(Engine::SQLITE, Operation::Count);
    let part = encode_args((&count.job, None::<DigestPart>, 1_000_u64)).unwrap();
    let part: Result<DigestPart> = decode_one(&ask("content", part)).unwrap();
    assert_eq!(
        part.unwrap().digest,
        bench.digest(Engine::SQLITE, 1_000),
        "as the controller gets it"
    );
    let description = ask("describe", encode_args(()).unwrap());
    let description: Result<Description> = decode_one(&description).unwrap();
    assert_eq!(description, Ok(bench.describe()));
    let settings = ask("sqlite_settings", encode_args(()).unwrap());
    let settings: Result<SqliteSettings> = decode_one(&settings).unwrap();
    assert_eq!(settings, Ok(bench.settings()));
    let inspected = ask("inspect", encode_args((create().job,)).unwrap());
    let inspected: Result<Inspected> = decode_one(&inspected).unwrap();
    assert_eq!(inspected.unwrap().sqlite, Some(bench.settings()));
    // There is no such table, but the caller is accepted.
    let content = ask("content", encode_args((create().job, None::<DigestPart>, 1_u64)).unwrap());
    let content: Result<DigestPart> = decode_one(&content).unwrap();
    assert!(matches!(content, Err(Error::Sqlite { .. })), "{content:?}");
    let nothing = ask("run_query", encode_args(()).unwrap());
    let nothing: Result<PartCost> = decode_one(&nothing).unwrap();
    assert_eq!(nothing.unwrap().measurement.rows, 0, "nothing is staged");
    let results = ask("results", encode_args((create(),)).unwrap());
    let results: Result<Option<Digest>> = decode_one(&results).unwrap();
    assert_eq!(results, Ok(None), "what writes reads nothing");
    let settings = Job::new(&Sql::Configure(Vec::new()));
    let kept = ask("kept", encode_args((settings, 0_u64)).unwrap());
    let kept: Result<KeptPart> = decode_one(&kept).unwrap();
    assert_eq!(kept.unwrap().next, None);
    let asked = BTreeSet::from([
        "content",
        "describe",
        "inspect",
        "kept",
        "results",
        "run_query",
        "sqlite_settings",
    ]);
    assert_eq!(asked, methods(MethodKind::Query));
}

/// The methods of the suites take an id, and refuse it the second time.
#[test]
fn a_repeated_call_is_refused() {
    for method in ["execute", "phases"] {
        let mut bench = Bench::filled(&[Engine::SQLITE], 100);
        let mut send = |id: Option<u64>| {
            let arguments = encode_args((create(), id)).unwrap();
            let execution = bench.0.update(CONTROLLER, method, &arguments).unwrap();
            let answer: Result<Reserved> = decode_one(&execution.outcome.unwrap()).unwrap();
            answer.map(drop)
        };
        let repeated = Err(Error::Repeated { last: 10 });
        assert!(!matches!(send(Some(10)), Err(Error::Repeated { .. })), "{method}");
        assert_eq!(send(Some(10)), repeated, "{method}");
        assert_eq!(send(Some(9)), repeated, "{method}");
    }
}

#[test]
fn a_repeated_part_is_executed_once() {
    let mut bench = Bench::filled(&[Engine::SQLITE], 100);
    let rows = Selection::Step { first: 7, step: 10, rows: 3 };
    let part = users_part(Engine::SQLITE, Operation::Insert(rows));
    let insert = |bench: &mut Bench, id: u64| {
        let executed: Result<Executed> = bench.update("execute", (&part, Some(id)));
        executed.map(|executed| executed.measurement.rows)
    };
    assert_eq!(insert(&mut bench, 5), Ok(3));
    let before = bench.contents();
    assert_eq!(insert(&mut bench, 5), Err(Error::Repeated { last: 5 }));
    assert_eq!(bench.contents(), before);
    // A call with a later id is executed, and refused for its rows.
    assert!(matches!(insert(&mut bench, 6), Err(Error::Sqlite { .. })));
    // The heap stores the last id.
    bench.upgrade();
    assert!(matches!(insert(&mut bench, 5), Err(Error::Sqlite { .. })));
}

fn small_cache() -> SqliteConfig {
    SqliteConfig { cache_size: Some(10), ..SqliteConfig::default() }
}

/// The methods that the module exports.
fn methods(kind: MethodKind) -> BTreeSet<&'static str> {
    let methods = module().info().methods.iter();
    methods.filter(|method| method.kind == kind).map(|method| method.name.as_str()).collect()
}

/// The maximum number of operations that are measured one by one.
const MAX_EACH: u64 = 100_000;

/// One user with one movie on the list.
fn keys(task: KeysTask) -> Job {
    Job::new(&Keys {
        schema: LinkSchema::Id,
        key: KeyKind::Integer,
        users: 1,
        movies: 1,
        watches: 1,
        rows_a_millisecond: 1,
        foreign_keys: false,
        task,
    })
}

/// A part that creates the tables of the suite keys.
fn create() -> JobPart {
    JobPart { job: keys(KeysTask::Create), seed: 1, from: 0, count: 1, each: false }
}

#[test]
fn invalid_parts_are_refused() {
    let mut bench = Bench::new();
    for (part, error) in [
        (JobPart { count: 0, ..create() }, Error::NoRows),
        (JobPart { from: u64::MAX, ..create() }, Error::IdOverflow { largest: u64::MAX }),
        (
            JobPart { count: MAX_EACH + 1, each: true, ..create() },
            Error::TooManyEach { limit: MAX_EACH },
        ),
    ] {
        assert_eq!(bench.execute_part(&part), Err(error), "{part:?}");
    }
    let content: Result<DigestPart> =
        bench.query("content", (create().job, None::<DigestPart>, 0_u64));
    assert_eq!(content, Err(Error::NoRows));
}

/// A failure after rows may have changed traps, and the next message finds no change.
#[test]
fn a_part_that_fails_leaves_nothing() {
    let mut bench = Bench::new();
    let users = JobPart { job: keys(KeysTask::Users), ..create() };
    for part in [&create(), &users] {
        assert_eq!(bench.run_part(part).results, None);
    }
    let before = inspected(&bench);
    let reject = bench.trapped(&users);
    assert!(reject.contains("UNIQUE constraint failed"), "{reject}");
    assert_eq!(inspected(&bench), before);
    let movies = JobPart { job: keys(KeysTask::Movies), ..create() };
    assert_eq!(bench.run_part(&movies).measurement.rows, 1, "no transaction was left open");
}

fn inspected(bench: &Bench) -> Inspected {
    bench.query("inspect", (create().job,)).unwrap()
}

#[test]
fn a_staged_part_is_the_part() {
    let mut staged = Bench::new();
    let mut at_once = staged.fork();
    staged.call("stage", (create(),));
    let run: PartCost = staged.update("run", (1_u64,)).unwrap();
    assert_eq!(run.measurement.rows, at_once.run_part(&create()).measurement.rows);
    let none = JobPart { count: 0, ..create() };
    assert_eq!(staged.update::<()>("stage", (none,)), Err(Error::NoRows));
}

#[test]
fn other_suites_are_refused() {
    for (which, suite) in [(Which::Bench, "history"), (Which::Leveldb, "keys")] {
        let mut bench = Bench::of(which);
        let job = Job { suite: suite.to_owned(), ..create().job };
        let refused = Error::SuiteUnavailable { suite: suite.to_owned() };
        let part = JobPart { job, ..create() };
        assert_eq!(bench.execute_part(&part), Err(refused.clone()));
        assert_eq!(bench.query::<Inspected>("inspect", (part.job,)), Err(refused));
    }
    let mut bench = Bench::new();
    let job = Job { work: create().job.work[1..].to_vec(), ..create().job };
    let refused = bench.execute_part(&JobPart { job, ..create() });
    assert!(matches!(&refused, Err(Error::InvalidJob { suite, .. }) if suite == "keys"));
}
