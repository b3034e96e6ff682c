//! What statements answer.

use super::{Model, bytes};
use crate::sql::{Value, add_row};
use crate::sysbench::action::{Action, JOINED, LONG, RANGE, SHORT};
use crate::sysbench::record::{Record, integer};
use crate::sysbench::shape::key;
use crate::{Amount, ContentDigest};

/// The rows that a statement answers.
pub struct Answer {
    rows: Vec<Vec<Value>>,
    /// Whether the statement says in which order.
    ordered: bool,
}

impl Answer {
    fn in_any_order(rows: impl Iterator<Item = Vec<Value>>) -> Self {
        Self { rows: rows.collect(), ordered: false }
    }

    fn sorted(rows: impl Iterator<Item = Vec<Value>>) -> Self {
        Self { rows: rows.collect(), ordered: true }
    }

    fn one(value: Value) -> Self {
        Self::in_any_order([vec![value]].into_iter())
    }

    fn count(rows: usize) -> Self {
        Self::one(integer(rows as u64))
    }

    pub fn amount(&self) -> Amount {
        let rows = self.rows.len() as u64;
        Amount { rows, bytes: self.rows.iter().map(|row| bytes(row)).sum() }
    }

    /// Adds the rows to a digest that so many were added to before.
    pub fn add_to(&self, digest: &mut ContentDigest, answered: &mut u64) {
        let before = *answered;
        for row in &self.rows {
            let place = if self.ordered { *answered } else { before };
            add_row(digest, place, row.iter().map(Value::as_ref));
            *answered += 1;
        }
    }
}

impl Model {
    /// What is answered; nothing where the action changes rows.
    pub(super) fn read(&self, action: &Action) -> Option<Answer> {
        let shape = self.shape;
        let main = |first: u64, length| self.main.range(first, length).map(|(_, record)| record);
        Some(match action {
            Action::Point(row) => Answer::in_any_order(self.main.get(*row).map(text).into_iter()),
            Action::Range(first) => Answer::in_any_order(main(*first, RANGE).map(text)),
            Action::Sum(first) => {
                // Of no rows it would be NULL, but a range has its first.
                Answer::one(integer(main(*first, RANGE).map(Record::k).sum()))
            }
            Action::Order(first) | Action::Distinct(first) => {
                let mut sorted: Vec<&Record> = main(*first, RANGE).collect();
                sorted.sort_unstable_by_key(|record| record.text());
                if matches!(action, Action::Distinct(_)) {
                    sorted.dedup_by_key(|record| record.text());
                }
                Answer::sorted(sorted.into_iter().map(text))
            }
            Action::WithK(k) => Answer::in_any_order(self.main.with_k(*k, *k).filter_map(|row| {
                let record = self.main.get(row)?;
                Some([key(shape, row), text(record)].concat())
            })),
            Action::Points(rows) => {
                let mut rows = rows.clone();
                rows.sort_unstable();
                rows.dedup();
                Answer::in_any_order(rows.into_iter().filter_map(|row| {
                    Some([key(shape, row), self.main.get(row)?.values()].concat())
                }))
            }
            Action::Count(first) => Answer::count(main(*first, SHORT).count()),
            Action::CountK(first) => {
                Answer::count(self.main.with_k(*first, first + RANGE - 1).count())
            }
            Action::Group(first) => {
                let mut values: Vec<u64> = main(*first, LONG).map(Record::k).collect();
                values.sort_unstable();
                let groups = values.chunk_by(|one, other| one == other);
                Answer::sorted(groups.map(|of| vec![integer(of[0]), integer(of.len() as u64)]))
            }
            Action::Join(first) => {
                let rows = self.main.range(*first, SHORT);
                Answer::in_any_order(rows.flat_map(|(row, record)| {
                    let others = self.second.with_k(record.k(), record.k());
                    others.map(move |other| [key(shape, row), key(shape, other)].concat())
                }))
            }
            Action::JoinScan(first) => {
                let joined = self.second.range(*first, JOINED);
                let pairs = joined.map(|(_, of)| self.main.with_k(of.k(), of.k()).count());
                Answer::count(pairs.sum())
            }
            Action::Like(table, searched) => {
                let rows = self.table(*table).all();
                Answer::count(rows.filter(|(_, of)| of.text().contains(searched)).count())
            }
            Action::Insert(..)
            | Action::Replace(..)
            | Action::SetK(..)
            | Action::SetC(..)
            | Action::Delete(..) => return None,
        })
    }
}

fn text(record: &Record) -> Vec<Value> {
    vec![Value::Text(record.text().to_owned())]
}
