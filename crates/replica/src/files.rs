//! Access to files that users name.
//!
//! Reading a pipe can block forever and a device may have no end, so [`open`] only accepts regular
//! files, and `clippy.toml` forbids the functions of `std` that read others. Replacing a file atomically would also replace a device or a link, so [`place`] resolves
//! links and reports the kind of the target.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read};
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
}
