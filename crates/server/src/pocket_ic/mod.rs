//! PocketIC's REST interface over the embedded replica: tests that use a PocketIC server run on it.
//!
//! ```text
//!   addresses ──→ operations ──→ Instance ──→ Host ──→ Subnet
//!                     │              └── topology, snapshots
//!                     └── long ones end later: shared
//!   gateway ──→ an instance's canisters over HTTP
//! ```
//!
//! An instance is one subnet of the embedded replica, whose parts stand for the subnets of the
//! instance. What is missing is refused with a sentence that says why. A `/` at the end of an address
//! makes no difference:
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

mod gateway;
mod instance;
mod operations;
mod shared;
mod snapshots;
mod topology;
mod types;

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::connections::{self, Guard, Listener};
use crate::host::{MemoryPermit, lock};
use crate::http;
use crate::limits::{MAX_BLOB, MAX_LARGE_JSON, MAX_OPERATIONS};
use gateway::forward;
use instance::Instance;
use operations::{Received, decode, read, read_json};
use shared::{Activity, Blobs, Gateways, Pending, Shared, created};
pub use topology::Replicas;
use types::{Creation, Failed, GatewayBackend, GatewayConfig, InstanceConfig};
pub use types::{UnknownVersion, Version};

/// A PocketIC server.
#[derive(Clone)]
pub struct PocketIc(Arc<Shared>);

impl PocketIc {
    /// Creates a server for clients of a version.
    pub fn new(version: Version, replicas: Replicas) -> Self {
        Self(Arc::new(Shared {
            version,
            replicas,
            instances: Mutex::default(),
            blobs: Blobs::default(),
            pending: Pending::default(),
            json: Arc::new(Semaphore::new(MAX_LARGE_JSON)),
            operations: Arc::new(Semaphore::new(MAX_OPERATIONS)),
            gateways: Gateways::default(),
            activity: Mutex::new(Activity { running: 0, last: Instant::now() }),
        }))
    }

    /// Answers requests until `stop` resolves, then stops all gateways.
    ///
    /// # Errors
    ///
    /// If the runtime cannot use the socket.
    pub async fn serve(
        &self,
        listener: Listener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let router = router(Arc::clone(&self.0), listener.guard());
        let served =
            connections::serve(listener, router, connections::Limits::default(), stop).await;
        self.0.gateways.stop_all();
        served
    }

    /// Ends all instances. Running messages are ended, waiting ones are dropped.
    pub fn end(&self) {
        let instances = std::mem::take(&mut *lock(&self.0.instances));
        instances.0.into_iter().flatten().for_each(|instance| instance.end());
    }

    /// The time since the last request, or `None` while a request is in progress.
    pub fn idle(&self) -> Option<Duration> {
        let activity = lock(&self.0.activity);
        (activity.running == 0).then(|| activity.last.elapsed())
    }
}

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
            let forward_to = GatewayBackend::PocketIcInstance(number);
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
