//! Snapshots that are read and uploaded.
//!
//! The user, who controls canisters 0 and 1, calls the management canister about canister 1, so that
//! what canister 1 pays is recorded. Canister 0 runs scripts.

mod callers;
mod loading;
mod transfers;

use candid::Nat;
use candid::utils::ArgumentEncoder;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, LoadCanisterSnapshotArgs, ReadCanisterSnapshotDataArgs,
    ReadCanisterSnapshotMetadataArgs, SnapshotDataKind, SnapshotDataOffset, SnapshotMetadataGlobal,
    TakeCanisterSnapshotArgs, UpdateSettingsArgs, UploadCanisterSnapshotDataArgs,
    UploadCanisterSnapshotMetadataArgs,
};
use stablebench_conformance::Kind;
use stablebench_conformance::subnet::SubnetCase;

use super::steps::{Case, id, wasm, without_heartbeat};

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
    vec![
        transfers::metadata(),
        transfers::data(),
        transfers::chunks(),
        transfers::invalid_metadata(),
        transfers::uploads(),
        transfers::immutable(),
        transfers::replaced(),
        loading::loading(),
        loading::sizes(),
        loading::into_another(),
        loading::timers(),
        loading::low_memory(),
        callers::without_cycles(),
        callers::allocated(),
        callers::by_canisters(),
        callers::not_controlled(),
    ]
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

fn status(case: &mut Case) {
    user(case, "canister_status", (CanisterIdRecord { canister_id: id(1) },));
}

fn add(case: &mut Case) {
    case.method(Kind::Update, 1, "add", &[]);
}

fn get(case: &mut Case) {
    case.method(Kind::Query, 1, "get", &[]);
}

fn set(case: &mut Case, settings: CanisterSettings) {
    let args = UpdateSettingsArgs { canister_id: id(1), settings, sender_canister_version: None };
    user(case, "update_settings", (args,));
}

fn none() -> CanisterSettings {
    CanisterSettings::default()
}

fn nat(number: u64) -> Option<Nat> {
    Some(Nat::from(number))
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
