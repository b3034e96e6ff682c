//! A scripted network that loses answers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use candid::{Principal, encode_args, encode_one};
use ic_agent::RequestId;
use ic_agent::agent::{RejectCode, ReplyResponse};
use stablebench_protocol::Measurement;

use super::*;

/// The fate of a submitted request.
#[derive(Clone, Copy)]
enum Script {
    /// The canister executes it and the answer arrives.
    Answers,
    /// The canister executes it, but the connection breaks.
    Executes,
    /// The connection breaks before it is executed.
    Breaks,
    /// It is accepted, and executed later.
    Takes,
    Rejects(&'static str),
}

/// A canister that executes each request once, and each id once.
struct Lossy {
    submits: RefCell<VecDeque<Script>>,
    /// `true` if statuses can be polled.
    polls: bool,
    now: Cell<u64>,
    signed: Cell<u8>,
    executed: RefCell<Vec<u8>>,
    /// Requests that are executed when their status is polled.
    taken: RefCell<Vec<u8>>,
    /// The bytes of all requests in order.
    seen: RefCell<Vec<u8>>,
}

impl Lossy {
    fn new(submits: &[Script]) -> Self {
        Self {
            submits: RefCell::new(submits.iter().copied().collect()),
            polls: true,
            now: Cell::new(1_000),
            signed: Cell::new(0),
            executed: RefCell::default(),
            taken: RefCell::default(),
            seen: RefCell::default(),
        }
    }

    /// All requests have one id, so the second to be executed is refused.
    fn execute(&self, request: u8) {
        if !self.executed.borrow().contains(&request) {
            self.executed.borrow_mut().push(request);
        }
    }

    fn answer(&self, request: u8) -> Outcome {
        let first = self.executed.borrow()[0];
        let answer = match request == first {
            true => Ok(Measurement { rows: 7, ..Measurement::default() }),
            false => Err(Error::Repeated { last: 5 }),
        };
        Ok(encode_one(answer).unwrap())
    }

    fn send(&self, retry: Retry) -> Result<Outcome> {
        let argument = encode_args(()).unwrap();
        let canister = Principal::management_canister();
        send(self, &Call::to(canister, "work", &argument), retry)
    }
}

fn broken() -> AgentError {
    AgentError::TransportError(TransportError::Generic("broken".to_owned()))
}

impl Wire for Lossy {
    fn sign(&self, call: &Call<'_>) -> Result<Signed, AgentError> {
        let number = self.signed.get() + 1;
        self.signed.set(number);
        let expiry = self.now.get() + nanoseconds(EXPIRY);
        let id = RequestId::new(&[number; 32]);
        Ok(Signed { id, bytes: vec![number], effective: call.effective, expiry })
    }

    fn submit(&self, signed: &Signed) -> Result<Submitted, AgentError> {
        let request = signed.bytes[0];
        self.seen.borrow_mut().push(request);
        match self.submits.borrow_mut().pop_front().unwrap_or(Script::Breaks) {
            Script::Answers => {
                self.execute(request);
                Ok(Submitted::Answered(self.answer(request)))
            }
            Script::Executes => {
                self.execute(request);
                Err(broken())
            }
            Script::Breaks => Err(broken()),
            Script::Takes => {
                self.taken.borrow_mut().push(request);
                Ok(Submitted::Taken)
            }
            Script::Rejects(code) => {
                let code = code.to_owned();
                Ok(Submitted::Answered(Err(Reject { code, message: "no".to_owned() })))
            }
        }
    }

    fn status(&self, signed: &Signed) -> Result<RequestStatusResponse, AgentError> {
        if !self.polls {
            return Err(broken());
        }
        let request = signed.bytes[0];
        if self.taken.borrow().contains(&request) {
            self.taken.borrow_mut().retain(|taken| *taken != request);
            self.execute(request);
            return Ok(RequestStatusResponse::Processing);
        }
        if !self.executed.borrow().contains(&request) {
            return Ok(RequestStatusResponse::Unknown);
        }
        let arg = self.answer(request).unwrap();
        Ok(RequestStatusResponse::Replied(ReplyResponse { arg }))
    }

    fn now(&self) -> u64 {
        self.now.get()
    }

    fn pause(&self, time: Duration) {
        self.now.set(self.now.get() + nanoseconds(time));
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn url(&self) -> &str {
        "http://localhost"
    }
}

#[track_caller]
fn is_measured(outcome: Result<Outcome>) {
    let reply = outcome.unwrap().unwrap();
    let answer: stablebench_protocol::Result<Measurement> = candid::decode_one(&reply).unwrap();
    assert_eq!(answer.unwrap().rows, 7);
}

#[test]
fn an_answer_is_returned() {
    let wire = Lossy::new(&[Script::Answers]);
    is_measured(wire.send(Retry::Never));
    assert_eq!((*wire.seen.borrow()).as_slice(), [1]);
}

#[test]
fn an_accepted_request_is_polled_and_not_submitted_again() {
    let wire = Lossy::new(&[Script::Takes]);
    is_measured(wire.send(Retry::Never));
    assert_eq!((*wire.seen.borrow()).as_slice(), [1]);
}

#[test]
fn a_lost_answer_is_polled_and_the_work_is_done_once() {
    let wire = Lossy::new(&[Script::Executes]);
    is_measured(wire.send(Retry::Never));
    assert_eq!((*wire.executed.borrow()).as_slice(), [1]);
    assert_eq!(wire.signed.get(), 1);
}

#[test]
fn the_same_bytes_are_submitted_until_one_arrives() {
    let wire = Lossy::new(&[Script::Breaks, Script::Breaks, Script::Answers]);
    is_measured(wire.send(Retry::Never));
    assert_eq!((*wire.seen.borrow()).as_slice(), [1, 1, 1]);
}

#[test]
fn a_call_without_an_id_is_not_repeated_if_it_may_have_run() {
    let wire = Lossy { polls: false, ..Lossy::new(&[Script::Executes]) };
    let error = wire.send(Retry::Never).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(Unmeasured::Unanswered { .. })), "{error:#}");
    assert_eq!((*wire.executed.borrow()).as_slice(), [1]);
    assert_eq!(wire.signed.get(), 1);
}

#[test]
fn with_an_id_the_canister_reports_that_the_work_was_done() {
    // The answer to the first is lost until it has expired.
    let mut script = vec![Script::Executes];
    script.extend([Script::Breaks; 49]);
    let wire = Lossy { polls: false, ..Lossy::new(&script) };
    let expiry = wire.now.get() + nanoseconds(EXPIRY);
    wire.submits.borrow_mut().extend([Script::Answers; 2]);
    let error = wire.send(Retry::Numbered).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(Unmeasured::AnswerLost { .. })), "{error:#}");
    assert_eq!(wire.signed.get(), 2);
    assert!(wire.now.get() >= expiry, "the first could still have been executed");
}

#[test]
fn with_an_id_work_that_was_not_done_is_repeated() {
    let mut script = vec![Script::Breaks; 50];
    script.push(Script::Answers);
    let wire = Lossy { polls: false, ..Lossy::new(&script) };
    is_measured(wire.send(Retry::Numbered));
    assert_eq!((*wire.executed.borrow()).as_slice(), [2]);
}

#[test]
fn a_call_that_meets_a_rate_limit_is_sent_again() {
    let rate = Script::Rejects("CanisterInstallCodeRateLimited");
    let wire = Lossy::new(&[rate, rate, Script::Answers]);
    is_measured(wire.send(Retry::Never));
    assert_eq!((*wire.seen.borrow()).as_slice(), [1, 2, 3], "each is a new request");
}

#[test]
fn a_reject_is_an_answer() {
    let wire = Lossy::new(&[Script::Rejects("CanisterTrapped")]);
    assert_eq!(wire.send(Retry::Numbered).unwrap().unwrap_err().code, "CanisterTrapped");
}

#[test]
fn a_refusal_of_the_network_keeps_its_cause() {
    let response = |reject_message: &str| RejectResponse {
        reject_code: RejectCode::SysTransient,
        reject_message: reject_message.to_owned(),
        error_code: Some("IC0207".to_owned()),
    };
    let reject = response("Canister is out of cycles");
    let error = AgentError::UncertifiedReject { reject, operation: None };
    let Submitted::Answered(Err(reject)) = submitted(error).unwrap() else { panic!() };
    assert_eq!(reject.code, "CanisterOutOfCycles");
    let error = submitted(AgentError::MissingSignature).unwrap_err();
    assert!(matches!(error, AgentError::MissingSignature) && !is_passing(&error));
}

#[test]
fn ids_increase_and_are_times() {
    let before = now();
    let ids: Vec<u64> = (0..1_000).map(|_| rising()).collect();
    assert!(ids[0] >= before);
    assert!(ids.is_sorted_by(|one, next| one < next));
    assert!(rising() < now() + 1_000_000_000, "ids do not run ahead of time");
}
