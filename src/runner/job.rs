//! One step of a lane: its messages, and what they must find and leave.

use anyhow::{Result, bail};
use stablebench_protocol::{
    Digest, DigestPart, Inspected, Job, OperationCost, Part, Performed, PhaseCost, Worked,
};
use stablebench_workload::{Expected, Tables};

use super::Runner;
use super::capacity::is_too_much;
use super::case::add;
use super::content::{MANY_ROWS, QUERY_INSTRUCTIONS};
use super::spread::spread;
use super::staged;
use crate::interrupt;
use crate::replica::{Canister, Cost, Messages, Receipt, query, query_all, update};
use crate::results::{Detail, Measured, Populate, Spread, Stored};
use crate::suites::lane::Step;

/// Rows of the first query that reads content back.
const FIRST_ROWS: u64 = 10_000;

impl Runner<'_> {
    /// Does a step, checks it, and tells what it cost.
    pub(super) fn step(
        &self,
        step: &Step,
        canister: &mut dyn Messages,
        tables: &mut dyn Tables,
    ) -> Result<(Measured, Populate)> {
        if step.upgraded {
            canister.upgrade()?;
        }
        if let Some(job) = &step.before {
            tables.perform(&self.whole(step, job));
        }
        let mut sum: Option<Detail> = None;
        let mut populate = Populate::default();
        let (mut instructions, mut wrote) = (0, false);
        self.messages(step, canister, false, |part, performed, receipt| {
            let expected = tables.perform(part);
            check(&performed, &expected)?;
            wrote |= expected.results.is_none();
            instructions += performed.measurement.instructions;
            populate.add(performed.measurement.message_instructions, &receipt.cost);
            sum = Some(add(sum.take(), &performed.measurement, &receipt));
            Ok(())
        })?;
        let Some(mut detail) = sum else {
            bail!("there is no work to do");
        };
        if wrote {
            detail.digest = Some(self.content(canister, &step.job, tables.content())?);
        }
        if step.inspected {
            let found: Inspected = query(canister, "inspect", (&step.job,))?;
            detail.stored = Some(Stored {
                bytes: found.stored_bytes,
                virtual_bytes: found.virtual_bytes,
                cache_bytes: found.cache_bytes,
                objects: found.objects,
            });
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

    /// The same step operation by operation, in a fork, where that is wanted.
    pub(super) fn each_of(
        &self,
        step: &Step,
        canister: &mut dyn Canister,
        tables: &dyn Tables,
    ) -> Result<Option<Spread>> {
        if !self.outline.each || step.operations < 2 {
            return Ok(None);
        }
        let mut fork = canister.fork()?;
        let mut tables = tables.fork();
        if step.upgraded {
            fork.upgrade()?;
        }
        let mut costs: Vec<OperationCost> = Vec::new();
        self.messages(step, &mut *fork, true, |part, performed, _| {
            check(&performed, &tables.perform(part))?;
            costs.extend(&performed.each);
            Ok(())
        })?;
        spread(&costs, 0..step.operations).map(Some)
    }

    /// Sends a step's messages, each with as many operations as the step says; half as many
    /// from where one comes to a limit.
    fn messages(
        &self,
        step: &Step,
        canister: &mut dyn Messages,
        each: bool,
        mut done: impl FnMut(&Part, Performed, Receipt) -> Result<()>,
    ) -> Result<()> {
        self.before(step, canister)?;
        let (mut from, mut most) = (0, step.message_operations.max(1));
        while from < step.operations {
            interrupt::check()?;
            let count = most.min(step.operations - from);
            let (job, seed) = (step.job.clone(), self.outline.seed);
            let part = Part { job, seed, from, count, each };
            // What becomes no row makes ready.
            let unmeasured =
                |(performed, cost)| (performed, Receipt { cost, ..Receipt::default() });
            let sent = if step.case.is_some() {
                measured(canister, &part)
            } else if step.as_measured {
                as_measured(canister, &part).map(unmeasured)
            } else {
                update(canister, "perform", (&part,)).map(unmeasured)
            };
            match sent {
                Ok((performed, receipt)) => {
                    done(&part, performed, receipt)?;
                    from += count;
                }
                // Nothing has happened.
                Err(error) if count > 1 && is_too_much(&error) => most = count / 2,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes ready for a step.
    fn before(&self, step: &Step, canister: &mut dyn Messages) -> Result<()> {
        if let Some(job) = &step.before {
            let part = self.whole(step, job);
            update::<Performed>(canister, "perform", (&part,))?;
        }
        Ok(())
    }

    /// A job with all operations of a step.
    fn whole(&self, step: &Step, job: &Job) -> Part {
        let (job, seed) = (job.clone(), self.outline.seed);
        Part { job, seed, from: 0, count: step.operations, each: false }
    }

    /// Where the instructions of a step go, in a fork, where that is wanted.
    pub(super) fn phases_of(
        &self,
        step: &Step,
        canister: &mut dyn Canister,
    ) -> Result<Option<Vec<PhaseCost>>> {
        if !step.phases {
            return Ok(None);
        }
        let mut fork = canister.fork()?;
        self.before(step, &mut *fork)?;
        let part = self.whole(step, &step.job);
        let id = Some(fork.call_id());
        Ok(Some(update(&mut *fork, "phases", (&part, id))?.0))
    }

    /// Reads all rows of a job's tables back and compares them with what must be there.
    fn content(&self, canister: &mut dyn Messages, job: &Job, expected: Digest) -> Result<Digest> {
        let mut part: Option<DigestPart> = None;
        let mut rows = FIRST_ROWS;
        loop {
            interrupt::check()?;
            let ask = if rows < MANY_ROWS { query } else { query_all };
            let next: DigestPart = match ask(canister, "content", (job, part, rows)) {
                Ok(next) => next,
                Err(error) if rows > 1 && is_too_much(&error) => {
                    rows /= 2;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if next.done {
                if next.digest != expected {
                    bail!("the content is wrong: {:?}, but it must be {expected:?}", next.digest);
                }
                return Ok(next.digest);
            }
            let seen = next.digest.rows - part.map_or(0, |part| part.digest.rows);
            let each = (next.message_instructions / seen.max(1)).max(1);
            rows = (QUERY_INSTRUCTIONS / each).max(1);
            part = Some(next);
        }
    }
}

/// Does a part in a measured message. What it reads is asked for first, by a query that leaves
/// nothing behind: where that comes to a limit, nothing has happened.
fn measured(canister: &mut dyn Messages, part: &Part) -> Result<(Performed, Receipt)> {
    let results = staged::results(canister, part)?;
    let (Worked { measurement, each }, receipt) = staged::part(canister, part)?;
    Ok((Performed { measurement, each, results }, receipt))
}

/// Sends the same messages, but not as a measurement.
fn as_measured(canister: &mut dyn Messages, part: &Part) -> Result<(Performed, Cost)> {
    let results = staged::results(canister, part)?;
    let (Worked { measurement, each }, cost) = staged::as_measured(canister, part)?;
    Ok((Performed { measurement, each, results }, cost))
}

/// What the canister says that it did must be what had to be done.
fn check(performed: &Performed, expected: &Expected) -> Result<()> {
    let measurement = &performed.measurement;
    let found =
        Expected { rows: measurement.rows, bytes: measurement.bytes, results: performed.results };
    if found != *expected {
        bail!("the canister says that it did {found:?}, but it must be {expected:?}");
    }
    Ok(())
}
