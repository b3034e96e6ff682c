//! Who may call what.

use super::canister::{Bench, CONTROLLER, count, module, rows};
use super::jobs::create;
use candid::{CandidType, Principal, decode_one, encode_args, utils::ArgumentEncoder};
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, Error, Inspected, Measurement, Operation, Performed,
    PhaseCost, Result, Selection, SqliteConfig, SqliteSettings, Work, Worked,
};
use stablebench_replica::MethodKind;
use std::collections::BTreeSet;

const STRANGER: Principal = Principal::from_slice(&[7]);

/// Calls as a stranger; answers the method's name.
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
    let mut bench = Bench::filled(&[Engine::Btree, Engine::Sqlite], 100);
    let one = &mut bench;
    let (btree, range) = (Engine::Btree, (5_u64, 10_u64, 1_u64));
    let there = rows(btree, 0, 10, 5);
    // Each would be done for a controller.
    let tried = BTreeSet::from([
        refused::<()>(one, "stage_work", (count_all(),)),
        refused::<()>(one, "stage_part", (create(),)),
        refused::<Worked>(one, "run", (1_u64,)),
        refused::<Worked>(one, "work", (count_all(),)),
        refused::<Performed>(one, "perform", (create(),)),
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
        refused::<()>(one, "reset", (Engine::Sqlite,)),
        refused::<SqliteSettings>(one, "configure_sqlite", (small_cache(),)),
        refused::<()>(one, "close_connection", ()),
        refused::<Measurement>(one, "vacuum", ()),
    ]);
    assert_eq!(tried, methods(MethodKind::Update));
}

#[test]
fn queries_are_for_everyone() {
    let bench = Bench::filled(&[Engine::Btree, Engine::Sqlite], 100);
    let ask = |method, arguments: Vec<u8>| {
        let execution = bench.0.query(STRANGER, method, &arguments).unwrap();
        execution.outcome.unwrap()
    };
    let part = ask("digest", encode_args((Engine::Sqlite, None::<DigestPart>, 1_000_u64)).unwrap());
    let part: Result<DigestPart> = decode_one(&part).unwrap();
    assert_eq!(
        part.unwrap().digest,
        bench.digest(Engine::Sqlite, 1_000),
        "as the controller gets it"
    );
    let description = ask("describe", encode_args(()).unwrap());
    let description: Result<Description> = decode_one(&description).unwrap();
    assert_eq!(description, Ok(bench.describe()));
    let settings = ask("sqlite_settings", encode_args(()).unwrap());
    let settings: Result<SqliteSettings> = decode_one(&settings).unwrap();
    assert_eq!(settings, Ok(bench.settings()));
    let looked = ask("look", encode_args((count_all(),)).unwrap());
    let looked: Result<Worked> = decode_one(&looked).unwrap();
    assert_eq!(looked.unwrap().measurement.rows, 100);
    let inspected = ask("inspect", encode_args((create().job,)).unwrap());
    let inspected: Result<Inspected> = decode_one(&inspected).unwrap();
    assert_eq!(inspected.unwrap().sqlite, Some(bench.settings()));
    // There is no such table, which is said after the caller was let in.
    let content = ask("content", encode_args((create().job, None::<DigestPart>, 1_u64)).unwrap());
    let content: Result<DigestPart> = decode_one(&content).unwrap();
    assert!(matches!(content, Err(Error::Sqlite { .. })), "{content:?}");
    let nothing = ask("run_query", encode_args(()).unwrap());
    let nothing: Result<Worked> = decode_one(&nothing).unwrap();
    assert_eq!(nothing.unwrap().measurement.rows, 0, "nothing is staged");
    let results = ask("results", encode_args((create(),)).unwrap());
    let results: Result<Option<Digest>> = decode_one(&results).unwrap();
    assert_eq!(results, Ok(None), "what writes reads nothing");
    let asked = BTreeSet::from([
        "content",
        "describe",
        "digest",
        "inspect",
        "look",
        "results",
        "run_query",
        "sqlite_settings",
    ]);
    assert_eq!(asked, methods(MethodKind::Query));
}

/// The suites' methods take an id, and none takes one twice.
#[test]
fn a_repeated_call_is_refused() {
    for method in ["work", "perform", "phases"] {
        let mut bench = Bench::filled(&[Engine::Sqlite], 100);
        let mut send = |id: Option<u64>| {
            let arguments = if method == "work" {
                encode_args((count_all(), id))
            } else {
                encode_args((create(), id))
            };
            let execution = bench.0.update(CONTROLLER, method, &arguments.unwrap()).unwrap();
            let answer: Result<candid::Reserved> = decode_one(&execution.outcome.unwrap()).unwrap();
            answer.map(drop)
        };
        let repeated = Err(Error::Repeated { last: 10 });
        assert!(!matches!(send(Some(10)), Err(Error::Repeated { .. })), "{method}");
        assert_eq!(send(Some(10)), repeated, "{method}");
        assert_eq!(send(Some(9)), repeated, "{method}");
    }
}

#[test]
fn repeated_work_is_done_once() {
    let mut bench = Bench::filled(&[Engine::Btree], 100);
    let rows = Selection::Step { first: 7, step: 10, rows: 3 };
    let operation = Operation::Insert(rows);
    let work = Work { engine: Engine::Btree, operation, transaction: None, each: false };
    let insert = |bench: &mut Bench, id: u64| {
        let worked: Result<Worked> = bench.update("work", (&work, Some(id)));
        worked.map(|worked| worked.measurement.rows)
    };
    assert_eq!(insert(&mut bench, 5), Ok(3));
    let before = bench.contents();
    assert_eq!(insert(&mut bench, 5), Err(Error::Repeated { last: 5 }));
    assert_eq!(bench.contents(), before);
    // One with a later id is looked at, and refused for its rows.
    assert_eq!(insert(&mut bench, 6), Err(Error::IdExists { id: 7 }));
    // The heap keeps the last id.
    bench.upgrade();
    assert_eq!(insert(&mut bench, 5), Err(Error::IdExists { id: 7 }));
}

fn count_all() -> Work {
    Work { engine: Engine::Sqlite, operation: Operation::Count, transaction: None, each: false }
}

fn small_cache() -> SqliteConfig {
    SqliteConfig { cache_size: Some(10), ..SqliteConfig::default() }
}

/// The methods that the module exports.
fn methods(kind: MethodKind) -> BTreeSet<&'static str> {
    let methods = module().info().methods.iter();
    methods.filter(|method| method.kind == kind).map(|method| method.name.as_str()).collect()
}
