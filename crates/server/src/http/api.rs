//! Calls, queries, reads of the state tree, and the status.
//!
//! ```text
//!   call v2        202; the status is read later
//!   call v3, v4    200 with the certificate of the status, if the call ends within ten seconds;
//!                  else 202
//!   all calls      200 non_replicated_rejection, if the call is not admitted
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use candid::Principal;
use ic_transport_types::{
    EnvelopeContent, QueryResponse, ReadStateResponse, ReplyResponse, RequestId,
    TransportCallResponse,
};
use serde::Serialize;
use stablebench_replica::{ErrorCode, Reject};
use tokio::sync::Semaphore;

use super::body::{CBOR, Received};
use crate::certificates;
use crate::driver::{self, Sent};
use crate::host::Host;
use crate::limits::MAX_CALL;
use crate::message::{Finished, Message, Rejected, creates, effective_canister};
use crate::state_tree::{self, Effective, MAX_LABELS, MAX_PATHS};
use crate::wire::{self, Kind, Refusal, Request};

/// The most requests that are checked, and certificates that are created, at a time.
const MAX_WORK: usize = 4;
/// The time for which a synchronous call waits.
const WAIT: Duration = Duration::from_secs(10);

/// `POST /api/v2/canister/ID/call`.
pub async fn call_asynchronously(
    State(host): State<Arc<Host>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    let called = send(&host, effective, received).await?;
    match called.sent {
        Sent::Rejected(reject) => Ok(not_admitted(&reject)),
        Sent::Full(full) => Err(Refusal::too_many(full)),
        Sent::Waiting(Some(waiting)) if called.inspected => {
            match tokio::time::timeout(WAIT, waiting).await {
                Ok(Ok(Finished::NotAdmitted(reject))) => Ok(not_admitted(&reject)),
                _ => Ok(StatusCode::ACCEPTED.into_response()),
            }
        }
        Sent::Waiting(_) => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

/// `POST /api/{v3,v4}/canister/ID/call`.
pub async fn call_synchronously(
    State(host): State<Arc<Host>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    send_and_wait(host, effective, received).await
}

/// `POST /api/v4/subnet/ID/call`.
pub async fn call_on_subnet(
    State(host): State<Arc<Host>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let id = principal(&id)?;
    check_subnet(&host, &id)?;
    send_and_wait(host, Effective::Subnet, received).await
}

async fn send_and_wait(
    host: Arc<Host>,
    effective: Effective,
    received: Received,
) -> Result<Response, Refusal> {
    let Called { id, sent, .. } = send(&host, effective, received).await?;
    let waiting = match sent {
        Sent::Rejected(reject) => return Ok(not_admitted(&reject)),
        Sent::Full(full) => return Err(Refusal::too_many(full)),
        Sent::Waiting(waiting) => waiting,
    };
    let finished = match waiting {
        None => Some(Finished::Certified),
        Some(waiting) => match tokio::time::timeout(WAIT, waiting).await {
            Ok(Ok(finished)) => Some(finished),
            _ => None,
        },
    };
    match finished {
        Some(Finished::Certified) => {
            work(move || {
                let paths = [state_tree::status_path(&id)];
                let certificate = state_tree::certificate(&host, &paths, host.now());
                Ok(answer(StatusCode::OK, &TransportCallResponse::Replied { certificate }))
            })
            .await
        }
        Some(Finished::NotAdmitted(reject)) => Ok(not_admitted(&reject)),
        None => {
            let accepted = TransportCallResponse::Accepted;
            Ok(answer(StatusCode::ACCEPTED, &accepted))
        }
    }
}

fn not_admitted(reject: &Rejected) -> Response {
    answer(StatusCode::OK, &TransportCallResponse::NonReplicatedRejection(reject.response()))
}

/// A call that was sent to its canister.
struct Called {
    id: RequestId,
    sent: Sent,
    /// `true` if the canister inspects the call before it is admitted.
    inspected: bool,
}

async fn send(
    host: &Arc<Host>,
    effective: Effective,
    received: Received,
) -> Result<Called, Refusal> {
    let host = Arc::clone(host);
    work(move || {
        let Received { bytes, memory } = received;
        let (id, message, expiry) = decode_call(&host, &bytes, effective)?;
        drop(bytes);
        let info = host.info(&message.canister);
        let inspected = info.is_some_and(|info| info.module.as_ref().is_some_and(|it| it.inspects));
        let sent = driver::call(&host, id, expiry, message, memory);
        Ok(Called { id, sent, inspected })
    })
    .await
}

/// Decodes the call in a body, and its expiry.
fn decode_call(
    host: &Host,
    body: &[u8],
    effective: Effective,
) -> Result<(RequestId, Message, u64), Refusal> {
    let request = Request::check(body, Kind::Call, host.now(), host.verifies)?;
    let id = request.id;
    if body.len() > MAX_CALL {
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The call has {} bytes, at most {MAX_CALL} are accepted.", body.len()),
        ));
    }
    let EnvelopeContent::Call { sender, canister_id, method_name, arg, ingress_expiry, .. } =
        request.content
    else {
        return Err(Refusal::bad_request("The request is not a call."));
    };
    check_effective(host, effective, &canister_id, &method_name, &arg)?;
    let message = Message { sender, canister: canister_id, method: method_name, argument: arg };
    Ok((id, message, ingress_expiry))
}

/// Refuses messages that are sent to the address of another canister.
fn check_effective(
    host: &Host,
    effective: Effective,
    canister: &Principal,
    method: &str,
    argument: &[u8],
) -> Result<(), Refusal> {
    let management = *canister == Principal::management_canister();
    // The canister does not exist yet, so any canister in the address is accepted.
    if management && creates(method) {
        return Ok(());
    }
    let Effective::Canister(effective) = effective else {
        return Err(Refusal::bad_request(
            "Calls to a subnet create canisters; send all others to a canister's address.",
        ));
    };
    check_range(host, &effective)?;
    // A message that cannot be decoded is rejected later.
    let canister = if management {
        effective_canister(method, argument).ok().flatten()
    } else {
        Some(*canister)
    };
    match canister {
        Some(canister) if canister != effective => Err(Refusal::bad_request(format!(
            "The effective canister id is {effective}, the message is for {canister}."
        ))),
        _ => Ok(()),
    }
}

/// `POST /api/{v2,v3}/canister/ID/query`: the query is answered and signed by the only node.
pub async fn query(
    State(host): State<Arc<Host>>,
    Path(effective): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = principal(&effective)?;
    check_range(&host, &effective)?;
    let queried = Arc::clone(&host);
    let (id, canister, outcome) = work(move || {
        let Received { bytes, memory } = received;
        let request = Request::check(&bytes, Kind::Query, queried.now(), queried.verifies)?;
        drop(bytes);
        let id = request.id;
        let EnvelopeContent::Query { sender, canister_id, method_name, arg, .. } = request.content
        else {
            return Err(Refusal::bad_request("The request is not a query."));
        };
        let effective = Effective::Canister(effective);
        check_effective(&queried, effective, &canister_id, &method_name, &arg)?;
        let message = Message { sender, canister: canister_id, method: method_name, argument: arg };
        let outcome = driver::query(&queried, message, memory).map_err(Refusal::too_many)?;
        Ok((id, canister_id, outcome))
    })
    .await?;
    let outcome = outcome.await.unwrap_or_else(|_| Err(ended(&canister)));
    let signatures = Vec::new();
    let mut response = match outcome {
        Ok(arg) => QueryResponse::Replied { reply: ReplyResponse { arg }, signatures },
        Err(reject) => QueryResponse::Rejected { reject: reject.response(), signatures },
    };
    let signature = host.keys.sign_query(&response, id, host.now());
    let (QueryResponse::Replied { signatures, .. } | QueryResponse::Rejected { signatures, .. }) =
        &mut response;
    signatures.push(signature);
    Ok(answer(StatusCode::OK, &response))
}

/// The reject of a query that waited when the server ended.
fn ended(canister: &Principal) -> Rejected {
    let message = format!("Canister {canister} not found");
    Rejected::not_admitted(Reject { code: ErrorCode::CanisterNotFound, message })
}

/// `POST /api/{v2,v3}/canister/ID/read_state`.
pub async fn read_canister_state(
    State(host): State<Arc<Host>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    work(move || read_state(&host, effective, received)).await
}

/// `POST /api/{v2,v3}/subnet/ID/read_state`.
pub async fn read_subnet_state(
    State(host): State<Arc<Host>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let id = principal(&id)?;
    check_subnet(&host, &id)?;
    work(move || read_state(&host, Effective::Subnet, received)).await
}

/// Refuses addresses of other subnets.
fn check_subnet(host: &Host, id: &Principal) -> Result<(), Refusal> {
    if host.directory().contains(id) {
        return Ok(());
    }
    let here = host.keys.subnet();
    Err(Refusal::bad_request(format!("subnet_not_found: {id}; the subnet here is {here}.")))
}

fn read_state(host: &Host, effective: Effective, received: Received) -> Result<Response, Refusal> {
    let now = host.now();
    let request = Request::check(&received.bytes, Kind::ReadState, now, host.verifies)?;
    drop(received);
    let EnvelopeContent::ReadState { paths, .. } = &request.content else {
        return Err(Refusal::bad_request("The request is not a read_state."));
    };
    let paths: Vec<certificates::Path> = paths
        .iter()
        // One more than allowed is enough to detect an excess.
        .take(MAX_PATHS + 1)
        .map(|path| {
            path.iter().take(MAX_LABELS + 1).map(|label| label.as_bytes().to_vec()).collect()
        })
        .collect();
    if let Effective::Canister(id) = effective
        && !state_tree::are_about_calls(&paths)
    {
        check_range(host, &id)?;
    }
    state_tree::check(host, &request, &paths, effective)?;
    let certificate = state_tree::certificate(host, &paths, now);
    Ok(answer(StatusCode::OK, &ReadStateResponse { certificate }))
}

#[derive(Serialize)]
struct Status<'a> {
    ic_api_version: &'static str,
    impl_version: &'static str,
    replica_health_status: &'static str,
    #[serde(with = "serde_bytes")]
    root_key: &'a [u8],
}

/// `GET /api/v2/status`.
pub async fn status(State(host): State<Arc<Host>>) -> Response {
    answer(
        StatusCode::OK,
        &Status {
            ic_api_version: "0.18.0",
            impl_version: concat!("stablebench ", env!("CARGO_PKG_VERSION")),
            replica_health_status: "healthy",
            root_key: host.keys.root(),
        },
    )
}

/// Runs blocking work on a thread of its own, so that it does not delay other requests.
async fn work<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    static WORK: Semaphore = Semaphore::const_new(MAX_WORK);
    let failed = |what: &dyn std::fmt::Display| {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("The server failed: {what}."))
    };
    let permit = WORK.acquire().await.map_err(|closed| failed(&closed))?;
    let result = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    result.await.unwrap_or_else(|error| Err(failed(&error)))
}

/// Creates an answer in CBOR.
fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = HeaderValue::from_static(CBOR);
    (status, [(header::CONTENT_TYPE, kind)], wire::encode(value)).into_response()
}

/// Parses the principal in an address.
pub fn principal(text: &str) -> Result<Principal, Refusal> {
    Principal::from_text(text).map_err(|error| {
        Refusal::bad_request(format!("{text} in the address is not a principal: {error}."))
    })
}

/// Refuses addresses of canisters outside of this subnet.
fn check_range(host: &Host, id: &Principal) -> Result<(), Refusal> {
    let directory = host.directory();
    if *id == Principal::management_canister() || directory.hosts(id) {
        return Ok(());
    }
    let ranges = directory.0.iter().flat_map(|subnet| &subnet.ranges);
    let (first, last) = ranges.last().copied().unwrap_or((*id, *id));
    Err(Refusal::bad_request(format!(
        "canister_not_found: {id} is not on this subnet, whose canisters are {first} to {last}."
    )))
}
