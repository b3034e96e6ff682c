//! Sequential, concurrent, repeated and excessive calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candid::Principal;
use ic_agent::AgentError;
use ic_agent::agent::{CallResponse, RequestStatusResponse};
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
