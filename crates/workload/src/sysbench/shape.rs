//! Keys: how the number of a row is one, and how statements name them.
//!
//! ```text
//!   integer     id INTEGER                    7
//!   composite   a INTEGER, b INTEGER          7 = (0, 7), 123 456 = (12, 3456)
//!   blob        id BLOB, 16 bytes             00000000000000000000000000000007
//!   text        id TEXT, 32 digits           "00000000000000000000000000000007"
//! ```
//!
//! In every shape the order of keys is the order of rows.

use stablebench_protocol::KeyShape::{self, *};

use super::action::Table;
use super::record::integer;
use crate::sql::Value;

/// Rows with the same first half of a composite key.
const HALF: u64 = 10_000;

/// Every shape, in the published order.
pub const SHAPES: [KeyShape; 4] = [Integer, Composite, Blob, Text];

/// The shape of a table's keys: where they are composite, those of the table of types are
/// integers, as published.
pub fn of_table(shape: KeyShape, table: Table) -> KeyShape {
    match (shape, table) {
        (Composite, Table::Types) => Integer,
        _ => shape,
    }
}

/// The key of a row, a value a column.
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

/// As many parameters as the key has columns.
pub fn parameters(shape: KeyShape) -> &'static str {
    match shape {
        Integer | Blob | Text => "?",
        Composite => "?, ?",
    }
}

/// Whether the key is that of the parameters.
pub fn is(shape: KeyShape) -> &'static str {
    match shape {
        Integer | Blob | Text => "id = ?",
        Composite => "a = ? AND b = ?",
    }
}

/// Whether the key is in the range of the parameters.
pub fn between(shape: KeyShape, prefix: &str) -> String {
    match shape {
        Integer | Blob | Text => format!("{prefix}id BETWEEN ? AND ?"),
        Composite => format!("({prefix}a, {prefix}b) BETWEEN (?, ?) AND (?, ?)"),
    }
}

/// Whether the key is in a list of so many.
pub fn one_of(shape: KeyShape, count: usize) -> String {
    match shape {
        Integer | Blob | Text => format!("id IN ({})", vec!["?"; count].join(", ")),
        Composite => format!("(a, b) IN ({})", vec!["(?, ?)"; count].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_is_the_order_of_rows() {
        let rows =
            [1, 2, 9, 10, 255, 256, 9_999, 10_000, 10_001, 65_536, 123_456, 99_999_999, 1 << 40];
        for shape in SHAPES {
            let keys = rows.map(|row| key(shape, row));
            assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{shape:?}");
        }
    }

    #[test]
    fn keys_have_their_shapes() {
        assert_eq!(key(Composite, 123_456), [Value::Integer(12), Value::Integer(3_456)]);
        let [Value::Blob(bytes)] = &key(Blob, 258)[..] else { panic!("not a blob") };
        assert!(bytes.len() == 16 && bytes.ends_with(&[0, 1, 2]));
        let [Value::Text(text)] = &key(Text, 258)[..] else { panic!("not a text") };
        assert_eq!(text, "00000000000000000000000000000102");
    }
}
