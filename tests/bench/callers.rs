//! Who may call what.

use super::canister::{Bench, CONTROLLER, count, module, rows};
use super::jobs::create;
use candid::{CandidType, Principal, decode_one, encode_args, utils::ArgumentEncoder};
use serde::de::DeserializeOwned;
use stablebench_protocol::{
    Description, DigestPart, Engine, Error, Inspected, Measurement, Operation, Performed,
    PhaseCost, Result, SqliteConfig, SqliteSettings, Work, Worked,
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
    let asked =
        BTreeSet::from(["content", "describe", "digest", "inspect", "look", "sqlite_settings"]);
    assert_eq!(asked, methods(MethodKind::Query));
}

/// Every method that measures takes an id, and none takes one twice.
#[test]
fn a_repeated_call_is_refused() {
    let mut bench = Bench::filled(&[Engine::Btree, Engine::Sqlite], 100);
    let mut ids = 10_u64..;
    let mut once = |bench: &mut Bench, method: &str, arguments: &dyn Fn(Option<u64>) -> Vec<u8>| {
        let id = ids.next();
        let mut send = |id| {
            let execution = bench.0.update(CONTROLLER, method, &arguments(id)).unwrap();
            let answer: Result<candid::Reserved> = decode_one(&execution.outcome.unwrap()).unwrap();
            answer.map(drop)
        };
        assert!(!matches!(send(id), Err(Error::Repeated { .. })), "{method}");
        let last = id.unwrap();
        assert_eq!(send(id), Err(Error::Repeated { last }), "{method}");
        assert_eq!(send(Some(last - 1)), Err(Error::Repeated { last }), "{method}");
        assert!(!matches!(send(None), Err(Error::Repeated { .. })), "{method}");
    };
    let (btree, sqlite) = (Engine::Btree, Engine::Sqlite);
    let by_id = |id| encode_args((btree, 0_u64, 10_u64, 5_u64, id)).unwrap();
    let some = |id| encode_args((btree, 1_u64, id)).unwrap();
    once(&mut bench, "work", &|id| encode_args((count_all(), id)).unwrap());
    once(&mut bench, "perform", &|id| encode_args((create(), id)).unwrap());
    once(&mut bench, "phases", &|id| encode_args((create(), id)).unwrap());
    once(&mut bench, "insert_middle", &some);
    once(&mut bench, "insert_end", &some);
    once(&mut bench, "scan_users", &some);
    for method in ["add_users", "read_users", "update_users", "delete_users"] {
        once(&mut bench, method, &by_id);
    }
    for method in ["add_users_btree", "add_users_sqlite"] {
        once(&mut bench, method, &|id| encode_args((5_u64, 10_u64, 1_u64, id)).unwrap());
    }
    once(&mut bench, "vacuum", &|id| encode_args((id,)).unwrap());
    // Rows that were added once are there once.
    let before = bench.describe().engines;
    let arguments = encode_args((sqlite, 7_u64, 10_u64, 3_u64, Some(3_u64))).unwrap();
    let execution = bench.0.update(CONTROLLER, "add_users", &arguments).unwrap();
    let answer: Result<Measurement> = decode_one(&execution.outcome.unwrap()).unwrap();
    assert!(matches!(answer, Err(Error::Repeated { .. })), "{answer:?}");
    assert_eq!(bench.describe().engines, before);
    // The heap keeps the last id.
    bench.upgrade();
    let execution = bench.0.update(CONTROLLER, "add_users", &arguments).unwrap();
    let answer: Result<Measurement> = decode_one(&execution.outcome.unwrap()).unwrap();
    assert_eq!(answer.map(|measured| measured.rows), Ok(3));
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
