//! Calls: sequential, concurrent, repeated and excessive ones of users, those of canisters to each other
//! and to the management canister, and what canisters do by themselves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candid::{Encode, Principal};
use ic_agent::AgentError;
use ic_agent::agent::{CallResponse, RequestStatusResponse};
use ic_certification::{Certificate, LookupResult};
use ic_management_canister_types::CanisterIdRecord;
use tokio::task::JoinSet;

use super::server::{CLOSED, COUNTER, Server, number, query, update};

/// Loop iterations that take a second or more. Twice as many are within an update's limit.
const LONG: u64 = 2_000_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn all_calls_of_concurrent_clients_are_executed() {
    let (server, id) = Server::with(COUNTER).await;
    let server = Arc::new(server);
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        let server = Arc::clone(&server);
        clients.spawn(async move {
            let agent = server.anonymous();
            let mut counts = Vec::new();
            for _ in 0..125 {
                counts.push(number(&update(&agent, id, "add", &[]).await));
            }
            assert!(counts.is_sorted(), "the calls of one client are executed in order");
            counts
        });
    }
    let mut counts: Vec<u64> = clients.join_all().await.concat();
    counts.sort_unstable();
    assert_eq!(counts, (1..=2_000).collect::<Vec<_>>());
    assert_eq!(number(&query(&server.anonymous(), id, "get").await), 2_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_update_does_not_block_other_requests() {
    let (server, slow) = Server::with(COUNTER).await;
    let other = server.add(COUNTER);
    let agent = server.anonymous();
    let began = Instant::now();
    let spin = agent.update(&slow, "spin").with_arg(LONG.to_le_bytes()).call_and_wait();
    let others = async {
        for _ in 0..3 {
            agent.status().await.unwrap();
            update(&agent, other, "add", &[]).await;
            query(&agent, other, "get").await;
            // Reading the state does not wait for the canister either.
            agent.read_state_canister_module_hash(slow).await.unwrap();
        }
        began.elapsed()
    };
    let mine = async {
        // Queued after the update.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let count = number(&query(&agent, slow, "get").await);
        (count, began.elapsed())
    };
    let (spun, others, (count, waited)) = tokio::join!(spin, others, mine);
    assert_eq!(number(&spun.unwrap()), 1);
    assert_eq!(count, 1);
    assert!(others < waited, "{others:?} {waited:?}");
}

#[tokio::test]
async fn a_repeated_call_runs_once() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let call = agent.update(&id, "add").sign().unwrap();
    for _ in 0..3 {
        match agent.update_signed(id, call.signed_update.clone()).await.unwrap() {
            CallResponse::Response(reply) => assert_eq!(number(&reply), 1),
            CallResponse::Poll(_) => panic!("the call has finished"),
        }
    }
    assert_eq!(number(&query(&agent, id, "get").await), 1);
}

/// Clients without synchronous calls poll the status.
#[tokio::test]
async fn asynchronous_calls_are_polled() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    for version in ["v2", "v3", "v4"] {
        let call = agent.update(&id, "add").sign().unwrap();
        let path = format!("/api/{version}/canister/{id}/call");
        let (status, _, body) = server.post(&path, call.signed_update).await;
        assert_eq!(status, if version == "v2" { 202 } else { 200 });
        assert_eq!(body.is_empty(), version == "v2");
        let (reply, _) = agent.wait(&call.request_id, id).await.unwrap();
        assert_eq!(reply.len(), 8);
    }
    assert_eq!(number(&query(&agent, id, "get").await), 3);
    let never = agent.update(&id, "add").sign().unwrap();
    let (status, _) = agent.request_status_raw(&never.request_id, id).await.unwrap();
    assert_eq!(status, RequestStatusResponse::Unknown);
}

#[tokio::test]
async fn a_call_can_be_polled_after_a_timeout() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let first = agent.update(&id, "spin").with_arg(LONG.to_le_bytes()).sign().unwrap();
    // The client gives up waiting.
    let path = format!("{}/api/v3/canister/{id}/call", server.url);
    let left = server
        .client
        .clone()
        .post(path)
        .header("content-type", "application/cbor")
        .body(first.signed_update)
        .timeout(Duration::from_millis(100))
        .send()
        .await;
    assert!(left.is_err_and(|error| error.is_timeout()));
    let (status, _) = agent.request_status_raw(&first.request_id, id).await.unwrap();
    assert_eq!(status, RequestStatusResponse::Processing);
    let (reply, _) = agent.wait(&first.request_id, id).await.unwrap();
    assert_eq!(number(&reply), 1);
}

#[tokio::test]
async fn a_canister_can_refuse_ingress_messages() {
    let (server, id) = Server::with(CLOSED).await;
    let agent = server.anonymous();
    update(&agent, id, "open", &[]).await;
    let refused = agent.update(&id, "closed").call_and_wait().await.unwrap_err();
    assert!(matches!(refused, AgentError::UncertifiedReject { .. }), "{refused:?}");
    assert!(refused.to_string().contains("rejected the message"), "{refused}");
    // A call that was not admitted has no status, at any version of the address.
    for version in ["v2", "v3"] {
        let call = agent.update(&id, "closed").sign().unwrap();
        let path = format!("/api/{version}/canister/{id}/call");
        let (status, kind, _) = server.post(&path, call.signed_update).await;
        assert_eq!((status, kind.as_str()), (200, "application/cbor"));
        let (status, _) = agent.request_status_raw(&call.request_id, id).await.unwrap();
        assert_eq!(status, RequestStatusResponse::Unknown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_limit_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let send = async |method: &str, argument: &[u8]| {
        let call = agent.update(&id, method).with_arg(argument);
        let path = format!("/api/v2/canister/{id}/call");
        server.post(&path, call.sign().unwrap().signed_update).await
    };
    let mut accepted = 0;
    for _ in 0..4 {
        assert_eq!(send("spin", &(2 * LONG).to_le_bytes()).await.0, 202);
        accepted += 1;
    }
    let refused = loop {
        let (status, _, body) = send("add", &[]).await;
        match status {
            202 => accepted += 1,
            429 => break String::from_utf8(body).unwrap(),
            other => panic!("{other}"),
        }
        assert!(accepted <= 1_001, "no call was refused");
    };
    assert!(refused.contains("wait for the canister"), "{refused}");
    // All accepted calls are executed.
    let count = loop {
        let count = number(&query_when_free(&agent, id).await);
        if count == accepted {
            break count;
        }
    };
    assert_eq!(count, accepted);
}

/// Repeats a query until the canister's queue has room for it.
async fn query_when_free(agent: &ic_agent::Agent, id: Principal) -> Vec<u8> {
    loop {
        match agent.query(&id, "get").call().await {
            Ok(reply) => return reply,
            Err(AgentError::HttpError(error)) if error.status == 429 => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_calls_are_executed_before_the_end() {
    let (mut server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let path = format!("/api/v2/canister/{id}/call");
    for turns in [LONG / 10, 1, 1] {
        let call = agent.update(&id, "spin").with_arg(turns.to_le_bytes());
        assert_eq!(server.post(&path, call.sign().unwrap().signed_update).await.0, 202);
    }
    server.stop();
    let served = server.served.clone();
    let deadline = Instant::now() + Duration::from_secs(60);
    let finish = tokio::task::spawn_blocking(move || served.finish(deadline, deadline));
    let (subnet, undone) = finish.await.unwrap().unwrap();
    assert_eq!(undone, 0);
    let canister = subnet.canister(&id).unwrap();
    let count = canister.query(Principal::anonymous(), "get", &[]).unwrap().outcome.unwrap();
    assert_eq!(number(&count), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_dropped_after_the_deadline() {
    let (mut server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let path = format!("/api/v2/canister/{id}/call");
    for _ in 0..30 {
        let call = agent.update(&id, "spin").with_arg(LONG.to_le_bytes());
        assert_eq!(server.post(&path, call.sign().unwrap().signed_update).await.0, 202);
    }
    server.stop();
    let served = server.served.clone();
    let began = Instant::now();
    let finish =
        tokio::task::spawn_blocking(move || served.finish(began, began + Duration::from_secs(60)));
    let (subnet, undone) = finish.await.unwrap().unwrap();
    assert!(undone > 20, "{undone}");
    // The running message is finished.
    let canister = subnet.canister(&id).unwrap();
    let count = canister.query(Principal::anonymous(), "get", &[]).unwrap().outcome.unwrap();
    assert_eq!(number(&count) as usize, 30 - undone + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_end_is_ended() {
    let (mut server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    update(&agent, id, "add", &[]).await;
    let path = format!("/api/v2/canister/{id}/call");
    let call = agent.update(&id, "spin").with_arg(i64::MAX.to_le_bytes()).sign().unwrap();
    assert_eq!(server.post(&path, call.signed_update).await.0, 202);
    // It has begun.
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.stop();
    let served = server.served.clone();
    let began = Instant::now();
    let finish = tokio::task::spawn_blocking(move || served.finish(began, began));
    let (subnet, undone) = finish.await.unwrap().unwrap();
    assert_eq!(undone, 1);
    // Forty billion instructions take longer.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let canister = subnet.canister(&id).unwrap();
    let count = canister.query(Principal::anonymous(), "get", &[]).unwrap().outcome.unwrap();
    assert_eq!(number(&count), 1, "the message has no effect");
}

/// A client that does not wait finds the reject in the status, even if the call was not admitted.
#[tokio::test]
async fn a_late_reject_is_in_the_status() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let spin = agent.update(&id, "spin").with_arg(LONG.to_le_bytes()).sign().unwrap();
    let path = format!("/api/v2/canister/{id}/call");
    assert_eq!(server.post(&path, spin.signed_update).await.0, 202);
    // Stops the canister between the two calls.
    let argument = candid::encode_one(CanisterIdRecord { canister_id: id }).unwrap();
    let stop = agent.update(&Principal::management_canister(), "stop_canister");
    let stop = stop.with_effective_canister_id(id).with_arg(argument).sign().unwrap();
    assert_eq!(server.post(&path, stop.signed_update).await.0, 202);
    let late = agent.update(&id, "add").sign().unwrap();
    assert_eq!(server.post(&path, late.signed_update).await.0, 202);
    let refused = agent.wait(&late.request_id, id).await.unwrap_err().to_string();
    // The stop comes before the call is submitted, or before it is executed.
    let stopped = refused.contains("is stopped") || refused.contains("is not running");
    assert!(stopped, "{refused}");
}

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
