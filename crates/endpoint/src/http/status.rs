//! `/api/v2/status`: what answers here.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::answer;
use crate::subnet::Subnet;

#[derive(Serialize)]
struct Status<'a> {
    ic_api_version: &'static str,
    impl_version: &'static str,
    replica_health_status: &'static str,
    #[serde(with = "serde_bytes")]
    root_key: &'a [u8],
}

pub async fn status(State(subnet): State<Arc<Subnet>>) -> Response {
    answer(
        StatusCode::OK,
        &Status {
            ic_api_version: "0.18.0",
            impl_version: concat!("stablebench ", env!("CARGO_PKG_VERSION")),
            replica_health_status: "healthy",
            root_key: subnet.keys.root(),
        },
    )
}
