//! Clients that verify every certificate and every node's signature, and pages in a browser.

use std::time::Duration;

use candid::Principal;
use ic_agent::agent::{RejectCode, RejectResponse};
use ic_agent::identity::{
    AnonymousIdentity, BasicIdentity, DelegatedIdentity, Delegation, Secp256k1Identity,
    SignedDelegation,
};
use ic_agent::{Agent, AgentError, Identity};
use reqwest::Method;
use sha2::{Digest, Sha256};
use stablebench_server::Access;

use super::server::{COUNTER, Server, ed25519, number, query, update, wasm};

#[tokio::test]
async fn updates_change_state_and_queries_do_not() {
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
    // Without the root key, certificates are not trusted.
    let trusts_mainnet = Agent::builder().with_url(&server.url).build().unwrap();
    let refused = trusts_mainnet.update(&id, "add").call_and_wait().await.unwrap_err();
    assert!(matches!(refused, AgentError::CertificateVerificationFailed()), "{refused}");
    trusts_mainnet.fetch_root_key().await.unwrap();
    assert_eq!(number(&update(&trusts_mainnet, id, "add", &[]).await), 2);
}

#[tokio::test]
async fn canisters_see_the_time_of_the_clock() {
    let (server, id) = Server::with(COUNTER).await;
    let before = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seen = number(&query(&server.anonymous(), id, "now").await);
    let after = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    assert!((before..=after).contains(&seen), "{before} {seen} {after}");
}

#[tokio::test]
async fn rejects_have_codes_and_messages() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let nobody = Principal::from_text("lz3um-vp777-77777-aaaba-cai").unwrap();
    // Certified, because the call was admitted.
    for (method, code, error_code, text) in [
        ("no", RejectCode::CanisterReject, "IC0406", "no such thing"),
        ("trap", RejectCode::CanisterError, "IC0503", "it is over"),
        ("silent", RejectCode::CanisterError, "IC0506", "did not reply"),
        ("missing", RejectCode::CanisterError, "IC0536", "missing"),
    ] {
        match agent.update(&id, method).call_and_wait().await.unwrap_err() {
            AgentError::CertifiedReject { reject, .. } => {
                assert_reject(&reject, code, error_code, text);
            }
            other => panic!("{method}: {other:?}"),
        }
    }
    // Not certified, because the call was not admitted.
    match agent.update(&nobody, "add").call_and_wait().await.unwrap_err() {
        AgentError::UncertifiedReject { reject, .. } => {
            assert_reject(&reject, RejectCode::DestinationInvalid, "IC0301", "not found");
        }
        other => panic!("{other:?}"),
    }
    for (canister, method, code, error_code, text) in [
        (id, "no_query", RejectCode::CanisterReject, "IC0406", "no such thing"),
        (id, "missing", RejectCode::CanisterError, "IC0536", "missing"),
        (nobody, "get", RejectCode::DestinationInvalid, "IC0301", "not found"),
    ] {
        match agent.query(&canister, method).call().await.unwrap_err() {
            AgentError::UncertifiedReject { reject, .. } => {
                assert_reject(&reject, code, error_code, text)
            }
            other => panic!("{method}: {other:?}"),
        }
    }
}

fn assert_reject(reject: &RejectResponse, code: RejectCode, error_code: &str, text: &str) {
    assert_eq!(reject.reject_code, code, "{reject:?}");
    assert_eq!(reject.error_code.as_deref(), Some(error_code), "{reject:?}");
    assert!(reject.reject_message.contains(text), "{reject:?}");
}

#[tokio::test]
async fn the_state_tree_describes_canisters() {
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
    // The absence of a section is certified.
    let missing = agent.read_state_canister_metadata(id, "missing").await.unwrap_err();
    assert!(matches!(missing, AgentError::LookupPathAbsent(_)), "{missing:?}");
    // Private sections are readable by controllers only.
    let stranger = server.agent(ed25519(9));
    assert_eq!(stranger.read_state_canister_metadata(id, "candid:service").await.unwrap(), candid);
    let refused = stranger.read_state_canister_metadata(id, "plan").await.unwrap_err();
    assert!(refused.to_string().contains("403"), "{refused}");
}

#[tokio::test]
async fn the_state_tree_describes_the_subnet() {
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
async fn only_the_sender_reads_the_status_of_a_call() {
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

/// Returns a key in the format of `openssl ecparam -name secp256k1 -genkey`.
fn secp256k1() -> Secp256k1Identity {
    let key = ic_secp256k1::PrivateKey::generate_from_seed(b"a seed");
    Secp256k1Identity::from_pem(key.serialize_rfc5915_pem()).unwrap()
}

/// Returns the identity `from`, delegated to the key of `to`.
fn delegated(
    from: &BasicIdentity,
    to: BasicIdentity,
    expiration: u64,
    targets: Option<Vec<Principal>>,
) -> DelegatedIdentity {
    let pubkey = to.public_key().unwrap();
    let delegation = Delegation { pubkey, expiration, targets, permissions: None };
    let signature = from.sign_delegation(&delegation).unwrap().signature.unwrap();
    let chain = vec![SignedDelegation { delegation, signature }];
    DelegatedIdentity::new_unchecked(from.public_key().unwrap(), Box::new(to), chain)
}

async fn whoami(agent: &Agent, id: Principal) -> Principal {
    Principal::from_slice(&update(agent, id, "whoami", &[]).await)
}

#[tokio::test]
async fn the_canister_sees_the_signer() {
    let (server, id) = Server::with(COUNTER).await;
    let expected = Principal::anonymous();
    assert_eq!(whoami(&server.agent(AnonymousIdentity), id).await, expected);
    let expected = ed25519(1).sender().unwrap();
    assert_eq!(whoami(&server.agent(ed25519(1)), id).await, expected);
    let expected = secp256k1().sender().unwrap();
    assert_eq!(whoami(&server.agent(secp256k1()), id).await, expected);
    for targets in [None, Some(vec![id])] {
        let identity = delegated(&ed25519(1), ed25519(2), u64::MAX, targets);
        let expected = ed25519(1).sender().unwrap();
        assert_eq!(whoami(&server.agent(identity), id).await, expected);
    }
}

#[tokio::test]
async fn delegations_expire_and_have_targets() {
    let (server, id) = Server::with(COUNTER).await;
    let other = server.add(COUNTER);
    let refused = async |identity: DelegatedIdentity| {
        let agent = server.agent(identity);
        agent.update(&id, "whoami").call_and_wait().await.unwrap_err().to_string()
    };
    let expired = refused(delegated(&ed25519(1), ed25519(2), 1, None)).await;
    assert!(expired.contains("400") && expired.contains("has expired at 1;"), "{expired}");
    let targets = Some(vec![other]);
    let elsewhere = refused(delegated(&ed25519(1), ed25519(2), u64::MAX, targets)).await;
    assert!(elsewhere.contains("400"), "{elsewhere}");
    assert!(elsewhere.contains("do not permit requests to canister"), "{elsewhere}");
    // Signed with another key than the one of the chain.
    let mut forged = delegated(&ed25519(3), ed25519(2), u64::MAX, None).delegation_chain();
    let chain = std::mem::take(&mut forged);
    let key = ed25519(1).public_key().unwrap();
    let forged = DelegatedIdentity::new_unchecked(key, Box::new(ed25519(2)), chain);
    let forged = refused(forged).await;
    assert!(forged.contains("400") && forged.contains("has an invalid signature"), "{forged}");
}

/// Sends a request. Returns the status code and the origin that may read the answer.
async fn ask(
    server: &Server,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, Option<String>) {
    let mut request = server.client.clone().request(method, format!("{}{path}", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.timeout(Duration::from_secs(10)).send().await.unwrap();
    let shown = answer.headers().get("access-control-allow-origin");
    (answer.status().as_u16(), shown.map(|shown| shown.to_str().unwrap().to_owned()))
}

/// Sends the preflight and the request of a page.
async fn page(server: &Server, origin: &str) -> [(u16, Option<String>); 2] {
    let preflight = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    [
        ask(server, Method::OPTIONS, "/api/v3/canister/x/call", &preflight).await,
        ask(server, Method::GET, "/api/v2/status", &[("origin", origin)]).await,
    ]
}

#[tokio::test]
async fn only_pages_of_this_machine_may_call() {
    let (server, id) = Server::with(COUNTER).await;
    let here = "http://localhost:3000";
    assert_eq!(page(&server, here).await, [(200, Some(here.into())), (200, Some(here.into()))]);
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        assert_eq!(page(&server, origin).await, [(403, None), (403, None)], "{origin}");
    }
    // The call of a foreign page is refused before its body is read.
    let path = format!("/api/v2/canister/{id}/call");
    let foreign = [("origin", "https://evil.example"), ("content-type", "application/cbor")];
    assert_eq!(ask(&server, Method::POST, &path, &foreign).await.0, 403);
}

#[tokio::test]
async fn foreign_host_names_are_refused() {
    let (server, _) = Server::with(COUNTER).await;
    for (host, status) in [("evil.example:4943", 403), ("localhost", 200), ("x.localhost:1", 200)] {
        for path in ["/api/v2/status", "/"] {
            let asked = ask(&server, Method::GET, path, &[("host", host)]).await;
            assert_eq!(asked.0, status, "{host} {path}");
        }
    }
}

#[tokio::test]
async fn allowed_origins_may_call() {
    let app = "https://app.example";
    let access = Access { origins: vec![app.parse().unwrap()], ..Access::default() };
    let server = Server::with_access(access).await;
    assert_eq!(page(&server, app).await, [(200, Some(app.into())), (200, Some(app.into()))]);
    assert_eq!(page(&server, "https://evil.example").await, [(403, None), (403, None)]);
    let host = [("host", "app.example:4943")];
    assert_eq!(ask(&server, Method::GET, "/api/v2/status", &host).await.0, 200);
    let server = Server::with_access(Access { open: true, ..Access::default() }).await;
    assert_eq!(page(&server, app).await[1], (200, Some(app.into())));
    let host = [("host", "anything.example")];
    assert_eq!(ask(&server, Method::GET, "/api/v2/status", &host).await.0, 200);
}

/// dfx prints these addresses after a deployment.
#[tokio::test]
async fn the_page_of_a_canister_describes_it() {
    let (server, id) = Server::with(COUNTER).await;
    let get = async |path: &str| {
        let answer =
            server.client.clone().get(format!("{}{path}", server.url)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for path in
        [format!("/?canisterId={id}"), format!("/?canisterId=rwlgt-iiaaa-aaaaa-aaaaa-cai&id={id}")]
    {
        let (status, text) = get(&path).await;
        assert_eq!(status, 200, "{text}");
        assert!(text.contains(&format!("Canister {id}, running")), "{text}");
        assert!(text.contains("service : {}") && !text.contains("for controllers"), "{text}");
    }
    let (status, text) = get("/").await;
    assert!(status == 200 && text.contains(&id.to_text()), "{text}");
    assert_eq!(get("/?id=rwlgt-iiaaa-aaaaa-aaaaa-cai").await.0, 404);
    assert_eq!(get("/?id=x").await.0, 400);
}
