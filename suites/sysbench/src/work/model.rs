//! The model of the sysbench suite: the tables as maps, without any SQL.

use super::actions::{Action, JOINED, LONG, RANGE, SHORT, actions};
use super::changes_rows;
use super::tables::{CONTENT, Record, Table, integer, key, of_table};
use crate::job::{KeyShape, Sysbench};
use stablebench_protocol::{Digest, Part, Result};
use stablebench_workload::sql::{Value, add_row};
use stablebench_workload::{Amount, ContentDigest, Expected, Model};
use std::collections::{BTreeMap, BTreeSet};

/// The four tables.
#[derive(Clone, Debug)]
pub struct SysbenchModel {
    shape: KeyShape,
    main: Rows,
    second: Rows,
    types: Rows,
    bulk: Rows,
}

impl SysbenchModel {
    /// Empty tables with keys of a shape.
    pub fn new(shape: KeyShape) -> Self {
        let [main, second, types, bulk] = Default::default();
        Self { shape, main, second, types, bulk }
    }

    fn table(&self, table: Table) -> &Rows {
        match table {
            Table::Main => &self.main,
            Table::Second => &self.second,
            Table::Types => &self.types,
            Table::Bulk => &self.bulk,
        }
    }

    fn table_mut(&mut self, table: Table) -> &mut Rows {
        match table {
            Table::Main => &mut self.main,
            Table::Second => &mut self.second,
            Table::Types => &mut self.types,
            Table::Bulk => &mut self.bulk,
        }
    }
}

/// The bytes that a reader or writer of these columns copies.
fn bytes(columns: &[Value]) -> u64 {
    columns.iter().map(|value| value.as_ref().bytes()).sum()
}

impl Model for SysbenchModel {
    fn execute(&mut self, part: &Part) -> Result<Expected> {
        let job: Sysbench = part.job.decode()?;
        let (mut amount, mut digest, mut answered) = Default::default();
        for index in part.from..part.from.saturating_add(part.count) {
            for action in actions(&job, part.seed, index) {
                match self.read(&action) {
                    Some(answer) => {
                        amount += answer.amount();
                        answer.add_to(&mut digest, &mut answered);
                    }
                    None => amount += self.write(action),
                }
            }
        }
        let Amount { rows, bytes } = amount;
        let results = (!changes_rows(job.task)).then(|| digest.value());
        Ok(Expected { rows, bytes, results })
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (place, table) in (0..).zip(CONTENT) {
            let shape = of_table(self.shape, table);
            for (row, record) in self.table(table).all() {
                let columns = [key(shape, row), record.values()].concat();
                add_row(&mut digest, place, columns.iter().map(Value::as_ref));
            }
        }
        digest.value()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

/// The rows of a table by number, and their numbers by `k`.
#[derive(Clone, Debug, Default)]
struct Rows {
    records: BTreeMap<u64, Record>,
    by_k: BTreeSet<(u64, u64)>,
}

impl Rows {
    /// Every row, in order.
    fn all(&self) -> impl Iterator<Item = (u64, &Record)> {
        self.records.iter().map(|(row, record)| (*row, record))
    }

    /// The existing rows of `length` numbers, starting at `first`.
    fn range(&self, first: u64, length: u64) -> impl Iterator<Item = (u64, &Record)> {
        self.records.range(first..first + length).map(|(row, record)| (*row, record))
    }

    /// The numbers of the rows whose `k` is from `least` to `most`.
    fn with_k(&self, least: u64, most: u64) -> impl Iterator<Item = u64> {
        self.by_k.range((least, 0)..=(most, u64::MAX)).map(|(_, row)| *row)
    }

    fn get(&self, row: u64) -> Option<&Record> {
        self.records.get(&row)
    }

    /// Inserts or replaces a row.
    fn put(&mut self, row: u64, record: Record) {
        self.remove(row);
        self.by_k.insert((record.k(), row));
        self.records.insert(row, record);
    }

    /// Changes a row, and returns whether it exists.
    fn change(&mut self, row: u64, change: impl FnOnce(&mut Record)) -> bool {
        let Some(record) = self.records.get_mut(&row) else { return false };
        self.by_k.remove(&(record.k(), row));
        change(record);
        self.by_k.insert((record.k(), row));
        true
    }

    /// Removes a row, and returns whether it existed.
    fn remove(&mut self, row: u64) -> bool {
        let removed = self.records.remove(&row);
        removed.is_some_and(|record| self.by_k.remove(&(record.k(), row)))
    }
}

/// The result of a statement.
struct Answer {
    rows: Vec<Vec<Value>>,
    /// True if the statement defines their order.
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

    fn amount(&self) -> Amount {
        let rows = self.rows.len() as u64;
        Amount { rows, bytes: self.rows.iter().map(|row| bytes(row)).sum() }
    }

    /// Adds the rows to a digest to which `answered` rows were added before.
    fn add_to(&self, digest: &mut ContentDigest, answered: &mut u64) {
        let before = *answered;
        for row in &self.rows {
            let place = if self.ordered { *answered } else { before };
            add_row(digest, place, row.iter().map(Value::as_ref));
            *answered += 1;
        }
    }
}

impl SysbenchModel {
    /// The result of an action; nothing if it changes rows.
    fn read(&self, action: &Action) -> Option<Answer> {
        let shape = self.shape;
        let main = |first: u64, length| self.main.range(first, length).map(|(_, record)| record);
        Some(match action {
            Action::Point(row) => Answer::in_any_order(self.main.get(*row).map(text).into_iter()),
            Action::Range(first) => Answer::in_any_order(main(*first, RANGE).map(text)),
            Action::Sum(first) => {
                // The sum of no rows would be NULL, but a range contains its first row.
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

impl SysbenchModel {
    /// Does a change. Returns the number of changed rows, and the bytes of its parameters in SQL.
    fn write(&mut self, action: Action) -> Amount {
        let shape = self.shape;
        let amount = |rows: bool, key: Vec<Value>, columns: &[Value]| Amount {
            rows: u64::from(rows),
            bytes: bytes(&key) + bytes(columns),
        };
        match action {
            Action::Insert(table, row, record) | Action::Replace(table, row, record) => {
                let amount = amount(true, key(of_table(shape, table), row), &record.values());
                self.table_mut(table).put(row, record);
                amount
            }
            Action::SetK(row, new) => {
                let there = self.main.change(row, |record| {
                    if let Record::Main { k, .. } = record {
                        *k = new;
                    }
                });
                amount(there, key(shape, row), &[integer(new)])
            }
            Action::SetC(row, new) => {
                let columns = [Value::Text(new.clone())];
                let there = self.main.change(row, |record| {
                    if let Record::Main { c, .. } = record {
                        *c = new;
                    }
                });
                amount(there, key(shape, row), &columns)
            }
            Action::Delete(table, row) => {
                let there = self.table_mut(table).remove(row);
                amount(there, key(of_table(shape, table), row), &[])
            }
            Action::Point(_)
            | Action::Range(_)
            | Action::Sum(_)
            | Action::Order(_)
            | Action::Distinct(_)
            | Action::WithK(_)
            | Action::Points(_)
            | Action::Count(_)
            | Action::CountK(_)
            | Action::Group(_)
            | Action::Join(_)
            | Action::JoinScan(_)
            | Action::Like(..) => Amount::default(),
        }
    }
}
