//! The folder of a cache: its files, everything that a populated canister depends on, and dropping them.
//!
//! ```text
//!   HASH-VERSION.module   a form of a compiled module: SHA-256 of module and form, of everything else
//!   HASH-VERSION.state    a populated canister: SHA-256 of its setup, of the tool
//!   HASH-VERSION.digests  digests that were read from forks of it
//!   durations.json        durations of steps in earlier runs
//!   .stablebench-RANDOM   a file that is being written
//! ```
//!
//! HASH has 64 hexadecimal digits, VERSION 16. Files with other names are not the cache's.
//!
//! A program that writes an entry writes a temporary file and moves it into place. A program that
//! has loaded an entry keeps it even if its name is removed. So several programs can use a folder at
//! once, and a missing file is never an error.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stablebench_replica::cache::{MODULE, TEMPORARY};
use stablebench_replica::{Replica, Rules, files};
use stablebench_suite::plan::{Effect, Fixture};
use tempfile::NamedTempFile;

use crate::replica::Identity;
use crate::report::number::Grouped;
use crate::results::ConfigurationInfo;

/// The age of a temporary file from which it is considered abandoned.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The maximum size of a file that is read as a whole, in bytes: digests of forks.
const MAX_FILE: u64 = 256 << 20;

/// A folder that may not exist yet.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// A module or a populated canister.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub kind: Kind,
    pub version: String,
    /// The size on disk, without holes.
    pub bytes: u64,
    /// The time of the last use.
    pub used: SystemTime,
}

/// The files in a folder.
#[derive(Debug, Default)]
pub struct Files {
    pub entries: Vec<Entry>,
    /// Temporary files.
    temporaries: Vec<(String, SystemTime)>,
    /// Digests of missing entries.
    orphans: Vec<String>,
    /// The number of files that are not the cache's.
    pub others: usize,
}

/// The effect of clearing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cleared {
    pub modules: usize,
    pub states: usize,
    pub bytes: u64,
    /// The number of files that are not the cache's and were left.
    pub others: usize,
}

impl Folder {
    /// Returns the folder at a path.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder if it is missing, and checks that it is writable. A folder that does not
    /// belong to the user is refused, because its modules are executed.
    pub fn prepare(&self) -> io::Result<()> {
        // Other users may not see earlier runs.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        files::check_own(&fs::metadata(&self.0)?)?;
        self.temporary().map(drop)
    }

    /// Reads a file, if it exists.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match files::open_own(&self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => files::read_at_most(file?, MAX_FILE).map(Some),
        }
    }

    /// Writes a file, as a whole or not at all.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = self.temporary()?;
        file.write_all(content)?;
        file.persist(self.0.join(name))?;
        Ok(())
    }

    fn temporary(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.0)
    }

    /// Lists the files; none if the folder is missing.
    pub fn files(&self) -> io::Result<Files> {
        let mut files = Files::default();
        let mut digests = Vec::new();
        let listed = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
            listed => listed?,
        };
        for listed in listed {
            let listed = listed?;
            let Ok(name) = listed.file_name().into_string() else {
                files.others += 1;
                continue;
            };
            // Links are not followed: they are not the cache's.
            let metadata = match listed.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            match parse(&name).filter(|_| metadata.is_file()) {
                None => files.others += 1,
                Some((Kind::Temporary, _)) => files.temporaries.push((name, modified(&metadata))),
                Some((Kind::Digests, _)) => digests.push((name, metadata)),
                // Small, and of no use to the count of entries.
                Some((Kind::Durations, _)) => {}
                Some((kind, version)) => files.entries.push(Entry {
                    version: version.to_owned(),
                    kind,
                    bytes: on_disk(&metadata),
                    used: modified(&metadata),
                    name,
                }),
            }
        }
        for (name, metadata) in digests {
            let of =
                |entry: &&mut Entry| entry.kind == Kind::State && digests_of(&entry.name) == name;
            match files.entries.iter_mut().find(of) {
                Some(entry) => {
                    entry.bytes += on_disk(&metadata);
                    entry.used = entry.used.max(modified(&metadata));
                }
                None => files.orphans.push(name),
            }
        }
        Ok(files)
    }

    /// Drops entries of other versions, then the least recently used ones, until the rest has at
    /// most `limit` bytes. Entries in `used` and their sizes stay. Drops old temporary files too.
    /// Returns the remaining size.
    pub fn shrink(
        &self,
        limit: u64,
        versions: &Versions,
        used: &BTreeSet<String>,
    ) -> io::Result<u64> {
        let mut files = self.files()?;
        let now = SystemTime::now();
        for (name, modified) in &files.temporaries {
            if now.duration_since(*modified).is_ok_and(|age| age > STALE) {
                self.remove(name)?;
            }
        }
        for name in &files.orphans {
            self.remove(name)?;
        }
        let mut size: u64 = files.entries.iter().map(|entry| entry.bytes).sum();
        files.entries.sort_by_cached_key(|entry| (versions.has(entry), entry.used));
        for entry in files.entries.iter().filter(|entry| !used.contains(&entry.name)) {
            if size <= limit {
                break;
            }
            self.remove(&entry.name)?;
            size -= entry.bytes;
        }
        Ok(size)
    }

    /// Drops all files of the cache.
    pub fn clear(&self) -> io::Result<Cleared> {
        let files = self.files()?;
        let mut cleared = Cleared { others: files.others, ..Cleared::default() };
        for entry in &files.entries {
            self.remove(&entry.name)?;
            cleared.bytes += entry.bytes;
            match entry.kind {
                Kind::Module => cleared.modules += 1,
                _ => cleared.states += 1,
            }
        }
        let temporaries = files.temporaries.iter().map(|(name, _)| name);
        temporaries.chain(&files.orphans).try_for_each(|name| self.remove(name))?;
        self.remove(DURATIONS)?;
        Ok(cleared)
    }

    /// Marks a file as used now.
    pub fn touch(&self, name: &str) -> io::Result<()> {
        files::open(&self.0.join(name))?.set_modified(SystemTime::now())
    }

    /// Drops a file and its digests.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let remove = |name: &str| match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        };
        remove(name)?;
        match parse(name) {
            Some((Kind::State, _)) => remove(&digests_of(name)),
            _ => Ok(()),
        }
    }
}

fn on_disk(metadata: &Metadata) -> u64 {
    metadata.blocks() * 512
}

fn modified(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The file with the durations of steps.
pub const DURATIONS: &str = "durations.json";

const STATE: &str = ".state";
const DIGESTS: &str = ".digests";

/// The versions of entries that this program reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    pub module: String,
    pub state: String,
    /// The versions of modules under other rules.
    pub others: Vec<String>,
}

impl Versions {
    /// Returns the versions of this program, whose replica this is.
    ///
    /// # Errors
    ///
    /// If the engine does not compile for this machine.
    pub fn of(replica: &Replica) -> anyhow::Result<Self> {
        let mut others = Vec::new();
        for name in Rules::SETS.iter().chain(Rules::VARIANTS) {
            others.push(Replica::new(name.parse()?, None)?.cache_version().to_owned());
        }
        Ok(Self::new(replica.cache_version().to_owned(), others))
    }

    /// Returns the versions with these versions of modules, the second under other rules.
    pub(super) fn new(module: String, others: Vec<String>) -> Self {
        Self { state: version(&module), module, others }
    }

    /// Returns `true` if this program can read the entry under some rules.
    pub fn has(&self, entry: &Entry) -> bool {
        std::iter::once(&self.module).chain(&self.others).any(|module| match entry.kind {
            Kind::Module => entry.version == *module,
            _ => entry.version == version(module),
        })
    }
}

/// The kind of a file of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A compiled module.
    Module,
    /// A populated canister.
    State,
    /// Digests of forks of a populated canister.
    Digests,
    /// Durations of steps.
    Durations,
    /// A file that is being written, or was when a program was killed.
    Temporary,
}

/// Returns the kind and the version in a file's name, if it is the cache's. Temporary files and
/// durations have an empty version.
pub fn parse(name: &str) -> Option<(Kind, &str)> {
    if let Some(random) = name.strip_prefix(TEMPORARY) {
        let valid = !random.is_empty() && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return valid.then_some((Kind::Temporary, ""));
    }
    if name == DURATIONS {
        return Some((Kind::Durations, ""));
    }
    let (stem, kind) = [(MODULE, Kind::Module), (STATE, Kind::State), (DIGESTS, Kind::Digests)]
        .into_iter()
        .find_map(|(end, kind)| Some((name.strip_suffix(end)?, kind)))?;
    let (hash, version) = stem.split_once('-')?;
    let digits = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    (digits(hash, 64) && digits(version, 16)).then_some((kind, version))
}

/// Returns the file name of a module by its hash.
pub fn module(hash: &str, version: &str) -> String {
    format!("{hash}-{version}{MODULE}")
}

/// Returns the file name of a populated canister.
pub fn state(key: &str, version: &str) -> String {
    format!("{key}-{version}{STATE}")
}

/// Returns the file name of a populated canister's digests.
pub fn digests(key: &str, version: &str) -> String {
    format!("{key}-{version}{DIGESTS}")
}

/// Returns the file name of the digests that belong to a populated canister's file.
pub fn digests_of(state: &str) -> String {
    format!("{}{DIGESTS}", state.trim_end_matches(STATE))
}

/// The sources that determine how a canister is populated. Their hash replaces a version number,
/// which could be forgotten.
const SOURCES: &[&str] = &[
    include_str!("../runner/fixture.rs"),
    include_str!("../runner/ranges.rs"),
    include_str!("../runner/step.rs"),
    include_str!("../runner/wire.rs"),
    include_str!("../../crates/suite/src/job.rs"),
    include_str!("../../crates/suite/src/plan.rs"),
    include_str!("../../suites/sql/src/script/setup.rs"),
    include_str!("../../suites/users/src/rows.rs"),
    include_str!("folder.rs"),
];

/// Everything that determines the content and the cost of a populated canister.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The version of this tool.
    stablebench: String,
    /// SHA-256 of its sources that populate.
    sources: String,
    replica: Identity,
    /// SHA-256 of the module.
    pub canister: String,
    pub prepared: Prepared,
}

/// A populated fixture: everything before its first case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    configuration: ConfigurationInfo,
    name: String,
    rows: u64,
    payload: u32,
    seed: u64,
    /// The steps in a form that is only compared.
    steps: Vec<String>,
}

impl Setup {
    /// Of something stored in the canister with that hash.
    pub fn new(replica: Identity, canister: String, prepared: Prepared) -> Self {
        Self {
            stablebench: env!("CARGO_PKG_VERSION").to_owned(),
            sources: SOURCES_HASH.clone(),
            replica,
            canister,
            prepared,
        }
    }

    /// Returns a key that is unique to the setup.
    pub fn key(&self) -> String {
        // Serializing these types does not fail.
        let text = serde_json::to_vec(self).unwrap_or_default();
        format!("{:x}", Sha256::digest(text))
    }
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configuration, name, rows, payload, .. } = self;
        f.write_str(&configuration.key)?;
        if !name.is_empty() {
            write!(f, ", {name}")?;
        }
        match rows {
            0 => Ok(()),
            _ => write!(f, ", {} rows of {} bytes", Grouped(*rows), Grouped((*payload).into())),
        }
    }
}

impl Prepared {
    /// A database whose content has this key.
    pub fn database(configuration: ConfigurationInfo, name: String, key: String) -> Self {
        Self { configuration, name, rows: 0, payload: 0, seed: 0, steps: vec![key] }
    }

    /// The steps that populate a fixture, unless some of them are measured.
    pub fn new(fixture: &Fixture, seed: u64) -> Option<Self> {
        let steps = fixture.steps.get(..fixture.populated).filter(|steps| !steps.is_empty())?;
        if steps.iter().any(|step| step.row().is_some() || step.effect == Effect::Dropped) {
            return None;
        }
        let random = steps.iter().any(|step| step.job.is_random());
        Some(Self {
            configuration: fixture.configuration.clone(),
            name: fixture.name.clone(),
            rows: fixture.rows,
            payload: fixture.payload,
            // Rows that are populated in order do not depend on it.
            seed: if random { seed } else { 0 },
            steps: steps.iter().map(|step| format!("{step:?}")).collect(),
        })
    }
}

/// Returns the version of populated canisters that this program reads. It depends on the version of
/// compiled modules, which determines the costs of populating.
fn version(module: &str) -> String {
    let of = [env!("CARGO_PKG_VERSION"), module, &SOURCES_HASH].join("\n");
    format!("{:x}", Sha256::digest(of))[..16].to_owned()
}

/// The hash of the sources that decide what a populated canister is. Each entry of a cache folder
/// asks for it.
static SOURCES_HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for source in SOURCES {
        hash.update(Sha256::digest(source));
    }
    format!("{:x}", hash.finalize())
});
