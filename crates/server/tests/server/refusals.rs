//! Requests that are refused, each with the status code of the Interface Specification and a
//! sentence that describes the error. None of them changes anything.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use candid::Principal;
use ic_agent::Identity;
use ic_agent::agent::EnvelopeContent;
use ic_agent::identity::BasicIdentity;
use ic_management_canister_types::CanisterIdRecord;
use ic_transport_types::Envelope;
use reqwest::Method;

use super::server::{
    COUNTER, Server, anonymous_query, call, ed25519, in_minutes, number, query, unsigned,
};
use super::targets::METHODS;

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

/// Sends a body, and returns the status code and the text of the refusal.
async fn send(server: &Server, path: &str, body: Vec<u8>) -> (u16, String) {
    let (status, _, body) = server.post(path, body).await;
    (status, String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn malformed_and_forged_calls_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let me = ed25519(1);
    let (anonymous, sender) = (Principal::anonymous(), me.sender().unwrap());
    let good = || call(sender, id, "add", Vec::new(), in_minutes(4));
    let body = signed(&me, good());
    let path = format!("/api/v3/canister/{id}/call");

    let mut bad_signature = me.sign(&good()).unwrap().signature.unwrap();
    bad_signature[3] ^= 1;
    let key = || me.public_key();
    let other = ed25519(2);
    let another = me.sign(&call(sender, id, "add", Vec::new(), in_minutes(3))).unwrap().signature;
    let sig = || me.sign(&good()).unwrap().signature;
    let untagged = body.strip_prefix(b"\xd9\xd9\xf7").unwrap().to_vec();
    let mut followed = body.clone();
    followed.push(0);
    let queried = anonymous_query(id, "get", Vec::new());
    let stranger = Principal::from_text("ryjl3-tyaaa-aaaaa-aaaba-cai").unwrap();
    let neighbor = Principal::from_text("lz3um-vp777-77777-aaaba-cai").unwrap();
    let long = EnvelopeContent::Call {
        nonce: Some(vec![0; 33]),
        ingress_expiry: in_minutes(4),
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
        ("a query", unsigned(queried), 400, "The request_type is query, this address takes call"),
        ("a long nonce", unsigned(long), 400, "at most 32 bytes"),
        (
            "expired",
            signed(&me, call(sender, id, "add", Vec::new(), in_minutes(-1))),
            400,
            "has passed",
        ),
        (
            "far ahead",
            signed(&me, call(sender, id, "add", Vec::new(), in_minutes(7))),
            400,
            "is too far ahead",
        ),
        ("unsigned", unsigned(good()), 400, "Missing signature from user: "),
        ("half signed", envelope(good(), key(), None), 400, "go together"),
        (
            "anonymous and signed",
            envelope(call(anonymous, id, "add", Vec::new(), in_minutes(4)), key(), sig()),
            400,
            "the anonymous sender does not sign",
        ),
        (
            "signed by another",
            envelope(good(), other.public_key(), other.sign(&good()).unwrap().signature),
            400,
            "is not the principal of sender_pubkey",
        ),
        (
            "a wrong bit",
            envelope(good(), key(), Some(bad_signature)),
            400,
            "Ed25519 signature is wrong",
        ),
        ("another's signature", envelope(good(), key(), another), 400, "signature is wrong"),
        ("a short signature", envelope(good(), key(), Some(vec![1])), 400, "signature is wrong"),
        (
            "an unknown kind of key",
            envelope(
                call(Principal::self_authenticating([1, 2]), id, "add", Vec::new(), in_minutes(4)),
                Some(vec![1, 2]),
                sig(),
            ),
            400,
            "neither Ed25519 nor secp256k1",
        ),
        (
            "another canister",
            signed(&me, call(sender, neighbor, "add", Vec::new(), in_minutes(4))),
            400,
            "the message is for lz3um-vp777-77777-aaaba-cai",
        ),
    ];
    for (what, body, status, text) in cases {
        let (got, message) = send(&server, &path, body).await;
        assert_eq!(got, status, "{what}: {message}");
        assert!(message.contains(text), "{what}: {message}");
    }

    let foreign = unsigned(call(anonymous, stranger, "add", Vec::new(), in_minutes(4)));
    let path = |id: &str| format!("/api/v3/canister/{id}/call");
    let (status, message) = send(&server, &path(&stranger.to_text()), foreign.clone()).await;
    assert_eq!(status, 400);
    assert!(message.contains("canister_not_found"), "{message}");
    let (status, message) = send(&server, &path("nonsense"), foreign.clone()).await;
    assert_eq!((status, message.contains("not a principal")), (400, true), "{message}");
    let (status, message) = send(&server, "/api/v9/canister/x/call", foreign.clone()).await;
    assert_eq!((status, message.contains("no such address")), (404, true), "{message}");
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
    // None of the calls was executed.
    assert_eq!(number(&query(&server.anonymous(), id, "get").await), 0);
}

#[tokio::test]
async fn sizes_are_limited() {
    let (server, id) = Server::with(COUNTER).await;
    let with = |bytes: usize| {
        let (sender, argument) = (Principal::anonymous(), vec![0; bytes]);
        unsigned(call(sender, id, "no", argument, in_minutes(4)))
    };
    let path = format!("/api/v3/canister/{id}/call");
    let most = 2 << 20;
    let overhead = with(1 << 20).len() - (1 << 20);
    assert_eq!(server.post(&path, with(most - overhead)).await.0, 200);
    let (status, message) = send(&server, &path, with(most - overhead + 1)).await;
    assert_eq!(status, 413);
    assert!(message.contains("at most 2097152 are accepted"), "{message}");
    let (status, message) = send(&server, &path, vec![0; (5 << 20) + 1]).await;
    assert_eq!(status, 413);
    assert!(message.contains("more than 5242880 bytes"), "{message}");
}

#[tokio::test]
async fn unknown_and_malformed_paths_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let other = server.add(COUNTER);
    let read = |paths: Vec<Vec<&[u8]>>| {
        let paths = paths.into_iter().map(|path| path.into_iter().map(Into::into).collect());
        unsigned(EnvelopeContent::ReadState {
            ingress_expiry: in_minutes(4),
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
        (vec![vec![b"canister", other.as_slice(), b"module_hash"]], 400, "about another canister"),
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
        let (got, message) = send(&server, &path, read(paths)).await;
        assert_eq!(got, status, "{message}");
        assert!(message.contains(text), "{message}");
    }
    let subnet = Principal::self_authenticating(&server.root_key);
    let (status, message) = send(
        &server,
        &format!("/api/v3/subnet/{subnet}/read_state"),
        read(vec![vec![b"canister", id.as_slice(), b"module_hash"]]),
    )
    .await;
    assert_eq!((status, message.contains("There is no path")), (404, true), "{message}");
    let (status, message) =
        send(&server, &format!("/api/v3/subnet/{id}/read_state"), read(vec![vec![b"time"]])).await;
    assert_eq!((status, message.contains("subnet_not_found")), (400, true), "{message}");
}

/// Every version of the interface refuses calls of methods that users cannot call, whatever the
/// argument.
#[tokio::test]
async fn calls_of_methods_for_canisters_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let argument = candid::encode_one(CanisterIdRecord { canister_id: id }).unwrap();
    for version in ["v2", "v3", "v4"] {
        for (method, text) in [
            ("canister_info", "Only canisters can call ic00 method canister_info"),
            (
                "fetch_canister_logs",
                "ic00 method fetch_canister_logs can not be called via ingress messages",
            ),
            ("raw_rand", "ic00 method raw_rand can not be called via ingress messages"),
            ("list_canisters", "ic00 interface does not expose method list_canisters"),
        ] {
            for argument in [argument.clone(), b"DIDL".to_vec()] {
                let (management, user) = (Principal::management_canister(), Principal::anonymous());
                let content = call(user, management, method, argument, in_minutes(4));
                let path = format!("/api/{version}/canister/{id}/call");
                let (status, _, body) = server.post(&path, unsigned(content)).await;
                let body = String::from_utf8_lossy(&body);
                let refused = body.contains("non_replicated_rejection") && body.contains(text);
                assert!(status == 200 && refused, "{version} {method}: {status} {body}");
            }
        }
    }
}

/// The time limit of a refusal, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(10);
const TAG: &[u8] = b"\xd9\xd9\xf7";

/// A request, and the status with which it is refused.
struct Refused {
    method: Method,
    path: String,
    kind: &'static str,
    body: Vec<u8>,
    status: u16,
}

/// Returns bodies that every address refuses.
fn bodies(whole: &[u8]) -> Vec<Vec<u8>> {
    let tagged = |bytes: &[u8]| [TAG, bytes].concat();
    let untagged = whole.strip_prefix(TAG).unwrap();
    vec![
        Vec::new(),
        b"hello".to_vec(),
        b"{\"content\": {}}".to_vec(),
        TAG[..2].to_vec(),
        TAG.to_vec(),
        untagged.to_vec(),
        [TAG, whole].concat(),
        [whole, b"\0"].concat(),
        whole[..whole.len() / 2].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        // A number, null, NaN, an array, a map, a reserved byte.
        tagged(b"\x01"),
        tagged(b"\xf6"),
        tagged(b"\xfb\x7f\xf8\0\0\0\0\0\0"),
        tagged(b"\x80"),
        tagged(b"\xa0"),
        tagged(b"\x1c"),
        // Bytes, a text, an array and a map of 2^64 - 1.
        tagged(b"\x5b\xff\xff\xff\xff\xff\xff\xff\xff"),
        tagged(b"\x7b\xff\xff\xff\xff\xff\xff\xff\xff"),
        tagged(b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff"),
        tagged(b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff"),
        // Invalid UTF-8, a break without a start, an indefinite map without an end.
        tagged(b"\x62\xff\xfe"),
        tagged(b"\xff"),
        tagged(b"\xbf\x67content"),
        // The content twice, null, without a type, with an unknown type, with a number as type.
        tagged(b"\xa2\x67content\xa0\x67content\xa0"),
        tagged(b"\xa1\x67content\xf6"),
        tagged(b"\xa1\x67content\xa0"),
        tagged(b"\xa1\x67content\xa1\x6crequest_type\x64stop"),
        tagged(b"\xa1\x67content\xa1\x6crequest_type\x07"),
        tagged(&[&[0x81; 1_000][..], b"\x80"].concat()),
        tagged(&[0xff; 60_000]),
    ]
}

fn requests(whole: &[u8], id: Principal, subnet: Principal) -> Vec<Refused> {
    let addresses = [
        format!("/api/v2/canister/{id}/call"),
        format!("/api/v3/canister/{id}/call"),
        format!("/api/v4/canister/{id}/call"),
        format!("/api/v2/canister/{id}/query"),
        format!("/api/v3/canister/{id}/query"),
        format!("/api/v2/canister/{id}/read_state"),
        format!("/api/v3/canister/{id}/read_state"),
        format!("/api/v4/subnet/{subnet}/call"),
        format!("/api/v2/subnet/{subnet}/read_state"),
        format!("/api/v3/subnet/{subnet}/read_state"),
    ];
    let mut refused = Vec::new();
    let mut add = |method: &Method, path: &str, kind, body: &[u8], status| {
        let (path, body) = (path.to_owned(), body.to_vec());
        refused.push(Refused { method: method.clone(), path, kind, body, status });
    };
    for path in &addresses {
        for body in bodies(whole) {
            add(&Method::POST, path, "application/cbor", &body, 400);
        }
        for kind in ["", "application/json", "text/plain", "application/cbor; charset=utf-8"] {
            add(&Method::POST, path, kind, whole, 400);
        }
        for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH] {
            add(&method, path, "application/cbor", whole, 405);
        }
    }
    let long = "a".repeat(5_000);
    for (canister, status) in [
        ("", 400),
        ("x", 400),
        ("aaaaa-a", 400),
        ("AAAAA-AA", 400),
        ("..%2f..%2fetc%2fpasswd", 400),
        ("%00", 400),
        ("%1b[2J", 400),
        ("%e2%80%ae", 400),
        ("%ff", 400),
        (&*long, 400),
        ("2vxsx-fae", 400),
        ("rwlgt-iiaaa-aaaaa-aaaaa-cai", 400),
    ] {
        for what in ["call", "query", "read_state"] {
            let path = format!("/api/v3/canister/{canister}/{what}");
            add(&Method::POST, &path, "application/cbor", whole, status);
        }
    }
    for path in [
        "/api",
        "/api/v1/status",
        "/api/v2/canister",
        "/api/v9/canister/aaaaa-aa/call",
        "/api/v2/canister/aaaaa-aa/call/more",
        "//api/v2/status",
        "/%61pi/v2/status",
    ] {
        add(&Method::POST, path, "application/cbor", whole, 404);
    }
    refused
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_requests_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.agent(ed25519(1));
    // Expired, so that it cannot run.
    let expired = agent.update(&id, "add").expire_at(std::time::UNIX_EPOCH);
    let whole = expired.sign().unwrap().signed_update;
    let requests = requests(&whole, id, Principal::self_authenticating(&server.root_key));
    assert!(requests.len() >= 119, "{}", requests.len());
    println!("{} requests", requests.len());
    for Refused { method, path, kind, body, status } in requests {
        let shown = format!("{method} {path} {kind} {:x?}", &body[..body.len().min(40)]);
        let began = Instant::now();
        let request = server.client.request(method, format!("{}{path}", server.url));
        let answer = request.header("content-type", kind).body(body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{shown}");
        let message = answer.text().await.unwrap();
        assert!(status == 405 || !message.trim().is_empty(), "{shown}");
        assert!(message.len() < 20_000, "{shown}: {} bytes", message.len());
        let steers = |char: char| char.is_control() || char == '\u{202e}';
        assert!(!message.trim_end().contains(steers), "{shown}: {message:?}");
        assert!(began.elapsed() < TIME_LIMIT, "{shown}: {:?}", began.elapsed());
    }
    assert_eq!(number(&query(&server.anonymous(), id, "get").await), 0);
}

/// Returns arguments that every method refuses.
fn arguments() -> Vec<Vec<u8>> {
    let endless = [&[0x80; 100_000][..], b"\x01"].concat();
    // A record with the field canister_id, followed by its type and the values.
    let field = |rest: &[u8]| [b"DIDL\x01\x6c\x01\xb3\xc4\xb1\xf2\x04", rest].concat();
    vec![
        // A missing, truncated, wrong, and lower-case header.
        Vec::new(),
        b"DID".to_vec(),
        b"DIDM\0\0".to_vec(),
        b"didl\0\0".to_vec(),
        // No types, no arguments, trailing bytes.
        b"DIDL".to_vec(),
        b"DIDL\0".to_vec(),
        b"DIDL\0\0".to_vec(),
        b"DIDL\0\0more".to_vec(),
        // More types and more arguments than follow.
        b"DIDL\xff\xff\xff\xff\x0f".to_vec(),
        b"DIDL\0\xff\xff\xff\xff\x0f".to_vec(),
        // A type outside of the table, an unknown one, and recursive ones.
        b"DIDL\0\x01\x05".to_vec(),
        b"DIDL\x01\x55\0\x01\0".to_vec(),
        b"DIDL\x01\x6e\0\x01\0\0".to_vec(),
        b"DIDL\x01\x6c\x01\0\0\x01\0".to_vec(),
        // Numbers without an end.
        [b"DIDL".as_slice(), &endless].concat(),
        [b"DIDL\0\x01\x7d".as_slice(), &endless].concat(),
        // null, true, a text, a principal and a function in place of a record.
        b"DIDL\0\x01\x7f".to_vec(),
        b"DIDL\0\x01\x7e\x01".to_vec(),
        b"DIDL\0\x01\x71\x02ab".to_vec(),
        b"DIDL\0\x01\x68\x01\0".to_vec(),
        b"DIDL\x01\x6a\0\0\0\x01\0\x01\x01\0\0".to_vec(),
        // Fields twice, and in another order.
        b"DIDL\x01\x6c\x02\x01\x7f\x01\x7f\x01\0".to_vec(),
        b"DIDL\x01\x6c\x02\x02\x7f\x01\x7f\x01\0".to_vec(),
        // A canister id that is a text, null, truncated, too long, opaque.
        field(b"\x71\x01\0\x05aaaaa"),
        field(b"\x7f\x01\0"),
        field(b"\x68\x01\0\x01\x0a\0"),
        field(&[b"\x68\x01\0\x01\x1e".as_slice(), &[7; 30]].concat()),
        field(b"\x68\x01\0\0"),
        // A text that is not UTF-8, a bool of 2, a vector of 2^63 bytes.
        b"DIDL\0\x01\x71\x02\xff\xfe".to_vec(),
        b"DIDL\0\x01\x7e\x02".to_vec(),
        b"DIDL\x01\x6d\x7b\x01\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01".to_vec(),
        // A variant without alternatives, and one with an unknown alternative.
        b"DIDL\x01\x6b\0\x01\0\0".to_vec(),
        b"DIDL\x01\x6b\x01\0\x7f\x01\0\x07".to_vec(),
        // A future type.
        b"DIDL\x01\x67\x02ab\x01\0\0\0".to_vec(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_arguments_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let listed = async || {
        let page = server.client.get(format!("{}/", server.url)).send().await.unwrap();
        page.text().await.unwrap()
    };
    let before = listed().await;
    let arguments = arguments();
    assert!(arguments.len() >= 24, "{}", arguments.len());
    println!("{} arguments", arguments.len());
    for argument in arguments {
        for method in METHODS {
            // These methods accept every record, because all of their fields are optional.
            if argument.starts_with(b"DIDL\x01\x6c") && method.contains("create_canister") {
                continue;
            }
            let shown = || format!("{method} {:x?}", &argument[..argument.len().min(40)]);
            let began = Instant::now();
            let management = Principal::management_canister();
            let call = agent.update(&management, *method).with_arg(argument.clone());
            let called = call.with_effective_canister_id(id).call_and_wait().await;
            let refused = called.err().unwrap_or_else(|| panic!("{}", shown())).to_string();
            let words = ["Error decoding candid", "via ingress messages", "not expose method"];
            assert!(words.iter().any(|word| refused.contains(word)), "{}: {refused}", shown());
            assert!(refused.len() < 2_000, "{}: {} bytes", shown(), refused.len());
            assert!(began.elapsed() < TIME_LIMIT, "{}: {:?}", shown(), began.elapsed());
        }
    }
    assert_eq!(listed().await, before, "no canister was created");
    assert_eq!(number(&query(&agent, id, "get").await), 0);
}
