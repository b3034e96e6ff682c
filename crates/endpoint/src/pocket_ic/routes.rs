//! The addresses of the server. A `/` at the end makes no difference.
//!
//! ```text
//!   GET    /status                         200
//!   POST   /blobstore                      keeps a blob, returns its hash
//!   GET    /blobstore/HASH
//!   GET    /instances                      the states of all instances
//!   POST   /instances                      creates an instance
//!   DELETE /instances/N
//!          /instances/N/{read,update}/…    operations
//!          /instances/N/api/…              the Internet Computer's HTTP interface
//!          /instances/N/{auto_progress, stop_progress, _/topology, _/dashboard}
//!   GET    /http_gateway                   the gateways
//!   POST   /http_gateway                   starts one
//!   POST   /http_gateway/N/stop
//!          /{read_graph, prune_graph}/…    results of operations that took long
//! ```

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use candid::Principal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tower::ServiceExt;

use super::instance::Instance;
use super::operations::{self, decode};
use super::types::{Creation, GatewayConfig, InstanceConfig};
use super::{Failed, Shared, created, gateway};
use crate::access::Guard;
use crate::host::{MemoryPermit, lock};
use crate::http;
use crate::limits::{MAX_BLOB, MAX_FORWARDED, MAX_JSON, MAX_OPERATIONS};

/// The bytes of JSON that needs no permit.
const SMALL: usize = 64 << 10;
/// The most bytes of a refused body that are read.
const MAX_DROPPED: usize = 1 << 30;
/// The time limit for the next part of a body.
const PAUSE: Duration = Duration::from_secs(30);

/// Returns the router of a server. The guard is that of its listener, from which gateways get theirs.
pub fn router(shared: Arc<Shared>, guard: Arc<Guard>) -> Router {
    let router = Router::new().fallback(handle).with_state((shared, guard));
    router.layer(http::readable([Method::GET, Method::POST, Method::DELETE]))
}

/// A request in progress.
struct Running(Arc<Shared>);

impl Running {
    fn new(shared: &Arc<Shared>) -> Self {
        lock(&shared.activity).running += 1;
        Self(Arc::clone(shared))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.activity);
        activity.running -= 1;
        activity.last = Instant::now();
    }
}

async fn handle(
    State((shared, guard)): State<(Arc<Shared>, Arc<Guard>)>,
    request: Request,
) -> Response {
    let _running = Running::new(&shared);
    answer(&shared, &guard, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(shared: &Arc<Shared>, guard: &Guard, request: Request) -> Result<Response, Failed> {
    let path = request.uri().path().to_owned();
    let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let method = request.method().as_str().to_owned();
    match (method.as_str(), path.as_slice()) {
        ("GET", ["status"]) => Ok(StatusCode::OK.into_response()),
        ("POST", ["blobstore"]) => add_blob(shared, request).await,
        ("GET", ["blobstore", hash]) => read_blob(shared, hash),
        ("GET", ["read_graph", _, number]) => Ok(shared.pending.read(number)),
        ("DELETE", ["prune_graph", _, number]) => Ok(shared.pending.prune(number)),
        ("GET", ["instances"]) => Ok(Json(shared.list()).into_response()),
        ("POST", ["instances"]) => create(shared, guard, request).await,
        ("DELETE", ["instances", number]) => {
            shared.delete(number)?;
            Ok(StatusCode::OK.into_response())
        }
        (_, ["instances", number, "api", ..]) => {
            let instance = shared.instance(number)?;
            Ok(forward(&instance, &format!("/{}", path[2..].join("/")), request).await)
        }
        ("GET", ["instances", number, "_", "dashboard"]) => {
            let instance = shared.instance(number)?;
            Ok(forward(&instance, "/", request).await)
        }
        (_, ["instances", number, rest @ ..]) if !rest.is_empty() => {
            let instance = shared.instance(number)?;
            let headers = request.headers().clone();
            let Received { bytes, memory } = read_json(request.into_body(), &shared.json).await?;
            let found = operations::find(&method, rest, &bytes, &shared.blobs, &shared.version)?;
            drop(bytes);
            let place = Arc::clone(&shared.operations).try_acquire_owned().map_err(|_| {
                Failed::TooMany(format!(
                    "{MAX_OPERATIONS} operations wait or run; send this one again later."
                ))
            })?;
            Ok(run(shared, &headers, instance, found, (place, memory)).await)
        }
        ("GET", ["http_gateway"]) => Ok(Json(shared.gateways.list()).into_response()),
        ("POST", ["http_gateway"]) => {
            let body = read_json(request.into_body(), &shared.json).await?;
            let config: GatewayConfig = decode(&body.bytes)?;
            Ok(match gateway::start(shared, guard, config) {
                Ok(info) => (StatusCode::CREATED, Json(Creation::Created(info))).into_response(),
                Err(message) => {
                    let error = Creation::<()>::Error { message };
                    (StatusCode::BAD_GATEWAY, Json(error)).into_response()
                }
            })
        }
        ("POST", ["http_gateway", number, "stop"]) => {
            shared.gateways.stop(number);
            Ok(Json(()).into_response())
        }
        ("POST", ["verify_signature"]) => Err(Failed::Refused(
            "This server does not verify canister signatures: use the crate \
             ic-signature-verification in the test."
                .to_owned(),
        )),
        _ => Err(Failed::Missing(format!(
            "There is no {method} /{}: this server has the interface of PocketIC {}.",
            path.join("/"),
            shared.version.number()
        ))),
    }
}

/// Executes an operation when it is its turn, also if the client goes away. It keeps what it `occupies`
/// until it is done.
async fn run(
    shared: &Shared,
    headers: &HeaderMap,
    instance: Arc<Instance>,
    operation: operations::Operation,
    occupies: (OwnedSemaphorePermit, MemoryPermit),
) -> Response {
    let task = tokio::spawn(async move {
        let _occupied = occupies;
        // Those that wait need no threads, of which there are some hundred.
        let _turn = instance.turn.acquire().await;
        let executing = Arc::clone(&instance);
        let executed = spawn_blocking(move || {
            let work = AssertUnwindSafe(|| operation(&executing));
            catch_unwind(work).unwrap_or_else(|_| {
                Err(Failed::Machine("The server failed; see its log.".to_owned()))
            })
        });
        executed.await.unwrap_or_else(|error| Err(Failed::Machine(error.to_string())))
    });
    shared.pending.answer(headers, task).await
}

async fn create(shared: &Arc<Shared>, guard: &Guard, request: Request) -> Result<Response, Failed> {
    let body = read_json(request.into_body(), &shared.json).await?;
    let refused = |message: String| {
        (StatusCode::BAD_REQUEST, Json(Creation::<()>::Error { message })).into_response()
    };
    let config: InstanceConfig = match decode(&body.bytes) {
        Ok(config) => config,
        Err(failed) => return Ok(refused(failed.into_parts().1)),
    };
    let served = match config.http_gateway_config.clone() {
        None => None,
        Some(other) => match gateway::bind(&other, guard) {
            Ok(listener) => Some((other, listener)),
            Err(message) => return Ok(refused(message)),
        },
    };
    let creator = Arc::clone(shared);
    let result = spawn_blocking(move || creator.create(config)).await;
    let result = result.map_err(|error| Failed::Machine(format!("The server failed: {error}.")))?;
    let (number, instance) = match result {
        Ok(created) => created,
        Err(message) => return Ok(refused(message)),
    };
    let gateway = match served {
        None => None,
        Some((other, listener)) => {
            let forward_to = super::types::GatewayBackend::PocketIcInstance(number);
            let config = GatewayConfig { forward_to, other };
            match gateway::serve(shared, number, config, listener) {
                Ok(info) => Some(info),
                Err(message) => {
                    shared.delete(&number.to_string())?;
                    return Ok(refused(message));
                }
            }
        }
    };
    let created = Creation::Created(created(number, &instance, gateway));
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

/// Passes a request on to the Internet Computer's HTTP interface of an instance.
pub async fn forward(instance: &Instance, path: &str, request: Request) -> Response {
    if let Some(refused) = unknown(instance, path) {
        return (StatusCode::BAD_REQUEST, refused).into_response();
    }
    let (parts, body) = request.into_parts();
    let body = match read(body, MAX_FORWARDED).await {
        Ok(body) => body,
        Err(Failed::TooLarge(_)) => {
            let text = format!(
                "error: payload_too_large\ndetails: Payload is too large: maximum body size is \
                 {MAX_FORWARDED} bytes."
            );
            return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
        }
        Err(failed) => return failed.into_response(),
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(uri) = format!("{path}{query}").parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    http::router(Arc::clone(&instance.host)).oneshot(request).await.into_response()
}

/// Returns the refusal of an address that names no canister or subnet of the instance, in the words of
/// the network's boundary.
fn unknown(instance: &Instance, path: &str) -> Option<&'static str> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let ["api", _, kind, id, _] = parts.as_slice() else { return None };
    let id = Principal::from_text(id).ok()?;
    let directory = instance.host.directory();
    let known = match *kind {
        "canister" => id == Principal::management_canister() || directory.hosts(&id),
        "subnet" => directory.contains(&id),
        _ => true,
    };
    match *kind {
        _ if known => None,
        "canister" => {
            Some("error: canister_not_found\ndetails: The specified canister does not exist.")
        }
        _ => Some("error: subnet_not_found\ndetails: The specified subnet cannot be found."),
    }
}

async fn add_blob(shared: &Shared, request: Request) -> Result<Response, Failed> {
    let gzipped = match request.headers().get(header::CONTENT_ENCODING) {
        None => false,
        Some(encoding) if encoding == "gzip" => true,
        Some(_) => {
            return Err(Failed::Refused(
                "Bad encoding: Only 'gzip' content encoding is supported".to_owned(),
            ));
        }
    };
    let bytes = read(request.into_body(), MAX_BLOB).await?;
    Ok(hex::encode(shared.blobs.add(bytes, gzipped)).into_response())
}

fn read_blob(shared: &Shared, hash: &str) -> Result<Response, Failed> {
    let hash = hex::decode(hash)
        .map_err(|error| Failed::Refused(format!("{hash} is not a hash: {error}.")))?;
    let blob = shared.blobs.get(&hash);
    let blob = blob.ok_or_else(|| Failed::Missing("There is no such blob.".to_owned()))?;
    let bytes = blob.bytes;
    Ok(match blob.gzipped {
        true => ([(header::CONTENT_ENCODING, "gzip")], bytes).into_response(),
        false => bytes.into_response(),
    })
}

/// JSON and its memory permit.
struct Received {
    bytes: Vec<u8>,
    memory: MemoryPermit,
}

/// Reads JSON. If it is large, it waits until there is memory for the largest, and keeps as much as it
/// needs.
async fn read_json(body: Body, available: &Arc<Semaphore>) -> Result<Received, Failed> {
    let mut memory = MemoryPermit::None;
    let bytes = read_with(body, MAX_JSON, async || {
        let acquired = Arc::clone(available).acquire_many_owned(MAX_JSON as u32).await;
        memory = Some(acquired.map_err(|error| Failed::TooMany(format!("No memory: {error}.")))?);
        Ok(())
    });
    let bytes = bytes.await?;
    if let Some(permit) = &mut memory {
        drop(permit.split(MAX_JSON - bytes.len()));
    }
    Ok(Received { bytes, memory })
}

/// Reads a body.
async fn read(body: Body, most: usize) -> Result<Vec<u8>, Failed> {
    read_with(body, most, async || Ok(())).await
}

/// Reads a body, and calls `grow` before it becomes large. One that is too large is read to its end and
/// dropped, so that the client sees the refusal.
async fn read_with(
    mut body: Body,
    most: usize,
    grow: impl AsyncFnOnce() -> Result<(), Failed>,
) -> Result<Vec<u8>, Failed> {
    let (mut bytes, mut all) = (Vec::new(), 0_usize);
    let mut grow = Some(grow);
    let too_large = |all| {
        Failed::TooLarge(format!("The body has {all} bytes or more, at most {most} are accepted."))
    };
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let frame = match timeout(PAUSE, frame).await {
            Err(_) => {
                let seconds = PAUSE.as_secs();
                let text = format!("The body paused for {seconds} seconds; send it again.");
                return Err(Failed::Refused(text));
            }
            Ok(None) if all > most => return Err(too_large(all)),
            Ok(None) => return Ok(bytes),
            Ok(Some(Err(error))) => {
                return Err(Failed::Refused(format!("Cannot read the body: {error}.")));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        all = all.saturating_add(data.len());
        if all <= most {
            if all > SMALL
                && let Some(grow) = grow.take()
            {
                grow().await?;
            }
            bytes.try_reserve(data.len()).map_err(|error| Failed::Machine(error.to_string()))?;
            bytes.extend_from_slice(&data);
        } else if all > most.saturating_add(MAX_DROPPED) {
            return Err(too_large(all));
        } else {
            bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn large_json_keeps_its_memory_until_its_operation_is_done() {
        let available = Arc::new(Semaphore::new(MAX_JSON));
        let read = async |bytes: usize| {
            let body = Body::from(vec![b' '; bytes]);
            timeout(SHORT, read_json(body, &available)).await.ok()?.ok()
        };
        let first = read(SMALL + 1).await.unwrap();
        assert_eq!(available.available_permits(), MAX_JSON - SMALL - 1);
        // Another one waits, because it may be as large as any. Small ones do not.
        assert!(read(SMALL + 1).await.is_none());
        assert!(read(SMALL).await.unwrap().memory.is_none());
        drop(first);
        assert!(read(SMALL + 1).await.is_some());
        assert!(read(MAX_JSON + 1).await.is_none());
        assert_eq!(available.available_permits(), MAX_JSON);
    }
}
