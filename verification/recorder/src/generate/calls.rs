//! Random calls of canisters.
//!
//! Those of the bench canister, whose interface is `canisters/bench.did`:
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
//!
//! Those between two or three canisters that execute scripts:
//!
//! ```text
//!   step: a script ──→ a call with a script ──→ a call with a script …
//!                         └─ callbacks and cleanup, with scripts that may call too
//! ```
//!
//! Nesting is limited, so every case ends. Most scripts do what their place allows; some call a
//! function that it does not, answer twice or not at all, trap, or call what does not exist.

use std::path::Path;

use candid::utils::ArgumentEncoder;
use stablebench_conformance::subnet::{SubnetCall, SubnetCase, SubnetStep, Ticks};
use stablebench_conformance::{Call, Case, MessageKind, Source};
use stablebench_protocol::{
    DigestPart, Engine, Job, JobPart, JournalMode, LockingMode, MAX_PAYLOAD_BYTES, SqliteConfig,
    Synchronous, TempStore,
};
use stablebench_suite_users::work::STEP;
use stablebench_suite_users::{Operation, Selection, Users, UsersTask};
use stablebench_workload::Rng;

use super::script::{Number, Op, SCRIPTED, Script, Send, Text, without_heartbeat};

/// Calls of a case after the initial ones.
const CALLS: u64 = 30;
/// Largest number of rows that one call adds.
const ADDED: u64 = 400;
/// Largest number of rows that one call reads, changes or removes.
const TOUCHED: u64 = 200;

/// Generates `count` sequences of calls of the bench canister. `wasm` is the path of the module from the file of cases.
///
/// # Errors
///
/// If an argument cannot be encoded.
pub fn of_bench_canister(seed: u64, count: u16, wasm: &Path) -> Result<Vec<Case>, candid::Error> {
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
                self.calls.push(Call::new(MessageKind::Upgrade, "", []));
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
                self.calls.push(Call::new(MessageKind::Update, "insert_end", *b"DIDX"));
                Ok(())
            }
        }
    }

    fn update(&mut self, method: &str, args: impl ArgumentEncoder) -> Result<(), candid::Error> {
        self.calls.push(Call::new(MessageKind::Update, method, candid::encode_args(args)?));
        Ok(())
    }

    fn query(&mut self, method: &str, args: impl ArgumentEncoder) -> Result<(), candid::Error> {
        self.calls.push(Call::new(MessageKind::Query, method, candid::encode_args(args)?));
        Ok(())
    }
}

/// One of the choices, or `None` in half of the cases.
fn some<T: Copy>(rng: &mut Rng, choices: &[T]) -> Option<T> {
    choices.get(rng.below(2 * choices.len() as u64) as usize).copied()
}

/// Deepest nesting of calls.
const DEPTH: u32 = 3;
/// Longest script, so that its length fits into two bytes with those around it.
const LONGEST: usize = 4_000;

/// The place of a script, which decides on what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Update,
    Query,
    Composite,
    Reply,
    Reject,
    CompositeReply,
    CompositeReject,
    Cleanup,
    Task,
}

/// Generates `count` cases of calls between canisters.
pub fn between_canisters(seed: u64, count: u16) -> Vec<SubnetCase> {
    let mut rng = Rng::new(seed);
    (0..count).map(|number| case(number, &mut rng)).collect()
}

fn case(number: u16, rng: &mut Rng) -> SubnetCase {
    let canisters = 2 + rng.below(2) as usize;
    let heartbeats = number % 4 == 3;
    let module = match heartbeats {
        true => SCRIPTED.to_owned(),
        // Every heartbeat costs a base fee in every round.
        false => without_heartbeat(),
    };
    let mut generator = Generator { rng, canisters };
    let steps = (0..6 + generator.below(5)).map(|_| generator.step()).collect();
    SubnetCase {
        name: format!("calls_{number:03}"),
        group: "generated-subnet".to_owned(),
        canisters: vec![module; canisters],
        keys: false,
        ids: Vec::new(),
        balances: Vec::new(),
        steps,
    }
}

struct Generator<'a> {
    rng: &'a mut Rng,
    canisters: usize,
}

impl Generator<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.rng.below(limit)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn canister(&mut self) -> usize {
        self.below(self.canisters as u64) as usize
    }

    fn step(&mut self) -> SubnetStep {
        if self.chance(12) {
            let advance_ns = [0, 1, 1_000_000_000, 7_000_000_000][self.below(4) as usize];
            let tick = 1 + self.below(4) as u32;
            return SubnetStep::Tick(Ticks { advance_ns, balances_fell: Vec::new(), tick });
        }
        let (kind, method, place) = match self.below(10) {
            0 => (MessageKind::Query, "ask", Place::Query),
            1 | 2 => (MessageKind::Query, "compose", Place::Composite),
            3 => (MessageKind::Update, "ask", Place::Query),
            _ => (MessageKind::Update, "run", Place::Update),
        };
        let script = self.script(place, DEPTH);
        SubnetStep::Call(SubnetCall {
            arg: script.into_parts(),
            balances_fell: Vec::new(),
            expect: None,
            kind,
            method: method.to_owned(),
            outcalls: Vec::new(),
            to: self.canister(),
        })
    }

    fn script(&mut self, place: Place, depth: u32) -> Script {
        loop {
            let script = self.try_script(place, depth);
            if script.length() <= LONGEST {
                return script;
            }
        }
    }

    fn try_script(&mut self, place: Place, depth: u32) -> Script {
        let mut script = Script::default();
        for _ in 0..1 + self.below(4) {
            self.operation(&mut script, place);
        }
        let calls = match place {
            Place::Query | Place::Cleanup => u64::from(self.chance(5)),
            _ if depth == 0 => 0,
            Place::Update | Place::Composite => self.below(3),
            _ => u64::from(self.chance(30)),
        };
        for _ in 0..calls {
            let send = self.send(place, depth.saturating_sub(1));
            script.send(&send);
            if self.chance(40) {
                self.operation(&mut script, place);
            }
        }
        // With calls, a callback usually answers.
        let answers = match place {
            Place::Cleanup | Place::Task => 2,
            _ if calls > 0 => 15,
            _ => 85,
        };
        if self.chance(answers) {
            match self.below(8) {
                0 => script.text(Text::Reject, b"refused as asked"),
                _ => script.op(Op::Reply),
            }
        }
        match self.below(30) {
            0 => script.text(Text::Trap, b"trapped as asked"),
            1 => script.op(Op::Unreachable),
            2 | 3 => self.operation(&mut script, place),
            _ => {}
        }
        script
    }

    fn operation(&mut self, script: &mut Script, place: Place) {
        let wrong = self.chance(2);
        let replies = !matches!(place, Place::Cleanup | Place::Task);
        let accepts = matches!(place, Place::Update | Place::Reply | Place::Reject);
        let callback = matches!(place, Place::Reply | Place::Reject);
        let op = match self.below(26) {
            0 | 1 if replies || wrong => Op::Counter0,
            2 | 3 if replies || wrong => Op::Counter1,
            4 if replies || wrong => Op::Time,
            5 if (replies && accepts) || wrong => Op::Available,
            6 if (replies && accepts) || wrong => Op::Available64,
            7 if callback || wrong => Op::Refunded,
            8 if callback || wrong => Op::Refunded64,
            9 if replies || wrong => Op::Caller,
            10 if (replies && !is_reject(place)) || wrong => Op::Argument,
            11 if is_reject(place) || wrong => Op::RejectCode,
            12 if is_reject(place) || wrong => Op::RejectMessage,
            13 if replies || wrong => Op::Deadline,
            14 if replies || wrong => Op::Count,
            15 if replies || wrong => match self.below(6) {
                0 => Op::Replicated,
                1 => Op::Certificate,
                2 => Op::IsController,
                3 => Op::Cost,
                4 => Op::Status,
                _ => Op::Version,
            },
            16 if (replies && accepts) || wrong => {
                let cycles = self.cycles();
                script.number(match self.below(2) {
                    0 => Number::Accept(cycles),
                    _ => Number::Accept64(cycles),
                });
                return;
            }
            17 => {
                script.number(Number::Spin(1 + self.below(20_000) as u32));
                return;
            }
            18 => {
                script.number(Number::Touch(1 + self.below(20) as u16));
                return;
            }
            19 => {
                script.number(Number::Stable(self.below(9_000) as u16));
                return;
            }
            20 if (replies && accepts) || wrong => {
                let in_a_while = [0, 1, 500_000_000, 2_000_000_000][self.below(4) as usize];
                script.number(Number::Timer(in_a_while));
                return;
            }
            21 if place == Place::Update => {
                let task = self.script(Place::Task, 1);
                match self.below(2) {
                    0 => script.on_heartbeat(&task),
                    _ => script.on_timer(&task),
                }
                return;
            }
            22 if accepts || wrong => {
                script.number(Number::Certify(1 + self.below(33) as u16));
                return;
            }
            23 if (replies && accepts) || wrong => {
                let cycles = self.cycles();
                script.number(Number::Burn(cycles));
                return;
            }
            24 if replies => {
                let length = self.below(200) as usize;
                script.text(Text::Data, &vec![b'x'; length]);
                return;
            }
            _ => Op::Bump,
        };
        script.op(op);
    }

    fn send(&mut self, place: Place, depth: u32) -> Send {
        let composite =
            matches!(place, Place::Composite | Place::CompositeReply | Place::CompositeReject);
        let callee = match self.below(30) {
            // A canister that does not exist, and no principal.
            0 => Script::bytes(&[0, 0, 0, 0, 0, 16, 0, 15, 1, 1]),
            1 => Script::bytes(&[1; 40]),
            _ => Script::id(self.canister()),
        };
        let (method, into) = match (self.below(20), composite) {
            (0, _) => ("missing", Place::Update),
            (1, _) => ("", Place::Update),
            (2..5, false) | (2..9, true) => ("ask", Place::Query),
            (5, false) | (9.., true) => ("compose", Place::Composite),
            _ => ("run", Place::Update),
        };
        let (replied, rejected) = match composite {
            true => (Place::CompositeReply, Place::CompositeReject),
            false => (Place::Reply, Place::Reject),
        };
        Send {
            callee,
            method,
            argument: self.script(into, depth),
            on_reply: self.script(replied, depth),
            on_reject: self.script(rejected, depth),
            on_cleanup: self.chance(40).then(|| self.script(Place::Cleanup, 0)),
            cycles: self.chance(if composite { 2 } else { 35 }).then(|| self.cycles()),
            narrow: self.chance(30),
            timeout: self.chance(15).then(|| [0, 1, 60, 300, 1_000][self.below(5) as usize]),
            one_way: self.chance(5),
            dropped: self.chance(3),
        }
    }

    fn cycles(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => 1,
            2 => self.below(1_000_000),
            3 => self.below(1_000_000_000),
            4 => self.below(1_000_000_000_000),
            _ => 10_000_000_000_000_000,
        }
    }
}

fn is_reject(place: Place) -> bool {
    matches!(place, Place::Reject | Place::CompositeReject)
}
