//! Validation of results that are read from a file.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::{Outcome, Results};
use crate::report::number::Grouped;

/// The maximum of a number. Runs have much smaller numbers, and sums of many fit into 64 bits.
const MOST: u64 = 1_000_000_000_000_000;
/// The keys of numbers without a maximum: digests, seeds and ids.
const ANY: [&str; 4] = ["low", "high", "seed", "id"];

/// Refuses results that no run can have saved.
pub fn validate(results: &Results) -> Result<()> {
    let mut configurations = BTreeSet::new();
    for configuration in &results.configurations {
        let key = configuration.key.as_str();
        ensure!(configurations.insert(key), "the configuration {key} is listed twice");
    }
    let mut fixtures = BTreeSet::new();
    for fixture in &results.fixtures {
        let key = (&fixture.configuration, &fixture.name, fixture.rows, fixture.payload);
        let title =
            || format!("the fixture {}, {} rows", fixture.configuration, Grouped(fixture.rows));
        let known = configurations.contains(fixture.configuration.as_str());
        ensure!(known, "{} has no configuration", title());
        ensure!(fixtures.insert(key), "{} is listed twice", title());
    }
    let mut cases = BTreeSet::new();
    for case in &results.cases {
        let title = case.title();
        let known = configurations.contains(case.configuration.as_str());
        ensure!(known, "the case {title} has no configuration");
        let first = cases.insert((&case.section, &case.name, &case.configuration));
        ensure!(first, "the case {title} is listed twice");
        if let Outcome::Measured(measured) = &case.outcome {
            ensure!(measured.operations > 0, "the case {title} has no operations");
        }
    }
    let mut harness = BTreeSet::new();
    for case in &results.harness {
        let first = harness.insert((&case.section, &case.name, &case.configuration));
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
    use super::super::sample;
    use super::*;

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
            ("twice", refusal(|of| of.configurations.push(of.configurations[0].clone()))),
            ("twice", refusal(|of| of.fixtures.push(of.fixtures[0].clone()))),
            ("has no configuration", refusal(|of| of.cases[0].configuration = "btree".to_owned())),
            ("has no configuration", refusal(|of| of.configurations.clear())),
            ("0 nodes", refusal(|of| of.prices.nodes = 0)),
            ("is negative", refusal(|of| of.prices.usd_per_trillion_cycles = -1.0)),
            ("the maximum is", refusal(|of| of.fixtures[0].rows = u64::MAX)),
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
}
