//! Capacities, found by trying: the most operations of some work that fit into a message, and the size of
//! the state at which an upgrade fails. Also the cost of installations and upgrades.
//!
//! Each try is a fork of the same canister. The cost of a message decides the next one, until the
//! largest that fits and the smallest that does not are next to each other, or less than a
//! thousandth apart:
//!
//! ```text
//!   tries        1 000 fits ──→ guess ──→ … ──→ fits │ does not
//!   bounds  [fits ………………………………………… exceeds)
//! ```
//!
//! An upgrade is to the canister's own module:
//!
//! ```text
//!   cost    populated canister ── fork ──→ upgrade, measured ──→ the content is the same
//!
//!   size    canister ── fork ──→ rows ──→ upgrade      twice as many rows until it fails, then
//!                                                      between the largest that works and that
//! ```

use anyhow::{Result, anyhow, bail};
use stablebench_protocol::Digest;
use stablebench_suite::plan::{self, Fixture, Search, Step};
use stablebench_workload::Model;

use super::step::{Relation, Subject, add};
use super::wire::{self, Purpose};
use super::{Runner, interrupt};
use crate::replica::{Canister, Cost, Messages, Reject, Unmeasured};
use crate::results::{Capacity, Detail, Measured, Populate};

/// Operations of the first try.
const FIRST: u64 = 1_000;
/// The search ends when the bounds differ by this part of the largest number that fits.
const RESOLUTION: u64 = 1_000;

/// A try that fits.
struct Fit {
    operations: u64,
    instructions: u64,
    detail: Detail,
}

impl Runner<'_> {
    /// Searches for the most operations of a step that one message can execute.
    pub(super) fn capacity(
        &self,
        fixture: &Fixture,
        step: &Step,
        search: Search,
        canister: &mut dyn Canister,
    ) -> Result<Measured> {
        let Some(most) = step.job.most_operations(fixture.rows) else {
            bail!("only work on rows has a capacity");
        };
        let most = most.min(self.max_rows);
        let limit = wire::limit(search);
        let mut attempt = |operations: u64| -> Result<Option<Fit>> {
            let part = step.job.choose(operations, self.seed)?.whole();
            let mut fork = canister.fork()?;
            match wire::execute_unread(&mut *fork, &part, search) {
                Ok(done) => Ok(Some(Fit {
                    operations,
                    instructions: done.measurement.instructions,
                    detail: add(None, &done.measurement, &done.receipt),
                })),
                Err(error) if wire::exceeds_limit(&error) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let mut fits: Option<Fit> = None;
        // Instructions of one more operation, from the last two tries that fitted.
        let mut each = None;
        let mut exceeds: Option<u64> = None;
        let mut next = FIRST.min(most).max(1);
        loop {
            interrupt::check()?;
            match attempt(next)? {
                Some(fit) => {
                    each = fits.as_ref().map(|less| slope(less, &fit));
                    fits = Some(fit);
                }
                None => exceeds = Some(next),
            }
            let low = fits.as_ref().map_or(0, |fit| fit.operations);
            let high = exceeds.unwrap_or(most + 1);
            if high - low <= 1 || (low > 0 && exceeds.is_some() && (high - low) * RESOLUTION <= low)
            {
                break;
            }
            next = guess(fits.as_ref(), each, limit, high, exceeds.is_some());
        }
        let Some(fit) = fits else {
            bail!(Reject {
                code: "CanisterInstructionLimitExceeded".to_owned(),
                message: "not one operation fits into a message".to_owned(),
            });
        };
        Ok(Measured {
            instructions: fit.instructions,
            operations: fit.operations,
            capacity: Some(Capacity { limit, fits: fit.operations, exceeds, reason: None }),
            detail: Some(fit.detail),
            each: None,
            phases: None,
        })
    }
}

/// Instructions of one more operation between two tries.
fn slope(less: &Fit, more: &Fit) -> f64 {
    let used = |fit: &Fit| fit.detail.message_instructions as f64;
    (used(more) - used(less)) / (more.operations - less.operations) as f64
}

/// A number between the largest that fits and `high`, which was `tried` or is not possible: the one
/// that reaches the limit if each further operation costs `each`, or one just above the largest
/// that fits if that is near, or the middle if neither is between the two.
fn guess(fit: Option<&Fit>, each: Option<f64>, limit: u64, high: u64, tried: bool) -> u64 {
    let Some(fit) = fit else {
        return high / 2;
    };
    let low = fit.operations;
    let used = fit.detail.message_instructions;
    let each = each.unwrap_or(used as f64 / low as f64).max(f64::MIN_POSITIVE);
    // A little less than what is left, so that the next try fits and improves the estimate.
    let more = (limit.saturating_sub(used) as f64 / each * 0.999) as u64;
    let near = (low / RESOLUTION).max(1);
    let next = low.saturating_add(more.max(near));
    match next < high {
        true => next,
        // The largest possible number may fit.
        false if !tried => high - 1,
        // Far apart they differ by a factor, near by a difference.
        false if high / 4 > low => (low as f64 * high as f64).sqrt() as u64,
        false => low + (high - low) / 2,
    }
}

/// The search ends when the bounds differ by this part of the largest size that works.
const SIZE_RESOLUTION: u64 = 20;

impl Runner<'_> {
    /// Installs the module of a fixture in another canister.
    pub(super) fn installation(&self, fixture: &Fixture) -> Result<Measured> {
        let wasm = self.wasm(&fixture.configuration)?;
        let cost = self.replica.installation(wasm)?.ok_or_else(|| {
            let reason = "the replica does not report the cost of an installation";
            Unmeasured::NotApplicable(reason.to_owned())
        })?;
        let instructions = instructions(&cost)?;
        let fresh = wire::describe(&mut *self.replica.install(wasm)?)?;
        let detail = Detail {
            heap_pages_after: fresh.heap_pages,
            stable_pages_after: fresh.stable_pages,
            ..Detail::of_message(instructions, cost)
        };
        Ok(measured(detail, 1, None))
    }

    /// Estimates the cost of compiling the module of a fixture.
    pub(super) fn compilation(&self, fixture: &Fixture) -> Result<Measured> {
        let compiling = self.replica.compiling(self.wasm(&fixture.configuration)?)?;
        let instructions = compiling.ok_or_else(|| {
            let reason = "the replica has no estimate of what compiling costs";
            Unmeasured::NotApplicable(reason.to_owned())
        })?;
        Ok(Measured::without_detail(instructions, 1))
    }

    /// Upgrades a canister, measured, and reads its content back.
    pub(super) fn upgrade(
        &self,
        fixture: &Fixture,
        step: &Step,
        subject: Subject<'_>,
    ) -> Result<(Measured, Populate)> {
        let Subject { canister, model, relation } = subject;
        let mut detail = upgraded(canister, &*model)?;
        let chosen = self.chosen(step)?;
        detail.digest = Some(self.check_content(fixture, &*chosen, canister, &*model, relation)?);
        Ok((measured(detail, 1, None), Populate::default()))
    }

    /// Searches for the most rows with which a canister can be upgraded: at most those of the step.
    pub(super) fn upgradeable(
        &self,
        fixture: &Fixture,
        step: &Step,
        canister: &mut dyn Canister,
    ) -> Result<Measured> {
        let batch = match step.messages {
            plan::Messages::Exactly(operations) | plan::Messages::UpTo(operations) => operations,
            plan::Messages::ByCost => bail!("the messages of a search have a fixed size"),
        };
        let mut fits: Option<(u64, Detail)> = None;
        let mut exceeds: Option<(u64, Reject)> = None;
        let mut next = batch.min(step.operations);
        loop {
            interrupt::check()?;
            match self.attempt(fixture, step, next, batch, canister)? {
                Ok(detail) => fits = Some((next, detail)),
                Err(reject) => exceeds = Some((next, reject)),
            }
            let low = fits.as_ref().map_or(0, |(rows, _)| *rows);
            let high = exceeds.as_ref().map_or(step.operations + 1, |(rows, _)| *rows);
            next = match &exceeds {
                _ if high - low <= (low / SIZE_RESOLUTION).max(1) => break,
                None => (low * 2).min(step.operations),
                Some(_) => low + (high - low) / 2,
            };
        }
        let limit = wire::limit(Search::Upgrade);
        match (fits, exceeds) {
            (Some((rows, detail)), exceeds) => {
                let (exceeds, reason) = exceeds.map(|(rows, it)| (rows, it.to_string())).unzip();
                let capacity = Capacity { limit, fits: rows, exceeds, reason };
                Ok(measured(detail, rows, Some(capacity)))
            }
            (None, Some((_, reject))) => bail!(reject),
            (None, None) => bail!("there are no rows"),
        }
    }

    /// Adds rows to a fork and upgrades it. Returns the reject if that or adding the rows fails.
    fn attempt(
        &self,
        fixture: &Fixture,
        step: &Step,
        rows: u64,
        batch: u64,
        canister: &mut dyn Canister,
    ) -> Result<Result<Detail, Reject>> {
        let chosen = step.job.choose(rows, self.seed)?;
        let (mut fork, mut model) = (canister.fork()?, (fixture.model)());
        let mut from = 0;
        while from < rows {
            interrupt::check()?;
            let part = chosen.part(from, batch.min(rows - from), false);
            model.execute(&part).map_err(|error| anyhow!("the model has no such rows: {error}"))?;
            if let Err(error) = wire::execute(&mut *fork, &part, Purpose::Prepare) {
                return error.downcast().map(Err);
            }
            from += part.count;
        }
        let mut detail = match upgraded(&mut *fork, &*model) {
            Ok(detail) => detail,
            Err(error) => return error.downcast().map(Err),
        };
        detail.digest =
            Some(self.check_content(fixture, &*chosen, &mut *fork, &*model, Relation::Alone)?);
        Ok(Ok(detail))
    }
}

/// Upgrades a canister with the content of a model. Its digest is left out.
fn upgraded(canister: &mut dyn Messages, model: &dyn Model) -> Result<Detail> {
    let before = wire::describe(canister)?;
    let cost = canister.upgrade()?;
    let after = wire::describe(canister)?;
    let Digest { rows, .. } = model.content();
    let instructions = instructions(&cost)?;
    Ok(Detail {
        rows,
        heap_pages_before: before.heap_pages,
        heap_pages_after: after.heap_pages,
        stable_pages_before: before.stable_pages,
        stable_pages_after: after.stable_pages,
        ..Detail::of_message(instructions, cost)
    })
}

/// The instructions of an installation or an upgrade, which a canister cannot count itself.
fn instructions(cost: &Cost) -> Result<u64> {
    let inside = cost.inside.ok_or_else(|| {
        let reason = "the replica does not report the instructions of installations and upgrades";
        Unmeasured::NotApplicable(reason.to_owned())
    })?;
    Ok(inside.instructions)
}

fn measured(detail: Detail, operations: u64, capacity: Option<Capacity>) -> Measured {
    Measured {
        instructions: detail.message_instructions,
        operations,
        capacity,
        detail: Some(detail),
        each: None,
        phases: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(operations: u64, used: u64) -> Fit {
        let receipt = crate::replica::Receipt::default();
        let measured =
            stablebench_protocol::Measurement { message_instructions: used, ..Default::default() };
        Fit { operations, instructions: used, detail: add(None, &measured, &receipt) }
    }

    /// Whatever the cost of an operation, the bounds come together in a few tries.
    #[test]
    fn a_search_ends_at_the_limit() {
        type Cost = fn(u64) -> u64;
        let costs: [(Cost, u64); 4] = [
            (|operations| 5_000 + operations * 17, 10_000_000_000),
            (|operations| operations * operations, 10_000_000_000),
            (|operations| operations * 40_000_000 + operations % 7, 40_000_000_000),
            (|operations| 39_000_000_000 + operations * 20_000, 40_000_000_000),
        ];
        for (cost, limit) in costs {
            let (mut low, mut high, mut tried) = (None::<Fit>, 10_000_001u64, false);
            let (mut next, mut each) = (1_000, None);
            for tries in 0.. {
                assert!(tries < 12, "{low:?} {high}", low = low.map(|fit| fit.operations));
                if cost(next) <= limit {
                    let fit = fit(next, cost(next));
                    each = low.as_ref().map(|less| slope(less, &fit));
                    low = Some(fit);
                } else {
                    (high, tried) = (next, true);
                }
                let fits = low.as_ref().map_or(0, |fit| fit.operations);
                if high - fits <= 1 || (fits > 0 && (high - fits) * RESOLUTION <= fits) {
                    break;
                }
                next = guess(low.as_ref(), each, limit, high, tried);
                assert!(fits < next && next < high, "{fits} {next} {high}");
            }
            let fits = low.unwrap().operations;
            assert!(cost(fits) <= limit && (high > 10_000_000 || cost(high) > limit));
        }
    }
}
