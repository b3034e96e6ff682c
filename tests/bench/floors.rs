//! The floor engines: the places of their rows, and the owner of stable memory.

use super::canister::{Bench, CONTROLLER, Contents, ENGINES, MANAGED, count, rows};
use stablebench_protocol::{
    Description, Digest, Engine, Error, Measurement, Occupant, Result, SqliteConfig, SqliteSettings,
};

const FLOORS: [Engine; 2] = [Engine::APPEND, Engine::ARRAY];

#[test]
fn rows_take_the_bytes_they_must() {
    // A row of the log has an id and a length, 12 bytes. A slot has a length, 4 bytes;
    // ids 0, 10, … 9 990 are every second slot, and after the last comes none.
    for (engine, bytes) in [(Engine::APPEND, 1_000 * 112), (Engine::ARRAY, 1_999 * 104)] {
        let mut bench = Bench::new();
        let arguments = rows(engine, 0, 10, 1_000);
        let (done, execution) = bench.execute::<Measurement>(CONTROLLER, "add_users", arguments);
        let measurement = done.unwrap();
        let stored = bench.describe().engines;
        assert_eq!(stored.len(), 1, "{stored:?}");
        assert_eq!(stored[0].stored_bytes, bytes);
        // A page is for the header; rows begin after it.
        let pages = 1 + u64::div_ceil(bytes, 65_536);
        assert_eq!(measurement.stable_pages_before, 0);
        assert_eq!(measurement.stable_pages_after, pages);
        // Slots of 104 bytes, half of them empty, leave no page of 4 KiB untouched.
        let written = u64::div_ceil(bytes, 4_096);
        assert_eq!(execution.memory.stable_written.get(), written);
        assert_eq!(execution.memory.stable_accessed.get(), written);
    }
}

#[test]
fn a_slot_holds_what_the_first_batch_held() {
    let mut bench = Bench::new();
    bench.call("set_payload", (10_u32,));
    bench.measure("add_users", rows(Engine::ARRAY, 0, 5, 10));
    bench.call("set_payload", (11_u32,));
    let before = bench.contents();
    for (method, arguments, error) in [
        ("add_users", rows(Engine::ARRAY, 100, 5, 1), Error::PayloadTooLong { limit: 10 }),
        ("update_users", rows(Engine::ARRAY, 0, 5, 1), Error::PayloadTooLong { limit: 10 }),
        ("read_users", rows(Engine::ARRAY, 5, 3, 2), Error::IdNotMultiple { id: 8, multiple: 5 }),
        ("delete_users", rows(Engine::ARRAY, 5, 3, 2), Error::IdNotMultiple { id: 8, multiple: 5 }),
    ] {
        let done: Result<Measurement> = bench.update(method, arguments);
        assert_eq!(done, Err(error), "{method}");
        assert_eq!(bench.contents(), before, "{method}");
    }
}

#[test]
fn slots_end_where_stable_memory_does() {
    let mut bench = Bench::new();
    // Offsets stay below 2^40; a slot of 100 bytes has 104.
    let largest = ((1 << 40) / 104 - 1) * 5;
    let far: Result<Measurement> =
        bench.update("add_users", rows(Engine::ARRAY, largest + 5, 5, 1));
    assert_eq!(far, Err(Error::IdOverflow { largest }));
    let near: Result<Measurement> = bench.update("add_users", rows(Engine::ARRAY, largest, 5, 1));
    let pages = 1 + u64::div_ceil((1 << 40) / 104 * 104, 65_536);
    assert_eq!(near, Err(Error::OutOfStableMemory { pages }));
    let description = bench.describe();
    assert_eq!(description.occupant, Occupant::Nobody);
    assert_eq!(description.stable_pages, 0);
}

#[test]
fn a_floor_does_not_share_stable_memory() {
    for (floor, other) in [(Engine::APPEND, Engine::ARRAY), (Engine::ARRAY, Engine::APPEND)] {
        let mut bench = Bench::filled(&[floor], 50);
        let before = bench.contents();
        assert_eq!(before.occupant, Occupant::Floor(floor));
        let taken = Error::StableMemoryTaken { occupant: before.occupant };
        for engine in [Engine::BTREE, Engine::SQLITE, other] {
            let done: Result<Measurement> = bench.update("insert_end", count(engine, 1));
            assert_eq!(done, Err(taken.clone()), "{engine}");
        }
        let config = SqliteConfig::default();
        let configured: Result<SqliteSettings> = bench.update("configure_sqlite", (config,));
        assert_eq!(configured, Err(taken.clone()));
        let settings: Result<SqliteSettings> = bench.query("sqlite_settings", ());
        assert_eq!(settings, Err(taken.clone()));
        assert_eq!(bench.update::<()>("close_connection", ()), Err(taken.clone()));
        assert_eq!(bench.update::<Measurement>("vacuum", ()), Err(taken));
        assert_eq!(bench.contents(), before);
    }
}

#[test]
fn a_reset_floor_releases_stable_memory() {
    for floor in FLOORS {
        for upgraded in [false, true] {
            for next in ENGINES {
                let mut bench = Bench::filled(&[floor], 2_000);
                if upgraded {
                    // Now there is a header in the first page.
                    bench.upgrade();
                }
                bench.call("reset", (floor,));
                assert_eq!(bench.describe().occupant, Occupant::Nobody);
                bench.measure("add_users", rows(next, 5, 10, 300));
                let scanned = bench.measure("scan_users", count(next, 10_000));
                assert_eq!(scanned.rows, 300, "{next} after {floor}");
                let before = bench.contents();
                bench.upgrade();
                let after = bench.contents();
                assert_eq!(after.occupant, before.occupant, "{next} after {floor}");
                assert_eq!(digests(&after), digests(&before), "{next} after {floor}");
            }
        }
    }
}

fn digests(contents: &Contents) -> Vec<Digest> {
    let engines = contents.engines.iter();
    engines.map(|(_, digest)| *digest).collect()
}

#[test]
fn a_reset_engine_reuses_its_memory() {
    for engine in MANAGED {
        let mut bench = Bench::filled(&[engine], 5_000);
        let (before, digest) = (bench.describe(), bench.digest(engine, 1_000));
        for _ in 0..3 {
            bench.call("reset", (engine,));
            assert_eq!(bench.digest(engine, 1).rows, 0);
            assert_eq!(bench.measure("scan_users", count(engine, 10)).rows, 0);
            bench.measure("add_users", rows(engine, 0, 10, 5_000));
        }
        assert_eq!(bench.digest(engine, 1_000), digest);
        let after = bench.describe();
        assert_eq!(after.stable_pages, before.stable_pages, "{engine}");
        // A journal may be longer than before.
        let stored = |description: &Description| {
            let engines = description.engines.iter();
            engines.map(|of| (of.engine, of.rows, of.stored_bytes, of.digest)).collect::<Vec<_>>()
        };
        assert_eq!(stored(&after), stored(&before), "{engine}");
    }
}

#[test]
fn a_reset_is_for_one_engine() {
    let mut bench = Bench::filled(&MANAGED, 100);
    let sqlite = bench.digest(Engine::SQLITE, 100);
    bench.call("reset", (Engine::BTREE,));
    assert_eq!(bench.digest(Engine::BTREE, 100).rows, 0);
    assert_eq!(bench.digest(Engine::SQLITE, 100), sqlite);
}
