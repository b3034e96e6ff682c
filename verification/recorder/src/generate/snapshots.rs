//! Snapshots that are read, uploaded and loaded.
//!
//! The user, who controls canisters 0 and 1, calls the management canister about canister 1, so that
//! what canister 1 pays is recorded. Canister 0 runs scripts.

use candid::utils::ArgumentEncoder;
use candid::{Nat, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterSettings, CanisterTimer,
    DeleteCanisterSnapshotArgs, LoadCanisterSnapshotArgs, OnLowWasmMemoryHookStatus,
    ReadCanisterSnapshotDataArgs, ReadCanisterSnapshotMetadataArgs, SnapshotDataKind,
    SnapshotDataOffset, SnapshotMetadataGlobal, TakeCanisterSnapshotArgs,
    UploadCanisterSnapshotDataArgs, UploadCanisterSnapshotMetadataArgs, UploadChunkArgs,
};
use sha2::{Digest, Sha256};
use stablebench_conformance::MessageKind;
use stablebench_conformance::subnet::SubnetCase;

use super::script::{
    Case, USER, id, nat, none, of_group, set, status, subject, wasm, without_heartbeat,
};

/// A module with globals of every type, some of them exported. `add` changes everything that a
/// snapshot contains, `get` returns it.
const HOLDER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
    (import "ic0" "time" (func $time (result i64)))
    (import "ic0" "stable64_size" (func $size (result i64)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "canister_version" (func $version (result i64)))
    (memory (export "memory") 1)
    (global $i32 (mut i32) (i32.const -7))
    (global $end i32 (i32.const 1048576))
    (global $count (mut i64) (i64.const 5))
    (global $f32 (mut f32) (f32.const 1.5))
    (global $f64 (mut f64) (f64.const -0.25))
    (global $v128 (mut v128) (v128.const i64x2 1 2))
    (export "heap_base" (global $end))
    (export "count" (global $count))
    (data (i32.const 4090) "across two pages")
    (func $show
        (i32.store (i32.const 0) (global.get $i32))
        (i64.store (i32.const 4) (global.get $count))
        (f32.store (i32.const 12) (global.get $f32))
        (f64.store (i32.const 16) (global.get $f64))
        (v128.store (i32.const 24) (global.get $v128))
        (i64.store (i32.const 40) (call $size))
        (i32.store (i32.const 48) (memory.size))
        (i64.store (i32.const 52) (call $version))
        (call $append (i32.const 0) (i32.const 60))
        (call $append (i32.const 4090) (i32.const 16))
        (if (i64.ne (call $size) (i64.const 0)) (then
            (call $read (i64.const 60) (i64.const 100) (i64.const 8))
            (call $append (i32.const 60) (i32.const 8))))
        (call $reply))
    (func (export "canister_update add")
        (global.set $i32 (i32.add (global.get $i32) (i32.const 1)))
        (global.set $count (i64.add (global.get $count) (i64.const 1)))
        (global.set $f32 (f32.mul (global.get $f32) (f32.const 2)))
        (global.set $f64 (f64.add (global.get $f64) (f64.const 1)))
        (global.set $v128 (i8x16.add (global.get $v128) (i8x16.splat (i32.const 1))))
        (drop (call $grow (i64.const 1)))
        (i64.store (i32.const 100) (global.get $count))
        (call $write (i64.const 100) (i64.const 100) (i64.const 8))
        (call $certify (i32.const 100) (i32.const 8))
        (call $show))
    (func (export "canister_query get") (call $show))
    (func (export "canister_update timer")
        (i64.store (i32.const 0)
            (call $timer (i64.add (call $time) (i64.const 100000000000))))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (func (export "canister_global_timer")
        (global.set $count (i64.add (global.get $count) (i64.const 1000))))
    (func (export "canister_on_low_wasm_memory")
        (global.set $count (i64.add (global.get $count) (i64.const 1000000)))))"#;

const PAGE: u64 = 65_536;

/// All cases.
pub fn cases() -> Vec<SubnetCase> {
    let cases = vec![
        metadata(),
        data(),
        chunks(),
        invalid_metadata(),
        uploads(),
        immutable(),
        replaced(),
        loading(),
        sizes(),
        into_another(),
        timers(),
        low_memory(),
        without_cycles(),
        allocated(),
        by_canisters(),
        not_controlled(),
    ];
    of_group("snapshots", cases)
}

/// Canister 0, which runs scripts, and a holder.
fn named(case: Case, name: &str) -> SubnetCase {
    case.of(name, vec![without_heartbeat(), HOLDER.to_owned()])
}

/// The id of a snapshot.
fn of(canister: u8, number: u64) -> Vec<u8> {
    [number.to_be_bytes().as_slice(), id(canister).as_slice()].concat()
}

/// The id of a snapshot of canister 1.
fn snapshot(number: u64) -> Vec<u8> {
    of(1, number)
}

/// The user calls the management canister about canister 1.
fn user(case: &mut Case, method: &str, arguments: impl ArgumentEncoder) {
    case.user(1, method, arguments);
}

fn take(case: &mut Case) {
    let args = TakeCanisterSnapshotArgs {
        canister_id: id(1),
        replace_snapshot: None,
        uninstall_code: None,
        sender_canister_version: None,
    };
    user(case, "take_canister_snapshot", (args,));
}

fn load(case: &mut Case, snapshot_id: Vec<u8>) {
    let args =
        LoadCanisterSnapshotArgs { canister_id: id(1), snapshot_id, sender_canister_version: None };
    user(case, "load_canister_snapshot", (args,));
}

fn describes(snapshot_id: Vec<u8>) -> (ReadCanisterSnapshotMetadataArgs,) {
    (ReadCanisterSnapshotMetadataArgs { canister_id: id(1), snapshot_id },)
}

fn describe(case: &mut Case, number: u64) {
    user(case, "read_canister_snapshot_metadata", describes(snapshot(number)));
}

fn reads(snapshot_id: Vec<u8>, kind: SnapshotDataKind) -> (ReadCanisterSnapshotDataArgs,) {
    (ReadCanisterSnapshotDataArgs { canister_id: id(1), snapshot_id, kind },)
}

fn read(case: &mut Case, kind: SnapshotDataKind) {
    user(case, "read_canister_snapshot_data", reads(snapshot(0), kind));
}

fn list(case: &mut Case) {
    user(case, "list_canister_snapshots", (CanisterIdRecord { canister_id: id(1) },));
}

fn add(case: &mut Case) {
    case.method(MessageKind::Update, 1, "add", &[]);
}

fn get(case: &mut Case) {
    case.method(MessageKind::Query, 1, "get", &[]);
}

/// Globals of the types of a holder's. The first one is a constant.
fn globals() -> Vec<SnapshotMetadataGlobal> {
    vec![
        SnapshotMetadataGlobal::I32(1_048_576),
        SnapshotMetadataGlobal::I64(40),
        SnapshotMetadataGlobal::I32(-100),
        SnapshotMetadataGlobal::F32(-2.5),
        SnapshotMetadataGlobal::F64(1e300),
        SnapshotMetadataGlobal::V128(Nat::from(u128::MAX - 1)),
    ]
}

/// The description of a holder with a page of heap and a page of stable memory.
fn description() -> UploadCanisterSnapshotMetadataArgs {
    UploadCanisterSnapshotMetadataArgs {
        canister_id: id(1),
        replace_snapshot: None,
        wasm_module_size: wasm(HOLDER).len() as u64,
        globals: globals(),
        wasm_memory_size: PAGE,
        stable_memory_size: PAGE,
        certified_data: vec![9; 32],
        global_timer: None,
        on_low_wasm_memory_hook_status: None,
    }
}

fn announce(case: &mut Case, description: UploadCanisterSnapshotMetadataArgs) {
    user(case, "upload_canister_snapshot_metadata", (description,));
}

fn uploaded(
    number: u64,
    kind: SnapshotDataOffset,
    chunk: &[u8],
) -> (UploadCanisterSnapshotDataArgs,) {
    let (canister_id, snapshot_id) = (id(1), snapshot(number));
    (UploadCanisterSnapshotDataArgs { canister_id, snapshot_id, kind, chunk: chunk.to_vec() },)
}

fn upload(case: &mut Case, number: u64, kind: SnapshotDataOffset, chunk: &[u8]) {
    user(case, "upload_canister_snapshot_data", uploaded(number, kind, chunk));
}

/// Uploads the module of a description.
fn upload_module(case: &mut Case, number: u64) {
    let module = wasm(HOLDER);
    let (first, second) = module.split_at(module.len() / 2);
    let offset = first.len() as u64;
    upload(case, number, SnapshotDataOffset::WasmModule { offset }, second);
    upload(case, number, SnapshotDataOffset::WasmModule { offset: 0 }, first);
}

/// A snapshot with this description and a module.
fn holder(case: &mut Case, number: u64, description: UploadCanisterSnapshotMetadataArgs) {
    announce(case, description);
    upload_module(case, number);
}

fn metadata() -> SubnetCase {
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

fn data() -> SubnetCase {
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

fn chunks() -> SubnetCase {
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

fn invalid_metadata() -> SubnetCase {
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

fn uploads() -> SubnetCase {
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

fn immutable() -> SubnetCase {
    let mut case = Case::default();
    take(&mut case);
    upload(&mut case, 0, SnapshotDataOffset::WasmMemory { offset: 0 }, b"a");
    upload(&mut case, 0, SnapshotDataOffset::WasmMemory { offset: u64::MAX }, b"a");
    upload(&mut case, 0, SnapshotDataOffset::WasmChunk, b"a");
    named(case, "immutable")
}

fn replaced() -> SubnetCase {
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

fn loading() -> SubnetCase {
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
fn sizes() -> SubnetCase {
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
fn into_another() -> SubnetCase {
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
        case.method(MessageKind::Query, 0, "get", &[]);
    };
    loads(&mut case, 0);
    loads(&mut case, 1);
    case.method(MessageKind::Update, 0, "add", &[]);
    case.user(0, "stored_chunks", (CanisterIdRecord { canister_id: id(0) },));
    named(case, "into_another")
}

fn timers() -> SubnetCase {
    let mut case = Case::default();
    case.method(MessageKind::Update, 1, "timer", &[]);
    take(&mut case);
    describe(&mut case, 0);
    case.method(MessageKind::Update, 1, "timer", &[]);
    load(&mut case, snapshot(0));
    take(&mut case);
    describe(&mut case, 1);
    case.method(MessageKind::Update, 1, "timer", &[]);
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

fn low_memory() -> SubnetCase {
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

/// Calls of canister 0 about canister 1, which cannot pay.
fn without_cycles() -> SubnetCase {
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

fn allocated() -> SubnetCase {
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
fn by_canisters() -> SubnetCase {
    let mut case = Case::with_subject();
    let canister_id = subject();
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
fn not_controlled() -> SubnetCase {
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
