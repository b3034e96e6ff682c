//! Bytes as paths that are read of the state tree.

use arbitrary::{Result, Unstructured};
use candid::Principal;
use ic_certification::{Certificate, Label};
use ic_transport_types::{EnvelopeContent, ReadStateResponse};

use super::envelope;
use super::met::met;
use super::subject::{Subject, ask};

const NAME: &str = "state_path";

/// Asks for some paths, and for what only controllers may see.
pub fn state_path(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    ask(async |subject| {
        for _ in 0..4 {
            // Whatever is too short for an input is none.
            let Ok((address, body)) = request(subject, &mut input) else { break };
            let answer = subject.post(&address, body).await;
            if answer.status != 200 {
                met(NAME, "refused");
                continue;
            }
            let read: ReadStateResponse =
                serde_cbor_2::from_slice(&answer.body).expect("an answer");
            let read: Certificate = serde_cbor_2::from_slice(&read.certificate).expect("certified");
            let time = [b"time"];
            assert!(matches!(
                read.tree.lookup_path(&time),
                ic_certification::LookupResult::Found(_)
            ));
            let secret = [&b"canister"[..], subject.witness.as_slice(), b"metadata", b"plan"];
            let found = read.tree.lookup_path(&secret);
            assert!(!matches!(found, ic_certification::LookupResult::Found(_)), "{found:?}");
            met(NAME, "read");
        }
        assert_eq!(subject.count(subject.id).await, 0);
    });
}

fn request(of: &Subject, input: &mut Unstructured<'_>) -> Result<(String, Vec<u8>)> {
    let id = if input.ratio(1, 8)? { of.witness } else { envelope::principal(of, input)? };
    let address = match input.int_in_range(0..=3)? {
        0 => format!("/api/v3/subnet/{}/read_state", of.subnet()),
        1 => format!("/api/v3/canister/{id}/read_state"),
        _ => format!("/api/v2/canister/{id}/read_state"),
    };
    let mut paths: Vec<Vec<Label>> = Vec::new();
    for _ in 0..input.int_in_range(0..=4)? {
        paths.push(envelope::path(of, input)?);
    }
    if input.ratio(1, 32)? {
        let times = *input.choose(&[10, 250, 251, 5_000])?;
        paths = vec![paths; times].concat();
    }
    let body = envelope::unsigned(EnvelopeContent::ReadState {
        ingress_expiry: envelope::in_time(),
        sender: Principal::anonymous(),
        paths,
    });
    Ok((address, body))
}
