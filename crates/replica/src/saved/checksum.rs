//! Checksums of memories in files.
//!
//! CRC-32 of the pages of 4 KiB that are not all zero, each behind its index as u64,
//! little-endian. So it is the same whether the file has holes or zeros, and reading the
//! holes is not needed. It finds what goes wrong by itself; it is no protection against
//! somebody who wants to be believed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use flate2::Crc;

use crate::memory::{PAGE, present};

/// Bytes read at once.
const CHUNK: usize = 128 * PAGE;

/// The checksum of `size` bytes of a file from `offset` on.
///
/// # Errors
///
/// Whatever reading the file can meet. It is read, not mapped: what a disk cannot read
/// would end the process.
pub fn checksum(file: &File, offset: u64, size: u64) -> io::Result<u32> {
    const ZERO: [u8; PAGE] = [0; PAGE];
    if file.metadata()?.len() < offset.saturating_add(size) {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    let pages = usize::try_from(size.div_ceil(PAGE as u64)).map_err(io::Error::other)?;
    let mut checksum = Crc::new();
    let mut buffer = vec![0; CHUNK];
    for range in present(file, offset, pages)? {
        for first in range.clone().step_by(CHUNK / PAGE) {
            let at = (first * PAGE) as u64;
            let end = size.min((range.end * PAGE) as u64);
            let length = CHUNK.min(usize::try_from(end - at).unwrap_or(CHUNK));
            let chunk = &mut buffer[..length];
            file.read_exact_at(chunk, offset + at)?;
            for (page, bytes) in (first as u64..).zip(chunk.chunks(PAGE)) {
                if bytes != &ZERO[..bytes.len()] {
                    checksum.update(&page.to_le_bytes());
                    checksum.update(bytes);
                }
            }
        }
    }
    Ok(checksum.sum())
}
