//! `stablebench serve`: canisters on the embedded replica, for the IC's ordinary clients.
//!
//! ```text
//!   bind → build → install, or load → print → answer until Ctrl-C → finish → save
//! ```
//!
//! The file of `--state` is locked from the beginning to the end. A save replaces it as a whole, so that
//! one that fails leaves the last good file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Canister, Principal, Settings, StateLock};
use stablebench_server::pocket_ic::PocketIc;
use stablebench_server::{Access, Listener, NoOrigin, Origin, Server};
use tokio::sync::oneshot;

use super::interface::{Names, named};
use super::pocket_ic::{self, replicas};
use super::replica::embedded;
use super::subnet::{Arguments, Environment, EnvironmentArgs, InstallArgs, New, note, saved};
use crate::cache::Cache;
use crate::canisters::{self, Built};
use crate::interrupt;
use crate::progress::{Output, Progress};
use crate::replica::embedded::Embedded;
use crate::replica::options::ReplicaArgs;
use crate::saving::lock;
use crate::terminal::print;

/// An origin whose pages may call.
#[derive(Clone, Debug)]
pub enum AllowedOrigin {
    All,
    One(Origin),
}

impl FromStr for AllowedOrigin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        if text == "*" { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

/// The port at which dfx looks for a local network.
pub const PORT: u16 = 4943;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Canisters to install: names as of `stablebench module`, or paths of wasm files, or NAME=PATH.
    #[arg(default_value = "bench", value_name = "CANISTER")]
    pub canisters: Vec<String>,
    /// The port; 0 for any that is free.
    #[arg(long, default_value_t = PORT)]
    pub port: u16,
    /// Also serve PocketIC clients that take a URL, at this port; 0 for any that is free. Their
    /// instances are separate from the canisters here.
    #[arg(long, value_name = "PORT")]
    pub pocket_ic: Option<u16>,
    /// The address to listen at. Programs that can reach it can call, create and change canisters.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub listen: IpAddr,
    /// Load the canisters from this file if it exists, and save all there, also those that clients
    /// create: at the beginning, at the end, and in between.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Interval of saves to --state, if anything has changed.
    #[arg(
        long,
        default_value_t = 60,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    pub save_every: u64,
    /// Principal that may manage the canisters, in addition to the anonymous one.
    #[arg(long = "controller", value_name = "PRINCIPAL")]
    pub controllers: Vec<Principal>,
    /// Allow calls by pages of this origin, such as https://example.com, and calls to the server by
    /// that host's name; * for all. Without it, only pages of this machine may call.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub origins: Vec<AllowedOrigin>,
    #[command(flatten)]
    pub install: InstallArgs,
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

/// The longest time until Ctrl-C is noticed.
const TICK: Duration = Duration::from_millis(50);
/// The time limit for pending requests and calls after Ctrl-C: more than a synchronous call takes.
const GRACE: Duration = Duration::from_secs(15);
/// The time that a running message has after that.
const LAST: Duration = Duration::from_secs(10);
/// The interval of reducing the cache to its limit.
const SWEEP: Duration = Duration::from_secs(1);

/// Serves until Ctrl-C.
pub fn serve(args: &ServeArgs, output: &Output) -> Result<()> {
    // The file is checked before anything is served.
    let every = Duration::from_secs(args.save_every);
    let mut state = match &args.state {
        Some(path) => Some(SavedCanisters::take(path, every, &output.progress)?),
        None => None,
    };
    if let (Some(state), Some(memory)) = (&state, &args.environment.stable_memory)
        && state.path().exists()
    {
        bail!(
            "{} contains canisters, whose stable memory {} would replace at every start; leave out \
             --stable-memory, or choose another --state",
            state.path().display(),
            memory.display()
        );
    }
    let environment = Environment::read(&args.environment)?;
    let listener = bind(args)?;
    let pocket_ic = pocket_ic_server(args, &output.progress)?;
    let (replica, cache) = embedded(&args.replica, &output.progress)?;
    let saved_at = state.as_ref().map(SavedCanisters::path).filter(|path| path.exists());
    let (mut subnet, listed) = match saved_at {
        Some(path) => saved(path, &replica, &output.progress)?,
        None => (Subnet::new(replica.inner()), Vec::new()),
    };
    let (mut served, mut names, mut new) = (Vec::new(), Names::default(), Vec::new());
    for (at, word) in args.canisters.iter().enumerate() {
        let (chosen, module) = named(word)?;
        let built = canisters::find(module, &output.progress)?;
        let name = chosen.map_or_else(|| built.name.clone(), str::to_owned);
        let id = match listed.get(at) {
            Some(id) => {
                continued(&mut subnet, id, &built, args, &environment)?;
                *id
            }
            None => {
                let id = subnet.next_id().context("no canister id is left")?;
                let other = (at > 0).then(|| word.clone());
                new.push(New { id, name: name.clone(), wasm: built.wasm, other });
                id
            }
        };
        names.add(&name, id);
        served.push((name, id));
    }
    let arguments = Arguments::of(&args.install, &names, &new)?;
    for new in new {
        let step = output.progress.spinner(&format!("installing {}", new.name));
        installed(&mut subnet, &new, args, &arguments, &environment, &replica)?;
        step.done("");
    }
    if let Some(state) = &mut state {
        let ids = served.iter().map(|(_, id)| *id).chain(listed.iter().skip(served.len()).copied());
        state.set_listed(&ids.collect::<Vec<_>>());
        if listed.len() >= served.len() {
            state.set_saved(&subnet);
        } else {
            // A full disk is reported now, and not at the end.
            let saved = state.save(&subnet);
            saved.map_err(|error| anyhow!("{error:#}; make room, or choose another --state"))?;
        }
    }
    let server = Server::of(subnet);
    // From here on Ctrl-C stops the server in order.
    interrupt::listen()?;
    let of_pocket_ic = pocket_ic.as_ref().map(|(_, listener)| listener.address());
    print(&announced(listener.address(), of_pocket_ic, &server, &served))?;
    output.progress.note("Ctrl-C stops the server");
    let keeper = state.map(|state| Keeper::start(state, server.clone())).transpose()?;
    let answered = answer(&server, listener, pocket_ic, cache.as_ref());
    let ended = answered.as_ref().map_or_else(|_| Instant::now(), |ended| *ended);
    let deadline = ended + GRACE;
    let finished = server.finish(deadline, deadline + LAST);
    let (subnet, undone) = finished.with_context(|| match &args.state {
        Some(path) => format!("{} has what was saved before", path.display()),
        None => "the server cannot be stopped in order".to_owned(),
    })?;
    if undone > 0 {
        let calls = if undone == 1 { "1 call was" } else { &format!("{undone} calls were") };
        output.progress.note(&format!("{calls} not finished in time, and dropped"));
    }
    if let Some(keeper) = keeper {
        keeper.stop()?.finish(&subnet)?;
    }
    answered.map(drop)
}

/// Returns a server for PocketIC clients and its socket, if one is wanted.
fn pocket_ic_server(args: &ServeArgs, progress: &Progress) -> Result<Option<(PocketIc, Listener)>> {
    let Some(port) = args.pocket_ic else { return Ok(None) };
    let listener = pocket_ic::bind(SocketAddr::new(args.listen, port), access(args))?;
    let rules = args.replica.rules.unwrap_or_default();
    let served = replicas(rules, &args.replica.cache, progress)?;
    Ok(Some((PocketIc::new(pocket_ic::version(None)?, served.replicas), listener)))
}

fn bind(args: &ServeArgs) -> Result<Listener> {
    let address = SocketAddr::new(args.listen, args.port);
    Listener::bind(address, access(args)).with_context(|| {
        format!("cannot listen at {address}; choose another --port, or 0 for any that is free")
    })
}

/// Returns the URL for clients on this machine.
fn url(address: SocketAddr) -> String {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(host, address.port()))
}

fn controllers(args: &ServeArgs) -> Vec<Principal> {
    let mut controllers = vec![Principal::anonymous()];
    controllers.extend(args.controllers.iter().filter(|id| **id != Principal::anonymous()));
    controllers
}

/// Prepares a canister that was saved.
fn continued(
    subnet: &mut Subnet,
    id: &Principal,
    built: &Built,
    args: &ServeArgs,
    environment: &Environment,
) -> Result<()> {
    let path = args.state.as_deref().unwrap_or(Path::new("")).display();
    let Some(canister) = subnet.canister_mut(id) else {
        bail!("canister {id} in {path} was deleted; choose another --state");
    };
    let saved = canister.module().map(|module| hex::encode(module.hash()));
    if saved != Some(canisters::hash(&built.wasm)) {
        bail!(
            "{path} contains a canister with another module than {}; serve that module, or choose \
             another --state",
            built.name
        );
    }
    let saved = canister.settings().clone();
    let mut controllers = saved.controllers;
    let known = controllers.len();
    for controller in self::controllers(args) {
        if !controllers.contains(&controller) {
            controllers.push(controller);
        }
    }
    // A change makes a new version of the canister, which code can see.
    if controllers.len() > known {
        canister.configure(controllers, saved.heap_limit);
    }
    environment.set_variables(canister)
}

/// Installs a new canister.
fn installed(
    subnet: &mut Subnet,
    new: &New,
    args: &ServeArgs,
    arguments: &Arguments,
    environment: &Environment,
    replica: &Embedded,
) -> Result<()> {
    let usual = replica.inner().create_canister()?.settings().clone();
    let settings = Settings { id: new.id, controllers: controllers(args), ..usual };
    let mut canister = Canister::new(settings)?;
    environment.set_variables(&mut canister)?;
    let name = &new.name;
    new.install(&mut canister, arguments, &args.install, replica)
        .with_context(|| format!("{name} cannot be installed"))?;
    environment.set_stable_memory(&mut canister)?;
    subnet.add(canister).with_context(|| format!("{name} cannot be served"))?;
    Ok(())
}

/// The text that `serve` prints at its start: its address, its canisters, and commands to call them.
fn announced(
    address: SocketAddr,
    pocket_ic: Option<SocketAddr>,
    server: &Server,
    served: &[(String, Principal)],
) -> String {
    let url = url(address);
    let mut text = format!("URL       {url}\n");
    if let Some(address) = pocket_ic {
        let _ = writeln!(text, "PocketIC  {}", self::url(address));
    }
    let websites = server.websites();
    let others = websites.iter().filter(|id| served.iter().all(|(_, served)| served != *id));
    let others = others.map(|id| ("saved", id));
    for (name, id) in served.iter().map(|(name, id)| (name.as_str(), id)).chain(others) {
        let _ = write!(text, "{name:<9} {id}");
        if websites.contains(id) {
            let _ = write!(text, "  {}", website(address, id));
        }
        text.push('\n');
    }
    for (name, id) in served {
        let call = match canisters::Source::named(name) {
            Some(source) if source.has_sqlite() => "add_users_sqlite '(0, 10, 1000)'",
            Some(_) => "describe '()'",
            None => "METHOD '(…)'",
        };
        let _ = write!(
            text,
            "\nicp canister call {id} {call} -n {url} -k fetch\n\
             dfx canister call --network {url} --identity anonymous {id} {call}\n"
        );
    }
    let _ = writeln!(text, "\nroot key  {}", hex::encode(server.root_key()));
    text
}

/// Returns the address of a canister for browsers, which resolve `localhost` by themselves.
fn website(address: SocketAddr, id: &Principal) -> String {
    let ip = address.ip();
    let is_localhost = ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST;
    match is_localhost || ip.is_unspecified() {
        true => format!("http://{id}.localhost:{}/", address.port()),
        false => format!("{}/?canisterId={id}", url(address)),
    }
}

fn access(args: &ServeArgs) -> Access {
    let mut access = Access::default();
    for allowed in &args.origins {
        match allowed {
            AllowedOrigin::All => access.open = true,
            AllowedOrigin::One(origin) => access.origins.push(origin.clone()),
        }
    }
    access
}

/// Answers requests until Ctrl-C, and returns the time of that.
fn answer(
    server: &Server,
    listener: Listener,
    pocket_ic: Option<(PocketIc, Listener)>,
    cache: Option<&Cache>,
) -> Result<Instant> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads that answer requests")?;
    let mut ended = Instant::now();
    let served: Result<()> = runtime.block_on(async {
        if let Some((server, listener)) = pocket_ic {
            // It ends with the runtime.
            tokio::spawn(async move {
                let _ = server.serve(listener, std::future::pending()).await;
            });
        }
        let (stop, stopped) = oneshot::channel();
        let watch = async {
            let mut swept = Instant::now();
            while interrupt::check().is_ok() {
                tokio::time::sleep(TICK).await;
                if let Some(cache) = cache
                    && swept.elapsed() > SWEEP
                {
                    cache.shrink();
                    swept = Instant::now();
                }
            }
            ended = Instant::now();
            // The receiver may be gone.
            let _ = stop.send(());
            tokio::time::sleep(GRACE).await;
        };
        let stopped = async {
            let _ = stopped.await;
        };
        tokio::select! {
            served = server.serve(listener, stopped) => Ok(served?),
            // A client may neither send anything nor disconnect.
            () = watch => Ok(()),
        }
    });
    // Pending work is not awaited.
    runtime.shutdown_background();
    served?;
    Ok(ended)
}

/// The interval of checks for changes.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The minimum ratio of the time between saves to the time of a save: large canisters are saved less
/// often.
const SHARE: u32 = 20;

/// The versions of canisters.
type Versions = BTreeMap<Principal, u64>;

/// A file to which this process saves its canisters.
struct SavedCanisters {
    path: PathBuf,
    every: Duration,
    progress: Progress,
    /// The canisters of the command line.
    listed: Vec<Principal>,
    /// The versions of the canisters in the file.
    saved: Option<Versions>,
    /// The time of the last attempt to save, and its duration.
    tried: Instant,
    took: Duration,
    failed: bool,
    _lock: StateLock,
}

impl SavedCanisters {
    /// Locks the file for this process.
    ///
    /// # Errors
    ///
    /// If it is locked by another process, or cannot be saved.
    fn take(path: &Path, every: Duration, progress: &Progress) -> Result<Self> {
        let lock = lock(path, "--state")?;
        Ok(Self {
            path: path.to_owned(),
            every,
            progress: progress.clone(),
            listed: Vec::new(),
            saved: None,
            tried: Instant::now(),
            took: Duration::ZERO,
            failed: false,
            _lock: lock,
        })
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the canisters of the command line.
    fn set_listed(&mut self, listed: &[Principal]) {
        self.listed = listed.to_vec();
    }

    /// Records that the file contains the canisters in their current versions.
    fn set_saved(&mut self, subnet: &Subnet) {
        self.saved = Some(versions(subnet));
    }

    /// Saves the canisters.
    fn save(&mut self, subnet: &Subnet) -> Result<()> {
        self.tried = Instant::now();
        let step = self.progress.spinner(&format!("saving {}", self.path.display()));
        let saved = subnet.save(&self.path, &note(&self.listed));
        step.done("");
        self.took = self.tried.elapsed();
        saved.with_context(|| format!("cannot save the canisters to {}", self.path.display()))?;
        self.set_saved(subnet);
        Ok(())
    }

    /// Saves the canisters for the last time.
    ///
    /// # Errors
    ///
    /// If that fails; the message reports what is lost.
    fn finish(mut self, subnet: &Subnet) -> Result<()> {
        let before = self.saved.clone();
        self.save(subnet).map_err(|error| match before {
            Some(before) => anyhow!(
                "{error:#}; the file is whole, but without the last {} of the canisters: make room \
                 before the next start, or choose another --state",
                changes(&before, &versions(subnet))
            ),
            None => error,
        })?;
        self.progress.note(&format!("saved to {}", self.path.display()));
        Ok(())
    }

    fn is_due(&self) -> bool {
        self.tried.elapsed() >= self.every.max(self.took * SHARE)
    }

    /// Saves the canisters if one has changed and a save is due. A failure is reported once, and saving
    /// is tried again later.
    fn keep_up(&mut self, server: &Server) {
        if !self.is_due() || self.saved.as_ref() == Some(&server.versions()) {
            return;
        }
        match self.save(&server.fork()) {
            Ok(()) if self.failed => {
                self.failed = false;
                self.progress.note(&format!("saved to {} again", self.path.display()));
            }
            Ok(()) => {}
            Err(error) if !self.failed => {
                self.failed = true;
                self.progress.note(&format!(
                    "{error:#}; what was saved there before is whole, and saving is tried again"
                ));
            }
            Err(_) => {}
        }
    }
}

/// A thread that saves the canisters while they are served.
struct Keeper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<SavedCanisters>,
}

impl Keeper {
    fn start(mut state: SavedCanisters, server: Server) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let keep = move || {
            while !stopped.load(Ordering::Relaxed) {
                state.keep_up(&server);
                thread::park_timeout(CHECK_INTERVAL);
            }
            state
        };
        let thread = thread::Builder::new()
            .name("saving".into())
            .spawn(keep)
            .context("cannot start a thread that saves the canisters")?;
        Ok(Self { stop, thread })
    }

    /// Stops after the current save.
    fn stop(self) -> Result<SavedCanisters> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| anyhow!("saving the canisters failed; this is a bug"))
    }
}

fn versions(subnet: &Subnet) -> Versions {
    subnet.canisters().map(|canister| (canister.id(), canister.version())).collect()
}

/// The number of changes after some versions, as text. Deleting a canister is a change.
fn changes(before: &Versions, after: &Versions) -> String {
    let since = |(id, version): (&Principal, &u64)| match before.get(id) {
        Some(before) => version.saturating_sub(*before),
        None => *version + 1,
    };
    let deleted = before.keys().filter(|id| !after.contains_key(*id)).count() as u64;
    match after.iter().map(since).sum::<u64>() + deleted {
        1 => "change".to_owned(),
        count => format!("{count} changes"),
    }
}
