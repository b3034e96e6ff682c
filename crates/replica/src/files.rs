//! Files that users name: reading, replacing and locking them.
//!
//! Reading a pipe can block forever and a device may have no end, so [`open`] only accepts regular
//! files, and `clippy.toml` forbids the functions of `std` that read others. Replacing a file
//! atomically would also replace a device or a link, so [`place`] resolves links and reports the kind
//! of the target.
//!
//! Files of saved canisters are locked, and are replaced only when their content is on disk:
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
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, Timespec, Timestamps, UTIME_NOW, utimensat};

/// Number of links that are followed before they count as a cycle, as on Linux.
const LINKS: usize = 40;

/// The target of writes to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A regular file, or a path that does not exist: it can be replaced atomically.
    File(PathBuf),
    /// A pipe, a terminal or similar, which accepts bytes but cannot be replaced.
    Stream(PathBuf),
}

/// Returns the target of writes to `path`. Links are followed, even to a path that does not exist.
///
/// # Errors
///
/// If the path cannot be resolved, or is a folder, a disk or a socket.
pub fn place(path: &Path) -> io::Result<Place> {
    let kind = match fs::metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return missing(path).map(Place::File);
        }
        Err(error) => return Err(error),
    };
    if kind.is_file() {
        fs::canonicalize(path).map(Place::File)
    } else if kind.is_char_device() || kind.is_fifo() {
        Ok(Place::Stream(path.to_owned()))
    } else {
        let what = if kind.is_dir() { "a folder" } else { "a disk or a socket" };
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what} is there")))
    }
}

/// Resolves a path that does not exist: it may be a link to a missing file.
fn missing(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(link) = fs::read_link(&path) else {
            return Ok(path);
        };
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(io::Error::other("its links form a cycle"))
}

/// Returns the path of a file that can be replaced atomically.
///
/// # Errors
///
/// If [`place`] fails, or the target is not a regular file.
pub fn replaceable(path: &Path) -> io::Result<PathBuf> {
    match place(path)? {
        Place::File(path) => Ok(path),
        Place::Stream(_) => Err(irregular()),
    }
}

/// Opens a regular file for reading.
///
/// # Errors
///
/// If it cannot be opened, or is a pipe, a device or a folder.
pub fn open(path: &Path) -> io::Result<File> {
    // Without these flags, opening a pipe would wait for a writer.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// Opens a regular file that only the user can have written.
///
/// # Errors
///
/// If [`open`] fails, the file belongs to another user, or others can write to it.
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    check_own(&file.metadata()?)?;
    Ok(file)
}

/// Checks that a file belongs to the user and that others cannot write to it.
///
/// # Errors
///
/// The reason for which the file is not trusted.
pub fn check_own(metadata: &Metadata) -> io::Result<()> {
    let refused = |reason| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refused("it belongs to another user");
    }
    if metadata.mode() & 0o022 != 0 {
        return refused("other users can write to it");
    }
    Ok(())
}

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
///
/// If [`open`] fails, or it cannot be read or is larger.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_at_most(open(path)?, max)
}

/// Reads a text from a regular file of at most `max` bytes.
///
/// # Errors
///
/// If [`read`] fails, or it is not UTF-8.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    text(read(path, max)?)
}

/// Reads a text of at most `max` bytes from a file, or from a pipe or a device until that ends.
///
/// # Errors
///
/// If it cannot be read, is larger, or is not UTF-8.
pub fn read_stream(path: &Path, max: u64) -> io::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "the user wants it to be a pipe")]
    let stream = File::open(path)?;
    text(read_at_most(stream, max)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads at most `max` bytes to the end.
///
/// # Errors
///
/// If it cannot be read, or is larger.
pub fn read_at_most(from: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let text = format!("it is larger than {max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// The most bytes of a text that people or programs write for each other.
pub const MAX_TEXT: u64 = 16 << 20;
/// The most bytes of a module, which may have sections that are not deployed.
pub const MAX_MODULE: u64 = 256 << 20;

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Prefix of temporary files. An old one was left by a process that ended early.
pub const TEMPORARY: &str = ".stablebench-";

/// Writes a file atomically and returns it. Its folder is created if needed.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<File> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    let temporary = match builder.tempfile_in(folder) {
        // Only the owner may access the folder of a cache.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            builder.tempfile_in(folder)?
        }
        temporary => temporary?,
    };
    fill(temporary.as_file())?;
    temporary.persist(path).map_err(|error| error.error)
}

/// Marks a file as used, so that it is removed last from its cache.
pub(crate) fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    // Errors are ignored: the file belongs to someone else, or was removed.
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

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
        let state = replaceable(path).map_err(|error| failed(path, error))?;
        let mut name = state.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        for _ in 0..ATTEMPTS {
            let file = open_lock(&path).map_err(|error| failed(&path, error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let process = read_lock(&file).ok().and_then(|text| process(&text));
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

fn open_lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    let text = read_lock(&file)?;
    if file.metadata()?.is_file() && (text.is_empty() || text.starts_with(MARK)) {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "another file has that name"))
    }
}

/// The first bytes of a lock file.
fn read_lock(mut file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
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
    file.rewind()?;
    // The lock is valid even if the disk is full.
    let _ = writeln!(file, "{MARK}{}", std::process::id());
    Ok(())
}

/// Replaces the file at `path` atomically, and waits until it is on disk. Links are followed.
///
/// # Errors
///
/// If the file cannot be written, or is not a regular file. It is unchanged then.
pub(crate) fn replace(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let path = replaceable(path)?;
    let (folder, name) = parts(&path)?;
    let mut builder = tempfile::Builder::new();
    let prefix = prefix(name);
    let temporary =
        builder.prefix(&prefix).suffix(SAVING).rand_bytes(RANDOM).tempfile_in(folder)?;
    // Shows that the file is in use. On file systems without locks, a process that starts to save to
    // the same file may remove it as a leftover; then this save fails.
    let _ = temporary.as_file().try_lock();
    fill(temporary.as_file())?;
    temporary.as_file().sync_all()?;
    temporary.persist(&path).map_err(|error| error.error)?;
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
            let unused = open(&entry.path()).is_ok_and(|file| file.try_lock().is_ok());
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

/// Hashes in names and headers of files: lower-case hexadecimal digits.
pub(crate) mod hex {
    /// Encodes bytes.
    pub fn encode(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Decodes 32 bytes from 64 digits.
    pub fn decode(text: &str) -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn links_are_followed_and_streams_are_not_files() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let at = |name: &str| folder.join(name);
        fs::write(at("file"), "there").unwrap();
        for (link, target) in [
            ("to-file", "file"),
            ("to-missing", "missing"),
            ("twice", "to-missing"),
            ("loop", "loop"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        symlink("/dev/null", at("to-null")).unwrap();
        for (name, leads) in [
            ("file", "file"),
            ("new", "new"),
            ("to-file", "file"),
            ("to-missing", "missing"),
            ("twice", "missing"),
        ] {
            assert_eq!(place(&at(name)).unwrap(), Place::File(at(leads)), "{name}");
        }
        assert_eq!(place(&at("to-null")).unwrap(), Place::Stream(at("to-null")));
        assert!(replaceable(Path::new("/dev/null")).is_err());
        assert!(place(&at("loop")).is_err() && place(&folder).is_err());
        let _socket = UnixListener::bind(at("socket")).unwrap();
        assert!(place(&at("socket")).is_err());
    }

    #[test]
    fn files_that_others_can_write_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        for (mode, own) in [(0o600, true), (0o644, true), (0o664, false), (0o602, false)] {
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(open_own(&path).is_ok(), own, "{mode:o}");
        }
        // A file of root, or, if the tests run as root, one of another user.
        let others = if rustix::process::geteuid().is_root() {
            fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            path
        } else {
            PathBuf::from("/etc/passwd")
        };
        let error = open_own(&others).unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
    }

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [7; 10]).unwrap();
        assert_eq!(read(&path, 10).unwrap(), [7; 10]);
        assert_eq!(read(&path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "\x07".repeat(10));
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path, 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            assert!(read(path, 10).is_err() && read_text(path, 10).is_err());
            let error = open(path).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{path:?}: {error}");
        }
    }

    #[test]
    fn streams_are_read_until_they_end_or_are_too_large() {
        assert_eq!(read_stream(Path::new("/dev/null"), 10).unwrap(), "");
        let error = read_stream(Path::new("/dev/zero"), 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn only_one_process_locks_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("state", at("link")).unwrap();
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
        symlink("Cargo.lock", at("linked.lock")).unwrap();
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

    #[test]
    fn decoding_reverses_encoding() {
        let bytes = std::array::from_fn(|at| 8 * at as u8 + 7);
        assert_eq!(hex::decode(&hex::encode(&bytes)), Some(bytes));
        for text in ["", "ab", &"é".repeat(32), &"g0".repeat(32), &"+1".repeat(32)] {
            assert_eq!(hex::decode(text), None, "{text}");
        }
    }
}
