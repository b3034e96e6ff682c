//! The format of requests and answers: CBOR, and refusals as HTTP errors.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
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
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
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
