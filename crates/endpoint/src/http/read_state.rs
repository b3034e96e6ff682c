//! `/api/…/read_state`: parts of the state tree, certified.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use ic_transport_types::{EnvelopeContent, ReadStateResponse};

use super::{answer, body, check_range, principal};
use crate::clock;
use crate::envelope::{Kind, Request};
use crate::refusal::Refusal;
use crate::state_tree::{self, Effective};
use crate::subnet::Subnet;
use crate::tree;

pub async fn of_canister(
    State(subnet): State<Arc<Subnet>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let id = principal(&id)?;
    check_range(&subnet, &id)?;
    read(&subnet, Effective::Canister(id), &body(&headers, bytes)?)
}

pub async fn of_subnet(
    State(subnet): State<Arc<Subnet>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let id = principal(&id)?;
    check_subnet(&subnet, &id)?;
    read(&subnet, Effective::Subnet, &body(&headers, bytes)?)
}

/// Refuses addresses of other subnets.
pub fn check_subnet(subnet: &Subnet, id: &candid::Principal) -> Result<(), Refusal> {
    let here = subnet.keys.subnet();
    if *id == here {
        return Ok(());
    }
    Err(Refusal::bad_request(format!("subnet_not_found: {id}; the subnet here is {here}.")))
}

fn read(subnet: &Subnet, effective: Effective, body: &[u8]) -> Result<Response, Refusal> {
    let now = clock::now();
    let request = Request::check(body, Kind::ReadState, now)?;
    let EnvelopeContent::ReadState { paths, .. } = &request.content else {
        return Err(Refusal::bad_request("The request is no read_state."));
    };
    let paths: Vec<tree::Path> = paths
        .iter()
        .map(|path| path.iter().map(|label| label.as_bytes().to_vec()).collect())
        .collect();
    state_tree::check(subnet, &request, &paths, effective)?;
    let certificate = state_tree::certificate(subnet, &paths, now);
    Ok(answer(StatusCode::OK, &ReadStateResponse { certificate }))
}
