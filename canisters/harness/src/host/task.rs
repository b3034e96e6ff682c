//! What is to be done, once its arguments are sound.

use crate::{KeyValue, Writes};
use stablebench_protocol::{Error, Operation, Result};
use stablebench_workload::payload::Payload;
use stablebench_workload::{Amount, IdSet, Selected};

/// An operation, its rows not more than a message may be about.
#[derive(Clone, Copy, Debug)]
pub enum Task<'a> {
    /// Changes rows.
    Write(Write, Selected<'a>),
    /// Looks from each id on.
    Look(Look, Selected<'a>),
    /// Reads the first rows.
    Scan(u64),
    /// Counts all rows.
    Count,
}

/// How rows are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Insert,
    Overwrite,
    Update,
    Delete,
}

/// What is read where an id is looked up.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// The row.
    Row,
    /// So many rows in order.
    Range(u64),
}

/// Refuses no rows, and more than `limit`.
pub fn check_rows(rows: u64, limit: u64) -> Result<()> {
    match rows {
        0 => Err(Error::NoRows),
        rows if rows > limit => Err(Error::TooManyRows { limit }),
        _ => Ok(()),
    }
}

impl<'a> Task<'a> {
    /// The task of an operation; a message may be about `limit` rows.
    pub fn new(operation: &'a Operation, limit: u64) -> Result<Self> {
        let selected = |rows| {
            check_rows(Selected::asked(rows), limit)?;
            Selected::new(rows)
        };
        Ok(match operation {
            Operation::Insert(rows) => Self::Write(Write::Insert, selected(rows)?),
            Operation::Overwrite(rows) => Self::Write(Write::Overwrite, selected(rows)?),
            Operation::Update(rows) => Self::Write(Write::Update, selected(rows)?),
            Operation::Delete(rows) => Self::Write(Write::Delete, selected(rows)?),
            Operation::Read(rows) => Self::Look(Look::Row, selected(rows)?),
            Operation::Range { from, rows } => {
                let from = selected(from)?;
                check_rows(from.rows().saturating_mul(*rows), limit)?;
                Self::Look(Look::Range(*rows), from)
            }
            Operation::Scan(rows) => {
                check_rows(*rows, limit)?;
                Self::Scan(*rows)
            }
            Operation::Count => Self::Count,
        })
    }

    /// Whether rows are changed.
    pub fn writes(&self) -> bool {
        matches!(self, Self::Write(..))
    }

    /// How many operations of the engine's this is.
    pub fn operations(&self) -> u64 {
        match self {
            Self::Write(_, rows) | Self::Look(_, rows) => rows.rows(),
            Self::Scan(_) | Self::Count => 1,
        }
    }

    /// The text that is written.
    pub fn payload(&self, bytes: u32) -> String {
        match self {
            Self::Write(Write::Insert, _) => Payload::New.text(bytes),
            Self::Write(Write::Overwrite | Write::Update, _) => Payload::Updated.text(bytes),
            _ => String::new(),
        }
    }

    /// Refuses what the engine cannot hold, and rows that are there or missing and should
    /// not be.
    pub fn check(&self, engine: &mut dyn KeyValue, payload_bytes: u32) -> Result<()> {
        match *self {
            Self::Write(write, rows) => {
                let ids = match write {
                    Write::Insert | Write::Delete => IdSet::once(rows)?,
                    Write::Overwrite | Write::Update => IdSet::of(rows),
                };
                engine.admit(&ids, if write == Write::Delete { 0 } else { payload_bytes })?;
                let wrong = match write {
                    Write::Insert => engine.first_present(&ids)?.map(|id| Error::IdExists { id }),
                    Write::Overwrite => None,
                    Write::Update | Write::Delete => {
                        engine.first_missing(&ids)?.map(|id| Error::IdMissing { id })
                    }
                };
                wrong.map_or(Ok(()), Err)
            }
            Self::Look(_, rows) => engine.admit(&IdSet::of(rows), 0),
            Self::Scan(_) | Self::Count => Ok(()),
        }
    }
}

impl Write {
    /// Changes rows, and tells how much.
    #[inline]
    pub fn run(self, engine: &mut dyn Writes, rows: Selected<'_>, payload: &str) -> Result<Amount> {
        match self {
            Self::Insert => engine.insert(rows, payload),
            Self::Overwrite => engine.overwrite(rows, payload),
            Self::Update => engine.update(rows, payload),
            Self::Delete => engine.delete(rows),
        }?;
        // What is removed has no payload.
        let rows = rows.rows();
        Ok(Amount { rows, bytes: rows * payload.len() as u64 })
    }
}

impl Look {
    /// Reads rows, and tells how much.
    #[inline]
    pub fn run(self, engine: &mut dyn KeyValue, rows: Selected<'_>) -> Result<Amount> {
        match self {
            Self::Row => engine.read(rows),
            Self::Range(length) => engine.range(rows, length),
        }
    }
}
