//! What the tables must hold, and what must be read of them: maps, without any SQL.

mod maps;

use maps::Rows;
use stablebench_protocol::{Digest, Job, KeyShape, Part};

use super::action::{Action, JOINED, LONG, RANGE, SHORT, Table, actions};
use super::record::{Record, integer};
use super::schema::CONTENT;
use super::shape::{key, of_table};
use crate::expected::{Expected, Tables};
use crate::sql::{Value, add_row};
use crate::{Amount, ContentDigest};

/// The four tables.
#[derive(Clone, Debug)]
pub struct Model {
    shape: KeyShape,
    main: Rows,
    second: Rows,
    types: Rows,
    bulk: Rows,
}

/// What a statement answers.
struct Answer {
    rows: Vec<Vec<Value>>,
    /// Whether SQL promises the order.
    ordered: bool,
}

impl Model {
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

    /// Does a change, if it is one.
    fn write(&mut self, action: Action) -> Option<Amount> {
        let shape = self.shape;
        let amount = |rows: bool, key: Vec<Value>, columns: &[Value]| Amount {
            rows: u64::from(rows),
            bytes: key.iter().chain(columns).map(|value| value.as_ref().bytes()).sum(),
        };
        Some(match action {
            Action::Insert(table, row, record) | Action::Replace(table, row, record) => {
                let amount = amount(true, key(of_table(shape, table), row), &record.values());
                self.table_mut(table).put(row, record);
                amount
            }
            Action::SetK(row, k) => {
                let there = self.main.change(row, |record| set(record, Some(k), None));
                amount(there, key(shape, row), &[integer(k)])
            }
            Action::SetC(row, c) => {
                let columns = [Value::Text(c.clone())];
                let there = self.main.change(row, |record| set(record, None, Some(c)));
                amount(there, key(shape, row), &columns)
            }
            Action::Delete(table, row) => {
                let there = self.table_mut(table).remove(row);
                amount(there, key(of_table(shape, table), row), &[])
            }
            _ => return None,
        })
    }

    /// What a statement that only reads answers; nothing where it writes.
    fn read(&self, action: &Action) -> Answer {
        let shape = self.shape;
        let texts = |first, length| self.main.range(first, length).map(|(_, record)| record.text());
        let text = |text: &str| vec![Value::Text(text.to_owned())];
        let one = |value| Answer { rows: vec![vec![value]], ordered: true };
        let unordered = |rows| Answer { rows, ordered: false };
        let count = |rows: usize| one(integer(rows as u64));
        match action {
            Action::Point(row) => {
                unordered(self.main.get(*row).map(|record| text(record.text())).into_iter().collect())
            }
            Action::Range(first) => unordered(texts(*first, RANGE).map(text).collect()),
            Action::Sum(first) => {
                let rows: Vec<u64> =
                    self.main.range(*first, RANGE).map(|(_, record)| record.k()).collect();
                one(if rows.is_empty() { Value::Null } else { integer(rows.iter().sum()) })
            }
            Action::Order(first) | Action::Distinct(first) => {
                let mut sorted: Vec<&str> = texts(*first, RANGE).collect();
                sorted.sort_unstable();
                if matches!(action, Action::Distinct(_)) {
                    sorted.dedup();
                }
                Answer { rows: sorted.into_iter().map(text).collect(), ordered: true }
            }
            Action::WithK(k) => {
                let rows = self.main.with_k(*k, *k).filter_map(|row| {
                    let record = self.main.get(row)?;
                    Some([key(shape, row), text(record.text())].concat())
                });
                unordered(rows.collect())
            }
            Action::Points(rows) => {
                let mut rows = rows.clone();
                rows.sort_unstable();
                rows.dedup();
                let rows = rows.into_iter().filter_map(|row| {
                    Some([key(shape, row), self.main.get(row)?.values()].concat())
                });
                unordered(rows.collect())
            }
            Action::Count(first) => count(self.main.range(*first, SHORT).count()),
            Action::CountK(first) => count(self.main.with_k(*first, first + RANGE - 1).count()),
            Action::Group(first) => {
                let mut values: Vec<u64> =
                    self.main.range(*first, LONG).map(|(_, record)| record.k()).collect();
                values.sort_unstable();
                let groups = values.chunk_by(|one, other| one == other);
                let rows = groups.map(|group| vec![integer(group[0]), integer(group.len() as u64)]);
                Answer { rows: rows.collect(), ordered: true }
            }
            Action::Join(first) => {
                let pairs = self.main.range(*first, SHORT).flat_map(|(row, record)| {
                    let others = self.second.with_k(record.k(), record.k());
                    others.map(move |other| [key(shape, row), key(shape, other)].concat())
                });
                unordered(pairs.collect())
            }
            Action::JoinScan(first) => {
                let joined = self.second.range(*first, JOINED);
                count(joined.map(|(_, of)| self.main.with_k(of.k(), of.k()).count()).sum())
            }
            Action::Like(table, searched) => {
                let rows = self.table(*table).all();
                count(rows.filter(|(_, record)| record.text().contains(searched)).count())
            }
            Action::Insert(..)
            | Action::Replace(..)
            | Action::SetK(..)
            | Action::SetC(..)
            | Action::Delete(..) => unordered(Vec::new()),
        }
    }
}

/// Changes a row in the manner of the main table's.
fn set(record: &mut Record, new_k: Option<u64>, new_c: Option<String>) {
    if let Record::Main { k, c, .. } = record {
        *k = new_k.unwrap_or(*k);
        if let Some(new_c) = new_c {
            *c = new_c;
        }
    }
}

impl Tables for Model {
    fn perform(&mut self, part: &Part) -> Expected {
        // Work of other suites is on other tables.
        let Job::Sysbench(job) = &part.job else { return Expected::default() };
        let (mut amount, mut wrote) = (Amount::default(), false);
        let mut digest = ContentDigest::default();
        let mut before = 0;
        for index in part.from..part.from.saturating_add(part.count) {
            for action in actions(job, part.seed, index) {
                let answer = self.read(&action);
                if let Some(written) = self.write(action) {
                    amount += written;
                    wrote = true;
                    continue;
                }
                let rows = answer.rows.len() as u64;
                for (place, row) in (before..).zip(&answer.rows) {
                    let place = if answer.ordered { place } else { before };
                    let bytes = row.iter().map(|value| value.as_ref().bytes()).sum();
                    amount += Amount { rows: 1, bytes };
                    add_row(&mut digest, place, row.iter().map(Value::as_ref));
                }
                before += rows;
            }
        }
        let creates = job.task == stablebench_protocol::SysbenchTask::Create;
        let results = (!wrote && !creates).then(|| digest.value());
        Expected { rows: amount.rows, bytes: amount.bytes, results }
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

    fn fork(&self) -> Box<dyn Tables> {
        Box::new(self.clone())
    }
}
