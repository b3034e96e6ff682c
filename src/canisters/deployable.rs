//! A module as it is deployed: in gzip.
//!
//! Plain, the module of a canister here is larger than one message to the IC may be (2 MiB).
//! The IC takes gzip, and its `module_hash` is the hash of what was uploaded. So the file has
//! no time, no name and no system in its header, and is the same wherever it is made.

use std::borrow::Cow;
use std::io::{Read, Write};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// The most that is inflated: no replica takes a larger module.
const LIMIT: u64 = 100 << 20;

/// The module in gzip; the same bytes for the same module.
pub fn deployable(wasm: &[u8]) -> Vec<u8> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let written = gzip.write_all(wasm).and_then(|()| gzip.finish());
    written.expect("writing into memory does not fail")
}

/// The module in what was deployed, be it plain or in gzip. What is neither is left as it is:
/// a replica says best what is wrong with it.
pub fn plain(deployed: &[u8]) -> Cow<'_, [u8]> {
    if deployed.starts_with(&[0x1f, 0x8b]) {
        let mut wasm = Vec::new();
        if GzDecoder::new(deployed).take(LIMIT).read_to_end(&mut wasm).is_ok() {
            return wasm.into();
        }
    }
    deployed.into()
}

/// The SHA-256 of a file, in hex: of what is deployed, what the IC calls `module_hash`.
pub fn hash(file: &[u8]) -> String {
    format!("{:x}", Sha256::digest(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_module_gives_the_same_file_which_is_the_module() {
        let wasm: Vec<u8> = (0..200_000_u32).flat_map(|n| (n % 977).to_le_bytes()).collect();
        let file = deployable(&wasm);
        assert_eq!(file, deployable(&wasm));
        assert!(file.len() < wasm.len() / 10);
        assert_eq!(plain(&file), wasm);
    }

    #[test]
    fn the_header_says_nothing_of_time_place_and_system() {
        let file = deployable(b"\0asm");
        // Deflate; no name, no extras; time 0; best compression; unknown system.
        assert_eq!(file[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn what_is_no_gzip_is_left_as_it_is() {
        for bytes in [&b""[..], b"\0asm", &[0x1f, 0x8b], &[0x1f, 0x8b, 8, 0, 0, 0]] {
            assert_eq!(plain(bytes), bytes);
        }
    }
}
