//! Sending a call so that it is executed once, even if answers are lost; errors of networks.
//!
//! ```text
//!   sign ─→ submit ─→ answered
//!     │        ├────→ taken ──────────┐
//!     │        └────→ no answer ──────┤ poll its status; while it is unknown, submit the same
//!     │                               │ bytes: a replica accepts a request once
//!     │                               ├─→ answered
//!     └── again, if that is allowed ←─┴─→ still unknown when the request has expired
//! ```
//!
//! An expired request is not executed. If it is unknown whether it was, a call with an id is signed
//! again: the canister refuses it if the first was executed.
//!
//! A network rejects with `IC0522`, the other replicas with `CanisterInstructionLimitExceeded`. Older
//! networks report the number in the message alone: `IC0522: …`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use candid::Principal;
use ic_agent::AgentError;
use ic_agent::agent::{RejectResponse, RequestStatusResponse};
use ic_agent::agent_error::TransportError;
use stablebench_protocol::Error;

use crate::replica::decoding::decode_one;
use crate::replica::{Reject, Unmeasured, name_of_code};

/// A call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub canister: Principal,
    /// The canister that determines the subnet: the called one, or the one that a call of the
    /// management canister is about.
    pub effective: Principal,
    pub method: &'a str,
    pub argument: &'a [u8],
}

impl<'a> Call<'a> {
    /// Returns a call to a canister itself.
    pub fn to(canister: Principal, method: &'a str, argument: &'a [u8]) -> Self {
        Self { canister, effective: canister, method, argument }
    }
}

/// The permission to repeat a call if it is unknown whether it was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// It may be repeated: it is idempotent.
    Idempotent,
    /// It may be repeated: it has an id, so the canister refuses the second.
    Numbered,
    /// It must not be repeated.
    Never,
}

/// Returns the time in nanoseconds since 1970.
pub(super) fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns a number larger than all before it, in this process and (if the clock is monotonic) in
/// earlier ones: the time, or the last number plus one.
pub(super) fn rising() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let mut last = LAST.load(Ordering::Relaxed);
    loop {
        let next = now().max(last + 1);
        match LAST.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return next,
            Err(newer) => last = newer,
        }
    }
}

/// A canister's answer.
pub(super) type Outcome = Result<Vec<u8>, Reject>;

/// The time until a request expires: a replica allows at most five minutes.
pub(super) const EXPIRY: Duration = Duration::from_secs(240);
/// The maximum lag of the replica's clock.
const GRACE: Duration = Duration::from_secs(30);
/// The time limit for reaching a replica.
const CONNECT: Duration = Duration::from_secs(20);
/// The time limit for executing one call.
const EXECUTION: Duration = Duration::from_secs(3_600);
/// The time for which a call is repeated that is refused because of a rate limit.
const RATE: Duration = Duration::from_secs(1_200);
/// The pauses between two polls of a status: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// The number of polls after which an unknown request is submitted again.
const RESUBMIT: u32 = 5;
/// The maximum number of requests that are signed for one call.
const MAX_SIGNED: u32 = 3;

/// A signed request.
#[derive(Clone, Debug)]
pub(super) struct Signed {
    pub id: ic_agent::RequestId,
    pub bytes: Vec<u8>,
    pub effective: Principal,
    /// Nanoseconds since 1970.
    pub expiry: u64,
}

/// A replica's response to a request.
#[derive(Debug)]
pub(super) enum Submitted {
    Answered(Outcome),
    Taken,
}

/// A connection for requests.
pub(super) trait Wire {
    fn sign(&self, call: &Call<'_>) -> Result<Signed, AgentError>;
    fn submit(&self, signed: &Signed) -> Result<Submitted, AgentError>;
    fn status(&self, signed: &Signed) -> Result<RequestStatusResponse, AgentError>;
    /// Nanoseconds since 1970.
    fn now(&self) -> u64;
    fn pause(&self, time: Duration);
    /// Fails if the run is to end. Called while there is no answer.
    fn check(&self) -> Result<()>;
    fn url(&self) -> &str;
}

/// Sends a call and waits for its answer. The outer errors are the network's.
pub(super) fn send(wire: &impl Wire, call: &Call<'_>, retry: Retry) -> Result<Outcome> {
    let began = wire.now();
    let mut lost = 0;
    loop {
        let signed = wire.sign(call).map_err(|source| failed(wire, call, source))?;
        match deliver(wire, call, &signed)? {
            Some(Err(reject))
                if is_rate(&reject) && wire.now().saturating_sub(began) < nanoseconds(RATE) =>
            {
                wire.check()?;
                wire.pause(Duration::from_secs(1));
            }
            Some(outcome) if lost > 0 && retry == Retry::Numbered && is_repeated(&outcome) => {
                return Err(Unmeasured::AnswerLost { method: call.method.to_owned() }.into());
            }
            Some(outcome) => return Ok(outcome),
            None if retry == Retry::Never || lost + 1 >= MAX_SIGNED => {
                return Err(Unmeasured::Unanswered { method: call.method.to_owned() }.into());
            }
            None => lost += 1,
        }
    }
}

/// Sends one request. Returns `None` if it has expired and it is unknown whether it was executed.
fn deliver(wire: &impl Wire, call: &Call<'_>, signed: &Signed) -> Result<Option<Outcome>> {
    let began = wire.now();
    let last = signed.expiry + nanoseconds(GRACE);
    // `true` if the replica may have it.
    let mut sent = false;
    // `true` if the replica is known to have it.
    let mut seen = false;
    let mut pause = PAUSES[0];
    for attempt in 0.. {
        let now = wire.now();
        if !seen && attempt % RESUBMIT == 0 && now < signed.expiry {
            match wire.submit(signed) {
                Ok(Submitted::Answered(outcome)) => return Ok(Some(outcome)),
                Ok(Submitted::Taken) => sent = true,
                Err(error) if is_refused_connection(&error) && !sent => {
                    if now.saturating_sub(began) >= nanoseconds(CONNECT) {
                        let url = wire.url().to_owned();
                        return Err(NetworkError::Unreachable { url, source: error }.into());
                    }
                }
                Err(error) if is_passing(&error) => sent = true,
                Err(error) => return Err(failed(wire, call, error)),
            }
        }
        match wire.status(signed) {
            Ok(RequestStatusResponse::Replied(reply)) => return Ok(Some(Ok(reply.arg))),
            Ok(RequestStatusResponse::Rejected(response)) => {
                return Ok(Some(Err(reject(response))));
            }
            // It was executed, and the replica has dropped the result.
            Ok(RequestStatusResponse::Done) => return Ok(None),
            Ok(RequestStatusResponse::Received | RequestStatusResponse::Processing) => {
                seen = true;
                if now.saturating_sub(began) >= nanoseconds(EXECUTION) {
                    let minutes = EXECUTION.as_secs() / 60;
                    let method = call.method.to_owned();
                    return Err(NetworkError::Endless { method, minutes }.into());
                }
            }
            Ok(RequestStatusResponse::Unknown) if now >= last => return Ok(None),
            Ok(RequestStatusResponse::Unknown) => {}
            Err(error) if is_passing(&error) => {
                wire.check()?;
                if now >= last + if seen { nanoseconds(EXECUTION) } else { 0 } {
                    return Ok(None);
                }
            }
            Err(error) => return Err(failed(wire, call, error)),
        }
        wire.pause(pause);
        pause = (pause * 2).min(PAUSES[1]);
    }
    Ok(None)
}

/// Returns the answer to a submitted request if the error contains one.
pub(super) fn submitted(error: AgentError) -> Result<Submitted, AgentError> {
    let answered = |response: RejectResponse| Ok(Submitted::Answered(Err(reject(response))));
    match error {
        AgentError::CertifiedReject { reject, .. }
        // The replica refused the request, so it is not executed.
        | AgentError::UncertifiedReject { reject, .. } => answered(reject),
        error => Err(error),
    }
}

/// Returns `true` if the same request may succeed when it is repeated.
pub(super) fn is_passing(error: &AgentError) -> bool {
    match error {
        AgentError::TransportError(_)
        | AgentError::TimeoutWaitingForResponse()
        | AgentError::InvalidHttpResponse(_)
        // Truncated.
        | AgentError::InvalidCborData(_)
        | AgentError::RouteProviderError(_) => true,
        AgentError::HttpError(error) => error.status == 429 || error.status >= 500,
        _ => false,
    }
}

/// Returns `true` if nothing was sent because the connection was refused.
fn is_refused_connection(error: &AgentError) -> bool {
    let AgentError::TransportError(TransportError::Reqwest(error)) = error else {
        return false;
    };
    error.is_connect()
}

/// Returns `true` if the call would be accepted some rounds later.
fn is_rate(reject: &Reject) -> bool {
    matches!(
        reject.code.as_str(),
        "CanisterInstallCodeRateLimited"
            | "CanisterHeapDeltaRateLimited"
            | "IngressHistoryFull"
            | "IngressMessageTimeout"
            | "CertifiedStateUnavailable"
    )
}

/// Returns `true` if a canister has refused an id because it has seen it.
fn is_repeated(outcome: &Outcome) -> bool {
    let Ok(reply) = outcome else {
        return false;
    };
    let answer = decode_one::<stablebench_protocol::Result<candid::Reserved>>(reply);
    matches!(answer, Ok(Err(Error::Repeated { .. })))
}

fn failed(wire: &impl Wire, call: &Call<'_>, source: AgentError) -> anyhow::Error {
    let (method, url) = (call.method.to_owned(), wire.url().to_owned());
    match source {
        // The first certificate shows that the network has another key.
        AgentError::CertificateVerificationFailed() => {
            NetworkError::ForeignKey { url, source }.into()
        }
        source => NetworkError::Failed { method, url, source }.into(),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The reasons why a run on a network fails.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error(
        "no replica answers at {url}; is it running? dfx start, icp network start and stablebench \
         serve start one and print its URL"
    )]
    Unreachable { url: String, source: AgentError },
    #[error("the replica at {url} does not report its root key; give it with --root-key")]
    NoRootKey { url: String },
    #[error(
        "the replica at {url} does not sign with the expected key: the mainnet's, or that of \
         --root-key HEX, which the network's status contains"
    )]
    ForeignKey { url: String, source: AgentError },
    #[error("there is no canister {canister} at {url}; dfx canister id NAME prints the id")]
    NoCanister { canister: Principal, url: String, source: Option<AgentError> },
    #[error(
        "{caller} is not a controller of the canister {canister}, and only controllers may measure; \
         call as one with --identity PEM, or add it: dfx canister update-settings {canister} \
         --add-controller {caller}, or icp canister settings update {canister} --add-controller \
         {caller}"
    )]
    NotController { canister: Principal, caller: Principal },
    #[error(
        "no --canister contains the module of {name} that is built here, and others are not touched:\n\
         {found}  {name} is {plain} as wasm, {compressed} as wasm.gz\ndeploy it with dfx deploy \
         {name} or icp deploy {name}, and give its id with --canister"
    )]
    Foreign { name: String, found: String, plain: String, compressed: String },
    #[error("the canister {canister} does not describe itself as benchmark canisters do")]
    Undescribed { canister: Principal, source: anyhow::Error },
    #[error(
        "the canister {canister} has no cycles left for this; give it some: dfx cycles top-up \
         {canister} 1T, or icp canister top-up {canister} --amount 1t; then continue with --resume"
    )]
    OutOfCycles { canister: Principal },
    #[error(
        "the canister {canister} is stopped; start it: dfx canister start {canister}, or icp \
         canister start {canister}"
    )]
    Stopped { canister: Principal },
    #[error("the canister {canister} is in use; a canister contains one fixture at a time")]
    InUse { canister: Principal },
    #[error("{method} failed at {url}")]
    Failed { method: String, url: String, source: AgentError },
    #[error("{method} was refused: {reject}")]
    Refused { method: String, reject: Reject },
    #[error(
        "{method} has been running for {minutes} minutes without an end; continue with --resume \
         when the replica answers again"
    )]
    Endless { method: String, minutes: u64 },
}

/// Converts a network's reject to one with the other replicas' names.
pub(super) fn reject(response: RejectResponse) -> Reject {
    let RejectResponse { reject_code, reject_message, error_code } = response;
    let number = error_code.as_deref().and_then(number);
    let number = number.or_else(|| number_before(&reject_message));
    let name = number.and_then(name_of_code).map(str::to_owned);
    // A code that is newer than the table is reported as it came.
    let code = name.or(error_code).unwrap_or_else(|| format!("{reject_code:?}"));
    Reject { code, message: reject_message }
}

/// Parses `IC0522`.
fn number(text: &str) -> Option<u32> {
    text.strip_prefix("IC")?.parse().ok()
}

/// Parses the beginning of `IC0522: Canister …`.
fn number_before(message: &str) -> Option<u32> {
    number(message.split_once(':')?.0)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    use candid::{Principal, encode_args, encode_one};
    use ic_agent::RequestId;
    use ic_agent::agent::{RejectCode, ReplyResponse};
    use stablebench_protocol::Measurement;
    use stablebench_replica::ErrorCode;

    use super::*;
    use crate::replica::ic_code;

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

    fn code(error_code: Option<&str>, message: &str) -> String {
        let reject_code = RejectCode::CanisterError;
        let error_code = error_code.map(str::to_owned);
        let reject_message = message.to_owned();
        reject(RejectResponse { reject_code, reject_message, error_code }).code
    }

    /// The runner compares these names.
    #[test]
    fn codes_have_the_names_of_the_embedded_replica() {
        for (number, expected) in [
            ("IC0301", ErrorCode::CanisterNotFound),
            ("IC0502", ErrorCode::CanisterTrapped),
            ("IC0503", ErrorCode::CanisterCalledTrap),
            ("IC0522", ErrorCode::CanisterInstructionLimitExceeded),
            ("IC0524", ErrorCode::CanisterMemoryAccessLimitExceeded),
            ("IC0536", ErrorCode::CanisterMethodNotFound),
            ("IC0537", ErrorCode::CanisterWasmModuleNotFound),
            ("IC0539", ErrorCode::CanisterWasmMemoryLimitExceeded),
        ] {
            assert_eq!(code(Some(number), "text"), expected.name());
            assert_eq!(code(None, &format!("{number}: text")), expected.name());
            assert_eq!(ic_code(expected.name()).as_deref(), Some(number));
        }
    }

    #[test]
    fn codes_without_a_name_are_unchanged() {
        assert_eq!(code(Some("IC0999"), "IC0522: text"), "IC0999");
        assert_eq!(code(None, "no: text"), "CanisterError");
        assert_eq!(code(None, "text"), "CanisterError");
    }
}
