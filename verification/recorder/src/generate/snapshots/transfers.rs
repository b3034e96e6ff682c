//! Reading and uploading: descriptions, data, chunks, and what replaces a snapshot.

use ic_management_canister_types::{
    CanisterIdRecord, CanisterTimer, DeleteCanisterSnapshotArgs, OnLowWasmMemoryHookStatus,
    ReadCanisterSnapshotMetadataArgs, SnapshotDataKind, SnapshotDataOffset, SnapshotMetadataGlobal,
    TakeCanisterSnapshotArgs, UploadCanisterSnapshotMetadataArgs, UploadChunkArgs,
};
use sha2::{Digest, Sha256};
use stablebench_conformance::subnet::SubnetCase;

use super::super::steps::{Case, id, wasm};
use super::{
    HOLDER, PAGE, add, announce, describe, describes, description, get, list, load, named, of,
    read, reads, snapshot, status, take, upload, upload_module, user,
};

pub fn metadata() -> SubnetCase {
    let mut case = Case::default();
    take(&mut case);
    describe(&mut case, 0);
    add(&mut case);
    take(&mut case);
    describe(&mut case, 1);
    describe(&mut case, 0);
    describe(&mut case, 2);
    let of_other = |canister_id| TakeCanisterSnapshotArgs {
        canister_id,
        replace_snapshot: None,
        uninstall_code: None,
        sender_canister_version: None,
    };
    case.user(0, "take_canister_snapshot", (of_other(id(0)),));
    // The snapshot of another canister.
    user(&mut case, "read_canister_snapshot_metadata", describes(of(0, 0)));
    let args = ReadCanisterSnapshotMetadataArgs { canister_id: id(0), snapshot_id: of(0, 0) };
    case.user(0, "read_canister_snapshot_metadata", (args,));
    let args = DeleteCanisterSnapshotArgs { canister_id: id(1), snapshot_id: of(0, 0) };
    user(&mut case, "delete_canister_snapshot", (args,));
    user(&mut case, "read_canister_snapshot_metadata", ());
    named(case, "read_metadata")
}

pub fn data() -> SubnetCase {
    let mut case = Case::default();
    add(&mut case);
    take(&mut case);
    let module = wasm(HOLDER).len() as u64;
    let of_module = |offset, size| SnapshotDataKind::WasmModule { offset, size };
    let of_heap = |offset, size| SnapshotDataKind::WasmMemory { offset, size };
    let of_stable = |offset, size| SnapshotDataKind::StableMemory { offset, size };
    for kind in [
        of_module(0, module),
        of_module(7, 0),
        of_module(module, 0),
        of_module(1, module),
        of_module(u64::MAX, 2),
        of_heap(90, 30),
        of_heap(4_000, 200),
        of_heap(PAGE - 1, 1),
        of_heap(PAGE, 1),
        of_heap(0, PAGE),
        of_stable(96, 16),
        of_stable(PAGE, 0),
        of_stable(0, PAGE + 1),
        of_heap(0, 2_000_000),
        of_heap(0, 2_000_001),
        of_module(u64::MAX, u64::MAX),
        SnapshotDataKind::WasmChunk { hash: vec![1; 32] },
        SnapshotDataKind::WasmChunk { hash: vec![1, 0xab] },
    ] {
        read(&mut case, kind);
    }
    let args = reads(snapshot(1), of_heap(0, 1));
    user(&mut case, "read_canister_snapshot_data", args);
    // A snapshot stays as it is.
    add(&mut case);
    read(&mut case, of_heap(90, 30));
    named(case, "read_data")
}

pub fn chunks() -> SubnetCase {
    let mut case = Case::default();
    let chunk = |byte: u8, bytes: usize| vec![byte; bytes];
    let store = |chunk: Vec<u8>| (UploadChunkArgs { canister_id: id(1), chunk },);
    user(&mut case, "upload_chunk", store(chunk(1, 1_000)));
    user(&mut case, "upload_chunk", store(chunk(2, 10)));
    take(&mut case);
    describe(&mut case, 0);
    let hash = |chunk: &[u8]| SnapshotDataKind::WasmChunk { hash: Sha256::digest(chunk).to_vec() };
    read(&mut case, hash(&chunk(1, 1_000)));
    read(&mut case, hash(&chunk(3, 10)));
    announce(&mut case, description());
    for bytes in [chunk(1, 1_000), chunk(4, 1 << 20), chunk(1, 1_000), chunk(5, (1 << 20) + 1)] {
        upload(&mut case, 1, SnapshotDataOffset::WasmChunk, &bytes);
    }
    describe(&mut case, 1);
    list(&mut case);
    status(&mut case);
    upload_module(&mut case, 1);
    load(&mut case, snapshot(1));
    user(&mut case, "stored_chunks", (CanisterIdRecord { canister_id: id(1) },));
    named(case, "snapshot_chunks")
}

pub fn invalid_metadata() -> SubnetCase {
    let mut case = Case::default();
    let valid = description;
    let i32s = |count| vec![SnapshotMetadataGlobal::I32(0); count];
    for wrong in [
        UploadCanisterSnapshotMetadataArgs { wasm_module_size: 0, ..valid() },
        UploadCanisterSnapshotMetadataArgs { wasm_module_size: (100 << 20) + 1, ..valid() },
        UploadCanisterSnapshotMetadataArgs { wasm_memory_size: 1, ..valid() },
        UploadCanisterSnapshotMetadataArgs { wasm_memory_size: (4 << 30) + PAGE, ..valid() },
        UploadCanisterSnapshotMetadataArgs { stable_memory_size: PAGE - 1, ..valid() },
        UploadCanisterSnapshotMetadataArgs { stable_memory_size: (500 << 30) + PAGE, ..valid() },
        UploadCanisterSnapshotMetadataArgs { globals: i32s(1_001), ..valid() },
        UploadCanisterSnapshotMetadataArgs { certified_data: vec![0; 33], ..valid() },
        UploadCanisterSnapshotMetadataArgs { wasm_memory_size: u64::MAX, ..valid() },
        UploadCanisterSnapshotMetadataArgs { replace_snapshot: Some(snapshot(0)), ..valid() },
    ] {
        announce(&mut case, wrong);
    }
    for largest in [
        UploadCanisterSnapshotMetadataArgs { wasm_module_size: 100 << 20, ..valid() },
        UploadCanisterSnapshotMetadataArgs { wasm_memory_size: 4 << 30, ..valid() },
        UploadCanisterSnapshotMetadataArgs { stable_memory_size: 50 << 30, ..valid() },
        UploadCanisterSnapshotMetadataArgs { globals: i32s(1_000), ..valid() },
        // More than the subnet has left.
        UploadCanisterSnapshotMetadataArgs { stable_memory_size: 500 << 30, ..valid() },
    ] {
        announce(&mut case, largest);
    }
    list(&mut case);
    let args = reads(snapshot(2), SnapshotDataKind::StableMemory { offset: 49 << 30, size: 10 });
    user(&mut case, "read_canister_snapshot_data", args);
    status(&mut case);
    named(case, "invalid_metadata")
}

pub fn uploads() -> SubnetCase {
    let mut case = Case::default();
    add(&mut case);
    let timer = Some(CanisterTimer::Active(1_700_000_000_000_000_000));
    let hook = Some(OnLowWasmMemoryHookStatus::Executed);
    let full = UploadCanisterSnapshotMetadataArgs {
        global_timer: timer,
        on_low_wasm_memory_hook_status: hook,
        ..description()
    };
    announce(&mut case, full);
    describe(&mut case, 0);
    let module = wasm(HOLDER).len() as u64;
    let in_module = |offset| SnapshotDataOffset::WasmModule { offset };
    let in_heap = |offset| SnapshotDataOffset::WasmMemory { offset };
    let in_stable = |offset| SnapshotDataOffset::StableMemory { offset };
    for (kind, bytes) in [
        (in_module(3), b"abc".as_slice()),
        (in_module(module - 3), b"abc"),
        (in_module(module - 2), b"abc"),
        (in_module(module), b""),
        (in_module(u64::MAX), b""),
        (in_heap(4_090), b"across two pages"),
        (in_heap(PAGE - 3), b"end"),
        (in_heap(PAGE - 2), b"end"),
        (in_stable(0), b"stable"),
        (in_stable(PAGE - 1), b"e"),
        (in_stable(PAGE), b"e"),
        (in_heap(0), vec![3; PAGE as usize].as_slice()),
        (in_heap(10), b"again"),
    ] {
        upload(&mut case, 0, kind, bytes);
    }
    for kind in [
        SnapshotDataKind::WasmModule { offset: 0, size: 8 },
        SnapshotDataKind::WasmMemory { offset: 4_080, size: 40 },
        SnapshotDataKind::WasmMemory { offset: 0, size: 20 },
        SnapshotDataKind::StableMemory { offset: 0, size: 20 },
    ] {
        read(&mut case, kind);
    }
    list(&mut case);
    status(&mut case);
    upload(&mut case, 1, in_heap(0), b"no such snapshot");
    user(&mut case, "upload_canister_snapshot_data", ());
    user(&mut case, "upload_canister_snapshot_data", (CanisterIdRecord { canister_id: id(1) },));
    // A module that is not complete.
    load(&mut case, snapshot(0));
    get(&mut case);
    named(case, "uploads")
}

pub fn immutable() -> SubnetCase {
    let mut case = Case::default();
    take(&mut case);
    upload(&mut case, 0, SnapshotDataOffset::WasmMemory { offset: 0 }, b"a");
    upload(&mut case, 0, SnapshotDataOffset::WasmMemory { offset: u64::MAX }, b"a");
    upload(&mut case, 0, SnapshotDataOffset::WasmChunk, b"a");
    named(case, "immutable")
}

pub fn replaced() -> SubnetCase {
    let mut case = Case::default();
    take(&mut case);
    let replaces = |number| UploadCanisterSnapshotMetadataArgs {
        replace_snapshot: Some(snapshot(number)),
        ..description()
    };
    announce(&mut case, replaces(0));
    announce(&mut case, replaces(0));
    for _ in 0..9 {
        announce(&mut case, description());
    }
    announce(&mut case, description());
    take(&mut case);
    list(&mut case);
    let larger =
        UploadCanisterSnapshotMetadataArgs { stable_memory_size: 10 * PAGE, ..replaces(4) };
    announce(&mut case, larger);
    let of_other =
        UploadCanisterSnapshotMetadataArgs { replace_snapshot: Some(of(0, 0)), ..description() };
    announce(&mut case, of_other);
    let delete = DeleteCanisterSnapshotArgs { canister_id: id(1), snapshot_id: snapshot(3) };
    user(&mut case, "delete_canister_snapshot", (delete,));
    list(&mut case);
    status(&mut case);
    named(case, "replaced")
}
