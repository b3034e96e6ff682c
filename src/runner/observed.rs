//! A step whose results no model knows: an observer reads what the canister keeps of each message.
//!
//! ```text
//!   message ── kept, a query ──→ observer ──→ … ──→ content of all tables ──→ observer ──→ rows
//! ```
//!
//! A step may yield several rows of tables, such as one for each statement. The first is the step's own.

use anyhow::{Context, Result, bail};
use stablebench_protocol::{Digest, DigestPart};
use stablebench_suite::job::{Chosen, Message, Observed, Observer};
use stablebench_suite::plan::{Fixture, Role, Step};

use super::spread::described;
use super::step::{add, rows_of_next_query};
use super::wire::{self, MessageOutcome};
use super::{Runner, interrupt};

use crate::progress;
use crate::replica::ceiling::Exceeded;
use crate::replica::{Cost, Messages};
use crate::results::{Case, Detail, Measured, Outcome, Populate};

/// Rows of the first query that reads content.
const FIRST_ROWS: u64 = 10_000;

/// The first operation of a message that failed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the message from operation {0} on")]
pub(super) struct At(pub u64);

impl Runner<'_> {
    /// Executes a step with its observer. Keeps its further rows, and returns its own.
    pub(super) fn observed(
        &self,
        fixture: &Fixture,
        step: &Step,
        chosen: &dyn Chosen,
        mut observer: Box<dyn Observer>,
        canister: &mut dyn Messages,
        progress: &progress::Step,
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
