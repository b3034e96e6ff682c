//! One fixture: a canister that is installed, configured and populated, or loaded from the cache,
//! and then measured step by step.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use stablebench_protocol::{Description, Digest, JobPart};
use stablebench_workload::Model;

use super::ranges::KnownContent;
use super::step::{At, Relation, Subject};
use super::wire::Purpose;
use super::{Runner, interrupt, lock, refused, wire};
use crate::cache::{Digests, Prepared, Setup};
use crate::progress::{Left, ProgressStep, keep_duration};
use crate::replica::Canister;
use crate::replica::ceiling::{Below, Exceeded};
use crate::results::{Case, FixtureInfo, Held, Measured, Outcome, Populate};
use stablebench_suite::job::Chosen;
use stablebench_suite::plan::{
    Effect, Fixture, FixtureKey, Measures, Messages, Role, Search, Step,
};

/// The remark about a canister that an earlier run has populated.
const EARLIER: &str = ", populated earlier";

/// A canister under way, with the tables that it must contain.
struct Live<'a> {
    canister: Box<dyn Canister>,
    model: Box<dyn Model>,
    /// The digests that were read back from its forks.
    seen: KnownContent,
    /// The cost of populating it.
    populate: Populate,
    /// Its memories after the last step that populated it.
    memories: Option<Memories>,
    setup: Option<Setup>,
    /// The results of the run that is resumed.
    known: Option<Held>,
    /// True once the results describe the populated fixture.
    described: bool,
    progress: &'a ProgressStep,
    began: Instant,
}

/// Wasm pages of a canister's memories.
#[derive(Clone, Copy)]
struct Memories {
    heap: u64,
    stable: u64,
}

/// A fixture that an earlier run has populated.
struct Earlier {
    canister: Box<dyn Canister>,
    model: Box<dyn Model>,
    held: Held,
}

impl Runner<'_> {
    /// Measures the cases of a fixture that are not measured yet. `done` is called with the time that
    /// this took, and returns what is left of the run.
    pub fn fixture(&self, fixture: &Fixture, done: impl Fn(Duration) -> Left) -> Result<()> {
        if let Some(reason) = self.missing.get(&fixture.configuration.canister) {
            done(Duration::ZERO);
            return self.keep_missing(fixture, reason);
        }
        let known = self.known(&fixture.key());
        let last = fixture.steps.iter().rposition(|step| !self.is_done(fixture, step));
        let last = match (last, &known) {
            (None, Some(_)) => {
                done(Duration::ZERO);
                return Ok(());
            }
            (last, _) => last.unwrap_or(0).max(fixture.populated.saturating_sub(1)),
        };
        let label = fixture.label();
        let first = fixture.steps.first();
        let by_cost = first.is_some_and(|step| step.messages == Messages::ByCost);
        let progress = match by_cost {
            true => self.progress.step(&label, "rows", fixture.rows),
            false => self.progress.step(&label, "steps", fixture.steps.len() as u64),
        };
        let began = Instant::now();
        let remark = self.steps(fixture, last, known, &progress, began).context(label)?;
        let took = began.elapsed();
        keep_duration(&self.name_of_duration(fixture), took);
        let left = match done(took) {
            Left { parts: 0, .. } => String::new(),
            left => format!("; {left}"),
        };
        progress.done(&format!("{:.1} s{remark}{left}", took.as_secs_f64()));
        Ok(())
    }

    /// Returns `true` if an earlier run has measured the step's case, or the step has none.
    fn is_done(&self, fixture: &Fixture, step: &Step) -> bool {
        step.rows()
            .all(|(section, name)| self.is_measured(section, name, &fixture.configuration.key))
    }

    /// Executes the steps up to the one with the number `last`. Returns a remark about how the
    /// canister was populated.
    fn steps(
        &self,
        fixture: &Fixture,
        last: usize,
        known: Option<Held>,
        progress: &ProgressStep,
        began: Instant,
    ) -> Result<String> {
        let setup = self.setup(fixture);
        let earlier = setup.as_ref().and_then(|setup| self.earlier(fixture, setup));
        let (canister, model, held, first) = match earlier {
            Some(Earlier { canister, model, held }) => {
                (canister, model, Some(held), fixture.populated)
            }
            None => match self.install(fixture)? {
                Ok(canister) => (canister, (fixture.model)(), None, 0),
                Err(error) => {
                    return self.keep_refused(fixture, 0, error).map(|()| String::new());
                }
            },
        };
        let seen = setup.as_ref().zip(self.cache).map(|(setup, cache)| cache.digests(setup));
        let seen = KnownContent::of(model.content(), seen.unwrap_or_default());
        let populate = held.as_ref().map(|held| held.populate).unwrap_or_default();
        let memories =
            held.map(|held| Memories { heap: held.heap_pages, stable: held.stable_pages });
        let mut live = Live {
            canister,
            model,
            seen,
            populate,
            memories,
            setup,
            known,
            described: false,
            progress,
            began,
        };
        if first > 0 {
            self.populated(fixture, &mut live, true)?;
        }
        let outcome = self.execute(fixture, first, last, &mut live);
        self.keep_seen(&live);
        outcome?;
        let KnownContent { known, asked, .. } = live.seen;
        let mut remark = if first > 0 { EARLIER.to_owned() } else { String::new() };
        if known > 0 {
            remark += &format!(", {known} of {asked} contents read back earlier");
        }
        Ok(remark)
    }

    /// Executes the steps from `first` to `last`.
    fn execute(
        &self,
        fixture: &Fixture,
        first: usize,
        last: usize,
        live: &mut Live<'_>,
    ) -> Result<()> {
        let mut refused_before: Option<Outcome<Measured>> = None;
        for (at, step) in fixture.steps.iter().enumerate().take(last + 1).skip(first) {
            interrupt::check()?;
            if step.effect == Effect::KeptAfresh {
                refused_before = None;
            }
            if let Some(outcome) = &refused_before {
                self.keep_step(fixture, step, outcome.clone())?;
                continue;
            }
            match step.row() {
                Some((section, name)) => live.progress.says(format!("{section}: {name}")),
                None if at >= fixture.populated => live.progress.says("random deletes and inserts"),
                None => {}
            }
            if step.effect == Effect::Dropped {
                self.forked(fixture, step, live)?;
                live.progress.advance();
                continue;
            }
            match self.kept(fixture, step, live, at + 1 == fixture.populated) {
                Ok((measured, cost)) => {
                    if at < fixture.populated {
                        live.populate.join(cost);
                        live.memories = measured.detail.as_ref().map(|detail| Memories {
                            heap: detail.heap_pages_after,
                            stable: detail.stable_pages_after,
                        });
                    } else {
                        // Its forks differ from another canister from here on.
                        self.keep_seen(live);
                        live.seen.clear(live.model.content());
                        live.setup = None;
                    }
                    self.keep_step(fixture, step, Outcome::Measured(measured))?;
                }
                // A later step may not depend on this one.
                Err(error)
                    if fixture.steps[at + 1..]
                        .iter()
                        .any(|step| step.effect == Effect::KeptAfresh) =>
                {
                    let outcome = refused(error)?;
                    self.note_refused(fixture, &outcome);
                    self.keep_step(fixture, step, outcome.clone())?;
                    refused_before = Some(outcome);
                }
                Err(error) => return self.keep_refused(fixture, at, error),
            }
            if at + 1 == fixture.populated {
                self.populated(fixture, live, false)?;
                live.progress.next("cases", (fixture.steps.len() - fixture.populated) as u64);
            }
        }
        match !live.described && fixture.populated >= fixture.steps.len() {
            // The last step was refused, but not all.
            true => self.populated(fixture, live, false),
            false => Ok(()),
        }
    }

    /// A fresh canister with the fixture's configuration, or the reason of its refusal.
    fn install(&self, fixture: &Fixture) -> Result<Result<Box<dyn Canister>>> {
        let mut canister = self.replica.install(self.wasm(&fixture.configuration)?)?;
        if let Some(bytes) = fixture.steps.first().and_then(|step| step.job.payload()) {
            wire::set_payload(&mut *canister, bytes)?;
        }
        if let Some(step) = fixture.steps.first()
            && self.chosen(step)?.configures()
        {
            return Ok(Ok(canister));
        }
        Ok(wire::configure(&mut *canister, &fixture.configuration).map(|()| canister))
    }

    /// Executes a step in a fork of its own, unless its case is measured already.
    fn forked(&self, fixture: &Fixture, step: &Step, live: &mut Live<'_>) -> Result<()> {
        if self.is_done(fixture, step) {
            return Ok(());
        }
        let outcome = match self.measured_in_fork(fixture, step, live) {
            Ok(measured) => Outcome::Measured(measured),
            Err(error) => refused(error).with_context(|| match step.row() {
                Some((section, name)) => format!("{section}, {name}"),
                None => "work that is not reported".to_owned(),
            })?,
        };
        self.keep_step(fixture, step, outcome)
    }

    fn measured_in_fork(
        &self,
        fixture: &Fixture,
        step: &Step,
        live: &mut Live<'_>,
    ) -> Result<Measured> {
        let Live { canister, model, seen, progress, .. } = live;
        match step.measures {
            Measures::Capacity(Search::Upgrade) => {
                return self.upgradeable(fixture, step, &mut **canister);
            }
            Measures::Capacity(search) => {
                return self.capacity(fixture, step, search, &mut **canister);
            }
            _ => {}
        }
        let each = self.each_of(fixture, step, &mut **canister, &**model, seen)?;
        let phases = self.phases_of(step, &mut **canister)?;
        let (mut fork, mut model) = (canister.fork()?, model.fork());
        let subject =
            Subject { canister: &mut *fork, model: &mut *model, relation: Relation::Fork(seen) };
        let (measured, _) = self.step(fixture, step, subject, progress)?;
        let (each, phases) = (each.or(measured.each), phases.or(measured.phases));
        Ok(Measured { each, phases, ..measured })
    }

    /// Executes a step whose changes remain; `last` is true if it completes the fixture.
    fn kept(
        &self,
        fixture: &Fixture,
        step: &Step,
        live: &mut Live<'_>,
        last: bool,
    ) -> Result<(Measured, Populate)> {
        let Live { canister, model, seen, progress, .. } = live;
        let each = match step.row() {
            Some(_) => {
                let seen = &mut KnownContent::of(model.content(), Digests::default());
                self.each_of(fixture, step, &mut **canister, &**model, seen)?
            }
            None => None,
        };
        let relation = if last { Relation::Origin(seen) } else { Relation::Alone };
        let model = &mut **model;
        let chosen = self.chosen(step)?;
        let stepped = if chosen.is_unlimited() {
            let lifted = canister.lift_limits();
            let mut below = Below::new(&mut **canister, self.ceiling);
            let subject = Subject { canister: &mut below, model, relation };
            let stepped = self.step(fixture, step, subject, progress);
            let stepped = stepped.map_err(|error| self.placed(&*chosen, &mut **canister, error));
            if let Some(subnet) = lifted {
                canister.set_limits(subnet);
            }
            stepped
        } else {
            let subject = Subject { canister: &mut **canister, model, relation };
            self.step(fixture, step, subject, progress)
        };
        let (measured, populate) = stepped?;
        Ok((Measured { each: each.or(measured.each), ..measured }, populate))
    }

    /// Adds to the error of a message that was ended the place of what has no end in it: the first piece
    /// that does not end soon by itself. They had no effect, and the run fails.
    fn placed(
        &self,
        chosen: &dyn Chosen,
        canister: &mut dyn Canister,
        error: anyhow::Error,
    ) -> anyhow::Error {
        let (Some(exceeded), Some(At(from))) =
            (error.downcast_ref::<Exceeded>().copied(), error.downcast_ref())
        else {
            return error;
        };
        let mut pieces = chosen.pieces(*from);
        let is_endless = |(_, part): &(String, JobPart)| {
            let mut below = Below::new(&mut *canister, self.ceiling.short());
            let executed = wire::execute(&mut below, part, Purpose::Prepare);
            executed.is_err_and(|error| error.is::<Exceeded>())
        };
        let endless = pieces.iter().position(is_endless).unwrap_or(0);
        let error = anyhow::Error::new(exceeded);
        match pieces.is_empty() {
            true => error,
            false => error.context(pieces.swap_remove(endless).0),
        }
    }

    /// Describes the populated fixture in the results and leaves it for later runs.
    ///
    /// # Errors
    ///
    /// If the run that is resumed has other results.
    fn populated(&self, fixture: &Fixture, live: &mut Live<'_>, cached: bool) -> Result<()> {
        let Some(step) = fixture.steps.get(fixture.populated.saturating_sub(1)) else {
            bail!("the fixture has no steps");
        };
        live.described = true;
        let canister = &mut *live.canister;
        let tables = self.chosen(step)?.tables();
        let inspected = wire::inspect(canister, &tables)?;
        let memories = match live.memories {
            Some(memories) => memories,
            None => {
                let Description { heap_pages, stable_pages, .. } = wire::describe(canister)?;
                Memories { heap: heap_pages, stable: stable_pages }
            }
        };
        let held = Held {
            sqlite: inspected.sqlite,
            populate: live.populate,
            stored_bytes: inspected.stored_bytes,
            virtual_bytes: Some(inspected.virtual_bytes),
            cache_bytes: Some(inspected.cache_bytes),
            heap_pages: memories.heap,
            stable_pages: memories.stable,
            digest: live.model.content(),
            wall_milliseconds: self.wall_milliseconds(live.began),
        };
        if let (false, Some(setup), Some(cache)) = (cached, &live.setup, self.cache) {
            cache.keep(canister, setup.clone(), &held);
        }
        match &live.known {
            None => self.keep_fixture(info(fixture, Outcome::Measured(held))),
            Some(known)
                if *known == Held { wall_milliseconds: known.wall_milliseconds, ..held } =>
            {
                Ok(())
            }
            Some(_) => bail!(
                "the fixture differs from that of the run to resume; repeat it without --resume"
            ),
        }
    }

    /// Everything that decides what the populated fixture is, if it can be kept for later runs and
    /// populating it is not measured.
    fn setup(&self, fixture: &Fixture) -> Option<Setup> {
        self.cache?;
        let prepared = Prepared::new(fixture, self.seed)?;
        let module =
            lock(&self.found).results.module(&fixture.configuration.canister).map(str::to_owned);
        Some(Setup::new(self.replica.identity(), module.unwrap_or_default(), prepared))
    }

    /// Returns the fixture as an earlier run has populated it.
    fn earlier(&self, fixture: &Fixture, setup: &Setup) -> Option<Earlier> {
        let mut model = (fixture.model)();
        for step in &fixture.steps[..fixture.populated] {
            let chosen = self.chosen(step).ok()?;
            if chosen.observer().is_none() {
                model.execute(&chosen.whole()).ok()?;
            }
        }
        let content: Digest = model.content();
        let is_it = |held: &Held| held.digest == content;
        let wasm = self.wasm(&fixture.configuration).ok()?;
        let (canister, held) = self.cache?.take(self.replica, wasm, setup, is_it)?;
        Some(Earlier { canister, model, held })
    }

    /// Leaves what was read back for later runs.
    fn keep_seen(&self, live: &Live<'_>) {
        if let (Some(cache), Some(setup), Some(digests)) =
            (self.cache, &live.setup, live.seen.news())
        {
            cache.keep_digests(setup, &digests);
        }
    }

    fn keep_step(&self, fixture: &Fixture, step: &Step, outcome: Outcome<Measured>) -> Result<()> {
        let Role::Measure { section, name, state } = &step.role else { return Ok(()) };
        let case = |section: &str, name: &str, outcome: Outcome<Measured>| Case {
            section: section.to_owned(),
            name: name.to_owned(),
            configuration: fixture.configuration.key.clone(),
            rows: fixture.rows,
            payload: fixture.payload,
            state: *state,
            outcome,
        };
        // What was measured of further rows is kept already.
        if outcome.measured().is_none() {
            for (section, name) in &step.more {
                self.keep_case(case(section, name, outcome.clone()))?;
            }
        }
        self.keep_case(case(section, name, outcome))
    }

    /// Keeps that the fixture's canister has no module.
    fn keep_missing(&self, fixture: &Fixture, reason: &str) -> Result<()> {
        for step in &fixture.steps {
            let outcome = Outcome::NotApplicable { reason: reason.to_owned() };
            self.keep_step(fixture, step, outcome)?;
        }
        let outcome = Outcome::NotApplicable { reason: reason.to_owned() };
        self.keep_fixture(info(fixture, outcome))
    }

    /// Keeps that a step was refused, and with it those after it, whose tables are not there.
    fn keep_refused(&self, fixture: &Fixture, from: usize, error: anyhow::Error) -> Result<()> {
        let outcome: Outcome<Measured> = refused(error)?;
        self.note_refused(fixture, &outcome);
        for step in &fixture.steps[from..] {
            self.keep_step(fixture, step, outcome.clone())?;
        }
        if from >= fixture.populated {
            return Ok(());
        }
        let outcome = match outcome {
            Outcome::NotApplicable { reason } => Outcome::NotApplicable { reason },
            Outcome::Failed { reason } => Outcome::Failed { reason },
            Outcome::Measured(_) => return Ok(()),
        };
        self.keep_fixture(info(fixture, outcome))
    }

    fn note_refused(&self, fixture: &Fixture, outcome: &Outcome<Measured>) {
        if let Outcome::NotApplicable { reason } | Outcome::Failed { reason } = outcome {
            self.progress.note(&format!("{}: {reason}", fixture.label()));
        }
    }
}

fn info(fixture: &Fixture, outcome: Outcome<Held>) -> FixtureInfo {
    let FixtureKey { configuration, name, rows, payload } = fixture.key();
    FixtureInfo { configuration, name, rows, payload, outcome }
}
