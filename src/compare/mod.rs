//! Two runs side by side: every value that both hold.
//!
//! A result is flattened to values with names, as `sqlite/memory middle 10: counter`.
//! What only one replica can tell is left out and counted; what belongs to the run
//! and not to the canister (wall times, revisions) has no name here.

use anyhow::{Result, bail};
use stablebench_protocol::Digest;

use crate::report::number::Grouped;
use crate::results::{Case, Results, SettingResult};

/// What was found.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Values that both hold.
    pub compared: usize,
    /// Values that are further apart than the threshold, and cases that one lacks.
    pub differences: Vec<Difference>,
    /// Values that only one of the replicas tells.
    pub told_once: usize,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// One of them.
#[derive(Debug)]
pub struct Difference {
    pub name: String,
    pub base: String,
    pub new: String,
    /// By how much the new value is more, in percent, where both are numbers.
    pub percent: Option<f64>,
}

/// A value of a result.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Text(String),
    /// The replica does not tell it.
    Untold,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => Grouped(*number).fmt(f),
            Self::Text(text) => f.pad(text),
            Self::Untold => f.pad("–"),
        }
    }
}

/// Compares `new` with `base`; values may differ by `threshold` percent of the base's.
///
/// # Errors
///
/// If they are not of the same suite on the same rows.
pub fn compare(base: &Results, new: &Results, threshold: f64) -> Result<Comparison> {
    same_question(base, new)?;
    let mut found = Comparison { notes: notes(base, new), ..Comparison::default() };
    let paid_alike = base.replica.subnet == new.replica.subnet;
    let (base, new) = (measured(base, paid_alike), measured(new, paid_alike));
    for (name, before) in &base {
        match new.iter().find(|(other, _)| other == name) {
            Some((_, after)) => found.values(name, before, after, threshold),
            None => found.missing(name, "measured", "missing"),
        }
    }
    for (name, _) in new.iter().filter(|(name, _)| base.iter().all(|(other, _)| other != name)) {
        found.missing(name, "missing", "measured");
    }
    Ok(found)
}

impl Comparison {
    /// Both have the same values in the same order.
    fn values(&mut self, of: &str, base: &[Named], new: &[Named], threshold: f64) {
        for ((name, before), (_, after)) in base.iter().zip(new) {
            if *before == Value::Untold || *after == Value::Untold {
                self.told_once += usize::from(before != after);
                continue;
            }
            self.compared += 1;
            let percent = match (before, after) {
                (Value::Number(before), Value::Number(after)) => Some(percent(*before, *after)),
                _ => None,
            };
            if before != after && percent.is_none_or(|percent| percent.abs() > threshold) {
                self.differences.push(Difference {
                    name: format!("{of}: {name}"),
                    base: before.to_string(),
                    new: after.to_string(),
                    percent,
                });
            }
        }
    }

    fn missing(&mut self, name: &str, base: &str, new: &str) {
        let (name, base, new) = (name.to_owned(), base.to_owned(), new.to_owned());
        self.differences.push(Difference { name, base, new, percent: None });
    }
}

fn percent(before: u64, after: u64) -> f64 {
    match (before, after) {
        (0, 0) => 0.0,
        (0, _) => f64::INFINITY,
        (before, after) => (after as f64 - before as f64) / before as f64 * 100.0,
    }
}

fn same_question(base: &Results, new: &Results) -> Result<()> {
    for (what, base, new) in [
        ("suites", &base.suite, &new.suite),
        ("rows", &base.rows.to_string(), &new.rows.to_string()),
        ("payloads", &base.payload.to_string(), &new.payload.to_string()),
    ] {
        if base != new {
            bail!("these runs cannot be compared: their {what} are {base} and {new}");
        }
    }
    Ok(())
}

fn notes(base: &Results, new: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    if base.canister.sha256 != new.canister.sha256 {
        notes.push("the canisters' modules are not the same".to_owned());
    }
    if base.replica.subnet != new.replica.subnet {
        notes.push(format!(
            "cycles are not compared: a subnet of kind {} and one of kind {}",
            base.replica.subnet, new.replica.subnet
        ));
    }
    notes
}

/// A value and what it is.
type Named = (&'static str, Value);

/// Settings and cases by name, with their values, in the order of the results.
fn measured(results: &Results, cycles: bool) -> Vec<(String, Vec<Named>)> {
    let settings = results
        .settings
        .iter()
        .map(|setting| (format!("{} populated", setting.key), of_setting(setting, cycles)));
    let cases = results
        .cases
        .iter()
        .map(|case| (format!("{} {} {}", case.setting, case.at, case.rows), of_case(case, cycles)));
    settings.chain(cases).collect()
}

fn of_setting(setting: &SettingResult, cycles: bool) -> Vec<Named> {
    let populate = &setting.populate;
    vec![
        ("messages", Value::Number(populate.messages)),
        ("counter", Value::Number(populate.instructions)),
        ("charge", told(populate.charge)),
        ("cycles", told(cycles.then_some(populate.cycles))),
        ("stored bytes", Value::Number(setting.stored_bytes)),
        ("heap pages", Value::Number(setting.heap_pages)),
        ("stable pages", Value::Number(setting.stable_pages)),
        ("digest", digest(&setting.digest)),
        ("settings of SQLite", Value::Text(format!("{:?}", setting.sqlite))),
    ]
}

fn of_case(case: &Case, cycles: bool) -> Vec<Named> {
    let measured = &case.measurement;
    let inside = case.message.inside.as_ref();
    vec![
        ("instructions", Value::Number(measured.instructions)),
        ("counter overhead", Value::Number(measured.counter_overhead)),
        ("counter after the work", Value::Number(measured.message_instructions)),
        ("heap pages before", Value::Number(measured.heap_pages_before)),
        ("heap pages after", Value::Number(measured.heap_pages_after)),
        ("stable pages before", Value::Number(measured.stable_pages_before)),
        ("stable pages after", Value::Number(measured.stable_pages_after)),
        ("cycles", told(cycles.then_some(case.message.cycles))),
        ("counter at the end", told(inside.map(|inside| inside.instructions))),
        ("charge", told(inside.map(|inside| inside.charge))),
        ("heap pages changed", told(inside.map(|inside| inside.heap_pages_changed))),
        ("stable pages accessed", told(inside.map(|inside| inside.stable_pages_accessed))),
        ("stable pages written", told(inside.map(|inside| inside.stable_pages_written))),
        ("digest", digest(&case.digest)),
    ]
}

fn digest(digest: &Digest) -> Value {
    Value::Text(format!("{} rows, {:016x}{:016x}", digest.rows, digest.low, digest.high))
}

fn told(value: Option<u64>) -> Value {
    value.map_or(Value::Untold, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(name: &str) -> Results {
        let path = crate::canisters::root().join("results").join(name).with_extension("json");
        Results::read(&path).unwrap()
    }

    fn names(found: &Comparison) -> Vec<&str> {
        found.differences.iter().map(|difference| difference.name.as_str()).collect()
    }

    #[test]
    fn a_run_is_the_same_as_itself() {
        let run = committed("users");
        let found = compare(&run, &run, 0.0).unwrap();
        assert!(found.differences.is_empty() && found.notes.is_empty(), "{found:?}");
        // Nine values of a setting, fourteen of a case.
        let all = run.settings.len() * 9 + run.cases.len() * 14;
        assert_eq!((found.compared, found.told_once), (all, 0));
    }

    /// The committed runs on both replicas, with the same module.
    #[test]
    fn the_reference_run_is_the_same_on_a_pocket_ic_server() {
        let (embedded, real) = (committed("users"), committed("users-pocket-ic"));
        assert_eq!(real.replica.kind, "pocket-ic");
        assert_eq!(real.canister.sha256, embedded.canister.sha256);
        let found = compare(&embedded, &real, 0.0).unwrap();
        assert!(found.differences.is_empty() && found.notes.is_empty(), "{found:?}");
        // All but the charges: one of a setting, five values of a case.
        assert_eq!(found.compared, embedded.settings.len() * 8 + embedded.cases.len() * 9);
    }

    #[test]
    fn a_difference_at_the_threshold_is_none_and_one_more_is_one() {
        let base = committed("users");
        let mut new = base.clone();
        new.cases[0].measurement.instructions = 100_000;
        let mut base = base;
        base.cases[0].measurement.instructions = 98_000;
        let more = 100.0 * 2_000.0 / 98_000.0;
        assert!(names(&compare(&base, &new, more).unwrap()).is_empty());
        let found = compare(&base, &new, more - 1e-9).unwrap();
        assert_eq!(names(&found), ["btree middle 1: instructions"]);
        let difference = &found.differences[0];
        assert_eq!((difference.base.as_str(), difference.new.as_str()), ("98 000", "100 000"));
        // Less counts as well.
        assert_eq!(names(&compare(&new, &base, 1.9).unwrap()).len(), 1);
        assert_eq!(names(&compare(&new, &base, 2.0).unwrap()).len(), 0);
    }

    #[test]
    fn another_digest_differs_at_any_threshold() {
        let base = committed("users");
        let mut new = base.clone();
        new.cases[0].digest.low ^= 1;
        assert_eq!(names(&compare(&base, &new, 1e9).unwrap()), ["btree middle 1: digest"]);
    }

    #[test]
    fn a_case_that_one_run_lacks_differs() {
        let base = committed("users");
        let mut new = base.clone();
        new.cases.remove(0);
        for (base, new) in [(&base, &new), (&new, &base)] {
            let found = compare(base, new, 1e9).unwrap();
            assert_eq!(names(&found), ["btree middle 1"]);
        }
    }

    #[test]
    fn what_one_replica_does_not_tell_is_counted_and_left_out() {
        let base = committed("users");
        let mut new = base.clone();
        new.cases[0].message.inside = None;
        let found = compare(&base, &new, 0.0).unwrap();
        assert_eq!((found.differences.len(), found.told_once), (0, 5));
    }

    #[test]
    fn cycles_of_other_subnets_are_not_compared() {
        let base = committed("users");
        let mut new = base.clone();
        new.replica.subnet = "system".to_owned();
        new.cases[0].message.cycles = 0;
        let found = compare(&base, &new, 0.0).unwrap();
        assert_eq!((found.differences.len(), found.notes.len()), (0, 1));
    }

    #[test]
    fn other_rows_are_another_question() {
        let base = committed("users");
        let mut new = base.clone();
        new.rows = 7;
        let error = compare(&base, &new, 0.0).unwrap_err().to_string();
        assert!(error.contains("rows are 1000000 and 7"), "{error}");
    }
}
