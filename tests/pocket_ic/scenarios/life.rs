//! The life of a canister: installs, upgrades, snapshots, traps and rejects.

use stablebench_protocol::{
    Description, Digest, Engine, Measurement, SqliteConfig, SqliteSettings,
};

use crate::pair::{Bench, Pair, WASM, wasm};
use crate::replica::{CONTROLLER, Canister, Mode, Replica};

/// A canister with two cells of 8 bytes each.
///
/// ```text
///   set…    writes the argument to the heap cell and the stable cell, then does what its name says
///   get     returns both cells
/// ```
const CELLS: &str = include_str!("cells.wat");

/// Returns the heap cell and the stable cell.
fn cells(canister: &mut dyn Canister) -> (u64, u64) {
    pair(&canister.query(CONTROLLER, "get", &[]).unwrap())
}

fn set(canister: &mut dyn Canister, value: u64) {
    let set = canister.update(CONTROLLER, "set", &value.to_le_bytes());
    assert_eq!(set.outcome, Ok(vec![]));
    assert_eq!(cells(canister), (value, value));
}

fn pair(reply: &[u8]) -> (u64, u64) {
    let (first, second) = reply.split_at(8);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    (number(first), number(second))
}

/// Calls a method with 9 in a canister whose cells are 5. Returns the reject's code and message,
/// and the value of both cells afterwards.
fn failed(canister: &mut dyn Canister, method: &str) -> (String, String, u64) {
    set(canister, 5);
    let updated = canister.update(CONTROLLER, method, &9_u64.to_le_bytes());
    let reject = updated.outcome.expect_err(method);
    assert!(updated.cycles > 0, "{method}: a failed message is charged");
    let (heap, stable) = cells(canister);
    assert_eq!(heap, stable, "{method}");
    (reject.code, reject.message, heap)
}

pub fn traps_roll_back(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    for (method, code, words) in [
        ("set_and_trap", "CanisterCalledTrap", "on purpose"),
        ("set_and_reach_unreachable", "CanisterTrapped", "unreachable"),
        ("set_and_divide", "CanisterTrapped", "integer division by 0"),
        ("set_and_leave_the_heap", "CanisterTrapped", "heap out of bounds"),
        ("set_and_leave_stable_memory", "CanisterTrapped", "stable memory out of bounds"),
        ("set_and_reply_twice", "CanisterContractViolation", "replied"),
        ("set_reply_and_trap", "CanisterCalledTrap", "on purpose"),
    ] {
        let (got, message, cell) = failed(&mut canister, method);
        assert_eq!((got.as_str(), cell), (code, 5), "{method}: {message}");
        assert!(message.contains(words), "{method}: {message}");
    }
    let (code, _, cell) = failed(&mut canister, "no_such_method");
    assert_eq!((code.as_str(), cell), ("CanisterMethodNotFound", 5));
}

/// A message that rejects or does not reply is committed.
pub fn rejects_keep_changes(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    let (code, message, cell) = failed(&mut canister, "set_and_reject");
    assert_eq!((code.as_str(), cell), ("CanisterRejectedMessage", 9));
    assert!(message.contains("on purpose"), "{message}");
    let (code, _, cell) = failed(&mut canister, "set_and_be_silent");
    assert_eq!((code.as_str(), cell), ("CanisterDidNotReply", 9));
}

pub fn queries_roll_back(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    let argument = 9_u64.to_le_bytes();
    let seen = canister.query(CONTROLLER, "set_and_get", &argument).unwrap();
    assert_eq!(pair(&seen), (9, 9), "within the query");
    assert_eq!(cells(&mut canister), (5, 5));
    // A query method that is called as an update is rolled back too.
    let seen = canister.update(CONTROLLER, "set_and_get", &argument).outcome.unwrap();
    assert_eq!(pair(&seen), (9, 9));
    assert_eq!(cells(&mut canister), (5, 5));
}

/// An ingress message has at most 2 MiB: a larger module is sent in chunks.
pub fn install_small_and_large(replica: &dyn Replica) {
    let mut small = Pair::new(replica);
    rejects_while_empty(&mut small);
    small.install(Mode::Install, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut small), (0, 0));
    set(&mut small, 3);

    assert!(WASM.len() > 2 << 20, "the bench canister has {} bytes", WASM.len());
    let mut large = Bench::new(replica);
    let fresh: Description = large.query("describe", ());
    large.install(Mode::Upgrade);
    assert_eq!(large.query::<Description>("describe", ()).engines, fresh.engines);
    large.install(Mode::Reinstall);
    assert_eq!(large.query::<Description>("describe", ()), fresh);
}

/// A message to a canister without code is not admitted and costs nothing.
fn rejects_while_empty(canister: &mut Pair) {
    let rejected = canister.update(CONTROLLER, "set", &[]);
    assert_eq!(rejected.outcome.unwrap_err().code, "CanisterWasmModuleNotFound");
    assert_eq!(rejected.cycles, 0);
}

pub fn install_refused(replica: &dyn Replica) {
    let mut canister = Pair::new(replica);
    let mut refusal = |module: &[u8]| {
        let refused = canister.install(Mode::Install, module, &[]);
        refused.expect_err("the module is not valid").code
    };
    assert_eq!(refusal(b"\0asm, but no more"), "CanisterInvalidWasm");
    let unknown = wasm(r#"(module (import "ic0" "no_such_call" (func)))"#);
    assert_eq!(refusal(&unknown), "CanisterInvalidWasm");
    let start = wasm(r#"(module (func (export "canister_init") (param i32)))"#);
    assert_eq!(refusal(&start), "CanisterInvalidWasm");
    // The canister is still empty.
    rejects_while_empty(&mut canister);
    canister.install(Mode::Install, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 0));
}

pub fn install_that_traps(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    let traps = wasm(r#"(module (func (export "canister_init") (unreachable)))"#);
    let trapped = canister.install(Mode::Reinstall, &traps, &[]).unwrap_err();
    assert_eq!(trapped.code, "CanisterTrapped");
    assert_eq!(cells(&mut canister), (5, 5), "the canister is unchanged");
}

const ENGINES: [Engine; 2] = [Engine::BTREE, Engine::SQLITE];

/// Creates a canister with 500 rows in both engines and a non-default SQLite setting.
fn filled(replica: &dyn Replica) -> Bench {
    let mut bench = Bench::new(replica);
    let config = SqliteConfig { cache_size: Some(123), ..SqliteConfig::default() };
    bench.update::<SqliteSettings>("configure_sqlite", (config,));
    for engine in ENGINES {
        bench.work("add_users", (engine, 0_u64, 10_u64, 500_u64), 500);
    }
    bench
}

fn digests(bench: &mut Bench) -> [Digest; 2] {
    ENGINES.map(|engine| bench.digest(engine))
}

/// Reads rows and returns the instructions of the work.
fn read(bench: &mut Bench) -> u64 {
    let arguments = (Engine::SQLITE, 0_u64, 100_u64, 50_u64);
    let measurement: Measurement = bench.update("read_users", arguments);
    assert_eq!(measurement.rows, 50);
    measurement.instructions
}

pub fn upgrade(replica: &dyn Replica) {
    let mut bench = filled(replica);
    let before = digests(&mut bench);
    for _ in 0..2 {
        bench.install(Mode::Upgrade);
        assert_eq!(digests(&mut bench), before);
        let settings: SqliteSettings = bench.query("sqlite_settings", ());
        assert_eq!(settings.cache_size, 123);
        // An upgrade closes the connection; the first operation opens it.
        let (cold, warm) = (read(&mut bench), read(&mut bench));
        assert!(cold > 2 * warm, "{cold} cold, {warm} warm");
    }
    for engine in ENGINES {
        bench.work("insert_end", (engine, 5_u64), 5);
        assert_eq!(bench.digest(engine).rows, 505);
    }
}

pub fn upgrade_that_traps(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    let traps = wasm(r#"(module (func (export "canister_post_upgrade") (unreachable)))"#);
    let trapped = canister.install(Mode::Upgrade, &traps, &[]).unwrap_err();
    assert_eq!(trapped.code, "CanisterTrapped");
    assert_eq!(cells(&mut canister), (5, 5), "code, heap and stable memory are unchanged");
    canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 5), "an upgrade keeps stable memory");
}

/// A fork on a server: upgraded and used, then restored, including its heap.
pub fn upgrade_then_restore(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    canister.take_snapshot();
    for value in 6..8 {
        canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
        assert_eq!(cells(&mut canister), (0, 5));
        set(&mut canister, value);
        canister.load_snapshot();
        assert_eq!(cells(&mut canister), (5, 5));
    }
    // A restored canister can be upgraded and snapshotted again.
    canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
    canister.take_snapshot();
    set(&mut canister, 9);
    canister.load_snapshot();
    assert_eq!(cells(&mut canister), (0, 5));
}

pub fn reinstall(replica: &dyn Replica) {
    let mut bench = filled(replica);
    bench.install(Mode::Reinstall);
    for engine in ENGINES {
        assert_eq!(bench.digest(engine).rows, 0);
    }
    bench.work("add_users", (Engine::SQLITE, 0_u64, 10_u64, 5_u64), 5);

    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    canister.install(Mode::Reinstall, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 0));
}

/// Takes more snapshots than the ten that a canister may have at a time.
pub fn snapshots_replace_each_other(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    for value in 1..=11 {
        set(&mut canister, value);
        canister.take_snapshot();
        set(&mut canister, 100);
        canister.load_snapshot();
        assert_eq!(cells(&mut canister), (value, value));
    }
}

pub fn snapshot(replica: &dyn Replica) {
    let mut bench = filled(replica);
    let before = digests(&mut bench);
    bench.0.take_snapshot();
    for round in 1..4 {
        for engine in ENGINES {
            bench.work("insert_end", (engine, 10 * round), 10 * round);
            bench.work("delete_users", (engine, 0_u64, 10_u64, 10_u64), 10);
        }
        assert_ne!(digests(&mut bench), before);
        bench.0.load_snapshot();
        assert_eq!(digests(&mut bench), before, "round {round}");
    }
    // A later snapshot replaces the first.
    bench.work("insert_end", (Engine::BTREE, 10_u64), 10);
    let later = digests(&mut bench);
    bench.0.take_snapshot();
    bench.update::<()>("reset", (Engine::BTREE,));
    bench.0.load_snapshot();
    assert_eq!(digests(&mut bench), later);
}

/// A snapshot includes the heap: a restored canister has an open connection if the snapshot has.
pub fn snapshot_of_an_open_connection(replica: &dyn Replica) {
    let mut bench = filled(replica);
    read(&mut bench);
    bench.0.take_snapshot();
    let warm = read(&mut bench);
    bench.update::<()>("close_connection", ());
    let cold = read(&mut bench);
    assert!(cold > 2 * warm, "{cold} cold, {warm} warm");
    bench.0.load_snapshot();
    assert_eq!(read(&mut bench), warm);
}
