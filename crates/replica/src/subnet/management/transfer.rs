//! Reading snapshots and uploading them, in parts.
//!
//! ```text
//!   read    metadata ──→ data: slices of module, heap and stable memory; chunks
//!   upload  metadata ──→ data, in any order ──→ load_canister_snapshot checks the whole
//! ```
//!
//! Uploaded metadata make a snapshot of zeros. It pays for its size from then on, and for each
//! chunk when it is uploaded. Snapshots that were taken cannot be changed.
//!
//! The management canister has the methods for users and canisters, with their fees. Whoever drives
//! the subnet can do the same between two rounds and without fees.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use candid::{Principal, Reserved};
use ic_management_canister_types::{
    ChunkHash, ReadCanisterSnapshotDataArgs, ReadCanisterSnapshotDataResult,
    ReadCanisterSnapshotMetadataArgs, SnapshotDataKind, SnapshotDataOffset,
    UploadCanisterSnapshotMetadataResult,
};

use super::call::{
    Failed, ManagementCall, Outcome, SnapshotSource, UploadCanisterSnapshotDataArgs, invalid, reply,
};
use super::code::{checked_chunk, store_error};
use super::methods::{Storing, check_viewer};
use super::snapshots::creation;
use crate::cycles;
use crate::fault::{ErrorCode, HostError, Reject};
use crate::limits::{MAX_SNAPSHOT_SLICE, READ_SNAPSHOT_INSTRUCTIONS, UPLOAD_INSTRUCTIONS};
use crate::memory::Image;
use crate::rules::Rules;
use crate::state::State;
use crate::subnet::managed::{CHUNK, Code, Global, Snapshot, SnapshotMetadata, UploadMetadataArgs};
use crate::subnet::member::{Member, Next};
use crate::subnet::subnet_state::Subnet;
use crate::units::{Bytes, Cycles, Instructions};

impl Subnet {
    pub(super) fn read_snapshot_metadata(&mut self, call: &ManagementCall) -> Outcome {
        let args: ReadCanisterSnapshotMetadataArgs = call.decode()?;
        let member = self.member(&args.canister_id)?;
        // The name in the replica's reject.
        let named = "read read_canister_snapshot_metadata snapshot metadata";
        check_viewer(member, &call.caller(), named)?;
        reply((metadata(&*self.own_snapshot(&args.canister_id, &args.snapshot_id)?),))
    }

    pub(super) fn read_snapshot_data(&mut self, call: &ManagementCall) -> Outcome {
        let args: ReadCanisterSnapshotDataArgs = call.decode()?;
        let (id, caller) = (args.canister_id, call.caller());
        check_viewer(self.member(&id)?, &caller, "read_canister_snapshot_data")?;
        let snapshot = self.own_snapshot(&id, &args.snapshot_id)?;
        let bytes = read_size(&args.kind)?;
        let member = self.member_mut(&id)?;
        pay(member, &caller, READ_SNAPSHOT_INSTRUCTIONS + Instructions(bytes.get()))?;
        let chunk = read(member.rules(), &snapshot, &args.kind)?;
        reply((ReadCanisterSnapshotDataResult { chunk },))
    }

    pub(super) fn upload_metadata(&mut self, call: &ManagementCall) -> Outcome {
        let args: UploadMetadataArgs = call.decode()?;
        let caller = call.caller();
        self.controlled(&args.canister_id, &caller)?;
        let snapshot_id = self.create_snapshot(&args, Some(&caller))?;
        reply((UploadCanisterSnapshotMetadataResult { snapshot_id },))
    }

    pub(super) fn upload_data(&mut self, call: &ManagementCall) -> Outcome {
        let UploadCanisterSnapshotDataArgs { canister_id: id, snapshot_id, kind, chunk } =
            call.decode()?;
        let caller = call.caller();
        let member = self.controlled(&id, &caller)?;
        let of_2026 = member.rules().set().snapshot_viewers;
        self.check_can_change(&id, &snapshot_id)?;
        let instructions = match kind {
            SnapshotDataOffset::WasmChunk if of_2026 => UPLOAD_INSTRUCTIONS,
            SnapshotDataOffset::WasmChunk => Instructions(CHUNK.get()),
            _ => Instructions(chunk.len() as u64),
        };
        pay(self.member_mut(&id)?, &caller, instructions)?;
        self.write_snapshot(&id, &snapshot_id, &kind, chunk, Some(&caller))?;
        match of_2026 {
            true => reply(()),
            false => reply(((),)),
        }
    }

    /// Returns the description of a canister's snapshot.
    ///
    /// # Errors
    ///
    /// If there is no such canister or snapshot.
    pub fn snapshot_metadata(
        &self,
        canister: &Principal,
        snapshot: &[u8],
    ) -> Result<SnapshotMetadata, Reject> {
        Ok(metadata(&*self.own_snapshot(canister, snapshot)?))
    }

    /// Returns at most 2 000 000 bytes of a snapshot's module, heap or stable memory, or a chunk.
    ///
    /// # Errors
    ///
    /// If there is no such canister or snapshot, the snapshot has no such bytes, or they are too
    /// many.
    pub fn snapshot_data(
        &self,
        canister: &Principal,
        snapshot: &[u8],
        kind: &SnapshotDataKind,
    ) -> Result<Vec<u8>, Reject> {
        let snapshot = self.own_snapshot(canister, snapshot)?;
        read_size(kind)?;
        read(self.replica.rules(), &snapshot, kind).map_err(rejected)
    }

    /// Returns the chunks of a canister's snapshot by their SHA-256.
    ///
    /// # Errors
    ///
    /// If there is no such canister or snapshot.
    pub fn snapshot_chunks(
        &self,
        canister: &Principal,
        snapshot: &[u8],
    ) -> Result<BTreeMap<[u8; 32], Arc<Vec<u8>>>, Reject> {
        Ok(self.own_snapshot(canister, snapshot)?.chunks.clone())
    }

    /// Creates a snapshot of zeros that fits a description, of which source, time, version and
    /// chunks do not matter. Returns its id. `replaced` is the snapshot that it replaces.
    ///
    /// # Errors
    ///
    /// If there is no such canister or snapshot, the canister has 10 snapshots already or has too
    /// few cycles to store another, or the description is not valid.
    pub fn upload_snapshot_metadata(
        &mut self,
        canister: &Principal,
        replaced: Option<&[u8]>,
        metadata: &SnapshotMetadata,
    ) -> Result<Vec<u8>, Reject> {
        let metadata = metadata.clone();
        let args = UploadMetadataArgs {
            canister_id: *canister,
            replace_snapshot: replaced.map(<[u8]>::to_vec),
            wasm_module_size: metadata.wasm_module_size,
            globals: metadata.globals,
            wasm_memory_size: metadata.wasm_memory_size,
            stable_memory_size: metadata.stable_memory_size,
            certified_data: metadata.certified_data,
            global_timer: metadata.global_timer,
            on_low_wasm_memory_hook_status: metadata.on_low_wasm_memory_hook_status,
        };
        self.create_snapshot(&args, None).map_err(rejected)
    }

    /// Writes a part of an uploaded snapshot, or adds a chunk to it.
    ///
    /// # Errors
    ///
    /// If there is no such canister or snapshot, the snapshot was taken, the part exceeds it, the
    /// chunk is too large, or there are 100 chunks already.
    pub fn upload_snapshot_data(
        &mut self,
        canister: &Principal,
        snapshot: &[u8],
        kind: &SnapshotDataOffset,
        data: &[u8],
    ) -> Result<(), Reject> {
        self.check_can_change(canister, snapshot)?;
        self.write_snapshot(canister, snapshot, kind, data.to_vec(), None).map_err(rejected)
    }

    /// Creates a snapshot of zeros. The canister pays for the work if there is a caller.
    fn create_snapshot(
        &mut self,
        args: &UploadMetadataArgs,
        caller: Option<&Principal>,
    ) -> Result<Vec<u8>, Failed> {
        let (id, time, saturation) = (args.canister_id, self.time, self.saturation());
        let member = self.member(&id)?;
        args.check(member.rules(), member.wasm64()).map_err(|rule| {
            let message = format!("Snapshot Metadata contains invalid data: {rule:?}");
            invalid(ErrorCode::InvalidManagementPayload, message)
        })?;
        let less = self.replaced(&id, args.replace_snapshot.as_deref())?;
        let member = self.member_mut(&id)?;
        let bytes = args.bytes();
        let cost = caller.map_or(Cycles(0), |_| creation(member, bytes));
        let heap = zeros(args.wasm_memory_size);
        let stable = zeros(args.stable_memory_size);
        let mut empty = State::empty().map_err(HostError::from)?;
        empty.certified_data.clone_from(&args.certified_data);
        let id_or_caller = caller.copied().unwrap_or(id);
        member.store(&id_or_caller, Storing { more: bytes, less, cost }, saturation)?;
        let module = vec![0; usize::try_from(args.wasm_module_size).unwrap_or_default()];
        let snapshot = Snapshot {
            code: Code::Uploaded(module, args.globals.clone()),
            state: State { heap, stable, ..empty },
            version: member.canister.version(),
            timer: args.global_timer,
            hook: args.on_low_wasm_memory_hook_status,
            chunks: BTreeMap::new(),
            taken_at: time,
            bytes,
            loaded: false,
        };
        let (key, _) = member.add_snapshot(snapshot, args.replace_snapshot.as_deref());
        Ok(key)
    }

    /// Checks that a snapshot of a canister can be changed.
    fn check_can_change(&self, canister: &Principal, key: &[u8]) -> Result<(), Reject> {
        let snapshot = self.own_snapshot(canister, key)?;
        let immutable = self.replica_of(canister).rules().set().loaded_snapshots_are_immutable;
        match snapshot.code {
            Code::Uploaded(..) if !(immutable && snapshot.loaded) => Ok(()),
            _ => Err(invalid(
                ErrorCode::CanisterSnapshotImmutable,
                "Only canister snapshots created by metadata upload can be mutated.",
            )),
        }
    }

    /// Writes a part of a snapshot, which the canister has.
    fn write_snapshot(
        &mut self,
        id: &Principal,
        key: &[u8],
        kind: &SnapshotDataOffset,
        data: Vec<u8>,
        caller: Option<&Principal>,
    ) -> Result<(), Failed> {
        let saturation = self.saturation();
        if let SnapshotDataOffset::WasmChunk = kind {
            self.check_stored(data.len())?;
        }
        let member = self.member_mut(id)?;
        let new_chunk = match kind {
            SnapshotDataOffset::WasmChunk => {
                let chunks = member.managed.snapshots.get(key).map(|snapshot| &snapshot.chunks);
                let rules = member.rules();
                let hash = chunks.map(|chunks| checked_chunk(rules, chunks, &data));
                match hash.transpose()?.flatten() {
                    Some(hash) => Some(hash),
                    None => return Ok(()),
                }
            }
            _ => None,
        };
        if new_chunk.is_some() {
            let storing = Storing { more: CHUNK, ..Storing::default() };
            member.store(caller.unwrap_or(id), storing, saturation)?;
        }
        let Some(snapshot) = member.managed.snapshots.get_mut(key) else { return Ok(()) };
        let snapshot = Arc::make_mut(snapshot);
        match *kind {
            SnapshotDataOffset::WasmModule { offset } => {
                if let Code::Uploaded(module, _) = &mut snapshot.code {
                    let range = slice(module.len(), offset, data.len() as u64)?;
                    module[range].copy_from_slice(&data);
                }
            }
            SnapshotDataOffset::WasmMemory { offset } => {
                write(&mut snapshot.state.heap, offset, &data)?;
            }
            SnapshotDataOffset::StableMemory { offset } => {
                write(&mut snapshot.state.stable, offset, &data)?;
            }
            SnapshotDataOffset::WasmChunk => {
                if let Some(hash) = new_chunk {
                    snapshot.chunks.insert(hash, Arc::new(data));
                    snapshot.bytes += CHUNK;
                }
            }
        }
        member.count_stored();
        Ok(())
    }
}

/// Pays for instructions, unless the canister would freeze.
fn pay(member: &mut Member, caller: &Principal, instructions: Instructions) -> Result<(), Reject> {
    let cost = cycles::management(member.rules(), instructions);
    member.withdraw(cost, Next::Other).map_err(|missing| member.cannot_pay(caller, missing))
}

/// The description of a snapshot.
fn metadata(snapshot: &Snapshot) -> SnapshotMetadata {
    let Snapshot { code, state, chunks, .. } = snapshot;
    let (source, globals) = match code {
        Code::Taken(module) => {
            // Before the first message, globals have their initial values.
            let values = module.globals().iter().filter_map(|global| {
                let value = global.mutable.and_then(|position| state.globals.get(position));
                value.copied().or(global.initial)
            });
            (SnapshotSource::TakenFromCanister(Reserved), values.map(Global::from).collect())
        }
        Code::Uploaded(_, globals) => (SnapshotSource::MetadataUpload(Reserved), globals.clone()),
    };
    SnapshotMetadata {
        source,
        taken_at_timestamp: snapshot.taken_at,
        wasm_module_size: code.bytes().len() as u64,
        globals,
        wasm_memory_size: state.heap.size() as u64,
        stable_memory_size: state.stable.size() as u64,
        wasm_chunk_store: chunks.keys().map(|hash| ChunkHash { hash: hash.to_vec() }).collect(),
        canister_version: snapshot.version,
        certified_data: state.certified_data.clone(),
        global_timer: snapshot.timer,
        on_low_wasm_memory_hook_status: snapshot.hook,
    }
}

/// Bytes that reading a part costs.
fn read_size(kind: &SnapshotDataKind) -> Result<Bytes, Reject> {
    let size = match kind {
        SnapshotDataKind::WasmChunk { .. } => return Ok(CHUNK),
        SnapshotDataKind::WasmModule { size, .. }
        | SnapshotDataKind::WasmMemory { size, .. }
        | SnapshotDataKind::StableMemory { size, .. } => Bytes(*size),
    };
    if size > MAX_SNAPSHOT_SLICE {
        let message = format!("Requested slice too large: {size} > {MAX_SNAPSHOT_SLICE}");
        return Err(invalid(ErrorCode::InvalidManagementPayload, message));
    }
    Ok(size)
}

/// Reads a part of a snapshot.
fn read(rules: Rules, snapshot: &Snapshot, kind: &SnapshotDataKind) -> Result<Vec<u8>, Failed> {
    let memory = |image: &Image, offset, size| {
        let range = slice(image.size(), offset, size)?;
        Ok(image.bytes(range).map_err(HostError::from)?)
    };
    match kind {
        SnapshotDataKind::WasmModule { offset, size } => {
            let module = snapshot.code.bytes();
            Ok(module[slice(module.len(), *offset, *size)?].to_vec())
        }
        SnapshotDataKind::WasmMemory { offset, size } => {
            memory(&snapshot.state.heap, *offset, *size)
        }
        SnapshotDataKind::StableMemory { offset, size } => {
            memory(&snapshot.state.stable, *offset, *size)
        }
        SnapshotDataKind::WasmChunk { hash } => {
            let wrong = format!("Bytes {hash:02x?} are not a valid WasmChunkHash.");
            let wrong = || store_error(rules, wrong);
            let key: [u8; 32] = hash.as_slice().try_into().map_err(|_| wrong())?;
            let missing = || store_error(rules, format!("WasmChunkHash {hash:02x?} not found."));
            Ok(snapshot.chunks.get(&key).ok_or_else(missing)?.to_vec())
        }
    }
}

fn write(image: &mut Image, offset: u64, data: &[u8]) -> Result<(), Failed> {
    let range = slice(image.size(), offset, data.len() as u64)?;
    image.write(range.start, data).map_err(HostError::from)?;
    Ok(())
}

/// An image of this number of zeros.
fn zeros(bytes: u64) -> Image {
    Image::zeros(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// The range of a slice of something that has `length` bytes.
fn slice(length: usize, offset: u64, size: u64) -> Result<Range<usize>, Reject> {
    let end = offset.checked_add(size).filter(|end| *end <= length as u64);
    let range = end.and_then(|end| Some(offset.try_into().ok()?..end.try_into().ok()?));
    range.ok_or_else(|| {
        let message = format!(
            "Invalid subslice into wasm module / main memory / stable memory: offset: {offset}, \
             size: {size}"
        );
        invalid(ErrorCode::InvalidManagementPayload, message)
    })
}

/// The reject of a failure, which may be one of this machine.
fn rejected(failed: Failed) -> Reject {
    match failed {
        Failed::Reject(reject) => reject,
        Failed::Host(error) => invalid(ErrorCode::CanisterOutOfMemory, error.to_string()),
    }
}
