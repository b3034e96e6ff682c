//! The replicas of a server for PocketIC clients.

use anyhow::Result;
use stablebench_replica::Rules;
use stablebench_server::pocket_ic::Replicas;

use crate::cache::Cache;
use crate::commands::replica::embedded;
use crate::progress::Progress;
use crate::replica::options::{CacheUseArgs, ReplicaArgs, SubnetKind};

/// The replicas of a server, and their cache.
pub struct Served {
    pub replicas: Replicas,
    pub cache: Option<Cache>,
}

/// Returns replicas for all kinds of subnets, which are started on demand.
pub fn replicas(rules: Rules, cache: &CacheUseArgs, progress: &Progress) -> Result<Served> {
    let subnet = SubnetKind::Application;
    let args = ReplicaArgs { rules: Some(rules), subnet, cache: cache.clone() };
    let (replica, cache) = embedded(&args, progress)?;
    let (first, folder) = (replica.inner().clone(), cache.as_ref().map(Cache::path));
    let notes = progress.clone();
    let replicas = Replicas::new(move |kind| {
        if kind == first.rules().subnet() {
            return Ok(first.clone());
        }
        let notes = notes.clone();
        let folder = folder.clone();
        stablebench_replica::Replica::with_notes(rules.on(kind), folder, move |note| {
            notes.note(&note.to_string());
        })
        .map_err(|error| error.to_string())
    });
    Ok(Served { replicas, cache })
}
