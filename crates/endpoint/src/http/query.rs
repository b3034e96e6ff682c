//! `/api/…/canister/ID/query`: a query, answered and signed by the one node.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use ic_transport_types::{EnvelopeContent, QueryResponse, ReplyResponse};

use super::call::check_effective;
use super::{answer, body, check_range, principal};
use crate::clock;
use crate::envelope::{Kind, Request};
use crate::refusal::Refusal;
use crate::state_tree::Effective;
use crate::subnet::{Message, Subnet};

pub async fn query(
    State(subnet): State<Arc<Subnet>>,
    Path(effective): Path<String>,
    headers: HeaderMap,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let effective = principal(&effective)?;
    check_range(&subnet, &effective)?;
    let request = Request::check(&body(&headers, bytes)?, Kind::Query, clock::now())?;
    let id = request.id;
    let EnvelopeContent::Query { sender, canister_id, method_name, arg, .. } = request.content
    else {
        return Err(Refusal::bad_request("The request is no query."));
    };
    let effective = Effective::Canister(effective);
    check_effective(effective, &canister_id, &method_name, &arg)?;
    let message = Message { sender, canister: canister_id, method: method_name, argument: arg };
    let outcome = subnet
        .query(message)
        .await
        .map_err(|full| Refusal::new(StatusCode::TOO_MANY_REQUESTS, full.to_string()))?;
    let signatures = Vec::new();
    let mut response = match outcome {
        Ok(arg) => QueryResponse::Replied { reply: ReplyResponse { arg }, signatures },
        Err(reject) => QueryResponse::Rejected { reject: reject.response(), signatures },
    };
    let signature = subnet.keys.sign_query(&response, id, clock::now());
    let (QueryResponse::Replied { signatures, .. } | QueryResponse::Rejected { signatures, .. }) =
        &mut response;
    signatures.push(signature);
    Ok(answer(StatusCode::OK, &response))
}
