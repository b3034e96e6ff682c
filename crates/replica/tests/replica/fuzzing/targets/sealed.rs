//! Splits files of saved canisters into parts and assembles them. Other tests include this file too.

use serde_json::Value;
use sha2::{Digest, Sha256};

const PREAMBLE: usize = 48;
/// Memories begin at a multiple of a Wasm page.
const ALIGNMENT: usize = 65_536;

/// The parts after the header.
pub struct Rest {
    /// Of the heap, and of stable memory.
    pub checksums: [u8; 8],
    pub module: Vec<u8>,
    pub memories: Vec<u8>,
}

/// Splits a file into its header and the rest.
pub fn parts(whole: &[u8]) -> (serde_json::Map<String, Value>, Rest) {
    let length = u64::from_le_bytes(whole[8..16].try_into().unwrap()) as usize;
    let end = PREAMBLE + length;
    let header: serde_json::Map<String, Value> =
        serde_json::from_slice(&whole[PREAMBLE..end]).unwrap();
    let module = end + 8..end + 8 + header["module"].as_u64().unwrap() as usize;
    let rest = Rest {
        checksums: whole[end..end + 8].try_into().unwrap(),
        memories: whole[module.end.next_multiple_of(ALIGNMENT)..].to_vec(),
        module: whole[module].to_vec(),
    };
    (header, rest)
}

/// Assembles a file with the given header and a matching checksum.
pub fn sealed(header: &[u8], rest: &Rest) -> Vec<u8> {
    let checksum = Sha256::new().chain_update(header).chain_update(rest.checksums).finalize();
    let length = (header.len() as u64).to_le_bytes();
    let mut file =
        [b"canister", &length[..], &checksum, header, &rest.checksums, &rest.module].concat();
    file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
    file.extend(&rest.memories);
    file
}
