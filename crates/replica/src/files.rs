//! Files that users name: what may be read, and where writing leads.
//!
//! Reading a pipe can wait for ever and reading a device need never end, so
//! [`open`] takes regular files only. A file that is replaced as a whole would
//! replace a device or a link by itself, so [`place`] tells where links lead and
//! what is there.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Links that are followed before they count as a circle, as Linux has it.
const LINKS: usize = 40;

/// Where writing to a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A regular file, or nothing yet: a file there can be replaced as a whole.
    File(PathBuf),
    /// A pipe, a terminal or the like, which takes bytes but cannot be replaced.
    Stream(PathBuf),
}

/// Tells where writing to `path` leads; links are followed, to what is missing too.
///
/// # Errors
///
/// If that cannot be found out, or a folder, a disk or a socket is there.
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

/// Where a path leads that does not exist: it may be a link to what is missing.
fn missing(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(link) = fs::read_link(&path) else {
            return Ok(path);
        };
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(io::Error::other("its links lead in a circle"))
}

/// Where a file can be replaced as a whole.
///
/// # Errors
///
/// If [`place`] fails, or what is there is no regular file.
pub fn replaceable(path: &Path) -> io::Result<PathBuf> {
    match place(path)? {
        Place::File(path) => Ok(path),
        Place::Stream(_) => Err(irregular()),
    }
}

/// Opens a regular file for reading, and nothing else.
///
/// # Errors
///
/// If it cannot be opened, or is a pipe, a device or a folder.
pub fn open(path: &Path) -> io::Result<File> {
    // Without it, opening a pipe waits for who writes to it.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// Opens a regular file that is the user's own: nobody else can have written it.
///
/// # Errors
///
/// If [`open`] fails, the file is another user's, or others can write to it.
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    check_own(&file.metadata()?)?;
    Ok(file)
}

/// Refuses what is another user's, or what others can write to.
///
/// # Errors
///
/// Which of both it is.
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

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
///
/// If [`open`] fails, or it cannot be read or is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_at_most(open(path)?, most)
}

/// Reads all of something that has at most `most` bytes.
///
/// # Errors
///
/// If it cannot be read, or is larger.
pub fn read_at_most(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn links_are_followed_and_streams_told_from_files() {
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
    fn what_others_can_write_is_not_ones_own() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        for (mode, own) in [(0o600, true), (0o644, true), (0o664, false), (0o602, false)] {
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(open_own(&path).is_ok(), own, "{mode:o}");
        }
        // Of root, unless these tests are root's: then whose file it is can be chosen.
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
    fn only_regular_files_of_some_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [7; 10]).unwrap();
        assert_eq!(read(&path, 10).unwrap(), [7; 10]);
        assert_eq!(read(&path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            let error = open(path).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{path:?}: {error}");
        }
    }
}
