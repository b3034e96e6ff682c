//! Requests that are refused: each with the status code of the interface specification and a
//! sentence that says what is wrong.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use candid::Principal;
use ic_agent::Identity;
use ic_agent::agent::EnvelopeContent;
use ic_agent::identity::BasicIdentity;
use ic_transport_types::Envelope;

use super::identities::ed25519;
use super::server::{COUNTER, Server, number};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn minutes(minutes: i64) -> u64 {
    now().saturating_add_signed(minutes * 60_000_000_000)
}

fn call(sender: Principal, canister_id: Principal, ingress_expiry: u64) -> EnvelopeContent {
    EnvelopeContent::Call {
        nonce: None,
        ingress_expiry,
        sender,
        canister_id,
        method_name: "add".to_owned(),
        arg: Vec::new(),
        sender_info: None,
    }
}

fn unsigned(content: EnvelopeContent) -> Vec<u8> {
    envelope(content, None, None)
}

fn envelope(content: EnvelopeContent, key: Option<Vec<u8>>, sig: Option<Vec<u8>>) -> Vec<u8> {
    let content = Cow::Owned(content);
    let envelope =
        Envelope { content, sender_pubkey: key, sender_sig: sig, sender_delegation: None };
    envelope.encode_bytes()
}

fn signed(identity: &BasicIdentity, content: EnvelopeContent) -> Vec<u8> {
    let signature = identity.sign(&content).unwrap();
    envelope(content, signature.public_key, signature.signature)
}

/// The refusal of a body by an address.
async fn refused(server: &Server, path: &str, body: Vec<u8>) -> (u16, String) {
    let (status, _, body) = server.post(path, body).await;
    (status, String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn malformed_and_forged_calls() {
    let (server, id) = Server::with(COUNTER).await;
    let me = ed25519(1);
    let (anonymous, sender) = (Principal::anonymous(), me.sender().unwrap());
    let good = || call(sender, id, minutes(4));
    let body = signed(&me, good());
    let path = format!("/api/v3/canister/{id}/call");

    let mut bad_signature = me.sign(&good()).unwrap().signature.unwrap();
    bad_signature[3] ^= 1;
    let key = || me.public_key();
    let other = ed25519(2);
    let another = me.sign(&call(sender, id, minutes(3))).unwrap().signature;
    let sig = || me.sign(&good()).unwrap().signature;
    let untagged = body.strip_prefix(b"\xd9\xd9\xf7").unwrap().to_vec();
    let mut followed = body.clone();
    followed.push(0);
    let query = EnvelopeContent::Query {
        ingress_expiry: minutes(4),
        sender: anonymous,
        canister_id: id,
        method_name: "get".to_owned(),
        arg: Vec::new(),
        nonce: None,
        sender_info: None,
    };
    let stranger = Principal::from_text("ryjl3-tyaaa-aaaaa-aaaba-cai").unwrap();
    let neighbour = Principal::from_text("lz3um-vp777-77777-aaaba-cai").unwrap();
    let long = EnvelopeContent::Call {
        nonce: Some(vec![0; 33]),
        ingress_expiry: minutes(4),
        sender: anonymous,
        canister_id: id,
        method_name: "add".to_owned(),
        arg: Vec::new(),
        sender_info: None,
    };
    let cases: Vec<(&str, Vec<u8>, u16, &str)> = vec![
        ("empty", Vec::new(), 400, "self-describing tag"),
        ("text", b"hello".to_vec(), 400, "self-describing tag"),
        ("without the tag", untagged, 400, "self-describing tag"),
        ("truncated", body[..body.len() / 2].to_vec(), 400, "Cannot read the CBOR body"),
        ("followed by more", followed, 400, "Cannot read the CBOR body"),
        ("a number", b"\xd9\xd9\xf7\x01".to_vec(), 400, "Cannot read the CBOR body"),
        ("a query", unsigned(query), 400, "The request_type is query, this address takes call"),
        ("a long nonce", unsigned(long), 400, "at most 32 bytes"),
        ("expired", signed(&me, call(sender, id, minutes(-1))), 400, "has passed"),
        ("far ahead", signed(&me, call(sender, id, minutes(7))), 400, "is too far ahead"),
        ("unsigned", unsigned(good()), 403, "there is no signature"),
        ("half signed", envelope(good(), key(), None), 403, "go together"),
        (
            "anonymous and signed",
            envelope(call(anonymous, id, minutes(4)), key(), sig()),
            403,
            "the anonymous sender does not sign",
        ),
        (
            "signed by another",
            envelope(good(), other.public_key(), other.sign(&good()).unwrap().signature),
            403,
            "is not the principal of sender_pubkey",
        ),
        (
            "a wrong bit",
            envelope(good(), key(), Some(bad_signature)),
            403,
            "Ed25519 signature is wrong",
        ),
        ("another's signature", envelope(good(), key(), another), 403, "signature is wrong"),
        ("a short signature", envelope(good(), key(), Some(vec![1])), 403, "signature is wrong"),
        (
            "an unknown kind of key",
            envelope(
                call(Principal::self_authenticating([1, 2]), id, minutes(4)),
                Some(vec![1, 2]),
                sig(),
            ),
            403,
            "neither Ed25519 nor secp256k1",
        ),
        (
            "another canister",
            signed(&me, call(sender, neighbour, minutes(4))),
            400,
            "the message is for lz3um-vp777-77777-aaaba-cai",
        ),
    ];
    for (what, body, status, text) in cases {
        let (got, said) = refused(&server, &path, body).await;
        assert_eq!(got, status, "{what}: {said}");
        assert!(said.contains(text), "{what}: {said}");
    }

    let foreign = unsigned(call(anonymous, stranger, minutes(4)));
    let path = |id: &str| format!("/api/v3/canister/{id}/call");
    let (status, said) = refused(&server, &path(&stranger.to_text()), foreign.clone()).await;
    assert_eq!(status, 400);
    assert!(said.contains("canister_not_found"), "{said}");
    let (status, said) = refused(&server, &path("nonsense"), foreign.clone()).await;
    assert_eq!((status, said.contains("no principal")), (400, true), "{said}");
    let (status, said) = refused(&server, "/api/v9/canister/x/call", foreign.clone()).await;
    assert_eq!((status, said.contains("no such address")), (404, true), "{said}");
    let kind = server.post_as(&path(&id.to_text()), "application/json", foreign).await;
    assert_eq!(kind.0, 400);
    let get = server
        .client
        .clone()
        .get(format!("{}{}", server.url, path(&id.to_text())))
        .send()
        .await
        .unwrap();
    assert_eq!(get.status(), 405);
    // Nothing of all that ran.
    assert_eq!(number(&super::server::query(&server.anonymous(), id, "get").await), 0);
}

#[tokio::test]
async fn sizes_have_limits() {
    let (server, id) = Server::with(COUNTER).await;
    let with = |bytes: usize| {
        unsigned(EnvelopeContent::Call {
            nonce: None,
            ingress_expiry: minutes(4),
            sender: Principal::anonymous(),
            canister_id: id,
            method_name: "no".to_owned(),
            arg: vec![0; bytes],
            sender_info: None,
        })
    };
    let path = format!("/api/v3/canister/{id}/call");
    let most = 2 << 20;
    let overhead = with(1 << 20).len() - (1 << 20);
    assert_eq!(server.post(&path, with(most - overhead)).await.0, 200);
    let (status, said) = refused(&server, &path, with(most - overhead + 1)).await;
    assert_eq!(status, 413);
    assert!(said.contains("at most 2097152 are taken"), "{said}");
    let (status, said) = refused(&server, &path, vec![0; (5 << 20) + 1]).await;
    assert_eq!(status, 413);
    assert!(said.contains("more than 5242880 bytes"), "{said}");
}

#[tokio::test]
async fn paths_that_are_not_there_to_be_read() {
    let (server, id) = Server::with(COUNTER).await;
    let other = server.add(COUNTER);
    let read = |paths: Vec<Vec<&[u8]>>| {
        let paths = paths.into_iter().map(|path| path.into_iter().map(Into::into).collect());
        unsigned(EnvelopeContent::ReadState {
            ingress_expiry: minutes(4),
            sender: Principal::anonymous(),
            paths: paths.collect(),
        })
    };
    let path = format!("/api/v2/canister/{id}/read_state");
    let (one, two) = ([1_u8; 32], [2_u8; 32]);
    for (paths, status, text) in [
        (vec![vec![b"secret".as_slice()]], 404, "no path /secret"),
        (vec![vec![]], 404, "no path /"),
        (vec![vec![b"canister", id.as_slice()]], 404, "controllers, module_hash and metadata"),
        (vec![vec![b"canister", id.as_slice(), b"certified_data"]], 404, "module_hash"),
        (vec![vec![b"canister", other.as_slice(), b"module_hash"]], 400, "of another one"),
        (vec![vec![b"request_status", b"short"]], 400, "has 32 bytes, not 5"),
        (vec![vec![b"request_status", &one], vec![b"request_status", &two]], 400, "two requests"),
        (vec![vec![b"time"]; 1_001], 400, "More than 1000 paths"),
        (vec![vec![b"time", b"x"]], 404, "no path /time/x"),
        (vec![vec![b"subnet", b"x", b"y"]], 404, "no path /subnet/x/y"),
        (vec![vec![b"subnet", b"x", b"public_key", b"y"]], 404, "no path"),
        (vec![vec![b"subnet", b"x", b"node", b"y", b"z"]], 404, "no path"),
        (vec![vec![b"canister_ranges", b"x", b"y", b"z"]], 404, "no path"),
        (vec![vec![b"api_boundary_nodes", b"x", b"y"]], 404, "no path"),
        (vec![vec![b"request_status", &one, b"reply", b"x"]], 404, "no path"),
        (vec![vec![b"\xff".repeat(100).as_slice()]], 404, "fff…"),
    ] {
        let (got, said) = refused(&server, &path, read(paths)).await;
        assert_eq!(got, status, "{said}");
        assert!(said.contains(text), "{said}");
    }
    let subnet = Principal::self_authenticating(&server.root_key);
    let (status, said) = refused(
        &server,
        &format!("/api/v3/subnet/{subnet}/read_state"),
        read(vec![vec![b"canister", id.as_slice(), b"module_hash"]]),
    )
    .await;
    assert_eq!((status, said.contains("There is no path")), (404, true), "{said}");
    let (status, said) =
        refused(&server, &format!("/api/v3/subnet/{id}/read_state"), read(vec![vec![b"time"]]))
            .await;
    assert_eq!((status, said.contains("subnet_not_found")), (400, true), "{said}");
}
