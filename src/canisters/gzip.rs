//! Modules of canisters, plain and as they are deployed.
//!
//! A plain module of a canister here is larger than one message to the IC may be (2 MiB), so it
//! is deployed in gzip. The IC accepts gzip, and its `module_hash` is the hash of what was
//! uploaded. The file's header contains no time, name or operating system, so the file is
//! identical wherever it is made.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// The maximum size of a decompressed module, in bytes: no replica accepts a larger one.
const MAX_INFLATED: u64 = 100 << 20;

/// Returns the module in gzip. The same module gives the same bytes.
///
/// # Errors
///
/// Never in practice: the compressor writes into memory.
pub fn deployable(wasm: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(wasm)?;
    gzip.finish()
}

/// Returns the plain module of a deployed file. A file that is not in gzip is returned
/// unchanged: the replica reports best what is wrong with it.
pub fn plain(deployed: &[u8]) -> Cow<'_, [u8]> {
    inflated(deployed, MAX_INFLATED)
}

/// Returns the plain module of a deployed file, of a compressed one at most this number of bytes.
pub fn inflated(deployed: &[u8], most: u64) -> Cow<'_, [u8]> {
    if deployed.starts_with(&[0x1f, 0x8b]) {
        let mut wasm = Vec::new();
        if GzDecoder::new(deployed).take(most).read_to_end(&mut wasm).is_ok() {
            return wasm.into();
        }
    }
    deployed.into()
}

/// Returns the SHA-256 of a file in hex. For a deployed file, this is the IC's `module_hash`.
pub fn hash(file: &[u8]) -> String {
    format!("{:x}", Sha256::digest(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_deterministic_and_reversible() {
        let wasm: Vec<u8> = (0..200_000_u32).flat_map(|n| (n % 977).to_le_bytes()).collect();
        let file = deployable(&wasm).unwrap();
        assert_eq!(file, deployable(&wasm).unwrap());
        assert!(file.len() < wasm.len() / 10);
        assert_eq!(plain(&file), wasm);
        assert_eq!(*inflated(&file, 1_000), wasm[..1_000]);
    }

    #[test]
    fn the_gzip_header_contains_no_time_name_or_system() {
        let file = deployable(b"\0asm").unwrap();
        // Deflate; no name, no extras; time 0; best compression; unknown system.
        assert_eq!(file[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn files_that_are_not_gzip_are_unchanged() {
        for bytes in [&b""[..], b"\0asm", &[0x1f, 0x8b], &[0x1f, 0x8b, 8, 0, 0, 0]] {
            assert_eq!(plain(bytes), bytes);
        }
    }
}
