//! The cache of earlier runs: compiled modules and populated canisters.
//!
//! ```text
//!   Cache ── loads and saves for one run, and reports failures
//!     └─ folder.rs   the files, what a populated canister depends on, and dropping them
//! ```
//!
//! The replica saves modules in the same folder. An entry that cannot be used is replaced, and one
//! that cannot be saved is skipped: results are the same without a cache.

mod folder;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use stablebench_protocol::Digest;

use crate::progress::Progress;
use crate::replica::{Canister, Replica};
use crate::results::Held;
use crate::terminal::json;

pub use folder::{DURATIONS, Entry, Folder, Kind, Prepared, Setup, Versions};

/// Populated canisters of earlier runs, and of this one.
pub struct Cache {
    folder: Folder,
    limit: u64,
    versions: Versions,
    progress: Progress,
    session: Mutex<Session>,
}

#[derive(Default)]
struct Session {
    /// The files that this run has used and must not drop.
    used: BTreeSet<String>,
    /// `true` once saving has failed, which was reported.
    stopped: bool,
}

/// The note in the file of a populated canister.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub setup: Setup,
    pub held: Held,
}

/// Digests of forks by their differences from the canister, in hexadecimal digits.
pub type Digests = BTreeMap<String, Digest>;

/// The file with the digests of a populated canister's forks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptDigests {
    setup: Setup,
    digests: Digests,
}

impl Cache {
    /// Opens a cache of at most `limit` bytes, and drops old entries.
    pub fn new(folder: Folder, limit: u64, versions: Versions, progress: &Progress) -> Self {
        let cache =
            Self { folder, limit, versions, progress: progress.clone(), session: Mutex::default() };
        cache.shrink();
        cache
    }

    /// The folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Drops old entries beyond the limit, but none that this run has used.
    pub fn shrink(&self) {
        // Entries that cannot be dropped now will be dropped later.
        let _ = self.folder.shrink(self.limit, &self.versions, &self.session().used);
    }

    /// Loads the canister that an earlier run has populated with this setup, and its content.
    /// `plausible` checks the content.
    pub fn take(
        &self,
        replica: &dyn Replica,
        wasm: &[u8],
        setup: &Setup,
        plausible: impl FnOnce(&Held) -> bool,
    ) -> Option<(Box<dyn Canister>, Held)> {
        let (name, path) = self.place(setup);
        let loaded = || -> Result<_> {
            let Some((canister, note)) = replica.load(wasm, &path)? else {
                return Ok(None);
            };
            let note: Note = serde_json::from_str(&note).context("its note cannot be read")?;
            if note.setup != *setup {
                bail!("it has another setup");
            }
            if !plausible(&note.held) {
                bail!("it has other content");
            }
            // If it cannot be marked, it is dropped earlier.
            let _ = self.folder.touch(&name);
            Ok(Some((canister, note.held)))
        };
        match loaded() {
            Ok(found) => found,
            Err(error) => {
                let path = path.display();
                self.progress.note(&format!("{path} is not used and is replaced: {error:#}"));
                // If it cannot be removed, it will be replaced.
                let _ = self.folder.remove(&name);
                None
            }
        }
    }

    /// Saves a populated canister. A failure is reported once.
    pub fn keep(&self, canister: &dyn Canister, setup: Setup, held: &Held) {
        if self.session().stopped {
            return;
        }
        if let Err(error) = self.try_keep(canister, setup, held) {
            let mut session = self.session();
            if !session.stopped {
                let folder = self.folder.path().display();
                self.progress.note(&format!(
                    "populated canisters are no longer saved in {folder}: {error:#}"
                ));
            }
            session.stopped = true;
        }
    }

    fn try_keep(&self, canister: &dyn Canister, setup: Setup, held: &Held) -> Result<()> {
        let (name, path) = self.place(&setup);
        // The wall time belongs to this run only.
        let held = Held { wall_milliseconds: None, ..held.clone() };
        let note = json(&Note { setup, held })?;
        if !canister.save(&path, &note)? {
            return Ok(());
        }
        let size = self.folder.shrink(self.limit, &self.versions, &self.session().used)?;
        if size > self.limit {
            self.folder.remove(&name)?;
            bail!(
                "this run uses more than the limit of {} GiB; raise it with --cache-limit",
                self.limit as f64 / (1_u64 << 30) as f64
            );
        }
        Ok(())
    }

    /// Returns the digests that earlier runs have read from forks of the canister with this setup.
    pub fn digests(&self, setup: &Setup) -> Digests {
        let name = self.digests_name(setup);
        let read = || -> Result<Option<Digests>> {
            let Some(text) = self.folder.read(&name)? else {
                return Ok(None);
            };
            let kept: KeptDigests = serde_json::from_slice(&text).context("it cannot be read")?;
            if kept.setup != *setup {
                bail!("it has another setup");
            }
            Ok(Some(kept.digests))
        };
        read()
            .unwrap_or_else(|error| {
                let path = self.folder.path().join(&name);
                self.progress
                    .note(&format!("{} is not used and is replaced: {error:#}", path.display()));
                None
            })
            .unwrap_or_default()
    }

    /// Saves digests next to the canister. If that fails, they are read again.
    pub fn keep_digests(&self, setup: &Setup, digests: &Digests) {
        if self.session().stopped || digests.is_empty() {
            return;
        }
        let kept = KeptDigests { setup: setup.clone(), digests: digests.clone() };
        // Serializing this type does not fail.
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        let name = self.digests_name(setup);
        if let Err(error) = self.folder.write(&name, &text) {
            let path = self.folder.path().join(&name);
            self.progress.note(&format!("{} cannot be saved: {error}", path.display()));
        }
    }

    fn digests_name(&self, setup: &Setup) -> String {
        folder::digests(&setup.key(), &self.versions.state)
    }

    /// Returns the file of a canister with this setup, and marks it as used.
    fn place(&self, setup: &Setup) -> (String, PathBuf) {
        let name = folder::state(&setup.key(), &self.versions.state);
        let mut session = self.session();
        session.used.insert(folder::module(&setup.canister, &self.versions.module));
        session.used.insert(name.clone());
        drop(session);
        let path = self.folder.path().join(&name);
        (name, path)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use stablebench_suite::plan::{Effect, Fixture};
    use stablebench_suite::plan_of;
    use tempfile::TempDir;

    use super::folder::Cleared;
    use super::*;
    use crate::replica::Identity;

    fn identity() -> Identity {
        Identity {
            kind: "a".to_owned(),
            version: "1".to_owned(),
            subnet: "b".to_owned(),
            rules: "d".to_owned(),
        }
    }

    /// The fixtures of `SUITE OPTION…`.
    fn fixtures(typed: &str) -> Vec<Fixture> {
        let (suite, options) = typed.split_once(' ').unwrap_or((typed, ""));
        plan_of(crate::suites::suite(suite).unwrap(), options).unwrap().fixtures
    }

    fn users(configuration: &str, rows: u64, payload: u32) -> Prepared {
        let typed = format!("users --engines={configuration} --rows={rows} --payload={payload}");
        Prepared::new(&fixtures(&format!("{typed} --batches=1"))[0], 1).unwrap()
    }

    fn setup(prepared: Prepared) -> Setup {
        Setup::new(identity(), "hash".to_owned(), prepared)
    }

    #[test]
    fn the_key_depends_on_each_part_of_a_setup() {
        let delete = "sqlite/delete";
        let mut setups = vec![
            setup(users(delete, 10, 100)),
            setup(users(delete, 11, 100)),
            setup(users(delete, 10, 101)),
            setup(users("sqlite/delete,page_size=512", 10, 100)),
            setup(users("sqlite/wal", 10, 100)),
            setup(users("btree", 10, 100)),
            setup(users("array", 10, 100)),
            Setup::new(identity(), "other".to_owned(), users(delete, 10, 100)),
        ];
        for other in [
            Identity { kind: "c".to_owned(), ..identity() },
            Identity { version: "2".to_owned(), ..identity() },
            Identity { subnet: "c".to_owned(), ..identity() },
            Identity { rules: "e".to_owned(), ..identity() },
        ] {
            setups.push(Setup::new(other, "hash".to_owned(), users(delete, 10, 100)));
        }
        for (rows, seed) in [(10, 1), (10, 2), (11, 1)] {
            let typed = format!("sysbench --rows={rows} --keys=integer,text --places=memory");
            for fixture in fixtures(&typed) {
                setups.push(setup(Prepared::new(&fixture, seed).unwrap()));
            }
        }
        let keys: BTreeSet<String> = setups.iter().map(Setup::key).collect();
        assert_eq!(keys.len(), setups.len());
        assert!(keys.iter().all(|key| key.len() == 64));
        assert_eq!(setups[0].key(), setup(users(delete, 10, 100)).key());
        let text = json(&setups[0]).unwrap();
        assert_eq!(serde_json::from_str::<Setup>(&text).unwrap(), setups[0]);
    }

    #[test]
    fn measured_steps_are_not_taken_from_a_cache() {
        for fixture in fixtures("db-bench") {
            assert_eq!(Prepared::new(&fixture, 1), None, "its populating is a case");
        }
        for mut fixture in fixtures("sysbench") {
            assert!(Prepared::new(&fixture, 1).is_some());
            fixture.steps[0].effect = Effect::Dropped;
            assert_eq!(Prepared::new(&fixture, 1), None);
            fixture.populated = 0;
            assert_eq!(Prepared::new(&fixture, 1), None, "nothing to keep");
        }
    }

    #[test]
    fn names_of_other_files_are_not_parsed() {
        let (hash, version) = ("0a".repeat(32), "12".repeat(8));
        for (name, kind) in [
            (folder::module(&hash, &version), Kind::Module),
            (folder::state(&hash, &version), Kind::State),
            (folder::digests(&hash, &version), Kind::Digests),
        ] {
            assert_eq!(folder::parse(&name), Some((kind, version.as_str())), "{name}");
        }
        assert_eq!(folder::parse(".stablebench-Ab12"), Some((Kind::Temporary, "")));
        for name in [
            "",
            "results.json",
            ".stablebench-",
            ".stablebench-a.b",
            ".stablebench-../x",
            ".module",
            "-.module",
            &format!("{hash}.module"),
            &format!("{hash}-{version}"),
            &format!("{hash}-{version}.module2"),
            &format!("{}-{version}.state", hash.to_uppercase()),
            &format!("{}-{version}.state", &hash[1..]),
            &format!("{hash}-{}.state", &version[1..]),
            &format!("x{hash}-{version}.state"),
        ] {
            assert_eq!(folder::parse(name), None, "{name}");
        }
    }

    /// A folder with entries of 8 KiB, named by digit, the first used longest ago.
    struct Filled {
        directory: TempDir,
        versions: Versions,
    }

    impl Filled {
        fn new() -> Self {
            let versions = Versions::new("1".repeat(16), Vec::new());
            Self { directory: tempfile::tempdir().unwrap(), versions }
        }

        fn folder(&self) -> Folder {
            Folder::new(self.directory.path().to_owned())
        }

        fn file(&self, name: &str, minutes_ago: u64) {
            let path = self.directory.path().join(name);
            std::fs::write(&path, [1; 8_192]).unwrap();
            aged(&path, minutes_ago);
        }

        fn state(&self, digit: &str) -> String {
            folder::state(&digit.repeat(64), &self.versions.state)
        }

        fn names(&self) -> BTreeSet<String> {
            let listed = std::fs::read_dir(self.directory.path()).unwrap();
            listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    fn aged(path: &Path, minutes: u64) {
        let time = SystemTime::now() - Duration::from_secs(60 * minutes);
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn the_least_recently_used_entries_are_dropped_beyond_the_limit() {
        let filled = Filled::new();
        for (digit, minutes) in [("a", 50), ("b", 40), ("c", 30)] {
            filled.file(&filled.state(digit), minutes);
        }
        // Digests of the oldest were added a moment ago.
        filled.file(&folder::digests_of(&filled.state("a")), 0);
        filled.file(&folder::module(&"d".repeat(64), &filled.versions.module), 20);
        let older = folder::module(&"e".repeat(64), &"9".repeat(16));
        filled.file(&older, 0);
        filled.file("not ours", 1_000);
        let shrink = |limit: u64, used: &[String]| {
            let used = used.iter().cloned().collect();
            filled.folder().shrink(limit, &filled.versions, &used).unwrap()
        };
        assert_eq!(shrink(1 << 20, &[]), 6 * 8_192, "all fits");
        assert_eq!(shrink(5 * 8_192, &[]), 5 * 8_192);
        assert!(!filled.names().contains(&older), "another version's goes first");
        assert_eq!(shrink(4 * 8_192, &[]), 4 * 8_192);
        assert!(!filled.names().contains(&filled.state("b")));
        assert_eq!(shrink(1, &[filled.state("a"), filled.state("c")]), 3 * 8_192, "in use");
        assert_eq!(shrink(0, &[]), 0);
        assert_eq!(filled.names(), BTreeSet::from(["not ours".to_owned()]));
    }

    #[test]
    fn old_files_of_killed_runs_are_dropped() {
        let filled = Filled::new();
        filled.file(".stablebench-old", 25 * 60);
        filled.file(".stablebench-new", 23 * 60);
        filled.file(&folder::digests_of(&filled.state("a")), 0);
        filled.folder().shrink(1 << 20, &filled.versions, &BTreeSet::new()).unwrap();
        assert_eq!(filled.names(), BTreeSet::from([".stablebench-new".to_owned()]));
    }

    #[test]
    fn clearing_leaves_other_files() {
        let filled = Filled::new();
        filled.file(&filled.state("a"), 0);
        filled.file(&folder::digests_of(&filled.state("a")), 0);
        filled.file(&folder::digests_of(&filled.state("b")), 0);
        filled.file(&folder::digests(&"c".repeat(64), &filled.versions.state), 0);
        filled.file(&folder::module(&"d".repeat(64), &"9".repeat(16)), 0);
        filled.file(".stablebench-new", 0);
        filled.file(DURATIONS, 0);
        filled.file("notes.txt", 0);
        let path = |name: &str| filled.directory.path().join(name);
        // A link and a folder with names of entries.
        std::os::unix::fs::symlink(path("notes.txt"), path(&filled.state("c"))).unwrap();
        std::fs::create_dir(path(&filled.state("d"))).unwrap();
        let Cleared { modules, states, bytes, others } = filled.folder().clear().unwrap();
        assert_eq!((modules, states, bytes, others), (1, 1, 3 * 8_192, 3));
        let left = ["notes.txt".to_owned(), filled.state("c"), filled.state("d")];
        assert_eq!(filled.names(), BTreeSet::from(left));
        assert_eq!(std::fs::read(path("notes.txt")).unwrap(), [1; 8_192]);
    }

    #[test]
    fn a_missing_folder_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::new(directory.path().join("a/b"));
        assert_eq!(folder.files().unwrap().entries.len(), 0);
        assert_eq!(folder.clear().unwrap().bytes, 0);
        assert!(!directory.path().join("a").exists());
        folder.prepare().unwrap();
        assert_eq!(folder.files().unwrap().others, 0);
    }
}
