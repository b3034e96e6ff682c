//! CBOR as the HTTP interface wants it: one value behind the self-describing tag.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;

/// The tag 55799 of RFC 8949.
const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];
/// How deep a value may nest: envelopes need six levels.
const DEPTH: usize = 32;

/// A value as CBOR behind the tag.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = SELF_DESCRIBED.to_vec();
    bytes.extend(plain(value));
    bytes
}

/// A value as CBOR.
pub fn plain(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What is encoded here has string keys alone, and memory does not fail to be written.
    let encoded = ciborium::into_writer(value, &mut bytes);
    debug_assert!(encoded.is_ok(), "{encoded:?}");
    bytes
}

/// The value that a request's body is.
///
/// # Errors
///
/// Where it is not one such value, or something follows it.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let mut rest = body.strip_prefix(&SELF_DESCRIBED).ok_or_else(|| {
        Refusal::bad_request("The body is not CBOR behind the self-describing tag 55799.")
    })?;
    let value = ciborium::de::from_reader_with_recursion_limit(&mut rest, DEPTH)
        .map_err(|error| Refusal::bad_request(format!("Cannot read the CBOR body: {error}")))?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(Refusal::bad_request(format!("{} bytes follow the CBOR value.", rest.len())))
    }
}
