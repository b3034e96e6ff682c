//! Random calls between two or three canisters that execute scripts.
//!
//! ```text
//!   step: a script ──→ a call with a script ──→ a call with a script …
//!                         └─ callbacks and cleanup, with scripts that may call too
//! ```
//!
//! Nesting is limited, so every case ends. Most scripts do what their place allows; some call a
//! function that it does not, answer twice or not at all, trap, or call what does not exist.

use stablebench_conformance::Kind;
use stablebench_conformance::subnet::{Step, SubnetCall, SubnetCase, Ticks};
use stablebench_workload::Rng;

use super::script::{Number, Op, SCRIPTED, Script, Send, Text, without_heartbeat};

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

/// Generates `count` cases.
pub fn cases(seed: u64, count: u16) -> Vec<SubnetCase> {
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

    fn step(&mut self) -> Step {
        if self.chance(12) {
            let advance_ns = [0, 1, 1_000_000_000, 7_000_000_000][self.below(4) as usize];
            let tick = 1 + self.below(4) as u32;
            return Step::Tick(Ticks { advance_ns, balances_fell: Vec::new(), tick });
        }
        let (kind, method, place) = match self.below(10) {
            0 => (Kind::Query, "ask", Place::Query),
            1 | 2 => (Kind::Query, "compose", Place::Composite),
            3 => (Kind::Update, "ask", Place::Query),
            _ => (Kind::Update, "run", Place::Update),
        };
        let script = self.script(place, DEPTH);
        Step::Call(SubnetCall {
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
