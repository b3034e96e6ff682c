//! Bytes as requests of every kind to every address.

use arbitrary::{Result, Unstructured};
use candid::Principal;

use super::damage::damaged;
use super::envelope;
use super::met::met;
use super::subject::{Subject, ask};

const NAME: &str = "request_body";

/// What requests are for.
const WHAT: [&str; 3] = ["call", "query", "read_state"];

/// Sends some requests to one endpoint.
pub fn request_body(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    ask(async |subject| {
        for _ in 0..4 {
            // Whatever is too short for an input is none.
            let Ok((path, kind, body)) = request(subject, &mut input) else { return };
            let Some(answer) = subject.send(&path, kind, body).await else { continue };
            met(NAME, if answer.status < 400 { "let in" } else { "refused" });
            if answer.status == 404 {
                met(NAME, "not there");
            }
        }
    });
}

type Request = (String, &'static str, Option<Vec<u8>>);

fn request(of: &Subject, input: &mut Unstructured<'_>) -> Result<Request> {
    // Half of them come to an address that is for them.
    let what = *input.choose(&WHAT)?;
    let path = if input.arbitrary()? {
        let version = *input.choose(&["v2", "v3"])?;
        let version = if what == "call" { "v4" } else { version };
        format!("/api/{version}/canister/{}/{what}", of.id)
    } else {
        address(of, input)?
    };
    let kinds = ["", "application/json", "application/cbor; charset=utf-8", "text/plain"];
    let kind = if input.ratio(1, 16)? { *input.choose(&kinds)? } else { "application/cbor" };
    let body = match input.int_in_range(0..=15)? {
        0 => None,
        1 => Some(input.bytes(input.len().min(64))?.to_vec()),
        2..=3 => Some(envelope::cbor(input)?),
        4..=7 => {
            let whole = envelope::any(of, what, input)?;
            Some(damaged(&whole, 0, input)?)
        }
        _ => Some(envelope::any(of, what, input)?),
    };
    Ok((path, kind, body))
}

fn address(of: &Subject, input: &mut Unstructured<'_>) -> Result<String> {
    let principal = |of: &Subject, input: &mut Unstructured<'_>| -> Result<Principal> {
        if input.arbitrary()? { Ok(of.id) } else { envelope::principal(of, input) }
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
