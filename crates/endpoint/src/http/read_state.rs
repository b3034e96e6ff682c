//! `/api/…/read_state`: parts of the state tree, certified.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use ic_transport_types::{EnvelopeContent, ReadStateResponse};

use super::body::Received;
use super::{answer, check_range, principal, work};
use crate::clock;
use crate::envelope::{Kind, Request};
use crate::refusal::Refusal;
use crate::state_tree::{self, Effective, MOST_LABELS, MOST_PATHS};
use crate::subnet::Subnet;
use crate::tree;

pub async fn of_canister(
    State(subnet): State<Arc<Subnet>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    work(move || read(&subnet, effective, received)).await
}

pub async fn of_subnet(
    State(subnet): State<Arc<Subnet>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let id = principal(&id)?;
    check_subnet(&subnet, &id)?;
    work(move || read(&subnet, Effective::Subnet, received)).await
}

/// Refuses addresses of other subnets.
pub fn check_subnet(subnet: &Subnet, id: &candid::Principal) -> Result<(), Refusal> {
    let here = subnet.keys.subnet();
    if *id == here {
        return Ok(());
    }
    Err(Refusal::bad_request(format!("subnet_not_found: {id}; the subnet here is {here}.")))
}

fn read(subnet: &Subnet, effective: Effective, received: Received) -> Result<Response, Refusal> {
    let now = clock::now();
    let request = Request::check(&received.bytes, Kind::ReadState, now)?;
    drop(received);
    let EnvelopeContent::ReadState { paths, .. } = &request.content else {
        return Err(Refusal::bad_request("The request is no read_state."));
    };
    let paths: Vec<tree::Path> = paths
        .iter()
        // One more than there may be is seen to be too many.
        .take(MOST_PATHS + 1)
        .map(|path| {
            path.iter().take(MOST_LABELS + 1).map(|label| label.as_bytes().to_vec()).collect()
        })
        .collect();
    if let Effective::Canister(id) = effective
        && !state_tree::of_calls(&paths)
    {
        check_range(subnet, &id)?;
    }
    state_tree::check(subnet, &request, &paths, effective)?;
    let certificate = state_tree::certificate(subnet, &paths, now);
    Ok(answer(StatusCode::OK, &ReadStateResponse { certificate }))
}
