//! Canister snapshots in folders, in the form of PocketIC servers:
//!
//! ```text
//!   metadata.json
//!   wasm_module.bin   wasm_memory.bin
//!   stable_memory.bin             unless it is empty
//!   wasm_chunk_store/HASH.bin     for each chunk
//! ```
//!
//! A download that fails leaves nothing behind.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use candid::Principal;
use ic_management_canister_types::{SnapshotDataKind, SnapshotDataOffset};
use stablebench_replica::files;
use stablebench_replica::subnet::{SnapshotMetadata, Subnet};

use super::instance::Instance;
use super::types::Failed;

/// The most bytes of a part.
const PART: u64 = 2_000_000;
/// The most bytes of a description, several times those of the largest.
const MAX_METADATA: u64 = 16 << 20;
/// The most bytes of a chunk.
const MAX_CHUNK: u64 = 1 << 20;

const METADATA: &str = "metadata.json";
const CHUNKS: &str = "wasm_chunk_store";

/// A part of a snapshot that has a file.
#[derive(Clone, Copy)]
struct Data {
    file: &'static str,
    size: fn(&SnapshotMetadata) -> u64,
    kind: fn(u64, u64) -> SnapshotDataKind,
    offset: fn(u64) -> SnapshotDataOffset,
}

const DATA: [Data; 3] = [
    Data {
        file: "wasm_module.bin",
        size: |metadata| metadata.wasm_module_size,
        kind: |offset, size| SnapshotDataKind::WasmModule { offset, size },
        offset: |offset| SnapshotDataOffset::WasmModule { offset },
    },
    Data {
        file: "wasm_memory.bin",
        size: |metadata| metadata.wasm_memory_size,
        kind: |offset, size| SnapshotDataKind::WasmMemory { offset, size },
        offset: |offset| SnapshotDataOffset::WasmMemory { offset },
    },
    Data {
        file: "stable_memory.bin",
        size: |metadata| metadata.stable_memory_size,
        kind: |offset, size| SnapshotDataKind::StableMemory { offset, size },
        offset: |offset| SnapshotDataOffset::StableMemory { offset },
    },
];

impl Instance {
    /// Writes a snapshot to a folder, which is created or empty.
    pub fn download_snapshot(
        &self,
        canister: &Principal,
        snapshot: &[u8],
        folder: &Path,
    ) -> Result<(), Failed> {
        let made = empty_folder(folder)?;
        let written = self.host.exclusively(|subnet| download(subnet, canister, snapshot, folder));
        if written.is_err() {
            // What cannot be removed now is left.
            let _ = match made {
                true => fs::remove_dir_all(folder),
                false => clear(folder),
            };
        }
        written
    }

    /// Uploads the snapshot in a folder, and returns its id.
    pub fn upload_snapshot(
        &self,
        canister: &Principal,
        replaced: Option<&[u8]>,
        folder: &Path,
    ) -> Result<Vec<u8>, Failed> {
        check(folder).map_err(failed)?;
        self.host.exclusively(|subnet| upload(subnet, canister, replaced, folder))
    }
}

fn failed(reason: impl std::fmt::Display) -> Failed {
    Failed::Refused(format!("CanisterSnapshotError({:?})", reason.to_string()))
}

/// Refuses paths whose meaning depends on where the server runs.
fn check(folder: &Path) -> Result<(), String> {
    let climbs = folder.components().any(|part| part == Component::ParentDir);
    if !folder.is_absolute() || climbs {
        return Err(format!("{} is not an absolute path without ..", folder.display()));
    }
    Ok(())
}

/// Creates a folder, or checks that it is empty. Returns `true` if it was created.
fn empty_folder(folder: &Path) -> Result<bool, Failed> {
    let invalid =
        |reason: String| Failed::Refused(format!("InvalidCanisterSnapshotDirectory({reason:?})"));
    check(folder).map_err(invalid)?;
    let exists = folder.exists();
    fs::create_dir_all(folder)
        .map_err(|error| invalid(format!("Could not create snapshot directory: {error}")))?;
    let mut entries = fs::read_dir(folder)
        .map_err(|error| invalid(format!("Could not read snapshot directory: {error}")))?;
    match entries.next() {
        Some(_) => Err(invalid("Snapshot directory is not empty".to_owned())),
        None => Ok(!exists),
    }
}

/// Removes what a download has written.
fn clear(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

fn download(
    subnet: &Subnet,
    canister: &Principal,
    snapshot: &[u8],
    folder: &Path,
) -> Result<(), Failed> {
    let cannot_write = |path: &Path, error: &dyn std::fmt::Display| {
        failed(format!("Could not write {}: {error}", path.display()))
    };
    // The folder was empty. A link that somebody else has put there since then is not followed.
    let create = |path: &Path| File::create_new(path).map_err(|error| cannot_write(path, &error));
    let write = |path: PathBuf, bytes: &[u8]| {
        create(&path)?.write_all(bytes).map_err(|error| cannot_write(&path, &error))
    };
    let rejected = |reject: stablebench_replica::Reject| failed(reject.message);
    let metadata = subnet.snapshot_metadata(canister, snapshot).map_err(rejected)?;
    let json = serde_json::to_vec_pretty(&metadata).map_err(failed)?;
    write(folder.join(METADATA), &json)?;
    for data in DATA {
        let all = (data.size)(&metadata);
        if all == 0 {
            continue;
        }
        let path = folder.join(data.file);
        let mut file = create(&path)?;
        let mut offset = 0;
        while offset < all {
            let size = PART.min(all - offset);
            let kind = (data.kind)(offset, size);
            let part = subnet.snapshot_data(canister, snapshot, &kind).map_err(rejected)?;
            file.write_all(&part).map_err(|error| cannot_write(&path, &error))?;
            offset += size;
        }
    }
    let chunks = subnet.snapshot_chunks(canister, snapshot).map_err(rejected)?;
    if chunks.is_empty() {
        return Ok(());
    }
    let store = folder.join(CHUNKS);
    fs::create_dir(&store).map_err(|error| cannot_write(&store, &error))?;
    for (hash, chunk) in chunks {
        write(store.join(format!("{}.bin", hex::encode(hash))), &chunk)?;
    }
    Ok(())
}

fn upload(
    subnet: &mut Subnet,
    canister: &Principal,
    replaced: Option<&[u8]>,
    folder: &Path,
) -> Result<Vec<u8>, Failed> {
    let cannot_read = |path: &Path, error: &dyn std::fmt::Display| {
        failed(format!("Could not read {}: {error}", path.display()))
    };
    let rejected = |reject: stablebench_replica::Reject| failed(reject.message);
    let path = folder.join(METADATA);
    let json = files::read(&path, MAX_METADATA).map_err(|error| cannot_read(&path, &error))?;
    let metadata: SnapshotMetadata =
        serde_json::from_slice(&json).map_err(|error| cannot_read(&path, &error))?;
    let uploaded = subnet.upload_snapshot_metadata(canister, replaced, &metadata);
    let id = uploaded.map_err(rejected)?;
    for data in DATA {
        let all = (data.size)(&metadata);
        if all == 0 {
            continue;
        }
        let path = folder.join(data.file);
        let mut file = files::open(&path).map_err(|error| cannot_read(&path, &error))?;
        let mut offset = 0;
        while offset < all {
            let mut part = vec![0; PART.min(all - offset) as usize];
            file.read_exact(&mut part).map_err(|error| cannot_read(&path, &error))?;
            let kind = (data.offset)(offset);
            subnet.upload_snapshot_data(canister, &id, &kind, &part).map_err(rejected)?;
            offset += part.len() as u64;
        }
    }
    for chunk in &metadata.wasm_chunk_store {
        let path = folder.join(CHUNKS).join(format!("{}.bin", hex::encode(&chunk.hash)));
        let bytes = files::read(&path, MAX_CHUNK).map_err(|error| cannot_read(&path, &error))?;
        let kind = SnapshotDataOffset::WasmChunk;
        subnet.upload_snapshot_data(canister, &id, &kind, &bytes).map_err(rejected)?;
    }
    Ok(id)
}
