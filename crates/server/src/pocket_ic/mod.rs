//! PocketIC's REST interface over the embedded replica: tests that use a PocketIC server run on it.
//!
//! ```text
//!   routes ──→ operations ──→ Instance ──→ Host ──→ Subnet
//!                  │               └── topology, outcalls, snapshots
//!                  └── long ones end later: pending
//!   gateway ──→ an instance's canisters over HTTP
//! ```
//!
//! An instance is one subnet of the embedded replica, whose parts stand for the subnets of the
//! instance. What is missing is refused with a sentence that says why.

mod blobs;
mod bodies;
mod failure;
mod forward;
mod gateway;
mod gateways;
mod instance;
mod operations;
mod outcalls;
mod pending;
mod replicas;
mod routes;
mod shared;
mod snapshots;
mod topology;
mod types;
mod version;

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::connections::{self, Listener};
use crate::host::lock;
use crate::limits::{MAX_LARGE_JSON, MAX_OPERATIONS};
use blobs::Blobs;
use gateways::Gateways;
use pending::Pending;
pub use replicas::Replicas;
use shared::{Activity, Shared};
pub use version::{UnknownVersion, Version};

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
        let router = routes::router(Arc::clone(&self.0), listener.guard());
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
