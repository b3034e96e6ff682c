//! What one case does: the operation, the rows it is about, and in which messages.

use std::fmt;

use anyhow::Context;
use stablebench_protocol::{Operation, Selection};
use stablebench_workload::{Ids, access, ids::STEP};

use super::content::Content;
use crate::report::number::Grouped;

/// What is done to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Insert,
    /// Upsert rows that are there.
    Overwrite,
    Update,
    Delete,
    /// Look up rows that are there.
    Read,
    /// Look up rows that are not there.
    Miss,
    /// Read so many rows in order, from rows that are there.
    Range(u64),
    /// Read all rows in order.
    Scan,
    /// Ask for the number of rows.
    Count,
}

/// To which rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neighbours around the half.
    Middle,
    /// After the last row.
    End,
    /// Evenly spaced over all rows, ascending.
    Spread,
    /// Any row with the same likelihood.
    Uniform,
    /// The same rows as with [`Uniform`](Self::Uniform), in the order of their ids.
    Sorted,
    /// Any of so many neighbours around the half, with the same likelihood.
    Among(u64),
    /// Some rows much more often than others.
    Zipf,
    /// All rows there are.
    All,
}

/// A piece of work for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub verb: Verb,
    pub access: Access,
    /// Rows, lookups or ranges.
    pub operations: u64,
    /// Operations a transaction; all in one where there is none.
    pub transaction: Option<u64>,
}

/// What a case measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The work in one message.
    One(Work),
    /// The work in messages of so many operations.
    Messages(Work, u64),
    /// How much of the work one update can do.
    UpdateCapacity(Work),
    /// How much of the work one query can do.
    QueryCapacity(Work),
}

impl Work {
    /// Work in one transaction.
    pub fn new(verb: Verb, access: Access, operations: u64) -> Self {
        Self { verb, access, operations, transaction: None }
    }

    /// As a canister is asked for it, the ids first; the same for every engine.
    ///
    /// # Errors
    ///
    /// Where the rows do not fit there.
    pub fn operation(&self, content: &Content, seed: u64) -> anyhow::Result<Operation> {
        let selection = || self.select(content, seed);
        Ok(match self.verb {
            Verb::Insert => Operation::Insert(selection()?),
            Verb::Overwrite => Operation::Overwrite(selection()?),
            Verb::Update => Operation::Update(selection()?),
            Verb::Delete => Operation::Delete(selection()?),
            Verb::Read | Verb::Miss => Operation::Read(selection()?),
            Verb::Range(rows) => Operation::Range { from: selection()?, rows },
            Verb::Scan => Operation::Scan(self.operations),
            Verb::Count => Operation::Count,
        })
    }

    /// Fails where the rows do not fit.
    ///
    /// # Errors
    ///
    /// Says what to choose instead.
    pub fn check(&self, content: &Content) -> anyhow::Result<()> {
        if self.verb == Verb::Insert && self.access == Access::Middle {
            Ids::middle(Some(content.last()), self.operations).with_context(|| {
                format!(
                    "{} rows cannot be added in the middle of {}; choose other --batches or more \
                     --rows",
                    Grouped(self.operations),
                    Grouped(content.rows())
                )
            })?;
        }
        if self.verb == Verb::Insert
            && matches!(self.access, Access::Spread | Access::Uniform | Access::Sorted)
        {
            anyhow::ensure!(
                self.operations <= content.rows(),
                "{} rows cannot be added between {}; choose other --batches or more --rows",
                Grouped(self.operations),
                Grouped(content.rows())
            );
        }
        Ok(())
    }

    fn select(&self, content: &Content, seed: u64) -> anyhow::Result<Selection> {
        let rows = content.rows();
        let count = self.operations;
        // The same rows in another order.
        let drawn = if self.access == Access::Sorted { Access::Uniform } else { self.access };
        let mut rng = super::content::random(seed, &format!("{} {drawn}", self.verb));
        let last = Some(content.last());
        let absent = matches!(self.verb, Verb::Insert | Verb::Miss);
        let beside = if absent { STEP / 2 } else { 0 };
        let around_the_half = |count: u64| (rows / 2).saturating_sub(count / 2);
        // A row can be inserted or deleted only once.
        let once = matches!(self.verb, Verb::Insert | Verb::Delete);
        let mut numbers = match self.access {
            Access::Middle if self.verb == Verb::Insert => {
                return Ok(step(Ids::middle(last, count)?));
            }
            Access::Middle => {
                let first = around_the_half(count);
                (first..first + count.min(rows)).collect()
            }
            Access::End => return Ok(step(Ids::end(last, count)?)),
            Access::Spread | Access::All => {
                let apart = (rows / count.max(1)).max(1);
                return Ok(step(Ids::new(beside, STEP * apart, count)?));
            }
            Access::Zipf => access::zipf(&mut rng, rows, count),
            Access::Uniform | Access::Sorted if once => access::distinct(&mut rng, rows, count),
            Access::Uniform | Access::Sorted => access::uniform(&mut rng, rows, count),
            Access::Among(set) => {
                let set = set.min(rows);
                let first = around_the_half(set);
                let drawn = access::uniform(&mut rng, set, count);
                drawn.into_iter().map(|number| first + number).collect()
            }
        };
        if self.access == Access::Sorted {
            numbers.sort_unstable();
        }
        let id = |number| content.id(number) + beside;
        Ok(Selection::List(numbers.into_iter().map(id).collect()))
    }
}

fn step(ids: Ids) -> Selection {
    Selection::Step { first: ids.first(), step: ids.step(), rows: ids.rows() }
}

/// The ids of a selection, in their order.
pub fn ids(selection: &Selection) -> Box<dyn Iterator<Item = u64> + '_> {
    match selection {
        Selection::Step { first, step, rows } => {
            Box::new((0..*rows).map(move |row| first + row * step))
        }
        Selection::List(ids) => Box::new(ids.iter().copied()),
    }
}

/// The part of a selection that one of several messages is about.
pub fn part(selection: &Selection, from: u64, rows: u64) -> Selection {
    match selection {
        Selection::Step { first, step, .. } => {
            Selection::Step { first: first + from * step, step: *step, rows }
        }
        Selection::List(ids) => {
            Selection::List(ids[from as usize..(from + rows) as usize].to_vec())
        }
    }
}

/// The rows that an operation is about, where it names them.
pub fn selection(operation: &Operation) -> Option<&Selection> {
    match operation {
        Operation::Insert(selection)
        | Operation::Overwrite(selection)
        | Operation::Update(selection)
        | Operation::Delete(selection)
        | Operation::Read(selection)
        | Operation::Range { from: selection, .. } => Some(selection),
        Operation::Scan(_) | Operation::Count => None,
    }
}

/// The operation on a part of its rows.
pub fn narrowed(operation: &Operation, from: u64, rows: u64) -> Operation {
    let narrow = |selection: &Selection| part(selection, from, rows);
    match operation {
        Operation::Insert(ids) => Operation::Insert(narrow(ids)),
        Operation::Overwrite(ids) => Operation::Overwrite(narrow(ids)),
        Operation::Update(ids) => Operation::Update(narrow(ids)),
        Operation::Delete(ids) => Operation::Delete(narrow(ids)),
        Operation::Read(ids) => Operation::Read(narrow(ids)),
        Operation::Range { from: ids, rows } => Operation::Range { from: narrow(ids), rows: *rows },
        Operation::Scan(_) | Operation::Count => operation.clone(),
    }
}

impl Verb {
    /// Whether it changes rows.
    pub fn writes(self) -> bool {
        matches!(self, Self::Insert | Self::Overwrite | Self::Update | Self::Delete)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert => f.write_str("insert"),
            Self::Overwrite => f.write_str("overwrite"),
            Self::Update => f.write_str("update"),
            Self::Delete => f.write_str("delete"),
            Self::Read => f.write_str("read"),
            Self::Miss => f.write_str("read missing"),
            Self::Range(rows) => write!(f, "range of {}", Grouped(*rows)),
            Self::Scan => f.write_str("scan"),
            Self::Count => f.write_str("count"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Middle => "middle",
            Self::End => "end",
            Self::Spread => "evenly spaced",
            Self::Uniform => "uniform",
            Self::Sorted => "uniform, sorted",
            Self::Among(rows) => return write!(f, "among {}", Grouped(*rows)),
            Self::Zipf => "Zipf",
            Self::All => "all",
        };
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYWHERE: [Access; 6] = [
        Access::Middle,
        Access::Spread,
        Access::Uniform,
        Access::Sorted,
        Access::Among(7),
        Access::Zipf,
    ];

    fn numbers(verb: Verb, access: Access, operations: u64) -> Vec<u64> {
        let content = Content::populated(1_000);
        let operation = Work::new(verb, access, operations).operation(&content, 1).unwrap();
        ids(selection(&operation).unwrap()).map(|id| id / STEP).collect()
    }

    #[test]
    fn sorted_rows_are_the_uniform_ones() {
        for verb in [Verb::Insert, Verb::Update, Verb::Read] {
            let mut uniform = numbers(verb, Access::Uniform, 100);
            assert!(!uniform.is_sorted());
            uniform.sort_unstable();
            assert_eq!(numbers(verb, Access::Sorted, 100), uniform);
        }
    }

    #[test]
    fn a_working_set_is_around_the_half() {
        let mut found = numbers(Verb::Read, Access::Among(20), 500);
        found.sort_unstable();
        found.dedup();
        assert!(found.iter().copied().eq(490..510), "{found:?}");
        let all = numbers(Verb::Read, Access::Among(5_000), 500);
        assert!(all.iter().all(|row| *row < 1_000));
    }

    #[test]
    fn what_is_asked_for_is_there_and_what_is_added_is_not() {
        let content = Content::populated(100);
        for (verb, accesses, there) in [
            (Verb::Read, &EVERYWHERE[..], true),
            (Verb::Update, &EVERYWHERE, true),
            (Verb::Delete, &[Access::Middle, Access::Uniform], true),
            (
                Verb::Insert,
                &[Access::Uniform, Access::Sorted, Access::Spread, Access::Middle, Access::End],
                false,
            ),
            (Verb::Miss, &[Access::Uniform], false),
        ] {
            for access in accesses {
                let operation = Work::new(verb, *access, 30).operation(&content, 1).unwrap();
                let ids: Vec<u64> = ids(selection(&operation).unwrap()).collect();
                assert_eq!(ids.len(), 30, "{verb} {access}");
                for id in ids {
                    assert_eq!(id % 10 == 0 && id < 1_000, there, "{verb} {access} {id}");
                }
            }
        }
    }

    #[test]
    fn parts_are_the_whole() {
        let content = Content::populated(100);
        for access in [Access::Middle, Access::Uniform] {
            let whole = Work::new(Verb::Insert, access, 30).operation(&content, 1).unwrap();
            let mut together = Vec::new();
            for from in [0, 7, 14, 21, 28] {
                let part = narrowed(&whole, from, 7.min(30 - from));
                together.extend(ids(selection(&part).unwrap()));
            }
            assert_eq!(together, ids(selection(&whole).unwrap()).collect::<Vec<_>>());
        }
    }
}
