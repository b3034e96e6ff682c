//! Snapshots: forks of a canister, taken and loaded in no time.

use ic_error_types::ErrorCode;
use ic_management_canister_types::{
    CanisterIdRecord, DeleteCanisterSnapshotArgs, LoadCanisterSnapshotArgs,
    Snapshot as SnapshotInfo, TakeCanisterSnapshotArgs,
};

use super::{done, invalid, reply};
use crate::canister::{Hosted, Snapshot};
use crate::clock;
use crate::outcome::Reject;
use crate::subnet::Run;

/// The most snapshots of a canister.
const MOST: usize = 10;

pub fn take(args: TakeCanisterSnapshotArgs) -> Run {
    Box::new(move |hosted| {
        if hosted.canister.module().is_none() {
            return Err(Reject::new(
                ErrorCode::CanisterWasmModuleNotFound,
                format!("Failed to create snapshot for empty canister {}", args.canister_id),
            ));
        }
        if let Some(old) = &args.replace_snapshot {
            found(hosted, old)?;
        } else if hosted.snapshots.len() >= MOST {
            return Err(invalid(format!(
                "Canister {} has reached the maximum number of snapshots allowed: {MOST}.",
                args.canister_id
            )));
        }
        if let Some(old) = &args.replace_snapshot {
            hosted.snapshots.remove(old);
        }
        hosted.snapshots_taken += 1;
        // As on the IC: a number, and the canister's id.
        let number = hosted.snapshots_taken.to_be_bytes();
        let id = [number.as_slice(), args.canister_id.as_slice()].concat();
        let snapshot = Snapshot {
            canister: hosted.canister.fork(),
            taken_at: clock::now(),
            bytes: super::status::memory(&hosted.canister),
        };
        let told = info(&id, &snapshot);
        hosted.snapshots.insert(id, snapshot);
        reply(&told)
    })
}

pub fn load(args: LoadCanisterSnapshotArgs) -> Run {
    Box::new(move |hosted| {
        let snapshot = found(hosted, &args.snapshot_id)?.canister.fork();
        hosted.canister.restore(&snapshot);
        done()
    })
}

pub fn list(_: CanisterIdRecord) -> Run {
    Box::new(move |hosted| {
        let snapshots = hosted.snapshots.iter().map(|(id, snapshot)| info(id, snapshot));
        reply(&snapshots.collect::<Vec<_>>())
    })
}

pub fn delete(args: DeleteCanisterSnapshotArgs) -> Run {
    Box::new(move |hosted| {
        found(hosted, &args.snapshot_id)?;
        hosted.snapshots.remove(&args.snapshot_id);
        done()
    })
}

fn found<'a>(hosted: &'a Hosted, id: &[u8]) -> Result<&'a Snapshot, Reject> {
    hosted.snapshots.get(id).ok_or_else(|| {
        Reject::new(
            ErrorCode::CanisterSnapshotNotFound,
            format!(
                "Could not find the snapshot ID {} for canister {}.",
                hex::encode(id),
                hosted.canister.id()
            ),
        )
    })
}

fn info(id: &[u8], snapshot: &Snapshot) -> SnapshotInfo {
    SnapshotInfo {
        id: id.to_vec(),
        taken_at_timestamp: snapshot.taken_at,
        total_size: snapshot.bytes,
    }
}
