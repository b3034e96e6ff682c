//! The tables: their rows, the shapes of their keys, and their schema in SQL.
//!
//! ```text
//!   integer     id INTEGER                    7
//!   composite   a INTEGER, b INTEGER          7 = (0, 7), 123 456 = (12, 3456)
//!   blob        id BLOB, 16 bytes             00000000000000000000000000000007
//!   text        id TEXT, 32 digits           "00000000000000000000000000000007"
//! ```
//!
//! In every shape the order of keys is the order of rows.

use crate::job::KeyShape::{self, *};
use stablebench_workload::Rng;
use stablebench_workload::sql::Value;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
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
pub enum Record {
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

impl Record {
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
pub fn of_table(shape: KeyShape, table: Table) -> KeyShape {
    match (shape, table) {
        (Composite, Table::Types) => Integer,
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
pub const CONTENT: [Table; 4] = [Table::Main, Table::Second, Table::Types, Table::Bulk];

/// The table's name.
pub fn name(table: Table) -> &'static str {
    match table {
        Table::Main => "sbtest1",
        Table::Second => "sbtest2",
        Table::Types => "sbtest_types",
        Table::Bulk => "sbtest_bulk",
    }
}

/// All columns in the model's form: a REAL as its thousandths.
pub fn content_columns(shape: KeyShape, table: Table) -> String {
    let key = columns(of_table(shape, table), "");
    match table {
        Table::Types => format!("{key}, ival, CAST(round(rval * 1000) AS INTEGER), tval"),
        Table::Main | Table::Second | Table::Bulk => format!("{key}, k, c, pad"),
    }
}

/// The columns that order the rows.
pub fn content_order(shape: KeyShape, table: Table) -> String {
    columns(of_table(shape, table), "")
}

/// The statements that create all tables and their indexes.
pub fn create(shape: KeyShape) -> String {
    let mut statements = String::new();
    for table in CONTENT {
        let name = name(table);
        let key = match of_table(shape, table) {
            Integer => "id INTEGER PRIMARY KEY, ",
            Composite => "a INTEGER NOT NULL, b INTEGER NOT NULL, ",
            Blob => "id BLOB PRIMARY KEY, ",
            Text => "id TEXT PRIMARY KEY, ",
        };
        let columns = match table {
            Table::Types => "ival INTEGER, rval REAL, tval TEXT",
            Table::Main | Table::Second | Table::Bulk => "k INTEGER, c TEXT (60), pad TEXT (30)",
        };
        let end = match of_table(shape, table) {
            Composite => ", PRIMARY KEY (a, b)) WITHOUT ROWID",
            Integer | Blob | Text => ")",
        };
        statements += &format!("CREATE TABLE {name} ({key}{columns}{end};");
        if matches!(table, Table::Main | Table::Second) {
            statements += &format!("CREATE INDEX {name}_k ON {name} (k);");
        }
    }
    statements
}
