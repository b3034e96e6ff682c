//! Snapshots: copies of a canister's code and memories, which can be restored.

use std::sync::Arc;

use candid::{Principal, Reserved};
use ic_management_canister_types::{
    CanisterIdRecord, DeleteCanisterSnapshotArgs, LoadCanisterSnapshotArgs, Snapshot as Info,
    SnapshotVisibility, TakeCanisterSnapshotArgs,
};

use super::types::{ChangeDetails, SnapshotSource};
use super::{ManagementCall, Outcome, check_controller, refusal, reply};
use crate::cycles;
use crate::fault::{ErrorCode, Reject};
use crate::limits::{MAX_SNAPSHOTS, SNAPSHOT_INSTRUCTIONS};
use crate::subnet::Subnet;
use crate::subnet::funds::Next;
use crate::subnet::managed::Snapshot;
use crate::subnet::member::Member;
use crate::units::{Bytes, Cycles, Instructions};

impl Subnet {
    pub(super) fn take_snapshot(&mut self, call: &ManagementCall) -> Outcome {
        let args: TakeCanisterSnapshotArgs = call.decode()?;
        let (id, time, saturation) = (args.canister_id, self.time, self.saturation());
        let member = self.controlled(&id, &call.caller())?;
        let replaced = match &args.replace_snapshot {
            Some(old) => find(member, old)?.bytes,
            None if member.managed.snapshots.len() >= MAX_SNAPSHOTS => {
                return Err(refusal(
                    ErrorCode::CanisterRejectedMessage,
                    format!(
                        "Canister {id} has reached the maximum number of snapshots allowed: \
                         {MAX_SNAPSHOTS}."
                    ),
                    "Consider deleting an unnecessary snapshot of the specified canister before \
                     creating a new one. See documentation: canister-snapshot-limit-exceeded",
                    "",
                )
                .into());
            }
            None => Bytes(0),
        };
        let canister = &member.canister;
        if canister.module().is_none() {
            let code = ErrorCode::CanisterRejectedMessage;
            let message = format!("Failed to create snapshot for empty canister {id}:");
            return Err(Reject { code, message }.into());
        }
        let bytes = canister.sizes().snapshot()
            + member.managed.chunk_bytes()
            + Bytes(canister.certified_data().len() as u64);
        if bytes > replaced {
            member.store(bytes - replaced, saturation)?;
        }
        pay(member, call, Bytes(bytes.get()))?;
        if let Some(old) = &args.replace_snapshot {
            member.managed.snapshots.remove(old);
        }
        // A number and the canister's id.
        let number = member.managed.snapshots_taken.to_be_bytes();
        member.managed.snapshots_taken += 1;
        let key = [number.as_slice(), id.as_slice()].concat();
        let (canister, chunks) = (member.canister.fork(), member.managed.chunks.clone());
        let snapshot = Snapshot { canister, chunks, taken_at: time, bytes };
        let described = info(&key, &snapshot);
        member.managed.snapshots.insert(key, Arc::new(snapshot));
        member.count_stored();
        reply((described,))
    }

    pub(super) fn load_snapshot(&mut self, call: &ManagementCall) -> Outcome {
        let args: LoadCanisterSnapshotArgs = call.decode()?;
        let (id, caller, time) = (args.canister_id, call.caller(), self.time);
        let key = &args.snapshot_id;
        self.controlled(&id, &caller)?;
        let owner = self.members.iter().find(|(_, it)| it.managed.snapshots.contains_key(key));
        let Some((owner, member)) = owner else {
            return Err(missing(&id, key).into());
        };
        let owner = *owner;
        if owner != id && check_controller(member, &caller).is_err() {
            return Err(refusal(
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
        pay(member, call, snapshot.bytes)?;
        member.canister.restore(&snapshot.canister);
        member.managed.chunks.clone_from(&snapshot.chunks);
        member.count_stored();
        member.canister.count_in_history(None);
        let details = ChangeDetails::LoadSnapshot {
            canister_version: snapshot.canister.version(),
            snapshot_id: key.clone(),
            taken_at_timestamp: snapshot.taken_at,
            source: SnapshotSource::TakenFromCanister(Reserved),
            from_canister_id: (owner != id).then_some(owner),
        };
        let version = member.canister.version();
        let origin = call.change_origin(args.sender_canister_version);
        member.managed.add_change(time, version, origin, details);
        reply(())
    }

    pub(super) fn list_snapshots(&mut self, call: &ManagementCall) -> Outcome {
        let args: CanisterIdRecord = call.decode()?;
        let caller = call.caller();
        let member = self.member(&args.canister_id)?;
        let visible = match &member.managed.snapshot_visibility {
            SnapshotVisibility::Public => true,
            SnapshotVisibility::Controllers => false,
            SnapshotVisibility::AllowedViewers(viewers) => viewers.contains(&caller),
        };
        if !visible {
            check_controller(member, &caller)?;
        }
        let snapshots = &member.managed.snapshots;
        let infos: Vec<Info> = snapshots.iter().map(|(id, it)| info(id, it)).collect();
        reply((infos,))
    }

    pub(super) fn delete_snapshot(&mut self, call: &ManagementCall) -> Outcome {
        let args: DeleteCanisterSnapshotArgs = call.decode()?;
        let member = self.controlled(&args.canister_id, &call.caller())?;
        find(member, &args.snapshot_id)?;
        member.managed.snapshots.remove(&args.snapshot_id);
        member.count_stored();
        reply(())
    }
}

/// Charges for taking or loading a snapshot of this size.
fn pay(member: &mut Member, call: &ManagementCall, bytes: Bytes) -> Result<Cycles, Reject> {
    let instructions = SNAPSHOT_INSTRUCTIONS + Instructions(bytes.get());
    let cost = cycles::execution(member.rules(), instructions, false);
    match member.withdraw(cost, Next::Other) {
        Ok(()) => Ok(cost),
        Err(missing) => {
            let Reject { code, message } = member.out_of_cycles(&call.caller(), missing);
            Err(refusal(
                code,
                format!("Canister snapshotting failed with: `{message}`"),
                "Try sending more cycles with the request. See documentation: \
                 canister-snapshot-not-enough-cycles",
                "",
            ))
        }
    }
}

fn find(member: &Member, id: &[u8]) -> Result<Arc<Snapshot>, Reject> {
    let snapshot = member.managed.snapshots.get(id);
    snapshot.cloned().ok_or_else(|| missing(&member.canister.id(), id))
}

fn missing(canister: &Principal, id: &[u8]) -> Reject {
    refusal(
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
