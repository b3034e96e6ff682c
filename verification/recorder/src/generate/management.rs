//! Calls of the management canister, by a canister and by a user.
//!
//! Each case has a subject, which canister 0 creates: the case's first call.

use candid::{Nat, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterInstallMode, CanisterMetadataArgs,
    CanisterSettings, ChunkHash, CreateCanisterArgs, DeleteCanisterSnapshotArgs,
    EnvironmentVariable, InstallChunkedCodeArgs, InstallCodeArgs, LoadCanisterSnapshotArgs,
    LogVisibility, ProvisionalCreateCanisterWithCyclesArgs, ProvisionalTopUpCanisterArgs,
    TakeCanisterSnapshotArgs, UninstallCodeArgs, UpdateSettingsArgs, UpgradeFlags, UploadChunkArgs,
    WasmMemoryPersistence,
};
use sha2::{Digest, Sha256};
use stablebench_conformance::subnet::SubnetCase;

use super::script::{
    CREATION, Case, Script, USER, candid, id, of_group, record, send, subject, wasm,
    without_heartbeat,
};

/// A module with a counter, and functions of every kind of installation.
const COUNTER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "trap" (func $trap (param i32 i32)))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (memory 1)
    (global $count (mut i64) (i64.const 0))
    (data (i32.const 100) "no argument is accepted")
    (func (export "canister_init")
        (if (call $size) (then (call $trap (i32.const 100) (i32.const 23))))
        (global.set $count (i64.const 7)))
    (func (export "canister_pre_upgrade")
        (drop (call $grow (i64.const 1)))
        (i64.store (i32.const 0) (global.get $count))
        (call $write (i64.const 0) (i64.const 0) (i64.const 8)))
    (func (export "canister_post_upgrade")
        (call $read (i64.const 0) (i64.const 0) (i64.const 8))
        (global.set $count (i64.add (i64.load (i32.const 0)) (i64.const 1000))))
    (func (export "canister_update add")
        (global.set $count (i64.add (global.get $count) (i64.const 1)))
        (call $certify (i32.const 0) (i32.const 5))
        (i64.store (i32.const 0) (global.get $count))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (func (export "canister_query get")
        (i64.store (i32.const 0) (global.get $count))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (@custom "icp:public candid:service" "service : { add : () -> () }")
    (@custom "icp:private note" "for controllers"))"#;

/// A module that keeps its heap in upgrades.
const PERSISTENT: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (memory 1)
    (func (export "canister_update add")
        (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1)))
        (call $append (i32.const 8) (i32.const 8)) (call $reply))
    (@custom "icp:private enhanced-orthogonal-persistence" ""))"#;

/// All cases.
pub fn cases() -> Vec<SubnetCase> {
    let cases = vec![
        creation(),
        settings(),
        allocations(),
        installation(),
        upgrades(),
        persistence(),
        kept_heaps(),
        chunks(),
        snapshots(),
        status(),
        stopping(),
        open_calls(),
        cycles(),
        by_users(),
        refused(),
    ];
    of_group("management", cases)
}

/// A case whose subject has a module.
fn installed() -> Case {
    let mut case = Case::with_subject();
    case.manage("install_code", (install(CanisterInstallMode::Install, COUNTER, &[]),));
    case
}

fn install(mode: CanisterInstallMode, module: &str, arg: &[u8]) -> InstallCodeArgs {
    InstallCodeArgs {
        mode,
        canister_id: subject(),
        wasm_module: wasm(module),
        arg: arg.to_vec(),
        sender_canister_version: None,
    }
}

fn update(settings: CanisterSettings) -> (UpdateSettingsArgs,) {
    let sender_canister_version = None;
    (UpdateSettingsArgs { canister_id: subject(), settings, sender_canister_version },)
}

fn update_of(canister_id: Principal) -> (UpdateSettingsArgs,) {
    let (args,) = update(CanisterSettings::default());
    (UpdateSettingsArgs { canister_id, ..args },)
}

fn info(changes: u64) -> (CanisterInfoArgs,) {
    (CanisterInfoArgs { canister_id: subject(), num_requested_changes: Some(changes) },)
}

fn creation() -> SubnetCase {
    let mut case = Case::default();
    case.manage_with(0, "create_canister", (CreateCanisterArgs::default(),));
    let version =
        |version| (CreateCanisterArgs { settings: None, sender_canister_version: Some(version) },);
    case.manage("create_canister", version(2));
    case.manage("create_canister", version(5));
    case.manage_with(499_999_999_999, "create_canister", (CreateCanisterArgs::default(),));
    case.manage_with(CREATION, "create_canister", (CreateCanisterArgs::default(),));
    case.manage("canister_status", (record(),));
    let settings = CanisterSettings {
        controllers: Some(vec![id(1), USER, id(0), id(1)]),
        freezing_threshold: Some(Nat::from(1_000_u32)),
        ..CanisterSettings::default()
    };
    let create = CreateCanisterArgs { settings: Some(settings), sender_canister_version: None };
    case.manage_with(CREATION, "create_canister", (create,));
    let other = CanisterIdRecord { canister_id: id(3) };
    case.manage("canister_status", (&other,));
    case.stranger("canister_status", (other,));
    case.stranger("canister_status", (record(),));
    let args = ProvisionalCreateCanisterWithCyclesArgs {
        amount: Some(Nat::from(3_000_000_000_000_u64)),
        ..Default::default()
    };
    case.manage("provisional_create_canister_with_cycles", (args,));
    case.manage("canister_status", (CanisterIdRecord { canister_id: id(4) },));
    case.manage("canister_status", (CanisterIdRecord { canister_id: id(9) },));
    case.manage("canister_info", info(20));
    case.named("creation")
}

fn settings() -> SubnetCase {
    let mut case = Case::with_subject();
    let none = CanisterSettings::default;
    let nat = |number: u128| Some(Nat::from(number));
    let variable = |name: &str, value: &str| EnvironmentVariable {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let valid = [
        CanisterSettings { freezing_threshold: nat(86_400), ..none() },
        CanisterSettings { wasm_memory_limit: nat(1 << 30), ..none() },
        CanisterSettings { wasm_memory_threshold: nat(1 << 20), ..none() },
        CanisterSettings { reserved_cycles_limit: nat(17), ..none() },
        CanisterSettings { log_visibility: Some(LogVisibility::Public), ..none() },
        CanisterSettings {
            log_visibility: Some(LogVisibility::AllowedViewers(vec![USER])),
            ..none()
        },
        CanisterSettings {
            environment_variables: Some(vec![variable("B", "2"), variable("A", "1")]),
            ..none()
        },
        none(),
        CanisterSettings { controllers: Some(vec![id(0), id(1)]), ..none() },
    ];
    for settings in valid {
        case.manage("update_settings", update(settings));
    }
    case.manage("canister_status", (record(),));
    case.manage("canister_info", info(3));
    let wrong = [
        CanisterSettings { freezing_threshold: nat(1 << 64), ..none() },
        CanisterSettings { wasm_memory_limit: nat((1 << 48) + 1), ..none() },
        CanisterSettings { wasm_memory_threshold: nat(1 << 64), ..none() },
        CanisterSettings { reserved_cycles_limit: Some(Nat::from(u128::MAX) + 1_u8), ..none() },
        CanisterSettings { compute_allocation: nat(101), ..none() },
        CanisterSettings { memory_allocation: nat(1 << 64), ..none() },
        CanisterSettings {
            environment_variables: Some(vec![variable("A", "1"), variable("A", "2")]),
            ..none()
        },
        CanisterSettings {
            environment_variables: Some(vec![variable(&"A".repeat(129), "1")]),
            ..none()
        },
        CanisterSettings {
            environment_variables: Some((0..21).map(|n| variable(&n.to_string(), "")).collect()),
            ..none()
        },
    ];
    for settings in wrong {
        case.manage("update_settings", update(settings));
    }
    case.stranger("update_settings", update(none()));
    case.manage(
        "update_settings",
        update(CanisterSettings { controllers: Some(vec![]), ..none() }),
    );
    case.manage("canister_status", (record(),));
    case.manage("update_settings", update(none()));
    case.named("settings")
}

fn allocations() -> SubnetCase {
    let mut case = Case::with_subject();
    let none = CanisterSettings::default;
    let nat = |number: u128| Some(Nat::from(number));
    for settings in [
        CanisterSettings { memory_allocation: nat(1), ..none() },
        CanisterSettings { memory_allocation: nat(1 << 20), ..none() },
        CanisterSettings { memory_allocation: nat(1 << 40), ..none() },
        CanisterSettings { compute_allocation: nat(1), ..none() },
        CanisterSettings { compute_allocation: nat(50), ..none() },
    ] {
        case.manage("update_settings", update(settings));
    }
    case.manage("canister_status", (record(),));
    let zero = CanisterSettings { compute_allocation: nat(0), memory_allocation: nat(0), ..none() };
    case.manage("update_settings", update(zero));
    case.manage("canister_status", (record(),));
    case.named("allocations")
}

fn installation() -> SubnetCase {
    let mut case = Case::with_subject();
    case.subject("add");
    case.stranger("install_code", (install(CanisterInstallMode::Install, COUNTER, &[]),));
    case.manage("install_code", (install(CanisterInstallMode::Install, COUNTER, &[1]),));
    case.rounds(40);
    case.manage("install_code", (install(CanisterInstallMode::Upgrade(None), COUNTER, &[]),));
    case.rounds(40);
    case.manage("install_code", (install(CanisterInstallMode::Install, COUNTER, &[]),));
    case.rounds(40);
    case.subject("add");
    case.manage("install_code", (install(CanisterInstallMode::Install, COUNTER, &[]),));
    case.rounds(40);
    case.manage("install_code", (install(CanisterInstallMode::Reinstall, COUNTER, &[]),));
    case.rounds(40);
    case.subject("add");
    let empty = InstallCodeArgs {
        wasm_module: b"no module".to_vec(),
        ..install(CanisterInstallMode::Reinstall, COUNTER, &[])
    };
    case.manage("install_code", (empty,));
    case.rounds(40);
    case.subject("add");
    case.manage("canister_info", info(20));
    let uninstall = UninstallCodeArgs { canister_id: subject(), sender_canister_version: None };
    case.stranger("uninstall_code", (&uninstall,));
    case.manage("uninstall_code", (&uninstall,));
    case.subject("add");
    case.manage("canister_info", info(1));
    case.manage("uninstall_code", (&uninstall,));
    case.manage("install_code", (install(CanisterInstallMode::Upgrade(None), COUNTER, &[]),));
    case.rounds(40);
    case.named("installation")
}

fn upgrades() -> SubnetCase {
    let mut case = installed();
    case.rounds(40);
    case.subject("add");
    case.manage("install_code", (install(CanisterInstallMode::Upgrade(None), COUNTER, &[]),));
    case.rounds(40);
    case.subject("add");
    let skip = UpgradeFlags { skip_pre_upgrade: Some(true), wasm_memory_persistence: None };
    let mode = CanisterInstallMode::Upgrade(Some(skip));
    case.manage("install_code", (install(mode, COUNTER, &[]),));
    case.rounds(40);
    case.subject("add");
    let keep = UpgradeFlags {
        skip_pre_upgrade: None,
        wasm_memory_persistence: Some(WasmMemoryPersistence::Keep),
    };
    let mode = CanisterInstallMode::Upgrade(Some(keep));
    case.manage("install_code", (install(mode, COUNTER, &[]),));
    case.rounds(40);
    case.subject("add");
    case.manage("canister_info", info(2));
    case.named("upgrades")
}

fn persistence() -> SubnetCase {
    let mut case = Case::with_subject();
    case.manage("install_code", (install(CanisterInstallMode::Install, PERSISTENT, &[]),));
    case.rounds(40);
    case.subject("add");
    let modes = [
        None,
        Some(UpgradeFlags {
            wasm_memory_persistence: Some(WasmMemoryPersistence::Keep),
            ..UpgradeFlags::default()
        }),
        Some(UpgradeFlags {
            wasm_memory_persistence: Some(WasmMemoryPersistence::Replace),
            ..UpgradeFlags::default()
        }),
    ];
    for mode in modes {
        let mode = CanisterInstallMode::Upgrade(mode);
        case.manage("install_code", (install(mode, PERSISTENT, &[]),));
        case.rounds(40);
        case.subject("add");
    }
    case.named("persistence")
}

/// Upgrades that keep the heap, to modules that want another size.
fn kept_heaps() -> SubnetCase {
    let mut case = Case::with_subject();
    let memories = ["1", "3", "2", "2 9", "1 3", "i64 3", "i64 1 8"];
    let mut mode = CanisterInstallMode::Install;
    for memory in memories {
        let module = PERSISTENT.replace("(memory 1)", &format!("(memory {memory})"));
        let module = match memory.starts_with("i64") {
            true => module.replace("i32", "i64"),
            false => module,
        };
        case.manage("install_code", (install(mode, &module, &[]),));
        case.rounds(40);
        case.subject("add");
        mode = CanisterInstallMode::Upgrade(Some(UpgradeFlags {
            skip_pre_upgrade: None,
            wasm_memory_persistence: Some(WasmMemoryPersistence::Keep),
        }));
    }
    case.named("kept_heaps")
}

fn chunks() -> SubnetCase {
    let mut case = Case::with_subject();
    let module = wasm(COUNTER);
    let (first, second) = module.split_at(module.len() / 2);
    let upload =
        |chunk: &[u8]| (UploadChunkArgs { canister_id: subject(), chunk: chunk.to_vec() },);
    let hash = |chunk: &[u8]| ChunkHash { hash: Sha256::digest(chunk).to_vec() };
    case.manage("stored_chunks", (record(),));
    case.manage("upload_chunk", upload(first));
    case.manage("upload_chunk", upload(second));
    case.manage("upload_chunk", upload(first));
    case.stranger("upload_chunk", upload(second));
    case.manage("stored_chunks", (record(),));
    case.stranger("stored_chunks", (record(),));
    case.manage("canister_status", (record(),));
    let chunked = InstallChunkedCodeArgs {
        mode: CanisterInstallMode::Install,
        target_canister: subject(),
        store_canister: None,
        chunk_hashes_list: vec![hash(first), hash(second)],
        wasm_module_hash: hash(&module).hash,
        arg: Vec::new(),
        sender_canister_version: None,
    };
    let wrong = InstallChunkedCodeArgs { chunk_hashes_list: Vec::new(), ..chunked.clone() };
    case.manage("install_chunked_code", (wrong,));
    case.stranger("install_chunked_code", (&chunked,));
    case.manage("install_chunked_code", (&chunked,));
    case.rounds(40);
    case.subject("add");
    case.stranger("clear_chunk_store", (record(),));
    case.manage("clear_chunk_store", (record(),));
    case.manage("stored_chunks", (record(),));
    case.named("chunks")
}

fn snapshots() -> SubnetCase {
    let mut case = Case::with_subject();
    let take = |replace_snapshot: Option<Vec<u8>>| {
        (TakeCanisterSnapshotArgs {
            canister_id: subject(),
            replace_snapshot,
            uninstall_code: None,
            sender_canister_version: None,
        },)
    };
    let snapshot = |number: u64| [number.to_be_bytes().as_slice(), subject().as_slice()].concat();
    let load = |number: u64| {
        (LoadCanisterSnapshotArgs {
            canister_id: subject(),
            snapshot_id: snapshot(number),
            sender_canister_version: None,
        },)
    };
    case.manage("take_canister_snapshot", take(None));
    case.manage("install_code", (install(CanisterInstallMode::Install, COUNTER, &[]),));
    case.rounds(40);
    case.subject("add");
    case.stranger("take_canister_snapshot", take(None));
    case.manage("take_canister_snapshot", take(None));
    case.subject("add");
    case.manage("take_canister_snapshot", take(None));
    case.subject("add");
    case.rounds(40);
    case.manage("load_canister_snapshot", load(0));
    case.subject("add");
    case.manage("load_canister_snapshot", load(7));
    case.stranger("load_canister_snapshot", load(0));
    case.manage("take_canister_snapshot", take(Some(snapshot(0))));
    case.manage("take_canister_snapshot", take(Some(snapshot(0))));
    case.stranger("list_canister_snapshots", (record(),));
    let delete = |number: u64| {
        let snapshot_id = snapshot(number);
        (DeleteCanisterSnapshotArgs { canister_id: subject(), snapshot_id },)
    };
    case.manage("delete_canister_snapshot", delete(1));
    case.manage("delete_canister_snapshot", delete(1));
    case.manage("canister_info", info(1));
    case.named("snapshots")
}

fn status() -> SubnetCase {
    let mut case = installed();
    case.rounds(40);
    case.subject("add");
    let metadata =
        |name: &str| (CanisterMetadataArgs { canister_id: subject(), name: name.to_owned() },);
    for name in ["candid:service", "note", "other"] {
        case.manage("canister_metadata", metadata(name));
        case.stranger("canister_metadata", metadata(name));
    }
    case.manage("canister_info", info(0));
    case.stranger("canister_info", info(1));
    case.manage(
        "canister_info",
        (CanisterInfoArgs { canister_id: id(9), num_requested_changes: None },),
    );
    // Of itself.
    case.manage("canister_status", (CanisterIdRecord { canister_id: id(1) },));
    case.stranger(
        "canister_info",
        (CanisterInfoArgs { canister_id: id(1), num_requested_changes: None },),
    );
    case.named("status")
}

fn stopping() -> SubnetCase {
    let mut case = installed();
    case.rounds(40);
    case.stranger("stop_canister", (record(),));
    case.manage("delete_canister", (record(),));
    case.manage("stop_canister", (record(),));
    case.manage("stop_canister", (record(),));
    case.subject("add");
    case.manage("canister_info", info(0));
    case.stranger("start_canister", (record(),));
    case.manage("start_canister", (record(),));
    case.manage("start_canister", (record(),));
    case.subject("add");
    case.manage("stop_canister", (record(),));
    case.stranger("delete_canister", (record(),));
    case.manage("delete_canister", (record(),));
    case.subject("add");
    case.manage("canister_status", (record(),));
    case.manage("delete_canister", (CanisterIdRecord { canister_id: id(0) },));
    case.manage_with(CREATION, "create_canister", (CreateCanisterArgs::default(),));
    case.named("stopping")
}

/// Stops and uninstalls the subject while it waits for an answer.
fn open_calls() -> SubnetCase {
    let mut case = Case::with_subject();
    let module = without_heartbeat();
    let installs = |case: &mut Case, mode| {
        case.manage("install_code", (install(mode, &module, &[]),));
        case.rounds(40);
    };
    installs(&mut case, CanisterInstallMode::Install);
    let management = Principal::management_canister();
    let about_subject =
        |method| send(management, method, Script::bytes(&candid((record(),))), None);
    // The subject asks for its own status, which takes two rounds.
    let mut asks = Script::default();
    asks.send(&about_subject("canister_info"));
    let open = send(subject(), "run", asks, Some(1_000));
    let uninstall = UninstallCodeArgs { canister_id: subject(), sender_canister_version: None };
    let uninstall = send(management, "uninstall_code", Script::bytes(&candid((uninstall,))), None);
    let [stop, start, delete] =
        ["stop_canister", "start_canister", "delete_canister"].map(about_subject);
    for answered in 0..2 {
        case.calls(answered, &[open.clone(), stop.clone()]);
        case.manage("start_canister", (record(),));
    }
    for answered in 0..3 {
        case.calls(answered, &[open.clone(), stop.clone(), start.clone()]);
    }
    for answered in 0..3 {
        case.calls(answered, &[open.clone(), stop.clone(), delete.clone()]);
        case.manage("start_canister", (record(),));
    }
    case.calls(1, &[open.clone(), stop.clone(), stop.clone()]);
    case.calls(0, &[start.clone(), open.clone()]);
    for answered in 0..2 {
        case.calls(answered, &[open.clone(), uninstall.clone()]);
        installs(&mut case, CanisterInstallMode::Install);
    }
    case.calls(0, &[open.clone(), stop.clone(), uninstall.clone()]);
    case.manage("canister_info", info(3));
    case.named("open_calls")
}

fn cycles() -> SubnetCase {
    let mut case = Case::with_subject();
    case.manage_with(1_000_000, "deposit_cycles", (record(),));
    case.manage("deposit_cycles", (record(),));
    let other = CanisterIdRecord { canister_id: id(1) };
    case.manage_with(123_456_789, "deposit_cycles", (other,));
    case.manage_with(5, "deposit_cycles", (CanisterIdRecord { canister_id: id(9) },));
    case.manage_with(5, "canister_status", (record(),));
    case.manage_with(5, "start_canister", (CanisterIdRecord { canister_id: id(9) },));
    let top_up = ProvisionalTopUpCanisterArgs { canister_id: id(1), amount: Nat::from(77_u8) };
    case.manage("provisional_top_up_canister", (top_up,));
    case.named("cycles")
}

fn by_users() -> SubnetCase {
    let mut case = Case::default();
    let about = |number: u8| CanisterIdRecord { canister_id: id(number) };
    case.user(0, "stop_canister", (about(0),));
    case.run(0, Script::default());
    case.user(
        0,
        "canister_info",
        (CanisterInfoArgs { canister_id: id(0), num_requested_changes: None },),
    );
    case.user(0, "start_canister", (about(0),));
    let settings = |controllers: Vec<Principal>| {
        (UpdateSettingsArgs {
            canister_id: id(0),
            settings: CanisterSettings {
                controllers: Some(controllers),
                ..CanisterSettings::default()
            },
            sender_canister_version: None,
        },)
    };
    case.user(0, "update_settings", settings(vec![USER, id(1)]));
    case.user(0, "raw_rand", ());
    case.user(0, "deposit_cycles", (about(0),));
    case.user(0, "no_such_method", (about(0),));
    let top_up = ProvisionalTopUpCanisterArgs { canister_id: id(1), amount: Nat::from(77_u8) };
    case.user(1, "provisional_top_up_canister", (top_up,));
    let upload = UploadChunkArgs { canister_id: id(0), chunk: vec![7; 1_000] };
    case.user(0, "upload_chunk", (upload,));
    case.user(0, "stored_chunks", (about(0),));
    case.user(0, "update_settings", settings(vec![id(1)]));
    case.user(0, "stop_canister", (about(0),));
    case.user(0, "canister_status", (about(0),));
    case.user(
        1,
        "uninstall_code",
        (UninstallCodeArgs { canister_id: id(1), sender_canister_version: None },),
    );
    case.named("by_users")
}

fn refused() -> SubnetCase {
    let mut case = Case::with_subject();
    case.manage("no_such_method", (record(),));
    case.manage("canister_status", ());
    case.manage("canister_status", (CanisterIdRecord { canister_id: USER },));
    case.manage("update_settings", update_of(USER));
    case.manage("fetch_canister_logs", (record(),));
    case.manage("create_canister", ());
    case.manage("install_code", ());
    case.named("refused")
}
