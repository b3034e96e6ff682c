//! CBOR as the HTTP interface wants it: one value behind the self-describing tag.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;

/// The tag 55799 of RFC 8949.
const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// A value as CBOR behind the tag.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = SELF_DESCRIBED.to_vec();
    // Memory does not fail to be written, and what is encoded here has a form in CBOR.
    let encoded = serde_cbor_2::to_writer(&mut bytes, value);
    debug_assert!(encoded.is_ok(), "{encoded:?}");
    bytes
}

/// The value that a request's body is.
///
/// # Errors
///
/// Where it is not one such value, or something follows it.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    if !body.starts_with(&SELF_DESCRIBED) {
        return Err(Refusal::bad_request(
            "The body is not CBOR behind the self-describing tag 55799.",
        ));
    }
    serde_cbor_2::from_slice(body)
        .map_err(|error| Refusal::bad_request(format!("Cannot read the CBOR body: {error}.")))
}
