//! The summary of all benchmarks, as canbench prints it: how many changed, and by how much.

use super::change::{Change, Entry, Metric, Value};
use super::number;

/// Of a metric, how many benchmarks did what. Scopes do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    pub total: usize,
    pub regressed: usize,
    pub improved: usize,
    pub new: usize,
    pub unchanged: usize,
}

impl Counts {
    /// Counts benchmarks.
    pub fn of(entries: &[Entry], metric: Metric, noise: f64) -> Self {
        let mut counts = Self::default();
        for entry in totals(entries) {
            counts.total += 1;
            *match entry.value(metric).change(noise) {
                Change::Regressed => &mut counts.regressed,
                Change::Improved => &mut counts.improved,
                Change::New => &mut counts.new,
                Change::Unchanged => &mut counts.unchanged,
            } += 1;
        }
        counts
    }

    /// In a few words.
    pub const fn status(self) -> &'static str {
        match (self.regressed > 0, self.improved > 0, self.new > 0) {
            (false, false, false) => "No significant changes 👍",
            (true, false, false) => "Regressions detected 🔴",
            (false, true, false) => "Improvements detected 🟢",
            (false, false, true) => "New benchmarks added ➕",
            (true, true, false) => "Regressions and improvements 🔴🟢",
            (true, false, true) => "Regressions and new benchmarks 🔴➕",
            (false, true, true) => "Improvements and new benchmarks 🟢➕",
            (true, true, true) => "Regressions, improvements, and new benchmarks 🔴🟢➕",
        }
    }
}

fn totals(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| entry.scope.is_none())
}

/// The summary.
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
    // Between two deltas there may lie none.
    let delta = |value: f64| number::short_change(value.round());
    format!(
        "  {}:\n    status:   {}\n    counts:   [total {total} | regressed {regressed} | improved \
         {improved} | new {new} | unchanged {unchanged}]\n    change:   {}\n    change %: {}\n",
        metric.name(),
        counts.status(),
        spread(deltas.collect(), delta),
        spread(percents.collect(), number::percent_change),
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

/// A percentile of sorted values, on the line between the two nearest.
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
