//! Canisters that call each other and the management canister, timers, heartbeats, certificates.

use std::time::{Duration, Instant};

use candid::{Encode, Principal};
use ic_certification::{Certificate, LookupResult};
use ic_management_canister_types::CanisterIdRecord;

use super::server::{COUNTER, Server, number, query, update};

/// `relay` calls the canister in the first 10 bytes of its argument: the method `add`. `create`
/// creates a canister. A timer adds 1 to the count. `certificate` returns the certificate of 5 bytes.
const CALLER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (import "ic0" "msg_reject_msg_size" (func $reason_size (result i32)))
    (import "ic0" "msg_reject_msg_copy" (func $reason (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $data (param i32 i32)))
    (import "ic0" "call_cycles_add128" (func $cycles (param i64 i64)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
    (import "ic0" "time" (func $time (result i64)))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "data_certificate_size" (func $certificate_size (result i32)))
    (import "ic0" "data_certificate_copy" (func $certificate (param i32 i32 i32)))
    (memory 2) (table 2 funcref) (elem (i32.const 0) $back $failed)
    (data (i32.const 64) "addcreate_canisterDIDL\00\00proof")
    (global $count (mut i64) (i64.const 0))
    (func $call (param i32 i32 i32 i32)
        (call $new (local.get 0) (local.get 1) (local.get 2) (local.get 3)
            (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0)))
    (func $back (param i32)
        (call $copy (i32.const 1000) (i32.const 0) (call $size))
        (call $append (i32.const 1000) (call $size)) (call $reply))
    (func $failed (param i32)
        (call $reason (i32.const 1000) (i32.const 0) (call $reason_size))
        (call $reject (i32.const 1000) (call $reason_size)))
    (func (export "canister_update relay")
        (call $copy (i32.const 0) (i32.const 0) (i32.const 10))
        (call $call (i32.const 0) (i32.const 10) (i32.const 64) (i32.const 3))
        (drop (call $perform)))
    (func (export "canister_update create")
        (call $call (i32.const 0) (i32.const 0) (i32.const 67) (i32.const 15))
        (call $data (i32.const 82) (i32.const 6))
        (call $cycles (i64.const 0) (i64.const 1000000000000))
        (drop (call $perform)))
    (func (export "canister_update arm")
        (drop (call $timer (i64.add (call $time) (i64.const 100000000))))
        (call $certify (i32.const 88) (i32.const 5)) (call $reply))
    (func (export "canister_global_timer")
        (global.set $count (i64.add (global.get $count) (i64.const 1))))
    (func (export "canister_query count")
        (i64.store (i32.const 0) (global.get $count))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (func (export "canister_query certificate")
        (call $certificate (i32.const 1000) (i32.const 0) (call $certificate_size))
        (call $append (i32.const 1000) (call $certificate_size)) (call $reply)))"#;

#[tokio::test]
async fn canisters_call_each_other() {
    let (server, counter) = Server::with(COUNTER).await;
    let caller = server.add(CALLER);
    let agent = server.anonymous();
    for expected in 1..4 {
        let reply = update(&agent, caller, "relay", counter.as_slice()).await;
        assert_eq!(number(&reply), expected);
    }
    let missing = [0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, 99, 1, 1];
    let refused = agent.update(&caller, "relay").with_arg(missing).call_and_wait().await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("not found"), "{refused}");
}

#[tokio::test]
async fn a_slow_canister_answers_later() {
    let (server, counter) = Server::with(COUNTER).await;
    let caller = server.add(CALLER);
    let agent = server.anonymous();
    let spin = agent.update(&counter, "spin").with_arg(1_000_000_000_u64.to_le_bytes());
    let (spun, relayed) =
        tokio::join!(spin.call_and_wait(), update(&agent, caller, "relay", counter.as_slice()));
    let mut counts = [number(&spun.unwrap()), number(&relayed)];
    counts.sort_unstable();
    assert_eq!(counts, [1, 2]);
}

#[tokio::test]
async fn canisters_create_canisters() {
    let (server, caller) = Server::with(CALLER).await;
    let agent = server.anonymous();
    let reply = update(&agent, caller, "create", &[]).await;
    let created = candid::decode_one::<CanisterIdRecord>(&reply).unwrap().canister_id;
    assert_ne!(created, caller);
    assert_eq!(agent.read_state_canister_controllers(created).await.unwrap(), [caller]);
}

#[tokio::test]
async fn timers_run_by_the_clock() {
    let (server, caller) = Server::with(CALLER).await;
    let agent = server.anonymous();
    update(&agent, caller, "arm", &[]).await;
    let began = Instant::now();
    while number(&query(&agent, caller, "count").await) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "the timer does not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(number(&query(&agent, caller, "count").await), 1, "a timer runs once");
}

#[tokio::test]
async fn heartbeats_run_in_every_round() {
    let heartbeat = CALLER.replace("canister_global_timer", "canister_heartbeat");
    let (server, caller) = Server::with(&heartbeat).await;
    let agent = server.anonymous();
    let began = Instant::now();
    while number(&query(&agent, caller, "count").await) < 2 {
        assert!(began.elapsed() < Duration::from_secs(60), "the heartbeat does not run");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn queries_return_certificates_of_certified_data() {
    let (server, caller) = Server::with(CALLER).await;
    let agent = server.anonymous();
    update(&agent, caller, "arm", &[]).await;
    let bytes = query(&agent, caller, "certificate").await;
    let certificate: Certificate = serde_cbor_2::from_slice(&bytes).unwrap();
    agent.verify(&certificate, caller).unwrap();
    let path = [b"canister".as_slice(), caller.as_slice(), b"certified_data"];
    let LookupResult::Found(data) = certificate.tree.lookup_path(path) else {
        panic!("no certified data");
    };
    assert_eq!(data, b"proof");
}

#[tokio::test]
async fn a_stopping_canister_answers_its_callers_first() {
    let (server, caller) = Server::with(CALLER).await;
    let agent = server.anonymous();
    let record = Encode!(&CanisterIdRecord { canister_id: caller }).unwrap();
    let stop = agent
        .update(&Principal::management_canister(), "stop_canister")
        .with_effective_canister_id(caller)
        .with_arg(record);
    // The call is accepted before the stop, and creating takes two rounds.
    let create = agent.update(&caller, "create").sign().unwrap();
    let path = format!("/api/v2/canister/{caller}/call");
    let (status, ..) = server.post(&path, create.signed_update.clone()).await;
    assert_eq!(status, 202);
    let created = agent.wait(&create.request_id, caller);
    let (created, stopped) = tokio::join!(created, stop.call_and_wait());
    stopped.unwrap();
    created.unwrap();
    let refused = agent.update(&caller, "create").call_and_wait().await.unwrap_err().to_string();
    assert!(refused.contains("is stopped"), "{refused}");
}
