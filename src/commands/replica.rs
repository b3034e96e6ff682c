//! The replica that was asked for, and its cache.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::cache::{Cache, Folder};
use crate::cli::{CacheFolderArgs, LIMIT, ReplicaArgs, ReplicaKind, SubnetKind, TargetArgs, limit};
use crate::progress::Progress;
use crate::replica::Replica;
use crate::replica::embedded::Embedded;
use crate::replica::lockstep::Lockstep;

/// Where a suite runs, and what earlier runs have left there. What differs between two replicas
/// is saved beside `out`.
pub fn target(
    target: &TargetArgs,
    args: &ReplicaArgs,
    out: &Path,
    progress: &Progress,
) -> Result<(Box<dyn Replica + Send>, Option<Cache>)> {
    match target.replica {
        ReplicaKind::Embedded if target.verify_embedded => {
            bail!("--verify-embedded is for other replicas; add --replica pocket-ic")
        }
        ReplicaKind::Embedded if target.subnet != SubnetKind::Application => {
            bail!("the embedded replica is an application subnet; add --replica pocket-ic")
        }
        ReplicaKind::Embedded => {
            let (replica, cache) = embedded(args, progress)?;
            Ok((Box::new(replica), cache))
        }
        ReplicaKind::PocketIc => {
            let real = pocket_ic(target.subnet, progress)?;
            if !target.verify_embedded {
                return Ok((real, None));
            }
            // Every message has to go to both.
            let (embedded, _) = embedded(args, progress)?;
            let both = [real, Box::new(embedded) as Box<dyn Replica + Send>];
            Ok((Box::new(Lockstep::new(both, out.with_extension("difference"))), None))
        }
    }
}

#[cfg(feature = "pocket-ic")]
fn pocket_ic(subnet: SubnetKind, progress: &Progress) -> Result<Box<dyn Replica + Send>> {
    use stablebench_pocket_ic::{BINARY, Subnet};
    if std::env::var_os(BINARY).is_none() {
        progress.note(&format!("{BINARY} is not set: the client downloads a server, once"));
    }
    Ok(Box::new(crate::replica::pocket_ic::PocketIc::start(match subnet {
        SubnetKind::Application => Subnet::Application,
        SubnetKind::System => Subnet::System,
        SubnetKind::Benchmarking => Subnet::Benchmarking,
    })?))
}

#[cfg(not(feature = "pocket-ic"))]
fn pocket_ic(_: SubnetKind, _: &Progress) -> Result<Box<dyn Replica + Send>> {
    bail!(
        "this stablebench was built without PocketIC clients; build it with them: \
         cargo run --release --features pocket-ic -- run users --replica pocket-ic"
    )
}

/// The embedded replica, with a cache where that was not forbidden and can be.
pub fn embedded(args: &ReplicaArgs, progress: &Progress) -> Result<(Embedded, Option<Cache>)> {
    let limit = cache_limit(&args.cache)?;
    let folder = usable(args, progress);
    let notes = progress.clone();
    let replica =
        Embedded::new(folder.as_ref().map(|folder| folder.path().to_owned()), move |note| {
            notes.note(&note.to_string());
        })?;
    let cache = folder.map(|folder| Cache::new(folder, limit, replica.versions(), progress));
    Ok((replica, cache))
}

/// The cache's folder, made where it is missing. Where that fails, the run goes on without.
fn usable(args: &ReplicaArgs, progress: &Progress) -> Option<Folder> {
    if args.no_cache {
        return None;
    }
    let folder = cache_folder(&args.cache)
        .and_then(|folder| {
            folder
                .prepare()
                .with_context(|| format!("cannot write to {}", folder.path().display()))?;
            Ok(folder)
        })
        .inspect_err(|error| progress.note(&format!("nothing is kept for later runs: {error:#}")));
    folder.ok()
}

/// Where the cache is.
pub fn cache_folder(args: &CacheFolderArgs) -> Result<Folder> {
    let path = args.cache_dir.clone().or_else(default_cache).ok_or_else(|| {
        anyhow!("neither XDG_CACHE_HOME nor HOME is an absolute path; say where with --cache-dir")
    })?;
    Ok(Folder::new(path))
}

/// What the cache may take, in bytes.
pub fn cache_limit(args: &CacheFolderArgs) -> Result<u64> {
    let gib = match (args.cache_limit, std::env::var(LIMIT)) {
        (Some(gib), _) => gib,
        (None, Ok(text)) => {
            limit(&text).map_err(|error| anyhow!("{LIMIT} is \"{text}\", but {error}"))?
        }
        (None, Err(_)) => DEFAULT_LIMIT,
    };
    Ok((gib * (1_u64 << 30) as f64) as u64)
}

/// GiB: three runs of the users suite.
const DEFAULT_LIMIT: f64 = 8.0;

fn default_cache() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("stablebench"))
}
