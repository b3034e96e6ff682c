//! The cost of work: operations of the bench canister, whose counts and cycles [`Pair`] compares,
//! and whole suites through the tool.
//!
//! [`Pair`]: crate::pair::Pair

use std::path::Path;
use std::process::{Command, Output};

use stablebench_protocol::{Description, Engine, JournalMode, SqliteConfig, SqliteSettings};

use crate::pair::Bench;
use crate::replica::{CACHE_HOME, Embedded, Replica};

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
