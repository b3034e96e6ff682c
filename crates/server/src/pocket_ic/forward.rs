//! Requests that go on to the Internet Computer's HTTP interface of an instance.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use candid::Principal;
use tower::ServiceExt;

use super::bodies::read;
use super::failure::Failed;
use super::instance::Instance;
use crate::limits::MAX_FORWARDED;

/// Passes a request on to the Internet Computer's HTTP interface of an instance.
pub async fn forward(instance: &Instance, path: &str, request: Request) -> Response {
    if let Some(refused) = unknown(instance, path) {
        return (StatusCode::BAD_REQUEST, refused).into_response();
    }
    let (parts, body) = request.into_parts();
    let body = match read(body, MAX_FORWARDED).await {
        Ok(body) => body,
        Err(Failed::TooLarge(_)) => {
            let text = format!(
                "error: payload_too_large\ndetails: Payload is too large: maximum body size is \
                 {MAX_FORWARDED} bytes."
            );
            return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
        }
        Err(failed) => return failed.into_response(),
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(uri) = format!("{path}{query}").parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    instance.interface.clone().oneshot(request).await.into_response()
}

/// Returns the refusal of an address that names no canister or subnet of the instance, in the words of
/// the network's boundary.
fn unknown(instance: &Instance, path: &str) -> Option<&'static str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let ["api", _, kind, id, _] = parts.as_slice() else { return None };
    let id = Principal::from_text(id).ok()?;
    let directory = instance.host.directory();
    let known = match *kind {
        "canister" => id == Principal::management_canister() || directory.hosts(&id),
        "subnet" => directory.contains(&id),
        _ => true,
    };
    match *kind {
        _ if known => None,
        "canister" => {
            Some("error: canister_not_found\ndetails: The specified canister does not exist.")
        }
        _ => Some("error: subnet_not_found\ndetails: The specified subnet cannot be found."),
    }
}
