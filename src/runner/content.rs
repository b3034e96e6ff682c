//! Filling a canister, changing it at random, and reading back what it holds.

use anyhow::{Result, bail};
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, Measurement, Operation, Selection, Work, Worked,
};
use stablebench_workload::Ids;

use super::Runner;
use super::capacity::is_too_much;
use super::seen::Seen;
use crate::interrupt;
use crate::progress::Step;
use crate::replica::{Cost, Messages, query, query_all, update};
use crate::report::number::Short;
use crate::results::Populate;
use crate::suites::users::content::{Churn, Content, digest_after};

/// Instructions that a populating message should stay below: half of what one
/// may use, because the next rows may cost more than the last.
const MESSAGE_INSTRUCTIONS: u64 = 20_000_000_000;
/// Rows of the first populating message, before anything is known.
const FIRST_ROWS: u64 = 1_000;
/// Instructions that a query which reads rows back should stay below, of 5 G that it may use.
pub(super) const QUERY_INSTRUCTIONS: u64 = 4_000_000_000;
/// Rows from which on a query goes through most of what a canister holds.
pub(super) const MANY_ROWS: u64 = 100_000;
/// Rows that a message of a churn is about: their ids are an argument of 80 KB.
const CHURN_ROWS: usize = 10_000;

/// What a store must hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub engine: Engine,
    pub payload: u32,
    pub content: &'a Content,
    /// Of all of the content.
    pub digest: Digest,
}

impl Runner<'_> {
    /// Puts the first rows in, in as few messages as is safe.
    pub(super) fn populate(
        &self,
        canister: &mut dyn Messages,
        engine: Engine,
        all: Ids,
        step: &Step,
    ) -> Result<Populate> {
        let mut sum = Populate::default();
        let (mut done, mut rows, mut most) = (0, FIRST_ROWS, all.rows());
        // The limit depends on the payload, which was chosen after the start.
        let Description { max_rows, .. } = query(canister, "describe", ())?;
        while done < all.rows() {
            interrupt::check()?;
            rows = rows.min(all.rows() - done).min(most).clamp(1, max_rows);
            let ids = Ids::new(all.first() + done * all.step(), all.step(), rows)?;
            let arguments = (engine, ids.first(), ids.step(), ids.rows());
            let (measurement, cost): (Measurement, Cost) =
                match update(canister, "add_users", arguments) {
                    // The message was undone: where many rows in a transaction cost much more
                    // than as many in several.
                    Err(error) if rows > 1 && is_too_much(&error) => {
                        most = rows / 2;
                        continue;
                    }
                    answer => answer?,
                };
            done += rows;
            sum.add(measurement.message_instructions, &cost);
            step.at(done, format!("{} instructions", Short(sum.instructions)));
            // Rows cost more as they get more: never grow by more than ten times.
            let each = (measurement.message_instructions / rows).max(1);
            rows = (MESSAGE_INSTRUCTIONS / each).min(rows * 10);
        }
        Ok(sum)
    }

    /// Deletes and inserts rows.
    pub(super) fn churn(
        &self,
        canister: &mut dyn Messages,
        engine: Engine,
        churn: &Churn,
    ) -> Result<()> {
        type Change = fn(Selection) -> Operation;
        let changes: [(Change, &[u64]); 2] =
            [(Operation::Delete, &churn.deleted), (Operation::Insert, &churn.inserted)];
        for (change, ids) in changes {
            for ids in ids.chunks(CHURN_ROWS) {
                interrupt::check()?;
                let operation = change(Selection::List(ids.to_vec()));
                let work = Work { engine, operation, transaction: None, each: false };
                update::<Worked>(canister, "work", (work,))?;
            }
        }
        Ok(())
    }

    /// Reads all rows back after an operation in a fork, or those around the ones that it
    /// names, where that was asked for, and compares them with what must be there. What was
    /// read back from a fork that is alike is not read again.
    /// Answers the digest of the rows.
    pub(super) fn check_after(
        &self,
        fork: &mut dyn Messages,
        store: &Known<'_>,
        operation: &Operation,
        seen: &mut Seen,
    ) -> Result<Digest> {
        let Known { engine, payload, content, digest } = *store;
        let all = digest_after(digest, operation, payload);
        let around = content.around(engine, operation, payload);
        if self.outline.check_around && around.digest.rows < all.rows {
            let most = Some(around.digest.rows);
            return self.read_back(fork, engine, around.position, most, around.digest);
        }
        seen.read_back(fork, all, |fork| self.check(fork, engine, all))
    }

    /// Reads all rows back and compares them with what must be there.
    pub(super) fn check(
        &self,
        canister: &mut dyn Messages,
        engine: Engine,
        expected: Digest,
    ) -> Result<Digest> {
        self.read_back(canister, engine, 0, None, expected)
    }

    /// Reads rows from a position on, at most so many, and compares their digest.
    fn read_back(
        &self,
        canister: &mut dyn Messages,
        engine: Engine,
        position: u64,
        most: Option<u64>,
        expected: Digest,
    ) -> Result<Digest> {
        let mut part = DigestPart { position, ..DigestPart::default() };
        let mut rows = FIRST_ROWS * 10;
        loop {
            interrupt::check()?;
            let seen = part.digest.rows;
            if let Some(most) = most {
                rows = rows.min(most - seen);
            }
            let ask = if rows < MANY_ROWS { query } else { query_all };
            part = match ask(canister, "digest", (engine, Some(part), rows)) {
                // Later rows cost more than the ones before.
                Err(error) if rows > 1 && is_too_much(&error) => {
                    rows /= 2;
                    continue;
                }
                next => next?,
            };
            if part.done || most == Some(part.digest.rows) {
                break;
            }
            let each = (part.message_instructions / (part.digest.rows - seen).max(1)).max(1);
            rows = (QUERY_INSTRUCTIONS / each).clamp(1, self.max_rows);
        }
        if part.digest != expected {
            bail!(
                "the content from {position} on is wrong: {:?}, but it must be {expected:?}",
                part.digest
            );
        }
        Ok(part.digest)
    }
}
