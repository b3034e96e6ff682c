//! The file of results: reading, validating and saving it. It is saved completely or not at all.
//!
//! There is a line for each key, and for each entry of a list, so that `git diff` shows the changed
//! cases:
//!
//! ```text
//! {
//!   "format": 7,
//!   "replica": {"kind": "embedded", …},
//!   "cases": [
//!     {"section": "insert", "name": "middle 1", …},
//!     {"section": "insert", "name": "middle 10", …}
//!   ]
//! }
//! ```
//!
//! A run keeps the file that it replaces:
//!
//! ```text
//!   results.json            untouched until the first case is measured
//!   results.json.earlier    the previous results, until a run is complete
//! ```

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use stablebench_replica::StateLock;
use stablebench_replica::files::{self, Place};

use super::{FORMAT, Outcome, Results};
use crate::report::number::Grouped;
use crate::saving;
use crate::terminal::safe_json;

/// The maximum size of a file in bytes: a hundred times that of a whole suite.
const MOST: u64 = 256 << 20;

impl Results {
    /// Reads a saved file. It may be a pipe, if that ends.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read_stream(path, MOST)
            .with_context(|| format!("cannot read results from {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} does not contain results", path.display()))
    }

    /// Parses the text of a file, and refuses results that no run can have saved.
    pub fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }
        let results = match json::<Header>(text)?.format {
            FORMAT => strict::<Self>(text)?,
            older @ 0..FORMAT => {
                bail!("no release has written format {older}; measure again to get format {FORMAT}")
            }
            newer => bail!(
                "format {newer} is newer than format {FORMAT} of this stablebench; use a newer version"
            ),
        };
        validate(&results)?;
        Ok(results)
    }

    /// Saves the results completely or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        save_text(path, &self.to_json()?)
    }

    /// Returns the text of the file.
    pub fn to_json(&self) -> Result<String> {
        Ok(lines(self)?)
    }
}

/// Checks that a text can be saved at a path. Changes nothing.
pub fn check_writable(path: &Path) -> Result<()> {
    saving::check(path).with_context(|| not_saved(path)).map(drop)
}

/// Saves a text completely or not at all.
pub fn save_text(path: &Path, text: &str) -> Result<()> {
    saving::save(path, text.as_bytes()).with_context(|| not_saved(path))
}

/// Parses JSON, and refuses unknown keys: types of the canisters' interface ignore them, as in
/// Candid.
fn strict<T: DeserializeOwned + Serialize>(text: &str) -> Result<T> {
    let read = json::<T>(text)?;
    match unknown(&json::<Value>(text)?, &serde_json::to_value(&read)?) {
        None => Ok(read),
        Some(key) => bail!("results have no key {key}"),
    }
}

/// Returns the path of the first key of the text that is not in the parsed value.
fn unknown(text: &Value, read: &Value) -> Option<String> {
    match (text, read) {
        (Value::Object(text), Value::Object(read)) => text.iter().find_map(|(key, inner)| {
            let Some(read) = read.get(key) else {
                return Some(key.clone());
            };
            unknown(inner, read).map(|inner| format!("{key}.{inner}"))
        }),
        (Value::Array(text), Value::Array(read)) => text
            .iter()
            .zip(read)
            .enumerate()
            .find_map(|(index, (text, read))| Some(format!("{index}.{}", unknown(text, read)?))),
        _ => None,
    }
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let cut = error.is_eof();
        let error = anyhow::Error::new(error);
        if cut {
            error.context("the file was cut off; copy it again or repeat the run")
        } else {
            error
        }
    })
}

fn not_saved(path: &Path) -> String {
    format!("cannot save the results to {}; choose another place with --out", path.display())
}

/// Returns the text of an object, in which characters that control a terminal are escaped.
///
/// # Errors
///
/// If the value cannot be written as JSON.
fn lines(value: &impl Serialize) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Lines::default()))?;
    bytes.push(b'\n');
    // The JSON serializer writes UTF-8 only.
    Ok(safe_json(&String::from_utf8_lossy(&bytes)).into_owned())
}

/// Breaks lines in the outermost object and in lists directly below it.
#[derive(Default)]
struct Lines {
    /// For each open list or object, `true` if its entries are on separate lines.
    open: Vec<bool>,
    /// `true` if the list or object that was opened last has entries.
    filled: bool,
}

impl Lines {
    fn begin(
        &mut self,
        breaks: bool,
        bracket: u8,
        writer: &mut (impl Write + ?Sized),
    ) -> io::Result<()> {
        self.open.push(breaks);
        self.filled = false;
        writer.write_all(&[bracket])
    }

    fn end(&mut self, bracket: u8, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let breaks = self.open.pop().unwrap_or_default();
        if breaks && self.filled {
            self.break_line(writer)?;
        }
        self.filled = true;
        writer.write_all(&[bracket])
    }

    fn entry(&mut self, first: bool, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let breaks = self.open.last().copied().unwrap_or_default();
        match (first, breaks) {
            (true, _) => {}
            (false, true) => writer.write_all(b",")?,
            (false, false) => writer.write_all(b", ")?,
        }
        if breaks { self.break_line(writer) } else { Ok(()) }
    }

    fn break_line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writer.write_all(b"\n")?;
        self.open.iter().try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(self.open.len() == 1, b'[', writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(b']', writer)
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.entry(first, writer)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(self.open.is_empty(), b'{', writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(b'}', writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.entry(first, writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

/// The maximum of a number. Runs have much smaller numbers, and sums of many fit into 64 bits.
const LARGEST: u64 = 1_000_000_000_000_000;
/// The keys of numbers without a maximum: digests, seeds and ids.
const ANY: [&str; 4] = ["low", "high", "seed", "id"];

/// Refuses results that no run can have saved.
fn validate(results: &Results) -> Result<()> {
    let mut configurations = BTreeSet::new();
    for configuration in &results.configurations {
        let key = configuration.key.as_str();
        ensure!(configurations.insert(key), "the configuration {key} is listed twice");
    }
    let mut fixtures = BTreeSet::new();
    for fixture in &results.fixtures {
        let key = (&fixture.configuration, &fixture.name, fixture.rows, fixture.payload);
        let title =
            || format!("the fixture {}, {} rows", fixture.configuration, Grouped(fixture.rows));
        let known = configurations.contains(fixture.configuration.as_str());
        ensure!(known, "{} has no configuration", title());
        ensure!(fixtures.insert(key), "{} is listed twice", title());
    }
    let mut cases = BTreeSet::new();
    for case in &results.cases {
        let title = case.title();
        let known = configurations.contains(case.configuration.as_str());
        ensure!(known, "the case {title} has no configuration");
        let first = cases.insert((&case.section, &case.name, &case.configuration));
        ensure!(first, "the case {title} is listed twice");
        if let Outcome::Measured(measured) = &case.outcome {
            ensure!(measured.operations > 0, "the case {title} has no operations");
        }
    }
    let mut harness = BTreeSet::new();
    for case in &results.harness {
        let first = harness.insert((&case.section, &case.name, &case.configuration));
        ensure!(first, "the case {} is listed twice", case.title());
    }
    let prices = results.prices;
    ensure!(prices.nodes > 0, "there is no subnet of 0 nodes");
    ensure!(prices.usd_per_trillion_cycles >= 0.0, "the price of cycles is negative");
    numbers("", &serde_json::to_value(results)?)
}

/// Refuses numbers whose sums may not fit into 64 bits.
fn numbers(key: &str, value: &Value) -> Result<()> {
    match value {
        Value::Object(inner) => inner.iter().try_for_each(|(key, value)| numbers(key, value)),
        Value::Array(inner) => inner.iter().try_for_each(|value| numbers(key, value)),
        Value::Number(number) if !ANY.contains(&key) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            match size {
                Some(size) if size > LARGEST => {
                    bail!("{key} is {number}, but the maximum is {}", Grouped(LARGEST))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Endings of reports.
const REPORTS: [&str; 6] = ["html", "htm", "md", "txt", "csv", "pdf"];

/// The file of a run's results.
#[derive(Debug)]
pub struct RunFile {
    /// The path from the command line.
    path: PathBuf,
    place: Place,
    /// `true` if the file contains the results of another run.
    replaces: bool,
    /// The number of cases in the file, saved by this run or by the resumed one.
    cases: usize,
    /// Keeps other runs from saving to the same file.
    _lock: Option<StateLock>,
}

impl RunFile {
    /// Checks that results can be saved at a path, and locks it for this process. Changes nothing.
    ///
    /// # Errors
    ///
    /// If the file exists and contains no results, or another run is saving to it.
    pub fn new(path: &Path) -> Result<Self> {
        check_ending(path)?;
        let place = saving::check(path).with_context(|| not_saved(path))?;
        let lock = match &place {
            Place::File(_) => Some(saving::lock(path, "--out")?),
            Place::Stream(_) => None,
        };
        let replaces = match &place {
            Place::File(path) if path.exists() => {
                check_results(path)?;
                true
            }
            _ => false,
        };
        Ok(Self { path: path.to_owned(), place, replaces, cases: 0, _lock: lock })
    }

    /// Returns the saved results of the run to resume; `None` if there is no file.
    pub fn resume(&mut self) -> Result<Option<Results>> {
        if matches!(self.place, Place::Stream(_)) {
            bail!("{} is not a regular file; --resume needs one", self.path.display());
        }
        if !self.replaces {
            return Ok(None);
        }
        let results = Results::read(&self.path)?;
        self.replaces = false;
        self.cases = results.cases.len();
        Ok(Some(results))
    }

    /// Returns the path from the command line.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Saves the results so far, if there is a case.
    pub fn save(&mut self, results: &Results) -> Result<()> {
        // A stream can be written only once.
        match (&self.place, results.cases.is_empty()) {
            (Place::File(_), false) => self.write(results),
            _ => Ok(()),
        }
    }

    /// Saves the results of a run that has ended.
    pub fn finish(&mut self, results: &Results, complete: bool) -> Result<()> {
        if !complete && results.cases.is_empty() {
            return Ok(());
        }
        self.write(results)?;
        match self.earlier() {
            Some(earlier) if complete => std::fs::remove_file(&earlier)
                .with_context(|| format!("cannot remove {}", earlier.display())),
            _ => Ok(()),
        }
    }

    fn write(&mut self, results: &Results) -> Result<()> {
        if let (true, Place::File(path)) = (self.replaces, &self.place) {
            let earlier = earlier(path);
            saving::keep_as(path, &earlier).with_context(|| {
                format!(
                    "cannot keep the earlier results as {}; choose another place with --out",
                    earlier.display()
                )
            })?;
            self.replaces = false;
        }
        results.save(&self.path)?;
        self.cases = results.cases.len();
        Ok(())
    }

    /// Returns the path of the previous results, if they are kept.
    fn earlier(&self) -> Option<PathBuf> {
        match &self.place {
            Place::File(path) => Some(earlier(path)).filter(|path| path.is_file()),
            Place::Stream(_) => None,
        }
    }

    /// Returns a text about the saved cases.
    pub fn summary(&self) -> String {
        let out = self.path.display();
        let mut text = match self.cases {
            0 if self.replaces => {
                return format!("no case was measured, and nothing was saved; {out} is unchanged");
            }
            0 => return "no case was measured, and nothing was saved".to_owned(),
            cases => format!("{} cases saved to {out}", Grouped(cases as u64)),
        };
        if let Some(earlier) = self.earlier() {
            text += &format!("; the previous results are in {}", earlier.display());
        }
        text
    }

    /// Returns the same text for an incomplete run, with the option that continues it.
    pub fn summary_of_incomplete(&self) -> String {
        let summary = self.summary();
        match &self.place {
            Place::File(_) if self.cases > 0 => format!("{summary}; add --resume to continue"),
            _ => summary,
        }
    }
}

/// Refuses standard output, and the ending of a report, which results in JSON would not be.
fn check_ending(path: &Path) -> Result<()> {
    ensure!(
        path != Path::new("-"),
        "--out is a file, to which results are saved after each case; for results on standard output, add \
         --format json"
    );
    let Some(ending) = path.extension() else { return Ok(()) };
    ensure!(
        REPORTS.iter().all(|report| !ending.eq_ignore_ascii_case(report)),
        "results are saved as JSON, not as .{ending}: choose --out {json}, and then make a report: \
         stablebench report {json} -o {path}",
        ending = ending.display(),
        json = path.with_extension("json").display(),
        path = path.display()
    );
    Ok(())
}

/// Refuses to replace a file that cannot be results, such as an input.
fn check_results(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    let file = files::open(path).with_context(|| not_saved(path))?;
    file.take(64).read_to_end(&mut start).with_context(|| not_saved(path))?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    ensure!(
        first.is_none_or(|first| *first == b'{'),
        "{} exists, and is not in JSON as results are; choose another place with --out",
        path.display()
    );
    Ok(())
}

fn earlier(path: &Path) -> PathBuf {
    saving::with_more(path, ".earlier")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::results::sample;

    #[test]
    fn each_case_has_a_line() {
        let value = json!({
            "cases": [{"a": 1, "b": [1, 2, {}]}, {"c": {"d": [], "e": "x\n"}}],
            "empty": [],
            "format": 7,
            "replica": {"kind": "embedded", "list": [[1], [2]]},
        });
        let text = lines(&value).unwrap();
        assert_eq!(
            text,
            r#"{
  "cases": [
    {"a": 1, "b": [1, 2, {}]},
    {"c": {"d": [], "e": "x\n"}}
  ],
  "empty": [],
  "format": 7,
  "replica": {"kind": "embedded", "list": [[1], [2]]}
}
"#
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(lines(&json!({})).unwrap(), "{}\n");
    }

    fn refusal(change: impl FnOnce(&mut Results)) -> String {
        let mut results = sample::full();
        validate(&results).unwrap();
        change(&mut results);
        let text = results.to_json().unwrap();
        Results::parse(&text).unwrap_err().to_string()
    }

    #[test]
    fn results_that_no_run_saves_are_refused() {
        for (expected, refusal) in [
            ("twice", refusal(|of| of.cases.push(of.cases[0].clone()))),
            ("twice", refusal(|of| of.configurations.push(of.configurations[0].clone()))),
            ("twice", refusal(|of| of.fixtures.push(of.fixtures[0].clone()))),
            ("has no configuration", refusal(|of| of.cases[0].configuration = "btree".to_owned())),
            ("has no configuration", refusal(|of| of.configurations.clear())),
            ("0 nodes", refusal(|of| of.prices.nodes = 0)),
            ("is negative", refusal(|of| of.prices.usd_per_trillion_cycles = -1.0)),
            ("the maximum is", refusal(|of| of.fixtures[0].rows = u64::MAX)),
            (
                "has no operations",
                refusal(|of| {
                    if let Outcome::Measured(measured) = &mut of.cases[0].outcome {
                        measured.operations = 0;
                    }
                }),
            ),
        ] {
            assert!(refusal.contains(expected), "{expected}: {refusal}");
        }
    }

    fn measured(suite: &str) -> Results {
        Results { suite: suite.to_owned(), ..sample::full() }
    }

    #[test]
    fn earlier_results_stay_until_a_run_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let [path, kept] = ["a.json", "a.json.earlier"].map(|name| folder.path().join(name));
        let suite = |path: &Path| Results::read(path).unwrap().suite;
        measured("first").save(&path).unwrap();

        let mut file = RunFile::new(&path).unwrap();
        let nothing = Results { cases: Vec::new(), ..measured("second") };
        file.save(&nothing).unwrap();
        file.finish(&nothing, false).unwrap();
        assert_eq!(suite(&path), "first", "nothing was measured");
        let summary = file.summary_of_incomplete();
        assert!(summary.ends_with("a.json is unchanged"), "{summary}");
        assert!(!kept.exists());

        file.save(&measured("second")).unwrap();
        file.finish(&measured("second"), false).unwrap();
        assert_eq!((suite(&path), suite(&kept)), ("second".to_owned(), "first".to_owned()));
        assert!(file.summary().contains("1 cases saved to"), "{}", file.summary());
        let summary = file.summary_of_incomplete();
        assert!(summary.ends_with("a.json.earlier; add --resume to continue"), "{summary}");

        // Two runs do not save to one file.
        let error = RunFile::new(&path).unwrap_err().to_string();
        let process = std::process::id();
        assert!(
            error.contains(&format!("cannot be saved: process {process} saves to it; ")),
            "{error}"
        );
        assert!(error.ends_with("; end that one, or choose another --out"), "{error}");
        drop(file);

        // A second interrupted run keeps the complete results.
        RunFile::new(&path).unwrap().finish(&measured("third"), false).unwrap();
        assert_eq!((suite(&path), suite(&kept)), ("third".to_owned(), "first".to_owned()));

        let mut file = RunFile::new(&path).unwrap();
        assert_eq!(file.resume().unwrap().unwrap().suite, "third");
        file.finish(&measured("third"), true).unwrap();
        assert_eq!(suite(&path), "third");
        assert!(!kept.exists());
    }

    #[test]
    fn a_stream_is_written_once_and_never_read() {
        let mut file = RunFile::new(Path::new("/dev/null")).unwrap();
        assert!(file.resume().is_err());
        file.save(&measured("users")).unwrap();
        file.finish(&measured("users"), true).unwrap();
        assert_eq!(file.summary(), "1 cases saved to /dev/null");
        assert!(RunFile::new(Path::new("/")).is_err());
        let error = RunFile::new(Path::new("-")).unwrap_err().to_string();
        assert!(error.ends_with("for results on standard output, add --format json"), "{error}");
        let error = RunFile::new(Path::new("page.html")).unwrap_err().to_string();
        assert!(error.contains("stablebench report page.json -o page.html"), "{error}");
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
