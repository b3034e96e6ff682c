//! The rows of configurations that execute the same transactions must be the same.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stablebench_protocol::Digest;

use crate::Answer;

/// The rows of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub found: u64,
    pub changed: u64,
    /// The digest of those that were found.
    digest: (u64, u64),
}

impl From<&Answer> for Rows {
    fn from(answer: &Answer) -> Self {
        let Digest { rows, low, high } = answer.digest;
        Self { found: rows, changed: answer.changes, digest: (low, high) }
    }
}

/// A difference between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The configuration that was first.
    pub first: String,
    /// The number of the call in the transaction.
    pub call: usize,
    /// The rows of the first.
    pub rows: Option<Rows>,
}

/// The rows of a run.
#[derive(Debug, Default)]
pub struct Agreement(Mutex<First>);

#[derive(Debug, Default)]
struct First {
    /// The configurations that have begun.
    begun: Vec<String>,
    /// For each transaction: the configuration that was first, and its rows.
    transactions: Vec<(usize, Vec<Rows>)>,
    /// The configuration that was first at the end, and the content of its tables.
    content: Option<(usize, Digest)>,
}

impl Agreement {
    /// Takes in a transaction of a configuration, in their order.
    ///
    /// # Errors
    ///
    /// The first difference from another configuration.
    pub fn transaction(
        &self,
        configuration: &str,
        number: u64,
        rows: Vec<Rows>,
    ) -> Result<(), Difference> {
        let mut seen = self.seen();
        if number == 0 && seen.begun.iter().any(|known| known == configuration) {
            // The same run again, such as the one after an estimate, which may be at another time.
            *seen = First::default();
        }
        let First { begun, transactions, .. } = &mut *seen;
        let place = begun.iter().position(|known| known == configuration).unwrap_or_else(|| {
            begun.push(configuration.to_owned());
            begun.len() - 1
        });
        let Some((first, known)) = transactions.get(number as usize) else {
            if number as usize == transactions.len() {
                transactions.push((place, rows));
            }
            return Ok(());
        };
        if *known == rows {
            return Ok(());
        }
        let call = known.iter().zip(&rows).take_while(|(known, rows)| known == rows).count();
        Err(Difference {
            first: begun.get(*first).cloned().unwrap_or_default(),
            call,
            rows: known.get(call).copied(),
        })
    }

    /// Takes in the content of all tables at the end. Returns the configuration with other content,
    /// and its number of rows.
    pub fn content(&self, configuration: &str, content: Digest) -> Option<(String, u64)> {
        let mut seen = self.seen();
        let place = seen.begun.iter().position(|known| known == configuration)?;
        let (first, known) = *seen.content.get_or_insert((place, content));
        let other = || seen.begun.get(first).cloned().unwrap_or_default();
        (known != content).then(|| (other(), known.rows))
    }

    fn seen(&self) -> MutexGuard<'_, First> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(found: u64, low: u64) -> Rows {
        Rows { found, changed: 0, digest: (low, 0) }
    }

    #[test]
    fn the_first_difference_is_found() {
        let agreement = Agreement::default();
        let take =
            |of: &str, number, rows: &[Rows]| agreement.transaction(of, number, rows.to_vec());
        assert_eq!(take("a", 0, &[rows(1, 1)]), Ok(()));
        assert_eq!(take("b", 0, &[rows(1, 1)]), Ok(()));
        assert_eq!(take("b", 1, &[rows(1, 1), rows(2, 2)]), Ok(()));
        let difference = take("a", 1, &[rows(1, 1), rows(2, 3)]).unwrap_err();
        assert_eq!(
            difference,
            Difference { first: "b".to_owned(), call: 1, rows: Some(rows(2, 2)) }
        );
        // One call less.
        assert_eq!(take("a", 1, &[rows(1, 1)]).unwrap_err().call, 1);
    }

    #[test]
    fn a_run_can_be_repeated_with_other_rows() {
        let agreement = Agreement::default();
        for low in [1, 2] {
            for of in ["a", "b"] {
                assert_eq!(agreement.transaction(of, 0, vec![rows(1, low)]), Ok(()), "{of} {low}");
            }
        }
    }

    #[test]
    fn contents_are_compared() {
        let agreement = Agreement::default();
        let digest = |low| Digest { rows: 3, low, high: 0 };
        for of in ["a", "b"] {
            agreement.transaction(of, 0, Vec::new()).unwrap();
        }
        assert_eq!(agreement.content("a", digest(1)), None);
        assert_eq!(agreement.content("b", digest(1)), None);
        assert_eq!(agreement.content("b", digest(2)), Some(("a".to_owned(), 3)));
    }
}
