//! Saving files atomically. Links are followed. Pipes and devices, which cannot be replaced, are
//! written to.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use stablebench_replica::files::{self, Place, place};
use stablebench_replica::{LockError, StateLock};
use tempfile::NamedTempFile;

/// Returns the place to which [`save`] writes, or the reason why it would fail. Changes nothing.
pub fn check(path: &Path) -> io::Result<Place> {
    let place = place(path)?;
    if let Place::File(path) = &place {
        temporary(path)?;
    }
    Ok(place)
}

/// Locks a file that this process saves to, until the result is dropped. `option` is the option that
/// names it.
///
/// # Errors
///
/// If another process saves to it, or no lock can be created beside it.
pub fn lock(path: &Path, option: &str) -> anyhow::Result<StateLock> {
    StateLock::take(path).map_err(|error| {
        let next = match &error {
            LockError::Taken { .. } => format!("end that one, or choose another {option}"),
            LockError::Io { .. } => format!("choose another {option}"),
        };
        anyhow!("{} cannot be saved: {error}; {next}", path.display())
    })
}

/// Saves a file completely or not at all.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match place(path)? {
        Place::File(path) => {
            let mut file = temporary(&path)?;
            file.write_all(bytes)?;
            file.persist(path)?;
            Ok(())
        }
        Place::Stream(path) => OpenOptions::new().write(true).open(path)?.write_all(bytes),
    }
}

/// Gives a file a second name, unless that exists.
pub fn keep_as(path: &Path, name: &Path) -> io::Result<()> {
    let kept = fs::hard_link(path, name).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Err(error),
        // Not all file systems support links.
        _ => OpenOptions::new().write(true).create_new(true).open(name).and_then(|mut copy| {
            io::copy(&mut files::open(path)?, &mut copy)?;
            Ok(())
        }),
    });
    match kept {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        kept => kept,
    }
}

/// Creates a temporary file next to `path` that can replace it.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)?;
    // The mode is that of ordinary new files, not that of private temporary files.
    let file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    if let Ok(old) = fs::metadata(path) {
        file.as_file().set_permissions(old.permissions())?;
    }
    Ok(file)
}

/// Returns the path with `more` after its name.
pub fn with_more(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn links_and_modes_are_preserved() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "old").unwrap();
        fs::set_permissions(at("file"), Permissions::from_mode(0o640)).unwrap();
        symlink("file", at("link")).unwrap();
        symlink("inside/new", at("to-new")).unwrap();
        for (link, leads) in [("link", "file"), ("to-new", "inside/new")] {
            check(&at(link)).unwrap();
            save(&at(link), b"new").unwrap();
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
            assert_eq!(fs::read(at(leads)).unwrap(), b"new");
        }
        assert_eq!(fs::metadata(at("file")).unwrap().mode() & 0o777, 0o640);
        assert!(check(folder.path()).is_err() && save(folder.path(), b"").is_err());
    }

    #[test]
    fn devices_are_written_to() {
        let before = fs::metadata("/dev/null").unwrap();
        assert_eq!(check(Path::new("/dev/null")).unwrap(), Place::Stream("/dev/null".into()));
        save(Path::new("/dev/null"), b"text").unwrap();
        let after = fs::metadata("/dev/null").unwrap();
        assert_eq!((before.ino(), before.rdev()), (after.ino(), after.rdev()));
    }

    #[test]
    fn an_existing_second_name_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [file, kept] = ["file", "kept"].map(|name| folder.path().join(name));
        for text in ["first", "second"] {
            save(&file, text.as_bytes()).unwrap();
            keep_as(&file, &kept).unwrap();
            assert_eq!(fs::read(&kept).unwrap(), b"first");
        }
    }
}
