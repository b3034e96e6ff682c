//! What the page knows: results as they are saved, and whatever the other reports compute of
//! them, so that nothing is computed twice.
//!
//! ```text
//!   tool, charged_nodes
//!   rules        by the name of a rule set: fees, charge (a sentence)
//!   reports ─┬─ file        name of the file
//!            ├─ results     the file's content, without digests
//!            ├─ question    of the suite
//!            ├─ columns     by key: heading, floor
//!            ├─ sections    by name: what they are about
//!            ├─ advice      headings, each with sentences
//!            ├─ published   figures and ratios of others, see `published.rs`
//!            ├─ sheets      tables that are more than a section's cases, as texts
//!            └─ settings    such a table: what SQLite runs with, read back
//! ```

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use super::published::{Published, published};
use crate::report::advice::advice;
use crate::report::price::{CHARGED_NODES, Fees};
use crate::report::rules;
use crate::report::table::grid::Grid;
use crate::report::table::{beside, settings};
use crate::report::{heading, is_floor};
use crate::results::Results;
use crate::suites::{SUITES, describe};

/// The largest number up to which a script tells all whole numbers apart.
const EXACT: u64 = 1 << 53;

#[derive(Serialize)]
pub struct Data {
    tool: &'static str,
    /// Nodes that the cycles in results are for.
    charged_nodes: u64,
    rules: BTreeMap<&'static str, Rules>,
    reports: Vec<Report>,
}

/// A rule set.
#[derive(Serialize)]
struct Rules {
    fees: Fees,
    /// What the charge of a message holds.
    charge: String,
}

#[derive(Serialize)]
struct Report {
    file: String,
    results: Value,
    question: Option<&'static str>,
    columns: BTreeMap<String, Column>,
    sections: BTreeMap<String, String>,
    advice: Vec<Advice>,
    published: Option<Published>,
    sheets: Vec<Sheet>,
    settings: Option<Sheet>,
}

#[derive(Serialize)]
struct Column {
    heading: String,
    floor: bool,
}

#[derive(Serialize)]
struct Advice {
    title: &'static str,
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct Sheet {
    title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// Everything that the page is made from.
///
/// # Errors
///
/// Where figures that the results name are not published.
pub fn data(results: &[(String, Results)]) -> Result<Data> {
    let reports = results.iter().map(|(file, results)| {
        report(file, results).with_context(|| format!("cannot make a page of {file}"))
    });
    Ok(Data {
        tool: concat!("stablebench ", env!("CARGO_PKG_VERSION")),
        charged_nodes: CHARGED_NODES,
        rules: known_rules(),
        reports: reports.collect::<Result<_>>()?,
    })
}

/// The rule sets that the page can compute with, and their variants.
fn known_rules() -> BTreeMap<&'static str, Rules> {
    let names = stablebench_replica::Rules::SETS.iter().chain(stablebench_replica::Rules::VARIANTS);
    names
        .filter_map(|name| {
            let rules: stablebench_replica::Rules = name.parse().ok()?;
            Some((*name, Rules { fees: rules.into(), charge: rules::charge(name) }))
        })
        .collect()
}

fn report(file: &str, results: &Results) -> Result<Report> {
    let mut saved = serde_json::to_value(results)?;
    for_scripts(&mut saved);
    // A case may name a column that the file does not list.
    let keys = results.columns.iter().map(|column| &column.key);
    let keys = keys.chain(results.cases.iter().map(|case| &case.column));
    let column = |key: &String| {
        let column = Column { heading: heading(key), floor: is_floor(key) };
        (key.clone(), column)
    };
    let section = |name: &String| Some((name.clone(), describe(&results.suite, name)?));
    Ok(Report {
        file: file.to_owned(),
        results: saved,
        question: SUITES.iter().find(|(name, _)| *name == results.suite).map(|(_, of)| *of),
        columns: keys.map(column).collect(),
        sections: results.cases.iter().filter_map(|case| section(&case.section)).collect(),
        advice: advice(results)
            .into_iter()
            .map(|(title, sentences)| Advice { title, sentences })
            .collect(),
        published: published(results)?,
        sheets: beside(results)?.iter().map(sheet).collect(),
        settings: settings(results).as_ref().map(sheet),
    })
}

fn sheet(grid: &Grid) -> Sheet {
    Sheet {
        title: grid.title.clone(),
        header: grid.header.clone(),
        rows: grid.texts(),
        notes: grid.notes.clone(),
    }
}

/// Drops digests, which nobody reads, and makes texts of numbers that a script would round.
fn for_scripts(value: &mut Value) {
    match value {
        Value::Object(inner) => {
            inner.remove("digest");
            inner.values_mut().for_each(for_scripts);
        }
        Value::Array(inner) => inner.iter_mut().for_each(for_scripts),
        Value::Number(number) if number.as_u64().is_some_and(|number| number > EXACT) => {
            *value = Value::String(number.to_string());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_given_numbers_that_they_can_hold() {
        let mut value = serde_json::json!({
            "digest": { "low": 1 }, "seed": u64::MAX, "most": EXACT, "list": [EXACT + 1, -1, 0.5]
        });
        for_scripts(&mut value);
        let expected = serde_json::json!({
            "seed": "18446744073709551615", "most": EXACT, "list": ["9007199254740993", -1, 0.5]
        });
        assert_eq!(value, expected);
    }
}
