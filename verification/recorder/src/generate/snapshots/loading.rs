//! Loading of uploaded snapshots: memories, globals, timers, the hook for low memory.

use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterSettings, CanisterTimer, LoadCanisterSnapshotArgs,
    OnLowWasmMemoryHookStatus, SnapshotDataOffset, SnapshotMetadataGlobal,
    UploadCanisterSnapshotMetadataArgs,
};
use stablebench_conformance::Kind;
use stablebench_conformance::subnet::SubnetCase;

use super::super::steps::{Case, id};
use super::{
    PAGE, add, describe, description, get, globals, holder, load, named, nat, none, set, snapshot,
    take, upload,
};

pub fn loading() -> SubnetCase {
    let mut case = Case::default();
    add(&mut case);
    let mut description = description();
    holder(&mut case, 0, description.clone());
    upload(&mut case, 0, SnapshotDataOffset::WasmMemory { offset: 4_090 }, b"uploaded");
    upload(&mut case, 0, SnapshotDataOffset::StableMemory { offset: 100 }, b"stable..");
    load(&mut case, snapshot(0));
    get(&mut case);
    take(&mut case);
    describe(&mut case, 1);
    add(&mut case);
    get(&mut case);
    case.user(
        1,
        "canister_info",
        (CanisterInfoArgs { canister_id: id(1), num_requested_changes: Some(1) },),
    );
    let info = CanisterInfoArgs { canister_id: id(1), num_requested_changes: Some(1) };
    case.manage("canister_info", (info,));
    load(&mut case, snapshot(1));
    get(&mut case);
    // Globals of another type, too few, too many.
    description.globals[1] = SnapshotMetadataGlobal::F64(40.0);
    holder(&mut case, 2, description.clone());
    load(&mut case, snapshot(2));
    description.globals = globals();
    description.globals.pop();
    holder(&mut case, 3, description.clone());
    load(&mut case, snapshot(3));
    description.globals = [globals(), globals()].concat();
    holder(&mut case, 4, description.clone());
    load(&mut case, snapshot(4));
    get(&mut case);
    named(case, "loading")
}

/// Memories of other sizes than the module's.
pub fn sizes() -> SubnetCase {
    let mut case = Case::default();
    for (number, heap, stable) in [(0, PAGE, 0), (1, 3 * PAGE, 2 * PAGE), (2, 0, 0)] {
        let description = UploadCanisterSnapshotMetadataArgs {
            wasm_memory_size: heap,
            stable_memory_size: stable,
            ..description()
        };
        holder(&mut case, number, description);
        load(&mut case, snapshot(number));
        get(&mut case);
        add(&mut case);
    }
    take(&mut case);
    describe(&mut case, 3);
    named(case, "sizes_of_uploads")
}

/// Loads snapshots of canister 1 into canister 0. Until a checkpoint, the server refuses that.
pub fn into_another() -> SubnetCase {
    let mut case = Case::default();
    add(&mut case);
    take(&mut case);
    holder(&mut case, 1, description());
    upload(&mut case, 1, SnapshotDataOffset::WasmChunk, b"chunk");
    case.rounds(600);
    let loads = |case: &mut Case, number| {
        let args = LoadCanisterSnapshotArgs {
            canister_id: id(0),
            snapshot_id: snapshot(number),
            sender_canister_version: None,
        };
        case.user(0, "load_canister_snapshot", (args,));
        case.method(Kind::Query, 0, "get", &[]);
    };
    loads(&mut case, 0);
    loads(&mut case, 1);
    case.method(Kind::Update, 0, "add", &[]);
    case.user(0, "stored_chunks", (CanisterIdRecord { canister_id: id(0) },));
    named(case, "into_another")
}

pub fn timers() -> SubnetCase {
    let mut case = Case::default();
    case.method(Kind::Update, 1, "timer", &[]);
    take(&mut case);
    describe(&mut case, 0);
    case.method(Kind::Update, 1, "timer", &[]);
    load(&mut case, snapshot(0));
    take(&mut case);
    describe(&mut case, 1);
    case.method(Kind::Update, 1, "timer", &[]);
    let with = |global_timer| UploadCanisterSnapshotMetadataArgs { global_timer, ..description() };
    holder(&mut case, 2, with(None));
    load(&mut case, snapshot(2));
    take(&mut case);
    describe(&mut case, 3);
    holder(&mut case, 4, with(Some(CanisterTimer::Inactive)));
    load(&mut case, snapshot(4));
    case.rounds(2);
    take(&mut case);
    describe(&mut case, 5);
    // It is due at once.
    holder(&mut case, 6, with(Some(CanisterTimer::Active(1))));
    describe(&mut case, 6);
    load(&mut case, snapshot(6));
    case.rounds(2);
    get(&mut case);
    holder(&mut case, 7, with(Some(CanisterTimer::Active(0))));
    describe(&mut case, 7);
    load(&mut case, snapshot(7));
    case.rounds(2);
    get(&mut case);
    named(case, "snapshot_timers")
}

pub fn low_memory() -> SubnetCase {
    let mut case = Case::default();
    let with = |status| UploadCanisterSnapshotMetadataArgs {
        on_low_wasm_memory_hook_status: Some(status),
        ..description()
    };
    for (number, status) in [
        OnLowWasmMemoryHookStatus::ConditionNotSatisfied,
        OnLowWasmMemoryHookStatus::Ready,
        OnLowWasmMemoryHookStatus::Executed,
    ]
    .into_iter()
    .enumerate()
    {
        holder(&mut case, number as u64, with(status));
    }
    let loads = |case: &mut Case, number: u64| {
        load(case, snapshot(number));
        case.rounds(2);
        get(case);
    };
    (0..3).for_each(|number| loads(&mut case, number));
    let limits = CanisterSettings {
        wasm_memory_limit: nat(PAGE),
        wasm_memory_threshold: nat(PAGE),
        ..none()
    };
    set(&mut case, limits);
    case.rounds(2);
    get(&mut case);
    take(&mut case);
    describe(&mut case, 3);
    (0..4).for_each(|number| loads(&mut case, number));
    named(case, "snapshot_hooks")
}
