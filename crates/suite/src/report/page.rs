//! An HTML page of results: the cheapest configuration for the reader's own sizes, charts, tables.
//! It opens from a file, without a network.
//!
//! ```text
//!   page.html   ←  {{script-hash}}  of page.js: the only script that may run
//!               ←  {{style}}        page.css
//!               ←  {{data}}         JSON, gzip, base64
//!               ←  {{script}}       page.js: unpacks the data and builds the page
//! ```
//!
//! No part of a results file is written as HTML: base64 has no character that could end its
//! block, and the script inserts texts as texts. `page/` contains the sources of the script and the
//! style, and their builds. `docs/report.md` describes the page.
//!
//! The data are results as they are saved, and the values that other reports compute from them:
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
use std::io::{Read as _, Write};
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use stablebench_replica::files;

use super::advice::advice;
use super::grid::{Grid, Style};
use super::price::{self, CHARGED_NODES, Fees};
use super::tables::{settings, summaries};
use super::{Presentation, PublishedFigures};
use crate::engines::{ADVISED, SHIPPED, heading, is_floor};
use crate::results::Results;
use crate::terminal::json;

const SKELETON: &str = include_str!("../../../../page/src/page.html");
const STYLE: &str = include_str!("../../../../page/dist/page.css");
const SCRIPT: &str = include_str!("../../../../page/dist/page.js");

/// Returns the page of some results, each with the name of its file.
///
/// # Errors
///
/// If results name published figures that do not exist.
pub fn page(results: &[(String, &dyn Presentation, Results)]) -> Result<String> {
    let data = json(&data(results)?)?;
    Ok(fill(
        SKELETON,
        &[
            ("script-hash", &STANDARD.encode(Sha256::digest(SCRIPT))),
            ("style", STYLE),
            ("data", &packed(&data)?),
            ("script", SCRIPT),
        ],
    ))
}

/// The beginning of every page.
const BEGINNING: usize = 256;

/// `true` if a file is a page of results.
///
/// # Errors
///
/// If it cannot be read.
pub fn is_page(path: &Path) -> Result<bool> {
    let mut beginning = Vec::new();
    files::open(path)?.take(BEGINNING as u64).read_to_end(&mut beginning)?;
    let page = SKELETON.split("{{").next().unwrap_or_default().as_bytes();
    let own = &page[..page.len().min(BEGINNING)];
    Ok(beginning.starts_with(own))
}

/// Compresses a text, and encodes it in characters without a meaning in HTML.
fn packed(text: &str) -> Result<String> {
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(text.as_bytes())?;
    Ok(STANDARD.encode(compressed.finish()?))
}

/// Replaces `{{names}}` in the skeleton by values. Names inside of values are not replaced.
fn fill(skeleton: &str, values: &[(&str, &str)]) -> String {
    let mut parts = skeleton.split("{{");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let known = part.split_once("}}").and_then(|(name, rest)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((value, rest))
        });
        match known {
            Some((value, rest)) => {
                text.push_str(value);
                text.push_str(rest);
            }
            None => {
                text.push_str("{{");
                text.push_str(part);
            }
        }
    }
    text
}

/// The number up to which JavaScript represents all whole numbers exactly.
const EXACT: u64 = 1 << 53;

#[derive(Serialize)]
struct Data {
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
fn data(results: &[(String, &dyn Presentation, Results)]) -> Result<Data> {
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
    fn values_are_not_filled_in_twice() {
        assert_eq!(fill("a{{b}}c{{d}}e", &[("b", "{{d}}"), ("d", "1")]), "a{{d}}c1e");
        assert_eq!(fill("{{unknown}} {{", &[]), "{{unknown}} {{");
    }

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
