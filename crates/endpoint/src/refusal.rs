//! Requests that are answered with an HTTP error.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use stablebench_replica::text;

/// Why a request is not looked at any further: a status code of the interface specification,
/// and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status code.
    pub status: StatusCode,
    /// For people.
    pub text: String,
}

impl Refusal {
    /// A refusal with any code.
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// The request is malformed, or not for here.
    pub fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// The sender may not do this.
    pub fn forbidden(text: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, text)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        // Parts of it come from the request.
        (self.status, text::safe_line(&self.text).into_owned() + "\n").into_response()
    }
}
