//! The Internet Computer's HTTP interface over the embedded replica: ordinary clients call
//! canisters that run in this process, and get the counts that the embedded replica counts.
//!
//! | | |
//! |---|---|
//! | `http` | the addresses |
//! | `envelope` | requests, read and checked |
//! | `subnet`, `canister` | the canisters, each on a thread of its own |
//! | `management` | what the management canister does |
//! | `ingress` | what became of the calls |
//! | `state_tree`, `tree`, `keys` | what can be read, and its certificates |
//!
//! What is not here: calls between canisters, timers, certificates of a canister's own data in
//! its queries, logs. There is one subnet, whose key is the root key, and one node.

mod canister;
mod cbor;
mod clock;
mod envelope;
mod http;
mod ingress;
mod keys;
mod management;
mod outcome;
mod refusal;
mod state_tree;
mod subnet;
mod tree;

use std::future::Future;
use std::io;
use std::sync::Arc;

use candid::Principal;
pub use keys::Keys;
use stablebench_replica::{Canister, Replica};
pub use subnet::CreateError;
use tokio::net::TcpListener;

/// The canisters behind an endpoint.
#[derive(Clone)]
pub struct Endpoint(Arc<subnet::Subnet>);

impl Endpoint {
    /// An endpoint without canisters.
    pub fn new(replica: Replica) -> Self {
        Self(subnet::Subnet::new(replica))
    }

    /// Takes a canister in, under its own id.
    ///
    /// # Errors
    ///
    /// Where its id is taken, or none of this subnet.
    pub fn adopt(&self, canister: Canister) -> Result<Principal, CreateError> {
        self.0.adopt(canister)
    }

    /// The id of the next canister that is created.
    ///
    /// # Errors
    ///
    /// Where all are taken.
    pub fn next_id(&self) -> Result<Principal, CreateError> {
        self.0.next_id()
    }

    /// The public root key, in DER.
    pub fn root_key(&self) -> &[u8] {
        self.0.keys.root()
    }

    /// Answers requests until `stop` comes; then those that are under way are answered, and all
    /// calls that were taken are done.
    ///
    /// # Errors
    ///
    /// If the listener fails.
    pub async fn serve(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let router = http::router(Arc::clone(&self.0));
        axum::serve(listener, router).with_graceful_shutdown(stop).await
    }

    /// Waits until all calls that were taken are done; answers the canisters. Nothing can be
    /// called from then on.
    pub fn finish(self) -> Vec<Canister> {
        self.0.finish()
    }
}
