//! Who transfers snapshots, and who pays: canisters, a frozen one, an allocation, no controller.

use candid::Principal;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, LoadCanisterSnapshotArgs, ReadCanisterSnapshotDataArgs,
    ReadCanisterSnapshotMetadataArgs, SnapshotDataKind, SnapshotDataOffset,
    UploadCanisterSnapshotDataArgs, UploadCanisterSnapshotMetadataArgs,
};
use stablebench_conformance::subnet::SubnetCase;

use super::super::steps::{Case, USER, id};
use super::{
    announce, describe, describes, description, list, named, nat, none, of, read, reads, set,
    snapshot, status, take, upload, uploaded,
};

/// Calls of canister 0 about canister 1, which cannot pay.
pub fn without_cycles() -> SubnetCase {
    let mut case = Case::default();
    take(&mut case);
    announce(&mut case, description());
    set(&mut case, CanisterSettings { controllers: Some(vec![USER, id(0)]), ..none() });
    // The balance does not cover so long a time.
    set(&mut case, CanisterSettings { freezing_threshold: nat(u64::MAX), ..none() });
    let heap = SnapshotDataKind::WasmMemory { offset: 0, size: 1 };
    case.manage("read_canister_snapshot_metadata", describes(snapshot(0)));
    case.manage("read_canister_snapshot_data", reads(snapshot(0), heap));
    case.manage("upload_canister_snapshot_metadata", (description(),));
    let written = uploaded(1, SnapshotDataOffset::WasmMemory { offset: 0 }, b"a");
    case.manage("upload_canister_snapshot_data", written);
    case.manage("upload_canister_snapshot_data", uploaded(1, SnapshotDataOffset::WasmChunk, b"a"));
    let args = LoadCanisterSnapshotArgs {
        canister_id: id(1),
        snapshot_id: snapshot(0),
        sender_canister_version: None,
    };
    case.manage("load_canister_snapshot", (args,));
    named(case, "transfers_without_cycles")
}

pub fn allocated() -> SubnetCase {
    let mut case = Case::default();
    set(&mut case, CanisterSettings { memory_allocation: nat(300_000), ..none() });
    take(&mut case);
    announce(&mut case, description());
    announce(&mut case, description());
    upload(&mut case, 1, SnapshotDataOffset::WasmChunk, b"a");
    status(&mut case);
    named(case, "transfers_with_allocation")
}

/// Canister 0 controls canister 2, canister 1 does not.
pub fn by_canisters() -> SubnetCase {
    let mut case = Case::with_subject();
    let canister_id = super::super::steps::subject();
    let of_subject = |number| of(2, number);
    // Without a module, its heap has 32 bits.
    let description = UploadCanisterSnapshotMetadataArgs { canister_id, ..description() };
    let describes = |snapshot_id| (ReadCanisterSnapshotMetadataArgs { canister_id, snapshot_id },);
    let kind = SnapshotDataKind::WasmMemory { offset: 0, size: 3 };
    let reads = |number| {
        let snapshot_id = of_subject(number);
        (ReadCanisterSnapshotDataArgs { canister_id, snapshot_id, kind: kind.clone() },)
    };
    let writes = |number, chunk: &[u8]| {
        let (snapshot_id, chunk) = (of_subject(number), chunk.to_vec());
        let kind = SnapshotDataOffset::WasmMemory { offset: 0 };
        (UploadCanisterSnapshotDataArgs { canister_id, snapshot_id, kind, chunk },)
    };
    case.stranger("upload_canister_snapshot_metadata", (description.clone(),));
    case.manage("upload_canister_snapshot_metadata", (description.clone(),));
    case.manage("read_canister_snapshot_metadata", describes(of_subject(0)));
    case.stranger("read_canister_snapshot_metadata", describes(of_subject(0)));
    case.manage("upload_canister_snapshot_data", writes(0, b"abc"));
    case.stranger("upload_canister_snapshot_data", writes(0, b"abc"));
    case.manage("read_canister_snapshot_data", reads(0));
    case.stranger("read_canister_snapshot_data", reads(0));
    case.manage("read_canister_snapshot_metadata", describes(of_subject(1)));
    case.manage("read_canister_snapshot_data", reads(1));
    case.manage("upload_canister_snapshot_data", writes(1, b"abc"));
    let about = |canister_id: Principal| UploadCanisterSnapshotMetadataArgs {
        canister_id,
        ..description.clone()
    };
    case.manage("upload_canister_snapshot_metadata", (about(id(9)),));
    case.manage("upload_canister_snapshot_metadata", (about(USER),));
    case.manage("upload_canister_snapshot_data", ());
    case.manage("read_canister_snapshot_data", ());
    case.manage_with(7, "read_canister_snapshot_data", reads(0));
    case.manage("canister_status", (CanisterIdRecord { canister_id },));
    case.named("transfers_by_canisters")
}

/// The user stops controlling canister 1.
pub fn not_controlled() -> SubnetCase {
    let mut case = Case::default();
    take(&mut case);
    set(&mut case, CanisterSettings { controllers: Some(vec![id(0)]), ..none() });
    describe(&mut case, 0);
    read(&mut case, SnapshotDataKind::WasmMemory { offset: 0, size: 1 });
    announce(&mut case, description());
    upload(&mut case, 0, SnapshotDataOffset::WasmChunk, b"a");
    list(&mut case);
    named(case, "not_controlled")
}
