//! What rows hold beside their keys.

use super::reads::row;
use crate::Rng;
use crate::sql::Value;

/// Bytes of the column `c`.
pub const C_BYTES: usize = 60;
const PAD_BYTES: usize = 30;
const TYPES_TEXT_BYTES: usize = 50;

/// Numbers of the table of types are at most so far from zero.
const MOST: u64 = 1_000_000;

/// The columns of a row, but for its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Of the tables in the manner of `sbtest1`.
    Main {
        /// A number with an index.
        k: u64,
        /// A text that statements read and change.
        c: String,
        /// A text that makes the row longer.
        pad: String,
    },
    /// Of the table of types.
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
    /// A row of a table like the main one, which has so many rows.
    pub fn main(rng: &mut Rng, rows: u64) -> Self {
        let k = row(rng, rows);
        Self::Main { k, c: letters(rng, C_BYTES), pad: letters(rng, PAD_BYTES) }
    }

    /// A row of the table of types.
    pub fn types(rng: &mut Rng) -> Self {
        let mut number = |most: u64| rng.below(2 * most + 1) as i64 - most as i64;
        let (integer, thousandths) = (number(MOST), number(1_000 * MOST));
        Self::Types { integer, thousandths, text: letters(rng, TYPES_TEXT_BYTES) }
    }

    /// What has an index; 0 in the table of types, which has none.
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

/// A number of ours, which all are small.
pub fn integer(number: u64) -> Value {
    Value::Integer(number as i64)
}

/// Random lower-case letters.
pub fn letters(rng: &mut Rng, count: usize) -> String {
    let mut text = String::with_capacity(count);
    while text.len() < count {
        for byte in rng.next_u64().to_le_bytes().into_iter().take(count - text.len()) {
            // The high byte of a product: some letters come once more in 256 than others.
            text.push(char::from(b'a' + ((u16::from(byte) * 26) >> 8) as u8));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_their_lengths_and_all_letters() {
        let text = letters(&mut Rng::new(3), 10_000);
        assert_eq!(text.len(), 10_000);
        assert!(('a'..='z').all(|letter| text.matches(letter).count() > 300));
        for count in [0, 1, 7, 8, 9, 60] {
            let text = letters(&mut Rng::new(3), count);
            assert!(text.len() == count && text.bytes().all(|byte| byte.is_ascii_lowercase()));
        }
    }

    #[test]
    fn numbers_are_on_both_sides_of_zero() {
        let mut rng = Rng::new(1);
        let (mut below, mut above) = (0, 0);
        for _ in 0..1_000 {
            let Record::Types { integer, thousandths, .. } = Record::types(&mut rng) else {
                panic!("not of the table of types");
            };
            assert!(integer.unsigned_abs() <= MOST);
            assert!(thousandths.unsigned_abs() <= 1_000 * MOST);
            below += u64::from(integer < 0) + u64::from(thousandths < 0);
            above += u64::from(integer > 0) + u64::from(thousandths > 0);
        }
        assert!(below > 900 && above > 900, "{below} {above}");
    }
}
