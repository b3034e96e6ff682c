//! Blobs by their hash, which clients upload before they refer to them.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::sync::Mutex;

use axum::body::Bytes;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use stablebench_replica::files;

use super::failure::Failed;
use crate::host::lock;
use crate::limits::{MAX_BLOB, MAX_BLOBS};

/// A blob as it was uploaded.
#[derive(Clone)]
pub struct Blob {
    /// The bytes.
    pub bytes: Bytes,
    /// `true` if they are gzipped.
    pub gzipped: bool,
}

impl Blob {
    /// Returns the content.
    pub fn unpack(&self) -> Result<Bytes, Failed> {
        if !self.gzipped {
            return Ok(self.bytes.clone());
        }
        let content = files::read_at_most(GzDecoder::new(&self.bytes[..]), MAX_BLOB as u64);
        content.map(Bytes::from).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => {
                Failed::TooLarge(format!("A blob has at most {MAX_BLOB} bytes."))
            }
            _ => Failed::Refused(format!("Decompression failed: {error}")),
        })
    }
}

#[derive(Default)]
struct Kept {
    blobs: BTreeMap<[u8; 32], Blob>,
    /// The hashes, the oldest first.
    order: VecDeque<[u8; 32]>,
    bytes: usize,
}

/// The blobs of a server.
#[derive(Default)]
pub struct Blobs(Mutex<Kept>);

impl Blobs {
    /// Keeps a blob and returns its hash.
    pub fn add(&self, bytes: Vec<u8>, gzipped: bool) -> [u8; 32] {
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        let mut kept = lock(&self.0);
        let size = bytes.len();
        let blob = Blob { bytes: bytes.into(), gzipped };
        if kept.blobs.insert(hash, blob).is_none() {
            kept.order.push_back(hash);
            kept.bytes += size;
        }
        while kept.bytes > MAX_BLOBS
            && let Some(oldest) = kept.order.pop_front()
        {
            if let Some(dropped) = kept.blobs.remove(&oldest) {
                kept.bytes -= dropped.bytes.len();
            }
        }
        hash
    }

    /// Returns the blob with a hash.
    pub fn get(&self, hash: &[u8]) -> Option<Blob> {
        let hash: [u8; 32] = hash.try_into().ok()?;
        lock(&self.0).blobs.get(&hash).cloned()
    }
}
