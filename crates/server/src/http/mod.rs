//! The addresses of the HTTP interface.
//!
//! ```text
//!   GET  /                                       a description for people
//!   GET  /api/v2/status
//!   POST /api/{v2,v3,v4}/canister/ID/call        v2 answers at once, the others wait
//!   POST /api/{v2,v3}/canister/ID/query
//!   POST /api/{v2,v3}/canister/ID/read_state
//!   POST /api/v4/subnet/ID/call                  creates canisters
//!   POST /api/{v2,v3}/subnet/ID/read_state
//! ```
//!
//! Other requests that name a canister are answered by it, through the gateway.

mod api;
mod body;
pub mod gateway;

use std::sync::Arc;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::cors::{AllowMethods, AllowOrigin, Any, CorsLayer};

use crate::host::Host;
use crate::limits::MAX_REQUESTS;
use crate::wire::Refusal;

/// Returns the router of a server: the Internet Computer's interface and the gateway of a subnet.
pub fn with_gateway(host: Arc<Host>) -> Router {
    router(Arc::clone(&host)).layer(middleware::from_fn_with_state(host, gateway_or_interface))
}

/// Lets canisters answer the requests that name one and are not for the Internet Computer's interface.
async fn gateway_or_interface(
    State(host): State<Arc<Host>>,
    request: Request,
    next: Next,
) -> Response {
    let uri = request.uri();
    match gateway::canister(uri, request.headers()) {
        Some(id) if !uri.path().starts_with("/api/") && !gateway::describes(&host, &id, uri) => {
            gateway::answer(host, request).await
        }
        _ => next.run(request).await,
    }
}

/// Returns the router of the Internet Computer's interface of a subnet.
pub fn router(host: Arc<Host>) -> Router {
    let limits = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(overloaded))
        .layer(LoadShedLayer::new())
        .layer(GlobalConcurrencyLimitLayer::new(MAX_REQUESTS));
    let mut router = Router::new()
        .route("/api/v2/canister/{id}/call", post(api::call_asynchronously))
        .route("/api/v4/subnet/{id}/call", post(api::call_on_subnet));
    for version in ["v3", "v4"] {
        router = router
            .route(&format!("/api/{version}/canister/{{id}}/call"), post(api::call_synchronously));
    }
    for version in ["v2", "v3"] {
        router = router
            .route(&format!("/api/{version}/canister/{{id}}/query"), post(api::query))
            .route(
                &format!("/api/{version}/canister/{{id}}/read_state"),
                post(api::read_canister_state),
            )
            .route(
                &format!("/api/{version}/subnet/{{id}}/read_state"),
                post(api::read_subnet_state),
            );
    }
    router
        .layer(limits)
        // The status is not subject to the limits.
        .route("/api/v2/status", get(api::status))
        .route("/", get(gateway::page))
        .fallback(|| async {
            Refusal::new(StatusCode::NOT_FOUND, "There is no such address here.")
        })
        .with_state(host)
        .layer(readable([Method::GET, Method::POST]))
}

/// Lets pages read the answers. The listener has refused the requests of foreign ones.
pub fn readable(methods: impl Into<AllowMethods>) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .allow_methods(methods)
        .allow_headers(Any)
        .expose_headers(Any)
}

async fn overloaded(_: BoxError) -> Refusal {
    Refusal::too_many(format!("{MAX_REQUESTS} requests are under way; try again later."))
}
