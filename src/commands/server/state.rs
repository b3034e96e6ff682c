//! The file of `--state`: its lock, and when the canister is saved there.
//!
//! ```text
//!   take ── lock ──→ load, or install and save ──→ keep: save changes ──→ save at the end
//! ```
//!
//! A save replaces the file as a whole. One that fails leaves the last good file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use stablebench_endpoint::Endpoint;
use stablebench_replica::{Canister, Principal, StateLock};

use crate::commands::lock::lock;
use crate::progress::Progress;

/// The interval of checks for changes.
const TICK: Duration = Duration::from_millis(100);
/// The minimum ratio of the time between saves to the time of a save: a large canister is saved
/// less often.
const SHARE: u32 = 20;

/// A file to which this process saves one canister.
pub struct State {
    path: PathBuf,
    every: Duration,
    progress: Progress,
    /// The canister's version in the file.
    saved: Option<u64>,
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

    /// Records that the file contains the canister in its current version.
    pub fn set_saved(&mut self, canister: &Canister) {
        self.saved = Some(canister.version());
    }

    /// Saves the canister.
    pub fn save(&mut self, canister: &Canister) -> Result<()> {
        self.tried = Instant::now();
        let saved = canister.save(&self.path);
        self.took = self.tried.elapsed();
        saved.with_context(|| format!("cannot save the canister to {}", self.path.display()))?;
        self.set_saved(canister);
        Ok(())
    }

    /// Saves the canister for the last time.
    ///
    /// # Errors
    ///
    /// If that fails; the message reports what is lost.
    pub fn finish(mut self, canisters: &[Canister], id: &Principal) -> Result<()> {
        let path = self.path.clone();
        let Some(canister) = canisters.iter().find(|canister| canister.id() == *id) else {
            bail!("canister {id} was deleted; {} is unchanged", path.display());
        };
        let before = self.saved;
        self.save(canister).map_err(|error| match before {
            Some(version) => anyhow!(
                "{error:#}; the file is whole, but without the last {} of the canister: make room \
                 before the next start, or choose another --state",
                changes(canister.version().saturating_sub(version))
            ),
            None => error,
        })?;
        self.progress.note(&format!("saved to {}", path.display()));
        Ok(())
    }

    fn is_due(&self, version: u64) -> bool {
        self.saved != Some(version) && self.tried.elapsed() >= self.every.max(self.took * SHARE)
    }

    /// Saves the canister if it has changed and a save is due. A failure is reported once, and saving
    /// is tried again later.
    fn keep_up(&mut self, endpoint: &Endpoint, id: &Principal) {
        if !endpoint.version(id).is_some_and(|version| self.is_due(version)) {
            return;
        }
        let Some(canister) = endpoint.copy(id) else {
            return;
        };
        match self.save(&canister) {
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

/// A thread that saves the canister while it is served.
pub struct Keeper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<State>,
}

impl Keeper {
    pub fn start(mut state: State, endpoint: Endpoint, id: Principal) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let keep = move || {
            while !stopped.load(Ordering::Relaxed) {
                state.keep_up(&endpoint, &id);
                thread::park_timeout(TICK);
            }
            state
        };
        let thread = thread::Builder::new()
            .name("saving".into())
            .spawn(keep)
            .context("cannot start a thread that saves the canister")?;
        Ok(Self { stop, thread })
    }

    /// Stops after the current save.
    pub fn stop(self) -> Result<State> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| anyhow!("saving the canister failed; this is a bug"))
    }
}

fn changes(count: u64) -> String {
    if count == 1 { "change".to_owned() } else { format!("{count} changes") }
}
