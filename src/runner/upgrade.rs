//! Installations of a module, and upgrades of a canister to its own: their cost, and the size of the
//! state at which an upgrade fails.
//!
//! ```text
//!   cost    populated canister ── fork ──→ upgrade, measured ──→ the content is the same
//!
//!   size    canister ── fork ──→ rows ──→ upgrade      twice as many rows until it fails, then
//!                                                      between the largest that works and that
//! ```

use anyhow::{Result, anyhow, bail};
use stablebench_protocol::Digest;
use stablebench_workload::Model;

use super::step::{Relation, Subject};
use super::wire::{self, Purpose};
use super::{Runner, interrupt};
use crate::replica::{Canister, Cost, Messages, Reject, Unmeasured};
use crate::results::{Capacity, Detail, Measured, Populate};
use stablebench_suite::plan::{self, Fixture, Search, Step};

/// The search ends when the bounds differ by this part of the largest size that works.
const RESOLUTION: u64 = 20;

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
                _ if high - low <= (low / RESOLUTION).max(1) => break,
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
