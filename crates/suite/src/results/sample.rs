//! Results for tests.

use stablebench_protocol::{JournalMode, LockingMode, Phase, Synchronous, TempStore};

use super::*;
use crate::cost::{Inside, Messaging, StableCalls, TouchedPages};

/// Returns results with a value for every field. All numbers of the case are different.
pub fn full() -> Results {
    let digest = Digest { rows: 1_010_000, low: 71, high: 72 };
    Results {
        format: FORMAT,
        stablebench: "0.1.0".to_owned(),
        revision: Some("783b3fa".to_owned()),
        suite: "users".to_owned(),
        command: "stablebench run users".to_owned(),
        published: Some("users".to_owned()),
        seed: 1,
        prices: Prices { nodes: 13, usd_per_trillion_cycles: 1.25 },
        replica: Identity {
            kind: "embedded".to_owned(),
            version: "0.1.0".to_owned(),
            subnet: "application".to_owned(),
            rules: "2026-08".to_owned(),
        },
        inputs: Vec::new(),
        canisters: vec![CanisterInfo {
            name: "bench".to_owned(),
            sha256: "3e1c".to_owned(),
            bytes: 3_426_565,
            crates: vec![CrateVersion { name: "ic-cdk".to_owned(), version: "0.20.3".to_owned() }],
            sqlite: Some(SqliteDescription {
                version: "3.53.0".to_owned(),
                compile_options: vec!["THREADSAFE=0".to_owned()],
            }),
        }],
        configurations: vec![ConfigurationInfo {
            key: "sqlite/wal".to_owned(),
            canister: "bench".to_owned(),
            engine: Engine::SQLITE,
            settings: Some([("journal_mode".to_owned(), "wal".to_owned())].into()),
        }],
        fixtures: vec![fixture("sqlite/wal")],
        cases: vec![Case {
            section: "insert".to_owned(),
            name: "middle 10 000".to_owned(),
            configuration: "sqlite/wal".to_owned(),
            rows: 1_000_000,
            payload: 100,
            state: State::Warm,
            outcome: Outcome::Measured(Measured {
                instructions: 577_141_375,
                operations: 9_999,
                capacity: Some(Capacity {
                    limit: 40_000_000_000,
                    fits: 9_998,
                    exceeds: Some(9_997),
                    reason: Some("CanisterTrapped: no".to_owned()),
                }),
                detail: Some(detail(digest)),
                each: Some(Spread {
                    min: 50,
                    p50: 51,
                    p90: 52,
                    p95: Some(91),
                    p99: 53,
                    max: 54,
                    sum: 55,
                    worst: Worst { index: 56, id: 57, allocated: -58 },
                    worst_work: Some("the 57th row".to_owned()),
                    allocating: 59,
                    allocating_sum: 60,
                    buckets: vec![Bucket { from: 97, below: 98, count: 99 }],
                }),
                phases: Some(vec![PhaseCost { phase: Phase::Step, instructions: 201, times: 101 }]),
            }),
        }],
        harness: Vec::new(),
        planned: None,
    }
}

/// Returns a case of 1 000 000 rows of 100 bytes with instructions only.
pub fn case(section: &str, name: &str, configuration: &str, instructions: u64) -> Case {
    Case {
        section: section.to_owned(),
        name: name.to_owned(),
        configuration: configuration.to_owned(),
        rows: 1_000_000,
        payload: 100,
        state: State::Warm,
        outcome: Outcome::Measured(Measured {
            instructions,
            operations: 1,
            capacity: None,
            detail: None,
            each: None,
            phases: None,
        }),
    }
}

/// Returns results with these cases and their configurations.
pub fn of(cases: Vec<Case>) -> Results {
    let mut configurations: Vec<ConfigurationInfo> = Vec::new();
    for case in &cases {
        if configurations.iter().all(|known| known.key != case.configuration) {
            configurations.push(ConfigurationInfo {
                key: case.configuration.clone(),
                canister: "bench".to_owned(),
                engine: Engine::BTREE,
                settings: None,
            });
        }
    }
    Results { published: None, configurations, fixtures: Vec::new(), cases, ..full() }
}

/// Returns a fixture with this configuration.
pub fn fixture(configuration: &str) -> FixtureInfo {
    let held = Held {
        sqlite: Some(SqliteSettings {
            journal_mode: JournalMode::Wal,
            synchronous: Synchronous::Off,
            locking_mode: LockingMode::Exclusive,
            temp_store: TempStore::Memory,
            page_size: 4_096,
            cache_size: 500_000,
            auto_vacuum: 0,
            page_count: 27_700,
            freelist_count: 0,
        }),
        populate: Populate {
            messages: 4,
            instructions: 14_571_764_515,
            charge: Some(14_601_007_515),
            cycles: 14_627_343_515,
        },
        stored_bytes: 113_459_200,
        virtual_bytes: Some(117_440_512),
        cache_bytes: Some(113_000_000),
        heap_pages: 1_856,
        stable_pages: 2_945,
        digest: Digest { rows: 1_000_000, low: 1, high: 2 },
        wall_milliseconds: Some(4_578),
    };
    FixtureInfo {
        configuration: configuration.to_owned(),
        name: String::new(),
        rows: 1_000_000,
        payload: 100,
        outcome: Outcome::Measured(held),
    }
}

/// Returns costs of pages with six consecutive numbers.
fn pages(first: u64) -> PageCosts {
    PageCosts {
        heap: first,
        stable: first + 1,
        touched: Some(TouchedPages {
            heap: first + 2,
            heap_written: first + 3,
            stable: first + 4,
            stable_written: first + 5,
        }),
    }
}

/// Returns the details of a measurement after which the rows have this digest.
pub fn detail(digest: Digest) -> Detail {
    Detail {
        messages: 30,
        counter_overhead: 31,
        message_instructions: 32,
        rows: 33,
        bytes: Some(34),
        heap_pages_before: 35,
        heap_pages_after: 36,
        stable_pages_before: 37,
        stable_pages_after: 38,
        cost: Cost {
            cycles: 39,
            inside: Some(Inside {
                instructions: 40,
                charge: 241,
                heap_pages_changed: 42,
                stable_pages_accessed: 43,
                stable_pages_written: 44,
                stable_calls: Some(StableCalls {
                    reads: 45,
                    bytes_read: 46,
                    writes: 47,
                    bytes_written: 48,
                }),
                pages: Some(pages(75)),
                messaging: Some(Messaging { executions: 105, cycles: 106 }),
            }),
        },
        pages: Some(pages(81)),
        digest: Some(digest),
        stored: Some(Stored {
            bytes: 61,
            virtual_bytes: 62,
            cache_bytes: 63,
            objects: vec![StoredObject {
                name: "sbtest1_k".to_owned(),
                table: "sbtest1".to_owned(),
                index: true,
                bytes: 64,
                pages: 65,
                internal_pages: 66,
                overflow_pages: 67,
                children: 68,
                leaf_entries: 69,
                payload_bytes: 70,
                unused_bytes: 73,
                depth: 74,
            }],
        }),
    }
}
