//! The Internet Computer's HTTP interface over the embedded replica: ordinary clients call
//! canisters that run in this process, with the counts of the embedded replica.
//!
//! | module | purpose |
//! |---|---|
//! | `connections` | listeners, and the origins and hosts that are allowed |
//! | `http`, `wire` | the addresses and bodies, and the format and authentication of requests |
//! | `message` | messages of users, and the statuses of calls |
//! | `host`, `driver` | the subnet, and the thread that executes its rounds |
//! | `system` | canisters of the network that clients ask first |
//! | `limits` | the limits of all servers |
//! | `pocket_ic` | PocketIC's REST interface |
//! | `state_tree`, `certificates` | the state tree and its certificates |
//!
//! Canisters call each other and the management canister, timers and heartbeats run by the clock, and
//! queries can read certificates. There is one subnet, whose key is the root key, and one node.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read and decode what they have written")
)]

mod certificates;
mod connections;
mod driver;
mod host;
mod http;
mod limits;
mod message;
pub mod pocket_ic;
mod state_tree;
mod system;
mod wire;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use candid::Principal;
pub use certificates::{Keys, sign_data};
pub use connections::{Access, Listener, NoOrigin, Origin};
pub use host::{AddError, Stuck};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Canister, Replica};

/// The example of README.md, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The canisters behind a server.
#[derive(Clone)]
pub struct Server(Arc<host::Host>);

impl Server {
    /// Creates a server without canisters.
    pub fn new(replica: Replica) -> Self {
        Self::of(Subnet::new(&replica))
    }

    /// Creates a server with the canisters of a subnet, which goes on now: they pay nothing for the
    /// time since its last round.
    pub fn of(subnet: Subnet) -> Self {
        Self(driver::start(host::Host::new(subnet)))
    }

    /// Adds a canister under its own id.
    ///
    /// # Errors
    ///
    /// If its id is taken or not in the subnet's range, or a limit is reached.
    pub fn adopt(&self, canister: Canister) -> Result<Principal, AddError> {
        self.0.adopt(canister)
    }

    /// Returns the id of the next canister.
    ///
    /// # Errors
    ///
    /// If all ids are taken.
    pub fn next_id(&self) -> Result<Principal, AddError> {
        self.0.next_id()
    }

    /// Returns the versions of the canisters, which grow with each change.
    pub fn versions(&self) -> BTreeMap<Principal, u64> {
        self.0.infos().into_iter().map(|(id, info)| (id, info.version)).collect()
    }

    /// Returns the canisters that answer browsers.
    pub fn websites(&self) -> Vec<Principal> {
        let answers = |info: &host::Info| info.module.as_ref().is_some_and(|it| it.answers_http);
        let infos = self.0.infos();
        infos.into_iter().filter(|(_, info)| answers(info)).map(|(id, _)| id).collect()
    }

    /// Returns a copy of the subnet when no message runs. Those that arrive wait meanwhile.
    pub fn fork(&self) -> Subnet {
        self.0.exclusively(|subnet| subnet.fork())
    }

    /// Returns the public root key in DER.
    pub fn root_key(&self) -> &[u8] {
        self.0.keys.root()
    }

    /// Answers requests until `stop` resolves, then finishes those in progress.
    ///
    /// # Errors
    ///
    /// If the runtime cannot use the socket.
    pub async fn serve(
        &self,
        listener: Listener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let router = http::with_gateway(Arc::clone(&self.0));
        connections::serve(listener, router, connections::Limits::default(), stop).await
    }

    /// Waits until all accepted calls are done or the deadline passes. After the deadline, waiting
    /// messages are dropped, and compilations are abandoned. Running messages that have not ended by
    /// `halt` end then, without an effect. Returns the subnet, and the number of messages that were
    /// not done by the deadline. No message is executed after that.
    ///
    /// # Errors
    ///
    /// If a message does not end for a minute after `halt`, which is a bug.
    pub fn finish(self, deadline: Instant, halt: Instant) -> Result<(Subnet, usize), Stuck> {
        self.0.finish(deadline, halt)
    }
}
