//! A benchmark in words, as canbench prints it.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::change::{Metric, Value};
use super::{Bench, Measurement, number};
use crate::terminal::{Terminal, safe_line};

/// The line between two parts of the output.
pub const RULE: &str = "---------------------------------------------------";

const NEW: Style = AnsiColor::Blue.on_default().bold();
const WORSE: Style = AnsiColor::Red.on_default().bold();
const BETTER: Style = AnsiColor::Green.on_default().bold();

/// A benchmark with its scopes; changes below `noise` percent are called noise.
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
    let shown = format!("{name}: {}{unit}", number::long(value.now));
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
