//! Locks for files of saved canisters, and removal of leftover temporary files.
//!
//! ```text
//!   NAME                  a saved canister
//!   NAME.lock             locked by the process that saves there; contains its process id
//!   .NAME.RANDOM.saving   a canister that is being written, locked by the writer
//! ```
//!
//! The locks are those of `flock`: the system releases them when their process ends for any reason.
//! A lock file that is left behind has no effect and is reused.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::files;

/// The start of a lock file. Other files with that name are not touched.
const MARK: &str = "stablebench process ";
/// Number of bytes of a lock file that are read.
const MAX_READ: u64 = 64;
/// Number of attempts if the lock file vanishes while it is being locked.
const ATTEMPTS: usize = 100;
/// Number of random characters in the names of temporary files.
const RANDOM: usize = 6;
const SAVING: &str = ".saving";

/// A file could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process saves to the file.
    #[error("{} saves to it", holder(*process))]
    Taken {
        /// The process id, if known.
        process: Option<u32>,
    },
    /// The lock file cannot be created.
    #[error("it cannot be locked with {}: {error}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

fn holder(process: Option<u32>) -> String {
    process.map_or("another process".to_owned(), |number| format!("process {number}"))
}

/// The exclusive right to save canisters to one file, until it is dropped or the process ends.
#[derive(Debug)]
pub struct StateLock {
    path: PathBuf,
    /// Keeps the lock.
    _file: File,
}

impl StateLock {
    /// Locks the file at `path`, which need not exist yet, and removes temporary files of processes
    /// that ended while they saved to it. Links are followed. Reading needs no lock, because saving
    /// replaces the file atomically.
    ///
    /// # Errors
    ///
    /// If another process has the lock, `path` is not a regular file, or no lock file can be
    /// created next to it.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let failed = |path: &Path, error| LockError::Io { path: path.to_owned(), error };
        let state = files::replaceable(path).map_err(|error| failed(path, error))?;
        let mut name = state.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        for _ in 0..ATTEMPTS {
            let file = open(&path).map_err(|error| failed(&path, error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let process = read(&file).ok().and_then(|text| process(&text));
                    return Err(LockError::Taken { process });
                }
                // Some file systems have no locks; there, processes are not kept apart.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(failed(&path, error)),
            }
            // The previous owner may have removed the file since it was opened.
            if !is_at(&file, &path) {
                continue;
            }
            claim(&file).map_err(|error| failed(&path, error))?;
            remove_left(&state);
            return Ok(Self { path, _file: file });
        }
        Err(failed(&path, io::Error::other("it vanishes repeatedly")))
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // While it is still locked. A leftover file is reused.
        let _ = fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    let text = read(&file)?;
    if file.metadata()?.is_file() && (text.is_empty() || text.starts_with(MARK)) {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "another file has that name"))
    }
}

/// The first bytes of the file.
fn read(mut file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    io::Seek::rewind(&mut file)?;
    file.take(MAX_READ).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn process(text: &str) -> Option<u32> {
    text.strip_prefix(MARK)?.lines().next()?.parse().ok()
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(opened), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (there.dev(), there.ino())
}

/// Writes the process id to the lock file.
fn claim(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    io::Seek::rewind(&mut file)?;
    // The lock is valid even if the disk is full.
    let _ = writeln!(file, "{MARK}{}", std::process::id());
    Ok(())
}

/// Replaces the file at `path` atomically and waits until it is on disk.
///
/// # Errors
///
/// If it cannot be written. The file at `path` is unchanged then.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let (folder, name) = parts(path)?;
    let mut builder = tempfile::Builder::new();
    let prefix = prefix(name);
    let temporary =
        builder.prefix(&prefix).suffix(SAVING).rand_bytes(RANDOM).tempfile_in(folder)?;
    // Shows that the file is in use. On file systems without locks, a process that starts to save to
    // the same file may remove it as a leftover; then this save fails.
    let _ = temporary.as_file().try_lock();
    fill(temporary.as_file())?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    // The directory entry too. Some file systems do not support syncing directories.
    #[expect(clippy::disallowed_methods, reason = "a folder, which is not read")]
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Removes temporary files for `path` that belong to processes that have ended.
fn remove_left(path: &Path) {
    let Ok((folder, name)) = parts(path) else {
        return;
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_temporary(&entry.file_name(), name) {
            let unused = files::open(&entry.path()).is_ok_and(|file| file.try_lock().is_ok());
            if unused {
                // A leftover only takes space, so errors are ignored.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The folder of a file and its name.
fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path does not end with a name")
    })?;
    match path.parent() {
        Some(folder) if folder != Path::new("") => Ok((folder, name)),
        _ => Ok((Path::new("."), name)),
    }
}

fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Returns true if `found` is the name of a temporary file that [`replace`] creates for `name`.
fn is_temporary(found: &OsStr, name: &OsStr) -> bool {
    let random = found
        .as_bytes()
        .strip_prefix(prefix(name).as_bytes())
        .and_then(|rest| rest.strip_suffix(SAVING.as_bytes()));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_process_locks_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("state", at("link")).unwrap();
        let first = StateLock::take(&at("state")).unwrap();
        for path in [at("state"), at("link")] {
            // Another descriptor of this process counts as another owner.
            let error = StateLock::take(&path).unwrap_err();
            assert_eq!(error.to_string(), format!("process {} saves to it", std::process::id()));
        }
        let _other = StateLock::take(&at("other")).unwrap();
        drop(first);
        assert!(!at("state.lock").exists());
        // The lock file of a process that has ended does not block others.
        fs::write(at("state.lock"), format!("{MARK}1\n")).unwrap();
        let again = StateLock::take(&at("state")).unwrap();
        let text = fs::read_to_string(at("state.lock")).unwrap();
        assert_eq!(process(&text), Some(std::process::id()), "{text}");
        drop(again);
    }

    #[test]
    fn other_files_are_not_locked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("Cargo.lock"), "version = 4").unwrap();
        let error = StateLock::take(&at("Cargo")).unwrap_err().to_string();
        assert!(error.contains("another file has that name"), "{error}");
        assert_eq!(fs::read(at("Cargo.lock")).unwrap(), b"version = 4");
        std::os::unix::fs::symlink("Cargo.lock", at("linked.lock")).unwrap();
        assert!(StateLock::take(&at("linked")).is_err());
        fs::create_dir(at("folder.lock")).unwrap();
        assert!(StateLock::take(&at("folder")).is_err());
        assert!(StateLock::take(folder.path()).is_err());
    }

    #[test]
    fn leftover_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let stay = [".state.abcdef", ".state.abc.saving", ".state.x.abcdef.saving", "state"];
        for name in stay {
            fs::write(at(name), "").unwrap();
        }
        let names = || -> Vec<String> {
            let entries = fs::read_dir(folder.path()).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let written = replace(&at("state"), |mut file| {
            file.write_all(b"new")?;
            let temporary = names()
                .into_iter()
                .find(|name| is_temporary(OsStr::new(name), OsStr::new("state")))
                .unwrap();
            // The same file, as a killed process would leave it.
            fs::hard_link(at(&temporary), at(".state.killed.saving"))?;
            drop(StateLock::take(&at("state")).unwrap());
            assert!(at(".state.killed.saving").exists(), "it is in use");
            assert!(at(&temporary).exists(), "it is in use");
            Err(io::Error::other("on purpose"))
        });
        assert!(written.is_err());
        assert!(at(".state.killed.saving").exists());
        drop(StateLock::take(&at("state")).unwrap());
        let mut names = names();
        names.sort();
        let mut expected = stay.map(str::to_owned);
        expected.sort();
        assert_eq!(names, expected);
        assert_eq!(fs::read(at("state")).unwrap(), b"");
        replace(&at("state"), |mut file| file.write_all(b"newer")).unwrap();
        assert_eq!(fs::read(at("state")).unwrap(), b"newer");
    }
}
