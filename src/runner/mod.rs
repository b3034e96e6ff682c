//! Runs a plan: populates canisters, forks them, measures and checks.
//!
//! ```text
//!   Runner ── keeps results, hands fixtures to threads
//!     └─ fixture.rs      one canister: install, populate, its steps in order
//!         ├─ step.rs         one step: its messages, and what they must find
//!         │   ├─ wire.rs         the methods of our canisters
//!         │   ├─ spread.rs       the costs of single operations
//!         │   └─ ranges.rs       what a step can have changed
//!         └─ capacity.rs     upgrades, and forks until one fails or a message is full
//! ```

mod capacity;
mod fixture;
mod ranges;
mod spread;
mod step;
pub mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use stablebench_protocol::{Engine, Error};

use crate::cache::Cache;
use crate::canisters::Built;
use crate::interrupt;
use crate::progress::{Expected, Progress, Rest, earlier_duration, expected_seconds};
use crate::replica::ceiling::Ceiling;
use crate::replica::{Reject, Replica, Unmeasured};
use crate::results::{
    Case, ConfigurationInfo, FixtureInfo, Held, Measured, Outcome, Results, RunFile, State,
};
use stablebench_suite::plan::{Fixture, FixtureKey, Order, Plan};

/// Stack of a thread that runs canisters.
const STACK: usize = 32 << 20;
/// Runs that are expected to take this long say so at the beginning.
const LONG: Duration = Duration::from_secs(10);
/// Results are saved after each case, but not more often than this.
const SAVE_EVERY: Duration = Duration::from_millis(250);

/// The state that the fixtures of a run share.
pub struct Runner<'a> {
    replica: &'a dyn Replica,
    canisters: &'a [Built],
    plan: &'a Plan,
    /// The seed of all random choices.
    seed: u64,
    /// `true` if results contain wall times.
    wall_time: bool,
    progress: &'a Progress,
    cache: Option<&'a Cache>,
    missing: Missing,
    found: Mutex<Saving>,
    order: Order,
    /// The maximum number of rows in a message.
    max_rows: u64,
    /// The ceiling of messages without limits.
    ceiling: Ceiling,
}

/// The reasons why canisters have no module, by name.
pub type Missing = BTreeMap<String, String>;

struct Saving {
    results: Results,
    /// The file in which they are saved; `None` if they are not saved.
    out: Option<RunFile>,
    saved: Option<Instant>,
}

impl<'a> Runner<'a> {
    /// Prepares a run. Installs each canister once, to ask for its description. `results` may
    /// contain the results of the run to resume.
    pub fn new(
        replica: &'a dyn Replica,
        canisters: &'a [Built],
        plan: &'a Plan,
        progress: &'a Progress,
        out: Option<RunFile>,
        mut results: Results,
    ) -> Result<Self> {
        let mut max_rows = u64::MAX;
        for (built, info) in canisters.iter().zip(&mut results.canisters) {
            // The embedded replica shows what takes long itself.
            let step = (replica.identity().kind != "embedded")
                .then(|| progress.spinner(&format!("installing {}", built.name)));
            let mut fresh = replica.install(&built.wasm)?;
            if let Some(step) = step {
                step.done("");
            }
            let description = wire::describe(&mut *fresh)?;
            info.crates = built.programs.iter().cloned().chain(description.crates).collect();
            info.sqlite = description.sqlite;
            max_rows = max_rows.min(description.max_rows);
            if results.harness.iter().all(|empty| empty.configuration != built.name) {
                results.harness.push(empty(&mut *fresh, &built.name)?);
            }
        }
        Ok(Self {
            replica,
            canisters,
            plan,
            seed: results.seed,
            wall_time: true,
            progress,
            cache: None,
            missing: Missing::new(),
            found: Mutex::new(Saving { results, out, saved: None }),
            order: plan.order(),
            max_rows,
            ceiling: Ceiling::SETUP,
        })
    }

    /// Ends messages without limits at another ceiling.
    #[cfg(test)]
    pub fn with_ceiling(self, ceiling: Ceiling) -> Self {
        Self { ceiling, ..self }
    }

    /// Includes wall times in the results, or not.
    #[must_use]
    pub fn with_wall_time(self, wall_time: bool) -> Self {
        Self { wall_time, ..self }
    }

    /// Uses a cache of earlier runs.
    #[must_use]
    pub fn with_cache(self, cache: Option<&'a Cache>) -> Self {
        Self { cache, ..self }
    }

    /// Keeps the reasons why some canisters have no module as the outcome of their cases.
    #[must_use]
    pub fn with_missing(self, missing: Missing) -> Self {
        Self { missing, ..self }
    }

    /// Returns the module of a configuration's canister.
    fn wasm(&self, configuration: &ConfigurationInfo) -> Result<&'a [u8]> {
        let built = self.canisters.iter().find(|built| built.name == configuration.canister);
        Ok(&built
            .with_context(|| format!("no canister {} was built", configuration.canister))?
            .wasm)
    }

    /// Returns the results so far.
    pub fn results(&self) -> Results {
        lock(&self.found).results.clone()
    }

    /// Returns the file of the results.
    pub fn file(self) -> Option<RunFile> {
        self.found.into_inner().unwrap_or_else(PoisonError::into_inner).out
    }

    /// Measures all fixtures of the plan, `jobs` of them in parallel. Saves the results even if it
    /// fails.
    pub fn run(&self, jobs: usize) -> Result<()> {
        let fixtures = &self.plan.fixtures;
        let mut ordered: Vec<_> = fixtures.iter().collect();
        ordered.sort_by_key(|fixture| std::cmp::Reverse(duration(fixture)));
        let expected: Vec<_> = ordered.iter().map(|fixture| self.expected(fixture)).collect();
        let rest = Arc::new(Rest::new("fixture", &expected, jobs));
        let with_seconds = ordered.into_iter().zip(expected_seconds(&expected));
        let waiting: Mutex<VecDeque<_>> = Mutex::new(with_seconds.collect());
        let left = rest.left();
        if matches!(self.progress, Progress::Lines) && left.time.is_some_and(|time| time > LONG) {
            self.progress.note(&left.to_string());
        }
        let shown = (fixtures.len() > 1 || left.time.is_some()).then(|| {
            let rest = Arc::clone(&rest);
            self.progress.rest("", move || rest.left().to_string())
        });
        let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        let spawned = std::thread::scope(|scope| -> Result<()> {
            for _ in 0..jobs.min(fixtures.len()) {
                std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
                    while lock(&failed).is_none() {
                        let Some((fixture, seconds)) = lock(&waiting).pop_front() else {
                            break;
                        };
                        let done = |took| rest.done(seconds, took);
                        if let Err(error) = self.fixture(fixture, done) {
                            lock(&failed).get_or_insert(error);
                        }
                    }
                })?;
            }
            Ok(())
        });
        drop(shown);
        let failed = spawned.err().or_else(|| lock(&failed).take());
        let mut found = lock(&self.found);
        let Saving { results, out, .. } = &mut *found;
        if failed.is_none() {
            results.planned = None;
        }
        let saved = out.as_mut().map_or(Ok(()), |out| out.finish(results, failed.is_none()));
        failed.map_or(saved, Err)
    }

    /// Returns the name by which later runs find how long a fixture took.
    fn name_of_duration(&self, fixture: &Fixture) -> String {
        format!("{} {}: {} steps", self.plan.suite, fixture.label(), fixture.steps.len())
    }

    fn expected(&self, fixture: &Fixture) -> Expected {
        let before = earlier_duration(&self.name_of_duration(fixture));
        let work = fixture.rows.max(1) as f64 + fixture.steps.len() as f64;
        Expected { share: f64::from(duration(fixture)) * work, before }
    }

    /// Returns `true` if an earlier run has measured the case. Failed cases are measured again.
    fn is_measured(&self, section: &str, name: &str, configuration: &str) -> bool {
        let found = lock(&self.found);
        let known = found.results.case(section, name, configuration);
        known.is_some_and(|case| !matches!(case.outcome, Outcome::Failed { .. }))
    }

    /// Returns the content of a fixture in the results of the resumed run.
    fn known(&self, fixture: &FixtureKey) -> Option<Held> {
        let found = lock(&self.found);
        let known = found.results.fixtures.iter().find(|known| fixture.is_of(known));
        known.and_then(|known| known.outcome.measured()).cloned()
    }

    fn wall_milliseconds(&self, began: Instant) -> Option<u64> {
        let milliseconds = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.wall_time.then(milliseconds)
    }

    /// Adds a fixture to the results, in the order of the plan, or replaces it.
    fn keep_fixture(&self, fixture: FixtureInfo) -> Result<()> {
        self.keep(|results| {
            let place = |of: &FixtureInfo| {
                self.plan.fixtures.iter().position(|fixture| fixture.key().is_of(of))
            };
            let at = place(&fixture);
            results.fixtures.retain(|other| place(other) != at);
            results.fixtures.push(fixture);
            results.fixtures.sort_by_key(place);
        })
    }

    fn keep_case(&self, case: Case) -> Result<()> {
        let place = |case: &Case| self.order.place(case);
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
        let Saving { results, out, saved } = &mut *found;
        change(results);
        let due = saved.is_none_or(|saved| saved.elapsed() >= SAVE_EVERY);
        if let Some(out) = out.as_mut().filter(|_| due) {
            out.save(results)?;
            *saved = Some(Instant::now());
        }
        Ok(())
    }
}

/// The time that a fixture takes, compared with others of the same suite. A million rows in the map
/// take three times as long as in SQLite, and a write-ahead log half as long again, because it is
/// copied into the file for each check. Long fixtures come first, so that no thread is left alone
/// with one at the end.
fn duration(fixture: &Fixture) -> u32 {
    let settings = fixture.configuration.settings.as_ref();
    let mode = settings.and_then(|settings| settings.get("journal_mode"));
    match (fixture.engine, mode) {
        (Engine::BTREE, _) => 6,
        (_, Some(mode)) if mode == "wal" => 3,
        _ => 2,
    }
}

/// Measures the message without work: the cost of the harness.
fn empty(canister: &mut dyn crate::replica::Messages, name: &str) -> Result<Case> {
    // The first message grows the heap.
    wire::execute_nothing(canister)?;
    let done = wire::execute_nothing(canister)?;
    Ok(Case {
        section: "harness".to_owned(),
        name: "empty message".to_owned(),
        configuration: name.to_owned(),
        rows: 0,
        payload: 0,
        state: State::Warm,
        outcome: Outcome::Measured(Measured {
            instructions: done.measurement.instructions,
            operations: 0,
            capacity: None,
            detail: Some(step::add(None, &done.measurement, &done.receipt)),
            each: None,
            phases: None,
        }),
    })
}

/// Returns the outcome of an error: a refusal by the canister or the replica is a result, any other
/// error ends the run.
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

/// Locks a mutex even if a thread has panicked: that was reported, and the data is still valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
