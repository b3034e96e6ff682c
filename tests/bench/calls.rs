//! Callers, repeated calls, and parts of jobs that are refused or fail.

use super::canister::{Bench, CONTROLLER, Which, count, module, rows, users_part};
use candid::utils::ArgumentEncoder;
use candid::{CandidType, Principal, Reserved, decode_one, encode_args};
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, Error, Executed, Inspected, Job, Kept, Measurement,
    Part, PartCost, PhaseCost, Result, Setting, SqliteConfig, SqliteSettings,
};
use stablebench_replica::MethodKind;
use stablebench_suite_keys::{KeyKind, Keys, KeysTask, LinkSchema};
use stablebench_suite_sql::{Sql, Value};
use stablebench_suite_users::{Operation, Selection};
use std::collections::BTreeSet;

const STRANGER: Principal = Principal::from_slice(&[7]);

/// Calls as a stranger, and returns the method's name.
fn refused<'a, T>(bench: &mut Bench, method: &'a str, arguments: impl ArgumentEncoder) -> &'a str
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
        refused::<()>(one, "stage", (create(),)),
        refused::<PartCost>(one, "run", (1_u64,)),
        refused::<Executed>(one, "execute", (create(),)),
        refused::<Vec<Setting>>(one, "configure", (Vec::<Setting>::new(),)),
        refused::<Vec<PhaseCost>>(one, "phases", (create(),)),
        refused::<Measurement>(one, "add_users", rows(btree, 5, 10, 1)),
        refused::<Measurement>(one, "add_users_btree", range),
        refused::<Measurement>(one, "add_users_sqlite", range),
        refused::<Measurement>(one, "insert_middle", count(btree, 1)),
        refused::<Measurement>(one, "insert_end", count(btree, 1)),
        refused::<Measurement>(one, "read_users", there),
        refused::<Measurement>(one, "scan_users", count(btree, 1)),
        refused::<Measurement>(one, "update_users", there),
        refused::<Measurement>(one, "delete_users", there),
        refused::<()>(one, "set_payload", (7_u32,)),
        refused::<()>(one, "reset", (Engine::SQLITE,)),
        refused::<SqliteSettings>(one, "configure_sqlite", (small_cache(),)),
        refused::<()>(one, "close_connection", ()),
        refused::<Measurement>(one, "vacuum", ()),
        refused::<Reserved>(one, "sql", ("select 1", Vec::<Value>::new())),
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
    let kept: Result<Kept> = decode_one(&kept).unwrap();
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
fn create() -> Part {
    Part { job: keys(KeysTask::Create), seed: 1, from: 0, count: 1, each: false }
}

#[test]
fn invalid_parts_are_refused() {
    let mut bench = Bench::new();
    for (part, error) in [
        (Part { count: 0, ..create() }, Error::NoRows),
        (Part { from: u64::MAX, ..create() }, Error::IdOverflow { largest: u64::MAX }),
        (
            Part { count: MAX_EACH + 1, each: true, ..create() },
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
    let users = Part { job: keys(KeysTask::Users), ..create() };
    for part in [&create(), &users] {
        assert_eq!(bench.run_part(part).results, None);
    }
    let before = inspected(&bench);
    let reject = bench.trapped(&users);
    assert!(reject.contains("UNIQUE constraint failed"), "{reject}");
    assert_eq!(inspected(&bench), before);
    let movies = Part { job: keys(KeysTask::Movies), ..create() };
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
    let none = Part { count: 0, ..create() };
    assert_eq!(staged.update::<()>("stage", (none,)), Err(Error::NoRows));
}

#[test]
fn other_suites_are_refused() {
    for (which, suite) in [(Which::Bench, "history"), (Which::Leveldb, "keys")] {
        let mut bench = Bench::of(which);
        let job = Job { suite: suite.to_owned(), ..create().job };
        let refused = Error::SuiteUnavailable { suite: suite.to_owned() };
        let part = Part { job, ..create() };
        assert_eq!(bench.execute_part(&part), Err(refused.clone()));
        assert_eq!(bench.query::<Inspected>("inspect", (part.job,)), Err(refused));
    }
    let mut bench = Bench::new();
    let job = Job { work: create().job.work[1..].to_vec(), ..create().job };
    let refused = bench.execute_part(&Part { job, ..create() });
    assert!(matches!(&refused, Err(Error::InvalidJob { suite, .. }) if suite == "keys"));
}
