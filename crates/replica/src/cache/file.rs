//! Files of a cache: written as a whole or not at all, and marked when they are used.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

/// What names of files begin with that are being written. One that is old was left by a
/// program that was ended.
pub const TEMPORARY: &str = ".stablebench-";

/// Writes a file beside its place and puts it there when it is complete. Answers the file.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<File> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    let temporary = match builder.tempfile_in(folder) {
        // A cache's folder is made when it is needed, for its owner alone.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            builder.tempfile_in(folder)?
        }
        temporary => temporary?,
    };
    fill(temporary.as_file())?;
    temporary.persist(path).map_err(|error| error.error)
}

/// Says that a file was used: what was used last is dropped last.
pub(crate) fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    // Of somebody else, or gone: it will be dropped earlier, or was.
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The 32 bytes that 64 such digits stand for.
pub(crate) fn hex_of(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
