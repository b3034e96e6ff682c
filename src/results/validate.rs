//! Validation of results that are read from a file.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::{Outcome, Results};
use crate::report::number::Grouped;

/// The maximum of a number. Those of runs are much smaller, and sums of many fit into 64 bits.
const MOST: u64 = 1_000_000_000_000_000;
/// The keys of numbers without a maximum: digests, seeds and ids.
const ANY: [&str; 4] = ["low", "high", "seed", "id"];

/// Refuses results that no run can have saved.
pub fn validate(results: &Results) -> Result<()> {
    let mut columns = BTreeSet::new();
    for column in &results.columns {
        ensure!(
            columns.insert(column.key.as_str()),
            "the configuration {} is listed twice",
            column.key
        );
    }
    let mut stores = BTreeSet::new();
    for store in &results.stores {
        let key = (&store.column, &store.name, store.rows, store.payload);
        let title = || format!("fixture {}, {} rows", store.column, Grouped(store.rows));
        ensure!(columns.contains(store.column.as_str()), "the {} has no configuration", title());
        ensure!(stores.insert(key), "the {} is listed twice", title());
    }
    let mut cases = BTreeSet::new();
    for case in &results.cases {
        let title = case.title();
        ensure!(columns.contains(case.column.as_str()), "the case {title} has no configuration");
        let first = cases.insert((&case.section, &case.name, &case.column));
        ensure!(first, "the case {title} is listed twice");
        if let Outcome::Measured(measured) = &case.outcome {
            ensure!(measured.operations > 0, "the case {title} has no operations");
        }
    }
    let mut harness = BTreeSet::new();
    for case in &results.harness {
        let first = harness.insert((&case.section, &case.name, &case.column));
        ensure!(first, "the case {} is listed twice", case.title());
    }
    let prices = results.prices;
    ensure!(prices.nodes > 0, "there is no subnet of 0 nodes");
    ensure!(prices.usd_per_trillion_cycles >= 0.0, "the price of cycles is negative");
    numbers("", &serde_json::to_value(results)?)
}

/// Refuses numbers whose sums may not fit into 64 bits.
fn numbers(key: &str, value: &Value) -> Result<()> {
    match value {
        Value::Object(inner) => inner.iter().try_for_each(|(key, value)| numbers(key, value)),
        Value::Array(inner) => inner.iter().try_for_each(|value| numbers(key, value)),
        Value::Number(number) if !ANY.contains(&key) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            match size {
                Some(size) if size > MOST => {
                    bail!("{key} is {number}, but the maximum is {}", Grouped(MOST))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::super::sample;
    use super::*;
    use crate::compare::{Gates, compare};
    use crate::report;
    use crate::report::Format;
    use crate::suites::presentation;
    use crate::terminal::Terminal;

    fn refusal(change: impl FnOnce(&mut Results)) -> String {
        let mut results = sample::full();
        validate(&results).unwrap();
        change(&mut results);
        let text = results.to_json().unwrap();
        Results::parse(&text).unwrap_err().to_string()
    }

    #[test]
    fn results_that_no_run_saves_are_refused() {
        for (expected, refusal) in [
            ("twice", refusal(|of| of.cases.push(of.cases[0].clone()))),
            ("twice", refusal(|of| of.columns.push(of.columns[0].clone()))),
            ("twice", refusal(|of| of.stores.push(of.stores[0].clone()))),
            ("has no configuration", refusal(|of| of.cases[0].column = "btree".to_owned())),
            ("has no configuration", refusal(|of| of.columns.clear())),
            ("0 nodes", refusal(|of| of.prices.nodes = 0)),
            ("is negative", refusal(|of| of.prices.usd_per_trillion_cycles = -1.0)),
            ("the maximum is", refusal(|of| of.stores[0].rows = u64::MAX)),
            (
                "has no operations",
                refusal(|of| {
                    if let Outcome::Measured(measured) = &mut of.cases[0].outcome {
                        measured.operations = 0;
                    }
                }),
            ),
        ] {
            assert!(refusal.contains(expected), "{expected}: {refusal}");
        }
    }

    /// Collects the JSON pointers of all values.
    fn places(value: &Value, here: &mut Vec<String>, found: &mut Vec<String>) {
        found.push(here.iter().map(|key| format!("/{}", key.replace('/', "~1"))).collect());
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(inner) => inner.iter().map(|(key, of)| (key.clone(), of)).collect(),
            Value::Array(inner) => {
                inner.iter().take(3).enumerate().map(|(at, of)| (at.to_string(), of)).collect()
            }
            _ => Vec::new(),
        };
        for (key, value) in inner {
            here.push(key);
            places(value, here, found);
            here.pop();
        }
    }

    /// Renders results in all formats. Returns `false` if they were refused.
    fn show(text: &str) -> bool {
        let Ok(results) = Results::parse(text) else { return false };
        for format in [Format::Table, Format::Markdown, Format::Csv, Format::Json] {
            let _ = report::render(presentation(&results), &results, format, Terminal::default());
        }
        let _ = report::page(&[("name".to_owned(), presentation(&results), results.clone())]);
        let gates = Gates { threshold: Some(0.0), max_ratio: None, max_average: None };
        let _ = compare(&results, &results, None, gates);
        true
    }

    /// Replaces each value by others. All results that are then accepted can be rendered.
    #[test]
    fn damaged_results_do_not_make_reports_panic() {
        let root = crate::canisters::root();
        let mut texts = vec![sample::full().to_json().unwrap()];
        for name in ["results/users-as-published.json", "results/history.json"] {
            texts.push(std::fs::read_to_string(root.join(name)).unwrap());
        }
        let (mut tried, mut read) = (0, 0);
        for text in &texts {
            let whole: Value = serde_json::from_str(text).unwrap();
            let mut found = Vec::new();
            places(&whole, &mut Vec::new(), &mut found);
            for (place, at) in found.iter().zip(0..) {
                let other = match at % 5 {
                    0 => Value::Null,
                    1 => Value::from(""),
                    2 => Value::from("a \u{1b}[2J\n"),
                    3 => Value::from(u64::MAX),
                    _ => Value::from(-1),
                };
                for other in [Value::from(0), Value::from(1), Value::Array(Vec::new()), other] {
                    let mut damaged = whole.clone();
                    *damaged.pointer_mut(place).unwrap() = other;
                    let damaged = damaged.to_string();
                    let shown = catch_unwind(|| show(&damaged));
                    assert!(shown.is_ok(), "{place} of {damaged}");
                    read += usize::from(shown.unwrap_or_default());
                    tried += 1;
                }
            }
        }
        assert!(tried > 606 && read > 100 && read < tried, "{read} of {tried}");
    }
}
