//! Requests: read, and checked as a replica checks them.
//!
//! ```text
//!   bytes ── cbor ──→ Envelope ── kind, canister, expiry, signature ──→ Request
//! ```

mod signature;
#[cfg(test)]
mod tests;

use candid::Principal;
use ic_transport_types::{Envelope, EnvelopeContent, RequestId};

use crate::cbor;
use crate::clock::{MINUTE, SECOND};
use crate::refusal::Refusal;

/// How far ahead of the clock a request may expire, and how much the clocks may differ.
const MOST_AHEAD: u64 = 5 * MINUTE;
const DRIFT: u64 = 30 * SECOND;

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An update call.
    Call,
    /// A query call.
    Query,
    /// Reading of the state tree.
    ReadState,
}

/// A request whose sender is who it says.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub content: EnvelopeContent,
    /// Its id.
    pub id: RequestId,
    /// For which canisters the delegations are, where they say.
    pub targets: Option<Vec<Principal>>,
}

impl Request {
    /// The request in a body that came at `now`, nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// Those of a replica: 400 where it is malformed, expired, or of another kind; 403 where the
    /// sender is not shown to be who it says.
    pub fn check(body: &[u8], kind: Kind, now: u64) -> Result<Self, Refusal> {
        let envelope: Envelope<'static> = cbor::decode(body)?;
        let (found, sender_info) = match &*envelope.content {
            EnvelopeContent::Call { sender_info, .. } => (Kind::Call, sender_info.is_some()),
            EnvelopeContent::Query { sender_info, .. } => (Kind::Query, sender_info.is_some()),
            EnvelopeContent::ReadState { .. } => (Kind::ReadState, false),
        };
        if found != kind {
            return Err(Refusal::bad_request(format!(
                "The request_type is {}, this address takes {}.",
                found.name(),
                kind.name()
            )));
        }
        if sender_info {
            return Err(Refusal::bad_request("sender_info is not supported here."));
        }
        if let EnvelopeContent::Call { nonce: Some(nonce), .. }
        | EnvelopeContent::Query { nonce: Some(nonce), .. } = &*envelope.content
            && nonce.len() > 32
        {
            return Err(Refusal::bad_request("A nonce has at most 32 bytes."));
        }
        check_expiry(envelope.content.ingress_expiry(), now)?;
        let id = envelope.content.to_request_id();
        let targets = signature::check(&envelope, id, kind, now)?;
        Ok(Self { content: envelope.content.into_owned(), id, targets })
    }

    /// Who asks.
    pub fn sender(&self) -> Principal {
        *self.content.sender()
    }

    /// Whether the delegations are for that canister.
    pub fn is_for(&self, canister: &Principal) -> bool {
        self.targets.as_ref().is_none_or(|targets| targets.contains(canister))
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Query => "query",
            Self::ReadState => "read_state",
        }
    }
}

fn check_expiry(expiry: u64, now: u64) -> Result<(), Refusal> {
    let latest = now.saturating_add(MOST_AHEAD + DRIFT);
    if expiry < now || expiry > latest {
        let earlier = if expiry < now { "has passed" } else { "is too far ahead" };
        return Err(Refusal::bad_request(format!(
            "The ingress_expiry {expiry} {earlier}: it is {now} here, and at most {} s ahead are \
             taken. Check the clock.",
            (MOST_AHEAD + DRIFT) / SECOND
        )));
    }
    Ok(())
}
