//! Files of cases: JSON, one list, indented by one space; gzipped where the name ends
//! in `.gz`.
//!
//! A file of the corpus that is read and written again is the same text.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use stablebench_replica::files;

use crate::{Case, Error};

/// Bytes of a file that is read, and of what it holds compressed: far more than any recorded.
pub const MOST: u64 = 1 << 30;

/// The cases of a file.
///
/// # Errors
///
/// If the file cannot be read or is no file of cases.
pub fn read(path: &Path) -> Result<Vec<Case>, Error> {
    let unread = |cause| Error::Read { path: path.to_owned(), cause };
    let mut bytes = files::read(path, MOST).map_err(unread)?;
    if is_gzipped(path) {
        bytes = files::read_at_most(GzDecoder::new(bytes.as_slice()), MOST).map_err(unread)?;
    }
    serde_json::from_slice(&bytes).map_err(|cause| Error::Json { path: path.to_owned(), cause })
}

/// Writes a file of cases. The file appears when it is complete, in place of one that
/// was there.
///
/// # Errors
///
/// If it cannot be written; what was there is then as it was.
pub fn write(path: &Path, cases: &[Case]) -> Result<(), Error> {
    persist(path, cases).map_err(|cause| Error::Write { path: path.to_owned(), cause })
}

fn persist(path: &Path, cases: &[Case]) -> io::Result<()> {
    // In the same folder, so that it can be moved in one step.
    let mut file = tempfile::NamedTempFile::new_in(directory(path))?;
    let text = text(cases)?;
    if is_gzipped(path) {
        let mut encoder = GzEncoder::new(&mut file, Compression::best());
        encoder.write_all(&text)?;
        encoder.finish()?;
    } else {
        file.write_all(&text)?;
    }
    // Temporary files are for their owner alone; this one is to be as others are.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_or(0o644, |there| there.permissions().mode());
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn text(cases: &[Case]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    cases.serialize(&mut Serializer::with_formatter(
        &mut text,
        PrettyFormatter::with_indent(b" "),
    ))?;
    Ok(text)
}

/// The folder in which a file is, and from which the paths in it go.
pub(crate) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_gzipped(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}
