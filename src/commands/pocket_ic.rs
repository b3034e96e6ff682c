//! `stablebench pocket-ic`: the embedded replica as a PocketIC server, for the tests of canisters.
//!
//! Clients start the program that `POCKET_IC_BIN` names, with arguments of their own:
//!
//! ```text
//!   --version                    pocket-ic-server 16.1.0
//!   --port-file FILE --ttl 60    serves until no request has come for a minute
//! ```
//!
//! So the program acts as this command if its name begins with `pocket-ic`, as that of a link to it may,
//! or if its arguments are those of a client.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use stablebench_replica::Rules;
use stablebench_server::pocket_ic::{PocketIc, Replicas, Version};
use stablebench_server::{Access, Listener};
use tokio::sync::oneshot;

use super::replica::embedded;
use crate::cache::Cache;
use crate::interrupt;
use crate::progress::{Output, Progress};
use crate::replica::options::{CacheUseArgs, ReplicaArgs, SubnetKind, rule_sets};
use crate::terminal::print;

/// The variable with the default of `--rules`.
const RULES: &str = "STABLEBENCH_RULES";

/// The interval at which the time to live is checked.
const TICK: Duration = Duration::from_millis(100);
/// The interval of reducing the cache to its limit.
const SWEEP: Duration = Duration::from_secs(1);
/// The time limit for requests in progress when the server ends.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct PocketIcArgs {
    /// The port; 0 for any that is free.
    #[arg(short, long, default_value_t = 0)]
    pub port: u16,
    /// Write the port to this file when the server is ready. If the file exists, another server
    /// has it, and this one ends at once.
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// The same as --port-file with the file that clients up to version 8 expect for the process
    /// with this id.
    #[arg(long, value_name = "PID", conflicts_with = "port_file")]
    pub pid: Option<u32>,
    /// End after this time without a request [default: 60, if a client starts the server].
    #[arg(long, value_name = "SECONDS")]
    pub ttl: Option<u64>,
    /// End after this time in any case.
    #[arg(long, value_name = "SECONDS")]
    pub hard_ttl: Option<u64>,
    /// The address to listen at. Programs that can reach it can do everything that tests can. HTTP
    /// gateways listen at this machine or there.
    #[arg(short, long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub ip_addr: IpAddr,
    /// Accepted because clients pass it. Only failures are printed.
    #[arg(short, long, value_name = "LEVELS")]
    pub log_levels: Option<String>,
    /// Rules by which canisters are charged.
    #[arg(long, value_name = "RULES", help = format!(
        "Rules by which canisters are charged: {} [default: $STABLEBENCH_RULES, else {}]",
        rule_sets(), Rules::today()
    ))]
    pub rules: Option<Rules>,
    /// Version of the clients, such as 16.1.0 or 16
    /// [default: $STABLEBENCH_POCKET_IC_VERSION, else 16.1.0].
    #[arg(long, value_name = "VERSION")]
    pub pocket_ic_version: Option<Version>,
    /// Print the version as a PocketIC server does.
    #[arg(long)]
    pub version: bool,
    #[command(flatten)]
    pub cache: CacheUseArgs,
}

/// Parses a variable.
fn variable<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    name: &str,
) -> Result<Option<T>> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => {
            Ok(Some(text.parse().with_context(|| format!("{name} is not usable"))?))
        }
        _ => Ok(None),
    }
}

/// Returns the version of the clients that are served.
pub fn version(named: Option<&Version>) -> Result<Version> {
    Ok(match named {
        Some(version) => version.clone(),
        None => variable(VERSION)?.unwrap_or_default(),
    })
}

/// Serves until the time to live is over, or Ctrl-C.
pub fn pocket_ic(args: &PocketIcArgs, output: &Output) -> Result<()> {
    let version = version(args.pocket_ic_version.as_ref())?;
    if args.version {
        return print(&format!("pocket-ic-server {}\n", version.number()));
    }
    // Before the files are created, so that they are deleted in any case.
    interrupt::listen_quietly()?;
    let Some(files) = PortFiles::take(args)? else {
        // Another server has the file; the client uses that one.
        return Ok(());
    };
    let listener = bind(SocketAddr::new(args.ip_addr, args.port), Access::default())?;
    let port = listener.address().port();
    let rules = match args.rules {
        Some(rules) => rules,
        None => variable(RULES)?.unwrap_or_default(),
    };
    let Served { replicas, cache } = replicas(rules, &args.cache, &output.progress)?;
    let server = PocketIc::new(version, replicas);
    if files.is_none() {
        print(&format!("http://{}\n", SocketAddr::new(args.ip_addr, port)))?;
        output.progress.note("Ctrl-C stops the server");
    }
    let life = Life::new(args, files.is_some());
    serve(&server, listener, &life, cache.as_ref(), || match &files {
        Some(files) => files.write(port),
        None => Ok(()),
    })
}

/// Binds the socket of a server for PocketIC clients.
pub fn bind(address: SocketAddr, access: Access) -> Result<Listener> {
    Listener::bind(address, access)
        .with_context(|| format!("cannot listen at {address}; choose another --port"))
}

/// The time to live of a server.
struct Life {
    began: Instant,
    /// Without a request.
    idle: Option<Duration>,
    /// In any case.
    all: Option<Duration>,
}

impl Life {
    fn new(args: &PocketIcArgs, by_client: bool) -> Self {
        const DEFAULT: u64 = 60;
        let idle = args.ttl.or(by_client.then_some(DEFAULT)).map(Duration::from_secs);
        Self { began: Instant::now(), idle, all: args.hard_ttl.map(Duration::from_secs) }
    }

    fn is_over(&self, server: &PocketIc) -> bool {
        let idle = self.idle.zip(server.idle()).is_some_and(|(most, idle)| idle > most);
        idle || self.all.is_some_and(|most| self.began.elapsed() > most)
    }
}

fn serve(
    server: &PocketIc,
    listener: Listener,
    life: &Life,
    cache: Option<&Cache>,
    ready: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads that answer requests")?;
    let served: Result<()> = runtime.block_on(async {
        let (stop, stopped) = oneshot::channel();
        let watch = async {
            let mut swept = Instant::now();
            while interrupt::check().is_ok() && !life.is_over(server) {
                tokio::time::sleep(TICK).await;
                if let Some(cache) = cache
                    && swept.elapsed() > SWEEP
                {
                    cache.shrink();
                    swept = Instant::now();
                }
            }
            // The receiver may be gone.
            let _ = stop.send(());
            tokio::time::sleep(GRACE).await;
        };
        let stopped = async {
            let _ = stopped.await;
        };
        ready()?;
        tokio::select! {
            served = server.serve(listener, stopped) => Ok(served?),
            // A client may neither send anything nor disconnect.
            () = watch => Ok(()),
        }
    });
    // Messages that run are not awaited.
    runtime.shutdown_background();
    served
}

/// The files by which a client finds the port. They are removed at the end.
struct PortFiles {
    port: (PathBuf, File),
    /// The file that clients up to version 8 wait for.
    ready: Option<PathBuf>,
}

impl PortFiles {
    /// Creates the file. The inner `None` means that no file is wanted, the outer one that another
    /// server has it.
    fn take(args: &PocketIcArgs) -> Result<Option<Option<Self>>> {
        let temporary =
            |pid: u32, kind: &str| std::env::temp_dir().join(format!("pocket_ic_{pid}.{kind}"));
        let path = args.port_file.clone().or_else(|| Some(temporary(args.pid?, "port")));
        let Some(path) = path else { return Ok(Some(None)) };
        let ready = args.pid.map(|pid| temporary(pid, "ready"));
        match File::create_new(&path) {
            Ok(file) => Ok(Some(Some(Self { port: (path, file), ready }))),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(anyhow!(error)).with_context(|| {
                format!("cannot create {}; choose another --port-file", path.display())
            }),
        }
    }

    fn write(&self, port: u16) -> Result<()> {
        let (path, mut file) = (&self.port.0, &self.port.1);
        file.write_all(format!("{port}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        if let Some(ready) = &self.ready {
            // One that an earlier server left. The folder is shared, so what is there now may be a link
            // of somebody else, which is neither followed nor accepted.
            let _ = fs::remove_file(ready);
            File::create_new(ready).with_context(|| {
                format!("cannot create {}; remove what is there", ready.display())
            })?;
        }
        Ok(())
    }
}

impl Drop for PortFiles {
    fn drop(&mut self) {
        // The client may have removed them.
        let _ = fs::remove_file(&self.port.0);
        if let Some(ready) = &self.ready {
            let _ = fs::remove_file(ready);
        }
    }
}

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

/// The variable with the version that clients require.
const VERSION: &str = "STABLEBENCH_POCKET_IC_VERSION";
/// The variable with which clients find a server.
const BINARY: &str = "POCKET_IC_BIN";
/// The name of the command, and of links.
const NAME: &str = "pocket-ic";

/// Returns the words of the command `pocket-ic` if a PocketIC client started the program, or else
/// the given words.
pub fn as_pocket_ic(words: Vec<OsString>) -> Vec<OsString> {
    let Some((program, arguments)) = words.split_first() else { return words };
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let linked = name.strip_prefix(NAME);
    let first = arguments.first().and_then(|word| word.to_str()).unwrap_or_default();
    let by_client = match first {
        "--port-file" | "--pid" | "--ttl" | "--hard-ttl" => true,
        "--version" => arguments.len() == 1 && (is_named() || std::env::var_os(VERSION).is_some()),
        _ => false,
    };
    if linked.is_none() && !by_client {
        return words;
    }
    let mut all = vec![program.clone(), NAME.into()];
    // A link such as pocket-ic-10 or pocket-ic-server-10.0.0 names the version.
    let version = linked.map(|rest| rest.trim_start_matches("-server").trim_start_matches('-'));
    if let Some(version) = version.filter(|version| is_version(version)) {
        all.extend(["--pocket-ic-version".into(), version.into()]);
    }
    all.extend_from_slice(arguments);
    all
}

/// Returns `true` if `POCKET_IC_BIN` names this program.
fn is_named() -> bool {
    let named = std::env::var_os(BINARY).and_then(|path| fs::canonicalize(path).ok());
    let this = std::env::current_exe().and_then(fs::canonicalize).ok();
    named.is_some() && named == this
}

fn is_version(text: &str) -> bool {
    text.split('.').all(|number| number.parse::<u32>().is_ok())
}
