//! Requests and answers on the wire: CBOR, times in nanoseconds since 1970, and refusals as HTTP
//! errors. Requests are decoded and checked like on a replica:
//!
//! ```text
//!   bytes ── CBOR ──→ Envelope ── kind, nonce, expiry, signature, targets ──→ Request
//!
//!   sender = hash of sender_pubkey ─signs→ delegation 1 ─signs→ … ─signs→ request id
//! ```

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use candid::Principal;
use ic_transport_types::{DelegationPermissions, Envelope, EnvelopeContent, RequestId};
use p256::ecdsa::signature::Verifier;
use p256::pkcs8::DecodePublicKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stablebench_replica::text;

/// The self-describing CBOR tag 55799 of RFC 8949.
const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// Encodes a value as CBOR with the self-describing tag.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = SELF_DESCRIBED.to_vec();
    // Writing to memory does not fail, and all values that are encoded here have a form in CBOR.
    let encoded = serde_cbor_2::to_writer(&mut bytes, value);
    debug_assert!(encoded.is_ok(), "{encoded:?}");
    bytes
}

/// Decodes the body of a request.
///
/// # Errors
///
/// If the body is not exactly one such value with the self-describing tag.
fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    if !body.starts_with(&SELF_DESCRIBED) {
        return Err(Refusal::bad_request(
            "The body is not CBOR behind the self-describing tag 55799.",
        ));
    }
    serde_cbor_2::from_slice(body)
        .map_err(|error| Refusal::bad_request(format!("Cannot read the CBOR body: {error}.")))
}

/// The refusal of a request: a status code of the Interface Specification, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status code.
    pub status: StatusCode,
    /// The reason, for people.
    pub text: String,
}

impl Refusal {
    /// Creates a refusal with any status code.
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// The request is malformed, or sent to the wrong address.
    pub fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// The sender is not allowed to do this.
    pub fn forbidden(text: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, text)
    }

    /// A limit is reached.
    pub fn too_many(text: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, text)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        // Parts of the text come from the request.
        (self.status, text::safe_line(&self.text).into_owned()).into_response()
    }
}

/// Returns the time of this machine, which clients see, in nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a minute.
pub const MINUTE: u64 = 60 * SECOND;

/// The furthest expiry of a request, relative to the clock.
const MAX_AHEAD: u64 = 5 * MINUTE;
/// The tolerated difference between clocks.
const DRIFT: u64 = 30 * SECOND;
/// The most delegations in a chain.
const MAX_DELEGATIONS: usize = 20;
/// The most targets of a delegation.
const MAX_TARGETS: usize = 1_000;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An update call.
    Call,
    /// A query call.
    Query,
    /// A read of the state tree.
    ReadState,
}

/// A request from an authenticated sender.
#[derive(Debug)]
pub struct Request {
    /// The content.
    pub content: EnvelopeContent,
    /// The request id.
    pub id: RequestId,
    /// The canisters to which the delegations are restricted, if they are.
    targets: Option<Vec<Principal>>,
}

impl Request {
    /// Decodes and checks a request body that arrived at `now`, in nanoseconds since 1970.
    ///
    /// Without `verify`, the sender may be anyone.
    ///
    /// # Errors
    ///
    /// As of a replica 400, if the request is malformed, expired, or of another kind, or the sender
    /// is not authenticated.
    pub fn check(body: &[u8], kind: Kind, now: u64, verify: bool) -> Result<Self, Refusal> {
        let envelope: Envelope<'static> = decode(body)?;
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
        let targets = match verify {
            true => authenticate(&envelope, id, kind, now)?,
            false => None,
        };
        Ok(Self { content: envelope.content.into_owned(), id, targets })
    }

    /// Returns the sender.
    pub fn sender(&self) -> Principal {
        *self.content.sender()
    }

    /// Returns `true` if the delegations permit requests to the canister.
    pub fn permits(&self, canister: &Principal) -> bool {
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
    let latest = now.saturating_add(MAX_AHEAD + DRIFT);
    if expiry < now || expiry > latest {
        let earlier = if expiry < now { "has passed" } else { "is too far ahead" };
        return Err(Refusal::bad_request(format!(
            "Invalid request expiry: Specified ingress_expiry not within expected range: {expiry} \
             {earlier}: it is {now} here, and at most {} s ahead are taken. Check the clock.",
            (MAX_AHEAD + DRIFT) / SECOND
        )));
    }
    Ok(())
}

/// Checks signatures and delegations. Returns the canisters to which the delegations are
/// restricted, if they are.
fn authenticate(
    envelope: &Envelope<'_>,
    id: RequestId,
    kind: Kind,
    now: u64,
) -> Result<Option<Vec<Principal>>, Refusal> {
    let refuse = |why: &str| {
        let id = hex::encode(id.as_slice());
        Refusal::bad_request(format!("Failed to authenticate request {id}: {why}."))
    };
    let sender = envelope.content.sender();
    let delegations = envelope.sender_delegation.as_deref().unwrap_or_default();
    let (key, signature) = match (&envelope.sender_pubkey, &envelope.sender_sig) {
        (None, None) if *sender == Principal::anonymous() && delegations.is_empty() => {
            return Ok(None);
        }
        (None, None) => {
            // Tests of clients look for the replica's text.
            return Err(Refusal::bad_request(format!("Missing signature from user: {sender}")));
        }
        (Some(_), Some(_)) if *sender == Principal::anonymous() => {
            return Err(refuse("the anonymous sender does not sign"));
        }
        (Some(key), Some(signature)) => (key, signature),
        _ => return Err(refuse("sender_pubkey and sender_sig go together")),
    };
    if *sender != Principal::self_authenticating(key) {
        return Err(refuse(&format!("{sender} is not the principal of sender_pubkey")));
    }
    if delegations.len() > MAX_DELEGATIONS {
        return Err(refuse(&format!("there are more than {MAX_DELEGATIONS} delegations")));
    }
    let mut key = key.as_slice();
    let mut keys = BTreeSet::from([key]);
    let mut targets: Option<Vec<Principal>> = None;
    for signed in delegations {
        let delegation = &signed.delegation;
        if delegation.expiration < now {
            return Err(Refusal::bad_request(format!(
                "A delegation has expired at {}; it is {now} here.",
                delegation.expiration
            )));
        }
        verify(key, &delegation.signable(), &signed.signature)
            .map_err(|why| refuse(&format!("a delegation has an invalid signature: {why}")))?;
        if let Some(these) = &delegation.targets {
            if these.len() > MAX_TARGETS {
                return Err(refuse(&format!("a delegation has more than {MAX_TARGETS} targets")));
            }
            // A canister must be a target of all delegations.
            targets = Some(match targets {
                None => these.clone(),
                Some(before) => before.into_iter().filter(|id| these.contains(id)).collect(),
            });
        }
        if kind == Kind::Call
            && matches!(delegation.permissions, Some(DelegationPermissions::Queries))
        {
            return Err(refuse("a delegation permits queries only"));
        }
        key = &delegation.pubkey;
        if !keys.insert(key) {
            return Err(refuse("a key is in the chain of delegations twice"));
        }
    }
    verify(key, &id.signable(), signature).map_err(|why| refuse(&why))?;
    if let (
        Some(targets),
        EnvelopeContent::Call { canister_id, .. } | EnvelopeContent::Query { canister_id, .. },
    ) = (&targets, &*envelope.content)
        && !targets.contains(canister_id)
    {
        return Err(refuse(&format!(
            "the delegations do not permit requests to canister {canister_id}"
        )));
    }
    Ok(targets)
}

/// Verifies a signature with a DER-encoded public key.
fn verify(key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), String> {
    if let Ok(key) = ic_ed25519::PublicKey::deserialize_rfc8410_der(key) {
        return key
            .verify_signature(message, signature)
            .map_err(|_| "the Ed25519 signature is wrong".to_owned());
    }
    if let Ok(key) = ic_secp256k1::PublicKey::deserialize_der(key) {
        // The specification does not require the smaller of the two possible values.
        return if key.verify_ecdsa_signature_with_malleability(message, signature) {
            Ok(())
        } else {
            Err("the secp256k1 signature is wrong".to_owned())
        };
    }
    // The keys of WebCrypto, and so of the sessions of most web applications.
    if let Ok(key) = p256::ecdsa::VerifyingKey::from_public_key_der(key) {
        return p256::ecdsa::Signature::from_slice(signature)
            .and_then(|signature| key.verify(message, &signature))
            .map_err(|_| "the P-256 signature is wrong".to_owned());
    }
    Err("the public key is neither Ed25519 nor secp256k1 nor P-256 in DER".to_owned())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use ic_transport_types::{Delegation, SignedDelegation};

    use super::*;

    const NOW: u64 = 1_000_000_000_000_000_000;

    fn key(number: u8) -> ic_ed25519::PrivateKey {
        ic_ed25519::PrivateKey::generate_from_seed(&[number])
    }

    fn der(number: u8) -> Vec<u8> {
        key(number).public_key().serialize_rfc8410_der()
    }

    fn canister(number: u8) -> Principal {
        Principal::from_slice(&[number])
    }

    /// Creates a delegation from key `by` to key `to`.
    fn delegation(by: u8, to: u8, change: impl FnOnce(&mut Delegation)) -> SignedDelegation {
        let mut delegation =
            Delegation { pubkey: der(to), expiration: NOW, targets: None, permissions: None };
        change(&mut delegation);
        let signature = key(by).sign_message(&delegation.signable()).to_vec();
        SignedDelegation { delegation, signature }
    }

    /// Checks a request of key 0 to canister 7 that key `by` at the end of the chain signs.
    fn check(
        kind: Kind,
        by: u8,
        chain: Vec<SignedDelegation>,
        expiry: u64,
    ) -> Result<Request, Refusal> {
        let sender = Principal::self_authenticating(der(0));
        let (canister_id, method_name, arg) = (canister(7), "m".to_owned(), Vec::new());
        let content = match kind {
            Kind::Call => EnvelopeContent::Call {
                nonce: None,
                ingress_expiry: expiry,
                sender,
                canister_id,
                method_name,
                arg,
                sender_info: None,
            },
            Kind::Query => EnvelopeContent::Query {
                ingress_expiry: expiry,
                sender,
                canister_id,
                method_name,
                arg,
                nonce: None,
                sender_info: None,
            },
            Kind::ReadState => {
                EnvelopeContent::ReadState { ingress_expiry: expiry, sender, paths: Vec::new() }
            }
        };
        let signature = key(by).sign_message(&content.to_request_id().signable()).to_vec();
        let body = Envelope {
            content: Cow::Owned(content),
            sender_pubkey: Some(der(0)),
            sender_sig: Some(signature),
            sender_delegation: (!chain.is_empty()).then_some(chain),
        };
        Request::check(&body.encode_bytes(), kind, NOW, true)
    }

    #[test]
    fn an_expiry_is_at_most_some_minutes_ahead() {
        let latest = NOW + MAX_AHEAD + DRIFT;
        for (expiry, accepted) in
            [(NOW - 1, false), (NOW, true), (latest, true), (latest + 1, false)]
        {
            let checked = check(Kind::Call, 0, Vec::new(), expiry);
            assert_eq!(checked.is_ok(), accepted, "{expiry}");
            if let Err(refusal) = checked {
                assert_eq!(refusal.status, 400);
            }
        }
    }

    #[test]
    fn chains_of_delegations_are_verified() {
        let long = |length: u8| (0..length).map(|by| delegation(by, by + 1, |_| ())).collect();
        assert!(check(Kind::Call, 20, long(20), NOW).is_ok());
        for (chain, by, why) in [
            (long(21), 21, "more than 20 delegations"),
            // A link of the chain is missing.
            (vec![delegation(0, 1, |_| ()), delegation(2, 3, |_| ())], 3, "invalid signature"),
            (vec![delegation(0, 1, |_| ()), delegation(1, 0, |_| ())], 0, "twice"),
            (vec![delegation(0, 1, |_| ())], 2, "signature is wrong"),
        ] {
            let refused = check(Kind::Call, by, chain, NOW).unwrap_err();
            assert_eq!(refused.status, 400);
            assert!(refused.text.contains(why), "{}", refused.text);
        }
        let expired = vec![delegation(0, 1, |delegation| delegation.expiration = NOW - 1)];
        assert_eq!(check(Kind::Call, 1, expired, NOW).unwrap_err().status, 400);
    }

    #[test]
    fn targets_of_a_chain_are_intersected() {
        let to = |ids: &[u8]| Some(ids.iter().map(|id| canister(*id)).collect::<Vec<_>>());
        let chain = |first: &[u8], second: &[u8]| {
            let (first, second) = (to(first), to(second));
            vec![
                delegation(0, 1, |delegation| delegation.targets = first),
                delegation(1, 2, |delegation| delegation.targets = second),
            ]
        };
        assert_eq!(check(Kind::Call, 2, chain(&[7, 8], &[9, 7]), NOW).unwrap().targets, to(&[7]));
        for kind in [Kind::Call, Kind::Query] {
            let refused = check(kind, 2, chain(&[7], &[8]), NOW).unwrap_err();
            assert!(
                refused.text.contains("do not permit requests to canister"),
                "{}",
                refused.text
            );
        }
        // Reads are checked path by path.
        let read = check(Kind::ReadState, 2, chain(&[7], &[8]), NOW).unwrap();
        assert!(!read.permits(&canister(7)));
    }

    #[test]
    fn a_delegation_can_be_restricted_to_queries() {
        let chain = || {
            let queries = |delegation: &mut Delegation| {
                delegation.permissions = Some(DelegationPermissions::Queries);
            };
            vec![delegation(0, 1, queries)]
        };
        assert!(check(Kind::Query, 1, chain(), NOW).is_ok());
        assert!(check(Kind::ReadState, 1, chain(), NOW).is_ok());
        let refused = check(Kind::Call, 1, chain(), NOW).unwrap_err();
        assert!(refused.text.contains("permits queries only"), "{}", refused.text);
    }
}
