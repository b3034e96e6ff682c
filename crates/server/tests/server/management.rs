//! The management canister, mostly through `ic-utils`. The Motoko actors that it installs and upgrades
//! are those of the replica's tests.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use candid::{Decode, Encode, Principal};
use ic_agent::agent::RequestStatusResponse;
use ic_agent::{Agent, AgentError};
use ic_management_canister_types::{
    CanisterInfoArgs, CanisterInfoResult, CanisterLogFilter, FetchCanisterLogsArgs,
    FetchCanisterLogsResult,
};
use ic_management_canister_types_8::{
    CanisterIdRecord, CanisterInstallMode, CanisterStatusResult, CanisterStatusType,
    DeleteCanisterSnapshotArgs, EnvironmentVariable, InstallCodeArgs, LoadCanisterSnapshotArgs,
    LogVisibility, ProvisionalCreateCanisterWithCyclesArgs, TakeCanisterSnapshotArgs, UpgradeFlags,
    UploadChunkArgs, WasmMemoryPersistence,
};
use ic_utils::call::AsyncCall;
use ic_utils::interfaces::ManagementCanister;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use super::server::{CLOSED, COUNTER, Server, ed25519, number, query, update, wasm};

async fn create(agent: &Agent) -> Principal {
    let management = ManagementCanister::create(agent);
    let create = management.create_canister().as_provisional_create_with_amount(None);
    let first = Principal::from_text("lxzze-o7777-77777-aaaaa-cai").unwrap();
    create.with_effective_canister_id(first).call_and_wait().await.unwrap().0
}

fn error<T: std::fmt::Debug>(result: Result<T, AgentError>) -> String {
    result.unwrap_err().to_string()
}

#[tokio::test]
async fn a_canister_is_created_installed_upgraded_and_deleted() {
    let server = Server::start().await;
    let agent = server.agent(ed25519(1));
    let management = ManagementCanister::create(&agent);
    let id = create(&agent).await;
    assert_eq!(agent.read_state_canister_controllers(id).await.unwrap(), [ed25519_id(1)]);

    let empty = error(agent.update(&id, "add").call_and_wait().await);
    assert!(empty.contains("no wasm module"), "{empty}");
    let module = wasm(COUNTER);
    management.install_code(&id, &module).call_and_wait().await.unwrap();
    assert_eq!(number(&update(&agent, id, "add", &[]).await), 1);
    let again = error(management.install_code(&id, &module).call_and_wait().await);
    assert!(again.contains("IC0514") && again.contains("not empty"), "{again}");
    let broken = error(
        management
            .install_code(&id, b"\0asm\x01\0\0\0\xff")
            .with_mode(CanisterInstallMode::Reinstall)
            .call_and_wait()
            .await,
    );
    assert!(broken.contains("IC0505"), "{broken}");
    let wasi = wasm(r#"(module (import "wasi_snapshot_preview1" "fd_write" (func)))"#);
    let install = management.install_code(&id, &wasi).with_mode(CanisterInstallMode::Reinstall);
    let refused = error(install.call_and_wait().await);
    assert!(refused.contains("wasi2ic converts it"), "{refused}");
    // A failed install changes nothing.
    assert_eq!(number(&query(&agent, id, "get").await), 1);
    for mode in [CanisterInstallMode::Upgrade(None), CanisterInstallMode::Reinstall] {
        update(&agent, id, "add", &[]).await;
        management.install_code(&id, &module).with_mode(mode).call_and_wait().await.unwrap();
        assert_eq!(number(&query(&agent, id, "get").await), 0, "the heap is reset");
    }

    let running = error(management.delete_canister(&id).call_and_wait().await);
    assert!(running.contains("IC0510"), "{running}");
    management.stop_canister(&id).call_and_wait().await.unwrap();
    let stopped = error(agent.update(&id, "add").call_and_wait().await);
    assert!(stopped.contains("IC0508") && stopped.contains("is stopped"), "{stopped}");
    let stopped = error(agent.query(&id, "get").call().await);
    assert!(stopped.contains("is stopped"), "{stopped}");
    management.start_canister(&id).call_and_wait().await.unwrap();
    assert_eq!(number(&update(&agent, id, "add", &[]).await), 1);
    management.stop_canister(&id).call_and_wait().await.unwrap();
    management.delete_canister(&id).call_and_wait().await.unwrap();
    let gone = error(agent.update(&id, "add").call_and_wait().await);
    assert!(gone.contains("IC0301"), "{gone}");
    let missing = error(agent.read_state_canister_module_hash(id).await);
    assert!(missing.contains("absent") || missing.contains("Absent"), "{missing}");
    assert_ne!(create(&agent).await, id, "ids are not reused");
}

fn ed25519_id(seed: u8) -> Principal {
    ic_agent::Identity::sender(&ed25519(seed)).unwrap()
}

#[tokio::test]
async fn only_controllers_manage() {
    let (server, id) = Server::with(COUNTER).await;
    let stranger = server.agent(ed25519(2));
    let management = ManagementCanister::create(&stranger);
    for refused in [
        error(management.stop_canister(&id).call_and_wait().await),
        error(management.install_code(&id, &wasm(CLOSED)).call_and_wait().await),
        error(management.canister_status(&id).call().await),
        error(management.canister_status(&id).as_update().call().await),
        error(management.upload_chunk(&id, &upload(id, b"x")).call_and_wait().await),
        error(management.update_settings(&id).with_controller(ed25519_id(2)).call_and_wait().await),
    ] {
        assert!(refused.contains("IC0512"), "{refused}");
    }
    // Settings decide who may list snapshots.
    let refused = error(management.list_canister_snapshots(&id).call_and_wait().await);
    let words = format!("Caller {} is not allowed to call list_canister_snapshots", ed25519_id(2));
    assert!(refused.contains("IC0406") && refused.contains(&words), "{refused}");
    // The controller adds the stranger.
    let owner = server.anonymous();
    let management = ManagementCanister::create(&owner);
    let settings = management
        .update_settings(&id)
        .with_controller(Principal::anonymous())
        .with_controller(ed25519_id(2));
    settings.call_and_wait().await.unwrap();
    let management = ManagementCanister::create(&stranger);
    let (status,) = management.canister_status(&id).call().await.unwrap();
    let mut controllers = status.settings.controllers;
    controllers.sort();
    let mut both = [Principal::anonymous(), ed25519_id(2)];
    both.sort();
    assert_eq!(controllers, both);
}

/// A module that takes some seconds to compile.
fn slow() -> Vec<u8> {
    let work =
        "(i32.xor (i32.const 5)) (i32.mul (i32.const 3)) (i32.rotl (local.get 0))".repeat(900);
    let function = format!("(func (param i32) (result i32) (local.get 0) {work})");
    wasm(&format!("(module {})", function.repeat(150)))
}

/// The status of an installation is known while its module is compiled, and others are served.
#[tokio::test(flavor = "multi_thread")]
async fn compiling_blocks_nobody() {
    let (server, id) = Server::with(COUNTER).await;
    let other = server.add(COUNTER);
    let agent = server.anonymous();
    let args = InstallCodeArgs {
        mode: CanisterInstallMode::Reinstall,
        canister_id: id,
        wasm_module: slow(),
        arg: Vec::new(),
        sender_canister_version: None,
    };
    let management = Principal::management_canister();
    let install = agent.update(&management, "install_code").with_arg(Encode!(&args).unwrap());
    let install = install.with_effective_canister_id(id).sign().unwrap();
    let path = format!("/api/v2/canister/{id}/call");
    assert_eq!(server.post(&path, install.signed_update).await.0, 202);
    let status = async || agent.request_status_raw(&install.request_id, id).await.unwrap().0;
    while status().await == RequestStatusResponse::Received {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(status().await, RequestStatusResponse::Processing);
    assert_eq!(number(&update(&agent, other, "add", &[]).await), 1);
    assert_eq!(number(&query(&agent, other, "get").await), 1);
    agent.status().await.unwrap();
    assert_eq!(
        status().await,
        RequestStatusResponse::Processing,
        "the module is compiled too fast"
    );
    agent.wait(&install.request_id, id).await.unwrap();
    let hash = agent.read_state_canister_module_hash(id).await.unwrap();
    assert_eq!(hash, Sha256::digest(&args.wasm_module).to_vec());
}

fn upload(canister_id: Principal, chunk: &[u8]) -> UploadChunkArgs {
    UploadChunkArgs { canister_id, chunk: chunk.to_vec() }
}

#[tokio::test]
async fn the_status_describes_a_canister() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let management = ManagementCanister::create(&agent);
    let (before,) = management.canister_status(&id).call().await.unwrap();
    let (certified,) = management.canister_status(&id).as_update().call().await.unwrap();
    // The message to the management canister costs its induction.
    assert!(certified.cycles < before.cycles);
    assert_eq!(CanisterStatusResult { cycles: before.cycles.clone(), ..certified.clone() }, before);
    assert_eq!(before.status, CanisterStatusType::Running);
    let module = wasm(COUNTER);
    assert_eq!(before.module_hash.unwrap(), Sha256::digest(&module).to_vec());
    assert_eq!(before.memory_metrics.wasm_memory_size, 131_072_u64);
    assert_eq!(before.memory_metrics.stable_memory_size, 0_u64);
    assert_eq!(before.memory_metrics.wasm_binary_size, module.len() as u64);
    update(&agent, id, "add", &[]).await;
    let (after,) = management.canister_status(&id).call().await.unwrap();
    assert_eq!(after.version, before.version + 1);
    // The cost of the message is that of the embedded replica.
    let mut same = stablebench_replica::Replica::new(stablebench_replica::Rules::today(), None)
        .unwrap()
        .create_canister()
        .unwrap();
    let replica =
        stablebench_replica::Replica::new(stablebench_replica::Rules::today(), None).unwrap();
    same.install(&replica.compile(&module).unwrap(), Principal::anonymous(), &[]).unwrap();
    let cost = same.update(Principal::anonymous(), "add", &[]).unwrap().cycles.get();
    assert_eq!(certified.cycles.clone() - after.cycles.clone(), cost);
    assert!(cost > 0);
    let query = number(&query(&agent, id, "used").await);
    let embedded = same.query(Principal::anonymous(), "used", &[]).unwrap().outcome.unwrap();
    assert_eq!(query, number(&embedded));
}

#[tokio::test]
async fn settings_are_applied_or_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let management = ManagementCanister::create(&agent);
    let settings = management
        .update_settings(&id)
        .with_wasm_memory_limit(1_u64 << 30)
        .with_freezing_threshold(1_u64);
    settings.call_and_wait().await.unwrap();
    let (status,) = management.canister_status(&id).call().await.unwrap();
    assert_eq!(status.settings.wasm_memory_limit, 1_u64 << 30);
    assert_eq!(status.settings.freezing_threshold, 1_u64);
    assert_eq!(status.settings.controllers, [Principal::anonymous()]);
    management.update_settings(&id).with_compute_allocation(10_u64).call_and_wait().await.unwrap();
    let (status,) = management.canister_status(&id).call().await.unwrap();
    assert_eq!(status.settings.compute_allocation, 10_u64);
    let refused =
        error(management.update_settings(&id).with_memory_allocation(1_u64).call_and_wait().await);
    assert!(refused.contains("IC0402") && refused.contains("1 B memory"), "{refused}");
}

fn variables(of: &[(&str, &str)]) -> Vec<EnvironmentVariable> {
    let variable = |(name, value): &(&str, &str)| EnvironmentVariable {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    of.iter().map(variable).collect()
}

/// A canister that returns the value of `A` at its installation, and the current value.
const READER: &str = r#"(module
    (import "ic0" "env_var_value_copy" (func $value (param i32 i32 i32 i32 i32)))
    (import "ic0" "env_var_name_exists" (func $exists (param i32 i32) (result i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (memory 1)
    (data (i32.const 0) "A")
    (func (export "canister_init")
        (call $value (i32.const 0) (i32.const 1) (i32.const 16) (i32.const 0) (i32.const 3)))
    (func (export "canister_query read")
        (if (call $exists (i32.const 0) (i32.const 1)) (then
            (call $value (i32.const 0) (i32.const 1) (i32.const 19) (i32.const 0) (i32.const 3))))
        (call $append (i32.const 16) (i32.const 6))
        (call $reply)))"#;

#[tokio::test]
async fn environment_variables_are_set_and_read() {
    let server = Server::start().await;
    let agent = server.agent(ed25519(1));
    let management = ManagementCanister::create(&agent);
    let create = management
        .create_canister()
        .as_provisional_create_with_amount(None)
        .with_environment_variables(variables(&[("B", "2"), ("A", "one")]));
    let first = Principal::from_text("lxzze-o7777-77777-aaaaa-cai").unwrap();
    let id = create.with_effective_canister_id(first).call_and_wait().await.unwrap().0;
    let current = async || {
        let (status,) = management.canister_status(&id).call().await.unwrap();
        (status.settings.environment_variables, status.version)
    };
    let (found, version) = current().await;
    assert_eq!(found, variables(&[("A", "one"), ("B", "2")]));
    management.install_code(&id, &wasm(READER)).call_and_wait().await.unwrap();
    assert_eq!(query(&agent, id, "read").await, b"oneone");

    // The given variables replace all others, which is one change.
    let set = async |of: &[(&str, &str)]| {
        let settings = management.update_settings(&id).with_environment_variables(variables(of));
        settings.with_freezing_threshold(5_u64).call_and_wait().await
    };
    set(&[("A", "two")]).await.unwrap();
    assert_eq!(current().await, (variables(&[("A", "two")]), version + 2));
    assert_eq!(query(&agent, id, "read").await, b"onetwo");
    let others = management.update_settings(&id).with_wasm_memory_limit(1_u64 << 30);
    others.call_and_wait().await.unwrap();
    assert_eq!(current().await.0, variables(&[("A", "two")]), "other settings keep them");

    let many: Vec<String> = (0..33).map(|at| at.to_string()).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    let long = "x".repeat(129);
    let words = [
        error(set(&[("A", "1"), ("A", "1")]).await),
        error(set(&many).await),
        error(set(&[(&long, "")]).await),
        error(set(&[("A", &long)]).await),
    ];
    for (words, expected) in words.iter().zip([
        "Duplicate environment variables are not allowed".to_owned(),
        "Too many environment variables: 33 (max: 32)".to_owned(),
        format!("Environment variable name \"{long}\" exceeds the maximum allowed length of 128."),
        format!("Environment variable value \"{long}\" exceeds the maximum allowed length of 128."),
    ]) {
        assert!(words.contains(&expected) && words.contains("IC0408"), "{words}");
    }
    assert_eq!(current().await.0, variables(&[("A", "two")]), "a refused change has no effect");
    set(&[]).await.unwrap();
    assert_eq!(current().await.0, []);
    assert_eq!(query(&agent, id, "read").await, b"one\0\0\0");
}

#[tokio::test]
async fn modules_are_assembled_from_chunks() {
    let server = Server::start().await;
    let agent = server.agent(ed25519(1));
    let management = ManagementCanister::create(&agent);
    let (store, target) = (create(&agent).await, create(&agent).await);
    let module = wasm(COUNTER);
    let mut hashes = Vec::new();
    for chunk in module.chunks(200) {
        let (hash,) =
            management.upload_chunk(&store, &upload(store, chunk)).call_and_wait().await.unwrap();
        assert_eq!(hash.hash, Sha256::digest(chunk).to_vec());
        hashes.push(hash);
    }
    let (stored,) = management.stored_chunks(&store).call_and_wait().await.unwrap();
    assert_eq!(stored.len(), hashes.len());
    let install = async |module: &[u8], hashes: &[_]| {
        management
            .install_chunked_code(&target, &Sha256::digest(module))
            .with_store_canister(store)
            .with_chunk_hashes(Vec::from(hashes))
            .call_and_wait()
            .await
    };
    let wrong = error(install(&module, &hashes[1..]).await);
    assert!(wrong.contains("does not match given hash"), "{wrong}");
    install(&module, &hashes).await.unwrap();
    assert_eq!(number(&update(&agent, target, "add", &[]).await), 1);
    management.clear_chunk_store(&store).call_and_wait().await.unwrap();
    let gone = error(install(&module, &hashes).await);
    assert!(gone.contains("was not found"), "{gone}");
}

#[tokio::test]
async fn snapshots_restore_a_canister() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let management = ManagementCanister::create(&agent);
    let take = async |replace_snapshot: Option<Vec<u8>>| {
        let args = TakeCanisterSnapshotArgs {
            canister_id: id,
            replace_snapshot,
            uninstall_code: None,
            sender_canister_version: None,
        };
        management.take_canister_snapshot(&args).call_and_wait().await
    };
    let load = async |snapshot_id: &[u8]| {
        let snapshot_id = snapshot_id.to_vec();
        let args = LoadCanisterSnapshotArgs {
            canister_id: id,
            snapshot_id,
            sender_canister_version: None,
        };
        management.load_canister_snapshot(&args).call_and_wait().await
    };
    update(&agent, id, "add", &[]).await;
    let (one,) = take(None).await.unwrap();
    assert!(one.total_size > 131_072);
    update(&agent, id, "add", &[]).await;
    let (two,) = take(None).await.unwrap();
    for _ in 0..2 {
        update(&agent, id, "add", &[]).await;
        load(&one.id).await.unwrap();
        assert_eq!(number(&query(&agent, id, "get").await), 1);
        load(&two.id).await.unwrap();
        assert_eq!(number(&query(&agent, id, "get").await), 2);
    }
    let (three,) = take(Some(one.id.clone())).await.unwrap();
    let (listed,) = management.list_canister_snapshots(&id).call_and_wait().await.unwrap();
    assert_eq!(listed, [two.clone(), three]);
    let replaced = error(load(&one.id).await);
    assert!(replaced.contains("IC0305"), "{replaced}");
    let args = DeleteCanisterSnapshotArgs { canister_id: id, snapshot_id: two.id.clone() };
    management.delete_canister_snapshot(&args).call_and_wait().await.unwrap();
    assert!(load(&two.id).await.is_err());
    for _ in 0..9 {
        take(None).await.unwrap();
    }
    let full = error(take(None).await);
    assert!(full.contains("maximum number of snapshots"), "{full}");
}

#[tokio::test]
async fn logs_have_a_visibility() {
    let (server, id) = Server::with(COUNTER).await;
    let (owner, stranger) = (server.anonymous(), server.agent(ed25519(2)));
    let logs = async |agent: &Agent, filter: Option<CanisterLogFilter>| {
        let argument = Encode!(&FetchCanisterLogsArgs { canister_id: id, filter }).unwrap();
        let query = agent.query(&Principal::management_canister(), "fetch_canister_logs");
        let reply = query.with_effective_canister_id(id).with_arg(argument).call().await?;
        let found = candid::decode_one::<FetchCanisterLogsResult>(&reply).unwrap();
        let records = found.canister_log_records.into_iter();
        Ok(records.map(|it| (it.idx, String::from_utf8(it.content).unwrap())).collect::<Vec<_>>())
    };
    assert_eq!(logs(&owner, None).await.unwrap(), []);
    update(&owner, id, "print", &[]).await;
    owner.update(&id, "trap").call_and_wait().await.unwrap_err();
    let all = [(0, "no such thing".to_owned()), (1, "[TRAP]: it is over".to_owned())];
    assert_eq!(logs(&owner, None).await.unwrap(), all);
    let second = CanisterLogFilter::ByIdx { start: 1, end: 9 };
    assert_eq!(logs(&owner, Some(second)).await.unwrap(), all[1..]);
    let refused = error(logs(&stranger, None).await);
    assert!(refused.contains("not allowed to access canister logs"), "{refused}");
    let management = ManagementCanister::create(&owner);
    let settings = management.update_settings(&id).with_log_visibility(LogVisibility::Public);
    settings.call_and_wait().await.unwrap();
    assert_eq!(logs(&stranger, None).await.unwrap(), all);
    // The newest records that fit into 4 KiB.
    for _ in 0..100 {
        update(&owner, id, "print", &[]).await;
    }
    let kept = logs(&owner, None).await.unwrap();
    assert_eq!((kept.len(), kept[kept.len() - 1].0), (4096 / (13 + 40), 101));
    let argument = Encode!(&CanisterIdRecord { canister_id: id }).unwrap();
    let call = owner.update(&Principal::management_canister(), "fetch_canister_logs");
    let call = call.with_effective_canister_id(id).with_arg(argument);
    let refused = error(call.call_and_wait().await);
    assert!(refused.contains("can not be called via ingress messages"), "{refused}");
}

#[tokio::test]
async fn the_history_is_queried_through_an_agent() {
    let (server, id) = Server::with(COUNTER).await;
    let stranger = server.agent(ed25519(2));
    let args = CanisterInfoArgs { canister_id: id, num_requested_changes: None };
    let argument = Encode!(&args).unwrap();
    let management = Principal::management_canister();
    let query = stranger.query(&management, "canister_info").with_effective_canister_id(id);
    let reply = query.with_arg(argument.clone()).call().await.unwrap();
    let info = candid::decode_one::<CanisterInfoResult>(&reply).unwrap();
    assert!(info.total_num_changes > 0 && info.recent_changes.is_empty());
    assert!(info.module_hash.is_some());
    let other = Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, 9, 1, 1]);
    let query = stranger.query(&management, "canister_info").with_effective_canister_id(other);
    let refused = error(query.with_arg(argument.clone()).call().await);
    assert!(refused.contains("effective canister id"), "{refused}");
    let call = stranger.update(&management, "canister_info").with_effective_canister_id(id);
    let refused = error(call.with_arg(argument).call_and_wait().await);
    assert!(refused.contains("Only canisters can call"), "{refused}");
}

#[tokio::test]
async fn unknown_methods_are_rejected_by_name() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let management = Principal::management_canister();
    let argument = Encode!(&CanisterIdRecord { canister_id: id });
    let argument = argument.unwrap();
    for (method, code) in [
        ("raw_rand", "IC0406"),
        ("ecdsa_public_key", "IC0406"),
        ("bitcoin_get_balance", "IC0406"),
        ("no_such_method", "IC0536"),
    ] {
        let call = agent.update(&management, method).with_arg(argument.clone());
        let refused = error(call.with_effective_canister_id(id).call_and_wait().await);
        assert!(refused.contains(code) && refused.contains(method), "{refused}");
    }
    let unreadable = agent.update(&management, "stop_canister").with_arg(b"DIDL");
    let unreadable = error(unreadable.with_effective_canister_id(id).call_and_wait().await);
    assert!(unreadable.contains("Error decoding candid"), "{unreadable}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_id_is_assigned_once() {
    let server = Server::start().await;
    let mut created = JoinSet::new();
    for number in 0..240_u64 {
        // Eight callers request each id.
        let mut id = (0xffff_ffff_ffe0_0000 + number / 8).to_be_bytes().to_vec();
        id.extend([1, 1]);
        let args = ProvisionalCreateCanisterWithCyclesArgs {
            specified_id: Some(Principal::from_slice(&id)),
            ..Default::default()
        };
        let agent = server.agent(ed25519(number as u8));
        created.spawn(async move {
            let call = agent.update(
                &Principal::management_canister(),
                "provisional_create_canister_with_cycles",
            );
            let call = call.with_arg(Encode!(&args).unwrap());
            let call = call.with_effective_canister_id(Principal::from_slice(&id));
            let reply = call.call_and_wait().await.ok()?;
            Some(candid::decode_one::<CanisterIdRecord>(&reply).unwrap().canister_id)
        });
    }
    let created: Vec<Principal> = created.join_all().await.into_iter().flatten().collect();
    assert_eq!(created.iter().collect::<BTreeSet<_>>().len(), created.len());
    assert_eq!(created.len(), 30);
}

/// By default dfx uses the address of a canister that does not exist here.
#[tokio::test]
async fn a_canister_can_be_created_at_any_address() {
    let server = Server::start().await;
    let agent = server.anonymous();
    let foreign = Principal::from_text("rwlgt-iiaaa-aaaaa-aaaaa-cai").unwrap();
    for effective in [foreign, Principal::management_canister(), Principal::anonymous()] {
        for version in ["v2", "v3", "v4"] {
            let argument = Encode!(&ProvisionalCreateCanisterWithCyclesArgs::default()).unwrap();
            let create = agent.update(
                &Principal::management_canister(),
                "provisional_create_canister_with_cycles",
            );
            let create = create.with_effective_canister_id(effective).with_arg(argument);
            let signed = create.sign().unwrap();
            let path = format!("/api/{version}/canister/{effective}/call");
            let (status, _, _) = server.post(&path, signed.signed_update).await;
            assert_eq!(status, if version == "v2" { 202 } else { 200 });
            // The status is readable at the same address.
            let (reply, _) = agent.wait(&signed.request_id, effective).await.unwrap();
            let created = candid::decode_one::<CanisterIdRecord>(&reply).unwrap().canister_id;
            assert_eq!(
                agent.read_state_canister_controllers(created).await.unwrap(),
                [Principal::anonymous()]
            );
        }
    }
    // All other requests need the address of a canister of this subnet.
    let refused = agent.update(&foreign, "add").call_and_wait().await.unwrap_err();
    assert!(refused.to_string().contains("canister_not_found"), "{refused}");
    let refused = agent.read_state_canister_module_hash(foreign).await.unwrap_err();
    assert!(refused.to_string().contains("canister_not_found"), "{refused}");
}

#[tokio::test]
async fn the_reject_of_a_module_names_the_canister() {
    let server = Server::start().await;
    server.add(COUNTER);
    let second = server.add(COUNTER);
    let agent = server.anonymous();
    let argument = InstallCodeArgs {
        mode: CanisterInstallMode::Reinstall,
        canister_id: second,
        wasm_module: b"\0asm\x01\0\0\0\xff".to_vec(),
        arg: Vec::new(),
        sender_canister_version: None,
    };
    let call = agent
        .update(&Principal::management_canister(), "install_code")
        .with_arg(Encode!(&argument).unwrap());
    let refused = call.with_effective_canister_id(second).call_and_wait().await.unwrap_err();
    assert!(refused.to_string().contains(&format!("Error from Canister {second}")), "{refused}");
}

const CLASSICAL: &[u8] = include_bytes!("../../../replica/tests/motoko/classical_counter.wasm.gz");
const ENHANCED: &[u8] = include_bytes!("../../../replica/tests/motoko/enhanced_counter.wasm.gz");

#[derive(candid::CandidType, serde::Deserialize, Debug, PartialEq, Eq)]
struct Counts {
    count: u128,
    upgrades: u128,
    ticks: u128,
}

async fn counts(agent: &Agent, id: Principal) -> Counts {
    let reply = agent.query(&id, "counts").with_arg(Encode!().unwrap()).call().await.unwrap();
    Decode!(&reply, Counts).unwrap()
}

async fn install(
    agent: &Agent,
    id: Principal,
    module: &[u8],
    start: u128,
    mode: CanisterInstallMode,
) -> Result<(), AgentError> {
    let management = ManagementCanister::create(agent);
    let install = management.install_code(&id, module).with_mode(mode).with_arg(start);
    install.call_and_wait().await
}

#[tokio::test]
async fn actors_are_installed_and_upgraded() {
    let keep = UpgradeFlags {
        skip_pre_upgrade: None,
        wasm_memory_persistence: Some(WasmMemoryPersistence::Keep),
    };
    for (module, upgrade, refused, words) in [
        (CLASSICAL, None, Some(keep), "Invalid upgrade option"),
        (ENHANCED, Some(keep), None, "Missing upgrade option"),
    ] {
        let server = Server::start().await;
        let agent = server.anonymous();
        let management = ManagementCanister::create(&agent);
        let create = management.create_canister().as_provisional_create_with_amount(None);
        let first = Principal::from_text("lxzze-o7777-77777-aaaaa-cai").unwrap();
        let (id,) = create.with_effective_canister_id(first).call_and_wait().await.unwrap();

        install(&agent, id, module, 5, CanisterInstallMode::Install).await.unwrap();
        let sum = update(&agent, id, "add", &Encode!(&2_u128).unwrap()).await;
        assert_eq!(Decode!(&sum, u128).unwrap(), 7);
        // The compiler keeps the interface in a section that controllers may read.
        let candid = agent.read_state_canister_metadata(id, "candid:service").await.unwrap();
        let candid = String::from_utf8(candid).unwrap();
        assert!(candid.contains("startTimer: (nanoseconds: nat64) -> ()"), "{candid}");

        let mode = CanisterInstallMode::Upgrade(refused);
        let error = install(&agent, id, module, 0, mode).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        let mode = CanisterInstallMode::Upgrade(upgrade);
        install(&agent, id, module, 0, mode).await.unwrap();
        assert_eq!(counts(&agent, id).await, Counts { count: 7, upgrades: 2, ticks: 0 });

        // The timer runs by the clock.
        let tenth = 100_000_000_u64;
        update(&agent, id, "startTimer", &Encode!(&tenth).unwrap()).await;
        let began = Instant::now();
        while counts(&agent, id).await.ticks < 2 {
            assert!(began.elapsed() < Duration::from_secs(30), "the timer does not run");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
