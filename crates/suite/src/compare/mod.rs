//! Comparing two runs, or two configurations, with thresholds.
//!
//! ```text
//!   matched cases ─┬─→ ratios    instructions of each case, means of each section
//!                  └─→ values    all values that both contain, one by one
//! ```
//!
//! The new run must ask the same question, and contain all cases and fixtures of the base. One that
//! failed there is never equal.

#[cfg(test)]
mod tests;
mod values;

use anyhow::{Result, bail};
use serde::Serialize;
use stablebench_replica::Rules;

use crate::report::number::{Factor, Grouped};
use crate::results::{CanisterInfo, Case, FixtureInfo, Outcome, Results, State};
pub use values::{Means, Row, Unit};
use values::{Named, Value};

/// Parses a ceiling: `1.05`, or `1.05x`.
///
/// # Errors
///
/// If it is not a positive number.
pub fn ceiling(text: &str) -> Result<f64, String> {
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(ratio) if ratio.is_finite() && ratio > 0.0 => Ok(ratio),
        _ => Err("a ceiling is a ratio, such as 1.05 for five percent more".to_owned()),
    }
}

/// The thresholds. Those that are `None` are not checked.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Gates {
    /// The maximum difference of any value from the base's, in percent.
    pub threshold: Option<f64>,
    /// The maximum ratio of a case.
    pub max_ratio: Option<f64>,
    /// The maximum arithmetic mean of a section's ratios.
    pub max_average: Option<f64>,
}

/// The result of a comparison.
#[derive(Debug, Default, Serialize)]
pub struct Comparison {
    pub gates: Gates,
    /// The configurations, if two of them are compared.
    pub configurations: Option<(String, String)>,
    /// Ratios of the cases that both measured, in the order of the base.
    pub rows: Vec<Row>,
    /// Means of each section.
    pub sections: Vec<Means>,
    /// Means of all.
    pub all: Option<Means>,
    /// The number of values that both contain, if there is a threshold.
    pub compared: usize,
    /// The number of values that only one of them contains.
    pub unmatched: usize,
    /// The reasons why the comparison fails.
    pub failures: Vec<Failure>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One reason why the comparison fails.
#[derive(Debug, Serialize)]
pub struct Failure {
    pub kind: Kind,
    pub name: String,
    pub base: String,
    pub new: String,
    /// The difference, if it is a number.
    pub by: Option<By>,
}

/// The kinds of failures, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The new run lacks it, or it failed there.
    Missing,
    Ratio,
    Average,
    Value,
}

/// The difference of two values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Ratio(f64),
    /// The increase from the base.
    Percent(f64),
}

/// The relative tolerance of means, since sums of ratios are rounded.
const ROUNDING: f64 = 1e-12;

/// Compares `new` with `base`, or one configuration of `new` with one of `base`.
///
/// # Errors
///
/// If the runs ask different questions, have no case in common, or lack one of the configurations.
pub fn compare(
    base: &Results,
    new: &Results,
    configurations: Configurations<'_>,
    gates: Gates,
) -> Result<Comparison> {
    same_suite(base, new, configurations)?;
    let fixtures = matched(&base.fixtures, &new.fixtures, configurations);
    let cases = matched(&base.cases, &new.cases, configurations);
    common(&cases)?;
    same_questions(&cases)?;
    let mut found = Comparison {
        gates,
        configurations: configurations.map(|(base, new)| (base.to_owned(), new.to_owned())),
        notes: notes(base, new, &cases),
        ..Comparison::default()
    };
    // Values of other engines differ, so only ratios are compared.
    let threshold = gates.threshold.filter(|_| configurations.is_none());
    let cycles = base.replica.subnet == new.replica.subnet;
    found.outcomes(
        &fixtures,
        fixture_name,
        |fixture| &fixture.outcome,
        |found, name, base, new| {
            if let Some(threshold) = threshold {
                let (base, new) =
                    (values::of_fixture(base.1, cycles), values::of_fixture(new.1, cycles));
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
        // Messages without work have no ratios, which would mean nothing for an engine.
        let harness = matched(&base.harness, &new.harness, configurations);
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
    (found.sections, found.all) = values::means(&found.rows);
    found.ceilings();
    let ceilings = gates.max_ratio.is_some() || gates.max_average.is_some();
    if ceilings && found.rows.is_empty() && found.failures.is_empty() {
        bail!(
            "a ceiling has nothing to check: no case is measured in both; measure it in the base"
        );
    }
    found.failures.sort_by_key(|failure| failure.kind);
    Ok(found)
}

fn fixture_name(fixture: &FixtureInfo) -> String {
    let name = match fixture.name.as_str() {
        "" => String::new(),
        name => format!(", {name}"),
    };
    format!(
        "populated {} rows of {} bytes, {}{name}",
        fixture.rows, fixture.payload, fixture.configuration
    )
}

impl Comparison {
    /// Adds failures for missing and failed items, and calls `both` for measured ones.
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

    /// Compares values. Both have the same names in the same order.
    fn values(&mut self, of: &str, base: &[Named], new: &[Named], threshold: f64) {
        for ((name, before), (_, after)) in base.iter().zip(new) {
            if !before.compares(after) {
                self.unmatched += usize::from(before != after);
                continue;
            }
            self.compared += 1;
            let percent = before.percent(after);
            if before != after && percent.is_none_or(|percent| percent.abs() > threshold) {
                self.failures.push(Failure {
                    kind: Kind::Value,
                    name: format!("{of}: {name}"),
                    base: shortened(before.to_string()),
                    new: shortened(after.to_string()),
                    by: percent.map(By::Percent),
                });
            }
        }
    }

    /// Adds failures for ratios and means that are too large.
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

/// Returns a value for a table, which has no room for long lists.
fn shortened(value: String) -> String {
    const LENGTH: usize = 60;
    match value.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
    }
}

fn describe<M>(outcome: &Outcome<M>) -> String {
    match outcome {
        Outcome::Measured(_) => "measured".to_owned(),
        Outcome::NotApplicable { reason } => format!("not applicable: {reason}"),
        Outcome::Failed { reason } => format!("failed: {reason}"),
    }
}

/// The compared configurations of the base and of the new run.
pub type Configurations<'a> = Option<(&'a str, &'a str)>;

/// Items of the base with their counterparts in the new run, and the items of the new run alone.
struct Matched<'a, T> {
    pairs: Vec<(&'a T, Option<&'a T>)>,
    only_new: Vec<&'a T>,
}

/// An item that can be found in the other run.
trait Matchable {
    fn configuration(&self) -> &str;
    /// Returns `true` if both are equal except for the configuration.
    fn same(&self, other: &Self) -> bool;
}

impl Matchable for Case {
    fn configuration(&self) -> &str {
        &self.configuration
    }

    fn same(&self, other: &Self) -> bool {
        self.section == other.section && self.name == other.name
    }
}

impl Matchable for FixtureInfo {
    fn configuration(&self) -> &str {
        &self.configuration
    }

    fn same(&self, other: &Self) -> bool {
        (&self.name, self.rows, self.payload) == (&other.name, other.rows, other.payload)
    }
}

/// Matches by name and configuration, or by name in two configurations that are compared.
fn matched<'a, T: Matchable>(
    base: &'a [T],
    new: &'a [T],
    configurations: Configurations<'_>,
) -> Matched<'a, T> {
    let of = |all: &'a [T], configuration: Option<&str>| -> Vec<&'a T> {
        all.iter()
            .filter(|one| {
                configuration.is_none_or(|configuration| one.configuration() == configuration)
            })
            .collect()
    };
    let base = of(base, configurations.map(|configurations| configurations.0));
    let new = of(new, configurations.map(|configurations| configurations.1));
    let belong = |one: &T, other: &T| {
        one.same(other)
            && (configurations.is_some() || one.configuration() == other.configuration())
    };
    let pairs: Vec<(&T, Option<&T>)> = base
        .iter()
        .map(|one| (*one, new.iter().find(|other| belong(one, other)).copied()))
        .collect();
    let only_new =
        new.into_iter().filter(|other| !base.iter().any(|one| belong(one, other))).collect();
    Matched { pairs, only_new }
}

/// Checks that there is something to compare.
///
/// # Errors
///
/// If the runs have no case in common.
fn common(cases: &Matched<'_, Case>) -> Result<()> {
    if cases.pairs.iter().any(|(_, new)| new.is_some()) {
        return Ok(());
    }
    let has = |cases: &[&Case]| match cases {
        [] => "no case".to_owned(),
        [only] => format!("only {}", only.title()),
        [first, ..] => {
            format!("{} cases, such as {}", Grouped(cases.len() as u64), first.title())
        }
    };
    let of_base: Vec<&Case> = cases.pairs.iter().map(|(base, _)| *base).collect();
    bail!(
        "there is nothing to compare: no case is in both runs; the base has {}, the new run {}; \
         compare runs of the same command",
        has(&of_base),
        has(&cases.only_new)
    )
}

/// Checks that matched cases ask the same question.
///
/// # Errors
///
/// If one does not.
fn same_questions(cases: &Matched<'_, Case>) -> Result<()> {
    for (base, new) in &cases.pairs {
        let Some(new) = new else { continue };
        let (one, other) = (question(base), question(new));
        if one != other {
            bail!(
                "these runs cannot be compared: {} is {one} in one, {other} in the other",
                base.title()
            );
        }
        let (Some(base_found), Some(new_found)) = (base.measured(), new.measured()) else {
            continue;
        };
        let limits =
            [base_found, new_found].map(|found| found.capacity.as_ref().map(|found| found.limit));
        let operations = [base_found, new_found].map(|found| found.operations);
        let differs = match limits {
            [None, None] => (operations[0] != operations[1]).then_some("operations"),
            [one, other] => (one != other).then_some("limits"),
        };
        if let Some(what) = differs {
            bail!("these runs cannot be compared: {} has other {what}", base.title());
        }
    }
    Ok(())
}

fn question(case: &Case) -> String {
    format!(
        "about {} rows of {} bytes ({})",
        Grouped(case.rows),
        Grouped(u64::from(case.payload)),
        case.state
    )
}

/// Checks that the runs can be compared.
///
/// # Errors
///
/// If they belong to different suites, or lack one of the configurations.
fn same_suite(base: &Results, new: &Results, configurations: Configurations<'_>) -> Result<()> {
    if base.suite != new.suite {
        bail!("these runs cannot be compared: their suites are {} and {}", base.suite, new.suite);
    }
    if base.cases.is_empty() && base.fixtures.is_empty() {
        bail!("there is nothing to compare: the base contains no case");
    }
    let Some((one, other)) = configurations else { return Ok(()) };
    for (which, results, key) in [("base", base, one), ("new", new, other)] {
        let known: Vec<&str> =
            results.configurations.iter().map(|configuration| &*configuration.key).collect();
        if !known.contains(&key) {
            bail!("the {which} results have no configuration {key}; they have {}", known.join(" "));
        }
    }
    Ok(())
}

/// Returns notes on differences of the runs that a reader must know.
fn notes(base: &Results, new: &Results, cases: &Matched<'_, Case>) -> Vec<String> {
    let mut notes = Vec::new();
    let published = |results: &Results| results.replica.kind == "published";
    for (which, results) in [("base", base), ("new", new)] {
        if published(results) {
            notes.push(format!(
                "the {which} figures are published ({}): instructions alone are compared",
                results.stablebench
            ));
        }
    }
    if notes.is_empty() {
        let other = |of: &CanisterInfo| new.module(&of.name).is_some_and(|hash| hash != of.sha256);
        if base.canisters.iter().any(other) {
            notes.push("the canisters' modules are not the same".to_owned());
        }
        if base.replica.subnet != new.replica.subnet {
            notes.push(format!(
                "cycles are not compared: a subnet of kind {} and one of kind {}",
                base.replica.subnet, new.replica.subnet
            ));
        }
    }
    let (one, other) = (&base.replica.rules, &new.replica.rules);
    if one != other {
        let parsed = (one.parse::<Rules>(), other.parse::<Rules>());
        let same = matches!(parsed, (Ok(one), Ok(other)) if one.counts_as(other));
        notes.push(match same {
            true => format!(
                "the rule sets are {one} and {other}: the same work counts the same instructions, and \
                 may cost other cycles"
            ),
            false => format!(
                "the rule sets are {one} and {other}: the same work may count other instructions and \
                 cost other cycles"
            ),
        });
    }
    let random = |(base, new): &(&Case, Option<&Case>)| new.is_some() && may_be_random(base);
    if base.seed != new.seed && cases.pairs.iter().any(random) {
        notes.push(format!(
            "the seeds are {} and {}: what was chosen at random is not the same work",
            base.seed, new.seed
        ));
    }
    let others = base.inputs.iter().filter(|input| !new.inputs.contains(input));
    let others: Vec<&str> = others.map(|input| input.name.as_str()).collect();
    if !others.is_empty() {
        notes.push(format!("the files are not the same: {}", others.join(", ")));
    }
    if let Some(first) = cases.only_new.first() {
        let more = match cases.only_new.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more", Grouped(more as u64)),
        };
        notes.push(format!("only the new run has {}{more}", first.title()));
    }
    notes
}

/// Returns `false` for insertions in the middle or at the end of a fixture, which alone do not
/// depend on the seed.
fn may_be_random(case: &Case) -> bool {
    let ordered = ["middle ", "end "].iter().any(|place| case.name.starts_with(place));
    let churned = matches!(case.state, State::Churned | State::ChurnedAndVacuumed);
    case.section != "insert" || !ordered || churned
}
