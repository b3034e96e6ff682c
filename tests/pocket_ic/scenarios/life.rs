//! Upgrades, reinstalls and snapshots.

use stablebench_protocol::{Digest, Engine, SqliteConfig, SqliteSettings};

use super::traps::{CELLS, cells, set};
use crate::bench::Bench;
use crate::beside::{Beside, wasm};
use crate::canister::{Canister, Mode, Replica};

const ENGINES: [Engine; 2] = [Engine::Btree, Engine::Sqlite];

/// Both engines with 500 rows, SQLite with a setting of its own.
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

/// Reads rows and answers how many instructions that took.
fn read(bench: &mut Bench) -> u64 {
    let arguments = (Engine::Sqlite, 0_u64, 100_u64, 50_u64);
    let measurement: stablebench_protocol::Measurement = bench.update("read_users", arguments);
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
        // The connection is closed by an upgrade; the first work opens it.
        let (cold, warm) = (read(&mut bench), read(&mut bench));
        assert!(cold > 2 * warm, "{cold} cold, {warm} warm");
    }
    for engine in ENGINES {
        bench.work("insert_end", (engine, 5_u64), 5);
        assert_eq!(bench.digest(engine).rows, 505);
    }
}

pub fn upgrade_that_traps(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, CELLS);
    set(&mut canister, 5);
    let traps = wasm(r#"(module (func (export "canister_post_upgrade") (unreachable)))"#);
    let trapped = canister.install(Mode::Upgrade, &traps, &[]).unwrap_err();
    assert_eq!(trapped.code, "CanisterTrapped");
    assert_eq!(cells(&mut canister), (5, 5), "the old code, heap and stable memory are there");
    canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 5), "an upgrade keeps stable memory");
}

/// As a fork is on a server: upgraded and used, then put back to what it was, heap and all.
pub fn upgrade_that_is_put_back(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, CELLS);
    set(&mut canister, 5);
    canister.keep();
    for value in 6..8 {
        canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
        assert_eq!(cells(&mut canister), (0, 5));
        set(&mut canister, value);
        canister.put_back();
        assert_eq!(cells(&mut canister), (5, 5));
    }
    // What is put back can be upgraded again, and kept.
    canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
    canister.keep();
    set(&mut canister, 9);
    canister.put_back();
    assert_eq!(cells(&mut canister), (0, 5));
}

pub fn reinstall(replica: &dyn Replica) {
    let mut bench = filled(replica);
    bench.install(Mode::Reinstall);
    for engine in ENGINES {
        assert_eq!(bench.digest(engine).rows, 0);
    }
    bench.work("add_users", (Engine::Sqlite, 0_u64, 10_u64, 5_u64), 5);

    let mut canister = Beside::with(replica, CELLS);
    set(&mut canister, 5);
    canister.install(Mode::Reinstall, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 0));
}

/// More often than a canister may have snapshots at a time, which is ten times.
pub fn snapshot_again_and_again(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, CELLS);
    for value in 1..=11 {
        set(&mut canister, value);
        canister.keep();
        set(&mut canister, 100);
        canister.put_back();
        assert_eq!(cells(&mut canister), (value, value));
    }
}

pub fn snapshot(replica: &dyn Replica) {
    let mut bench = filled(replica);
    let before = digests(&mut bench);
    bench.0.keep();
    for round in 1..4 {
        for engine in ENGINES {
            bench.work("insert_end", (engine, 10 * round), 10 * round);
            bench.work("delete_users", (engine, 0_u64, 10_u64, 10_u64), 10);
        }
        assert_ne!(digests(&mut bench), before);
        bench.0.put_back();
        assert_eq!(digests(&mut bench), before, "round {round}");
    }
    // A later state replaces what was kept.
    bench.work("insert_end", (Engine::Btree, 10_u64), 10);
    let later = digests(&mut bench);
    bench.0.keep();
    bench.update::<()>("reset", (Engine::Btree,));
    bench.0.put_back();
    assert_eq!(digests(&mut bench), later);
}

/// The heap is part of a snapshot: an open connection is open again.
pub fn snapshot_of_warm_and_cold(replica: &dyn Replica) {
    let mut bench = filled(replica);
    read(&mut bench);
    bench.0.keep();
    let warm = read(&mut bench);
    bench.update::<()>("close_connection", ());
    let cold = read(&mut bench);
    assert!(cold > 2 * warm, "{cold} cold, {warm} warm");
    bench.0.put_back();
    assert_eq!(read(&mut bench), warm);
}
