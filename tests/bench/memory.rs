//! What stable memory holds: the places of a floor's rows, and the owner of the memory; what remains
//! after upgrades, reinstallations, resets, closed connections and vacuums.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;

use super::canister::{Bench, CONTROLLER, Contents, ENGINES, MANAGED, count, rows};
use super::sqlite::MODES;
use stablebench_protocol::{
    Description, Digest, Engine, EngineDescription, Error, JournalMode, LockingMode, Measurement,
    Occupant, Result, SqliteConfig, SqliteSettings, Synchronous, TempStore,
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

/// The content of engines, without their memories.
fn without_memories(contents: &Contents) -> Vec<(EngineDescription, Digest)> {
    let engines = contents.engines.iter();
    engines
        .map(|(there, digest)| (EngineDescription { virtual_bytes: 0, ..*there }, *digest))
        .collect()
}

fn in_mode(mode: JournalMode) -> SqliteConfig {
    SqliteConfig { journal_mode: Some(mode), ..SqliteConfig::default() }
}

/// Both engines with 2 000 rows, and SQLite in a journal mode.
fn filled(mode: JournalMode) -> Bench {
    let mut bench = Bench::configured(in_mode(mode));
    for engine in [Engine::BTREE, Engine::SQLITE] {
        bench.measure("add_users", rows(engine, 0, 10, 2_000));
    }
    bench
}

/// The cost of reading 100 rows.
fn read(bench: &mut Bench) -> u64 {
    let measurement = bench.measure("read_users", rows(Engine::SQLITE, 0, 200, 100));
    assert_eq!(measurement.rows, 100);
    measurement.instructions
}

#[test]
fn an_upgrade_keeps_rows_and_settings() {
    for mode in MODES {
        let mut bench = Bench::configured(SqliteConfig {
            synchronous: Some(Synchronous::Extra),
            locking_mode: Some(LockingMode::Exclusive),
            temp_store: Some(TempStore::Default),
            page_size: Some(2048),
            cache_size: Some(-1_234),
            ..in_mode(mode)
        });
        bench.call("set_payload", (55_u32,));
        bench.measure("add_users", rows(Engine::BTREE, 3, 7, 500));
        bench.measure("add_users", rows(Engine::SQLITE, 0, 10, 2_000));
        let before = bench.contents();
        assert_eq!(before.settings.unwrap().cache_size, -1_234);

        let cost = read(&mut bench.fork());
        for _ in 0..2 {
            bench.upgrade();
            assert_eq!(bench.describe().payload_bytes, 55);
            let after = bench.contents();
            // The first upgrade has put the state into its own memory.
            assert_eq!(after.settings, before.settings, "{mode:?}");
            // The upgrade removes a write-ahead log, which changes the size of its memory.
            assert_eq!(without_memories(&after), without_memories(&before), "{mode:?}");
            assert_eq!(after.occupant, before.occupant);
            // The first read is cold, the second as warm as before.
            let cold = read(&mut bench);
            assert!(cold > cost * 2, "{mode:?}: {cold} cold, {cost} warm");
            let warm = read(&mut bench);
            assert!(cold > warm * 2, "{mode:?}: {cold} cold, then {warm}");
        }
        bench.measure("insert_end", count(Engine::SQLITE, 10));
        assert_eq!(bench.digest(Engine::SQLITE, 1_000).rows, 2_010);
    }
}

#[test]
fn an_upgrade_keeps_one_engine_alone() {
    for engine in ENGINES {
        let mut bench = Bench::filled(&[engine], 300);
        bench.call("set_payload", (7_u32,));
        let before = bench.contents();
        bench.upgrade();
        let after = bench.contents();
        assert_eq!(after.occupant, before.occupant, "{engine}");
        assert_eq!(after.engines, before.engines, "{engine}");
        assert_eq!(after.payload_bytes, 7, "{engine}");
        assert_eq!(bench.measure("insert_end", count(engine, 3)).rows, 3);
        assert_eq!(bench.digest(engine, 100).rows, 303);
    }
}

#[test]
fn an_upgrade_of_a_fresh_canister_keeps_the_payload() {
    let mut bench = Bench::new();
    bench.call("set_payload", (7_u32,));
    bench.upgrade();
    let description = bench.describe();
    assert_eq!(description.payload_bytes, 7);
    assert_eq!(description.occupant, Occupant::Nobody);
    for engine in ENGINES {
        let mut bench = bench.fork();
        assert_eq!(bench.measure("insert_end", count(engine, 3)).rows, 3);
        bench.upgrade();
        assert_eq!(bench.digest(engine, 100).rows, 3, "{engine}");
    }
}

#[test]
fn a_reinstall_empties() {
    let mut bench = filled(JournalMode::Wal);
    bench.call("set_payload", (7_u32,));
    bench.reinstall();
    assert_eq!(bench.contents(), Bench::new().contents());
    assert_eq!(bench.describe().stable_pages, 0);
    bench.measure("add_users", rows(Engine::SQLITE, 0, 10, 10));
}

#[test]
fn a_closed_connection_is_opened_by_the_work() {
    for mode in MODES {
        let mut bench = filled(mode);
        let digest = bench.digest(Engine::SQLITE, 1_000);
        read(&mut bench);
        let warm = read(&mut bench);
        bench.call("close_connection", ());
        bench.call("close_connection", ());
        let mut refused = bench.fork();
        let cold = read(&mut bench);
        assert!(cold > 2 * warm, "{mode:?}: {cold} cold, {warm} warm");
        let again = read(&mut bench);
        assert!(cold > 2 * again, "{mode:?}: {cold} cold, then {again}");
        assert_eq!(bench.digest(Engine::SQLITE, 1_000), digest);

        // Checks and queries leave the connection closed.
        let missing = rows(Engine::SQLITE, 5, 10, 1);
        let done: Result<Measurement> = refused.update("delete_users", missing);
        assert_eq!(done, Err(Error::IdMissing { id: 5 }));
        refused.contents();
        let still_cold = read(&mut refused);
        // The allocator's state differs, so that the costs are not exactly the same.
        assert!(
            still_cold.abs_diff(cold) < cold / 50,
            "{mode:?}: {cold}, and {still_cold} after a refusal"
        );
    }
}

#[test]
fn a_vacuum_keeps_the_rows_and_frees_pages() {
    for mode in MODES {
        let mut bench = filled(mode);
        bench.measure("delete_users", rows(Engine::SQLITE, 0, 10, 1_500));
        let (digest, before) = (bench.digest(Engine::SQLITE, 1_000), bench.settings());
        assert!(before.freelist_count > 0, "{before:?}");
        for cold in [false, true] {
            if cold {
                bench.call("close_connection", ());
            }
            let measurement = bench.measure("vacuum", ());
            assert_eq!(measurement.rows, 0, "a vacuum is not about rows");
            assert!(measurement.instructions > measurement.counter_overhead);
            assert_eq!(bench.digest(Engine::SQLITE, 1_000), digest, "{mode:?}");
            let after = bench.settings();
            assert_eq!(after.freelist_count, 0);
            assert_eq!(after.journal_mode, mode);
            assert!(
                after.page_count <= before.page_count - before.freelist_count,
                "{before:?}, then {after:?}"
            );
        }
        bench.measure("insert_end", count(Engine::SQLITE, 100));
        assert_eq!(bench.digest(Engine::SQLITE, 1_000).rows, 600);
    }
}

/// Seconds since 1970. If SQLite is first used then, its first `VACUUM` gives its temporary database
/// a name with so many zeros in front.
const SECONDS: [(usize, [u64; 2]); 5] = [
    (0, [1_620_328_630, 1_620_328_631]),
    (1, [1_620_328_632, 1_620_328_642]),
    (2, [1_620_328_669, 1_620_328_748]),
    (3, [1_620_330_259, 1_620_339_605]),
    (4, [1_620_415_111, 1_620_452_916]),
];
/// Instructions for filling a name up with zeros.
const FILLING: i64 = 126;
/// Instructions for a digit that is not filled up.
const DIGIT: i64 = 37;

/// Returns the digits of the temporary database's name, which stays on the heap.
fn temporary_name(bench: &Bench) -> String {
    const PREFIX: &[u8] = b"vacuum_";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("canister");
    bench.0.save_with_note(&path, "").unwrap();
    // The heap comes first; the stack is at its beginning.
    let mut saved = Vec::new();
    fs::File::open(path).unwrap().take(2 << 20).read_to_end(&mut saved).unwrap();
    let after = saved.windows(PREFIX.len() + 16).filter_map(|name| name.strip_prefix(PREFIX));
    let names: BTreeSet<&[u8]> =
        after.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    String::from_utf8_lossy(names.first().unwrap()).into_owned()
}

#[test]
fn a_vacuum_counts_by_the_digits_of_a_name_that_follows_from_the_second() {
    let fresh = Bench::new();
    let mut counts: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for (zeros, seconds) in SECONDS {
        for (second, nanoseconds) in seconds.into_iter().zip([10, 999_999_990]) {
            let mut bench = fresh.fork();
            bench.0.set_time(second * 1_000_000_000 + nanoseconds);
            bench.measure("add_users", rows(Engine::SQLITE, 0, 10, 1_000));
            // Random numbers have been drawn: this time has no influence any more.
            bench.0.set_time(1_700_000_000_000_000_000);
            let counted = bench.measure("vacuum", ()).instructions;
            let name = temporary_name(&bench);
            assert_eq!(name.len() - name.trim_start_matches('0').len(), zeros, "{second}: {name}");
            counts.entry(zeros).or_default().insert(counted);
        }
    }
    let none = *counts[&0].first().unwrap();
    for (zeros, counted) in counts {
        let filled = if zeros == 0 { 0 } else { FILLING - DIGIT * zeros as i64 };
        let expected = none.saturating_add_signed(filled);
        assert_eq!(counted, BTreeSet::from([expected]), "{zeros} zeros");
    }
}
