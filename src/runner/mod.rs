//! Runs a plan: populates canisters, forks them, measures and checks.
//!
//! ```text
//!   Runner ── keeps results, hands canisters to threads
//!     ├─ store.rs      one canister of the users suite: populate, then its cases
//!     │   ├─ case.rs       one fork: state, work, check
//!     │   ├─ capacity.rs   forks until a message is full
//!     │   ├─ content.rs    filling, churning, and reading back
//!     │   └─ seen.rs       what was read back already
//!     ├─ lane.rs       one canister of another suite: its steps in order
//!     │   └─ job.rs        one step: messages, and what they must find
//!     ├─ staged.rs     a measured message, and what stages its work
//!     └─ earlier.rs    what earlier runs have populated and read back
//! ```

mod buckets;
mod capacity;
mod case;
mod content;
mod earlier;
mod job;
mod lane;
mod seen;
mod spread;
mod staged;
mod store;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use stablebench_protocol::{Description, Error};

use crate::cache::Cache;
use crate::canisters::Built;
use crate::progress::Progress;
use crate::replica::{Reject, Replica, Unmeasured, query};
use crate::results::{Case, Column, Held, Outcome, Results, RunFile, Store};
use crate::suites::outline::{Outline, StoreKey};

/// Stack of a thread that runs canisters.
const STACK: usize = 32 << 20;
/// Results are saved after each case, but not more often than this.
const SAVE_EVERY: Duration = Duration::from_millis(250);

/// What every canister's run shares.
pub struct Runner<'a> {
    replica: &'a dyn Replica,
    canisters: &'a [Built],
    outline: &'a Outline,
    progress: &'a Progress,
    cache: Option<&'a Cache>,
    found: Mutex<Found>,
    /// Places of cases in the tables: section, name, column.
    order: BTreeMap<[String; 3], usize>,
    /// Most rows that one message may be about.
    max_rows: u64,
}

struct Found {
    results: Results,
    /// Where they are saved; nowhere where they are not kept.
    out: Option<RunFile>,
    saved: Option<Instant>,
}

impl<'a> Runner<'a> {
    /// Prepares a run; each canister is installed once to learn what it is. `results`
    /// may hold what an earlier run has found.
    pub fn new(
        replica: &'a dyn Replica,
        canisters: &'a [Built],
        outline: &'a Outline,
        progress: &'a Progress,
        out: Option<RunFile>,
        mut results: Results,
    ) -> Result<Self> {
        let mut max_rows = u64::MAX;
        for (built, info) in canisters.iter().zip(&mut results.canisters) {
            let mut fresh = replica.install(&built.wasm)?;
            let description: Description = query(&mut fresh, "describe", ())?;
            info.crates = description.crates;
            info.sqlite = description.sqlite;
            max_rows = max_rows.min(description.max_rows);
            if results.harness.iter().all(|empty| empty.column != built.name) {
                results.harness.push(staged::empty(&mut fresh, &built.name)?);
            }
        }
        Ok(Self {
            replica,
            canisters,
            outline,
            progress,
            cache: None,
            found: Mutex::new(Found { results, out, saved: None }),
            order: order(outline),
            max_rows,
        })
    }

    /// The same run, with what earlier ones have left.
    #[must_use]
    pub fn with_cache(self, cache: Option<&'a Cache>) -> Self {
        Self { cache, ..self }
    }

    /// The module of the canister that a column is measured in.
    fn wasm(&self, column: &Column) -> Result<&'a [u8]> {
        let built = self.canisters.iter().find(|built| built.name == column.canister);
        Ok(&built.with_context(|| format!("no canister {} was built", column.canister))?.wasm)
    }

    /// What was found so far.
    pub fn results(&self) -> Results {
        lock(&self.found).results.clone()
    }

    /// The file that results are saved in, and what is there.
    pub fn file(self) -> Option<RunFile> {
        self.found.into_inner().unwrap_or_else(PoisonError::into_inner).out
    }

    /// Measures all of `canisters`, `jobs` of them side by side. What was measured is saved,
    /// whatever happens.
    pub fn run<T: Sync>(
        &self,
        jobs: usize,
        canisters: &[T],
        measure: impl Fn(&Self, &T) -> Result<()> + Sync,
    ) -> Result<()> {
        let waiting: Mutex<VecDeque<&T>> = Mutex::new(canisters.iter().collect());
        let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        let spawned = std::thread::scope(|scope| -> Result<()> {
            for _ in 0..jobs.min(canisters.len()) {
                std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
                    while lock(&failed).is_none() {
                        let Some(canister) = lock(&waiting).pop_front() else {
                            break;
                        };
                        if let Err(error) = measure(self, canister) {
                            lock(&failed).get_or_insert(error);
                        }
                    }
                })?;
            }
            Ok(())
        });
        let failed = spawned.err().or_else(|| lock(&failed).take());
        let mut found = lock(&self.found);
        let Found { results, out, .. } = &mut *found;
        let saved = out.as_mut().map_or(Ok(()), |out| out.finish(results, failed.is_none()));
        failed.map_or(saved, Err)
    }

    /// Whether an earlier run has measured it; what failed then is tried again.
    fn is_measured(&self, section: &str, name: &str, column: &str) -> bool {
        let found = lock(&self.found);
        let known = found.results.case(section, name, column);
        known.is_some_and(|case| !matches!(case.outcome, Outcome::Failed { .. }))
    }

    /// What an earlier run has found in a store.
    fn known(&self, store: &StoreKey) -> Option<Held> {
        let found = lock(&self.found);
        let known = found.results.stores.iter().find(|known| store.is_of(known));
        known.and_then(|known| known.outcome.measured()).cloned()
    }

    fn wall_milliseconds(&self, began: Instant) -> Option<u64> {
        let milliseconds = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.outline.wall_time.then(milliseconds)
    }

    /// Adds to the results, in the outline's order, or replaces what was found before.
    fn keep_store(&self, store: Store) -> Result<()> {
        self.keep(|results| {
            let place = |of: &Store| self.outline.stores.iter().position(|key| key.is_of(of));
            let at = place(&store);
            results.stores.retain(|other| place(other) != at);
            results.stores.push(store);
            results.stores.sort_by_key(place);
        })
    }

    fn keep_case(&self, case: Case) -> Result<()> {
        let place = |case: &Case| {
            let identity = [&case.section, &case.name, &case.column].map(Clone::clone);
            self.order.get(&identity).copied().unwrap_or(usize::MAX)
        };
        self.keep(|results| {
            let at = place(&case);
            match results.cases.binary_search_by_key(&at, place) {
                Ok(found) => results.cases[found] = case,
                Err(between) => results.cases.insert(between, case),
            }
        })
    }

    fn keep(&self, change: impl FnOnce(&mut Results)) -> Result<()> {
        let mut found = lock(&self.found);
        let Found { results, out, saved } = &mut *found;
        change(results);
        let due = saved.is_none_or(|saved| saved.elapsed() >= SAVE_EVERY);
        if let Some(out) = out.as_mut().filter(|_| due) {
            out.save(results)?;
            *saved = Some(Instant::now());
        }
        Ok(())
    }
}

/// Where each case stands: row by row, in the columns' order.
fn order(outline: &Outline) -> BTreeMap<[String; 3], usize> {
    let mut places = BTreeMap::new();
    for (section, name) in &outline.rows {
        for column in &outline.columns {
            let place = places.len();
            places.insert([section.clone(), name.clone(), column.key.clone()], place);
        }
    }
    places
}

/// What an error means for what was to be measured: the canister's or the replica's
/// refusal is a result, anything else ends the run.
fn refused<T>(error: anyhow::Error) -> Result<Outcome<T>> {
    match error.downcast_ref::<Error>() {
        Some(
            refusal @ (Error::Unsupported { .. }
            | Error::TooManyRows { .. }
            | Error::SettingNotTaken { reason: Some(_), .. }),
        ) => Ok(Outcome::NotApplicable { reason: refusal.to_string() }),
        Some(_) => Ok(Outcome::Failed { reason: format!("{error:#}") }),
        None if let Some(Unmeasured::NotApplicable(reason)) = error.downcast_ref() => {
            Ok(Outcome::NotApplicable { reason: reason.clone() })
        }
        None if error.is::<Reject>() || error.is::<Unmeasured>() => {
            Ok(Outcome::Failed { reason: format!("{error:#}") })
        }
        None => Err(error),
    }
}

/// A thread that failed has reported that; what it left is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
