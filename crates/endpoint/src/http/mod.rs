//! The addresses of the HTTP interface.
//!
//! ```text
//!   GET  /                                       what is here, for people
//!   GET  /api/v2/status
//!   POST /api/{v2,v3,v4}/canister/ID/call        v2 answers at once, the others wait
//!   POST /api/{v2,v3}/canister/ID/query
//!   POST /api/{v2,v3}/canister/ID/read_state
//!   POST /api/{v4}/subnet/ID/call                canisters are made, no canister is named
//!   POST /api/{v2,v3}/subnet/ID/read_state
//! ```

mod body;
mod call;
mod page;
mod query;
mod read_state;
mod status;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use candid::Principal;
use serde::Serialize;
use tokio::sync::Semaphore;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::cors::{AllowOrigin, Any, CorsLayer};

use crate::access::Access;
use crate::cbor;
use crate::refusal::Refusal;
use crate::subnet::Subnet;

/// The largest call.
const MOST_INGRESS: usize = 2 << 20;
/// Requests that may be under way.
const MOST_REQUESTS: usize = 2_000;

/// Requests that are checked and certificates that are made at a time.
const MOST_WORK: usize = 4;

const CBOR: &str = "application/cbor";

/// What answers requests to that subnet, which come to `address`.
pub fn router(subnet: Arc<Subnet>, access: Access, address: IpAddr) -> Router {
    let access = Arc::new(access);
    let allowed = Arc::clone(&access);
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| allowed.allows(origin)))
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(Any)
        .expose_headers(Any);
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
        .route("/", get(page::page))
        .fallback(|| async {
            Refusal::new(StatusCode::NOT_FOUND, "There is no such address here.")
        })
        .layer(cors)
        .layer(middleware::from_fn_with_state((access, address), guard))
        .with_state(subnet)
}

async fn guard(
    State((access, address)): State<(Arc<Access>, IpAddr)>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    access.check(address, request.uri(), request.headers())?;
    Ok(next.run(request).await)
}

/// Does work that may take a while where it holds up no other request.
async fn work<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    static WORK: Semaphore = Semaphore::const_new(MOST_WORK);
    let failed = |what: &dyn std::fmt::Display| {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("The server failed: {what}."))
    };
    let turn = WORK.acquire().await.map_err(|closed| failed(&closed))?;
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    done.await.unwrap_or_else(|error| Err(failed(&error)))
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
