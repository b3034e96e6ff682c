//! Snapshots: copies of a canister's code and memories, which can be restored, read and uploaded.
//!
//! They are read and uploaded in parts:
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
    CanisterIdRecord, ChunkHash, DeleteCanisterSnapshotArgs, LoadCanisterSnapshotArgs,
    ReadCanisterSnapshotDataArgs, ReadCanisterSnapshotDataResult, ReadCanisterSnapshotMetadataArgs,
    Snapshot as Info, SnapshotDataKind, SnapshotDataOffset, TakeCanisterSnapshotArgs,
    UploadCanisterSnapshotMetadataResult,
};
use sha2::{Digest, Sha256};

use super::call::{
    ChangeDetails, Failed, ManagementCall, Outcome, SnapshotSource, UploadCanisterSnapshotDataArgs,
    invalid, refusal, reply,
};
use super::code::{checked_chunk, store_error};
use super::methods::{Storing, check_controller, check_viewer};
use crate::cycles::{self, Saturation};
use crate::fault::{ErrorCode, HostError, Reject};
use crate::memory::Image;
use crate::module::Module;
use crate::replica::Replica;
use crate::rules::{
    MAX_SNAPSHOT_SLICE, MAX_SNAPSHOTS, READ_SNAPSHOT_INSTRUCTIONS, Rules, SNAPSHOT_INSTRUCTIONS,
    UPLOAD_INSTRUCTIONS,
};
use crate::state::State;
use crate::subnet::managed::{
    CHUNK, Code, Global, GlobalTimer, HookStatus, Snapshot, SnapshotMetadata, UploadMetadataArgs,
};
use crate::subnet::member::{Member, Next};
use crate::subnet::subnet_state::Subnet;
use crate::units::{Bytes, Cycles, Instructions, WASM_PAGE};
use crate::validate::Purpose;

impl Subnet {
    pub(super) fn take_snapshot(&mut self, call: &ManagementCall) -> Outcome {
        let args: TakeCanisterSnapshotArgs = call.decode()?;
        let (id, caller, time) = (args.canister_id, call.caller(), self.time);
        let saturation = self.saturation();
        self.controlled(&id, &caller)?;
        let replaced = self.replaced(&id, args.replace_snapshot.as_deref())?;
        let member = self.member_mut(&id)?;
        let canister = &member.canister;
        let Some(module) = canister.module().cloned() else {
            let code = ErrorCode::CanisterRejectedMessage;
            let message = format!("Failed to create snapshot for empty canister {id}:");
            return Err(Reject { code, message }.into());
        };
        let bytes = canister.sizes(member.rules()).snapshot()
            + member.managed.chunk_bytes()
            + Bytes(canister.certified_data().len() as u64);
        let cost = creation(member, bytes);
        member.store(&caller, Storing { more: bytes, less: replaced, cost }, saturation)?;
        let hook = match member.hook() {
            // A hook that a frozen canister could not run.
            HookStatus::ConditionNotSatisfied
                if member.is_memory_low() && member.rules().set().snapshot_viewers =>
            {
                HookStatus::Ready
            }
            hook => hook,
        };
        let canister = &member.canister;
        let snapshot = Snapshot {
            code: Code::Taken(module),
            state: canister.state.clone(),
            version: canister.version(),
            timer: Some(GlobalTimer::of(canister.state.timer)),
            hook: Some(hook),
            chunks: member.managed.chunks.clone(),
            taken_at: time,
            bytes,
            loaded: false,
        };
        let (_, described) = member.add_snapshot(snapshot, args.replace_snapshot.as_deref());
        reply((described,))
    }

    pub(super) fn load_snapshot(&mut self, call: &ManagementCall) -> Outcome {
        let args: LoadCanisterSnapshotArgs = call.decode()?;
        let (id, caller, time) = (args.canister_id, call.caller(), self.time);
        let (replica, saturation) = (self.replica.clone(), self.saturation());
        let key = &args.snapshot_id;
        self.controlled(&id, &caller)?;
        let owner = self.members.iter().find(|(_, it)| it.managed.snapshots.contains_key(key));
        let Some((owner, member)) = owner else {
            return Err(missing(replica.rules(), &id, key).into());
        };
        let owner = *owner;
        if owner != id && check_controller(member, &caller).is_err() {
            return Err(refusal(
                replica.rules(),
                ErrorCode::CanisterRejectedMessage,
                format!(
                    "Only a controller of the canister that snapshot {} belongs to can load it on \
                     canister {id}. Sender: {caller}.",
                    shown(&owner, key)
                ),
                "Make sure you are a controller of the canister that the snapshot belongs to. See \
                 documentation: canister-snapshot-not-controller",
                "",
            )
            .into());
        }
        let snapshot = find(member, key)?;
        let member = self.member_mut(&id)?;
        let kept = (member.canister.fork(), member.managed.chunks.clone(), member.hook());
        if let Err(failed) = load(member, &snapshot, &caller, &replica, saturation) {
            let hook;
            (member.canister, member.managed.chunks, hook) = kept;
            member.set_hook(hook);
            member.count_stored();
            return Err(failed);
        }
        member.canister.count_in_history(None);
        let source = match &snapshot.code {
            Code::Taken(_) => SnapshotSource::TakenFromCanister(Reserved),
            Code::Uploaded(..) => SnapshotSource::MetadataUpload(Reserved),
        };
        let details = ChangeDetails::LoadSnapshot {
            canister_version: snapshot.version,
            snapshot_id: key.clone(),
            taken_at_timestamp: snapshot.taken_at,
            source,
            from_canister_id: (owner != id).then_some(owner),
        };
        let version = member.canister.version();
        let origin = call.change_origin(args.sender_canister_version);
        member.managed.add_change(time, version, origin, details);
        drop(snapshot);
        if let Some(owner) = self.members.get_mut(&owner)
            && let Some(snapshot) = owner.managed.snapshots.get_mut(key)
        {
            Arc::make_mut(snapshot).loaded = true;
        }
        reply(())
    }

    pub(super) fn list_snapshots(&mut self, call: &ManagementCall) -> Outcome {
        let args: CanisterIdRecord = call.decode()?;
        let member = self.member(&args.canister_id)?;
        check_viewer(member, &call.caller(), "list_canister_snapshots")?;
        let snapshots = &member.managed.snapshots;
        let infos: Vec<Info> = snapshots.iter().map(|(id, it)| info(id, it)).collect();
        reply((infos,))
    }

    pub(super) fn delete_snapshot(&mut self, call: &ManagementCall) -> Outcome {
        let args: DeleteCanisterSnapshotArgs = call.decode()?;
        let (id, key) = (args.canister_id, &args.snapshot_id);
        self.controlled(&id, &call.caller())?;
        self.own_snapshot(&id, key)?;
        let member = self.member_mut(&id)?;
        member.managed.snapshots.remove(key);
        member.count_stored();
        reply(())
    }

    /// Returns a snapshot of a canister.
    pub(super) fn own_snapshot(
        &self,
        canister: &Principal,
        key: &[u8],
    ) -> Result<Arc<Snapshot>, Reject> {
        let member = self.member(canister)?;
        let exists = |it: &Member| it.managed.snapshots.contains_key(key);
        if !member.rules().set().snapshot_viewers
            && !exists(member)
            && self.members.values().any(exists)
        {
            return Err(refusal(
                member.rules(),
                ErrorCode::CanisterRejectedMessage,
                format!(
                    "The snapshot {} does not belong to canister {canister}.",
                    shown(canister, key)
                ),
                "Use the `list_canister_snapshot` API to see which snapshots are present.",
                "canister-snapshot-invalid-ownership",
            ));
        }
        find(member, key)
    }

    /// Returns the bytes of the snapshot that a new one replaces, or checks that there is room for
    /// another.
    pub(super) fn replaced(
        &self,
        canister: &Principal,
        replaced: Option<&[u8]>,
    ) -> Result<Bytes, Reject> {
        if let Some(key) = replaced {
            return Ok(self.own_snapshot(canister, key)?.bytes);
        }
        let member = self.member(canister)?;
        match member.managed.snapshots.len() {
            MAX_SNAPSHOTS.. => Err(refusal(
                member.rules(),
                ErrorCode::CanisterRejectedMessage,
                format!(
                    "Canister {canister} has reached the maximum number of snapshots allowed: \
                     {MAX_SNAPSHOTS}."
                ),
                "Consider deleting an unnecessary snapshot of the specified canister before \
                 creating a new one. See documentation: canister-snapshot-limit-exceeded",
                "",
            )),
            _ => Ok(Bytes(0)),
        }
    }
}

impl Member {
    /// Adds a snapshot in place of another one, and returns its id and its description.
    pub(super) fn add_snapshot(
        &mut self,
        snapshot: Snapshot,
        replaced: Option<&[u8]>,
    ) -> (Vec<u8>, Info) {
        if let Some(old) = replaced {
            self.managed.snapshots.remove(old);
        }
        // A number and the canister's id.
        let number = self.managed.snapshots_taken.to_be_bytes();
        self.managed.snapshots_taken += 1;
        let key = [number.as_slice(), self.canister.id().as_slice()].concat();
        let described = info(&key, &snapshot);
        self.managed.snapshots.insert(key.clone(), Arc::new(snapshot));
        self.count_stored();
        (key, described)
    }
}

/// The price of taking a snapshot of this size, or of uploading its metadata.
fn creation(member: &Member, bytes: Bytes) -> Cycles {
    cycles::management(member.rules(), SNAPSHOT_INSTRUCTIONS + Instructions(bytes.get()))
}

/// Loads a snapshot into a canister, which is in between if it fails.
fn load(
    member: &mut Member,
    snapshot: &Snapshot,
    caller: &Principal,
    replica: &Replica,
    saturation: Saturation,
) -> Result<(), Failed> {
    let (rules, before) = (replica.rules(), member.used());
    // Compiling is not counted.
    let start = match rules.set().snapshot_viewers {
        false => cycles::execution(rules, SNAPSHOT_INSTRUCTIONS, false),
        true => cycles::execution(rules, Instructions(0), false),
    };
    member.withdraw(start, Next::Other).map_err(|missing| member.cannot_pay(caller, missing))?;
    let module = match &snapshot.code {
        Code::Taken(module) => module.clone(),
        Code::Uploaded(bytes, globals) => {
            let hash = Sha256::digest(bytes).into();
            let module = replica.compile_as(hash, bytes, Purpose::Subnet);
            let id = member.canister.id();
            let module = module.map_err(|fault| fault.reject_in_full(&id, rules))?;
            check_fits(&module, &snapshot.state, globals)?;
            module
        }
    };
    let bytes = Instructions(snapshot.bytes.get());
    let rest = match rules.set().snapshot_viewers {
        false => cycles::execution(rules, bytes, module.is_64_bit()),
        true => cycles::management(rules, SNAPSHOT_INSTRUCTIONS + bytes),
    };
    let mut state = State { timer: member.canister.state.timer, ..snapshot.state.clone() };
    if let Code::Uploaded(_, globals) = &snapshot.code {
        state = uploaded_state(&module, state, globals)?;
        if let Some(timer) = snapshot.timer {
            state.timer = timer.at();
        }
        if let Some(hook) = snapshot.hook {
            member.set_hook(hook);
        }
    }
    member.canister.replace(module, state);
    member.managed.chunks.clone_from(&snapshot.chunks);
    member.count_stored();
    if matches!(snapshot.code, Code::Uploaded(..)) {
        let is_low = member.is_memory_low();
        if !snapshot.hook.is_none_or(|hook| hook.fits(is_low)) {
            return Err(inconsistent(format!(
                "Hook status ({:?}) of uploaded snapshot is inconsistent with the canister's state \
                 (hook condition satisfied: {is_low}).",
                snapshot.hook
            ))
            .into());
        }
    }
    member.pay_for_loading(caller, before, rest, saturation)?;
    Ok(())
}

/// Checks that uploaded globals and an uploaded heap belong to the uploaded module.
fn check_fits(module: &Module, state: &State, globals: &[Global]) -> Result<(), Reject> {
    let wanted = module.globals().iter().map(|global| global.ty);
    if !wanted.eq(globals.iter().map(|global| global.ty())) {
        let message =
            "Wasm exported globals of canister module and snapshot metadata do not match.";
        return Err(inconsistent(message.to_owned()));
    }
    let (heap, most) = (state.heap.size() as u64 / WASM_PAGE, module.largest_heap());
    // The replica does not expect this and fails.
    match heap > most {
        true => Err(inconsistent(format!(
            "the snapshot has a heap of {heap} Wasm pages, but the memory of its module has at \
             most {most}"
        ))),
        false => Ok(()),
    }
}

/// The state of a canister with an uploaded snapshot.
fn uploaded_state(module: &Module, state: State, globals: &[Global]) -> Result<State, Failed> {
    let State { heap, stable, certified_data, timer, .. } = state;
    // A heap that is smaller than that of a new canister grows to it.
    let mut state = State::initial(module.rewritten(), stable).map_err(HostError::from)?;
    state.keep_heap(heap).map_err(HostError::from)?;
    let mut values: Vec<_> = module
        .globals()
        .iter()
        .zip(globals)
        .filter_map(|(global, value)| Some((global.mutable?, value.value())))
        .collect();
    // Of a global with several exports, the last value counts.
    values.sort_by_key(|(position, _)| *position);
    values.reverse();
    values.dedup_by_key(|(position, _)| *position);
    values.reverse();
    state.globals = values.into_iter().map(|(_, value)| value).collect();
    Ok(State { certified_data, timer, ..state })
}

fn inconsistent(message: String) -> Reject {
    invalid(ErrorCode::InvalidManagementPayload, message)
}

fn find(member: &Member, id: &[u8]) -> Result<Arc<Snapshot>, Reject> {
    let snapshot = member.managed.snapshots.get(id);
    snapshot.cloned().ok_or_else(|| missing(member.rules(), &member.canister.id(), id))
}

fn missing(rules: Rules, canister: &Principal, id: &[u8]) -> Reject {
    refusal(
        rules,
        ErrorCode::CanisterSnapshotNotFound,
        format!("Could not find the snapshot ID {} for canister {canister}.", shown(canister, id)),
        "Use the `list_canister_snapshot` API to see which snapshots are present.",
        "canister-snapshot-not-found",
    )
}

/// A snapshot's id as the replica shows it.
fn shown(canister: &Principal, id: &[u8]) -> String {
    let number = id.first_chunk().copied().map(u64::from_be_bytes);
    let owner = id.get(8..).and_then(|id| Principal::try_from_slice(id).ok());
    format!("{}-{}", owner.unwrap_or(*canister), number.unwrap_or_default())
}

fn info(id: &[u8], snapshot: &Snapshot) -> Info {
    let Snapshot { taken_at, bytes, .. } = snapshot;
    Info { id: id.to_vec(), taken_at_timestamp: *taken_at, total_size: bytes.get() }
}

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
