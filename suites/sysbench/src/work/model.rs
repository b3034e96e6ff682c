//! The four tables of the suite sysbench, as their schema declares them in SQL and as the model keeps them
//! in maps.
//!
//! ```text
//!   integer     id INTEGER                    7
//!   composite   a INTEGER, b INTEGER          7 = (0, 7), 123 456 = (12, 3456)
//!   blob        id BLOB, 16 bytes             00000000000000000000000000000007
//!   text        id TEXT, 32 digits           "00000000000000000000000000000007"
//! ```
//!
//! In every shape the order of keys is the order of rows.

use super::{Action, JOINED, LONG, RANGE, SHORT, actions, changes_rows};
use crate::job::KeyShape::{self, *};
use crate::job::Sysbench;
use stablebench_protocol::{Digest, JobPart, Result};
use stablebench_workload::sql::{Value, add_row};
use stablebench_workload::{Amount, ContentDigest, Expected, Model, Rng};
use std::collections::{BTreeMap, BTreeSet};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SysbenchTable {
    /// The main one.
    Main,
    /// The one that is joined.
    Second,
    /// The one with columns of several types.
    Types,
    /// The one that starts empty.
    Bulk,
}

/// Bytes of the column `c`.
pub const C_BYTES: usize = 60;
const PAD_BYTES: usize = 30;
const TYPES_TEXT_BYTES: usize = 50;

/// The maximum distance of numbers of the table of types from zero.
pub(super) const MAX_NUMBER: u64 = 1_000_000;

/// The columns of a row without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SysbenchRow {
    /// A row of the tables like `sbtest1`.
    Main {
        /// A number with an index.
        k: u64,
        /// A text that statements read and change.
        c: String,
        /// A text that makes the row longer.
        pad: String,
    },
    /// A row of the table of types.
    Types {
        /// `ival`.
        integer: i64,
        /// `rval`, in thousandths.
        thousandths: i64,
        /// `tval`.
        text: String,
    },
}

impl SysbenchRow {
    /// A random row of a table like the main one, which has `rows` rows.
    pub fn main(rng: &mut Rng, rows: u64) -> Self {
        let k = 1 + rng.below(rows);
        Self::Main { k, c: letters(rng, C_BYTES), pad: letters(rng, PAD_BYTES) }
    }

    /// A random row of the table of types.
    pub fn types(rng: &mut Rng) -> Self {
        let mut number = |max: u64| rng.below(2 * max + 1) as i64 - max as i64;
        let (integer, thousandths) = (number(MAX_NUMBER), number(1_000 * MAX_NUMBER));
        Self::Types { integer, thousandths, text: letters(rng, TYPES_TEXT_BYTES) }
    }

    /// The indexed number; 0 in the table of types, which has none.
    pub fn k(&self) -> u64 {
        match self {
            Self::Main { k, .. } => *k,
            Self::Types { .. } => 0,
        }
    }

    /// The text that is read and searched.
    pub fn text(&self) -> &str {
        match self {
            Self::Main { c: text, .. } | Self::Types { text, .. } => text,
        }
    }

    /// The columns in their order.
    pub fn values(&self) -> Vec<Value> {
        match self {
            Self::Main { k, c, pad } => {
                vec![integer(*k), Value::Text(c.clone()), Value::Text(pad.clone())]
            }
            Self::Types { integer, thousandths, text } => vec![
                Value::Integer(*integer),
                Value::Integer(*thousandths),
                Value::Text(text.clone()),
            ],
        }
    }
}

/// A small number.
pub fn integer(number: u64) -> Value {
    Value::Integer(number as i64)
}

/// Random lower-case letters.
pub fn letters(rng: &mut Rng, count: usize) -> String {
    let mut text = String::with_capacity(count);
    while text.len() < count {
        for byte in rng.next_u64().to_le_bytes().into_iter().take(count - text.len()) {
            // The high byte of a product: some letters occur once more in 256 than others.
            text.push(char::from(b'a' + ((u16::from(byte) * 26) >> 8) as u8));
        }
    }
    text
}

/// Rows with the same first half of a composite key.
const HALF: u64 = 10_000;

/// Every shape, in the published order.
pub const SHAPES: [KeyShape; 4] = [Integer, Composite, Blob, Text];

/// The shape of a table's keys. With composite keys, those of the table of types are integers, as
/// published.
pub fn of_table(shape: KeyShape, table: SysbenchTable) -> KeyShape {
    match (shape, table) {
        (Composite, SysbenchTable::Types) => Integer,
        _ => shape,
    }
}

/// The key of a row, one value per column.
pub fn key(shape: KeyShape, row: u64) -> Vec<Value> {
    match shape {
        Integer => vec![integer(row)],
        Composite => vec![integer(row / HALF), integer(row % HALF)],
        Blob => vec![Value::Blob(u128::from(row).to_be_bytes().to_vec())],
        Text => vec![Value::Text(format!("{row:032x}"))],
    }
}

/// The columns of the key, each after `prefix`.
pub fn columns(shape: KeyShape, prefix: &str) -> String {
    match shape {
        Integer | Blob | Text => format!("{prefix}id"),
        Composite => format!("{prefix}a, {prefix}b"),
    }
}

/// A parameter for each column of the key.
pub fn parameters(shape: KeyShape) -> &'static str {
    match shape {
        Integer | Blob | Text => "?",
        Composite => "?, ?",
    }
}

/// The condition that the key is that of the parameters.
pub fn is(shape: KeyShape) -> &'static str {
    match shape {
        Integer | Blob | Text => "id = ?",
        Composite => "a = ? AND b = ?",
    }
}

/// The condition that the key is in the range of the parameters.
pub fn between(shape: KeyShape, prefix: &str) -> String {
    match shape {
        Integer | Blob | Text => format!("{prefix}id BETWEEN ? AND ?"),
        Composite => format!("({prefix}a, {prefix}b) BETWEEN (?, ?) AND (?, ?)"),
    }
}

/// The condition that the key is in a list of `count` keys.
pub fn one_of(shape: KeyShape, count: usize) -> String {
    match shape {
        Integer | Blob | Text => format!("id IN ({})", vec!["?"; count].join(", ")),
        Composite => format!("(a, b) IN ({})", vec!["(?, ?)"; count].join(", ")),
    }
}

/// The tables whose rows are content, in the order of the model's.
pub const CONTENT: [SysbenchTable; 4] =
    [SysbenchTable::Main, SysbenchTable::Second, SysbenchTable::Types, SysbenchTable::Bulk];

/// The table's name.
pub fn table_name(table: SysbenchTable) -> &'static str {
    match table {
        SysbenchTable::Main => "sbtest1",
        SysbenchTable::Second => "sbtest2",
        SysbenchTable::Types => "sbtest_types",
        SysbenchTable::Bulk => "sbtest_bulk",
    }
}

/// All columns in the model's form: a REAL as its thousandths.
pub fn content_columns(shape: KeyShape, table: SysbenchTable) -> String {
    let key = columns(of_table(shape, table), "");
    match table {
        SysbenchTable::Types => format!("{key}, ival, CAST(round(rval * 1000) AS INTEGER), tval"),
        SysbenchTable::Main | SysbenchTable::Second | SysbenchTable::Bulk => {
            format!("{key}, k, c, pad")
        }
    }
}

/// The columns that order the rows.
pub fn content_order(shape: KeyShape, table: SysbenchTable) -> String {
    columns(of_table(shape, table), "")
}

/// The statements that create all tables and their indexes.
pub fn create(shape: KeyShape) -> String {
    let mut statements = String::new();
    for table in CONTENT {
        let name = table_name(table);
        let key = match of_table(shape, table) {
            Integer => "id INTEGER PRIMARY KEY, ",
            Composite => "a INTEGER NOT NULL, b INTEGER NOT NULL, ",
            Blob => "id BLOB PRIMARY KEY, ",
            Text => "id TEXT PRIMARY KEY, ",
        };
        let columns = match table {
            SysbenchTable::Types => "ival INTEGER, rval REAL, tval TEXT",
            SysbenchTable::Main | SysbenchTable::Second | SysbenchTable::Bulk => {
                "k INTEGER, c TEXT (60), pad TEXT (30)"
            }
        };
        let end = match of_table(shape, table) {
            Composite => ", PRIMARY KEY (a, b)) WITHOUT ROWID",
            Integer | Blob | Text => ")",
        };
        statements += &format!("CREATE TABLE {name} ({key}{columns}{end};");
        if matches!(table, SysbenchTable::Main | SysbenchTable::Second) {
            statements += &format!("CREATE INDEX {name}_k ON {name} (k);");
        }
    }
    statements
}

/// The four tables.
#[derive(Clone, Debug)]
pub struct SysbenchModel {
    shape: KeyShape,
    main: IndexedRows,
    second: IndexedRows,
    types: IndexedRows,
    bulk: IndexedRows,
}

impl SysbenchModel {
    /// Empty tables with keys of a shape.
    pub fn new(shape: KeyShape) -> Self {
        let [main, second, types, bulk] = Default::default();
        Self { shape, main, second, types, bulk }
    }

    fn table(&self, table: SysbenchTable) -> &IndexedRows {
        match table {
            SysbenchTable::Main => &self.main,
            SysbenchTable::Second => &self.second,
            SysbenchTable::Types => &self.types,
            SysbenchTable::Bulk => &self.bulk,
        }
    }

    fn table_mut(&mut self, table: SysbenchTable) -> &mut IndexedRows {
        match table {
            SysbenchTable::Main => &mut self.main,
            SysbenchTable::Second => &mut self.second,
            SysbenchTable::Types => &mut self.types,
            SysbenchTable::Bulk => &mut self.bulk,
        }
    }
}

/// The bytes that a reader or writer of these columns copies.
fn bytes(columns: &[Value]) -> u64 {
    columns.iter().map(|value| value.as_ref().bytes()).sum()
}

impl Model for SysbenchModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
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
struct IndexedRows {
    records: BTreeMap<u64, SysbenchRow>,
    by_k: BTreeSet<(u64, u64)>,
}

impl IndexedRows {
    /// Every row, in order.
    fn all(&self) -> impl Iterator<Item = (u64, &SysbenchRow)> {
        self.records.iter().map(|(row, record)| (*row, record))
    }

    /// The existing rows of `length` numbers, starting at `first`.
    fn range(&self, first: u64, length: u64) -> impl Iterator<Item = (u64, &SysbenchRow)> {
        self.records.range(first..first + length).map(|(row, record)| (*row, record))
    }

    /// The numbers of the rows whose `k` is from `least` to `most`.
    fn with_k(&self, least: u64, most: u64) -> impl Iterator<Item = u64> {
        self.by_k.range((least, 0)..=(most, u64::MAX)).map(|(_, row)| *row)
    }

    fn get(&self, row: u64) -> Option<&SysbenchRow> {
        self.records.get(&row)
    }

    /// Inserts or replaces a row.
    fn put(&mut self, row: u64, record: SysbenchRow) {
        self.remove(row);
        self.by_k.insert((record.k(), row));
        self.records.insert(row, record);
    }

    /// Changes a row, and returns whether it exists.
    fn change(&mut self, row: u64, change: impl FnOnce(&mut SysbenchRow)) -> bool {
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
                Answer::one(integer(main(*first, RANGE).map(SysbenchRow::k).sum()))
            }
            Action::Order(first) | Action::Distinct(first) => {
                let mut sorted: Vec<&SysbenchRow> = main(*first, RANGE).collect();
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
                let mut values: Vec<u64> = main(*first, LONG).map(SysbenchRow::k).collect();
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

fn text(record: &SysbenchRow) -> Vec<Value> {
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
                    if let SysbenchRow::Main { k, .. } = record {
                        *k = new;
                    }
                });
                amount(there, key(shape, row), &[integer(new)])
            }
            Action::SetC(row, new) => {
                let columns = [Value::Text(new.clone())];
                let there = self.main.change(row, |record| {
                    if let SysbenchRow::Main { c, .. } = record {
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
