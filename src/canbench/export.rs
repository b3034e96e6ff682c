//! Results in other formats than canbench's text.
//!
//! JSON contains everything that was measured:
//!
//! ```text
//! { stablebench, canbench, module, command, noise_threshold, setup,
//!   compared: {file, rules, setup} | null,
//!   summary: { METRIC: {total, regressed, improved, new, unchanged} },
//!   runs: [ { rules, benches: [ { name, total, scopes, before, cost } ] } ] }
//! ```
//!
//! The summary and `before` are of the first run. `docs/canbench.md` explains each field.
//! Markdown is for comments on pull requests. CSV is canbench's.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::change::{Counts, Entry, Metric, Value};
use super::measure::{Measured, Pages};
use super::results::{Bench, Measurement, Setup, VERSION};
use super::text::{self, COSTS, Side, bars, changed, costs, percent, status};
use crate::terminal::{json_lines, safe_line};

/// The input of all output formats.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The command that repeats the run.
    pub command: &'a str,
    /// SHA-256 of the module, in hex, as the project's build wrote it.
    pub module: &'a str,
    /// The file that is compared with, and the rules by which it was counted.
    pub compared: Option<Compared<'a>>,
    /// The benchmarks and scopes of the first run, with their previous results.
    pub entries: &'a [Entry],
    /// The threshold below which a change is noise, in percent.
    pub noise: f64,
    /// The message of what benchmarks do before they measure.
    pub setup: Setup,
    /// The results by each set of rules.
    pub runs: &'a [(&'static str, Vec<Measured>)],
}

/// The results that others are compared with.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compared<'a> {
    pub file: &'a str,
    pub rules: &'a str,
    pub setup: Setup,
}

#[derive(Serialize)]
struct Document<'a> {
    stablebench: &'a str,
    canbench: &'a str,
    module: &'a str,
    command: &'a str,
    noise_threshold: f64,
    setup: Setup,
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
    wasm_pages_touched_before: Option<Pages>,
    message_instructions: u64,
    message_cycles_as_update: u64,
}

/// Returns the results as JSON.
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
        setup: report.setup,
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
    Ok(json_lines(&document)?)
}

fn one<'a>(measured: &'a Measured, entries: &[Entry]) -> One<'a> {
    One {
        name: &measured.name,
        bench: &measured.bench,
        before: before(entries, &measured.name),
        cost: Cost {
            wasm_pages_touched: measured.cost.touched,
            wasm_pages_touched_before: measured.cost.before.and_then(|before| before.touched),
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

/// Returns the summary, the results and the costs of all benchmarks as Markdown.
pub fn markdown(report: &Report<'_>) -> String {
    let rules = text::rules_of(report.runs.iter().map(|(rules, _)| *rules));
    let setup = text::setup(report.setup);
    let mut text = format!("### Benchmarks by the rules {rules}{setup}\n\n");
    for metric in Metric::ALL {
        let counts = Counts::of(report.entries, metric, report.noise);
        let Counts { total, regressed, improved, new, unchanged } = counts;
        text += &format!(
            "- {}: {} ({total} in all, {regressed} regressed, {improved} improved, {new} new, \
             {unchanged} unchanged)\n",
            metric.name(),
            counts.status()
        );
    }
    if let Some(compared) = report.compared {
        text += &format!(
            "\nCompared with `{}`, counted by the rules {}{}; changes below {} % are noise.\n",
            safe_line(compared.file),
            text::rules(&safe_line(compared.rules)),
            text::setup(compared.setup),
            report.noise
        );
    }
    text += &format!("\n{}", measurements(report.entries, report.noise));
    let runs: Vec<(&str, &[Measured])> =
        report.runs.iter().map(|(rules, run)| (*rules, &run[..])).collect();
    text += &format!("\n{}\n{COSTS}\n\n`{}`\n", costs(&runs), report.command);
    text
}

fn measurements(entries: &[Entry], noise: f64) -> String {
    let columns = ["", "name", "instructions", "heap increase", "stable memory increase"];
    let sides = [Side::Middle, Side::Left, Side::Right, Side::Right, Side::Right];
    let row = |entry: &Entry| {
        let name = format!("`{}`", safe_line(&entry.name()).replace('|', "\\|"));
        let values = Metric::ALL.map(|metric| changed(entry.value(metric)));
        [status(entry, noise).unwrap_or_default(), name].into_iter().chain(values).collect()
    };
    bars(&columns, &sides, &entries.iter().map(row).collect::<Vec<_>>())
}

/// Returns a line of CSV for each benchmark and each scope.
pub fn csv(entries: &[Entry]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = vec!["status".to_owned(), "name".to_owned()];
    let metrics = Metric::ALL.map(Metric::name);
    for name in ["scope_calls"].into_iter().chain(metrics) {
        header.extend([name.to_owned(), format!("{name} Δ"), format!("{name} Δ%")]);
    }
    writer.write_record(header)?;
    for entry in entries {
        let status = if entry.is_new() { "new" } else { "" };
        let mut row = vec![status.to_owned(), safe_line(&entry.name()).into_owned()];
        match entry.scope {
            Some(_) => row.extend(cells(entry.calls())),
            None => row.extend([const { String::new() }; 3]),
        }
        row.extend(Metric::ALL.into_iter().flat_map(|metric| cells(entry.value(metric))));
        writer.write_record(row)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn cells(value: Value) -> [String; 3] {
    [
        value.now.to_string(),
        value.delta().map(|delta| delta.to_string()).unwrap_or_default(),
        value.percent().map(percent).unwrap_or_default(),
    ]
}
