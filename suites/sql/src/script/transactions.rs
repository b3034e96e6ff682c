//! The transactions of scripts, and the rows that they must find and change in every configuration.
//!
//! Each transaction follows from the seed and its number, so that any of them can be computed by itself.
//!
//! ```text
//!   seed, number ──→ script, by weight ──→ variables ──→ calls
//!   K transactions ──→ a message
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, anyhow};
use stablebench_protocol::Digest;
use stablebench_workload::Rng;

use super::expression::{Number, Random};
use super::{Script, ScriptError};
use crate::{Answer, Call, Value, split};

/// Scripts with their weights, and the values of their variables.
#[derive(Clone, Debug)]
pub struct Scripts {
    pub scripts: Vec<(u64, Script)>,
    pub defined: Vec<(String, Number)>,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// The number of its script.
    pub script: usize,
    /// Its calls; each names a text of the script.
    pub calls: Vec<Call>,
}

/// A generator of pgbench's random functions.
struct Seeded(Rng);

impl Random for Seeded {
    fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

impl Scripts {
    /// Returns the transaction with this number.
    ///
    /// # Errors
    ///
    /// If a variable has no value, or an expression cannot be computed. The error has the script's name.
    pub fn transaction(&self, seed: u64, number: u64) -> Result<Transaction> {
        // An odd multiple spreads the numbers over all 64 bits, and the first draw mixes them.
        let spread = seed.wrapping_add(number.wrapping_mul(0xd134_2543_de82_ef95));
        let mut random = Seeded(Rng::new(Rng::new(spread).next_u64()));
        let sum: u64 = self.scripts.iter().map(|(weight, _)| weight).sum();
        let mut drawn = random.below(sum.max(1));
        let mut script = 0;
        for (number, (weight, _)) in self.scripts.iter().enumerate() {
            script = number;
            match drawn.checked_sub(*weight) {
                Some(rest) => drawn = rest,
                None => break,
            }
        }
        let of = self.scripts.get(script).map(|(_, script)| script);
        let of = of.ok_or_else(|| anyhow!("there is no script"))?;
        let calls = of.transaction(&self.defined, &mut random);
        let calls = calls.map_err(|ScriptError { line, reason }| {
            anyhow!("{}, line {line}: {reason} (transaction {})", of.name, number + 1)
        })?;
        Ok(Transaction { script, calls })
    }

    /// Returns the script with a number.
    pub fn script(&self, number: usize) -> Option<&Script> {
        self.scripts.get(number).map(|(_, script)| script)
    }

    /// Returns the variables of some calls with their values: `:aid = 12, :delta = -5`. Empty if there
    /// are none.
    pub fn variables(&self, script: usize, calls: &[Call]) -> String {
        let mut shown: Vec<String> = Vec::new();
        for call in calls {
            let names = self
                .script(script)
                .and_then(|script| script.statement(call.text as usize))
                .map_or(&[][..], |(_, names)| names);
            for (name, value) in names.iter().zip(&call.parameters) {
                let one = format!(":{name} = {}", literal(value));
                if !shown.contains(&one) {
                    shown.push(one);
                }
            }
        }
        excerpt(&shown.join(", "), 300)
    }
}

/// Returns a value as SQL has it.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}"),
        Value::Text(text) => format!("'{}'", excerpt(text, 60).replace('\'', "''")),
        Value::Blob(bytes) | Value::TextBytes(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// Returns a text in one line.
pub fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of a text of at most this number of characters.
pub fn excerpt(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The work of a step: transactions of scripts.
#[derive(Clone)]
pub struct Transactions {
    pub scripts: Arc<Scripts>,
    /// The rows of the other configurations.
    pub agreement: Arc<Agreement>,
    pub configuration: String,
    /// Rows of tables: for each statement of each script its place among them, after the step's own.
    pub rows: Arc<Layout>,
    /// `true` if the content depends on the time or on random numbers of SQLite.
    pub is_volatile: bool,
}

/// The rows of tables of a step, after its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// For each script, if there are several.
    pub scripts: Vec<Option<usize>>,
    /// For each script, for each of its statements; those that are not executed have none.
    pub statements: Vec<Vec<Option<usize>>>,
    /// The number of rows.
    pub count: usize,
}

impl fmt::Debug for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactions").field("scripts", &self.scripts).finish_non_exhaustive()
    }
}

/// Functions whose values depend on the time or on chance.
const VOLATILE: [&str; 5] =
    ["current_timestamp", "current_time", "current_date", "random", "randomblob"];

/// Returns `true` if what a text does depends on the time or on random numbers of SQLite.
pub fn is_volatile(text: &str) -> bool {
    split::words(text).any(|word| VOLATILE.iter().any(|known| word.eq_ignore_ascii_case(known)))
        || text.to_ascii_lowercase().contains("'now'")
}

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

    fn scripts(texts: &[(u64, &str)]) -> Scripts {
        let script = |(weight, text): &(u64, &str)| (*weight, Script::parse("s", text).unwrap());
        Scripts { scripts: texts.iter().map(script).collect(), defined: Vec::new() }
    }

    #[test]
    fn a_transaction_follows_from_seed_and_number() {
        let scripts = scripts(&[(1, "\\set a random(1, 1000000)\nSELECT :a;")]);
        let of = |seed, number| scripts.transaction(seed, number).unwrap();
        assert_eq!(of(1, 5), of(1, 5));
        let mut values: Vec<String> =
            (0..50).map(|number| format!("{:?}", of(1, number).calls)).collect();
        values.extend((0..50).map(|number| format!("{:?}", of(2, number).calls)));
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 100);
    }

    #[test]
    fn scripts_are_chosen_by_weight() {
        let scripts = scripts(&[(1, "SELECT 1;"), (3, "SELECT 2;")]);
        let chosen =
            (0..4_000).filter(|number| scripts.transaction(7, *number).unwrap().script == 1);
        // Five standard deviations of 27.
        assert!(chosen.count().abs_diff(3_000) < 137);
    }

    #[test]
    fn variables_are_shown_once() {
        let scripts = scripts(&[(1, "\\set a 'it''s'\nSELECT :a;\n\\set a 5\nSELECT :a, :a;")]);
        let calls = scripts.transaction(1, 0).unwrap().calls;
        assert_eq!(scripts.variables(0, &calls), ":a = 'it''s', :a = 5");
    }

    #[test]
    fn what_cannot_be_computed_has_its_place() {
        let scripts = scripts(&[(1, "\nSELECT :a;")]);
        let error = scripts.transaction(1, 3).unwrap_err().to_string();
        assert!(error.starts_with("s, line 2: the variable :a has no value"), "{error}");
        assert!(error.ends_with("(transaction 4)"), "{error}");
    }

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
