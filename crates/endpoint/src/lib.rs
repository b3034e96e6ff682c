//! The Internet Computer's HTTP interface over the embedded replica: ordinary clients call
//! canisters that run in this process, and get the counts that the embedded replica counts.
//!
//! | | |
//! |---|---|
//! | `server`, `access` | connections, and who may call from where |
//! | `http` | the addresses |
//! | `envelope` | requests, read and checked |
//! | `subnet`, `canister` | the canisters, each on a thread of its own |
//! | `management` | what the management canister does |
//! | `ingress` | what became of the calls |
//! | `state_tree`, `tree`, `keys` | what can be read, and its certificates |
//!
//! What is not here: calls between canisters, timers, certificates of a canister's own data in
//! its queries. There is one subnet, whose key is the root key, and one node.

mod access;
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
mod server;
mod state_tree;
mod subnet;
mod tree;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Instant;

pub use access::{Access, NoOrigin, Origin};
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

    /// How often the canister has changed so far, if it is there.
    pub fn version(&self, canister: &Principal) -> Option<u64> {
        Some(self.0.canister(canister)?.info().version)
    }

    /// A copy of the canister as it is between two messages. There is none where it is not
    /// here, or a message runs: then one is made after that message, for who asks again.
    pub fn copy(&self, canister: &Principal) -> Option<Canister> {
        self.0.canister(canister)?.copy()
    }

    /// The public root key, in DER.
    pub fn root_key(&self) -> &[u8] {
        self.0.keys.root()
    }

    /// Answers requests that `access` lets in until `stop` comes, and then those that are under
    /// way.
    ///
    /// # Errors
    ///
    /// If the listener has no address.
    pub async fn serve(
        &self,
        listener: TcpListener,
        access: Access,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let address = listener.local_addr()?.ip();
        let router = http::router(Arc::clone(&self.0), access, address);
        server::serve(listener, router, server::Limits::default(), stop).await;
        Ok(())
    }

    /// Waits until all calls that were taken are done, but not after `deadline`. Then a message
    /// that runs is still done, the others are not, and compiling is given up. Answers the
    /// canisters, and how many messages were not done by the deadline. Nothing can be called
    /// from then on.
    pub fn finish(self, deadline: Instant) -> (Vec<Canister>, usize) {
        self.0.finish(deadline)
    }
}
