//! Runs a plan: populates canisters, forks them, measures and checks.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use stablebench_protocol::{Description, Digest, DigestPart, Engine, Measurement, SqliteSettings};
use stablebench_workload::Ids;

use crate::interrupt;
use crate::progress::{Progress, Step};
use crate::replica::{Canister, Cost, Messages, Replica, query, update};
use crate::report::number::{Grouped, Short};
use crate::results::{CanisterInfo, Case, Populate, Results, SettingResult};
use crate::suites::users::{Insertion, Plan, Setting};

/// Instructions that a populating message should stay below: half of what one
/// may use, because the next rows may cost more than the last.
const MESSAGE_INSTRUCTIONS: u64 = 20_000_000_000;
/// Rows of the first populating message, before anything is known.
const FIRST_ROWS: u64 = 1_000;
/// Instructions that a digest query should stay below.
const QUERY_INSTRUCTIONS: u64 = 3_000_000_000;
/// Stack of a thread that runs canisters.
const STACK: usize = 32 << 20;

/// What every setting's run shares.
pub struct Runner<'a> {
    replica: &'a dyn Replica,
    wasm: &'a [u8],
    plan: &'a Plan,
    progress: &'a Progress,
    out: &'a Path,
    results: Mutex<Results>,
    /// Most rows that one message may be about.
    max_rows: u64,
    expected: (Digest, Vec<Digest>),
}

impl<'a> Runner<'a> {
    /// Prepares a run; the canister is installed once to learn what it is.
    pub fn new(
        replica: &'a dyn Replica,
        wasm: &'a [u8],
        plan: &'a Plan,
        progress: &'a Progress,
        out: &'a Path,
        mut results: Results,
    ) -> Result<Self> {
        let mut fresh = replica.install(wasm)?;
        let description: Description = query(&mut fresh, "describe", ())?;
        results.canister = CanisterInfo {
            crates: description.crates,
            sqlite: description.sqlite,
            ..results.canister
        };
        Ok(Self {
            replica,
            wasm,
            plan,
            progress,
            out,
            results: Mutex::new(results),
            max_rows: description.max_rows,
            expected: plan.digests()?,
        })
    }

    /// What was found so far.
    pub fn results(&self) -> Results {
        lock(&self.results).clone()
    }

    /// Measures every setting, `jobs` of them side by side. What was measured
    /// is saved, whatever happens.
    pub fn run(&self, jobs: usize) -> Result<()> {
        let waiting: Mutex<VecDeque<&Setting>> = Mutex::new(self.plan.settings.iter().collect());
        let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
        std::thread::scope(|scope| -> Result<()> {
            for _ in 0..jobs.min(self.plan.settings.len()) {
                std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
                    while lock(&failed).is_none() {
                        let Some(setting) = lock(&waiting).pop_front() else {
                            break;
                        };
                        if let Err(error) = self.setting(setting).context(setting.key()) {
                            lock(&failed).get_or_insert(error);
                        }
                    }
                })?;
            }
            Ok(())
        })?;
        lock(&failed).take().map_or(Ok(()), Err)
    }

    fn setting(&self, setting: &Setting) -> Result<()> {
        let began = Instant::now();
        let key = setting.key();
        let mut canister = self.replica.install(self.wasm)?;
        let canister = &mut *canister;
        update::<()>(canister, "set_payload", (self.plan.payload,))?;
        if setting.engine == Engine::Sqlite {
            let taken: (SqliteSettings, Cost) =
                update(canister, "configure_sqlite", (setting.config(),))?;
            check_taken(setting, &taken.0)?;
        }

        let step = self.progress.step(&key, self.plan.rows);
        let populate = self.populate(canister, setting.engine, &step)?;
        let digest = self.check(canister, setting.engine, self.expected.0)?;
        let description: Description = query(canister, "describe", ())?;
        let engine = description.engines.iter().find(|engine| engine.engine == setting.engine);
        let sqlite = match setting.engine {
            Engine::Sqlite => {
                let settings: SqliteSettings = query(canister, "sqlite_settings", ())?;
                check_taken(setting, &settings)?;
                Some(settings)
            }
            _ => None,
        };
        self.keep(|results| {
            results.settings.push(SettingResult {
                key: key.clone(),
                sqlite,
                populate,
                stored_bytes: engine.map_or(0, |engine| engine.stored_bytes),
                heap_pages: description.heap_pages,
                stable_pages: description.stable_pages,
                digest,
                wall_milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
        })?;

        for (insertion, expected) in self.plan.insertions.iter().zip(&self.expected.1) {
            step.at(self.plan.rows, format!("{} rows, {}", insertion.rows, insertion.place));
            self.insert(canister, setting, *insertion, *expected)
                .with_context(|| format!("{} rows, {}", insertion.rows, insertion.place))?;
        }
        step.done(&format!("{:.1} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Puts the first rows in, in as few messages as is safe.
    fn populate(
        &self,
        canister: &mut dyn Messages,
        engine: Engine,
        step: &Step,
    ) -> Result<Populate> {
        let all = self.plan.populated()?;
        let mut sum = Populate::default();
        let (mut done, mut rows) = (0, FIRST_ROWS);
        // The limit depends on the payload, which was chosen after the start.
        let Description { max_rows, .. } = query(canister, "describe", ())?;
        while done < all.rows() {
            interrupt::check()?;
            rows = rows.min(all.rows() - done).clamp(1, max_rows);
            let ids = Ids::new(all.first() + done * all.step(), all.step(), rows)?;
            let (measurement, cost): (Measurement, Cost) =
                update(canister, "add_users", (engine, ids.first(), ids.step(), ids.rows()))?;
            done += rows;
            sum.add(measurement.message_instructions, &cost);
            step.at(
                done,
                format!("{} rows, {} instructions", Grouped(done), Short(sum.instructions)),
            );
            // Rows cost more as they get more: never grow by more than ten times.
            let each = (measurement.message_instructions / rows).max(1);
            rows = (MESSAGE_INSTRUCTIONS / each).min(rows * 10);
        }
        Ok(sum)
    }

    /// Adds rows in a fork and checks what it then holds.
    fn insert(
        &self,
        populated: &mut dyn Canister,
        setting: &Setting,
        insertion: Insertion,
        expected: Digest,
    ) -> Result<()> {
        interrupt::check()?;
        let mut fork = populated.fork()?;
        let method = match insertion.place {
            crate::cli::Place::Middle => "insert_middle",
            crate::cli::Place::End => "insert_end",
        };
        let (measurement, message): (Measurement, Cost) =
            update(&mut *fork, method, (setting.engine, insertion.rows))?;
        if measurement.rows != insertion.rows {
            bail!("the canister says that it added {} rows", measurement.rows);
        }
        let digest = self.check(&mut *fork, setting.engine, expected)?;
        self.keep(|results| {
            results.cases.push(Case {
                setting: setting.key(),
                at: insertion.place,
                rows: insertion.rows,
                measurement,
                message,
                digest,
            });
        })
    }

    /// Reads all rows back and compares them with the model.
    fn check(
        &self,
        canister: &mut dyn Messages,
        engine: Engine,
        expected: Digest,
    ) -> Result<Digest> {
        let mut part: Option<DigestPart> = None;
        let mut rows = FIRST_ROWS * 10;
        loop {
            interrupt::check()?;
            let next: DigestPart = query(canister, "digest", (engine, part, rows))?;
            if next.done {
                if next.digest != expected {
                    bail!(
                        "the content is wrong: {:?}, but the model holds {expected:?}",
                        next.digest
                    );
                }
                return Ok(next.digest);
            }
            let seen = next.digest.rows - part.map_or(0, |part| part.digest.rows);
            let each = (next.message_instructions / seen.max(1)).max(1);
            rows = (QUERY_INSTRUCTIONS / each).clamp(1, self.max_rows);
            part = Some(next);
        }
    }

    /// Changes the results and saves them, settings and cases in the plan's order.
    fn keep(&self, change: impl FnOnce(&mut Results)) -> Result<()> {
        let mut results = lock(&self.results);
        change(&mut results);
        let place = |key: &str| self.plan.settings.iter().position(|setting| setting.key() == key);
        results.settings.sort_by_key(|setting| place(&setting.key));
        results.cases.sort_by_key(|case| {
            let insertion = Insertion { place: case.at, rows: case.rows };
            (
                place(&case.setting),
                self.plan.insertions.iter().position(|other| *other == insertion),
            )
        });
        results.save(self.out)
    }
}

fn check_taken(setting: &Setting, settings: &SqliteSettings) -> Result<()> {
    if setting.journal_mode.is_some_and(|asked| asked != settings.journal_mode) {
        bail!("SQLite runs with {:?}", settings.journal_mode);
    }
    Ok(())
}

/// A thread that failed has reported that; what it left is still good.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
