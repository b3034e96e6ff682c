//! Changes between the kept results and new ones.

use super::{Bench, Benches, Measurement};

/// A metric that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Instructions,
    HeapIncrease,
    StableMemoryIncrease,
}

impl Metric {
    pub const ALL: [Self; 3] = [Self::Instructions, Self::HeapIncrease, Self::StableMemoryIncrease];

    /// The name in canbench's files and texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::HeapIncrease => "heap_increase",
            Self::StableMemoryIncrease => "stable_memory_increase",
        }
    }

    /// Its value.
    pub const fn of(self, measurement: &Measurement) -> u64 {
        match self {
            Self::Instructions => measurement.instructions,
            Self::HeapIncrease => measurement.heap_increase,
            Self::StableMemoryIncrease => measurement.stable_memory_increase,
        }
    }
}

/// A value, and the one before.
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
    /// Or by less than the noise threshold.
    Unchanged,
}

impl Value {
    /// The difference from the value before.
    pub fn delta(self) -> Option<i128> {
        Some(i128::from(self.now) - i128::from(self.before?))
    }

    /// The same in percent; infinite from 0.
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

/// A benchmark or a scope of one, with what it was before.
#[derive(Clone, Debug)]
pub struct Entry {
    pub bench: String,
    pub scope: Option<String>,
    pub now: Measurement,
    pub before: Option<Measurement>,
}

impl Entry {
    /// `BENCH` or `BENCH::SCOPE`.
    pub fn name(&self) -> String {
        match &self.scope {
            Some(scope) => format!("{}::{scope}", self.bench),
            None => self.bench.clone(),
        }
    }

    /// Returns true if the kept results do not have it.
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// A metric, with its value before.
    pub fn value(&self, metric: Metric) -> Value {
        let before = self.before.as_ref().map(|before| metric.of(before));
        Value { now: metric.of(&self.now), before }
    }

    /// The number of calls.
    pub fn calls(&self) -> Value {
        Value { now: self.now.calls, before: self.before.map(|before| before.calls) }
    }

    /// Returns true if any metric changed in this way.
    pub fn has(&self, change: Change, noise: f64) -> bool {
        Metric::ALL.iter().any(|metric| self.value(*metric).change(noise) == change)
    }
}

/// The benchmarks and their scopes, by name, with what they were before.
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

/// Returns true if any metric regressed.
pub fn regressed(entries: &[Entry], noise: f64) -> bool {
    entries.iter().any(|entry| entry.has(Change::Regressed, noise))
}
