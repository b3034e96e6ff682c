//! Bytes as arguments of the management canister.

use arbitrary::{Result, Unstructured};
use candid::Principal;
use ic_transport_types::EnvelopeContent;

use super::damage::damaged;
use super::met::met;
use super::subject::{Subject, ask};
use super::{candid as arguments, envelope};

const NAME: &str = "management_argument";

/// Calls some methods of the management canister.
pub fn management_argument(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    ask(async |subject| {
        for _ in 0..4 {
            // Whatever is too short for an input is none.
            let Ok((path, body)) = request(subject, &mut input) else { return };
            let answer = subject.post(&path, body).await;
            let has = |text: &[u8]| answer.body.windows(text.len()).any(|here| here == text);
            met(
                NAME,
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

fn request(of: &Subject, input: &mut Unstructured<'_>) -> Result<(String, Vec<u8>)> {
    let method = *input.choose(arguments::METHODS)?;
    let about = if input.ratio(1, 8)? { envelope::principal(of, input)? } else { of.id };
    let argument = match input.int_in_range(0..=7)? {
        0 => input.bytes(input.len().min(64))?.to_vec(),
        1 => arguments::any(input)?,
        2 => arguments::valid(input.choose(arguments::METHODS)?, about, input)?,
        3..=4 => damaged(&arguments::valid(method, about, input)?, 0, input)?,
        _ => arguments::valid(method, about, input)?,
    };
    let content = envelope::call(Principal::management_canister(), method, argument);
    let id = of.id;
    Ok(match content {
        EnvelopeContent::Call { ingress_expiry, sender, canister_id, method_name, arg, .. }
            if input.ratio(1, 5)? =>
        {
            let content = EnvelopeContent::Query {
                ingress_expiry,
                sender,
                canister_id,
                method_name,
                arg,
                nonce: None,
                sender_info: None,
            };
            (format!("/api/v3/canister/{id}/query"), envelope::unsigned(content))
        }
        content => (format!("/api/v3/canister/{id}/call"), envelope::unsigned(content)),
    })
}
