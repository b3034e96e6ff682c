//! Copies of canisters that leave a subnet and return: as snapshots or, with the whole subnet, as a file.
//!
//! Of snapshots, the recorded cases do not show the interface for programs and the rules of today. A
//! subnet that was saved and loaded goes on as one that was not.

use std::fs;
use std::path::Path;

use candid::{CandidType, Nat, Principal, decode_one, encode_one};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, CreateCanisterArgs, LoadCanisterSnapshotArgs,
    LogVisibility, ReadCanisterSnapshotDataArgs, ReadCanisterSnapshotDataResult,
    ReadCanisterSnapshotMetadataArgs, Snapshot, SnapshotDataKind, SnapshotDataOffset,
    SnapshotVisibility, TakeCanisterSnapshotArgs, UpdateSettingsArgs,
    UploadCanisterSnapshotDataArgs, UploadChunkArgs,
};
use stablebench_replica::subnet::{Global, GlobalTimer, HookStatus, SnapshotMetadata, Subnet};
use stablebench_replica::{Canister, ErrorCode, LoadError, Reject, Replica, Rules};

use crate::support::managed::{self, MANAGEMENT, USER, manage};
use crate::support::{id, subnet_of};

const STRANGER: Principal = Principal::from_slice(&[7; 29]);
const PAGE: u64 = 65_536;

/// `add` counts in an exported global, in the heap and in stable memory, and replies with all three
/// and the instructions so far.
const COUNTER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "stable64_size" (func $size (result i64)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (memory 2)
    (global $end i32 (i32.const 99))
    (global $half (mut f32) (f32.const 0.5))
    (global $count (mut i64) (i64.const 0))
    (export "end" (global $end)) (export "count" (global $count))
    (func (export "canister_update add")
        (if (i64.eqz (call $size)) (then (drop (call $grow (i64.const 1)))))
        (global.set $count (i64.add (global.get $count) (i64.const 1)))
        (global.set $half (f32.add (global.get $half) (f32.const 1)))
        (i32.store (i32.const 65534) (i32.add (i32.load (i32.const 65534)) (i32.const 1)))
        (call $read (i64.const 0) (i64.const 65000) (i64.const 8))
        (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
        (call $write (i64.const 65000) (i64.const 0) (i64.const 8))
        (call $certify (i32.const 0) (i32.const 8))
        (i64.store (i32.const 8) (global.get $count))
        (i32.store (i32.const 16) (i32.load (i32.const 65534)))
        (f32.store (i32.const 20) (global.get $half))
        (i64.store (i32.const 24) (call $counter (i32.const 0)))
        (call $append (i32.const 0) (i32.const 32)) (call $reply)))"#;

/// A subnet with canisters 0 and 1, which the user controls.
fn subnet(rules: Rules) -> Subnet {
    subnet_of(&Replica::new(rules, None).unwrap(), &[COUNTER; 2])
}

fn call(
    subnet: &mut Subnet,
    caller: Principal,
    method: &str,
    argument: impl CandidType,
) -> Result<Vec<u8>, Reject> {
    let argument = encode_one(argument).unwrap();
    subnet.update(caller, MANAGEMENT, method, &argument).unwrap().response
}

fn add(subnet: &mut Subnet, number: u8) -> Vec<u8> {
    subnet.update(USER, id(number), "add", &[]).unwrap().response.unwrap()
}

fn take(subnet: &mut Subnet, number: u8) -> Snapshot {
    let args = TakeCanisterSnapshotArgs {
        canister_id: id(number),
        replace_snapshot: None,
        uninstall_code: None,
        sender_canister_version: None,
    };
    decode_one(&call(subnet, USER, "take_canister_snapshot", args).unwrap()).unwrap()
}

fn load(subnet: &mut Subnet, number: u8, snapshot_id: &[u8]) -> Result<Vec<u8>, Reject> {
    let args = LoadCanisterSnapshotArgs {
        canister_id: id(number),
        snapshot_id: snapshot_id.to_vec(),
        sender_canister_version: None,
    };
    call(subnet, USER, "load_canister_snapshot", args)
}

/// All bytes of the module, the heap or stable memory.
fn download(
    subnet: &Subnet,
    number: u8,
    snapshot: &[u8],
    length: u64,
    kind: impl Fn(u64, u64) -> SnapshotDataKind,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for offset in (0..length).step_by(50_000) {
        let kind = kind(offset, (length - offset).min(50_000));
        bytes.extend(subnet.snapshot_data(&id(number), snapshot, &kind).unwrap());
    }
    bytes
}

/// Downloads a snapshot of one canister and uploads it to the other.
fn transfer(subnet: &mut Subnet, from: u8, snapshot: &[u8], to: u8) -> Vec<u8> {
    let described = subnet.snapshot_metadata(&id(from), snapshot).unwrap();
    let json = serde_json::to_string(&described).unwrap();
    let described: SnapshotMetadata = serde_json::from_str(&json).unwrap();
    let uploaded = subnet.upload_snapshot_metadata(&id(to), None, &described).unwrap();
    let module = download(subnet, from, snapshot, described.wasm_module_size, |offset, size| {
        SnapshotDataKind::WasmModule { offset, size }
    });
    let heap = download(subnet, from, snapshot, described.wasm_memory_size, |offset, size| {
        SnapshotDataKind::WasmMemory { offset, size }
    });
    let stable = download(subnet, from, snapshot, described.stable_memory_size, |offset, size| {
        SnapshotDataKind::StableMemory { offset, size }
    });
    let mut upload = |kind, data: &[u8]| {
        subnet.upload_snapshot_data(&id(to), &uploaded, &kind, data).unwrap();
    };
    // In any order.
    for (number, part) in stable.chunks(30_000).enumerate().collect::<Vec<_>>().into_iter().rev() {
        upload(SnapshotDataOffset::StableMemory { offset: 30_000 * number as u64 }, part);
    }
    upload(SnapshotDataOffset::WasmMemory { offset: 0 }, &heap);
    upload(SnapshotDataOffset::WasmModule { offset: 0 }, &module);
    let chunks = subnet.snapshot_chunks(&id(from), snapshot).unwrap();
    for chunk in chunks.values() {
        let kind = SnapshotDataOffset::WasmChunk;
        subnet.upload_snapshot_data(&id(to), &uploaded, &kind, chunk).unwrap();
    }
    uploaded
}

#[test]
fn a_downloaded_snapshot_is_loaded_into_another_canister() {
    for rules in [Rules::of_2025_10(), Rules::today()] {
        let mut subnet = subnet(rules);
        let chunk = UploadChunkArgs { canister_id: id(0), chunk: b"a chunk".to_vec() };
        call(&mut subnet, USER, "upload_chunk", chunk).unwrap();
        add(&mut subnet, 0);
        add(&mut subnet, 0);
        let taken = take(&mut subnet, 0);
        let uploaded = transfer(&mut subnet, 0, &taken.id, 1);
        // Both are the same, except where they come from.
        let [original, copy] = [(0, &taken.id), (1, &uploaded)]
            .map(|(number, key)| subnet.snapshot_metadata(&id(number), key).unwrap());
        let copy = SnapshotMetadata {
            source: original.source,
            taken_at_timestamp: original.taken_at_timestamp,
            canister_version: original.canister_version,
            ..copy
        };
        assert_eq!(copy, original);
        let globals = [Global::I32(99), Global::I64(2), Global::F32(2.5)];
        assert_eq!(original.globals, globals);
        assert_eq!((original.wasm_memory_size, original.stable_memory_size), (2 * PAGE, PAGE));
        load(&mut subnet, 1, &uploaded).unwrap();
        let [original, copy] = [0, 1].map(|number| subnet.canister(&id(number)).unwrap());
        assert_eq!(copy.certified_data(), original.certified_data());
        assert_eq!(copy.module().unwrap().hash(), original.module().unwrap().hash());
        // Replies contain both counts and instructions.
        let replies = [0, 1].map(|number| add(&mut subnet, number));
        assert_eq!(replies[1], replies[0]);
        assert_eq!(replies[0][..8], 3_u64.to_le_bytes());
        // An uploaded snapshot can be downloaded too.
        assert_eq!(transfer(&mut subnet, 1, &uploaded, 0).len(), uploaded.len());
    }
}

#[test]
fn a_new_canister_has_the_initial_values_of_its_globals() {
    let mut subnet = subnet(Rules::today());
    let taken = take(&mut subnet, 0);
    let described = subnet.snapshot_metadata(&id(0), &taken.id).unwrap();
    assert_eq!(described.globals, [Global::I32(99), Global::I64(0), Global::F32(0.5)]);
    assert_eq!(described.global_timer, Some(GlobalTimer::Inactive));
    let hook = described.on_low_wasm_memory_hook_status;
    assert_eq!(hook, Some(HookStatus::ConditionNotSatisfied));
}

#[test]
fn a_fork_does_not_see_what_is_uploaded_later() {
    let mut subnet = subnet(Rules::today());
    let taken = take(&mut subnet, 0);
    let described = subnet.snapshot_metadata(&id(0), &taken.id).unwrap();
    let uploaded = subnet.upload_snapshot_metadata(&id(0), None, &described).unwrap();
    let at = SnapshotDataOffset::WasmMemory { offset: PAGE - 2 };
    subnet.upload_snapshot_data(&id(0), &uploaded, &at, b"abcd").unwrap();
    let fork = subnet.fork();
    subnet.upload_snapshot_data(&id(0), &uploaded, &at, b"efgh").unwrap();
    let read = |subnet: &Subnet| {
        let kind = SnapshotDataKind::WasmMemory { offset: PAGE - 3, size: 6 };
        subnet.snapshot_data(&id(0), &uploaded, &kind).unwrap()
    };
    assert_eq!(read(&fork), b"\0abcd\0");
    assert_eq!(read(&subnet), b"\0efgh\0");
}

#[test]
fn parts_are_checked_at_their_limits() {
    let mut subnet = subnet(Rules::today());
    let taken = take(&mut subnet, 0);
    let described = subnet.snapshot_metadata(&id(0), &taken.id).unwrap();
    let large = SnapshotMetadata { stable_memory_size: 100 * PAGE, ..described };
    let uploaded = subnet.upload_snapshot_metadata(&id(0), None, &large).unwrap();
    let stable = |offset, size| {
        let kind = SnapshotDataKind::StableMemory { offset, size };
        subnet.snapshot_data(&id(0), &uploaded, &kind)
    };
    assert_eq!(stable(0, 2_000_000).unwrap(), vec![0; 2_000_000]);
    let refused = stable(0, 2_000_001).unwrap_err();
    assert_eq!(refused.message, "Requested slice too large: 2000001 > 2000000");
    assert_eq!(stable(100 * PAGE - 1, 1).unwrap(), [0]);
    let refused = stable(100 * PAGE - 1, 2).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidManagementPayload);
    assert!(refused.message.contains("offset: 6553599, size: 2"), "{refused}");
    let at = SnapshotDataOffset::WasmMemory { offset: 0 };
    let refused = subnet.upload_snapshot_data(&id(0), &taken.id, &at, b"a").unwrap_err();
    assert_eq!(refused.code, ErrorCode::CanisterSnapshotImmutable);
    let refused = subnet.snapshot_metadata(&id(1), &uploaded).unwrap_err();
    assert_eq!(refused.code, ErrorCode::CanisterSnapshotNotFound);
    // Nine more, because a canister has at most ten.
    for _ in 2..10 {
        subnet.upload_snapshot_metadata(&id(0), None, &large).unwrap();
    }
    let refused = subnet.upload_snapshot_metadata(&id(0), None, &large).unwrap_err();
    assert!(refused.message.contains("maximum number of snapshots allowed: 10"), "{refused}");
    subnet.upload_snapshot_metadata(&id(0), Some(&uploaded), &large).unwrap();
}

/// The replica does not expect this and fails.
#[test]
fn a_heap_that_is_larger_than_the_module_allows_is_refused() {
    let mut subnet = subnet(Rules::today());
    let wasm = wat::parse_str("(module (memory 1 2))").unwrap();
    let taken = take(&mut subnet, 0);
    let described = subnet.snapshot_metadata(&id(0), &taken.id).unwrap();
    let mut upload = |pages: u64| {
        let described = SnapshotMetadata {
            globals: Vec::new(),
            wasm_module_size: wasm.len() as u64,
            wasm_memory_size: pages * PAGE,
            ..described.clone()
        };
        let uploaded = subnet.upload_snapshot_metadata(&id(1), None, &described).unwrap();
        let at = SnapshotDataOffset::WasmModule { offset: 0 };
        subnet.upload_snapshot_data(&id(1), &uploaded, &at, &wasm).unwrap();
        let loaded = load(&mut subnet, 1, &uploaded);
        (loaded, subnet.canister(&id(1)).unwrap().heap_size().get())
    };
    assert_eq!(upload(2), (Ok(encode(())), 2));
    let (refused, pages) = upload(3);
    let message = refused.unwrap_err().message;
    assert_eq!(pages, 2);
    assert!(message.contains("a heap of 3 Wasm pages, but the memory"), "{message}");
    // It grows to the first size.
    assert_eq!(upload(0), (Ok(encode(())), 1));
}

fn encode(arguments: ()) -> Vec<u8> {
    candid::encode_args(arguments).unwrap()
}

#[test]
fn settings_decide_who_may_read() {
    let mut subnet = subnet(Rules::today());
    let taken = take(&mut subnet, 0);
    let describe =
        || ReadCanisterSnapshotMetadataArgs { canister_id: id(0), snapshot_id: taken.id.clone() };
    let read = || ReadCanisterSnapshotDataArgs {
        canister_id: id(0),
        snapshot_id: taken.id.clone(),
        kind: SnapshotDataKind::WasmModule { offset: 0, size: 4 },
    };
    let metadata_method = "read_canister_snapshot_metadata";
    let refused = call(&mut subnet, STRANGER, metadata_method, describe()).unwrap_err();
    let words = format!("Caller {STRANGER} is not allowed to call {metadata_method}");
    assert_eq!(refused.message, words);
    let viewers = SnapshotVisibility::AllowedViewers(vec![STRANGER]);
    for visibility in [viewers, SnapshotVisibility::Public] {
        let settings =
            CanisterSettings { snapshot_visibility: Some(visibility), ..Default::default() };
        let canister_id = id(0);
        let args = UpdateSettingsArgs { canister_id, settings, sender_canister_version: None };
        call(&mut subnet, USER, "update_settings", args).unwrap();
        call(&mut subnet, STRANGER, metadata_method, describe()).unwrap();
        let reply = call(&mut subnet, STRANGER, "read_canister_snapshot_data", read()).unwrap();
        let ReadCanisterSnapshotDataResult { chunk } = decode_one(&reply).unwrap();
        assert_eq!(chunk, b"\0asm");
        let at = SnapshotDataOffset::WasmMemory { offset: 0 };
        let args = UploadCanisterSnapshotDataArgs {
            canister_id: id(0),
            snapshot_id: taken.id.clone(),
            kind: at,
            chunk: Vec::new(),
        };
        let refused = call(&mut subnet, STRANGER, "upload_canister_snapshot_data", args);
        assert_eq!(refused.unwrap_err().code, ErrorCode::CanisterInvalidController);
    }
}

/// Since October 2026 an uploaded snapshot cannot be changed once it was loaded, but loaded again.
#[test]
fn loaded_snapshots_are_immutable() {
    for (rules, stays) in [(Rules::today(), true), (Rules::of_2026_08(), false)] {
        let mut subnet = subnet(rules);
        let taken = take(&mut subnet, 0);
        let uploaded = transfer(&mut subnet, 0, &taken.id, 1);
        let write = |subnet: &mut Subnet| {
            let kind = SnapshotDataOffset::StableMemory { offset: 0 };
            let (snapshot_id, chunk) = (uploaded.clone(), Vec::new());
            let args =
                UploadCanisterSnapshotDataArgs { canister_id: id(1), snapshot_id, kind, chunk };
            call(subnet, USER, "upload_canister_snapshot_data", args).map(drop)
        };
        write(&mut subnet).unwrap();
        load(&mut subnet, 1, &uploaded).unwrap();
        let code = write(&mut subnet).map_err(|reject| reject.code);
        let expected = if stays { Err(ErrorCode::CanisterSnapshotImmutable) } else { Ok(()) };
        assert_eq!(code, expected, "{rules}");
        load(&mut subnet, 1, &uploaded).unwrap();
    }
}

/// Since 2026, methods of the management canister have no base fee.
#[test]
fn today_only_loading_has_a_base_fee() {
    let mut subnet = subnet(Rules::today());
    let paid = |subnet: &mut Subnet, work: &mut dyn FnMut(&mut Subnet) -> usize, method: &str| {
        let before = subnet.canister(&id(0)).unwrap().balance().get();
        let bytes = work(subnet);
        let induction = 1_200_000 + 2_000 * (121 + bytes + method.len() - 10) as u128;
        // The headers of method and argument: a byte more each beyond 23 bytes.
        let headers = 2_000 * u128::from(method.len() > 23) + 2_000 * u128::from(bytes > 23);
        before - subnet.canister(&id(0)).unwrap().balance().get() - induction - headers
    };
    let mut taken = None;
    let take_cost = paid(
        &mut subnet,
        &mut |subnet| {
            taken = Some(take(subnet, 0));
            let args = TakeCanisterSnapshotArgs {
                canister_id: id(0),
                replace_snapshot: None,
                uninstall_code: None,
                sender_canister_version: None,
            };
            encode_one(args).unwrap().len()
        },
        "take_canister_snapshot",
    );
    let taken = taken.unwrap();
    assert_eq!(take_cost, 2_000_000_000 + u128::from(taken.total_size));
    let load_cost = paid(
        &mut subnet,
        &mut |subnet| {
            load(subnet, 0, &taken.id).unwrap();
            let args = LoadCanisterSnapshotArgs {
                canister_id: id(0),
                snapshot_id: taken.id.clone(),
                sender_canister_version: None,
            };
            encode_one(args).unwrap().len()
        },
        "load_canister_snapshot",
    );
    assert_eq!(load_cost, 2_005_000_000 + u128::from(taken.total_size));
    let read_cost = paid(
        &mut subnet,
        &mut |subnet| {
            let args = ReadCanisterSnapshotDataArgs {
                canister_id: id(0),
                snapshot_id: taken.id.clone(),
                kind: SnapshotDataKind::WasmMemory { offset: 0, size: 1_000 },
            };
            call(subnet, USER, "read_canister_snapshot_data", &args).unwrap();
            encode_one(args).unwrap().len()
        },
        "read_canister_snapshot_data",
    );
    assert_eq!(read_cost, 5_000_000 + 1_000);
}

const SECOND: u64 = 1_000_000_000;

/// `add` counts in a global, in the heap and in stable memory, prints, and sets a timer; `random`
/// replies with random bytes.
const MODULE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "debug_print" (func $print (param i32 i32)))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "time" (func $time (result i64)))
    (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
    (import "ic0" "stable64_size" (func $pages (result i64)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $argument (param i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (memory 2) (table 1 funcref) (elem (i32.const 0) $back)
    (global $count (mut i64) (i64.const 0)) (export "count" (global $count))
    (data (i32.const 0) "raw_randDIDL\00\00")
    (func $count_one
        (global.set $count (i64.add (global.get $count) (i64.const 1)))
        (i64.store (i32.const 70000) (i64.add (i64.load (i32.const 70000)) (global.get $count))))
    (func (export "canister_global_timer") (call $count_one))
    (func (export "canister_update add")
        (call $count_one)
        (if (i64.eqz (call $pages)) (then (drop (call $grow (i64.const 2)))))
        (call $write (i64.const 65530) (i64.const 70000) (i64.const 8))
        (call $certify (i32.const 70000) (i32.const 8))
        (call $print (i32.const 0) (i32.const 8))
        (drop (call $timer (i64.add (call $time) (i64.const 1500000000))))
        (call $append (i32.const 70000) (i32.const 8)) (call $reply))
    (func (export "canister_update random")
        (call $new (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 8)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (call $argument (i32.const 8) (i32.const 6))
        (drop (call $perform)))
    (func $back (param i32)
        (call $copy (i32.const 128) (i32.const 0) (call $size))
        (call $append (i32.const 128) (call $size)) (call $reply)))"#;

/// Calls a method, and returns the reply.
fn send(subnet: &mut Subnet, callee: Principal, method: &str, argument: &[u8]) -> Vec<u8> {
    subnet.update(USER, callee, method, argument).unwrap().response.unwrap()
}

fn of(number: u8) -> CanisterIdRecord {
    CanisterIdRecord { canister_id: id(number) }
}

fn create(subnet: &mut Subnet) -> Principal {
    managed::create(subnet, Some(10_u64.pow(13)))
}

/// Gives the subnet something of everything that is saved. Returns the ids of snapshots.
fn fill(subnet: &mut Subnet) -> [Vec<u8>; 2] {
    for number in [0, 0, 1] {
        send(subnet, id(number), "add", &[]);
    }
    send(subnet, id(0), "random", &[]);
    for (number, bytes) in [(0, b"a chunk"), (1, b"another")] {
        let chunk = UploadChunkArgs { canister_id: id(number), chunk: bytes.to_vec() };
        manage(subnet, "upload_chunk", chunk).unwrap();
    }
    let taken = take(subnet, 0);
    // One that was uploaded, of which the module is missing yet.
    let described = subnet.snapshot_metadata(&id(0), &taken.id).unwrap();
    let uploaded = subnet.upload_snapshot_metadata(&id(1), None, &described).unwrap();
    send(subnet, id(0), "add", &[]);
    let settings = CanisterSettings {
        compute_allocation: Some(Nat::from(1_u8)),
        freezing_threshold: Some(Nat::from(3_000_000_u32)),
        reserved_cycles_limit: Some(Nat::from(10_u64.pow(12))),
        wasm_memory_threshold: Some(Nat::from(1_000_u32)),
        log_visibility: Some(LogVisibility::Public),
        ..CanisterSettings::default()
    };
    let args = UpdateSettingsArgs { canister_id: id(1), settings, sender_canister_version: None };
    manage(subnet, "update_settings", args).unwrap();
    // Canister 2 stays empty, 3 is deleted: its id is not given again.
    for number in 2..4 {
        assert_eq!(create(subnet), id(number));
    }
    for (method, number) in [("stop_canister", 3), ("delete_canister", 3), ("stop_canister", 1)] {
        manage(subnet, method, of(number)).unwrap();
    }
    [taken.id, uploaded]
}

/// Continues with all canisters, and returns their visible state.
fn observe(subnet: &mut Subnet, snapshots: &[Vec<u8>]) -> Vec<String> {
    let mut seen = Vec::new();
    let mut see = |subnet: &mut Subnet, callee: Principal, method: &str, argument: &[u8]| {
        let call = subnet.update(USER, callee, method, argument).unwrap();
        seen.push(format!("{method}: {:?}", call.response));
        for it in &call.executions {
            let it = &it.execution;
            seen.push(format!(
                "{:?} {:?} {:?} {:?}",
                it.outcome, it.instructions, it.charge, it.cycles
            ));
        }
        let balance = |canister: &Canister| (canister.id(), canister.balance(), canister.version());
        seen.push(format!(
            "{:?} {}",
            subnet.canisters().map(balance).collect::<Vec<_>>(),
            subnet.time()
        ));
    };
    for number in 0..3 {
        let argument = encode_one(of(number)).unwrap();
        for method in ["canister_status", "stored_chunks", "list_canister_snapshots"] {
            see(subnet, MANAGEMENT, method, &argument);
        }
    }
    for method in ["add", "random"] {
        see(subnet, id(0), method, &[]);
        see(subnet, id(1), method, &[]);
    }
    see(subnet, MANAGEMENT, "start_canister", &encode_one(of(1)).unwrap());
    for (number, snapshot_id) in snapshots.iter().enumerate() {
        let args = LoadCanisterSnapshotArgs {
            canister_id: id(number as u8),
            snapshot_id: snapshot_id.clone(),
            sender_canister_version: None,
        };
        see(subnet, MANAGEMENT, "load_canister_snapshot", &encode_one(args).unwrap());
    }
    // Timers, and the charge for storage.
    for _ in 0..20 {
        subnet.set_time(subnet.time() + SECOND);
        see(subnet, id(0), "add", &[]);
        see(subnet, id(1), "add", &[]);
    }
    let create = encode_one(CreateCanisterArgs { settings: None, sender_canister_version: None });
    see(subnet, MANAGEMENT, "provisional_create_canister_with_cycles", &create.unwrap());
    let logs = encode_one(of(1)).unwrap();
    seen.push(format!(
        "{:?}",
        subnet.query(USER, MANAGEMENT, "fetch_canister_logs", &logs).map(|it| it.response)
    ));
    seen
}

#[test]
fn a_loaded_subnet_goes_on_as_one_that_was_not_saved() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("subnet");
    for rules in [Rules::of_2025_10(), Rules::today()] {
        let replica = Replica::new(rules, None).unwrap();
        let mut subnet = subnet_of(&replica, &[MODULE; 2]);
        let snapshots = fill(&mut subnet);
        assert!(subnet.is_idle());
        subnet.save(&path, "a note").unwrap();
        let saved = fs::read(&path).unwrap();
        let (mut loaded, note) = replica.load_subnet(&path).unwrap();
        assert_eq!(note, "a note");
        loaded.save(&path, "a note").unwrap();
        assert!(fs::read(&path).unwrap() == saved, "everything that was saved is loaded");
        let expected = observe(&mut subnet, &snapshots);
        let found = observe(&mut loaded, &snapshots);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected);
        }
        assert_eq!(found.len(), expected.len());
        let (mut again, _) = replica.load_subnet(&path).unwrap();
        assert_eq!(create(&mut again), id(4), "the id of the deleted canister is not given again");
    }
}

/// Loads the bytes as a file.
fn tried(replica: &Replica, path: &Path, bytes: &[u8]) -> Result<Subnet, LoadError> {
    fs::write(path, bytes).unwrap();
    replica.load_subnet(path).map(|(subnet, _)| subnet)
}

#[test]
fn damaged_subnets_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("subnet");
    let replica = Replica::new(Rules::today(), None).unwrap();
    let mut subnet = subnet_of(&replica, &[MODULE; 2]);
    fill(&mut subnet);
    // Without the note, there is room for other headers.
    subnet.save(&path, &" ".repeat(500)).unwrap();
    let whole = fs::read(&path).unwrap();
    for end in [0, 7, 47, 60, 300, 65_536, whole.len() - 1] {
        assert!(tried(&replica, &path, &whole[..end]).is_err(), "cut at {end}");
    }
    let length = usize::try_from(u64::from_le_bytes(whole[8..16].try_into().unwrap())).unwrap();
    let chunk = whole.windows(7).position(|bytes| bytes == b"a chunk").unwrap();
    for at in [0, 9, 20, 50, 47 + length, chunk, 65_536 + 20] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        assert!(tried(&replica, &path, &bytes).is_err(), "changed at {at}");
    }
    // Another header with a matching hash.
    let mut header: serde_json::Value = serde_json::from_slice(&whole[48..48 + length]).unwrap();
    header["note"] = "".into();
    let (huge, first) = (serde_json::json!(u64::MAX), &header["canisters"][0]);
    for (pointer, value) in [
        ("/note", "another".into()),
        ("/format", huge.clone()),
        ("/rules", "2025-10".into()),
        ("/next_id", huge.clone()),
        ("/next_id", 0.into()),
        ("/clock/time", huge.clone()),
        ("/clock/last_round", huge.clone()),
        ("/random/drawn", huge.clone()),
        ("/chunks/0/at", huge.clone()),
        ("/chunks/0/bytes", huge.clone()),
        ("/chunks/0/hash", "00".into()),
        ("/canisters/1", first.clone()),
        ("/canisters/0/at", huge.clone()),
        ("/canisters/0/at", 1.into()),
        ("/canisters/0/place/paid_until", huge.clone()),
        ("/canisters/0/allocation/compute", huge.clone()),
        ("/canisters/0/history/0", huge.clone()),
        ("/canisters/0/managed/total_changes", huge.clone()),
        ("/canisters/0/managed/log/bytes", huge.clone()),
        ("/canisters/0/chunks/0", "00".repeat(32).into()),
        ("/canisters/0/snapshots/0/at", huge.clone()),
        ("/canisters/0/snapshots/0/bytes", huge.clone()),
    ] {
        let mut other = header.clone();
        *other.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        let text = serde_json::to_vec(&other).unwrap();
        let mut bytes = whole.clone();
        assert!(text.len() <= length);
        bytes[8..16].copy_from_slice(&(text.len() as u64).to_le_bytes());
        bytes[16..48].copy_from_slice(&<sha2::Sha256 as sha2::Digest>::digest(&text));
        bytes[48..48 + text.len()].copy_from_slice(&text);
        let is_note = pointer == "/note";
        assert_eq!(tried(&replica, &path, &bytes).is_ok(), is_note, "{pointer}");
    }
}

#[test]
fn a_file_with_one_canister_is_a_subnet() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canister");
    let replica = Replica::new(Rules::today(), None).unwrap();
    let mut subnet = subnet_of(&replica, &[MODULE; 2]);
    send(&mut subnet, id(0), "add", &[]);
    subnet.canister(&id(0)).unwrap().save(&path).unwrap();
    let (mut loaded, note) = replica.load_subnet(&path).unwrap();
    assert_eq!((note.as_str(), loaded.canisters().count()), ("", 1));
    assert_eq!(send(&mut loaded, id(0), "add", &[]), send(&mut subnet, id(0), "add", &[]));
    loaded.save(&path, "").unwrap();
    let error = replica.load_for_subnet(&path).unwrap_err();
    assert!(matches!(error, LoadError::Subnet), "{error}");
}
