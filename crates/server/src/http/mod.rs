//! The HTTP interface of the Internet Computer.
//!
//! ```text
//!   GET  /                                       a description for people
//!   GET  /api/v2/status
//!   POST /api/{v2,v3,v4}/canister/ID/call        as below
//!   POST /api/{v2,v3}/canister/ID/query
//!   POST /api/{v2,v3}/canister/ID/read_state
//!   POST /api/v4/subnet/ID/call                  creates canisters
//!   POST /api/{v2,v3}/subnet/ID/read_state
//! ```
//!
//! Calls are answered by their version:
//!
//! ```text
//!   call v2        202; the status is read later
//!   call v3, v4    200 with the certificate of the status, if the call ends within ten seconds;
//!                  else 202
//!   all calls      200 non_replicated_rejection, if the call is not admitted
//! ```
//!
//! Other requests that name a canister are answered by it, through the gateway.
//!
//! Bodies are read within a time limit and a common memory limit:
//!
//! ```text
//!   ≤ 64 KiB    read at once; the limit of concurrent requests bounds their memory
//!   larger      waits for a permit for the largest body; the permit is released when the message
//!               has run
//! ```

pub mod gateway;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::error_handling::HandleErrorLayer;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use candid::Principal;
use ic_transport_types::{
    EnvelopeContent, QueryResponse, ReadStateResponse, ReplyResponse, RequestId,
    TransportCallResponse,
};
use serde::Serialize;
use stablebench_replica::{ErrorCode, Reject};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{BoxError, ServiceBuilder};
use tower_http::cors::{AllowMethods, AllowOrigin, Any, CorsLayer};

use crate::certificates;
use crate::driver::{self, Sent};
use crate::host::{Host, MemoryPermit};
use crate::limits::{MAX_BODY, MAX_CALL, MAX_REQUESTS};
use crate::message::{Finished, Message, Rejected, creates, effective_canister};
use crate::state_tree::{self, Effective, MAX_LABELS, MAX_PATHS};
use crate::wire::{self, Kind, Refusal, Request as SignedRequest};

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
        .route("/api/v2/canister/{id}/call", post(call_asynchronously))
        .route("/api/v4/subnet/{id}/call", post(call_on_subnet));
    for version in ["v3", "v4"] {
        router =
            router.route(&format!("/api/{version}/canister/{{id}}/call"), post(call_synchronously));
    }
    for version in ["v2", "v3"] {
        router = router
            .route(&format!("/api/{version}/canister/{{id}}/query"), post(query))
            .route(&format!("/api/{version}/canister/{{id}}/read_state"), post(read_canister_state))
            .route(&format!("/api/{version}/subnet/{{id}}/read_state"), post(read_subnet_state));
    }
    router
        .layer(limits)
        // The status is not subject to the limits.
        .route("/api/v2/status", get(status))
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

/// The most requests that are checked, and certificates that are created, at a time.
const MAX_WORK: usize = 4;
/// The time for which a synchronous call waits.
const WAIT: Duration = Duration::from_secs(10);

/// `POST /api/v2/canister/ID/call`.
async fn call_asynchronously(
    State(host): State<Arc<Host>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    let called = send(&host, effective, received).await?;
    match called.sent {
        Sent::Rejected(reject) => Ok(not_admitted(&reject)),
        Sent::Full(full) => Err(Refusal::too_many(full)),
        Sent::Waiting(Some(waiting)) if called.inspected => match timeout(WAIT, waiting).await {
            Ok(Ok(Finished::NotAdmitted(reject))) => Ok(not_admitted(&reject)),
            _ => Ok(StatusCode::ACCEPTED.into_response()),
        },
        Sent::Waiting(_) => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

/// `POST /api/{v3,v4}/canister/ID/call`.
async fn call_synchronously(
    State(host): State<Arc<Host>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    send_and_wait(host, effective, received).await
}

/// `POST /api/v4/subnet/ID/call`.
async fn call_on_subnet(
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
        Some(waiting) => match timeout(WAIT, waiting).await {
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
    let request = SignedRequest::check(body, Kind::Call, host.now(), host.verifies)?;
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
async fn query(
    State(host): State<Arc<Host>>,
    Path(effective): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = principal(&effective)?;
    check_range(&host, &effective)?;
    let queried = Arc::clone(&host);
    let (id, canister, outcome) = work(move || {
        let Received { bytes, memory } = received;
        let request = SignedRequest::check(&bytes, Kind::Query, queried.now(), queried.verifies)?;
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
async fn read_canister_state(
    State(host): State<Arc<Host>>,
    Path(id): Path<String>,
    received: Received,
) -> Result<Response, Refusal> {
    let effective = Effective::Canister(principal(&id)?);
    work(move || read_state(&host, effective, received)).await
}

/// `POST /api/{v2,v3}/subnet/ID/read_state`.
async fn read_subnet_state(
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
    let request = SignedRequest::check(&received.bytes, Kind::ReadState, now, host.verifies)?;
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
async fn status(State(host): State<Arc<Host>>) -> Response {
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
fn principal(text: &str) -> Result<Principal, Refusal> {
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

/// The content type of requests and answers.
const CBOR: &str = "application/cbor";

/// The size of the largest body that needs no permit, in bytes.
const SMALL: usize = 64 << 10;
/// The time limit for the next part of a body.
const PAUSE: Duration = Duration::from_secs(10);
/// The time limit for a whole body, including the wait for a permit.
const WHOLE: Duration = Duration::from_secs(30);

/// A CBOR body and its memory permit.
struct Received {
    /// The body.
    bytes: Vec<u8>,
    /// The permit, if the body is large.
    memory: MemoryPermit,
}

impl FromRequest<Arc<Host>> for Received {
    type Rejection = Refusal;

    async fn from_request(request: Request, host: &Arc<Host>) -> Result<Self, Refusal> {
        let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind != Some(CBOR.as_bytes()) {
            return Err(Refusal::bad_request(format!("The content-type is not {CBOR}.")));
        }
        let read = read(request.into_body(), &host.memory, PAUSE);
        timeout(WHOLE, read).await.unwrap_or_else(|_| Err(slow(WHOLE)))
    }
}

/// Reads a body whose memory is limited by the caller.
async fn read_at_most(mut body: Body, most: usize, time: Duration) -> Result<Vec<u8>, Refusal> {
    let read = async {
        let mut bytes = Vec::new();
        while let Some(data) = next_part(&mut body).await? {
            if bytes.len() + data.len() > most {
                return Err(too_large(most));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    };
    timeout(time, read).await.unwrap_or_else(|_| Err(slow(time)))
}

/// Returns the next part of a body, or `None` at its end.
async fn next_part(body: &mut Body) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        let Some(frame) = frame else { return Ok(None) };
        let frame = frame
            .map_err(|error| Refusal::bad_request(format!("Cannot read the body: {error}.")))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

async fn read(
    mut body: Body,
    available: &Arc<Semaphore>,
    pause: Duration,
) -> Result<Received, Refusal> {
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large(MAX_BODY));
    }
    let (mut bytes, mut memory) = (Vec::new(), MemoryPermit::None);
    loop {
        let Some(data) = timeout(pause, next_part(&mut body)).await.map_err(|_| slow(pause))??
        else {
            if let Some(permit) = &mut memory {
                // Release the memory that the largest body would have needed.
                drop(permit.split(MAX_BODY - bytes.len()));
            }
            return Ok(Received { bytes, memory });
        };
        if bytes.len() + data.len() > MAX_BODY {
            return Err(too_large(MAX_BODY));
        }
        if memory.is_none() && bytes.len() + data.len() > SMALL {
            memory = Some(acquire(available).await?);
        }
        bytes.extend_from_slice(&data);
    }
}

/// Acquires a permit for the largest body.
async fn acquire(available: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(available)
        .acquire_many_owned(MAX_BODY as u32)
        .await
        .map_err(|error| Refusal::too_many(format!("No room for the body: {error}.")))
}

fn too_large(most: usize) -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The body has more than {most} bytes."))
}

fn slow(time: Duration) -> Refusal {
    Refusal::new(
        StatusCode::REQUEST_TIMEOUT,
        format!("The body did not arrive within {} seconds; send it again.", time.as_secs()),
    )
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use http_body::Frame;

    use super::*;

    /// A body that stalls after some bytes, without an end.
    struct Stalled(usize);

    impl HttpBody for Stalled {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match std::mem::take(&mut self.0) {
                0 => Poll::Pending,
                bytes => Poll::Ready(Some(Ok(Frame::data(vec![0; bytes].into())))),
            }
        }
    }

    const SHORT: Duration = Duration::from_millis(50);

    fn memory(bodies: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(bodies * MAX_BODY))
    }

    async fn status(body: Body, available: &Arc<Semaphore>) -> u16 {
        match read(body, available, SHORT).await {
            Ok(_) => 200,
            Err(refusal) => refusal.status.as_u16(),
        }
    }

    #[tokio::test]
    async fn a_stalled_body_is_refused() {
        let available = memory(2);
        for bytes in [0, 1, SMALL + 1] {
            assert_eq!(status(Body::new(Stalled(bytes)), &available).await, 408, "{bytes}");
            assert_eq!(available.available_permits(), 2 * MAX_BODY);
        }
        assert_eq!(status(Body::new(Stalled(MAX_BODY + 1)), &available).await, 413);
        assert_eq!(status(Body::from(vec![0; MAX_BODY + 1]), &available).await, 413);
        assert_eq!(status(Body::from(vec![0; MAX_BODY]), &available).await, 200);
    }

    #[tokio::test]
    async fn a_stalled_body_of_a_gateway_is_refused() {
        let status = async |body: Body| match read_at_most(body, MAX_BODY, SHORT).await {
            Ok(_) => 200,
            Err(refusal) => refusal.status.as_u16(),
        };
        for bytes in [0, 1] {
            assert_eq!(status(Body::new(Stalled(bytes))).await, 408, "{bytes}");
        }
        assert_eq!(status(Body::from(vec![0; MAX_BODY + 1])).await, 413);
        assert_eq!(status(Body::from(vec![0; MAX_BODY])).await, 200);
    }

    #[tokio::test]
    async fn only_large_bodies_wait_for_memory() {
        let available = memory(1);
        let large = || Body::from(vec![0; SMALL + 1]);
        let stalled = Body::new(Stalled(SMALL + 1));
        let reading = read(stalled, &available, Duration::from_secs(60));
        tokio::pin!(reading);
        assert!(timeout(SHORT, reading.as_mut()).await.is_err());
        assert!(timeout(SHORT, read(large(), &available, SHORT)).await.is_err());
        assert_eq!(status(Body::from(vec![0; SMALL]), &available).await, 200);
        drop(timeout(SHORT, reading).await);
        assert_eq!(available.available_permits(), 0);
    }

    #[tokio::test]
    async fn a_message_keeps_a_permit_of_its_size() {
        let available = memory(1);
        let received = read(Body::from(vec![0; SMALL + 1]), &available, SHORT).await.ok().unwrap();
        assert_eq!(available.available_permits(), MAX_BODY - SMALL - 1);
        drop(received);
        assert_eq!(available.available_permits(), MAX_BODY);
        let received = read(Body::from(vec![0; SMALL]), &available, SHORT).await.ok().unwrap();
        assert!(received.memory.is_none());
    }
}
