//! The replicas of a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use stablebench_replica::{Replica, SubnetKind};

use crate::host::lock;

type Source = dyn Fn(SubnetKind) -> Result<Replica, String> + Send + Sync;

/// The replicas of a server, one for each kind of subnet. They are started on demand.
#[derive(Clone)]
pub struct Replicas {
    source: Arc<Source>,
    started: Arc<Mutex<BTreeMap<&'static str, Replica>>>,
}

impl Replicas {
    /// Creates replicas by a function.
    pub fn new(
        source: impl Fn(SubnetKind) -> Result<Replica, String> + Send + Sync + 'static,
    ) -> Self {
        Self { source: Arc::new(source), started: Arc::default() }
    }

    /// Returns the replica of a kind of subnet.
    pub(super) fn get(&self, kind: SubnetKind) -> Result<Replica, String> {
        let mut started = lock(&self.started);
        if let Some(replica) = started.get(kind.name()) {
            return Ok(replica.clone());
        }
        let replica = (self.source)(kind)?;
        started.insert(kind.name(), replica.clone());
        Ok(replica)
    }
}
