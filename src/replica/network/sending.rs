//! Sending a call so that it is executed once, even if answers are lost.
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

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use candid::Principal;
use ic_agent::AgentError;
use ic_agent::agent::{RejectResponse, RequestStatusResponse};
use ic_agent::agent_error::TransportError;
use stablebench_protocol::Error;

use super::error::{NetworkError, reject};
use crate::replica::decoding::decode_one;
use crate::replica::{Reject, Unmeasured};

#[cfg(test)]
mod tests;

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
pub(super) fn is_refused_connection(error: &AgentError) -> bool {
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
