//! Sending a call so that it is executed once, though answers may be lost.
//!
//! ```text
//!   sign ─→ submit ─→ answered
//!     │        ├────→ taken ──────────┐
//!     │        └────→ no answer ──────┤ ask for its status; while it is unknown, submit the
//!     │                               │ same bytes: a replica takes a request once
//!     │                               ├─→ answered
//!     └── once more, if that may be ←─┴─→ still unknown when the request has expired
//! ```
//!
//! An expired request is not executed any more. Where nobody knows whether it was, a call with an
//! id is signed anew: the canister refuses it if the first was executed.

use std::time::Duration;

use anyhow::Result;
use ic_agent::AgentError;
use ic_agent::agent::{RejectResponse, RequestStatusResponse};
use ic_agent::agent_error::TransportError;
use stablebench_protocol::Error;

use super::call::{Again, Call};
use super::error::NetworkError;
use super::reject_code::reject;
use crate::replica::decoding::decode_one;
use crate::replica::{Reject, Unmeasured};

/// What a canister answered.
pub(super) type Outcome = Result<Vec<u8>, Reject>;

/// How long a request may be taken in: a replica allows five minutes at the most.
pub(super) const EXPIRY: Duration = Duration::from_secs(240);
/// How far the replica's clock may be behind ours.
const GRACE: Duration = Duration::from_secs(30);
/// How long a replica that was never reached is tried.
const CONNECT: Duration = Duration::from_secs(20);
/// How long one call may be executed.
const EXECUTION: Duration = Duration::from_secs(3_600);
/// How long a call is sent again that is refused for a rate.
const RATE: Duration = Duration::from_secs(1_200);
/// Between two questions for a status: at first, and at the most.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// Questions for a status after which an unknown request is submitted again.
const RESUBMIT: u32 = 5;
/// Requests that are signed for one call, where that may be.
const SIGNED: u32 = 3;

/// A signed request.
#[derive(Clone, Debug)]
pub(super) struct Signed {
    pub id: ic_agent::RequestId,
    pub bytes: Vec<u8>,
    pub effective: candid::Principal,
    /// Nanoseconds since 1970.
    pub expiry: u64,
}

/// What a replica said to a request.
#[derive(Debug)]
pub(super) enum Submitted {
    Answered(Outcome),
    Taken,
}

/// What requests go through.
pub(super) trait Wire {
    fn sign(&self, call: &Call<'_>) -> Result<Signed, AgentError>;
    fn submit(&self, signed: &Signed) -> Result<Submitted, AgentError>;
    fn status(&self, signed: &Signed) -> Result<RequestStatusResponse, AgentError>;
    /// Nanoseconds since 1970.
    fn now(&self) -> u64;
    fn pause(&self, time: Duration);
    /// Fails where the run is to end: asked while nothing answers.
    fn check(&self) -> Result<()>;
    fn url(&self) -> &str;
}

/// Sends a call and waits for its answer. The outer errors are the network's.
pub(super) fn send(wire: &impl Wire, call: &Call<'_>, again: Again) -> Result<Outcome> {
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
            Some(outcome) if lost > 0 && again == Again::Numbered && is_repeated(&outcome) => {
                return Err(Unmeasured::AnswerLost { method: call.method.to_owned() }.into());
            }
            Some(outcome) => return Ok(outcome),
            None if again == Again::Never || lost + 1 >= SIGNED => {
                return Err(Unmeasured::Unanswered { method: call.method.to_owned() }.into());
            }
            None => lost += 1,
        }
    }
}

/// Sends one request; nothing where it has expired and nobody knows whether it was executed.
fn deliver(wire: &impl Wire, call: &Call<'_>, signed: &Signed) -> Result<Option<Outcome>> {
    let began = wire.now();
    let last = signed.expiry + nanoseconds(GRACE);
    // Whether the replica may have it.
    let mut sent = false;
    // Whether it is known to have it.
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
            // It was executed, and the replica has forgotten how it ended.
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

/// The answer to a submitted request, where it is one.
pub(super) fn submitted(error: AgentError) -> Result<Submitted, AgentError> {
    let answered = |response: RejectResponse| Ok(Submitted::Answered(Err(reject(response))));
    match error {
        AgentError::CertifiedReject { reject, .. }
        // The replica refused to take it in, so it is not executed.
        | AgentError::UncertifiedReject { reject, .. } => answered(reject),
        error => Err(error),
    }
}

/// Whether the same request may be answered when it is made again.
pub(super) fn is_passing(error: &AgentError) -> bool {
    match error {
        AgentError::TransportError(_)
        | AgentError::TimeoutWaitingForResponse()
        | AgentError::InvalidHttpResponse(_)
        // Cut off.
        | AgentError::InvalidCborData(_)
        | AgentError::RouteProviderError(_) => true,
        AgentError::HttpError(error) => error.status == 429 || error.status >= 500,
        _ => false,
    }
}

/// Whether nothing was sent because nobody took the connection.
pub(super) fn is_refused_connection(error: &AgentError) -> bool {
    let AgentError::TransportError(TransportError::Reqwest(error)) = error else {
        return false;
    };
    error.is_connect()
}

/// Whether it would be taken some rounds later.
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

/// Whether a canister has refused an id that was there.
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
        // The key of a network that is none of ours: the first certificate tells.
        AgentError::CertificateVerificationFailed() => {
            NetworkError::ForeignKey { url, source }.into()
        }
        source => NetworkError::Failed { method, url, source }.into(),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "sending_tests.rs"]
mod tests;
