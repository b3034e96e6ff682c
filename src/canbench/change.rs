//! Changes between the kept results and new ones.

use serde::Serialize;

use super::results::{Bench, Benches, Measurement};

/// A metric that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Instructions,
    HeapIncrease,
    StableMemoryIncrease,
}

impl Metric {
    pub const ALL: [Self; 3] = [Self::Instructions, Self::HeapIncrease, Self::StableMemoryIncrease];

    /// Returns the name in canbench's files and texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::HeapIncrease => "heap_increase",
            Self::StableMemoryIncrease => "stable_memory_increase",
        }
    }

    /// Returns the value of the metric.
    pub const fn of(self, measurement: &Measurement) -> u64 {
        match self {
            Self::Instructions => measurement.instructions,
            Self::HeapIncrease => measurement.heap_increase,
            Self::StableMemoryIncrease => measurement.stable_memory_increase,
        }
    }
}

/// A value and the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub now: u64,
    pub before: Option<u64>,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    New,
    Improved,
    Regressed,
    /// Equal, or different by less than the noise threshold.
    Unchanged,
}

impl Value {
    /// Returns the difference from the previous value.
    pub fn delta(self) -> Option<i128> {
        Some(i128::from(self.now) - i128::from(self.before?))
    }

    /// Returns the difference in percent; infinite from 0.
    pub fn percent(self) -> Option<f64> {
        let (delta, before) = (self.delta()?, self.before?);
        Some(match (before, delta) {
            (0, 0) => 0.0,
            (0, _) => f64::INFINITY,
            _ => delta as f64 / before as f64 * 100.0,
        })
    }

    /// Returns the kind of the change; a change below `noise` percent is none.
    pub fn change(self, noise: f64) -> Change {
        match self.percent() {
            None => Change::New,
            Some(percent) if percent.abs() < noise => Change::Unchanged,
            Some(percent) if percent < 0.0 => Change::Improved,
            // With a threshold of 0, no change is a regression to canbench.
            Some(_) => Change::Regressed,
        }
    }
}

/// A benchmark or a scope of one, with its previous result.
#[derive(Clone, Debug)]
pub struct Entry {
    pub bench: String,
    pub scope: Option<String>,
    pub now: Measurement,
    pub before: Option<Measurement>,
}

impl Entry {
    /// Returns `BENCH` or `BENCH::SCOPE`.
    pub fn name(&self) -> String {
        match &self.scope {
            Some(scope) => format!("{}::{scope}", self.bench),
            None => self.bench.clone(),
        }
    }

    /// Returns `true` if the kept results do not have it.
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// Returns a metric with its previous value.
    pub fn value(&self, metric: Metric) -> Value {
        let before = self.before.as_ref().map(|before| metric.of(before));
        Value { now: metric.of(&self.now), before }
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> Value {
        Value { now: self.now.calls, before: self.before.map(|before| before.calls) }
    }

    /// Returns `true` if any metric changed in this way.
    pub fn has(&self, change: Change, noise: f64) -> bool {
        Metric::ALL.iter().any(|metric| self.value(*metric).change(noise) == change)
    }
}

/// Returns the benchmarks and their scopes by name, with their previous results.
pub fn entries(now: &Benches, before: &Benches) -> Vec<Entry> {
    now.iter().flat_map(|(name, bench)| of_bench(name, bench, before.get(name))).collect()
}

fn of_bench(name: &str, now: &Bench, before: Option<&Bench>) -> Vec<Entry> {
    let entry = |scope, now: &Measurement, before: Option<&Measurement>| Entry {
        bench: name.to_owned(),
        scope,
        now: *now,
        before: before.copied(),
    };
    let mut entries = vec![entry(None, &now.total, before.map(|before| &before.total))];
    for (scope, now) in &now.scopes {
        let before = before.and_then(|before| before.scopes.get(scope));
        entries.push(entry(Some(scope.clone()), now, before));
    }
    entries
}

/// Returns `true` if any metric regressed.
pub fn regressed(entries: &[Entry], noise: f64) -> bool {
    entries.iter().any(|entry| entry.has(Change::Regressed, noise))
}

/// The numbers of benchmarks by the change of a metric, without scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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

    /// Returns a short text.
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

pub fn totals(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| entry.scope.is_none())
}
