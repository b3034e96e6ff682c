//! Saved subnets: one that was saved and loaded goes on as one that was not.

use std::fs;
use std::path::Path;

use candid::{CandidType, Nat, Principal, decode_one, encode_one};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, CreateCanisterArgs, LoadCanisterSnapshotArgs,
    LogVisibility, ProvisionalCreateCanisterWithCyclesArgs, Snapshot, TakeCanisterSnapshotArgs,
    UpdateSettingsArgs, UploadChunkArgs,
};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Canister, LoadError, Replica, Rules, Settings};

const MANAGEMENT: Principal = Principal::management_canister();
const USER: Principal = Principal::anonymous();
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

fn id(number: u8) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number, 1, 1])
}

/// A subnet with canisters 0 and 1, which the user controls.
fn subnet(replica: &Replica) -> Subnet {
    let mut subnet = Subnet::new(replica);
    for number in 0..2 {
        let id = id(number);
        let module = replica.compile_for_subnet(&id, &wat::parse_str(MODULE).unwrap()).unwrap();
        let usual = replica.create_canister().unwrap();
        let mut canister = Canister::new(Settings { id, ..usual.settings().clone() }).unwrap();
        canister.install(&module, USER, &[]).unwrap().outcome.unwrap();
        subnet.add(canister).unwrap();
    }
    subnet
}

/// Calls a method, and returns the reply.
fn call(subnet: &mut Subnet, callee: Principal, method: &str, argument: &[u8]) -> Vec<u8> {
    subnet.update(USER, callee, method, argument).unwrap().response.unwrap()
}

fn manage(subnet: &mut Subnet, method: &str, argument: impl CandidType) -> Vec<u8> {
    call(subnet, MANAGEMENT, method, &encode_one(argument).unwrap())
}

fn of(number: u8) -> CanisterIdRecord {
    CanisterIdRecord { canister_id: id(number) }
}

fn create(subnet: &mut Subnet) -> Principal {
    let args = ProvisionalCreateCanisterWithCyclesArgs {
        amount: Some(Nat::from(10_u64.pow(13))),
        settings: None,
        specified_id: None,
        sender_canister_version: None,
    };
    let reply = manage(subnet, "provisional_create_canister_with_cycles", args);
    decode_one::<CanisterIdRecord>(&reply).unwrap().canister_id
}

/// Gives the subnet something of everything that is saved. Returns the ids of snapshots.
fn fill(subnet: &mut Subnet) -> [Vec<u8>; 2] {
    for number in [0, 0, 1] {
        call(subnet, id(number), "add", &[]);
    }
    call(subnet, id(0), "random", &[]);
    for (number, bytes) in [(0, b"a chunk"), (1, b"another")] {
        let chunk = UploadChunkArgs { canister_id: id(number), chunk: bytes.to_vec() };
        manage(subnet, "upload_chunk", chunk);
    }
    let args = TakeCanisterSnapshotArgs {
        canister_id: id(0),
        replace_snapshot: None,
        uninstall_code: None,
        sender_canister_version: None,
    };
    let taken: Snapshot = decode_one(&manage(subnet, "take_canister_snapshot", args)).unwrap();
    // One that was uploaded, of which the module is missing yet.
    let described = subnet.snapshot_metadata(&id(0), &taken.id).unwrap();
    let uploaded = subnet.upload_snapshot_metadata(&id(1), None, &described).unwrap();
    call(subnet, id(0), "add", &[]);
    let settings = CanisterSettings {
        compute_allocation: Some(Nat::from(1_u8)),
        freezing_threshold: Some(Nat::from(3_000_000_u32)),
        reserved_cycles_limit: Some(Nat::from(10_u64.pow(12))),
        wasm_memory_threshold: Some(Nat::from(1_000_u32)),
        log_visibility: Some(LogVisibility::Public),
        ..CanisterSettings::default()
    };
    let args = UpdateSettingsArgs { canister_id: id(1), settings, sender_canister_version: None };
    manage(subnet, "update_settings", args);
    // Canister 2 stays empty, 3 is deleted: its id is not given again.
    for number in 2..4 {
        assert_eq!(create(subnet), id(number));
    }
    for (method, number) in [("stop_canister", 3), ("delete_canister", 3), ("stop_canister", 1)] {
        manage(subnet, method, of(number));
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
        let mut subnet = subnet(&replica);
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
    let mut subnet = subnet(&replica);
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
    let mut subnet = subnet(&replica);
    call(&mut subnet, id(0), "add", &[]);
    subnet.canister(&id(0)).unwrap().save(&path).unwrap();
    let (mut loaded, note) = replica.load_subnet(&path).unwrap();
    assert_eq!((note.as_str(), loaded.canisters().count()), ("", 1));
    assert_eq!(call(&mut loaded, id(0), "add", &[]), call(&mut subnet, id(0), "add", &[]));
    loaded.save(&path, "").unwrap();
    let error = replica.load_for_subnet(&path).unwrap_err();
    assert!(matches!(error, LoadError::Subnet), "{error}");
}
