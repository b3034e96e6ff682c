//! The folder of a cache: which files of ours are in it, and dropping them.
//!
//! Whoever writes an entry writes it beside its place and moves it there; whoever has
//! loaded one keeps it although its name goes. So several programs can use a folder at
//! once, and a file that is gone is never an error.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use stablebench_replica::files;
use tempfile::NamedTempFile;

use super::name::{self, Kind, Versions};
use super::setup;

/// After this time nobody is writing a file any more.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes of the largest file that is read as a whole here: digests of forks.
const MOST: u64 = 256 << 20;

/// A folder that may not be there yet.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// A module or a populated canister.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub kind: Kind,
    pub version: String,
    /// What it takes on the disk; holes take nothing.
    pub bytes: u64,
    /// When it was last used.
    pub used: SystemTime,
}

/// The files in a folder.
#[derive(Debug, Default)]
pub struct Files {
    pub entries: Vec<Entry>,
    /// Files that are being written, or were.
    temporaries: Vec<(String, SystemTime)>,
    /// Companions of entries that are not there.
    orphans: Vec<String>,
    /// What is not ours.
    pub others: usize,
}

/// What clearing has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cleared {
    pub modules: usize,
    pub states: usize,
    pub bytes: u64,
    /// What is not ours, and so was left.
    pub others: usize,
}

impl Folder {
    /// The folder at a path.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder where it is missing, and tries whether it can be written. A folder that
    /// is not the user's own is refused: what is in it is executed.
    pub fn prepare(&self) -> io::Result<()> {
        // What earlier runs have done is nobody else's business.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        files::check_own(&fs::metadata(&self.0)?)?;
        self.temporary().map(drop)
    }

    /// What is in a file; nothing where that is missing.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match files::open_own(&self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => files::read_at_most(file?, MOST).map(Some),
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
        let prefix = stablebench_replica::cache::TEMPORARY;
        tempfile::Builder::new().prefix(prefix).tempfile_in(&self.0)
    }

    /// The files in it; none where it is missing.
    pub fn files(&self) -> io::Result<Files> {
        let mut files = Files::default();
        let mut companions = Vec::new();
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
            // Links are not followed: they are nothing of ours.
            let metadata = match listed.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            match name::parse(&name).filter(|_| metadata.is_file()) {
                None => files.others += 1,
                Some((Kind::Temporary, _)) => files.temporaries.push((name, modified(&metadata))),
                Some((Kind::Stamp | Kind::Digests, _)) => companions.push((name, metadata)),
                Some((kind, version)) => files.entries.push(Entry {
                    version: version.to_owned(),
                    kind,
                    bytes: on_disk(&metadata),
                    used: modified(&metadata),
                    name,
                }),
            }
        }
        for (companion, metadata) in companions {
            let of = |entry: &&mut Entry| {
                entry.kind == Kind::State && name::companions(&entry.name).contains(&companion)
            };
            match files.entries.iter_mut().find(of) {
                Some(entry) => {
                    entry.bytes += on_disk(&metadata);
                    entry.used = entry.used.max(modified(&metadata));
                }
                None => files.orphans.push(companion),
            }
        }
        Ok(files)
    }

    /// Drops entries of other versions, then those that were not used for the longest time,
    /// until what is left takes at most `limit` bytes. Those in `used` stay, whatever
    /// they take. Tells what is left. Old temporaries go too.
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
        files.entries.sort_by_key(|entry| (versions.has(entry), entry.used));
        for entry in files.entries.iter().filter(|entry| !used.contains(&entry.name)) {
            if size <= limit {
                break;
            }
            self.remove(&entry.name)?;
            size -= entry.bytes;
        }
        Ok(size)
    }

    /// Drops every file of ours.
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
        Ok(cleared)
    }

    /// Drops a file, and its companions where it has some.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let remove = |name: &str| match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        };
        remove(name)?;
        match name::parse(name) {
            Some((Kind::State, _)) => {
                name::companions(name).iter().try_for_each(|name| remove(name))
            }
            _ => Ok(()),
        }
    }
}

impl Versions {
    /// With that version of modules, which the replica knows, and those that it has under
    /// other rules.
    pub fn new(module: String, others: Vec<String>) -> Self {
        Self { state: setup::version(&module), module, others }
    }

    /// Whether this program reads the entry, under some rules.
    pub fn has(&self, entry: &Entry) -> bool {
        std::iter::once(&self.module).chain(&self.others).any(|module| match entry.kind {
            Kind::Module => entry.version == *module,
            _ => entry.version == setup::version(module),
        })
    }
}

fn on_disk(metadata: &Metadata) -> u64 {
    metadata.blocks() * 512
}

fn modified(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}
