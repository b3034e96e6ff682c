//! From what was uploaded to a plain module.
//!
//! The first bytes tell: `\0asm` is a plain module, `1f 8b 08` is gzip with deflate.
//! What gzip claims to hold stands in the last four bytes of the upload:
//!
//! ```text
//! header | deflate stream | CRC-32 u32 | size modulo 2^32 u32     (little-endian)
//! ```
//!
//! The claim is held against the limit before anything is inflated, and no more than
//! one byte beyond it is ever inflated. Only the first gzip member counts.

use std::borrow::Cow;
use std::io::{self, Read};

use flate2::Crc;
use flate2::bufread::{DeflateDecoder, GzDecoder};

use super::refusal::{Invalid, Refusal};

/// Largest module, after inflating.
pub(super) const MAX_MODULE: u64 = 100 << 20;

const WASM_MAGIC: &[u8] = b"\0asm";
const GZIP_MAGIC: &[u8] = b"\x1f\x8b\x08";
/// Header and trailer without a stream between them are 18 bytes; the replica asks for 16.
const SHORTEST_GZIP: usize = 16;

/// Returns the plain module of an upload, which is a module or a module in gzip.
///
/// # Errors
///
/// Neither of the two, larger than 100 MiB, or broken gzip. Of broken gzip, the words
/// behind `failed to decode compressed Wasm module: ` are those of the replica where
/// the stream is cut off or its checksum is wrong, and those of `flate2` otherwise.
pub fn decode(module: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    if module.starts_with(WASM_MAGIC) {
        check_size(module.len() as u64)?;
        return Ok(Cow::Borrowed(module));
    }
    if !module.starts_with(GZIP_MAGIC) {
        return Err(Invalid::Decoding("unsupported canister module format".into()).into());
    }
    let claimed = match module.last_chunk::<4>() {
        Some(size) if module.len() >= SHORTEST_GZIP => u32::from_le_bytes(*size),
        _ => {
            let words = "invalid Wasm module: gzip stream is too short";
            return Err(Invalid::Decoding(words.into()).into());
        }
    };
    check_size(u64::from(claimed))?;

    let plain = inflate(module, u64::from(claimed) + 1).map_err(|error| {
        Invalid::Decoding(format!("failed to decode compressed Wasm module: {}", words(&error)))
    })?;
    if plain.len() as u64 != u64::from(claimed) {
        let found = plain.len();
        return Err(Invalid::Decoding(format!(
            "specified uncompressed size {claimed} does not match extracted size {found}"
        ))
        .into());
    }
    Ok(Cow::Owned(plain))
}

fn check_size(size: u64) -> Result<(), Invalid> {
    if size > MAX_MODULE {
        return Err(Invalid::ModuleTooLarge { size, allowed: MAX_MODULE });
    }
    Ok(())
}

/// Inflates at most `limit` bytes of the first gzip member. The checksum is only known,
/// and only checked, where the stream ends before that.
fn inflate(gzip: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut whole = GzDecoder::new(gzip);
    if whole.header().is_none() {
        // The header's error comes with the first read.
        whole.read_exact(&mut [0])?;
    }
    // `GzDecoder` also compares the member's own size, which the replica does not, so
    // it only serves to skip the header.
    let stream = whole.into_inner();
    let mut plain = Vec::new();
    let mut deflate = DeflateDecoder::new(stream).take(limit);
    deflate.read_to_end(&mut plain)?;
    if (plain.len() as u64) < limit {
        check_trailer(deflate.into_inner().into_inner(), &plain)?;
    }
    Ok(plain)
}

fn check_trailer(mut trailer: &[u8], plain: &[u8]) -> io::Result<()> {
    let mut fields = [0; 8];
    trailer.read_exact(&mut fields)?;
    let [a, b, c, d, ..] = fields;
    let expected = u32::from_le_bytes([a, b, c, d]);
    let mut crc = Crc::new();
    crc.update(plain);
    if crc.sum() != expected {
        let words = format!("CRC32 mismatched: value={}, expected={expected}", crc.sum());
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    Ok(())
}

/// A stream that is cut off is told in the words of the standard library.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "failed to fill whole buffer".into(),
        _ => error.to_string(),
    }
}
