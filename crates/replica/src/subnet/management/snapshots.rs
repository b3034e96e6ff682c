//! Snapshots: copies of a canister's code and memories, which can be restored.

use std::sync::Arc;

use candid::{Principal, Reserved};
use ic_management_canister_types::{
    CanisterIdRecord, DeleteCanisterSnapshotArgs, LoadCanisterSnapshotArgs, Snapshot as Info,
    TakeCanisterSnapshotArgs,
};
use sha2::{Digest, Sha256};

use super::call::{
    ChangeDetails, Failed, ManagementCall, Outcome, SnapshotSource, invalid, refusal, reply,
};
use super::methods::{Storing, check_controller, check_viewer};
use crate::cycles::{self, Saturation};
use crate::fault::{ErrorCode, HostError, Reject};
use crate::limits::{MAX_SNAPSHOTS, SNAPSHOT_INSTRUCTIONS};
use crate::module::Module;
use crate::replica::Replica;
use crate::rules::Rules;
use crate::state::State;
use crate::subnet::managed::{Code, Global, GlobalTimer, HookStatus, Snapshot};
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
pub(super) fn creation(member: &Member, bytes: Bytes) -> Cycles {
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
