//! The data of the page: results as they are saved, and the values that other reports compute from
//! them.
//!
//! ```text
//!   tool, charged_nodes
//!   rules        by the name of a rule set: fees, charge (a sentence)
//!   reports ─┬─ file        name of the file
//!            ├─ results     the file's content, without digests
//!            ├─ question    of the suite
//!            ├─ configurations     by key: heading, floor, instead_of
//!            ├─ sections    titles by name
//!            ├─ advice      headings, each with sentences
//!            ├─ published   published figures and ratios
//!            ├─ sheets      tables that contain more than a section's cases, as texts
//!            └─ settings    such a table: SQLite's settings, read back
//! ```

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use crate::engines::{ADVISED, SHIPPED, heading, is_floor};
use crate::report::advice::advice;
use crate::report::common::settings;
use crate::report::grid::Grid;
use crate::report::price::{CHARGED_NODES, Fees};
use crate::report::style::Style;
use crate::report::tables::summaries;
use crate::report::{Presentation, PublishedFigures, price};
use crate::results::Results;

/// The number up to which JavaScript represents all whole numbers exactly.
const EXACT: u64 = 1 << 53;

#[derive(Serialize)]
pub struct Data {
    tool: &'static str,
    /// The number of nodes of the subnet to which the cycles in results apply.
    charged_nodes: u64,
    rules: BTreeMap<&'static str, Rules>,
    reports: Vec<Report>,
}

/// A rule set.
#[derive(Serialize)]
struct Rules {
    fees: Fees,
    /// A sentence about the content of a message's charge.
    charge: String,
}

#[derive(Serialize)]
struct Report {
    file: String,
    results: Value,
    question: Option<&'static str>,
    configurations: BTreeMap<String, Configuration>,
    sections: BTreeMap<String, String>,
    advice: Vec<Advice>,
    published: Option<PublishedFigures>,
    sheets: Vec<Sheet>,
    settings: Option<Sheet>,
}

#[derive(Serialize)]
struct Configuration {
    heading: String,
    floor: bool,
    /// The configuration that a library ships, if this one is how its users should set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead_of: Option<&'static str>,
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

/// Returns everything that the page needs.
///
/// # Errors
///
/// If results name published figures that do not exist.
pub fn data(results: &[(String, &dyn Presentation, Results)]) -> Result<Data> {
    let reports = results.iter().map(|(file, suite, results)| {
        report(file, *suite, results).with_context(|| format!("cannot make a page of {file}"))
    });
    Ok(Data {
        tool: concat!("stablebench ", env!("CARGO_PKG_VERSION")),
        charged_nodes: CHARGED_NODES,
        rules: known_rules(),
        reports: reports.collect::<Result<_>>()?,
    })
}

/// Returns the rule sets, and their variants.
fn known_rules() -> BTreeMap<&'static str, Rules> {
    let names = stablebench_replica::Rules::SETS.iter().chain(stablebench_replica::Rules::VARIANTS);
    names
        .filter_map(|name| {
            let rules: stablebench_replica::Rules = name.parse().ok()?;
            Some((*name, Rules { fees: rules.into(), charge: price::charge(name) }))
        })
        .collect()
}

fn report(file: &str, suite: &dyn Presentation, results: &Results) -> Result<Report> {
    let mut saved = serde_json::to_value(results)?;
    for_scripts(&mut saved);
    // A case may name a configuration that the file does not list.
    let keys = results.configurations.iter().map(|configuration| &configuration.key);
    let keys = keys.chain(results.cases.iter().map(|case| &case.configuration));
    let configuration = |key: &String| {
        let configuration = Configuration {
            heading: heading(key),
            floor: is_floor(key),
            instead_of: (key == ADVISED).then_some(SHIPPED),
        };
        (key.clone(), configuration)
    };
    let section = |name: &String| Some((name.clone(), suite.section(name)?));
    Ok(Report {
        file: file.to_owned(),
        results: saved,
        question: suite.question(),
        configurations: keys.map(configuration).collect(),
        sections: results.cases.iter().filter_map(|case| section(&case.section)).collect(),
        advice: advice(results, Style::MARKDOWN)
            .into_iter()
            .map(|(title, sentences)| Advice { title, sentences })
            .collect(),
        published: suite.published(results)?,
        sheets: summaries(suite, results)?.iter().map(sheet).collect(),
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

/// Removes digests, which the page does not show, and converts numbers that JavaScript would round
/// to texts.
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
    fn numbers_that_scripts_would_round_are_texts() {
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
