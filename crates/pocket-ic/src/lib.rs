//! Runs canisters on a PocketIC server: the real replica's code on this machine.
//!
//! The `pocket-ic` clients panic when something goes wrong, and each works only with servers of
//! its own major version. This crate puts one set of types in front of the clients of two
//! generations. Every failure is an [`Error`] that names the next step.
//!
//! ```text
//!   Server      a process, named by POCKET_IC_BIN or downloaded
//!    └ Instance   one subnet; messages execute round by round
//!       └ client    the generation that fits the server's version
//! ```
//!
//! ```no_run
//! use stablebench_pocket_ic::{Instance, Mode, Principal, Server, Subnet};
//!
//! let instance = Instance::create(&Server::start()?, Subnet::Application)?;
//! let caller = Principal::anonymous();
//! let canister = instance.create_canister(caller)?;
//! let wasm = std::fs::read("canister.wasm")?;
//! instance.install(canister, caller, Mode::Install, &wasm, &[])??;
//! let reply = instance.update(canister, caller, "hello", b"DIDL\0\0")??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Here is the server process: find, start, monitor and stop it, and its failures, as opposed to
//! rejects by a canister.
//!
//! | module | purpose |
//! |---|---|
//! | `instance` | messages, rounds, balances, code and snapshots |
//! | `client` | versions, and the clients of both generations behind one trait |
//! | `detect` | detection of the rules by which a server charges |

#![forbid(unsafe_code)]

mod client;
mod detect;
mod instance;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fmt, fs, io};

use pocket_ic_16::{LATEST_SERVER_VERSION, StartServerParams, start_server};
use tempfile::TempDir;

use client::{Client, Generation, connect, guarded};

pub use candid::Principal;
pub use client::{HttpAnswer, Reject, Subnet, Version};
pub use detect::{Undetected, UnknownRules, detect};
pub use instance::{Instance, Mode, Snapshot};

/// The environment variable that names the server.
pub const BINARY: &str = "POCKET_IC_BIN";

/// The time limit for a server to start listening.
const START: Duration = Duration::from_secs(60);
/// Seconds without a request after which a server exits by itself, in case this process is killed
/// before it can stop the server.
const IDLE_SECONDS: &str = "900";
/// The time limit for a server to exit after SIGTERM.
const EXIT: Duration = Duration::from_secs(10);
/// The number of lines at the end of a server's output that an error shows.
const LOG_LINES: usize = 5;

/// A PocketIC server. It stops when this value and all of its instances are dropped.
pub struct Server {
    child: Mutex<Child>,
    url: String,
    version: Version,
    generation: Generation,
    /// Holds all files of the server, its output included.
    directory: TempDir,
}

impl Server {
    /// Starts the server that `POCKET_IC_BIN` names, or one that the newest client downloads.
    ///
    /// # Errors
    ///
    /// If there is no server, no client supports it, or it does not start.
    pub fn start() -> Result<Arc<Self>, Error> {
        let directory = tempfile::Builder::new().prefix("pocket-ic-").tempdir()?;
        let path = match env::var_os(BINARY) {
            Some(path) => PathBuf::from(path),
            None => download()?,
        };
        let (version, generation) = version(&path)?;
        let (child, url) = spawn(&path, directory.path())?;
        let child = Mutex::new(child);
        Ok(Arc::new(Self { child, url, version, generation, directory }))
    }

    /// Returns the server's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Connects a client to a new instance.
    pub(crate) fn connect(&self, subnet: Subnet) -> Result<Box<dyn Client>, Error> {
        let client = self.request("the creation of an instance", || {
            connect(self.generation, &self.url, subnet)
        })?;
        Ok(client?)
    }

    /// Sends a request through a client.
    pub(crate) fn request<T>(&self, name: &str, request: impl FnOnce() -> T) -> Result<T, Error> {
        guarded(request).map_err(|message| {
            // A connection breaks a little before the process is gone.
            let exited = wait(&mut self.child(), Duration::from_millis(500));
            let during = name.to_owned();
            match exited {
                Some(status) => Error::Died {
                    during,
                    status: status.to_string(),
                    log: last_lines(&log_file(self.directory.path())),
                },
                None => Error::Failed { during, message },
            }
        })
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.child());
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url).field("version", &self.version).finish()
    }
}

/// Returns the path of the server that the newest client downloads, unless it has already.
fn download() -> Result<PathBuf, Error> {
    // The path that the client uses.
    let folder = format!("pocket-ic-server-{LATEST_SERVER_VERSION}");
    let path = env::temp_dir().join(folder).join("pocket-ic");
    if !path.is_file() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let start = || runtime.block_on(start_server(StartServerParams::default()));
        let (mut child, _) = without_stdout(|| guarded(start))?.map_err(Error::NoServer)?;
        // The client starts what it downloads, but with our stdout. Start it again instead.
        stop(&mut child);
    }
    Ok(path)
}

/// Runs `work` with stdout discarded: the client reports downloads there, but stdout is for results.
fn without_stdout<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let stdout = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::stdio::dup2_stdout(fs::OpenOptions::new().write(true).open("/dev/null")?)?;
    let result = work();
    rustix::stdio::dup2_stdout(&stdout)?;
    Ok(result)
}

/// Returns the version of the server at `path`, and the generation of its client.
fn version(path: &Path) -> Result<(Version, Generation), Error> {
    let output = Command::new(path)
        .arg("--version")
        .output()
        .map_err(|cause| Error::NotExecutable { path: path.to_owned(), cause })?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let Some(version) = Version::parse(&stdout) else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let mut lines = stdout.lines().chain(stderr.lines());
        let printed = lines.find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        return Err(Error::NotAServer { path: path.to_owned(), printed });
    };
    match version.generation() {
        Some(generation) => Ok((version, generation)),
        None => Err(Error::Unsupported { path: path.to_owned(), version }),
    }
}

/// Starts the server at `path`, which writes only to `directory`. Returns the process and its URL.
fn spawn(path: &Path, directory: &Path) -> Result<(Child, String), Error> {
    let port_file = directory.join("port");
    let log = fs::File::create_new(log_file(directory))?;
    let mut command = Command::new(path);
    command
        .arg("--port-file")
        .arg(&port_file)
        .args(["--ttl", IDLE_SECONDS])
        .env("TMPDIR", directory)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    // Ctrl-C must reach this process only: messages that run on the server have to finish.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child =
        command.spawn().map_err(|cause| Error::NotExecutable { path: path.to_owned(), cause })?;
    match wait_for_port(&mut child, &port_file) {
        Ok(port) => Ok((child, format!("http://localhost:{port}/"))),
        Err(reason) => {
            stop(&mut child);
            let log = last_lines(&log_file(directory));
            Err(Error::NotStarted { path: path.to_owned(), reason, log })
        }
    }
}

/// Waits until the server has written the port on which it listens.
#[expect(clippy::disallowed_methods, reason = "the folder is this program's own")]
fn wait_for_port(child: &mut Child, port_file: &Path) -> Result<u16, String> {
    let began = Instant::now();
    while began.elapsed() < START {
        if let Ok(text) = fs::read_to_string(port_file)
            && let Some(port) = text.strip_suffix('\n')
        {
            return port.parse().map_err(|_| format!("it reported the port {port:?}"));
        }
        if let Some(status) = wait(child, Duration::from_millis(20)) {
            return Err(format!("it exited with {status}"));
        }
    }
    Err(format!("it did not listen within {} s", START.as_secs()))
}

/// Waits at most `time` for the process to exit, and returns its exit status.
fn wait(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if began.elapsed() < time => sleep(Duration::from_millis(10)),
            _ => return None,
        }
    }
}

/// Stops the process with SIGTERM, then with SIGKILL.
fn stop(child: &mut Child) {
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let (Some(id), Ok(None)) = (id, child.try_wait()) {
        // Both signals fail only if the process has exited already.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        if wait(child, EXIT).is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn log_file(directory: &Path) -> PathBuf {
    directory.join("log")
}

/// Returns the end of a server's output for an error message, on separate lines.
#[expect(clippy::disallowed_methods, reason = "the folder is this program's own")]
fn last_lines(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    if last.is_empty() { String::new() } else { format!("; it printed\n  {}", last.join("\n  ")) }
}

/// A failure of the server, not of the canister.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No server was named and none could be downloaded.
    #[error(
        "no PocketIC server: POCKET_IC_BIN is not set and the download failed ({0}); get a server \
         from https://github.com/dfinity/pocketic/releases and set POCKET_IC_BIN to its path"
    )]
    NoServer(String),
    /// The server cannot be executed.
    #[error(
        "the PocketIC server {path} cannot be executed ({cause}); set POCKET_IC_BIN to the path \
         of a server that is unpacked and executable (chmod +x)"
    )]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The file is not a PocketIC server.
    #[error(
        "{path} is not a PocketIC server: for --version it printed {printed:?}; set POCKET_IC_BIN \
         to a server, whose file must be named pocket-ic or pocket-ic-server"
    )]
    NotAServer {
        /// The file.
        path: PathBuf,
        /// The first line that it printed.
        printed: String,
    },
    /// No client supports the server.
    #[error(
        "the PocketIC server {path} has version {version}, but only clients for 10.x and 16.x are \
         built in; set POCKET_IC_BIN to a server of one of these versions"
    )]
    Unsupported {
        /// The server.
        path: PathBuf,
        /// Its version.
        version: Version,
    },
    /// The server exited or hung before it listened.
    #[error(
        "the PocketIC server {path} did not start: {reason}; start it by hand to see why, or set \
         POCKET_IC_BIN to another server{log}"
    )]
    NotStarted {
        /// The server.
        path: PathBuf,
        /// The exit status, or the time limit.
        reason: String,
        /// The end of its output.
        log: String,
    },
    /// The server exited while it was in use.
    #[error("the PocketIC server exited during {during} ({status}); run it again{log}")]
    Died {
        /// The request.
        during: String,
        /// The exit status.
        status: String,
        /// The end of its output.
        log: String,
    },
    /// The server runs, but its answer is not one that the client expects.
    #[error("the PocketIC server did not answer {during}; run it again: {message}")]
    Failed {
        /// The request.
        during: String,
        /// The client's message.
        message: String,
    },
    /// A message was not answered within the limit of rounds.
    #[error("{during} was not answered within {rounds} rounds; send less in one message")]
    Unanswered {
        /// The method.
        during: String,
        /// The number of rounds that were executed.
        rounds: u32,
    },
    /// A file or process operation on this machine failed.
    #[error("cannot prepare the PocketIC server: {0}")]
    Host(#[from] io::Error),
}
