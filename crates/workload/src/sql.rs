//! Work in SQL, prepared before it is measured: statements and their parameters.
//!
//! ```text
//!   Script ─┬─ statements   "SELECT c FROM t WHERE id = ?", …   prepared once per message
//!           └─ operations   each a few calls: which statement, which parameters
//! ```

use crate::ContentDigest;

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// `NULL`
    Null,
    /// `INTEGER`
    Integer(i64),
    /// `TEXT`
    Text(String),
    /// `BLOB`
    Blob(Vec<u8>),
}

/// A value of a statement's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueRef<'a> {
    /// `NULL`
    Null,
    /// `INTEGER`
    Integer(i64),
    /// `TEXT`
    Text(&'a [u8]),
    /// `BLOB`
    Blob(&'a [u8]),
}

/// One execution of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementCall {
    /// The index of the statement in the script.
    pub statement: usize,
    /// Its parameters.
    pub parameters: Vec<Value>,
}

/// Operations in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The text of each statement, with `?` for parameters.
    pub statements: Vec<String>,
    /// The calls of each operation.
    pub operations: Vec<Vec<StatementCall>>,
    /// The operations of one transaction.
    pub transaction: Transaction,
    /// True if rows are changed.
    pub writes: bool,
    /// True if values that are read are copied; otherwise only the lengths of texts are read.
    pub copies: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            statements: Vec::new(),
            operations: Vec::new(),
            transaction: Transaction::default(),
            writes: false,
            copies: true,
        }
    }
}

/// The operations of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transaction {
    /// All operations of a message.
    #[default]
    Message,
    /// This number of operations.
    Operations(u64),
    /// None: each statement is its own transaction.
    Statement,
}

impl Value {
    /// The value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }
    }
}

impl ValueRef<'_> {
    /// The bytes that a reader copies: those of texts and blobs, 8 of an integer.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Null => 0,
            Self::Integer(_) => 8,
            Self::Text(bytes) | Self::Blob(bytes) => bytes.len() as u64,
        }
    }

    /// Encodes a tag, the length, and the bytes: no two rows of values have the same encoding.
    fn encode(self, row: &mut Vec<u8>) {
        let (tag, bytes) = match self {
            Self::Null => (0, &[][..]),
            Self::Integer(number) => {
                row.push(1);
                row.extend(number.to_le_bytes());
                return;
            }
            Self::Text(bytes) => (2, bytes),
            Self::Blob(bytes) => (3, bytes),
        };
        row.push(tag);
        row.extend((bytes.len() as u64).to_le_bytes());
        row.extend(bytes);
    }
}

/// Returns `true` if a statement changes rows and returns none.
pub fn changes_rows(statement: &str) -> bool {
    let word = statement.split_whitespace().next().unwrap_or_default();
    !["SELECT", "WITH", "PRAGMA"].iter().any(|reads| word.eq_ignore_ascii_case(reads))
}

/// Returns `true` if a statement defines the order of its rows.
pub fn is_ordered(statement: &str) -> bool {
    statement.contains("ORDER BY")
}

/// The encoded values of a row, for a digest.
#[derive(Clone, Debug, Default)]
pub struct RowBytes(Vec<u8>);

impl RowBytes {
    /// Adds the value of the next column.
    pub fn add(&mut self, value: ValueRef<'_>) {
        value.encode(&mut self.0);
    }

    /// Adds the row to a digest. The place is 0 for content, which has no order. For results in an
    /// order it is the row's number, and for results without one the number of the first of them.
    pub fn digest(&self, digest: &mut ContentDigest, place: u64) {
        digest.add(place, &self.0);
    }
}

/// Adds a row of these values to a digest; see [`RowBytes::digest`].
pub fn add_row<'a>(
    digest: &mut ContentDigest,
    place: u64,
    columns: impl IntoIterator<Item = ValueRef<'a>>,
) {
    let mut row = RowBytes::default();
    columns.into_iter().for_each(|value| row.add(value));
    row.digest(digest, place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_rows_differ() {
        let digest = |place, values: &[Value]| {
            let mut digest = ContentDigest::default();
            add_row(&mut digest, place, values.iter().map(Value::as_ref));
            digest.value()
        };
        let text = |text: &str| Value::Text(text.to_owned());
        let rows = [
            digest(0, &[]),
            digest(0, &[Value::Null]),
            digest(0, &[Value::Integer(0)]),
            digest(0, &[text("")]),
            digest(0, &[text(""), text("")]),
            digest(0, &[text("ab"), text("c")]),
            digest(0, &[text("a"), text("bc")]),
            digest(0, &[Value::Blob(b"a".to_vec()), text("bc")]),
            digest(1, &[text("a"), text("bc")]),
        ];
        for (index, row) in rows.iter().enumerate() {
            assert!(rows[index + 1..].iter().all(|other| row.low != other.low), "{index}");
        }
    }
}
