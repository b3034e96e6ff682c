//! The fuzz targets, for `cargo fuzz` and for the tests.
//!
//! ```text
//!   request_body          bytes → requests of every kind, valid and damaged → every address
//!   management_argument   bytes → Candid, valid and damaged → every management method
//!   state_path            bytes → paths of the state tree → read_state
//! ```
//!
//! A target panics if a check fails. It ignores bytes that are too short for an input.

mod inputs;

#[path = "../../../../replica/tests/replica/fuzzing/bounded.rs"]
#[allow(dead_code, reason = "the replica's tests use the rest")]
pub mod bounded;

use arbitrary::{Result, Unstructured};
use candid::Principal;
use ic_certification::{Certificate, Label, LookupResult};
use ic_transport_types::{EnvelopeContent, ReadStateResponse};

use crate::server::{anonymous_query, call, in_minutes, unsigned};
use bounded::{damaged, met};
use inputs::{Subject, test};

#[allow(unused_imports, reason = "not used by the fuzz binaries")]
pub use inputs::METHODS;

const REQUEST_BODY: &str = "request_body";
const MANAGEMENT_ARGUMENT: &str = "management_argument";
const STATE_PATH: &str = "state_path";

const KINDS: [&str; 3] = ["call", "query", "read_state"];

/// Sends requests of every kind, made from `bytes`, to every address.
pub fn request_body(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    test(async |subject| {
        for _ in 0..4 {
            let Ok((path, kind, body)) = any_request(subject, &mut input) else { return };
            let Some(answer) = subject.send(&path, kind, body).await else { continue };
            met(REQUEST_BODY, if answer.status < 400 { "let in" } else { "refused" });
            if answer.status == 404 {
                met(REQUEST_BODY, "not there");
            }
        }
    });
}

type Request = (String, &'static str, Option<Vec<u8>>);

fn any_request(of: &Subject, input: &mut Unstructured<'_>) -> Result<Request> {
    // Half of them are sent to an address of their kind.
    let what = *input.choose(&KINDS)?;
    let path = if input.arbitrary()? {
        let version = *input.choose(&["v2", "v3"])?;
        let version = if what == "call" { "v4" } else { version };
        format!("/api/{version}/canister/{}/{what}", of.id)
    } else {
        address(of, input)?
    };
    let types = ["", "application/json", "application/cbor; charset=utf-8", "text/plain"];
    let kind = if input.ratio(1, 16)? { *input.choose(&types)? } else { "application/cbor" };
    let body = match input.int_in_range(0..=15)? {
        0 => None,
        1 => Some(input.bytes(input.len().min(64))?.to_vec()),
        2..=3 => Some(inputs::cbor(input)?),
        4..=7 => {
            let whole = inputs::request(of, what, input)?;
            Some(damaged(&whole, 0, input)?)
        }
        _ => Some(inputs::request(of, what, input)?),
    };
    Ok((path, kind, body))
}

fn address(of: &Subject, input: &mut Unstructured<'_>) -> Result<String> {
    let principal = |of: &Subject, input: &mut Unstructured<'_>| -> Result<Principal> {
        if input.arbitrary()? { Ok(of.id) } else { inputs::principal(of, input) }
    };
    let version = |input: &mut Unstructured<'_>| input.choose(&["v2", "v3", "v4"]).copied();
    Ok(match input.int_in_range(0..=15)? {
        0 => format!("/{}", input.arbitrary::<&str>()?),
        1 => format!("/api/{}/canister/{}/call", version(input)?, input.arbitrary::<&str>()?),
        2 => format!("/?{}={}", input.choose(&["id", "canisterId"])?, principal(of, input)?),
        3 => format!("/?id={}", input.arbitrary::<&str>()?),
        4 => "/api/v2/status".to_owned(),
        5..=6 => {
            let what = *input.choose(&["call", "read_state"])?;
            format!("/api/{}/subnet/{}/{what}", version(input)?, of.subnet())
        }
        _ => {
            let what = *input.choose(&["call", "query", "read_state", "status"])?;
            format!("/api/{}/canister/{}/{what}", version(input)?, principal(of, input)?)
        }
    })
}

/// Calls methods of the management canister with `bytes` as arguments.
pub fn management_argument(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    test(async |subject| {
        for _ in 0..4 {
            let Ok((path, body)) = management_request(subject, &mut input) else { return };
            let answer = subject.post(&path, body).await;
            let has = |text: &[u8]| answer.body.windows(text.len()).any(|here| here == text);
            met(
                MANAGEMENT_ARGUMENT,
                match answer.status {
                    400.. => "refused",
                    _ if has(b"Error decoding candid") => "not decoded",
                    _ if has(b"certificate") => "ran",
                    _ => "rejected",
                },
            );
        }
    });
}

fn management_request(of: &Subject, input: &mut Unstructured<'_>) -> Result<(String, Vec<u8>)> {
    let method = *input.choose(METHODS)?;
    let canister = if input.ratio(1, 8)? { inputs::principal(of, input)? } else { of.id };
    let argument = match input.int_in_range(0..=7)? {
        0 => input.bytes(input.len().min(64))?.to_vec(),
        1 => inputs::any_candid(input)?,
        2 => inputs::argument(input.choose(METHODS)?, canister, input)?,
        3..=4 => damaged(&inputs::argument(method, canister, input)?, 0, input)?,
        _ => inputs::argument(method, canister, input)?,
    };
    let (management, id) = (Principal::management_canister(), of.id);
    Ok(if input.ratio(1, 5)? {
        let content = anonymous_query(management, method, argument);
        (format!("/api/v3/canister/{id}/query"), unsigned(content))
    } else {
        let sender = Principal::anonymous();
        let content = call(sender, management, method, argument, in_minutes(4));
        (format!("/api/v3/canister/{id}/call"), unsigned(content))
    })
}

/// Reads paths made from `bytes`, and checks that private sections are not shown.
pub fn state_path(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    test(async |subject| {
        for _ in 0..4 {
            let Ok((address, body)) = read_request(subject, &mut input) else { break };
            let answer = subject.post(&address, body).await;
            if answer.status != 200 {
                met(STATE_PATH, "refused");
                continue;
            }
            let read: ReadStateResponse =
                serde_cbor_2::from_slice(&answer.body).expect("an answer");
            let read: Certificate = serde_cbor_2::from_slice(&read.certificate).expect("certified");
            let time = [b"time"];
            assert!(matches!(read.tree.lookup_path(&time), LookupResult::Found(_)));
            let secret = [&b"canister"[..], subject.witness.as_slice(), b"metadata", b"plan"];
            let found = read.tree.lookup_path(&secret);
            assert!(!matches!(found, LookupResult::Found(_)), "{found:?}");
            met(STATE_PATH, "read");
        }
        assert_eq!(subject.count(subject.id).await, 0);
    });
}

fn read_request(of: &Subject, input: &mut Unstructured<'_>) -> Result<(String, Vec<u8>)> {
    let id = if input.ratio(1, 8)? { of.witness } else { inputs::principal(of, input)? };
    let address = match input.int_in_range(0..=3)? {
        0 => format!("/api/v3/subnet/{}/read_state", of.subnet()),
        1 => format!("/api/v3/canister/{id}/read_state"),
        _ => format!("/api/v2/canister/{id}/read_state"),
    };
    let mut paths: Vec<Vec<Label>> = Vec::new();
    for _ in 0..input.int_in_range(0..=4)? {
        paths.push(inputs::path(of, input)?);
    }
    if input.ratio(1, 32)? {
        let times = *input.choose(&[10, 250, 251, 5_000])?;
        paths = vec![paths; times].concat();
    }
    let body = unsigned(EnvelopeContent::ReadState {
        ingress_expiry: in_minutes(4),
        sender: Principal::anonymous(),
        paths,
    });
    Ok((address, body))
}
