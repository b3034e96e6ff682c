//! The replica that was asked for.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::cli::{ReplicaArgs, ReplicaKind, SubnetKind, TargetArgs};
use crate::progress::Progress;
use crate::replica::Replica;
use crate::replica::embedded::Embedded;
use crate::replica::lockstep::Lockstep;

/// Where a suite runs. What differs between two replicas is saved beside `out`.
pub fn target(
    target: &TargetArgs,
    args: &ReplicaArgs,
    out: &Path,
    progress: &Progress,
) -> Result<Box<dyn Replica + Send>> {
    match target.replica {
        ReplicaKind::Embedded if target.verify_embedded => {
            bail!("--verify-embedded is for other replicas; add --replica pocket-ic")
        }
        ReplicaKind::Embedded if target.subnet != SubnetKind::Application => {
            bail!("the embedded replica is an application subnet; add --replica pocket-ic")
        }
        ReplicaKind::Embedded => Ok(Box::new(embedded(args)?)),
        ReplicaKind::PocketIc => {
            let real = pocket_ic(target.subnet, progress)?;
            if !target.verify_embedded {
                return Ok(real);
            }
            let both = [real, Box::new(embedded(args)?) as Box<dyn Replica + Send>];
            Ok(Box::new(Lockstep::new(both, out.with_extension("difference"))))
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

/// The embedded replica, with a cache where that was not forbidden.
pub fn embedded(args: &ReplicaArgs) -> Result<Embedded> {
    let cache = (!args.no_cache).then(|| args.cache_dir.clone().or_else(default_cache)).flatten();
    Embedded::new(cache)
}

fn default_cache() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("stablebench"))
}
