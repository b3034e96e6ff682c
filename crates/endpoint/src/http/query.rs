//! `/api/…/canister/ID/query`: a query, answered and signed by the one node.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use ic_transport_types::{EnvelopeContent, QueryResponse, ReplyResponse};

use super::body::Received;
use super::call::check_effective;
use super::{answer, check_range, principal, work};
use crate::clock;
use crate::envelope::{Kind, Request};
use crate::refusal::Refusal;
use crate::state_tree::Effective;
use crate::subnet::{Message, Subnet, not_found};

pub async fn query(
    State(subnet): State<Arc<Subnet>>,
    Path(effective): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = principal(&effective)?;
    check_range(&subnet, &effective)?;
    let asked = Arc::clone(&subnet);
    let (id, canister, answered) = work(move || {
        let Received { bytes, held } = received;
        let request = Request::check(&bytes, Kind::Query, clock::now())?;
        drop(bytes);
        let id = request.id;
        let EnvelopeContent::Query { sender, canister_id, method_name, arg, .. } = request.content
        else {
            return Err(Refusal::bad_request("The request is no query."));
        };
        let effective = Effective::Canister(effective);
        check_effective(&asked, effective, &canister_id, &method_name, &arg)?;
        let message = Message { sender, canister: canister_id, method: method_name, argument: arg };
        let answered = asked
            .query(message, held)
            .map_err(|full| Refusal::new(StatusCode::TOO_MANY_REQUESTS, full.to_string()))?;
        Ok((id, canister_id, answered))
    })
    .await?;
    let outcome = answered.await.unwrap_or_else(|_| Err(not_found(&canister)));
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
