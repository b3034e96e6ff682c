//! The replica of a command, and its cache, which `stablebench cache` shows and clears.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use stablebench_replica::{Effort, Rules, saved_note};

use crate::cache::{Cache, DURATIONS, Entry, Folder, Kind, Note, Versions};
use crate::canisters::Built;
use crate::progress::{self, Progress};
use crate::replica::embedded::Embedded;
use crate::replica::options::{
    Address, CacheFolderArgs, LIMIT, ReplicaArg, ReplicaArgs, SubnetKind, TargetArgs, limit,
};
use crate::replica::{Balance, Replica};
use crate::report::number::{Age, Binary, Grouped};
use crate::terminal::safe_line;

/// The replica that a suite runs on, and what belongs to it.
pub struct Target {
    pub replica: Box<dyn Replica + Send>,
    /// The cache of the embedded replica.
    pub cache: Option<Cache>,
    /// The cycles of a network's canisters.
    pub spending: Option<Spending>,
}

/// Canisters on a network whose cycles a run spends.
pub struct Spending {
    pub address: Address,
    pub balances: Vec<Balance>,
    /// Permission to spend cycles on another machine's replica.
    pub yes: bool,
}

/// Checks that the options fit the replica, and that this program can reach it.
pub fn check(target: &TargetArgs, args: &ReplicaArgs) -> Result<()> {
    let replica = &target.replica;
    if *replica == ReplicaArg::Embedded && target.access.verify_embedded {
        bail!("--verify-embedded is for other replicas; add --replica pocket-ic");
    }
    if args.rules.is_some() && *replica == ReplicaArg::PocketIc {
        bail!("a PocketIC server has its own rules, which are detected; leave out --rules");
    }
    let ReplicaArg::At(address) = replica else {
        for (option, typed) in [
            ("--canister", !target.canister.is_empty()),
            ("--identity", target.access.identity.is_some()),
            ("--root-key", target.access.root_key.is_some()),
            ("--yes", target.access.yes),
        ] {
            if typed {
                bail!(
                    "{option} is for replicas by URL; add --replica http://127.0.0.1:4943, or ic"
                );
            }
        }
        if cfg!(not(feature = "pocket-ic")) && *replica == ReplicaArg::PocketIc {
            return Err(without("PocketIC servers", "pocket-ic", "pocket-ic"));
        }
        return Ok(());
    };
    if cfg!(not(feature = "network")) {
        return Err(without("networks", "network", &format!("{address} --canister ID")));
    }
    if args.subnet != SubnetKind::Application {
        bail!("the kind of subnet is the network's; leave out --subnet");
    }
    if target.canister.is_empty() {
        bail!(
            "which canister at {address} may be emptied and measured in? Deploy one (dfx deploy bench, \
             icp deploy bench) and give its id: --canister ID"
        );
    }
    Ok(())
}

/// Starts the replica for a suite that needs these modules. Differences between two replicas are
/// saved next to `out`.
pub fn target(
    target: &TargetArgs,
    args: &ReplicaArgs,
    out: &Path,
    built: &[Built],
    progress: &Progress,
) -> Result<Target> {
    let (real, spending): (Box<dyn Replica + Send>, _) = match &target.replica {
        ReplicaArg::Embedded => {
            let (replica, cache) = embedded(args, progress)?;
            return Ok(Target { replica: Box::new(replica), cache, spending: None });
        }
        ReplicaArg::PocketIc => (pocket_ic(args.subnet, progress)?, None),
        ReplicaArg::At(address) => {
            let (replica, spending) = network(target, address, built, progress)?;
            (replica, Some(spending))
        }
    };
    if !target.access.verify_embedded {
        return Ok(Target { replica: real, cache: None, spending });
    }
    // Every message is sent to both, which must charge by the same rules.
    let args = match real.identity().rules.parse() {
        Ok(rules) => ReplicaArgs { rules: Some(rules), ..args.clone() },
        Err(_) => args.clone(),
    };
    let (embedded, _) = embedded(&args, progress)?;
    let replica = lockstep([real, Box::new(embedded)], out);
    Ok(Target { replica, cache: None, spending })
}

#[cfg(any(feature = "network", feature = "pocket-ic"))]
fn lockstep(both: [Box<dyn Replica + Send>; 2], out: &Path) -> Box<dyn Replica + Send> {
    use crate::replica::lockstep::Lockstep;
    Box::new(Lockstep::new(both, out.with_extension("difference")))
}

/// Without a client of another replica there is only one.
#[cfg(not(any(feature = "network", feature = "pocket-ic")))]
fn lockstep([real, _]: [Box<dyn Replica + Send>; 2], _: &Path) -> Box<dyn Replica + Send> {
    real
}

#[cfg(feature = "network")]
fn network(
    target: &TargetArgs,
    address: &Address,
    built: &[Built],
    progress: &Progress,
) -> Result<(Box<dyn Replica + Send>, Spending)> {
    use crate::replica::network::{Access, Network, exposed};
    if let Some(warning) = target.access.identity.as_deref().and_then(exposed) {
        progress.note(&warning);
    }
    let access = Access {
        address,
        canisters: &target.canister,
        identity: target.access.identity.as_deref(),
        root_key: target.access.root_key.as_ref().map(|key| &*key.0),
    };
    let network = Network::connect(access, built)?;
    let balances = network.balances()?;
    let spending = Spending { address: address.clone(), balances, yes: target.access.yes };
    Ok((Box::new(network), spending))
}

#[cfg(not(feature = "network"))]
fn network(
    _: &TargetArgs,
    address: &Address,
    _: &[Built],
    _: &Progress,
) -> Result<(Box<dyn Replica + Send>, Spending)> {
    // `check` says this before canisters are built.
    Err(without("networks", "network", &format!("{address} --canister ID")))
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
    Err(without("PocketIC servers", "pocket-ic", "pocket-ic"))
}

/// The error of a program that was built without the client that a replica needs.
fn without(whom: &str, feature: &str, replica: &str) -> anyhow::Error {
    anyhow!(
        "this stablebench was built without the client of {whom}; build it with that: cargo run \
         --release --features {feature} -- run users --replica {replica}"
    )
}

/// Starts the embedded replica, with a cache if that is allowed and possible.
pub fn embedded(args: &ReplicaArgs, progress: &Progress) -> Result<(Embedded, Option<Cache>)> {
    embedded_with(Effort::Full, args, progress)
}

/// Starts the embedded replica as [`embedded`] does, with an effort of compiling.
pub fn embedded_with(
    effort: Effort,
    args: &ReplicaArgs,
    progress: &Progress,
) -> Result<(Embedded, Option<Cache>)> {
    let limit = cache_limit(&args.cache.folder)?;
    let folder = usable(args, progress);
    folder.clone().into_iter().for_each(remember);
    let notes = progress.clone();
    let path = folder.as_ref().map(|it| it.path().to_owned());
    let note = move |note: stablebench_replica::cache::Note| notes.note(&note.to_string());
    let replica = Embedded::new(effort, args.rules(), path, note)?.with_progress(progress);
    let versions = Versions::of(replica.inner())?;
    let cache = folder.map(|folder| Cache::new(folder, limit, versions, progress));
    Ok((replica, cache))
}

/// Uses the durations of earlier runs for the progress, if there is a cache.
pub fn remember_durations(args: &ReplicaArgs) {
    // `embedded` says why there is none.
    if let Some(folder) = usable(args, &Progress::Quiet) {
        remember(folder);
    }
}

fn remember(folder: Folder) {
    let read = |folder: &Folder| folder.read(DURATIONS).ok().flatten().unwrap_or_default();
    progress::remember_durations(progress::parse_durations(&read(&folder)), move |name, took| {
        // Another program may have added some. If it cannot be written, later runs do not know it.
        let file = progress::with_duration(&read(&folder), name, took);
        let _ = folder.write(DURATIONS, &file);
    });
}

/// Returns the cache's folder, which is created if missing. Without one, the run continues
/// uncached.
fn usable(args: &ReplicaArgs, progress: &Progress) -> Option<Folder> {
    if args.cache.no_cache {
        return None;
    }
    let folder = cache_folder(&args.cache.folder)
        .and_then(|folder| {
            folder
                .prepare()
                .with_context(|| format!("the cache {} is not used", folder.path().display()))?;
            Ok(folder)
        })
        .inspect_err(|error| {
            progress.note(&format!("nothing is cached for later runs: {error:#}"))
        });
    folder.ok()
}

/// Returns the cache's folder.
fn cache_folder(args: &CacheFolderArgs) -> Result<Folder> {
    let path = args.cache_dir.clone().or_else(default_cache).ok_or_else(|| {
        anyhow!(
            "neither XDG_CACHE_HOME nor HOME is an absolute path; name a folder with --cache-dir"
        )
    })?;
    Ok(Folder::new(path))
}

/// Returns the maximum size of the cache in bytes.
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

/// The default limit in GiB: three runs of the users suite.
const DEFAULT_LIMIT: f64 = 8.0;

fn default_cache() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("stablebench"))
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CacheArgs {
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
    #[command(flatten)]
    pub folder: CacheFolderArgs,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Clear it. Files that are not the cache's stay.
    Clear(CacheFolderArgs),
}

/// Shows the cache, or clears it.
pub fn cache(args: &CacheArgs) -> Result<()> {
    let (folder, clearing) = match &args.command {
        None => (cache_folder(&args.folder)?, false),
        Some(CacheCommand::Clear(folder)) => (cache_folder(folder)?, true),
    };
    let done = if clearing { clear(&folder) } else { show(&folder, cache_limit(&args.folder)?) };
    done.with_context(|| format!("the cache at {}", folder.path().display()))
}

fn clear(folder: &Folder) -> Result<()> {
    let cleared = folder.clear()?;
    let mut out = std::io::stdout().lock();
    let (modules, states) = (Grouped(cleared.modules as u64), Grouped(cleared.states as u64));
    writeln!(
        out,
        "dropped from {}: {modules} compiled modules, {states} populated canisters, {}",
        folder.path().display(),
        Binary(cleared.bytes)
    )?;
    if cleared.others > 0 {
        writeln!(out, "left there: {} files that are not the cache's", cleared.others)?;
    }
    Ok(())
}

fn show(folder: &Folder, limit: u64) -> Result<()> {
    let versions = Versions::of(&stablebench_replica::Replica::new(Rules::today(), None)?)?;
    let files = folder.files()?;
    let mut entries = files.entries;
    entries.sort_by(|one, other| (other.used, &one.name).cmp(&(one.used, &other.name)));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", folder.path().display())?;
    for (what, kind) in [("compiled modules", Kind::Module), ("populated canisters", Kind::State)] {
        let of: Vec<&Entry> = entries.iter().filter(|entry| entry.kind == kind).collect();
        let older = of.iter().filter(|entry| !versions.has(entry)).count();
        let bytes = of.iter().map(|entry| entry.bytes).sum();
        write!(out, "  {:>5} {what:<19} {:>9}", Grouped(of.len() as u64), Binary(bytes))?;
        match older {
            0 => writeln!(out)?,
            older => writeln!(out, "  ({older} of other versions)")?,
        }
    }
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    writeln!(out, "  in all {:>28} of at most {}", Binary(bytes), Binary(limit))?;
    if files.others > 0 {
        writeln!(out, "  and {} files that are not the cache's", files.others)?;
    }
    let states = entries.iter().filter(|entry| entry.kind == Kind::State);
    for (at, entry) in states.enumerate() {
        if at == 0 {
            writeln!(out, "\n      size      used  canister  what")?;
        }
        writeln!(out, "{}", line(folder, entry, &versions))?;
    }
    Ok(())
}

/// Returns the line of a populated canister.
fn line(folder: &Folder, entry: &Entry, versions: &Versions) -> String {
    let age = SystemTime::now().duration_since(entry.used).unwrap_or_default();
    let note = || -> Result<Note> {
        Ok(serde_json::from_str(&saved_note(&folder.path().join(&entry.name))?)?)
    };
    let (canister, content) = match note() {
        _ if !versions.has(entry) => (String::new(), "of another version".to_owned()),
        Err(_) => (String::new(), "damaged".to_owned()),
        Ok(note) => {
            let canister = note.setup.canister.chars().take(8).collect();
            (canister, note.setup.prepared.to_string())
        }
    };
    let content = safe_line(&content);
    let canister = safe_line(&canister);
    format!("{:>10} {:>9}  {canister:<8}  {content}", Binary(entry.bytes), Age(age))
}
