//! Results as text, JSON, Markdown and CSV.
//!
//! The text is the output of canbench, to the last character, because scripts read it: benchmarks, the
//! summary, significant changes. The table of costs is an addition. Numbers are written as canbench
//! does. All other output uses `report::number`. CSV is canbench's too, and Markdown is for comments on
//! pull requests. JSON contains everything that was measured:
//!
//! ```text
//! { stablebench, canbench, module, command, noise_threshold, setup,
//!   compared: {file, rules, setup} | null,
//!   summary: { METRIC: {total, regressed, improved, new, unchanged} },
//!   runs: [ { rules, benches: [ { name, total, scopes, before, cost } ] } ] }
//! ```
//!
//! The summary and `before` are of the first run. `docs/canbench.md` explains each field.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::iter;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use stablebench_replica::Rules;

use super::results::{
    Bench, Change, Counts, Entry, Measured, Measurement, Metric, OF_ANY_MESSAGE, Pages, Setup,
    VERSION, Value, totals,
};
use crate::report::number::{Factor, Grouped};
use crate::terminal::{Terminal, json_lines, safe_line};

/// The line between two parts of the output.
pub const RULE: &str = "---------------------------------------------------";

const NEW: Style = AnsiColor::Blue.on_default().bold();
const WORSE: Style = AnsiColor::Red.on_default().bold();
const BETTER: Style = AnsiColor::Green.on_default().bold();

/// Returns the text of a benchmark with its scopes. Changes below `noise` percent are noise.
pub fn bench(
    name: &str,
    now: &Bench,
    before: Option<&Bench>,
    noise: f64,
    terminal: Terminal,
) -> String {
    let mut text =
        format!("Benchmark: {}", styled(&safe_line(name), Style::new().bold(), terminal));
    if before.is_none() {
        let _ = write!(text, " {}", styled("(new)", NEW, terminal));
    }
    text += "\n  total:\n";
    text += &metrics(&now.total, before.map(|before| &before.total), noise, terminal);
    for (scope, now) in &now.scopes {
        let before = before.and_then(|before| before.scopes.get(scope));
        let _ = write!(text, "\n  {} (scope):\n", safe_line(scope));
        let calls = Value { now: now.calls, before: before.map(|before| before.calls) };
        text += &line("calls", "", calls, noise, terminal);
        text += &metrics(now, before, noise, terminal);
    }
    text
}

fn metrics(
    now: &Measurement,
    before: Option<&Measurement>,
    noise: f64,
    terminal: Terminal,
) -> String {
    let line = |metric: Metric| {
        let value = Value { now: metric.of(now), before: before.map(|before| metric.of(before)) };
        let unit = if metric == Metric::Instructions { "" } else { " pages" };
        line(metric.name(), unit, value, noise, terminal)
    };
    Metric::ALL.map(line).concat()
}

fn line(name: &str, unit: &str, value: Value, noise: f64, terminal: Terminal) -> String {
    let shown = format!("{name}: {}{unit}", long(value.now));
    let text = match (value.before, value.percent()) {
        (None, _) | (_, None) => format!("{shown} (new)"),
        (Some(_), Some(0.0)) => format!("{shown} (no change)"),
        (Some(0), Some(_)) => styled(&format!("{shown} (regressed from 0)"), WORSE, terminal),
        (Some(_), Some(percent)) if percent.abs() < noise => {
            format!("{shown} ({percent:.2}%) (change within noise threshold)")
        }
        (Some(_), Some(percent)) if percent > 0.0 => {
            styled(&format!("{shown} (regressed by {percent:.2}%)"), WORSE, terminal)
        }
        (Some(_), Some(percent)) => {
            let percent = percent.abs();
            styled(&format!("{shown} (improved by {percent:.2}%)"), BETTER, terminal)
        }
    };
    format!("    {text}\n")
}

fn styled(text: &str, style: Style, terminal: Terminal) -> String {
    if terminal.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

/// Returns the summary.
pub fn summary(entries: &[Entry], noise: f64) -> String {
    let parts = Metric::ALL.map(|metric| of_metric(entries, metric, noise));
    format!("Summary:\n{}", parts.join("\n"))
}

fn of_metric(entries: &[Entry], metric: Metric, noise: f64) -> String {
    let counts = Counts::of(entries, metric, noise);
    let Counts { total, regressed, improved, new, unchanged } = counts;
    let values: Vec<Value> = totals(entries).map(|entry| entry.value(metric)).collect();
    let deltas = values.iter().filter_map(|value| value.delta().map(|delta| delta as f64));
    let percents = values.iter().filter_map(|value| value.percent());
    // A percentile of deltas may lie between two of them.
    let delta = |value: f64| short_change(value.round());
    format!(
        "  {}:\n    status:   {}\n    counts:   [total {total} | regressed {regressed} | improved \
         {improved} | new {new} | unchanged {unchanged}]\n    change:   {}\n    change %: {}\n",
        metric.name(),
        counts.status(),
        spread(deltas.collect(), delta),
        spread(percents.collect(), percent_change),
    )
}

fn spread(mut values: Vec<f64>, show: impl Fn(f64) -> String) -> String {
    if values.is_empty() {
        return "n/a".to_owned();
    }
    values.sort_by(f64::total_cmp);
    let part = |(name, percent)| format!("{name} {}", show(percentile(&values, percent)));
    let parts = [("max", 100), ("p75", 75), ("median", 50), ("p25", 25), ("min", 0)].map(part);
    format!("[{}]", parts.join(" | "))
}

/// Returns a percentile of sorted values, interpolated linearly.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = percent as f64 / 100.0 * (sorted.len() - 1) as f64;
    let (lower, upper) = (rank.floor() as usize, rank.ceil() as usize);
    let weight = rank - lower as f64;
    if lower == upper {
        sorted[lower]
    } else {
        sorted[lower] * (1.0 - weight) + sorted[upper] * weight
    }
}

/// The maximum number of rows of a table, from both ends.
const MAX_ROWS: usize = 50;

/// The alignment of a column.
#[derive(Clone, Copy, Debug)]
enum Side {
    Left,
    Middle,
    Right,
}

/// Returns the changes that are no noise, the largest regressions of instructions first.
pub fn significant(entries: &[Entry], noise: f64) -> Option<String> {
    let mut changed: Vec<(String, &Entry)> =
        entries.iter().filter_map(|entry| Some((status(entry, noise)?, entry))).collect();
    if changed.is_empty() {
        return None;
    }
    let percent = |entry: &Entry| entry.value(Metric::Instructions).percent();
    // New benchmarks have no percentage and come last.
    changed.sort_by(|(one_status, one), (other_status, other)| {
        let (before, after) =
            (percent(other).unwrap_or(f64::MIN), percent(one).unwrap_or(f64::MIN));
        let by_percent = before.partial_cmp(&after).unwrap_or(Ordering::Equal);
        by_percent
            .then_with(|| one_status.cmp(other_status))
            .then_with(|| one.name().cmp(&other.name()))
    });
    let columns = ["status", "name", "calls", "ins", "ins Δ%", "HI", "HI Δ%", "SMI", "SMI Δ%"];
    let rows = changed.iter().map(|(status, entry)| {
        let calls = entry.scope.as_ref().map(|_| short(entry.now.calls));
        let first = [status.clone(), safe_line(&entry.name()).into(), calls.unwrap_or_default()];
        let values = Metric::ALL.into_iter().flat_map(|metric| {
            let value = entry.value(metric);
            let change = value.percent().map(percent_change);
            [short(value.now), change.unwrap_or_default()]
        });
        first.into_iter().chain(values).collect()
    });
    let sides: Vec<Side> =
        [Side::Middle, Side::Left].into_iter().chain(iter::repeat_n(Side::Right, 7)).collect();
    let table = bars(&columns, &sides, &ends(rows.collect(), columns.len()));
    Some(format!(
        "{table}\nins = instructions, HI = heap_increase, SMI = stable_memory_increase, Δ% = \
         percent change\n"
    ))
}

/// Returns `new`, `+` for regressions, `-` for improvements, or `None` if all changes are noise.
fn status(entry: &Entry, noise: f64) -> Option<String> {
    if entry.is_new() {
        return Some("new".to_owned());
    }
    let signs = [(Change::Regressed, "+"), (Change::Improved, "-")]
        .into_iter()
        .filter(|(change, _)| entry.has(*change, noise))
        .map(|(_, sign)| sign);
    let signs: Vec<&str> = signs.collect();
    (!signs.is_empty()).then(|| signs.join("/"))
}

/// Returns the first and the last rows, with a row between them for the omitted ones.
fn ends(mut rows: Vec<Vec<String>>, columns: usize) -> Vec<Vec<String>> {
    let Some(left_out @ 1..) = rows.len().checked_sub(MAX_ROWS) else {
        return rows;
    };
    let mut between = vec![String::new(); columns];
    "...".clone_into(&mut between[0]);
    let s = if left_out == 1 { "" } else { "s" };
    between[1] = format!("... {left_out} row{s} omitted ...");
    let first = MAX_ROWS / 2;
    rows.splice(first..first + left_out, [between]);
    rows
}

/// Returns the costs of the benchmarks by each set of rules. All runs have the same benchmarks.
pub fn costs(runs: &[(&str, &[Measured])]) -> String {
    let mut columns = vec!["name".to_owned()];
    let several = runs.len() > 1;
    for (rules, _) in runs {
        columns.push(if several { format!("ins {rules}") } else { "ins".to_owned() });
    }
    if several {
        columns.push("ratio".to_owned());
    }
    columns.extend(["HP", "SP"].map(str::to_owned));
    for (rules, _) in runs {
        columns.push(if several { format!("cycles {rules}") } else { "cycles".to_owned() });
    }
    let count = runs.first().map_or(0, |(_, measured)| measured.len());
    let rows = (0..count).map(|at| {
        let all: Vec<&Measured> = runs.iter().filter_map(|(_, run)| run.get(at)).collect();
        let mut row = vec![safe_line(&all[0].name).into_owned()];
        let instructions = |measured: &Measured| measured.bench.total.instructions;
        row.extend(all.iter().map(|measured| Grouped(instructions(measured)).to_string()));
        if let ([first, .., last], true) = (&all[..], several) {
            let (last, first) = (instructions(last), instructions(first));
            row.push(Factor(last as f64 / first as f64).to_string());
        }
        // Only newer rules charge for them.
        let pages = all.iter().find_map(|measured| measured.cost.touched);
        let pages = pages.map(|pages| [pages.heap, pages.stable].map(|it| Grouped(it).to_string()));
        row.extend(pages.unwrap_or_else(|| ["–", "–"].map(str::to_owned)));
        row.extend(all.iter().map(|measured| Grouped(measured.cost.cycles).to_string()));
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let sides: Vec<Side> =
        iter::once(Side::Left).chain(iter::repeat_n(Side::Right, columns.len() - 1)).collect();
    bars(&columns, &sides, &rows)
}

/// The legend of [`costs`].
pub const COSTS: &str = "\
ins = instructions, HP and SP = Wasm pages of heap and stable memory first touched inside the benchmark,
cycles = cost of the whole message if the query is called as an update";

/// Returns the name of rules, and whose they are.
pub fn rules(name: &str) -> String {
    let whose = if name == Rules::of_2025_10().name() {
        " (as canbench 0.7 counts)"
    } else if name == Rules::today().name() {
        " (as the network counts today)"
    } else {
        ""
    };
    format!("{name}{whose}")
}

/// Returns the names of the rules of these runs, and whose they are.
pub fn rules_of<'r>(runs: impl Iterator<Item = &'r str>) -> String {
    runs.map(rules).collect::<Vec<_>>().join(" and ")
}

/// Returns the words for the message of setup, after those for the rules.
pub fn setup(setup: Setup) -> &'static str {
    match setup {
        Setup::Shared => "",
        Setup::Separate => ", setup in a message before",
    }
}

/// Returns the sentence on pages that a benchmark's setup has touched, if it has.
pub fn touched_by_setup(measured: &Measured) -> Option<String> {
    let before = measured.cost.before?;
    let pages = match before.touched {
        Some(Pages { heap, stable }) if heap > OF_ANY_MESSAGE || stable > 0 => format!(
            "setup has touched Wasm pages, {} of the heap and {} of stable memory",
            Grouped(heap),
            Grouped(stable)
        ),
        None if before.charged > 0 => format!(
            "setup has paid {} instructions for pages of stable memory",
            Grouped(before.charged)
        ),
        Some(_) | None => return None,
    };
    Some(format!(
        "{}: {pages}, which are free for what is measured; --separate-setup charges them again",
        safe_line(&measured.name)
    ))
}

/// Returns a cell with a value and its change.
fn changed(value: Value) -> String {
    let change = value.percent().map_or("new".to_owned(), percent_change);
    format!("{} ({change})", Grouped(value.now))
}

/// Returns a table with vertical bars, which is Markdown too.
fn bars(columns: &[&str], sides: &[Side], rows: &[Vec<String>]) -> String {
    // Widths are in bytes, not characters, as in canbench.
    let mut widths: Vec<usize> = columns.iter().map(|column| column.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let row = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(widths.iter().zip(sides)).map(|(cell, (&width, side))| match side {
            Side::Left => format!(" {cell:<width$} |"),
            Side::Middle => format!(" {cell:^width$} |"),
            Side::Right => format!(" {cell:>width$} |"),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let lines = widths.iter().map(|width| format!("{}|", "-".repeat(width + 2)));
    let mut table = row(&mut columns.iter().copied());
    table += &format!("|{}\n", lines.collect::<String>());
    for cells in rows {
        table += &row(&mut cells.iter().map(String::as_str));
    }
    table
}

/// Returns `1.23M`, or the number itself below 1 000.
fn short(value: u64) -> String {
    match scaled(value as f64) {
        (_, "") => value.to_string(),
        (scaled, unit) => format!("{scaled:.2}{unit}"),
    }
}

/// Returns `+1.23M`, `-12` or `0`.
fn short_change(value: f64) -> String {
    match scaled(value) {
        (0.0, _) => "0".to_owned(),
        (scaled, "") => format!("{scaled:+.0}"),
        (scaled, unit) => format!("{scaled:+.2}{unit}"),
    }
}

/// Returns `1.23 M`, or the number itself below 10 000.
fn long(value: u64) -> String {
    match value {
        0..10_000 => value.to_string(),
        _ => {
            let (scaled, unit) = scaled(value as f64);
            format!("{scaled:.2} {unit}")
        }
    }
}

/// Returns `+1.23%`, `+inf%` from 0, or no sign below 0.01 %.
fn percent_change(value: f64) -> String {
    if value.abs() < 0.01 { format!("{value:.2}%") } else { format!("{value:+.2}%") }
}

/// Returns `1.23%`, with a number in place of infinity for spreadsheets.
fn percent(value: f64) -> String {
    match value.is_infinite() {
        true if value > 0.0 => "1.0E99".to_owned(),
        true => "-1.0E99".to_owned(),
        false => format!("{value:.2}%"),
    }
}

fn scaled(value: f64) -> (f64, &'static str) {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")];
    let unit = UNITS.into_iter().find(|(size, _)| value.abs() >= *size);
    unit.map_or((value, ""), |(size, name)| (value / size, name))
}

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
    let mut text = format!(
        "### Benchmarks by the rules {}{}\n\n",
        rules_of(report.runs.iter().map(|(rules, _)| *rules)),
        setup(report.setup)
    );
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
            rules(&safe_line(compared.rules)),
            setup(compared.setup),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_canbench() {
        assert_eq!([999, 1_000, 49_120].map(short), ["999", "1.00K", "49.12K"]);
        assert_eq!([0.0, -3.0, 3_834.0].map(short_change), ["0", "-3", "+3.83K"]);
        let numbers = [9_999, 10_000, 3_540_000, 2_000_000_000, 99_999_999_999_999];
        assert_eq!(numbers.map(long), ["9999", "10.00 K", "3.54 M", "2.00 B", "100.00 T"]);
    }

    #[test]
    fn percentages_are_those_of_canbench() {
        let changes = [0.0, -1.428, 21.25, f64::INFINITY].map(percent_change);
        assert_eq!(changes, ["0.00%", "-1.43%", "+21.25%", "+inf%"]);
        let written = [11.111, f64::INFINITY, f64::NEG_INFINITY].map(percent);
        assert_eq!(written, ["11.11%", "1.0E99", "-1.0E99"]);
    }
}
