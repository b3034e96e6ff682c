//! Random calls of the bench canister, whose interface is `canisters/bench.did`.
//!
//! A case is one canister and a sequence of calls: rows are added, read, changed and removed,
//! settings change, code is upgraded, and some calls are invalid. The engines alternate between
//! cases: two cases with the engines above the floor, then one for each floor engine.
//!
//! `vacuum` is excluded: the name of SQLite's temporary database depends on random numbers that
//! follow from the second, and zeros in front of it affect the count. Recorded cases are independent
//! of the time.
//!
//! Ids are guesses of existing rows. A wrong guess is answered with an error, which is tested too.

use std::path::Path;

use candid::utils::ArgumentEncoder;
use stablebench_conformance::{Call, Case, Kind, Source};
use stablebench_protocol::{
    DigestPart, Engine, Job, JobPart, JournalMode, LockingMode, MAX_PAYLOAD_BYTES, SqliteConfig,
    Synchronous, TempStore,
};
use stablebench_suite_users::work::STEP;
use stablebench_suite_users::{Operation, Selection, Users, UsersTask};
use stablebench_workload::Rng;

/// Calls of a case after the initial ones.
const CALLS: u64 = 30;
/// Largest number of rows that one call adds.
const ADDED: u64 = 400;
/// Largest number of rows that one call reads, changes or removes.
const TOUCHED: u64 = 200;

/// Generates `count` sequences of calls. `wasm` is the path of the module from the file of cases.
///
/// # Errors
///
/// If an argument cannot be encoded.
pub fn cases(seed: u64, count: u16, wasm: &Path) -> Result<Vec<Case>, candid::Error> {
    let mut rng = Rng::new(seed);
    (0..count)
        .map(|number| {
            let (about, engines): (_, &[Engine]) = match number % 4 {
                0 | 1 => ("manager", &[Engine::BTREE, Engine::SQLITE]),
                2 => ("append", &[Engine::APPEND]),
                _ => ("array", &[Engine::ARRAY]),
            };
            Ok(Case {
                name: format!("canister_{about}_{number:03}"),
                group: "canister".to_owned(),
                module: Source::Wasm(wasm.to_owned()),
                install: None,
                calls: Sequence::new(engines, &mut rng).calls()?,
            })
        })
        .collect()
}

/// The calls of a case under construction.
struct Sequence<'a> {
    rng: &'a mut Rng,
    engines: &'a [Engine],
    /// One past the last added id, by engine.
    ends: Vec<u64>,
    calls: Vec<Call>,
}

impl<'a> Sequence<'a> {
    fn new(engines: &'a [Engine], rng: &'a mut Rng) -> Self {
        Self { rng, engines, ends: vec![0; engines.len()], calls: Vec::new() }
    }

    fn calls(mut self) -> Result<Vec<Call>, candid::Error> {
        let payload = self.rng.below(200) as u32;
        self.update("set_payload", (payload,))?;
        if self.engines.contains(&Engine::SQLITE) {
            self.configure()?;
        }
        for place in 0..self.engines.len() {
            self.add(place)?;
        }
        for _ in 0..CALLS {
            let place = self.rng.below(self.engines.len() as u64) as usize;
            self.next(place)?;
        }
        self.query("describe", ())?;
        Ok(self.calls)
    }

    /// Adds one more call.
    fn next(&mut self, place: usize) -> Result<(), candid::Error> {
        let (engine, end) = (self.engines[place], self.ends[place]);
        let few = 1 + self.rng.below(20);
        match self.rng.below(26) {
            0 | 1 => self.add(place),
            2 | 3 => self.update("insert_middle", (engine, few)),
            4 | 5 => {
                self.ends[place] += few * STEP;
                self.update("insert_end", (engine, few))
            }
            6..=8 => {
                let (first, step) = (self.rng.below(end + 1), 1 + self.rng.below(2 * STEP));
                let rows = 1 + self.rng.below(TOUCHED);
                self.update("read_users", (engine, first, step, rows))
            }
            9 => {
                let limit = self.rng.below(2 * TOUCHED);
                self.update("scan_users", (engine, limit))
            }
            10 | 11 => self.touch("update_users", engine, end),
            12 => self.touch("delete_users", engine, end),
            13 => {
                let limit = 1 + self.rng.below(10_000);
                let job = self.part(engine, end).job;
                self.query("content", (job, None::<DigestPart>, limit))
            }
            14 => self.sqlite(),
            15 => self.query("describe", ()),
            16 => {
                let bytes = self.rng.below(300) as u32;
                self.update("set_payload", (bytes,))
            }
            17 => {
                self.calls.push(Call::new(Kind::Upgrade, "", []));
                Ok(())
            }
            18 if self.rng.below(3) == 0 => {
                self.ends[place] = 0;
                self.update("reset", (engine,))
            }
            19..=22 => {
                let part = self.part(engine, end);
                self.update("execute", (part, None::<u64>))
            }
            23 | 24 => {
                // A query refuses writes.
                let part = self.part(engine, end);
                self.update("stage", (part,))?;
                self.query("run_query", ())
            }
            _ => self.refused(engine),
        }
    }

    fn add(&mut self, place: usize) -> Result<(), candid::Error> {
        let (first, rows) = (self.ends[place], 1 + self.rng.below(ADDED));
        self.ends[place] += rows * STEP;
        self.update("add_users", (self.engines[place], first, STEP, rows))
    }

    /// Calls a method with rows that exist, if none of them was removed.
    fn touch(&mut self, method: &str, engine: Engine, end: u64) -> Result<(), candid::Error> {
        let there = end / STEP;
        let first = self.rng.below(there);
        let rows = 1 + self.rng.below(TOUCHED.min(there - first.min(there)));
        self.update(method, (engine, first * STEP, STEP, rows))
    }

    /// A part of the suite users on any rows, some of which may exist.
    fn part(&mut self, engine: Engine, end: u64) -> JobPart {
        let rows = 1 + self.rng.below(40);
        let list = |rng: &mut Rng, apart: u64| {
            let id = |_| rng.below(end / apart + 5) * apart;
            Selection::List((0..rows).map(id).collect())
        };
        let step = Selection::Step { first: 5, step: STEP, rows };
        let operation = match self.rng.below(9) {
            0 => Operation::Insert(step),
            1 => Operation::Insert(list(self.rng, STEP / 2)),
            2 => Operation::Overwrite(list(self.rng, STEP / 2)),
            3 => Operation::Update(list(self.rng, STEP)),
            4 => Operation::Delete(Selection::Step { first: 0, step: STEP, rows }),
            5 => Operation::Read(list(self.rng, STEP / 2)),
            6 => Operation::Range { from: list(self.rng, STEP / 2), rows: 7 },
            7 => Operation::Scan(rows),
            _ => Operation::Count,
        };
        let transaction = some(self.rng, &[1, 3, 100]);
        let count = operation.selection().map_or(1, Selection::rows);
        let task = UsersTask::Operation { operation, transaction };
        let job = Job::new(&Users { engine, payload_bytes: self.rng.below(200) as u32, task });
        JobPart { job, seed: 0, from: 0, count, each: self.rng.below(2) == 0 }
    }

    /// Adds a call that concerns the connection to SQLite.
    fn sqlite(&mut self) -> Result<(), candid::Error> {
        match self.rng.below(3) {
            0 => self.configure(),
            1 => self.query("sqlite_settings", ()),
            _ => self.update("close_connection", ()),
        }
    }

    fn configure(&mut self) -> Result<(), candid::Error> {
        use JournalMode::{Delete, Memory, Off, Persist, Truncate, Wal};
        let rng = &mut *self.rng;
        let config = SqliteConfig {
            journal_mode: some(rng, &[Delete, Truncate, Persist, Memory, Wal, Off]),
            synchronous: some(
                rng,
                &[Synchronous::Off, Synchronous::Normal, Synchronous::Full, Synchronous::Extra],
            ),
            locking_mode: some(rng, &[LockingMode::Normal, LockingMode::Exclusive]),
            temp_store: some(rng, &[TempStore::Default, TempStore::File, TempStore::Memory]),
            page_size: some(rng, &[1_024, 4_096, 16_384]),
            cache_size: some(rng, &[-2_000, 10, 5_000]),
        };
        self.update("configure_sqlite", (config,))
    }

    /// Adds an invalid call.
    fn refused(&mut self, engine: Engine) -> Result<(), candid::Error> {
        match self.rng.below(9) {
            0 => self.update("add_users", (engine, 0_u64, STEP, 0_u64)),
            1 => self.update("add_users", (engine, 5_u64, 0_u64, 2_u64)),
            2 => self.update("add_users", (engine, 0_u64, STEP, 3_u64)),
            3 => self.update("add_users", (engine, u64::MAX - 1, STEP, 2_u64)),
            4 => self.update("update_users", (engine, 3_u64, STEP, 2_u64)),
            5 => self.update("set_payload", (MAX_PAYLOAD_BYTES + 1,)),
            6 => {
                let other = match engine {
                    Engine::APPEND => Engine::BTREE,
                    _ => Engine::APPEND,
                };
                self.update("insert_end", (other, 1_u64))
            }
            7 => self.update("no_such_method", ()),
            _ => {
                // Not Candid.
                self.calls.push(Call::new(Kind::Update, "insert_end", *b"DIDX"));
                Ok(())
            }
        }
    }

    fn update(&mut self, method: &str, args: impl ArgumentEncoder) -> Result<(), candid::Error> {
        self.calls.push(Call::new(Kind::Update, method, candid::encode_args(args)?));
        Ok(())
    }

    fn query(&mut self, method: &str, args: impl ArgumentEncoder) -> Result<(), candid::Error> {
        self.calls.push(Call::new(Kind::Query, method, candid::encode_args(args)?));
        Ok(())
    }
}

/// One of the choices, or `None` in half of the cases.
fn some<T: Copy>(rng: &mut Rng, choices: &[T]) -> Option<T> {
    choices.get(rng.below(2 * choices.len() as u64) as usize).copied()
}
