//! The file of `--state`: its lock, and when the canisters are saved there.
//!
//! ```text
//!   take ── lock ──→ load, or install and save ──→ keep: save changes ──→ save at the end
//! ```
//!
//! A save replaces the file as a whole. One that fails leaves the last good file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Principal, StateLock};
use stablebench_server::Server;

use crate::commands::subnet::note;
use crate::progress::Progress;
use crate::saving::lock;

/// The interval of checks for changes.
const TICK: Duration = Duration::from_millis(100);
/// The minimum ratio of the time between saves to the time of a save: large canisters are saved less
/// often.
const SHARE: u32 = 20;

/// The versions of canisters.
type Versions = BTreeMap<Principal, u64>;

/// A file to which this process saves its canisters.
pub struct State {
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

impl State {
    /// Locks the file for this process.
    ///
    /// # Errors
    ///
    /// If it is locked by another process, or cannot be saved.
    pub fn take(path: &Path, every: Duration, progress: &Progress) -> Result<Self> {
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

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the canisters of the command line.
    pub fn set_listed(&mut self, listed: &[Principal]) {
        self.listed = listed.to_vec();
    }

    /// Records that the file contains the canisters in their current versions.
    pub fn set_saved(&mut self, subnet: &Subnet) {
        self.saved = Some(versions(subnet));
    }

    /// Saves the canisters.
    pub fn save(&mut self, subnet: &Subnet) -> Result<()> {
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
    pub fn finish(mut self, subnet: &Subnet) -> Result<()> {
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
pub struct Keeper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<State>,
}

impl Keeper {
    pub fn start(mut state: State, server: Server) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let keep = move || {
            while !stopped.load(Ordering::Relaxed) {
                state.keep_up(&server);
                thread::park_timeout(TICK);
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
    pub fn stop(self) -> Result<State> {
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
