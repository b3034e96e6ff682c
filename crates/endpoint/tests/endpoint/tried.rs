//! Inputs that reviews tried, and more of their kinds: each is refused in words, at once, and
//! nothing is done.

use std::time::{Duration, Instant};

use candid::Principal;
use reqwest::Method;

use super::identities::ed25519;
use super::server::{COUNTER, Server, number, query};

/// The longest that refusing may take, on a machine that does other things too.
const LONGEST: Duration = Duration::from_secs(10);
const TAG: &[u8] = b"\xd9\xd9\xf7";

/// A request that is refused with that status.
struct Tried {
    method: Method,
    path: String,
    kind: &'static str,
    body: Vec<u8>,
    status: u16,
}

/// Bodies that no address takes.
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
        // A number, null, a float that is none, an array, a map, a reserved byte.
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
        // A text that is not UTF-8, an end of nothing, a map of unknown length without an end.
        tagged(b"\x62\xff\xfe"),
        tagged(b"\xff"),
        tagged(b"\xbf\x67content"),
        // The content twice, null, of no kind, of an unknown kind, of a kind that is a number.
        tagged(b"\xa2\x67content\xa0\x67content\xa0"),
        tagged(b"\xa1\x67content\xf6"),
        tagged(b"\xa1\x67content\xa0"),
        tagged(b"\xa1\x67content\xa1\x6crequest_type\x64stop"),
        tagged(b"\xa1\x67content\xa1\x6crequest_type\x07"),
        tagged(&[&[0x81; 1_000][..], b"\x80"].concat()),
        tagged(&[0xff; 60_000]),
    ]
}

fn requests(whole: &[u8], id: Principal, subnet: Principal) -> Vec<Tried> {
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
    let mut tried = Vec::new();
    let mut add = |method: &Method, path: &str, kind, body: &[u8], status| {
        let (path, body) = (path.to_owned(), body.to_vec());
        tried.push(Tried { method: method.clone(), path, kind, body, status });
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
    tried
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_requests_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.agent(ed25519(1));
    // It has passed, so that it runs nowhere.
    let expired = agent.update(&id, "add").expire_at(std::time::UNIX_EPOCH);
    let whole = expired.sign().unwrap().signed_update;
    let requests = requests(&whole, id, Principal::self_authenticating(&server.root_key));
    assert!(requests.len() >= 119, "{}", requests.len());
    println!("{} requests", requests.len());
    for Tried { method, path, kind, body, status } in requests {
        let told = format!("{method} {path} {kind} {:x?}", &body[..body.len().min(40)]);
        let began = Instant::now();
        let request = server.client.request(method, format!("{}{path}", server.url));
        let answer = request.header("content-type", kind).body(body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{told}");
        let said = answer.text().await.unwrap();
        assert!(status == 405 || !said.trim().is_empty(), "{told}");
        assert!(said.len() < 20_000, "{told}: {} bytes", said.len());
        let steers = |char: char| char.is_control() || char == '\u{202e}';
        assert!(!said.trim_end().contains(steers), "{told}: {said:?}");
        assert!(began.elapsed() < LONGEST, "{told}: {:?}", began.elapsed());
    }
    assert_eq!(number(&query(&server.anonymous(), id, "get").await), 0);
}

/// Arguments that no method takes.
fn arguments() -> Vec<Vec<u8>> {
    let endless = [&[0x80; 100_000][..], b"\x01"].concat();
    // A record with the field canister_id, of the given type, and what follows.
    let field = |rest: &[u8]| [b"DIDL\x01\x6c\x01\xb3\xc4\xb1\xf2\x04", rest].concat();
    vec![
        // No header, a part of it, another one, another case.
        Vec::new(),
        b"DID".to_vec(),
        b"DIDM\0\0".to_vec(),
        b"didl\0\0".to_vec(),
        // No types, no arguments, something behind them.
        b"DIDL".to_vec(),
        b"DIDL\0".to_vec(),
        b"DIDL\0\0".to_vec(),
        b"DIDL\0\0more".to_vec(),
        // More types and more arguments than follow.
        b"DIDL\xff\xff\xff\xff\x0f".to_vec(),
        b"DIDL\0\xff\xff\xff\xff\x0f".to_vec(),
        // A type that is not in the table, an unknown one, one that is of itself.
        b"DIDL\0\x01\x05".to_vec(),
        b"DIDL\x01\x55\0\x01\0".to_vec(),
        b"DIDL\x01\x6e\0\x01\0\0".to_vec(),
        b"DIDL\x01\x6c\x01\0\0\x01\0".to_vec(),
        // Numbers that do not end.
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
        // A canister id that is a text, empty, cut off, too long, hidden.
        field(b"\x71\x01\0\x05aaaaa"),
        field(b"\x7f\x01\0"),
        field(b"\x68\x01\0\x01\x0a\0"),
        field(&[b"\x68\x01\0\x01\x1e".as_slice(), &[7; 30]].concat()),
        field(b"\x68\x01\0\0"),
        // A text that is not UTF-8, a bool of 2, a vector of 2^63 bytes.
        b"DIDL\0\x01\x71\x02\xff\xfe".to_vec(),
        b"DIDL\0\x01\x7e\x02".to_vec(),
        b"DIDL\x01\x6d\x7b\x01\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01".to_vec(),
        // A variant without alternatives, and one whose alternative there is not.
        b"DIDL\x01\x6b\0\x01\0\0".to_vec(),
        b"DIDL\x01\x6b\x01\0\x7f\x01\0\x07".to_vec(),
        // A type of the future.
        b"DIDL\x01\x67\x02ab\x01\0\0\0".to_vec(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_arguments_are_refused() {
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
        for method in super::targets::METHODS {
            // They take every record: all that they know may be left out.
            if argument.starts_with(b"DIDL\x01\x6c") && method.contains("create_canister") {
                continue;
            }
            let told = || format!("{method} {:x?}", &argument[..argument.len().min(40)]);
            let began = Instant::now();
            let management = Principal::management_canister();
            let call = agent.update(&management, *method).with_arg(argument.clone());
            let called = call.with_effective_canister_id(id).call_and_wait().await;
            let refused = called.err().unwrap_or_else(|| panic!("{}", told())).to_string();
            let words = ["Error decoding candid", "has no method", "called as a query"];
            assert!(words.iter().any(|word| refused.contains(word)), "{}: {refused}", told());
            assert!(refused.len() < 2_000, "{}: {} bytes", told(), refused.len());
            assert!(began.elapsed() < LONGEST, "{}: {:?}", told(), began.elapsed());
        }
    }
    assert_eq!(listed().await, before, "no canister was made");
    assert_eq!(number(&query(&agent, id, "get").await), 0);
}
