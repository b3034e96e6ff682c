//! The file in which a run saves its results.
//!
//! ```text
//!   results.json            untouched until the first case is measured
//!   results.json.earlier    the previous results, until a run is complete
//! ```

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use stablebench_replica::StateLock;
use stablebench_replica::files::{self, Place};

use super::Results;
use super::file::not_saved;
use crate::report::number::Grouped;
use crate::saving;

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

    use super::super::sample;
    use super::*;

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
