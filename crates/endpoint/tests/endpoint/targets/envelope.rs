//! Requests, and values of CBOR.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use arbitrary::{Result, Unstructured};
use candid::Principal;
use ic_transport_types::{Delegation, Envelope, EnvelopeContent, SignedDelegation};
use serde_cbor_2::Value;

use super::subject::Subject;

const MINUTE: u64 = 60_000_000_000;
const TAG: &[u8] = b"\xd9\xd9\xf7";

/// When a request expires that comes in time, in nanoseconds since 1970.
pub fn in_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    since.as_nanos() as u64 + 4 * MINUTE
}

/// A call of the anonymous principal.
pub fn call(canister_id: Principal, method: &str, arg: Vec<u8>) -> EnvelopeContent {
    EnvelopeContent::Call {
        nonce: None,
        ingress_expiry: in_time(),
        sender: Principal::anonymous(),
        canister_id,
        method_name: method.to_owned(),
        arg,
        sender_info: None,
    }
}

pub fn unsigned(content: EnvelopeContent) -> Vec<u8> {
    let content = Cow::Owned(content);
    let none = Envelope { content, sender_pubkey: None, sender_sig: None, sender_delegation: None };
    none.encode_bytes()
}

/// A request to call, query or read the state, now and then signed by nobody.
pub fn any(of: &Subject, what: &str, input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let content = content(of, what, input)?;
    let maybe = |input: &mut Unstructured<'_>| -> Result<Option<Vec<u8>>> {
        Ok(if input.ratio(1, 8)? { Some(input.arbitrary()?) } else { None })
    };
    let sender_delegation = if input.ratio(1, 8)? {
        let delegation = Delegation {
            pubkey: input.arbitrary()?,
            expiration: input.arbitrary()?,
            targets: if input.arbitrary()? { Some(vec![principal(of, input)?]) } else { None },
            permissions: None,
        };
        let signed = SignedDelegation { delegation, signature: input.arbitrary()? };
        Some(vec![signed; input.int_in_range(0..=25)?])
    } else {
        None
    };
    let envelope = Envelope {
        content: Cow::Owned(content),
        sender_pubkey: maybe(input)?,
        sender_sig: maybe(input)?,
        sender_delegation,
    };
    Ok(envelope.encode_bytes())
}

fn content(of: &Subject, what: &str, input: &mut Unstructured<'_>) -> Result<EnvelopeContent> {
    let ingress_expiry = if input.ratio(1, 8)? { input.arbitrary()? } else { in_time() };
    let anonymous = Principal::anonymous();
    let sender = if input.ratio(1, 8)? { principal(of, input)? } else { anonymous };
    if what == "read_state" {
        let paths = (0..input.int_in_range(0..=4)?).map(|_| path(of, input)).collect::<Result<_>>();
        return Ok(EnvelopeContent::ReadState { ingress_expiry, sender, paths: paths? });
    }
    let canister_id = if input.ratio(1, 4)? { principal(of, input)? } else { of.id };
    let known = ["add", "get", "now", "whoami", "echo", "no", "trap", "silent", "missing", ""];
    let method_name = match input.int_in_range(0..=7)? {
        0 => input.arbitrary()?,
        1 => (*input.choose(super::candid::METHODS)?).to_owned(),
        _ => (*input.choose(&known)?).to_owned(),
    };
    let arg = input.arbitrary()?;
    let nonce = match input.int_in_range(0..=7)? {
        0 => Some(input.arbitrary()?),
        1..=4 => Some(input.arbitrary::<[u8; 8]>()?.to_vec()),
        _ => None,
    };
    Ok(if what == "call" {
        EnvelopeContent::Call {
            nonce,
            ingress_expiry,
            sender,
            canister_id,
            method_name,
            arg,
            sender_info: None,
        }
    } else {
        EnvelopeContent::Query {
            ingress_expiry,
            sender,
            canister_id,
            method_name,
            arg,
            nonce,
            sender_info: None,
        }
    })
}

/// A canister that is there, one that is not, or any other id. Not the one that is not to
/// change: everybody may call it.
pub fn principal(of: &Subject, input: &mut Unstructured<'_>) -> Result<Principal> {
    Ok(match input.int_in_range(0..=15)? {
        0 => Principal::management_canister(),
        1 => Principal::anonymous(),
        2 => of.subnet(),
        3 => {
            let length = input.int_in_range(0..=29)?;
            let id = Principal::from_slice(input.bytes(length)?);
            if id == of.witness { of.id } else { id }
        }
        _ => of.id,
    })
}

/// A path of labels that stand in the state tree, or of any.
pub fn path<L: From<Vec<u8>>>(of: &Subject, input: &mut Unstructured<'_>) -> Result<Vec<L>> {
    const LABELS: &[&str] = &[
        "time",
        "canister",
        "subnet",
        "request_status",
        "canister_ranges",
        "api_boundary_nodes",
        "controllers",
        "module_hash",
        "metadata",
        "candid:service",
        "plan",
        "public_key",
        "node",
        "type",
        "metrics",
        "status",
        "reply",
        "reject_code",
        "reject_message",
        "error_code",
        "",
    ];
    let subnet = of.subnet();
    let whole: &[&[&[u8]]] = &[
        &[b"canister", of.id.as_slice(), b"metadata", b"candid:service"],
        &[b"canister", of.id.as_slice(), b"metadata", b"plan"],
        &[b"canister", of.witness.as_slice(), b"metadata", b"plan"],
        &[b"canister", of.id.as_slice(), b"module_hash"],
        &[b"canister", of.id.as_slice(), b"controllers"],
        &[b"request_status", &[7; 32], b"reply"],
        &[b"subnet", subnet.as_slice(), b"node"],
    ];
    let mut labels: Vec<Vec<u8>> = match input.arbitrary()? {
        true => input.choose(whole)?.iter().map(|label| label.to_vec()).collect(),
        false => Vec::new(),
    };
    if !labels.is_empty() && input.arbitrary()? {
        return Ok(labels.into_iter().map(L::from).collect());
    }
    for _ in 0..input.int_in_range(0..=6)? {
        let label = match input.int_in_range(0..=5)? {
            0 => input.arbitrary()?,
            1 => principal(of, input)?.as_slice().to_vec(),
            2 => vec![input.arbitrary()?; 32],
            _ => input.choose(LABELS)?.as_bytes().to_vec(),
        };
        let at = input.int_in_range(0..=labels.len())?;
        labels.insert(at, label);
    }
    Ok(labels.into_iter().map(L::from).collect())
}

/// A value in CBOR with the keys that requests have, at the places of which stands anything.
pub fn cbor(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let value = value(input, 5)?;
    let body = serde_cbor_2::to_vec(&value).expect("writing to memory");
    Ok([TAG, &body].concat())
}

fn value(input: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    const KEYS: &[&str] = &[
        "content",
        "sender_pubkey",
        "sender_sig",
        "sender_delegation",
        "request_type",
        "sender",
        "canister_id",
        "method_name",
        "arg",
        "paths",
        "ingress_expiry",
        "nonce",
        "delegation",
        "signature",
        "pubkey",
        "expiration",
        "targets",
        "sender_info",
    ];
    const KINDS: &[&str] = &["call", "query", "read_state", "status", "add", "get", "time"];
    let most = if depth == 0 { 7 } else { 11 };
    Ok(match input.int_in_range(0..=most)? {
        0 => Value::Null,
        1 => Value::Bool(input.arbitrary()?),
        2 => Value::Integer(i128::from(input.arbitrary::<u64>()?)),
        3 => Value::Integer(i128::from(in_time())),
        4 => Value::Float(input.arbitrary()?),
        5 => Value::Bytes(input.arbitrary()?),
        6 => Value::Text(input.arbitrary()?),
        7 => Value::Text((*input.choose(KINDS)?).to_owned()),
        8 => {
            let values = (0..input.int_in_range(0..=4)?).map(|_| value(input, depth - 1));
            Value::Array(values.collect::<Result<_>>()?)
        }
        _ => {
            let mut map = BTreeMap::new();
            for _ in 0..input.int_in_range(0..=8)? {
                let key = Value::Text((*input.choose(KEYS)?).to_owned());
                map.insert(key, value(input, depth - 1)?);
            }
            Value::Map(map)
        }
    })
}
