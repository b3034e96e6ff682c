//! Snapshots that are read and uploaded: the interface for programs, and the rules of today, which
//! the recorded cases do not show.

use candid::{CandidType, Principal, decode_one, encode_one};
use ic_management_canister_types::{
    CanisterSettings, LoadCanisterSnapshotArgs, ReadCanisterSnapshotDataArgs,
    ReadCanisterSnapshotDataResult, ReadCanisterSnapshotMetadataArgs, Snapshot, SnapshotDataKind,
    SnapshotDataOffset, SnapshotVisibility, TakeCanisterSnapshotArgs, UpdateSettingsArgs,
    UploadCanisterSnapshotDataArgs, UploadChunkArgs,
};
use stablebench_replica::subnet::{Global, GlobalTimer, HookStatus, SnapshotMetadata, Subnet};
use stablebench_replica::{Canister, ErrorCode, Reject, Replica, Rules, Settings};

const MANAGEMENT: Principal = Principal::management_canister();
const USER: Principal = Principal::anonymous();
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

fn id(number: u8) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number, 1, 1])
}

/// A subnet with canisters 0 and 1, which the user controls.
fn subnet(rules: Rules) -> Subnet {
    let replica = Replica::new(rules, None).unwrap();
    let mut subnet = Subnet::new(&replica);
    for number in 0..2 {
        let id = id(number);
        let module = replica.compile_for_subnet(&id, &wat::parse_str(COUNTER).unwrap()).unwrap();
        let usual = replica.create_canister().unwrap();
        let settings = Settings { id, ..usual.settings().clone() };
        let mut canister = Canister::new(settings).unwrap();
        canister.install(&module, USER, &[]).unwrap().outcome.unwrap();
        subnet.add(canister).unwrap();
    }
    subnet
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
