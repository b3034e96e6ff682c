//! `ic-agent`: updates, queries, and what can be read of the state tree.

use candid::Principal;
use ic_agent::AgentError;
use ic_agent::agent::{RejectCode, RejectResponse};

use super::identities::ed25519;
use super::server::{COUNTER, Server, number, query, update, wasm};
use sha2::{Digest, Sha256};

#[tokio::test]
async fn updates_change_and_queries_do_not() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    for count in 1..=3 {
        assert_eq!(number(&update(&agent, id, "add", &[]).await), count);
        assert_eq!(number(&query(&agent, id, "get").await), count);
    }
    let argument = vec![7; 60_000];
    assert_eq!(update(&agent, id, "echo", &argument).await, argument);
}

#[tokio::test]
async fn the_root_key_can_be_fetched() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let status = agent.status().await.unwrap();
    assert_eq!(status.root_key.unwrap(), server.root_key);
    assert_eq!(status.replica_health_status.unwrap(), "healthy");
    // Without it nothing is believed.
    let trusts_mainnet = ic_agent::Agent::builder().with_url(&server.url).build().unwrap();
    let refused = trusts_mainnet.update(&id, "add").call_and_wait().await.unwrap_err();
    assert!(matches!(refused, AgentError::CertificateVerificationFailed()), "{refused}");
    trusts_mainnet.fetch_root_key().await.unwrap();
    assert_eq!(number(&update(&trusts_mainnet, id, "add", &[]).await), 2);
}

#[tokio::test]
async fn time_is_that_of_the_clock() {
    let (server, id) = Server::with(COUNTER).await;
    let before = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seen = number(&query(&server.anonymous(), id, "now").await);
    let after = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    assert!((before..=after).contains(&seen), "{before} {seen} {after}");
}

#[tokio::test]
async fn rejects_have_codes_and_texts() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let nobody = Principal::from_text("lz3um-vp777-77777-aaaba-cai").unwrap();
    // Certified: the canister was reached.
    for (method, code, error_code, text) in [
        ("no", RejectCode::CanisterReject, "IC0406", "no such thing"),
        ("trap", RejectCode::CanisterError, "IC0503", "it is over"),
        ("silent", RejectCode::CanisterError, "IC0506", "did not reply"),
        ("missing", RejectCode::CanisterError, "IC0536", "missing"),
    ] {
        match agent.update(&id, method).call_and_wait().await.unwrap_err() {
            AgentError::CertifiedReject { reject, .. } => {
                has(&reject, code, error_code, text);
            }
            other => panic!("{method}: {other:?}"),
        }
    }
    // Not certified: it was not.
    match agent.update(&nobody, "add").call_and_wait().await.unwrap_err() {
        AgentError::UncertifiedReject { reject, .. } => {
            has(&reject, RejectCode::DestinationInvalid, "IC0301", "not found");
        }
        other => panic!("{other:?}"),
    }
    for (canister, method, code, error_code, text) in [
        (id, "no_query", RejectCode::CanisterReject, "IC0406", "no such thing"),
        (id, "missing", RejectCode::CanisterError, "IC0536", "missing"),
        (nobody, "get", RejectCode::DestinationInvalid, "IC0301", "not found"),
    ] {
        match agent.query(&canister, method).call().await.unwrap_err() {
            AgentError::UncertifiedReject { reject, .. } => has(&reject, code, error_code, text),
            other => panic!("{method}: {other:?}"),
        }
    }
}

fn has(reject: &RejectResponse, code: RejectCode, error_code: &str, text: &str) {
    assert_eq!(reject.reject_code, code, "{reject:?}");
    assert_eq!(reject.error_code.as_deref(), Some(error_code), "{reject:?}");
    assert!(reject.reject_message.contains(text), "{reject:?}");
}

#[tokio::test]
async fn the_state_tree_tells_of_canisters() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let hash = agent.read_state_canister_module_hash(id).await.unwrap();
    assert_eq!(hash, Sha256::digest(wasm(COUNTER)).to_vec());
    let controllers = agent.read_state_canister_controllers(id).await.unwrap();
    assert_eq!(controllers, [Principal::anonymous()]);
    let candid = agent.read_state_canister_metadata(id, "candid:service").await.unwrap();
    assert_eq!(candid, b"service : {}");
    let plan = agent.read_state_canister_metadata(id, "plan").await.unwrap();
    assert_eq!(plan, b"for controllers");
    // What is not there is shown not to be there.
    let missing = agent.read_state_canister_metadata(id, "missing").await.unwrap_err();
    assert!(matches!(missing, AgentError::LookupPathAbsent(_)), "{missing:?}");
    // Not for others.
    let stranger = server.agent(ed25519(9));
    assert_eq!(stranger.read_state_canister_metadata(id, "candid:service").await.unwrap(), candid);
    let refused = stranger.read_state_canister_metadata(id, "plan").await.unwrap_err();
    assert!(refused.to_string().contains("403"), "{refused}");
}

#[tokio::test]
async fn the_state_tree_tells_of_the_subnet() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let subnet = agent.fetch_subnet_by_canister(&id).await.unwrap();
    assert_eq!(subnet.id(), Principal::self_authenticating(&server.root_key));
    let by_id = agent.fetch_subnet_by_id(&subnet.id()).await.unwrap();
    assert_eq!(by_id.id(), subnet.id());
    let ranges = agent.read_state_subnet_canister_ranges(subnet.id()).await.unwrap();
    assert!(ranges.iter().any(|(first, last)| (*first..=*last).contains(&id)), "{ranges:?}");
}

#[tokio::test]
async fn others_do_not_read_a_calls_status() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.agent(ed25519(1));
    let call = agent.update(&id, "add").sign().unwrap();
    agent.update_signed(id, call.signed_update).await.unwrap();
    let (status, _) = agent.request_status_raw(&call.request_id, id).await.unwrap();
    assert!(matches!(status, ic_agent::agent::RequestStatusResponse::Replied(_)), "{status:?}");
    let stranger = server.agent(ed25519(2));
    let refused = stranger.request_status_raw(&call.request_id, id).await.unwrap_err();
    assert!(refused.to_string().contains("403"), "{refused}");
}
