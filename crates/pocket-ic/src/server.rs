//! The process: found, started, watched, ended.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Subnet;
use crate::client;
use crate::download::downloaded;
use crate::error::Error;
use crate::guard::guarded;
use crate::instance::Instance;
use crate::version::{Generation, Version};

/// The environment variable that names the server.
pub const BINARY: &str = "POCKET_IC_BIN";

/// A server that does not listen by then has not started.
const START: Duration = Duration::from_secs(60);
/// A server that nobody asks anything ends by itself after as many seconds, should
/// this process be killed before it can end it.
const IDLE_SECONDS: &str = "900";
/// A server gets this long to end by itself.
const END: Duration = Duration::from_secs(10);
/// The last lines of what a server printed that an error shows.
const LOG_LINES: usize = 5;

/// A PocketIC server. It ends when the last [`Instance`] and this are dropped.
pub struct Server {
    child: Mutex<Child>,
    url: String,
    version: Version,
    generation: Generation,
    /// Where it keeps everything, and what it printed.
    directory: TempDir,
}

impl Server {
    /// Starts the server that `POCKET_IC_BIN` names, else one that the newest client
    /// downloads.
    ///
    /// # Errors
    ///
    /// If there is none, no client fits it, or it does not start.
    pub fn start() -> Result<Arc<Self>, Error> {
        let directory = tempfile::Builder::new().prefix("pocket-ic-").tempdir()?;
        let path = match env::var_os(BINARY) {
            Some(path) => PathBuf::from(path),
            None => downloaded()?,
        };
        let (version, generation) = asked(&path)?;
        let (child, url) = started(&path, directory.path())?;
        let child = Mutex::new(child);
        Ok(Arc::new(Self { child, url, version, generation, directory }))
    }

    /// The server's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// A new instance: one subnet without canisters.
    ///
    /// # Errors
    ///
    /// If the server ended or would not make one.
    pub fn instance(self: &Arc<Self>, subnet: Subnet) -> Result<Instance, Error> {
        let client = self.ask("the creation of an instance", || {
            client::connect(self.generation, &self.url, subnet)
        })??;
        Ok(Instance::new(Arc::clone(self), client))
    }

    /// Asks the server something through a client.
    pub(crate) fn ask<T>(&self, what: &str, request: impl FnOnce() -> T) -> Result<T, Error> {
        guarded(request).map_err(|message| {
            // A connection breaks a little before the process is gone.
            let ended = wait(&mut self.child(), Duration::from_millis(500));
            let during = what.to_owned();
            match ended {
                Some(status) => Error::Died { during, status: status.to_string(), log: self.log() },
                None => Error::Failed { during, message },
            }
        })
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> String {
        last_lines(&log_file(self.directory.path()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child());
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url).field("version", &self.version).finish()
    }
}

/// The version of the server at `path`, and which client it needs.
fn asked(path: &Path) -> Result<(Version, Generation), Error> {
    let asked = Command::new(path)
        .arg("--version")
        .output()
        .map_err(|cause| Error::NotExecutable { path: path.to_owned(), cause })?;
    let said = String::from_utf8_lossy(&asked.stdout);
    let Some(version) = Version::parse(&said) else {
        let stderr = String::from_utf8_lossy(&asked.stderr);
        let mut lines = said.lines().chain(stderr.lines());
        let said = lines.find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        return Err(Error::NotAServer { path: path.to_owned(), said });
    };
    match version.generation() {
        Some(generation) => Ok((version, generation)),
        None => Err(Error::Unsupported { path: path.to_owned(), version }),
    }
}

/// Starts the server at `path`, which writes into `directory` alone. Answers where it
/// listens.
fn started(path: &Path, directory: &Path) -> Result<(Child, String), Error> {
    let port_file = directory.join("port");
    let log = fs::File::create(log_file(directory))?;
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
    // Ctrl-C is for us; what runs on the server must be allowed to finish.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child =
        command.spawn().map_err(|cause| Error::NotExecutable { path: path.to_owned(), cause })?;
    match listening(&mut child, &port_file) {
        Ok(port) => Ok((child, format!("http://localhost:{port}/"))),
        Err(reason) => {
            end(&mut child);
            let log = last_lines(&log_file(directory));
            Err(Error::NotStarted { path: path.to_owned(), reason, log })
        }
    }
}

/// Waits until the server has written the port on which it listens.
fn listening(child: &mut Child, port_file: &Path) -> Result<u16, String> {
    let began = Instant::now();
    while began.elapsed() < START {
        if let Ok(text) = fs::read_to_string(port_file)
            && let Some(port) = text.strip_suffix('\n')
        {
            return port.parse().map_err(|_| format!("it named the port {port:?}"));
        }
        if let Some(status) = wait(child, Duration::from_millis(20)) {
            return Err(format!("it ended with {status}"));
        }
    }
    Err(format!("it was not listening after {} s", START.as_secs()))
}

/// How the process ended, if it has within `time`.
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

/// Asks the process to end, then makes it.
pub(crate) fn end(child: &mut Child) {
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let (Some(id), Ok(None)) = (id, child.try_wait()) {
        // Both fail only if the process is gone, which is what is wanted.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        if wait(child, END).is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn log_file(directory: &Path) -> PathBuf {
    directory.join("log")
}

/// The end of a server's output, on lines of its own.
fn last_lines(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    if last.is_empty() { String::new() } else { format!("; it printed\n  {}", last.join("\n  ")) }
}
