//! Results as Markdown, for comments on pull requests.

use super::change::{Entry, Metric};
use super::json::Report;
use super::measure::Measured;
use super::summary::Counts;
use super::table::{COSTS, Side, bars, changed, costs, status};
use crate::terminal::safe_line;

/// The summary, what each benchmark measured, and what it costs.
pub fn markdown(report: &Report<'_>) -> String {
    let rules: Vec<&str> = report.runs.iter().map(|(rules, _)| *rules).collect();
    let mut text = format!("### Benchmarks by the rules {}\n\n", rules.join(" and "));
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
            "\nCompared with `{}`, counted by the rules {}; changes below {} % are noise.\n",
            compared.file, compared.rules, report.noise
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
