//! Two runs side by side, or two columns: what became dearer, and whether that is too
//! much.
//!
//! ```text
//!   matching ──→ ratio    instructions of each case, means of each section
//!            └─→ values   everything that both hold, one by one
//! ```
//!
//! A case or store that the base has must be in the new run too. One that failed there
//! is never the same.

mod matching;
mod ratio;
#[cfg(test)]
mod tests;
mod values;

use anyhow::Result;
use serde::Serialize;

pub use matching::Columns;
pub use ratio::{Means, Row, Unit};

use crate::report::number::Factor;
use crate::results::{Case, Outcome, Results, Store};
use matching::{Matchable, Matched, matched};
use values::{Named, Value};

/// What may not be exceeded. What is left out is not looked at.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Gates {
    /// How far any value may be from the base's, in percent.
    pub threshold: Option<f64>,
    /// The largest ratio of a case.
    pub max_ratio: Option<f64>,
    /// The largest arithmetic mean of a section's ratios.
    pub max_average: Option<f64>,
}

/// What was found.
#[derive(Debug, Default, Serialize)]
pub struct Comparison {
    pub gates: Gates,
    /// The columns, where two of them are compared.
    pub columns: Option<(String, String)>,
    /// Ratios of the cases that both measured, in the order of the base.
    pub rows: Vec<Row>,
    /// Means of each section's.
    pub sections: Vec<Means>,
    /// Means of all.
    pub all: Option<Means>,
    /// Values that both hold, where a threshold was given.
    pub compared: usize,
    /// Values that only one of them tells.
    pub told_once: usize,
    /// What makes the comparison fail.
    pub failures: Vec<Failure>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// One reason why the comparison fails.
#[derive(Debug, Serialize)]
pub struct Failure {
    pub kind: Kind,
    pub name: String,
    pub base: String,
    pub new: String,
    /// By how much, where that is a number.
    pub by: Option<By>,
}

/// What a failure is one of, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The base has it, the new run not, or it failed there.
    Missing,
    Ratio,
    Average,
    Value,
}

/// How far apart two values are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Ratio(f64),
    /// More than the base.
    Percent(f64),
}

/// Sums of ratios are rounded: a mean counts as above a ceiling from there on.
const ROUNDING: f64 = 1e-12;

/// Compares `new` with `base`, or one column of `new` with one of `base`.
///
/// # Errors
///
/// If the runs answer different questions, or have no such columns.
pub fn compare(
    base: &Results,
    new: &Results,
    columns: Columns<'_>,
    gates: Gates,
) -> Result<Comparison> {
    matching::same_suite(base, new, columns)?;
    let stores = matched(&base.stores, &new.stores, columns);
    let cases = matched(&base.cases, &new.cases, columns);
    matching::same_questions(&cases)?;
    let mut found = Comparison {
        gates,
        columns: columns.map(|(base, new)| (base.to_owned(), new.to_owned())),
        notes: matching::notes(base, new, &cases),
        ..Comparison::default()
    };
    // Other engines hold other values; they have ratios alone.
    let threshold = gates.threshold.filter(|_| columns.is_none());
    let cycles = base.replica.subnet == new.replica.subnet;
    found.outcomes(
        &stores,
        store_name,
        |store| &store.outcome,
        |found, name, base, new| {
            if let Some(threshold) = threshold {
                let (base, new) =
                    (values::of_store(base.1, cycles), values::of_store(new.1, cycles));
                found.values(name, &base, &new, threshold);
            }
        },
    );
    found.outcomes(
        &cases,
        Case::title,
        |case| &case.outcome,
        |found, name, base, new| {
            found.rows.push(Row::new(base, new));
            if let Some(threshold) = threshold {
                let (base, new) = (values::of_case(base.1, cycles), values::of_case(new.1, cycles));
                found.values(name, &base, &new, threshold);
            }
        },
    );
    if let Some(threshold) = threshold {
        // The messages without work: no ratio of theirs says anything about an engine.
        let harness = matched(&base.harness, &new.harness, columns);
        found.outcomes(
            &harness,
            Case::title,
            |case| &case.outcome,
            |found, name, base, new| {
                let (base, new) = (values::of_case(base.1, cycles), values::of_case(new.1, cycles));
                found.values(name, &base, &new, threshold);
            },
        );
    }
    (found.sections, found.all) = ratio::means(&found.rows);
    found.ceilings();
    found.failures.sort_by_key(|failure| failure.kind);
    Ok(found)
}

fn store_name(store: &Store) -> String {
    let name = match store.name.as_str() {
        "" => String::new(),
        name => format!(", {name}"),
    };
    format!("populated {} rows of {} bytes, {}{name}", store.rows, store.payload, store.column)
}

impl Comparison {
    /// What is missing or failed is a failure; `both` sees what both measured.
    fn outcomes<'a, T: Matchable, M: 'a>(
        &mut self,
        matched: &Matched<'a, T>,
        name: impl Fn(&T) -> String,
        outcome: impl Fn(&'a T) -> &'a Outcome<M>,
        both: impl Fn(&mut Self, &str, (&'a T, &'a M), (&'a T, &'a M)),
    ) {
        for (base, new) in &matched.pairs {
            let title = name(base);
            let before = outcome(base);
            match (before, new.map(|new| (new, outcome(new)))) {
                (_, None) => self.missing(title, describe(before), "missing".to_owned()),
                (_, Some((_, after @ Outcome::Failed { .. })))
                | (Outcome::Measured(_), Some((_, after @ Outcome::NotApplicable { .. }))) => {
                    self.missing(title, describe(before), describe(after));
                }
                (Outcome::Measured(before), Some((new, Outcome::Measured(after)))) => {
                    both(self, &title, (base, before), (new, after));
                }
                (Outcome::NotApplicable { .. }, Some((_, Outcome::NotApplicable { .. }))) => {}
                (_, Some((_, after))) => {
                    let (before, after) = (describe(before), describe(after));
                    self.notes.push(format!("{title}: {before} in the base, {after} now"));
                }
            }
        }
        for new in &matched.only_new {
            if let failed @ Outcome::Failed { .. } = outcome(new) {
                self.missing(name(new), "missing".to_owned(), describe(failed));
            }
        }
    }

    fn missing(&mut self, name: String, base: String, new: String) {
        self.failures.push(Failure { kind: Kind::Missing, name, base, new, by: None });
    }

    /// Both have the same values in the same order.
    fn values(&mut self, of: &str, base: &[Named], new: &[Named], threshold: f64) {
        for ((name, before), (_, after)) in base.iter().zip(new) {
            if !before.compares(after) {
                self.told_once += usize::from(before != after);
                continue;
            }
            self.compared += 1;
            let percent = before.percent(after);
            if before != after && percent.is_none_or(|percent| percent.abs() > threshold) {
                self.failures.push(Failure {
                    kind: Kind::Value,
                    name: format!("{of}: {name}"),
                    base: before.to_string(),
                    new: after.to_string(),
                    by: percent.map(By::Percent),
                });
            }
        }
    }

    /// Ratios and means that are too large.
    fn ceilings(&mut self) {
        if let Some(ceiling) = self.gates.max_ratio {
            let over = self.rows.iter().filter(|row| row.ratio > ceiling);
            self.failures.extend(over.map(|row| Failure {
                kind: Kind::Ratio,
                name: row.title(),
                base: Value::Number(row.base).to_string(),
                new: Value::Number(row.new).to_string(),
                by: Some(By::Ratio(row.ratio)),
            }));
        }
        if let Some(ceiling) = self.gates.max_average {
            let over =
                self.sections.iter().filter(|means| means.arithmetic > ceiling * (1.0 + ROUNDING));
            self.failures.extend(over.map(|means| Failure {
                kind: Kind::Average,
                name: means.section.clone().unwrap_or_default(),
                base: Factor(1.0).to_string(),
                new: Factor(means.arithmetic).to_string(),
                by: Some(By::Ratio(means.arithmetic)),
            }));
        }
    }
}

fn describe<M>(outcome: &Outcome<M>) -> String {
    match outcome {
        Outcome::Measured(_) => "measured".to_owned(),
        Outcome::NotApplicable { reason } => format!("not applicable: {reason}"),
        Outcome::Failed { reason } => format!("failed: {reason}"),
    }
}
