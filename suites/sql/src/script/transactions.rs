//! The transactions of scripts. Each follows from the seed and its number, so that any of them can be
//! computed by itself.
//!
//! ```text
//!   seed, number ──→ script, by weight ──→ variables ──→ calls
//!   K transactions ──→ a message
//! ```

use std::fmt;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use stablebench_workload::Rng;

use super::agreement::Agreement;
use super::expression::{Number, Random};
use super::{Script, ScriptError};
use crate::{Call, Value, split};

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
}
