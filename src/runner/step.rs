//! One step of a fixture: its messages, and the checks of what they find and leave.
//!
//! If no model knows the results of a step, an observer reads what the canister keeps of each message:
//!
//! ```text
//!   message ── kept, a query ──→ observer ──→ … ──→ content of all tables ──→ observer ──→ rows
//! ```
//!
//! Such a step may yield several rows of tables, such as one for each statement. The first is the step's
//! own.

use anyhow::{Context, Result, anyhow, bail};
use stablebench_protocol::{
    Digest, DigestPart, Job, JobPart, Measurement, OperationCost, PhaseCost,
};
use stablebench_suite::job::{Chosen, Message, Observed, Observer};
use stablebench_suite::plan::{self, Before, Fixture, Measures, Role, Sent, Step};
use stablebench_workload::{Expected, Model};

use super::ranges::{self, KnownContent, Ranges, Table};
use super::spread::{described, spread};
use super::wire::{self, MessageOutcome, Purpose, ResultDigest};
use super::{Runner, interrupt};
use crate::progress::ProgressStep;
use crate::replica::ceiling::{Exceeded, heap_warning};
use crate::replica::{Canister, Copied, Cost, Messages, Receipt};
use crate::report::number::{Grouped, Short};
use crate::results::{
    Case, ConfigurationInfo, Detail, Measured, Outcome, Populate, Spread, Stored,
};

/// Operations of the first message of a step whose messages are judged by cost.
const FIRST_OPERATIONS: u64 = 1_000;
/// The instructions of such a message: half of the limit, because the next operations may cost
/// more than the last.
const MESSAGE_INSTRUCTIONS: u64 = 20_000_000_000;
/// Rows of the first query that reads content.
const FIRST_ROWS: u64 = 10_000;
/// The instructions of such a query, of 5 G that it may use.
const QUERY_INSTRUCTIONS: u64 = 4_000_000_000;

/// A canister in which a step is executed, with the tables that it must contain.
pub(super) struct Subject<'a> {
    pub canister: &'a mut dyn Messages,
    pub model: &'a mut dyn Model,
    pub relation: Relation<'a>,
}

/// The relation of a canister to the forks of a fixture.
pub(super) enum Relation<'a> {
    /// It has none.
    Alone,
    /// Their origin, populated.
    Origin(&'a mut KnownContent),
    /// One of them.
    Fork(&'a mut KnownContent),
}

impl Runner<'_> {
    /// Executes a step and checks it. Returns the measurement and the cost of populating.
    pub(super) fn step(
        &self,
        fixture: &Fixture,
        step: &Step,
        subject: Subject<'_>,
        progress: &ProgressStep,
    ) -> Result<(Measured, Populate)> {
        match step.measures {
            // Searches try their jobs themselves.
            Measures::Job(_) | Measures::Capacity(_) => {}
            Measures::Upgrade => return self.upgrade(fixture, step, subject),
            Measures::Installation => {
                return Ok((self.installation(fixture)?, Populate::default()));
            }
            Measures::Compilation => return Ok((self.compilation(fixture)?, Populate::default())),
        }
        let chosen = self.chosen(step)?;
        if let Some(observer) = chosen.observer() {
            let canister = subject.canister;
            return self.observed(fixture, step, &*chosen, observer, canister, progress);
        }
        let Subject { canister, model, relation } = subject;
        if let Some(part) = self.before(step)? {
            expect(model, &part)?;
        }
        let mut sum: Option<Detail> = None;
        let mut populate = Populate::default();
        let (mut instructions, mut wrote) = (0, false);
        self.messages(fixture, step, &*chosen, canister, false, |_, part, done| {
            let expected = expect(model, part)?;
            check(&done, &expected)?;
            wrote |= expected.results.is_none();
            instructions += done.measurement.instructions;
            populate.add(done.measurement.message_instructions, &done.receipt.cost);
            sum = Some(add(sum.take(), &done.measurement, &done.receipt));
            if step.messages == plan::Messages::ByCost {
                let cost = format!("{} instructions", Short(populate.instructions));
                progress.at(part.from + part.count, cost);
            }
            Ok(())
        })?;
        let Some(mut detail) = sum else {
            bail!("there is no work to do");
        };
        if wrote {
            detail.digest =
                Some(self.check_content(fixture, &*chosen, canister, &*model, relation)?);
        }
        if step.details.size {
            detail = self.with_size(detail, &*chosen, canister)?;
        }
        let measured = Measured {
            instructions,
            operations: step.operations,
            capacity: None,
            detail: Some(detail),
            each: None,
            phases: None,
        };
        Ok((measured, populate))
    }

    /// Adds the size of the tables to the details of a measurement.
    fn with_size(
        &self,
        detail: Detail,
        chosen: &dyn Chosen,
        canister: &mut dyn Messages,
    ) -> Result<Detail> {
        let found = wire::inspect(canister, &chosen.tables())?;
        let stored = Stored {
            bytes: found.stored_bytes,
            virtual_bytes: found.virtual_bytes,
            cache_bytes: found.cache_bytes,
            objects: found.objects,
        };
        Ok(Detail { stored: Some(stored), ..detail })
    }

    /// Executes the same step in a fork, with each operation measured, if the step asks for it.
    pub(super) fn each_of(
        &self,
        fixture: &Fixture,
        step: &Step,
        canister: &mut dyn Canister,
        model: &dyn Model,
        seen: &mut KnownContent,
    ) -> Result<Option<Spread>> {
        if !step.details.each || step.operations < 2 {
            return Ok(None);
        }
        let chosen = self.chosen(step)?;
        if chosen.is_single() {
            return Ok(None);
        }
        let mut fork = canister.fork()?;
        let mut model = model.fork();
        let mut costs: Vec<OperationCost> = Vec::new();
        let mut wrote = false;
        self.messages(fixture, step, &*chosen, &mut *fork, true, |_, part, done| {
            let expected = expect(&mut *model, part)?;
            wrote |= expected.results.is_none();
            check(&done, &expected)?;
            costs.extend(&done.each);
            Ok(())
        })?;
        let ids = chosen.ids()?;
        if wrote && ids.is_some() {
            self.check_content(fixture, &*chosen, &mut *fork, &*model, Relation::Fork(seen))?;
        }
        match ids {
            Some(ids) => spread(&costs, ids.into_iter()).map(Some),
            None => spread(&costs, 0..step.operations).map(Some),
        }
    }

    /// The phases of the step's instructions, measured in a fork, if the step asks for them.
    pub(super) fn phases_of(
        &self,
        step: &Step,
        canister: &mut dyn Canister,
    ) -> Result<Option<Vec<PhaseCost>>> {
        if !step.details.phases {
            return Ok(None);
        }
        let mut fork = canister.fork()?;
        self.prepare(step, &mut *fork)?;
        wire::phases(&mut *fork, &self.chosen(step)?.whole()).map(Some)
    }

    /// Sends the message before a step.
    fn prepare(&self, step: &Step, canister: &mut dyn Messages) -> Result<()> {
        if let Before::Upgrade = step.before {
            canister.upgrade()?;
        }
        if let Some(part) = self.before(step)? {
            wire::execute(canister, &part, Purpose::Prepare)?;
        }
        Ok(())
    }

    /// Sends a step's messages.
    pub(super) fn messages(
        &self,
        fixture: &Fixture,
        step: &Step,
        chosen: &dyn Chosen,
        canister: &mut dyn Messages,
        each: bool,
        mut done: impl FnMut(&mut dyn Messages, &JobPart, MessageOutcome) -> Result<()>,
    ) -> Result<()> {
        self.prepare(step, canister)?;
        let purpose = match step.role {
            Role::Measure { .. } => Purpose::Measure,
            Role::AsMeasured => Purpose::AsMeasured,
            Role::Prepare => Purpose::Prepare,
        };
        let sent = match step.measures {
            Measures::Job(sent) => sent,
            _ => Sent::Update,
        };
        let (mut next, mut most) = match step.messages {
            plan::Messages::Exactly(operations) | plan::Messages::UpTo(operations) => {
                (operations.max(1), operations.max(1))
            }
            // The limit depends on the length of the texts.
            plan::Messages::ByCost => (FIRST_OPERATIONS, wire::describe(canister)?.max_rows),
        };
        let mut from = 0;
        while from < step.operations {
            interrupt::check()?;
            let count = next.min(most).min(step.operations - from).max(1);
            let part = chosen.part(from, count, each);
            let executed = match sent {
                Sent::Update => wire::execute(canister, &part, purpose),
                sent => wire::execute_query(canister, &part, sent),
            };
            match executed {
                Ok(message) => {
                    let inside = message.receipt.cost.inside.as_ref();
                    let warning = inside.and_then(|it| heap_warning(&fixture.label(), it));
                    if let Some(warning) = warning {
                        self.progress.note(&warning);
                    }
                    if step.messages == plan::Messages::ByCost {
                        let each = (message.measurement.message_instructions / count).max(1);
                        // The cost of a row increases with their number: grow at most tenfold.
                        next = (MESSAGE_INSTRUCTIONS / each).min(count * 10);
                    }
                    done(canister, &part, message)?;
                    from += count;
                }
                // Nothing has happened: the message was undone.
                Err(error)
                    if count > 1
                        && !matches!(step.messages, plan::Messages::Exactly(_))
                        && wire::exceeds_limit(&error) =>
                {
                    most = count / 2;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The job of a step.
    pub(super) fn chosen(&self, step: &Step) -> Result<Box<dyn Chosen>> {
        step.job.choose(step.operations, self.seed)
    }

    /// The work that prepares a step, if there is any.
    fn before(&self, step: &Step) -> Result<Option<JobPart>> {
        let Before::Job(job, operations) = &step.before else { return Ok(None) };
        Ok(Some(job.choose(*operations, self.seed)?.whole()))
    }

    /// Reads back the rows of a canister after a step and compares them with the model. Does not read
    /// what cannot have changed since another fork was read, or since the fixture was. Returns the
    /// digest of the rows.
    pub(super) fn check_content(
        &self,
        fixture: &Fixture,
        chosen: &dyn Chosen,
        canister: &mut dyn Messages,
        model: &dyn Model,
        relation: Relation<'_>,
    ) -> Result<Digest> {
        let tables = chosen.tables();
        let all = model.content();
        let read = |canister: &mut dyn Messages| {
            self.read_back(&tables, canister, DigestPart::default(), None, all)
        };
        let table = Self::table(fixture, &tables, model);
        match relation {
            Relation::Alone => read(canister),
            Relation::Origin(seen) => {
                seen.content = all;
                match (table, canister.copies()) {
                    (Some(table), Some([copy, _])) => {
                        seen.ranges = Some(Ranges::read(emptied(fixture, copy)?, table, all)?);
                        Ok(all)
                    }
                    _ => read(canister),
                }
            }
            Relation::Fork(_)
                if self.plan.check_around
                    && let Some(around) = model.neighbours(&chosen.whole())
                    && around.digest.rows < all.rows =>
            {
                let from = DigestPart { position: around.position, ..DigestPart::default() };
                let rows = Some(around.digest.rows);
                self.read_back(&tables, canister, from, rows, around.digest)
            }
            Relation::Fork(seen) => seen.read_back(canister, all, |canister, content, ranges| {
                let (Some(table), Some([fork, origin])) = (table, canister.copies()) else {
                    return read(canister).map(drop);
                };
                let ranges = match ranges {
                    Some(ranges) => ranges,
                    None => ranges.insert(Ranges::read(emptied(fixture, origin)?, table, content)?),
                };
                let written = chosen.ids()?.unwrap_or_default();
                ranges.check(emptied(fixture, fork)?, table, model, &written).map(drop)
            }),
        }
    }

    /// The table of a fixture, if its rows can be read in ranges.
    fn table<'a>(fixture: &Fixture, job: &'a Job, model: &dyn Model) -> Option<Table<'a>> {
        model.between(job, 0, Some(0))?;
        let rows = ranges::rows_of_range(fixture.rows, fixture.payload)?;
        Some(Table { engine: fixture.engine, job, rows })
    }

    /// Reads a number of rows from a position on, and compares their digest.
    fn read_back(
        &self,
        tables: &Job,
        canister: &mut dyn Messages,
        from: DigestPart,
        most: Option<u64>,
        expected: Digest,
    ) -> Result<Digest> {
        let mut part = from;
        let mut rows = FIRST_ROWS;
        loop {
            interrupt::check()?;
            let seen = part.digest.rows;
            if let Some(most) = most {
                rows = rows.min(most - seen);
            }
            part = match wire::content(canister, tables, part, rows) {
                // Later rows cost more than the ones before.
                Err(error) if rows > 1 && wire::exceeds_limit(&error) => {
                    rows /= 2;
                    continue;
                }
                next => next?,
            };
            if part.done || most == Some(part.digest.rows) {
                break;
            }
            rows = rows_of_next_query(&part, seen, self.max_rows);
        }
        if part.digest != expected {
            bail!(
                "the content from position {} on is wrong: {:?}, but it must be {expected:?}",
                Grouped(from.position),
                part.digest
            );
        }
        Ok(part.digest)
    }
}

/// Returns the number of rows that the next query reads, after one that read those from `seen` on.
fn rows_of_next_query(part: &DigestPart, seen: u64, most: u64) -> u64 {
    let each = (part.message_instructions / (part.digest.rows - seen).max(1)).max(1);
    (QUERY_INSTRUCTIONS / each).clamp(1, most)
}

/// Empties the heap of a copy, so that its rows are read from stable memory. SQLite's cache becomes
/// small, because each query would fill it again. A write-ahead log is copied into the file, because
/// each query would read it first.
pub(super) fn emptied(fixture: &Fixture, mut copy: Copied) -> Result<Copied> {
    copy.empty_heap()?;
    if let Some(mut settings) = fixture.configuration.settings.clone() {
        settings.insert("cache_size".to_owned(), "50".to_owned());
        if settings.get("journal_mode").is_some_and(|mode| mode == "wal") {
            settings.insert("journal_mode".to_owned(), "delete".to_owned());
        }
        let configuration =
            ConfigurationInfo { settings: Some(settings), ..fixture.configuration.clone() };
        // A refusal would be a result of the case, which has nothing to do with it.
        wire::configure(&mut copy, &configuration)
            .map_err(|error| anyhow!("the copy to read back cannot be configured: {error:#}"))?;
        copy.upgrade()?;
    }
    Ok(copy)
}

/// The results that a part must have.
fn expect(model: &mut dyn Model, part: &JobPart) -> Result<Expected> {
    // An error of the model is not one of the canister, which would be a result.
    model.execute(part).map_err(|error| anyhow!("the model cannot do the same: {error}"))
}

/// Compares the outcome of a message with the model's.
fn check(done: &MessageOutcome, expected: &Expected) -> Result<()> {
    let results = match done.results {
        ResultDigest::Known(results) => results,
        ResultDigest::Unknown => expected.results,
    };
    let found = (done.measurement.rows, done.measurement.bytes, results);
    let expected = (expected.rows, expected.bytes, expected.results);
    if found != expected {
        bail!("the canister reports (rows, bytes, results) {found:?}, but it must be {expected:?}");
    }
    Ok(())
}

/// Adds a message to the sum of those before.
pub(super) fn add(sum: Option<Detail>, measured: &Measurement, receipt: &Receipt) -> Detail {
    let cost = receipt.cost;
    let after = measured.message_instructions;
    let before = after.saturating_sub(measured.instructions);
    let message = Detail {
        messages: 1,
        counter_overhead: measured.counter_overhead,
        message_instructions: measured.message_instructions,
        rows: measured.rows,
        bytes: Some(measured.bytes),
        heap_pages_before: measured.heap_pages_before,
        heap_pages_after: measured.heap_pages_after,
        stable_pages_before: measured.stable_pages_before,
        stable_pages_after: measured.stable_pages_after,
        cost,
        pages: receipt.readings.between(before, after),
        digest: None,
        stored: None,
    };
    let Some(sum) = sum else {
        return message;
    };
    Detail {
        messages: sum.messages + 1,
        message_instructions: sum.message_instructions + message.message_instructions,
        rows: sum.rows + message.rows,
        bytes: sum.bytes.zip(message.bytes).map(|(sum, more)| sum + more),
        heap_pages_after: message.heap_pages_after,
        stable_pages_after: message.stable_pages_after,
        pages: sum.pages.zip(message.pages).map(|(sum, more)| sum + more),
        cost: sum.cost + cost,
        ..sum
    }
}

/// The first operation of a message that failed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the message from operation {0} on")]
pub(super) struct At(pub u64);

impl Runner<'_> {
    /// Executes a step with its observer. Keeps its further rows, and returns its own.
    fn observed(
        &self,
        fixture: &Fixture,
        step: &Step,
        chosen: &dyn Chosen,
        mut observer: Box<dyn Observer>,
        canister: &mut dyn Messages,
        progress: &ProgressStep,
    ) -> Result<(Measured, Populate)> {
        let keeps = observer.kept();
        let mut sum: Option<Detail> = None;
        let mut populate = Populate::default();
        let mut next = 0;
        let executed =
            self.messages(fixture, step, chosen, canister, false, |canister, part, done| {
                let MessageOutcome { measurement, receipt, .. } = &done;
                let mut kept = Vec::new();
                let mut position = Some(0);
                while let Some(from) = position {
                    let (bytes, next) = wire::kept(canister, &keeps, from)?;
                    kept.push(bytes);
                    position = next;
                }
                populate.add(measurement.message_instructions, &receipt.cost);
                sum = Some(add(sum.take(), measurement, receipt));
                observer.message(Message {
                    from: part.from,
                    count: part.count,
                    kept: &kept,
                    readings: &receipt.readings.0,
                    cycles: receipt.cost.cycles,
                })?;
                let after = part.from + part.count;
                next = after;
                if step.role != Role::Prepare
                    && (after == step.operations || after % 100 < part.count)
                {
                    progress.says(format!("{after} of {}", step.operations));
                }
                Ok(())
            });
        executed.map_err(|error| match wire::exceeds_limit(&error) {
            true => error.context(
                "the work of a message does not fit into its limits; put less into each message",
            ),
            false if error.is::<Exceeded>() => error.context(At(next)),
            false => error,
        })?;
        let Some(detail) = sum else { bail!("there is no work to do") };
        if observer.reads_content() {
            let content = self.content_of(chosen, canister)?;
            observer.content(content)?;
        }
        let rows = observer.rows()?;
        if step.role == Role::Prepare {
            let measured = Measured {
                detail: Some(detail.clone()),
                ..Measured::without_detail(detail.message_instructions, step.operations)
            };
            return Ok((measured, populate));
        }
        if rows.len() != step.more.len() + 1 {
            bail!("the step has {} rows, but {} were observed", step.more.len() + 1, rows.len());
        }
        let mut rows = rows.into_iter();
        let own = rows.next().context("the step has no row")?;
        for ((section, name), observed) in step.more.iter().zip(rows) {
            let outcome = if observed.costs.is_empty() {
                let reason = "no transaction of this run executes it".to_owned();
                Outcome::NotApplicable { reason }
            } else {
                Outcome::Measured(part(observed, &detail)?)
            };
            self.keep_case(Case {
                section: section.clone(),
                name: name.clone(),
                configuration: fixture.configuration.key.clone(),
                rows: fixture.rows,
                payload: fixture.payload,
                state: Default::default(),
                outcome,
            })?;
        }
        let detail =
            Detail { rows: own.rows, pages: own.pages, digest: own.digest, ..detail.clone() };
        let mut measured = measured(own)?;
        if step.details.size {
            measured.detail = Some(self.with_size(detail, chosen, canister)?);
        } else {
            measured.detail = Some(detail);
        }
        Ok((measured, populate))
    }

    /// Reads the digest of all tables.
    fn content_of(&self, chosen: &dyn Chosen, canister: &mut dyn Messages) -> Result<Digest> {
        let tables = chosen.tables();
        let mut part = DigestPart::default();
        let mut rows = FIRST_ROWS;
        while !part.done {
            interrupt::check()?;
            let seen = part.digest.rows;
            part = match wire::content(canister, &tables, part, rows) {
                Err(error) if rows > 1 && wire::exceeds_limit(&error) => {
                    rows /= 2;
                    continue;
                }
                next => next?,
            };
            rows = rows_of_next_query(&part, seen, self.max_rows);
        }
        Ok(part.digest)
    }
}

/// The measurement of a row whose costs are those of a whole.
fn measured(observed: Observed) -> Result<Measured> {
    let Observed { costs, worst, phases, .. } = observed;
    let each = described(&costs, worst)?;
    Ok(Measured {
        each: Some(each),
        phases: (!phases.is_empty()).then_some(phases),
        ..Measured::without_detail(costs.iter().sum(), costs.len() as u64)
    })
}

/// The measurement of a row that is a part of a step's work: its messages are the step's.
fn part(observed: Observed, whole: &Detail) -> Result<Measured> {
    let detail = Detail {
        rows: observed.rows,
        pages: observed.pages,
        digest: observed.digest,
        cost: Cost { cycles: observed.cycles, inside: None },
        message_instructions: observed.costs.iter().sum(),
        ..whole.clone()
    };
    Ok(Measured { detail: Some(detail), ..measured(observed)? })
}
