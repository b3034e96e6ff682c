//! One canister of a suite with tables of its own: its steps, in order.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use stablebench_protocol::{Description, Engine, Inspected, LeveldbConfig, SqliteSettings};
use stablebench_workload::Tables;

use super::earlier::EARLIER;
use super::{Runner, refused};
use crate::interrupt;
use crate::progress;
use crate::replica::{Canister, query, update};
use crate::report::number::Grouped;
use crate::results::{Case, Held, Measured, Outcome, Populate, State, Store};
use crate::suites::lane::{Lane, Step};
use crate::suites::outline::StoreKey;

impl Runner<'_> {
    /// Measures what is not measured yet of a lane.
    pub fn lane(&self, lane: &Lane) -> Result<()> {
        let known = self.known(&lane.store());
        if known.is_some() && lane.steps.iter().all(|step| self.is_done(lane, step)) {
            return Ok(());
        }
        let label = match lane.name.as_str() {
            "" => format!("{}, {} rows", lane.column.key, Grouped(lane.rows)),
            name => format!("{}, {name}", lane.column.key),
        };
        let progress = self.progress.step(&label, "steps", lane.steps.len() as u64);
        let began = Instant::now();
        let how = self.steps(lane, known, &progress, began).context(label)?;
        progress.done(&format!("{:.1} s{how}", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// An earlier run has measured what the step measures.
    fn is_done(&self, lane: &Lane, step: &Step) -> bool {
        step.case
            .as_ref()
            .is_none_or(|(section, name)| self.is_measured(section, name, &lane.column.key))
    }

    /// Tells how it was populated, where that is worth saying.
    fn steps(
        &self,
        lane: &Lane,
        known: Option<Held>,
        progress: &progress::Step,
        began: Instant,
    ) -> Result<&'static str> {
        let mut tables = (lane.tables)(lane);
        let setup = self.lane_setup(lane);
        let mut populate = Populate::default();
        let (mut canister, first, how) = match self.earlier_lane(lane, setup.as_ref()) {
            Some(earlier) => {
                (populate, tables) = (earlier.held.populate, earlier.tables);
                (earlier.canister, lane.populated, EARLIER)
            }
            None => match self.installed(lane)? {
                Ok(canister) => (canister, 0, ""),
                Err(error) => return self.keep_refused_lane(lane, 0, error).map(|()| ""),
            },
        };
        let held = |canister: &mut dyn Canister, tables: &dyn Tables, populate| -> Result<()> {
            let held = self.held(lane, canister, tables, populate, began)?;
            if first == 0 {
                self.leave_lane(setup.as_ref(), canister, &held);
            }
            self.keep_held(lane, held, known.as_ref())
        };
        let mut refused: Option<Outcome<Measured>> = None;
        for (done, step) in lane.steps.iter().enumerate().skip(first) {
            interrupt::check()?;
            if step.anew {
                refused = None;
            }
            if let Some(outcome) = &refused {
                self.keep_step(lane, step, outcome.clone())?;
                continue;
            }
            if done == lane.populated {
                held(&mut *canister, &*tables, populate)?;
            }
            let name = step.case.as_ref().map_or("", |(_, name)| name);
            progress.at(done as u64, name.to_owned());
            if step.forked {
                self.forked(lane, step, &mut *canister, &*tables)?;
                continue;
            }
            match self.kept(step, &mut *canister, &mut *tables) {
                Ok((measured, cost)) => {
                    if done < lane.populated {
                        populate.join(cost);
                    }
                    self.keep_step(lane, step, Outcome::Measured(measured))?;
                }
                // What begins anew can still be done.
                Err(error) if lane.steps[done + 1..].iter().any(|step| step.anew) => {
                    let outcome = super::refused(error)?;
                    self.note_refused(lane, &outcome);
                    self.keep_step(lane, step, outcome.clone())?;
                    refused = Some(outcome);
                }
                Err(error) => return self.keep_refused_lane(lane, done, error).map(|()| how),
            }
        }
        if lane.populated >= lane.steps.len() {
            held(&mut *canister, &*tables, populate)?;
        }
        Ok(how)
    }

    /// A fresh canister with the lane's settings, or why they were refused.
    fn installed(&self, lane: &Lane) -> Result<Result<Box<dyn Canister>>> {
        let mut canister = self.replica.install(self.wasm(&lane.column)?)?;
        if let Some(config) = lane.column.sqlite {
            // The canister reads the settings back and refuses what was not taken.
            let taken = update::<SqliteSettings>(&mut *canister, "configure_sqlite", (config,));
            return Ok(taken.map(|_| canister));
        }
        if let Some(config) = lane.column.leveldb {
            let taken = update::<LeveldbConfig>(&mut *canister, "configure_leveldb", (config,));
            return Ok(taken.map(|_| canister));
        }
        Ok(Ok(canister))
    }

    /// A step in a fork of its own, unless it is measured already.
    fn forked(
        &self,
        lane: &Lane,
        step: &Step,
        canister: &mut dyn Canister,
        tables: &dyn Tables,
    ) -> Result<()> {
        if self.is_done(lane, step) {
            return Ok(());
        }
        let mut measured = || -> Result<Measured> {
            let each = self.each_of(step, canister, tables)?;
            let phases = self.phases_of(step, canister)?;
            let mut fork = canister.fork()?;
            let (measured, _) = self.step(step, &mut *fork, &mut *tables.fork())?;
            Ok(Measured { each, phases, ..measured })
        };
        let outcome = match measured() {
            Ok(measured) => Outcome::Measured(measured),
            Err(error) => refused(error).with_context(|| match &step.case {
                Some((section, name)) => format!("{section}, {name}"),
                None => "work that is not reported".to_owned(),
            })?,
        };
        self.keep_step(lane, step, outcome)
    }

    /// A step whose work stays.
    fn kept(
        &self,
        step: &Step,
        canister: &mut dyn Canister,
        tables: &mut dyn Tables,
    ) -> Result<(Measured, Populate)> {
        let each = match step.case {
            Some(_) => self.each_of(step, canister, tables)?,
            None => None,
        };
        let (measured, populate) = self.step(step, canister, tables)?;
        Ok((Measured { each, ..measured }, populate))
    }

    /// What the canister holds.
    fn held(
        &self,
        lane: &Lane,
        canister: &mut dyn Canister,
        tables: &dyn Tables,
        populate: Populate,
        began: Instant,
    ) -> Result<Held> {
        let Some(step) = lane.steps.get(lane.populated.saturating_sub(1)) else {
            bail!("the lane has no steps");
        };
        let inspected: Inspected = query(canister, "inspect", (&step.job,))?;
        let description: Description = query(canister, "describe", ())?;
        Ok(Held {
            sqlite: inspected.sqlite.filter(|_| lane.column.engine == Engine::Sqlite),
            populate,
            stored_bytes: inspected.stored_bytes,
            virtual_bytes: Some(inspected.virtual_bytes),
            cache_bytes: Some(inspected.cache_bytes),
            heap_pages: description.heap_pages,
            stable_pages: description.stable_pages,
            digest: tables.content(),
            wall_milliseconds: self.wall_milliseconds(began),
        })
    }

    /// Keeps what the canister holds, which must be what the run to go on with says.
    fn keep_held(&self, lane: &Lane, held: Held, known: Option<&Held>) -> Result<()> {
        match known {
            None => self.keep_store(stored(lane, Outcome::Measured(held))),
            Some(known)
                if *known == Held { wall_milliseconds: known.wall_milliseconds, ..held } =>
            {
                Ok(())
            }
            Some(_) => bail!(
                "it does not hold what the run to go on with says; begin anew, without --resume"
            ),
        }
    }

    fn keep_step(&self, lane: &Lane, step: &Step, outcome: Outcome<Measured>) -> Result<()> {
        match &step.case {
            Some(name) => self.keep_case(measured(lane, name, outcome)),
            None => Ok(()),
        }
    }

    /// A step that is refused refuses those after it, whose tables are not there.
    fn keep_refused_lane(&self, lane: &Lane, from: usize, error: anyhow::Error) -> Result<()> {
        let outcome: Outcome<Measured> = refused(error)?;
        self.note_refused(lane, &outcome);
        for step in &lane.steps[from..] {
            self.keep_step(lane, step, outcome.clone())?;
        }
        if from > lane.populated {
            return Ok(());
        }
        self.keep_store(stored(
            lane,
            match outcome {
                Outcome::NotApplicable { reason } => Outcome::NotApplicable { reason },
                Outcome::Failed { reason } => Outcome::Failed { reason },
                Outcome::Measured(_) => return Ok(()),
            },
        ))
    }

    fn note_refused(&self, lane: &Lane, outcome: &Outcome<Measured>) {
        if let Outcome::NotApplicable { reason } | Outcome::Failed { reason } = outcome {
            self.progress.note(&format!("{} {}: {reason}", lane.column.key, lane.name));
        }
    }
}

fn stored(lane: &Lane, outcome: Outcome<Held>) -> Store {
    let StoreKey { column, name, rows, payload } = lane.store();
    Store { column, name, rows, payload, outcome }
}

fn measured(lane: &Lane, name: &(String, String), outcome: Outcome<Measured>) -> Case {
    Case {
        section: name.0.clone(),
        name: name.1.clone(),
        column: lane.column.key.clone(),
        rows: lane.rows,
        payload: lane.payload,
        state: State::Warm,
        outcome,
    }
}
