//! Requests that are answered with an HTTP error.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

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
        (self.status, plain(&self.text) + "\n").into_response()
    }
}

/// The text in one line. Parts of it come from requests: what would steer a terminal, or change
/// the order in which text is read, is written as its number.
fn plain(text: &str) -> String {
    let steers = |char: char| {
        char.is_control()
            || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        if steers(char) { plain.extend(char.escape_unicode()) } else { plain.push(char) }
    }
    plain
}
