//! Arguments out of range: a typed error, and nothing has changed.

use super::canister::{Bench, CONTROLLER, count, rows};
use candid::{CandidType, Deserialize, encode_args, utils::ArgumentEncoder};
use stablebench_protocol::{
    DigestPart, Engine, Error, MAX_PAYLOAD_BYTES, Measurement, Occupant, Result,
};

const MANAGED: [Engine; 2] = [Engine::Btree, Engine::Sqlite];
/// The methods about ids.
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
    // 1 GiB, at 12 bytes a row beside the payload.
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
            let digest: Result<DigestPart> =
                refused.0.query("digest", (engine, None::<DigestPart>, number));
            assert_eq!(digest, Err(error));
        }
    }
    refused.0.do_it("set_payload", (7_u32,));
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
fn ids_that_are_there_or_are_not() {
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
            let arguments = rows(Engine::Sqlite, first, 1, 2);
            refused.expect(i64_overflow.clone(), method, arguments);
        }
    }
    // The last that fits can be added, read, changed and removed.
    for (engine, largest, overflow) in
        [(Engine::Btree, u64::MAX, u64_overflow), (Engine::Sqlite, LARGEST_SQLITE_ID, i64_overflow)]
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
fn payloads_have_a_longest() {
    let mut refused = Refusals(filled());
    let limit = Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES };
    for bytes in [100_001_u32, u32::MAX] {
        let before = refused.0.contents();
        let done: Result<()> = refused.0.update("set_payload", (bytes,));
        assert_eq!(done, Err(limit.clone()));
        assert_eq!(refused.0.contents(), before);
    }
    refused.0.do_it("set_payload", (100_000_u32,));
    // Half of the 2 GiB that a message may write, at 12 bytes a row beside the payload.
    let most = (1 << 30) / 100_012;
    assert_eq!(refused.0.describe().max_rows, most);
    for engine in MANAGED {
        let limit = Error::TooManyRows { limit: most };
        refused.expect(limit, "insert_end", count(engine, most + 1));
        assert_eq!(refused.0.measure("insert_end", count(engine, 3)).rows, 3);
        let read = refused.0.measure("read_users", rows(engine, 1_000, 10, 3));
        assert_eq!(read.rows, 3);
    }
    assert_eq!(refused.0.digest(Engine::Btree, 10), refused.0.digest(Engine::Sqlite, 10));
}

#[test]
fn a_digest_ends_once() {
    let bench = filled();
    let ask = |part| bench.query::<DigestPart>("digest", (Engine::Sqlite, part, 100_u64));
    let part = ask(None::<DigestPart>).unwrap();
    assert!(part.done, "100 rows of 100");
    assert_eq!(ask(Some(part)), Err(Error::DigestDone));
}

#[test]
fn the_floor_needs_memory_that_no_manager_took() {
    let mut refused = Refusals(filled());
    for engine in [Engine::Append, Engine::Array] {
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
            bench.update("add_users", rows(Engine::Sqlite, largest, 1, 2));
        assert_eq!(done, Err(Error::IdOverflow { largest }));
        assert_eq!(bench.describe().payload_bytes, 100);
        assert_eq!(bench.digest(engine, 1).rows, 0);
        assert_eq!(bench.measure("scan_users", count(engine, 5)).rows, 0);
        assert_eq!(bench.measure("insert_end", count(engine, 5)).rows, 5);
    }
}

#[derive(CandidType, Deserialize)]
enum Other {
    #[serde(rename = "rocksdb")]
    RocksDb,
}

#[test]
fn what_is_not_of_the_interface_traps() {
    let mut bench = filled();
    let before = bench.contents();
    let other = encode_args((Other::RocksDb, 5_u64, 10_u64, 1_u64)).unwrap();
    let negative = encode_args((Engine::Btree, -5_i64, 10_u64, 1_u64)).unwrap();
    for arguments in [other, negative, b"DIDL".to_vec(), Vec::new()] {
        let execution = bench.0.update(CONTROLLER, "add_users", &arguments).unwrap();
        assert!(execution.outcome.is_err(), "{arguments:?}");
        assert_eq!(bench.contents(), before);
    }
}
