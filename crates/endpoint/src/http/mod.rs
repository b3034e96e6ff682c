//! The addresses of the HTTP interface.
//!
//! ```text
//!   GET  /api/v2/status
//!   POST /api/{v2,v3,v4}/canister/ID/call        v2 answers at once, the others wait
//!   POST /api/{v2,v3}/canister/ID/query
//!   POST /api/{v2,v3}/canister/ID/read_state
//!   POST /api/{v4}/subnet/ID/call                canisters are made, no canister is named
//!   POST /api/{v2,v3}/subnet/ID/read_state
//! ```

mod call;
mod query;
mod read_state;
mod status;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::error_handling::HandleErrorLayer;
use axum::extract::DefaultBodyLimit;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use candid::Principal;
use serde::Serialize;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::cors::CorsLayer;

use crate::cbor;
use crate::refusal::Refusal;
use crate::subnet::Subnet;

/// The largest body, and the largest call.
const MOST_BODY: usize = 5 << 20;
const MOST_INGRESS: usize = 2 << 20;
/// Requests that may be under way.
const MOST_REQUESTS: usize = 2_000;

const CBOR: &str = "application/cbor";

/// What answers requests to that subnet.
pub fn router(subnet: Arc<Subnet>) -> Router {
    let limits = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(overloaded))
        .layer(LoadShedLayer::new())
        .layer(GlobalConcurrencyLimitLayer::new(MOST_REQUESTS));
    let mut router = Router::new()
        .route("/api/v2/canister/{id}/call", post(call::asynchronous))
        .route("/api/v4/subnet/{id}/call", post(call::on_subnet));
    for version in ["v3", "v4"] {
        router =
            router.route(&format!("/api/{version}/canister/{{id}}/call"), post(call::synchronous));
    }
    for version in ["v2", "v3"] {
        router = router
            .route(&format!("/api/{version}/canister/{{id}}/query"), post(query::query))
            .route(
                &format!("/api/{version}/canister/{{id}}/read_state"),
                post(read_state::of_canister),
            )
            .route(
                &format!("/api/{version}/subnet/{{id}}/read_state"),
                post(read_state::of_subnet),
            );
    }
    router
        .layer(limits)
        // Whether the endpoint is there can always be asked.
        .route("/api/v2/status", get(status::status))
        .fallback(|| async {
            Refusal::new(StatusCode::NOT_FOUND, "There is no such address here.")
        })
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .layer(CorsLayer::permissive())
        .with_state(subnet)
}

async fn overloaded(_: BoxError) -> Refusal {
    Refusal::new(
        StatusCode::TOO_MANY_REQUESTS,
        format!("{MOST_REQUESTS} requests are under way; try again later."),
    )
}

/// A value in CBOR as the answer.
fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = HeaderValue::from_static(CBOR);
    (status, [(header::CONTENT_TYPE, kind)], cbor::encode(value)).into_response()
}

/// The body of a request.
fn body(headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<Bytes, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if kind != Some(CBOR.as_bytes()) {
        return Err(Refusal::bad_request(format!("The content-type is not {CBOR}.")));
    }
    body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The body has more than {MOST_BODY} bytes."),
        ),
        status => Refusal::new(status, rejection.body_text()),
    })
}

/// The principal in an address.
fn principal(text: &str) -> Result<Principal, Refusal> {
    Principal::from_text(text).map_err(|error| {
        Refusal::bad_request(format!("{text} in the address is no principal: {error}."))
    })
}

/// Refuses addresses of canisters that are none of this subnet.
fn check_range(subnet: &Subnet, id: &Principal) -> Result<(), Refusal> {
    if *id == Principal::management_canister() || subnet.hosts(id) {
        return Ok(());
    }
    let (first, last) = subnet.range();
    Err(Refusal::bad_request(format!(
        "canister_not_found: {id} is not on this subnet, whose canisters are {first} to {last}."
    )))
}
