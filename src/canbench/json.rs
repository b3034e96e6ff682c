//! Results as JSON, for programs: everything that was measured, as it was measured.
//!
//! ```text
//! { stablebench, canbench, module, command, noise_threshold, compared: {file, rules} | null,
//!   summary: { METRIC: {total, regressed, improved, new, unchanged} },
//!   runs: [ { rules, benches: [ { name, total, scopes, before, cost } ] } ] }
//! ```
//!
//! The summary and `before` are of the first run. `docs/canbench.md` explains each field.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::change::{Entry, Metric};
use super::measure::{Measured, Pages};
use super::summary::Counts;
use super::{Bench, Measurement, VERSION};

/// The input of all output formats.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The command that repeats it.
    pub command: &'a str,
    /// SHA-256 of the module, in hex, as the project's build wrote it.
    pub module: &'a str,
    /// The file that is compared with, and the rules by which it was counted.
    pub compared: Option<Compared<'a>>,
    /// The benchmarks and scopes of the first run, with what they were before.
    pub entries: &'a [Entry],
    /// Percent below which a change is noise.
    pub noise: f64,
    /// The results by each set of rules.
    pub runs: &'a [(&'static str, Vec<Measured>)],
}

/// The results that others are compared with.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compared<'a> {
    pub file: &'a str,
    pub rules: &'a str,
}

#[derive(Serialize)]
struct Document<'a> {
    stablebench: &'a str,
    canbench: &'a str,
    module: &'a str,
    command: &'a str,
    noise_threshold: f64,
    compared: Option<Compared<'a>>,
    summary: BTreeMap<&'a str, Counts>,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    rules: &'a str,
    benches: Vec<One<'a>>,
}

#[derive(Serialize)]
struct One<'a> {
    name: &'a str,
    #[serde(flatten)]
    bench: &'a Bench,
    before: Option<Bench>,
    cost: Cost,
}

#[derive(Serialize)]
struct Cost {
    wasm_pages_touched: Option<Pages>,
    message_instructions: u64,
    message_cycles_as_update: u64,
}

/// The document.
pub fn json(report: &Report<'_>) -> Result<String> {
    let summary = Metric::ALL
        .map(|metric| (metric.name(), Counts::of(report.entries, metric, report.noise)))
        .into();
    let document = Document {
        stablebench: env!("CARGO_PKG_VERSION"),
        canbench: VERSION,
        module: report.module,
        command: report.command,
        noise_threshold: report.noise,
        compared: report.compared,
        summary,
        runs: (0..)
            .zip(report.runs)
            .map(|(at, (rules, measured))| {
                let entries = if at == 0 { report.entries } else { &[] };
                let benches = measured.iter().map(|measured| one(measured, entries)).collect();
                Run { rules, benches }
            })
            .collect(),
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn one<'a>(measured: &'a Measured, entries: &[Entry]) -> One<'a> {
    One {
        name: &measured.name,
        bench: &measured.bench,
        before: before(entries, &measured.name),
        cost: Cost {
            wasm_pages_touched: measured.cost.touched,
            message_instructions: measured.cost.message_instructions,
            message_cycles_as_update: measured.cost.cycles,
        },
    }
}

/// Returns the kept result of a benchmark, restricted to its current scopes.
fn before(entries: &[Entry], name: &str) -> Option<Bench> {
    let mut of = entries.iter().filter(|entry| entry.bench == name);
    let total: Measurement = of.find(|entry| entry.scope.is_none())?.before?;
    let scopes = entries
        .iter()
        .filter(|entry| entry.bench == name)
        .filter_map(|entry| Some((entry.scope.clone()?, entry.before?)))
        .collect();
    Some(Bench { total, scopes })
}
