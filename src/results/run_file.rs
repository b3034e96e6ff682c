//! The file that a run saves its results in.
//!
//! ```text
//!   results.json            untouched until the first case is measured
//!   results.json.earlier    what was there before, until a run is complete
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use stablebench_replica::files::Place;

use super::Results;
use super::file::not_saved;
use crate::report::number::Grouped;
use crate::saving;

/// Where a run's results are saved.
#[derive(Debug)]
pub struct RunFile {
    /// As it was typed.
    path: PathBuf,
    place: Place,
    /// What is there is of another run.
    replaces: bool,
    /// Cases that this run has saved there, or found there.
    cases: usize,
}

impl RunFile {
    /// Fails early if nothing could be saved there. What is there stays.
    pub fn new(path: &Path) -> Result<Self> {
        let place = saving::check(path).with_context(|| not_saved(path))?;
        let replaces = matches!(&place, Place::File(path) if path.exists());
        Ok(Self { path: path.to_owned(), place, replaces, cases: 0 })
    }

    /// What is saved there, of a run that goes on; nothing where nothing is there.
    pub fn resume(&mut self) -> Result<Option<Results>> {
        if matches!(self.place, Place::Stream(_)) {
            bail!("{} keeps nothing; --resume needs a file", self.path.display());
        }
        if !self.replaces {
            return Ok(None);
        }
        let results = Results::read(&self.path)?;
        self.replaces = false;
        self.cases = results.cases.len();
        Ok(Some(results))
    }

    /// Where it is, as it was typed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Saves what a run has found so far, once there is a case.
    pub fn save(&mut self, results: &Results) -> Result<()> {
        // Into a stream everything can be written once.
        match (&self.place, results.cases.is_empty()) {
            (Place::File(_), false) => self.write(results),
            _ => Ok(()),
        }
    }

    /// Saves what a run has found that is over.
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

    /// The results of before, where they are kept.
    fn earlier(&self) -> Option<PathBuf> {
        match &self.place {
            Place::File(path) => Some(earlier(path)).filter(|path| path.is_file()),
            Place::Stream(_) => None,
        }
    }

    /// Tells what is saved.
    pub fn told(&self) -> String {
        let out = self.path.display();
        let mut text = match self.cases {
            0 if self.replaces => return format!("no case was measured, {out} is as it was"),
            0 => return "no case was measured".to_owned(),
            cases => format!("{} cases saved to {out}", Grouped(cases as u64)),
        };
        if let Some(earlier) = self.earlier() {
            text += &format!("; the results of before are in {}", earlier.display());
        }
        text
    }

    /// Tells what is saved of a run that is not complete, and what goes on with it.
    pub fn left(&self) -> String {
        let told = self.told();
        match &self.place {
            Place::File(_) if self.cases > 0 => format!("{told}; add --resume to go on"),
            _ => told,
        }
    }
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
        assert!(file.left().ends_with("a.json is as it was"), "{}", file.left());
        assert!(!kept.exists());

        file.save(&measured("second")).unwrap();
        file.finish(&measured("second"), false).unwrap();
        assert_eq!((suite(&path), suite(&kept)), ("second".to_owned(), "first".to_owned()));
        assert!(file.told().contains("1 cases saved to"), "{}", file.told());
        assert!(file.left().ends_with("a.json.earlier; add --resume to go on"), "{}", file.left());

        // One more that is interrupted keeps what was complete.
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
        assert_eq!(file.told(), "1 cases saved to /dev/null");
        assert!(RunFile::new(Path::new("/")).is_err());
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
