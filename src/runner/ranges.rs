//! Reads back what a case can have changed, instead of a million rows after each case.
//!
//! ```text
//!   fixture ── copy with an empty heap ── read in ranges of rows; note the pages of each range
//!   fork    ── copy with an empty heap ── compare the pages of both ── read the ranges that changed
//! ```
//!
//! The rows of a range depend on the heap, which is that of a fresh canister, and on the stable pages
//! that were read for it. If none of them has changed, neither have the rows.
//!
//! All ranges depend on the heap and on some stable pages, such as headers and the root. Almost every
//! case changes one of these *shared* pages, so the rows are counted too. If the engine visits every
//! page for that, and finds the pages of all ranges that have not changed, then these are still a part
//! of the table. If it stores the number of rows, the first fork in which a shared page has changed is
//! read completely, and later ones are not.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Result, bail};
use fixedbitset::FixedBitSet;
use stablebench_protocol::{Digest, DigestPart, Engine, Job};
use stablebench_workload::Model;

use super::{interrupt, wire};
use crate::replica::{Copied, Differing};
use crate::report::number::Grouped;

/// The number of rows in a range, if they are short.
const ROWS: u64 = 16_384;
/// The size of the texts in a range, if they are long.
const BYTES: u64 = 4 << 20;
/// Tables with fewer ranges are read completely.
const FEWEST: u64 = 4;

/// The table that is read.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub engine: Engine,
    /// A job on it.
    pub job: &'a Job,
    /// The number of rows in a range.
    pub rows: u64,
}

/// The rows of a populated canister in ranges, with the pages that they depend on.
pub(super) struct Ranges {
    /// The canister with an empty heap.
    copy: Copied,
    /// The position of the first row of each range.
    starts: Vec<u64>,
    /// The stable pages that each range depends on.
    pages: Vec<FixedBitSet>,
    /// The stable pages that all ranges depend on.
    shared: FixedBitSet,
    /// True if counting the rows reads the pages of all ranges.
    counting_visits: bool,
    /// Shared pages that have changed in a fork whose content was right.
    settled: Differing,
}

/// The number of rows in a range of a table, or `None` if it is too small for ranges.
pub(super) fn rows_of_range(rows: u64, payload: u32) -> Option<u64> {
    let of_range = (BYTES / u64::from(payload.max(1))).clamp(1, ROWS);
    (rows / of_range >= FEWEST).then_some(of_range)
}

impl Ranges {
    /// Reads all rows of a populated canister, of which this is a copy with an empty heap.
    ///
    /// # Errors
    ///
    /// If they are not those that are expected.
    pub(super) fn read(mut copy: Copied, table: Table<'_>, expected: Digest) -> Result<Self> {
        let mut part = DigestPart::default();
        let (mut starts, mut pages) = (Vec::new(), Vec::new());
        while !part.done {
            interrupt::check()?;
            starts.push(part.position);
            part = wire::content(&mut copy, table.job, part, table.rows)?;
            pages.push(copy.take_read());
        }
        if part.digest != expected {
            bail!("the populated canister contains {:?}, but it must be {expected:?}", part.digest);
        }
        let visited = count(&mut copy, table.engine, expected.rows)?;
        let counting_visits = pages.iter().all(|pages| pages.is_subset(&visited));
        let mut shared = pages[0].clone();
        pages.iter().for_each(|pages| shared.intersect_with(pages));
        Ok(Self { copy, starts, pages, shared, counting_visits, settled: Differing::default() })
    }

    /// Reads back what may have changed in a fork, of which `fork` is a copy with an empty heap, and
    /// the ranges around the rows with the ids `written`. Compares all with the model. Returns the
    /// number of rows that were read.
    ///
    /// # Errors
    ///
    /// If the content is wrong.
    pub(super) fn check(
        &mut self,
        mut fork: Copied,
        table: Table<'_>,
        model: &dyn Model,
        written: &[u64],
    ) -> Result<u64> {
        let whole = model.content();
        let Some(changed) = fork.differing(&self.copy)? else {
            return read(&mut fork, table, 0, None, whole);
        };
        let (mut shared, mut own) = (changed.clone(), changed.stable);
        shared.stable.intersect_with(&self.shared);
        own.difference_with(&self.shared);
        let affected = self.affected(&own, written);
        let parts = self.parts(&affected, |from, to| model.between(table.job, from, to));
        let rows = match parts {
            Some(parts)
                if self.still_has(&mut fork, table.engine, whole.rows, &affected)?
                    || (!self.counting_visits && shared.is_subset(&self.settled)) =>
            {
                let read = |(from, to, expected)| read(&mut fork, table, from, to, expected);
                parts.into_iter().map(read).sum::<Result<u64>>()?
            }
            _ => read(&mut fork, table, 0, None, whole)?,
        };
        self.settled.union_with(&shared);
        Ok(rows)
    }

    /// The ranges that depend on one of the pages, and those of the written rows with the ranges
    /// before and after them.
    fn affected(&self, pages: &FixedBitSet, written: &[u64]) -> BTreeSet<usize> {
        let ranges = 0..self.starts.len();
        let dependent = ranges.filter(|range| !self.pages[*range].is_disjoint(pages));
        let around = written.iter().flat_map(|id| {
            let at = self.starts.partition_point(|start| start <= id).saturating_sub(1);
            at.saturating_sub(1)..(at + 2).min(self.starts.len())
        });
        dependent.chain(around).collect()
    }

    /// The parts of the table with these ranges: their positions, and the digests that they must
    /// have. `None` if reading everything is not much more.
    fn parts(
        &self,
        ranges: &BTreeSet<usize>,
        between: impl Fn(u64, Option<u64>) -> Option<Digest>,
    ) -> Option<Vec<(u64, Option<u64>, Digest)>> {
        if ranges.len() > self.starts.len() / 2 {
            return None;
        }
        let parts = neighbouring(ranges).into_iter().map(|part| {
            let (from, to) = (self.starts[part.start], self.starts.get(part.end).copied());
            // Where all rows are gone there is nothing to read.
            let digest = between(from, to).filter(|digest| digest.rows > 0)?;
            Some((from, to, digest))
        });
        parts.collect()
    }

    /// Counts the rows. Returns `true` if that shows that all ranges but those in `affected` are
    /// still a part of the table.
    fn still_has(
        &self,
        fork: &mut Copied,
        engine: Engine,
        rows: u64,
        affected: &BTreeSet<usize>,
    ) -> Result<bool> {
        let visited = count(fork, engine, rows)?;
        let mut unaffected = (0..self.starts.len()).filter(|range| !affected.contains(range));
        Ok(self.counting_visits && unaffected.all(|range| self.pages[range].is_subset(&visited)))
    }
}

/// Counts the rows of a table. Returns the pages that were read for it.
fn count(copy: &mut Copied, engine: Engine, expected: u64) -> Result<FixedBitSet> {
    copy.take_read();
    let description = wire::describe(copy)?;
    let found = description.engines.iter().find(|described| described.engine == engine);
    match found.map(|described| described.rows) {
        Some(rows) if rows == expected => Ok(copy.take_read()),
        rows => bail!(
            "the canister counts {} rows, but there must be {}",
            Grouped(rows.unwrap_or(0)),
            Grouped(expected)
        ),
    }
}

/// Reads the rows from one position up to another, or to the end, and compares their digest. Returns
/// their number.
fn read(
    copy: &mut Copied,
    table: Table<'_>,
    from: u64,
    to: Option<u64>,
    expected: Digest,
) -> Result<u64> {
    let mut part = DigestPart { position: from, ..DigestPart::default() };
    let is_end = |part: &DigestPart| part.done || to.is_some_and(|to| part.position >= to);
    while !is_end(&part) && part.digest.rows < expected.rows {
        interrupt::check()?;
        let left = expected.rows - part.digest.rows;
        part = wire::content(copy, table.job, part, left.min(table.rows))?;
    }
    if part.digest != expected || !is_end(&part) {
        bail!(
            "the content from position {} on is wrong: {:?}, but it must be {expected:?}",
            Grouped(from),
            part.digest
        );
    }
    Ok(expected.rows)
}

/// Joins numbers that follow each other.
fn neighbouring(numbers: &BTreeSet<usize>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for &number in numbers {
        match joined.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => joined.push(number..number + 1),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
