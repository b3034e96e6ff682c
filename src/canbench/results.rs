//! Results of benchmarks: those that a project keeps, `canbench_results.yml`, and the changes of later
//! ones from them.
//!
//! ```yaml
//! benches:
//!   NAME:
//!     total: { calls: 1, instructions: …, heap_increase: …, stable_memory_increase: … }
//!     scopes: { NAME: …, }
//! version: 0.7.0
//! # setup: separate
//! # rules: 2026-10
//! ```
//!
//! The format is canbench's. The comments are an addition. The first one is absent if setup and work
//! shared a message, and the other one for the rules of autumn 2025, by which the servers of canbench
//! 0.7 and before count: a file without comments equals theirs to the last byte.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use semver::Version;
use serde::{Deserialize, Serialize};
use stablebench_replica::{Rules, files};

use super::config::parse_yaml;
use crate::saving;

/// The version of canbench whose files are read and written.
pub const VERSION: &str = "0.7.0";

/// The result of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bench {
    /// The whole benchmark.
    pub total: Measurement,
    /// Parts of it, by name.
    #[serde(default)]
    pub scopes: BTreeMap<String, Measurement>,
}

/// A measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The number of calls.
    #[serde(default)]
    pub calls: u64,
    /// Instructions by `performance_counter(0)`.
    #[serde(default)]
    pub instructions: u64,
    /// Wasm pages by which the heap grew.
    #[serde(default)]
    pub heap_increase: u64,
    /// Wasm pages by which stable memory grew.
    #[serde(default)]
    pub stable_memory_increase: u64,
}

/// Benchmarks by name.
pub type Benches = BTreeMap<String, Bench>;

/// The maximum size of a file, in bytes: some 50,000 benchmarks.
const MAX_FILE: u64 = 16 << 20;
const RULES: &str = "# rules: ";
const SETUP: &str = "# setup: separate";

/// The message of what a benchmark does before it measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Setup {
    /// That of the measured part, as in canbench.
    #[default]
    Shared,
    /// A message before it, as far as page charges go.
    Separate,
}

/// The content of a results file.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub benches: Benches,
    /// The name of the rules by which they were counted.
    pub rules: String,
    pub setup: Setup,
}

#[derive(Serialize, Deserialize)]
struct ResultsFile {
    benches: Benches,
    version: String,
}

/// Reads a file, if it exists.
///
/// # Errors
///
/// If it cannot be read, or was written by a newer version of canbench than is supported.
pub fn read(path: &Path) -> Result<Option<Results>> {
    let bytes = match files::read(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| unreadable(path)),
    };
    let text = String::from_utf8(bytes).with_context(|| unreadable(path))?;
    parse(&text).with_context(|| unreadable(path))?.map_err(|newer| {
        anyhow!(
            "canbench is at version {VERSION} while the results were generated with version \
             {newer}. Please upgrade canbench.\n(This is stablebench, which does what canbench \
             {VERSION} does; the results are in {}.)",
            path.display()
        )
    })
}

fn unreadable(path: &Path) -> String {
    format!("cannot read the results in {}", path.display())
}

/// Returns the results, or the version of canbench that wrote them if it is newer.
fn parse(text: &str) -> Result<Result<Option<Results>, Version>> {
    let kept: ResultsFile = parse_yaml(text)?;
    let version: Version = kept
        .version
        .parse()
        .with_context(|| format!("{} is no version, such as {VERSION}", kept.version))?;
    if version > VERSION.parse()? {
        return Ok(Err(version));
    }
    let rules = text.lines().rev().find_map(|line| line.strip_prefix(RULES));
    let rules = rules.map_or(Rules::of_2025_10().name(), str::trim).to_owned();
    let setup = match text.lines().any(|line| line.trim_end() == SETUP) {
        true => Setup::Separate,
        false => Setup::Shared,
    };
    Ok(Ok(Some(Results { benches: kept.benches, rules, setup })))
}

/// Reads a file that must exist.
///
/// # Errors
///
/// Those of [`read`], and if there is none.
pub fn read_existing(path: &Path) -> Result<Results> {
    let Some(results) = read(path)? else {
        bail!("there are no results in {}", path.display());
    };
    Ok(results)
}

/// Writes a file.
///
/// # Errors
///
/// If that fails; the old file stays.
pub fn write(path: &Path, results: &Results) -> Result<()> {
    saving::save(path, render(results)?.as_bytes())
        .with_context(|| format!("cannot write the results to {}", path.display()))
}

fn render(results: &Results) -> Result<String> {
    let Results { benches, rules, setup } = results;
    let kept = ResultsFile { benches: benches.clone(), version: VERSION.to_owned() };
    let mut text = yaml_serde::to_string(&kept)?;
    if *setup == Setup::Separate {
        text += &format!("{SETUP}\n");
    }
    if rules != Rules::of_2025_10().name() {
        text += &format!("{RULES}{rules}\n");
    }
    Ok(text)
}

/// A benchmark that ran.
#[derive(Debug)]
pub struct Measured {
    pub name: String,
    pub bench: Bench,
    pub cost: Cost,
    /// Texts that the canister printed.
    pub printed: Vec<String>,
    /// A flame graph of it, if that was asked for.
    pub flame: Option<String>,
}

/// Costs of a benchmark that canbench does not measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Wasm pages that the message first touches inside the benchmark. `None` under rules that do
    /// not charge for that, and if the result is not the difference of two counter readings.
    pub touched: Option<Pages>,
    /// Pages touched in the message before the benchmark begins. `None` if the result is not the
    /// difference of two counter readings.
    pub before: Option<Before>,
    /// Instructions of the whole message, with what the benchmark does before it measures, in the
    /// same message.
    pub message_instructions: u64,
    /// Cycles that the message costs as an update.
    pub cycles: u64,
}

/// Pages that a message has touched before a benchmark begins. Those that it uses as well cost it
/// nothing, unless setup is separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// Wasm pages, with those [`OF_ANY_MESSAGE`]. `None` under rules that do not charge for them.
    pub touched: Option<Pages>,
    /// Instructions charged for pages of either size.
    pub charged: u64,
}

/// Wasm pages of both memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pages {
    pub heap: u64,
    pub stable: u64,
}

/// Wasm pages of the heap that a message touches before a benchmark without setup begins: those of the
/// stack and of static data.
pub const OF_ANY_MESSAGE: u64 = 2;

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

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
benches:
  insert:
    total:
      calls: 1
      instructions: 1234
      heap_increase: 2
      stable_memory_increase: 0
    scopes:
      '1: first':
        calls: 3
        instructions: 1000
        heap_increase: 0
        stable_memory_increase: 0
  'null':
    total:
      calls: 1
      instructions: 5
      heap_increase: 0
      stable_memory_increase: 0
    scopes: {}
version: 0.7.0
";

    fn results(rules: Rules) -> Results {
        let scope = Measurement { calls: 3, instructions: 1_000, ..Measurement::default() };
        let total = Measurement { calls: 1, instructions: 1_234, heap_increase: 2, ..scope };
        let insert = Bench { total, scopes: [("1: first".to_owned(), scope)].into() };
        let five = Measurement { calls: 1, instructions: 5, ..Measurement::default() };
        let null = Bench { total: five, ..Bench::default() };
        let benches = [("insert".to_owned(), insert), ("null".to_owned(), null)].into();
        Results { benches, rules: rules.name().to_owned(), setup: Setup::Shared }
    }

    fn parsed(text: &str) -> Results {
        parse(text).unwrap().unwrap().unwrap()
    }

    #[test]
    fn files_are_those_of_canbench_and_name_newer_rules() {
        let before = results(Rules::of_2025_10());
        assert_eq!(render(&before).unwrap(), TEXT);
        assert_eq!(parsed(TEXT).benches, before.benches);
        assert_eq!(parsed(TEXT).rules, "2025-10");
        let today = render(&results(Rules::of_2026_08())).unwrap();
        assert_eq!(today, format!("{TEXT}# rules: 2026-08\n"));
        assert_eq!(parsed(&today).rules, "2026-08");
        assert_eq!(parsed(&today).benches, before.benches);
        assert_eq!(parsed(&today).setup, Setup::Shared);
    }

    #[test]
    fn files_tell_whether_setup_is_separate() {
        for (rules, comments) in [
            (Rules::of_2025_10(), "# setup: separate\n"),
            (Rules::of_2026_08(), "# setup: separate\n# rules: 2026-08\n"),
        ] {
            let text = render(&Results { setup: Setup::Separate, ..results(rules) }).unwrap();
            assert_eq!(text, format!("{TEXT}{comments}"));
            let Results { rules: read, setup, .. } = parsed(&text);
            assert_eq!((read.as_str(), setup), (rules.name(), Setup::Separate));
        }
    }

    #[test]
    fn fields_that_older_versions_lack_are_0() {
        let text = "benches: {a: {total: {instructions: 7, heap_delta: 1}}}\nversion: 0.1.0";
        let seven = Measurement { instructions: 7, ..Measurement::default() };
        assert_eq!(parsed(text).benches["a"], Bench { total: seven, ..Bench::default() });
    }

    #[test]
    fn newer_versions_are_refused() {
        let of = |version: &str| parse(&format!("benches: {{}}\nversion: {version}"));
        for version in ["0.7.1", "0.10.0", "99.0.0"] {
            assert_eq!(of(version).unwrap().unwrap_err().to_string(), version);
        }
        assert!(of("0.6.9").unwrap().is_ok() && of("newest").is_err());
        let error = format!("{:#}", parse("benches:\n  a: 1\nversion: 0.7.0").unwrap_err());
        assert!(error.contains("line 2"), "{error}");
    }
}
