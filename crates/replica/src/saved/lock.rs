//! Which process saves to a file, and what others left there when they were ended.
//!
//! ```text
//!   NAME                  a saved canister
//!   NAME.lock             locked by the process that saves there, whose number is in it
//!   .NAME.XXXXXX.saving   a canister that is being written, locked by who writes it
//! ```
//!
//! The locks are those of `flock`: the system drops them when their process ends, however it
//! ends. A lock file that is left behind means nothing, and is used again.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::files;

/// What a lock file begins with: other files of that name are not touched.
const MARK: &str = "stablebench process ";
/// Bytes of a lock file that are read.
const MOST: u64 = 64;
/// How often a lock file may vanish while it is being locked.
const ATTEMPTS: usize = 100;
/// Characters that make the name of a file that is being written its own.
const RANDOM: usize = 6;
const SAVING: &str = ".saving";

/// A file could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process saves there.
    #[error("{} saves to it", holder(*process))]
    Taken {
        /// The process's number, if it is known.
        process: Option<u32>,
    },
    /// The lock file cannot be made.
    #[error("it cannot be locked with {}: {error}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

fn holder(process: Option<u32>) -> String {
    process.map_or("another process".to_owned(), |number| format!("process {number}"))
}

/// The right to save canisters to one file, until it is dropped or the process ends.
#[derive(Debug)]
pub struct StateLock {
    path: PathBuf,
    /// Locked.
    _file: File,
}

impl StateLock {
    /// Takes the file at `path`, which need not be there yet, and removes what processes that
    /// have ended left of saving to it. Links are followed. Who only reads needs no lock: saving
    /// replaces the file as a whole.
    ///
    /// # Errors
    ///
    /// If another process has it, something else than a file is at `path`, or no lock file can
    /// be made beside it.
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
                // Not every file system has locks; there, nothing keeps two apart.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(failed(&path, error)),
            }
            // Whoever had it before may have removed it since it was opened.
            if !is_at(&file, &path) {
                continue;
            }
            claim(&file).map_err(|error| failed(&path, error))?;
            remove_left(&state);
            return Ok(Self { path, _file: file });
        }
        Err(failed(&path, io::Error::other("it vanishes again and again")))
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // While it is still locked. One that stays is used again.
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
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else has that name"))
    }
}

/// How the file begins.
fn read(mut file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    io::Seek::rewind(&mut file)?;
    file.take(MOST).read_to_end(&mut bytes)?;
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

/// Says who has the lock.
fn claim(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    io::Seek::rewind(&mut file)?;
    // On a full disk the lock holds all the same.
    let _ = writeln!(file, "{MARK}{}", std::process::id());
    Ok(())
}

/// Writes a file beside `path` and puts it there when it is complete and the disk has it.
///
/// # Errors
///
/// If it cannot be written. What is at `path` is then as it was.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let (folder, name) = parts(path)?;
    let mut builder = tempfile::Builder::new();
    let prefix = prefix(name);
    let temporary =
        builder.prefix(&prefix).suffix(SAVING).rand_bytes(RANDOM).tempfile_in(folder)?;
    // Tells those who clean up that it is in use. Without locks it may be taken for a left-over
    // by a process that begins to save to the same file: then this save fails.
    let _ = temporary.as_file().try_lock();
    fill(temporary.as_file())?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    // The name too. Some file systems do not have folders synced.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Removes files that were being written to replace the one at `path` by processes that ended.
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
                // It takes room, and does nothing else.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The folder of a file, and its name in there.
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

/// Whether [`replace`] gives such names to files that will replace the one of that name.
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
    fn one_process_at_a_time_has_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("state", at("link")).unwrap();
        let first = StateLock::take(&at("state")).unwrap();
        for path in [at("state"), at("link")] {
            // Its own descriptor counts as another's.
            let error = StateLock::take(&path).unwrap_err();
            assert_eq!(error.to_string(), format!("process {} saves to it", std::process::id()));
        }
        let _other = StateLock::take(&at("other")).unwrap();
        drop(first);
        assert!(!at("state.lock").exists());
        // What a process left that was ended keeps nobody away.
        fs::write(at("state.lock"), format!("{MARK}1\n")).unwrap();
        let again = StateLock::take(&at("state")).unwrap();
        let text = fs::read_to_string(at("state.lock")).unwrap();
        assert_eq!(process(&text), Some(std::process::id()), "{text}");
        drop(again);
    }

    #[test]
    fn files_that_are_no_locks_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("Cargo.lock"), "version = 4").unwrap();
        let error = StateLock::take(&at("Cargo")).unwrap_err().to_string();
        assert!(error.contains("something else has that name"), "{error}");
        assert_eq!(fs::read(at("Cargo.lock")).unwrap(), b"version = 4");
        std::os::unix::fs::symlink("Cargo.lock", at("linked.lock")).unwrap();
        assert!(StateLock::take(&at("linked")).is_err());
        fs::create_dir(at("folder.lock")).unwrap();
        assert!(StateLock::take(&at("folder")).is_err());
        assert!(StateLock::take(folder.path()).is_err());
    }

    #[test]
    fn what_nobody_writes_any_more_is_removed() {
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
            // The same file, as it is left by a process that is ended.
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
