//! What work costs. `Beside` holds each reply, with the counts in it, and the cycles of
//! each message against the embedded replica's.

use stablebench_protocol::{Description, Engine, JournalMode, SqliteConfig, SqliteSettings};

use crate::bench::Bench;
use crate::canister::Replica;

/// Rows that are there before the work.
const ROWS: u64 = 400;

/// SQLite in a journal mode.
pub fn sqlite(replica: &dyn Replica, mode: JournalMode) {
    let mut bench = Bench::new(replica);
    let config = SqliteConfig { journal_mode: Some(mode), ..SqliteConfig::default() };
    let settings: SqliteSettings = bench.update("configure_sqlite", (config,));
    assert_eq!(settings.journal_mode, mode);
    work(&mut bench, Engine::Sqlite);
    bench.work("vacuum", (), 0);
    bench.update::<()>("close_connection", ());
    // `work` leaves three rows.
    bench.work("read_users", (Engine::Sqlite, 0_u64, 10_u64, 20_u64), 3);
    let after: SqliteSettings = bench.query("sqlite_settings", ());
    assert_eq!(after.journal_mode, mode);
}

/// An engine that has no settings.
pub fn engine(replica: &dyn Replica, engine: Engine) {
    work(&mut Bench::new(replica), engine);
}

fn work(bench: &mut Bench, engine: Engine) {
    let description: Description = bench.query("describe", ());
    assert!(description.engines.iter().all(|there| there.rows == 0));
    bench.work("add_users", (engine, 0_u64, 10_u64, ROWS), ROWS);
    bench.update::<()>("set_payload", (300_u32,));
    let mut rows = ROWS;
    // A slot of the array holds the payload that it was made for.
    if engine == Engine::Array {
        bench.update::<()>("set_payload", (100_u32,));
    }
    for added in [1, 20] {
        bench.work("insert_end", (engine, added), added);
        rows += added;
    }
    bench.work("insert_middle", (engine, 20_u64), 20);
    rows += 20;
    bench.work("scan_users", (engine, 50_u64), 50);
    // The floor of a log has no index: it can add and scan.
    if engine != Engine::Append {
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
