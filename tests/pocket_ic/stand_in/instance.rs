//! An instance: canisters, and messages that wait for rounds.
//!
//! ```text
//!   submitted → waiting ─ round → running ─ rounds → answered
//!                            └── one slice, no fault ──→ answered
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use candid::Principal;

use super::fault::Fault;
use super::hosted::Hosted;
use super::json::{Call, Outcome, Reject};
use super::management;
use crate::modules::replica;

/// Instructions of a slice: a message takes as many rounds as it has slices.
const SLICE: u64 = 2_000_000_000;

/// One subnet.
pub struct Instance {
    pub canisters: BTreeMap<Principal, Hosted>,
    /// Whether nothing is paid for here.
    pub free: bool,
    messages: Vec<Message>,
    fault: Arc<FaultState>,
}

/// How the server misbehaves, and what it has done so far.
pub struct FaultState {
    pub fault: Option<Fault>,
    /// Calls of methods of the management canister.
    pub calls: Mutex<BTreeMap<String, u32>>,
    /// Whether it was told to answer with an error, and has not yet.
    pub failing: AtomicBool,
}

enum Message {
    Waiting(Call),
    Running { rounds: u64, outcome: Outcome },
    Answered(Outcome),
}

impl Instance {
    pub fn new(free: bool, fault: Arc<FaultState>) -> Self {
        Self { canisters: BTreeMap::new(), free, messages: Vec::new(), fault }
    }

    /// Takes a message; answers its number.
    pub fn submit(&mut self, call: Call) -> Result<usize, Reject> {
        let canister = call.canister_id.principal();
        if canister != Principal::management_canister() {
            self.canister(&canister)?;
        }
        self.messages.push(Message::Waiting(call));
        Ok(self.messages.len() - 1)
    }

    /// The answer to a message, once there is one.
    pub fn answer(&self, message: usize) -> Option<&Outcome> {
        match self.messages.get(message)? {
            Message::Answered(outcome) => Some(outcome),
            Message::Waiting(_) | Message::Running { .. } => None,
        }
    }

    /// One round: the first message that is not answered comes one slice further.
    ///
    /// # Errors
    ///
    /// If the server was told to fail.
    pub fn round(&mut self) -> Result<(), &'static str> {
        self.progress();
        let failing = self.fault.failing.swap(false, Ordering::Relaxed);
        if failing { Err("stand-in: told to fail") } else { Ok(()) }
    }

    fn progress(&mut self) {
        let unanswered =
            self.messages.iter().position(|message| !matches!(message, Message::Answered(_)));
        let Some(at) = unanswered else { return };
        let (outcome, rounds) = match &self.messages[at] {
            Message::Waiting(call) => {
                let call = call.clone();
                let (outcome, instructions) = self.execute(call);
                let more = match self.fault.fault {
                    Some(Fault::Rounds(rounds)) => u64::from(rounds),
                    _ => 0,
                };
                (outcome, instructions.div_ceil(SLICE).max(1) + more)
            }
            Message::Running { rounds, outcome } => (outcome.clone(), *rounds),
            Message::Answered(_) => return,
        };
        self.messages[at] = match rounds {
            0 | 1 => Message::Answered(outcome),
            rounds => Message::Running { rounds: rounds - 1, outcome },
        };
    }

    /// A query's answer.
    pub fn query(&self, call: &Call) -> Outcome {
        let canister = self.canisters.get(&call.canister_id.principal());
        let canister = canister.ok_or_else(|| not_found(&call.canister_id.principal()))?;
        canister.query(call.sender.principal(), &call.method, &call.payload.0)
    }

    pub fn canister(&mut self, id: &Principal) -> Result<&mut Hosted, Reject> {
        self.canisters.get_mut(id).ok_or_else(|| not_found(id))
    }

    /// The id of the next canister: numbers follow that of the first one.
    pub fn next_id(&self) -> Principal {
        let first = replica(super::rules()).create_canister().unwrap().id();
        let mut bytes = first.as_slice().to_vec();
        let (number, _) = bytes.split_at_mut(8);
        let next = u64::from_be_bytes((&*number).try_into().unwrap()) + self.canisters.len() as u64;
        number.copy_from_slice(&next.to_be_bytes());
        Principal::from_slice(&bytes)
    }

    /// Answers a message, and how many instructions it was charged.
    fn execute(&mut self, call: Call) -> (Outcome, u64) {
        let id = call.canister_id.principal();
        let caller = call.sender.principal();
        if id == Principal::management_canister() {
            if let Some(refused) = self.fault.misbehave(&call.method) {
                return (Err(refused), 0);
            }
            return management::execute(self, caller, &call.method, &call.payload.0);
        }
        match self.canister(&id) {
            Ok(canister) => canister.execute(|canister| {
                canister.update(caller, &call.method, &call.payload.0).unwrap()
            }),
            Err(reject) => (Err(reject), 0),
        }
    }
}

impl FaultState {
    /// Notes a call of the management canister; may end the process or refuse it.
    #[expect(clippy::disallowed_methods, reason = "dying is what it is told to do")]
    fn misbehave(&self, method: &str) -> Option<Reject> {
        let mut calls = self.calls.lock().unwrap();
        let calls = calls.entry(method.to_owned()).or_default();
        *calls += 1;
        match &self.fault {
            Some(Fault::Die { method: at, call }) if at == method && call == calls => {
                eprintln!("stand-in: told to die at call {call} of {method}");
                std::process::exit(101);
            }
            Some(Fault::Fail { method: at }) if at == method => {
                self.failing.store(true, Ordering::Relaxed);
                None
            }
            Some(Fault::Rates) if *calls == 1 && method.starts_with("install_") => {
                Some(Reject::new("CanisterInstallCodeRateLimited", "too much was installed"))
            }
            Some(Fault::Rates) if *calls == 1 && method.ends_with("_snapshot") => {
                Some(Reject::new("CanisterHeapDeltaRateLimited", "too much was written"))
            }
            _ => None,
        }
    }
}

fn not_found(id: &Principal) -> Reject {
    Reject::new("CanisterNotFound", format!("Canister {id} not found."))
}
