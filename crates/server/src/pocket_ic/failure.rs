//! Failures of operations, and the answers to them.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use candid::Principal;

use super::types::ApiError;

/// The failure of an operation.
#[derive(Debug)]
pub enum Failed {
    /// The request cannot be fulfilled.
    Refused(String),
    /// The caller may not do this.
    Forbidden(String),
    /// There is nothing at the address.
    Missing(String),
    /// The body is too large.
    TooLarge(String),
    /// A limit is reached.
    TooMany(String),
    /// This machine failed.
    Machine(String),
}

impl Failed {
    /// A message cannot be sent.
    pub fn ingress(reason: impl AsRef<str>) -> Self {
        Self::Refused(format!("BadIngressMessage({:?})", reason.as_ref()))
    }

    pub fn no_canister(id: &Principal) -> Self {
        Self::Refused(format!("CanisterNotFound(CanisterId({id}))"))
    }

    pub fn empty(id: &Principal) -> Self {
        Self::Refused(format!("CanisterIsEmpty(CanisterId({id}))"))
    }

    pub fn no_subnet(id: &Principal) -> Self {
        Self::Refused(format!("SubnetNotFound({id})"))
    }

    pub fn into_parts(self) -> (StatusCode, String) {
        match self {
            Self::Refused(text) => (StatusCode::BAD_REQUEST, text),
            Self::Forbidden(text) => (StatusCode::FORBIDDEN, text),
            Self::Missing(text) => (StatusCode::NOT_FOUND, text),
            Self::TooLarge(text) => (StatusCode::PAYLOAD_TOO_LARGE, text),
            Self::TooMany(text) => (StatusCode::TOO_MANY_REQUESTS, text),
            Self::Machine(text) => (StatusCode::INTERNAL_SERVER_ERROR, text),
        }
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let (status, message) = self.into_parts();
        (status, Json(ApiError { message })).into_response()
    }
}
