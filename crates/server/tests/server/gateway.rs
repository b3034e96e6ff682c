//! The gateway of `serve`: canisters that answer browsers.

use std::time::Duration;

use candid::{CandidType, Deserialize, Encode, Func, Principal, define_function};
use reqwest::{Method, Response};

use super::server::{COUNTER, Server};

define_function!(pub Callback : (u64) -> (Part) query);

/// A part of a streamed response.
#[derive(CandidType)]
pub struct Part {
    pub body: Vec<u8>,
    pub token: Option<u64>,
}

/// The query for the rest of a response.
#[derive(CandidType)]
pub enum Streaming {
    Callback { callback: Callback, token: u64 },
}

#[derive(CandidType, Default)]
struct HttpResponse {
    status_code: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    upgrade: Option<bool>,
    streaming_strategy: Option<Streaming>,
}

/// The argument of `http_request`.
#[derive(CandidType, Deserialize, Debug)]
struct HttpRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    certificate_version: Option<u16>,
}

/// A method, by its kind and name, and its reply.
type Replies<'a> = [(&'a str, Vec<u8>)];

/// A canister that replies this. The bytes of an [`echo`] are those of the argument.
fn canister(replies: &Replies<'_>) -> String {
    let (mut memory, mut methods, mut at) = (String::new(), String::new(), 0);
    for (name, reply) in replies {
        let escaped: String = reply.iter().map(|byte| format!("\\{byte:02x}")).collect();
        memory += &format!("(data (i32.const {at}) \"{escaped}\")");
        let send = |from, to| {
            format!("(call $append (i32.const {}) (i32.const {}))", at + from, to - from)
        };
        let echoed = reply.windows(MARK.len()).position(|bytes| bytes == MARK);
        let sent = match echoed {
            None => send(0, reply.len()),
            // The byte before the mark is its length. That of the argument has three bytes.
            Some(mark) => format!(
                "{}
                (i32.store8 (i32.const 60000) (i32.or (i32.const 128) (call $size)))
                (i32.store8 (i32.const 60001)
                    (i32.or (i32.const 128) (i32.shr_u (call $size) (i32.const 7))))
                (i32.store8 (i32.const 60002) (i32.shr_u (call $size) (i32.const 14)))
                (call $append (i32.const 60000) (i32.const 3))
                (drop (memory.grow (i32.const 40)))
                (call $copy (i32.const 65536) (i32.const 0) (call $size))
                (call $append (i32.const 65536) (call $size))
                {}",
                send(0, mark - 1),
                send(mark + MARK.len(), reply.len())
            ),
        };
        methods += &format!("(func (export \"canister_{name}\") {sent} (call $reply))");
        at += reply.len();
    }
    format!(
        r#"(module
            (import "ic0" "msg_reply" (func $reply))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_arg_data_size" (func $size (result i32)))
            (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
            (memory 1)
            {memory}
            {methods})"#
    )
}

const MARK: &[u8] = b"<the argument>";

/// A response with the argument as its body.
fn echo(status_code: u16) -> Vec<u8> {
    let headers = vec![("x-answer".to_owned(), "yes".to_owned())];
    let body = MARK.to_vec();
    Encode!(&HttpResponse { status_code, headers, body, ..HttpResponse::default() }).unwrap()
}

/// Sends a request with a host name.
async fn send(
    server: &Server,
    method: Method,
    host: &str,
    path: &str,
    body: &'static [u8],
) -> Response {
    let request = server.client.request(method, format!("{}{path}", server.url));
    request.header("host", host).body(body).send().await.unwrap()
}

async fn text(response: Response) -> (u16, String) {
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn echoed(response: Response) -> HttpRequest {
    candid::decode_one(&response.bytes().await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn canisters_answer_browsers() {
    let server = Server::start().await;
    let id = server.add(&canister(&[("query http_request", echo(418))]));
    let raw = format!("{id}.raw.localhost:4943");
    let named = format!("{id}.localhost");
    let by_query = format!("/a/b?x=1&canisterId={id}");
    for (method, host, path) in [
        (Method::GET, &*named, "/a/b?x=1&y=%20"),
        (Method::GET, &named, "/"),
        (Method::GET, &named, "/?id=5"),
        (Method::POST, &raw, "/form"),
        (Method::PUT, &named, "/_/nothing"),
        (Method::DELETE, &named, "/"),
        (Method::OPTIONS, &named, "/"),
        (Method::GET, "localhost", &by_query),
        (Method::PATCH, "127.0.0.1:4943", &by_query),
    ] {
        let response = send(&server, method.clone(), host, path, b"body").await;
        assert_eq!(response.status(), 418, "{method} {host}{path}");
        assert_eq!(response.headers()["x-answer"], "yes");
        let asked = echoed(response).await;
        assert_eq!((&*asked.method, &*asked.url), (method.as_str(), path));
        assert_eq!((&*asked.body, asked.certificate_version), (&b"body"[..], Some(2)));
        assert!(asked.headers.contains(&("host".to_owned(), host.to_owned())), "{asked:?}");
    }
    let head = send(&server, Method::HEAD, &named, "/a", b"").await;
    assert_eq!(
        (head.status().as_u16(), &head.headers()["x-answer"]),
        (418, &"yes".parse().unwrap())
    );
    assert_eq!(head.bytes().await.unwrap(), "");
    // What a page refers to.
    let of_page = server.client.get(format!("{}/script.js", server.url));
    let of_page = of_page.header("referer", format!("{}{by_query}", server.url));
    assert_eq!(of_page.send().await.unwrap().status(), 418);
    // The interface is the same by all names, as agents in pages need it.
    for host in ["localhost", &named] {
        assert_eq!(send(&server, Method::GET, host, "/api/v2/status", b"").await.status(), 200);
        assert_eq!(send(&server, Method::GET, host, "/api/v2/nothing", b"").await.status(), 404);
    }
    assert_eq!(send(&server, Method::GET, "localhost", "/_/topology", b"").await.status(), 404);
    assert_eq!(server.served.websites(), [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn canisters_ask_for_updates() {
    let server = Server::start().await;
    let upgrade = HttpResponse { status_code: 200, upgrade: Some(true), ..HttpResponse::default() };
    let upgrade = Encode!(&upgrade).unwrap();
    let id = server.add(&canister(&[
        ("query http_request", upgrade.clone()),
        ("update http_request_update", echo(201)),
    ]));
    let host = format!("{id}.localhost");
    // Each is a message of its own.
    for _ in 0..2 {
        let response = send(&server, Method::POST, &host, "/new", b"what").await;
        assert_eq!(response.status(), 201);
        let asked = echoed(response).await;
        assert_eq!((&*asked.method, &*asked.url, &*asked.body), ("POST", "/new", &b"what"[..]));
    }
    let id = server.add(&canister(&[("query http_request", upgrade)]));
    let (status, refused) =
        text(send(&server, Method::GET, &format!("{id}.localhost"), "/", b"").await).await;
    assert_eq!(status, 502);
    assert!(refused.contains("has no update method 'http_request_update'"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_response_are_put_together() {
    let server = Server::start().await;
    let id = server.served.next_id().unwrap();
    // The next canister has the next id.
    let next = Principal::from_slice(&{
        let mut bytes = id.as_slice().to_vec();
        bytes[7] += 1;
        bytes
    });
    let callback = Callback(Func { principal: next, method: "part".to_owned() });
    let response = |streaming| HttpResponse {
        status_code: 200,
        body: b"one, ".to_vec(),
        streaming_strategy: streaming,
        ..HttpResponse::default()
    };
    let streaming = Streaming::Callback { callback, token: 1 };
    let part = |token| Encode!(&Part { body: b"two".to_vec(), token }).unwrap();
    let replies = [
        ("query http_request", Encode!(&response(Some(streaming))).unwrap()),
        ("query part", part(None)),
    ];
    assert_eq!(server.add(&canister(&replies)), next);
    let answer = send(&server, Method::GET, &format!("{next}.localhost"), "/", b"").await;
    assert_eq!(text(answer).await, (200, "one, two".to_owned()));
}

/// Responses that have no body say nothing about its length, whatever the canister returns.
#[tokio::test(flavor = "multi_thread")]
async fn responses_without_a_body_have_no_length() {
    let server = Server::start().await;
    for (status_code, status, length) in
        [(200, 200, Some("4")), (204, 204, None), (304, 304, None), (103, 502, Some("42"))]
    {
        let headers = vec![("content-length".to_owned(), "4".to_owned())];
        let body = b"body".to_vec();
        let response = HttpResponse { status_code, headers, body, ..HttpResponse::default() };
        let id = server.add(&canister(&[("query http_request", Encode!(&response).unwrap())]));
        let host = format!("{id}.localhost");
        for method in [Method::GET, Method::HEAD] {
            let answer = send(&server, method.clone(), &host, "/", b"").await;
            assert_eq!(answer.status(), status, "{method}");
            let found = answer.headers().get("content-length").cloned();
            assert_eq!(found.as_ref().map(|it| it.to_str().unwrap()), length, "{method} {status}");
            let expected = if status == 200 && method == Method::GET { "body" } else { "" };
            let read = answer.text().await.unwrap();
            assert!(status == 502 || read == expected, "{method} {status}: {read}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_canister_answers_is_refused() {
    let server = Server::start().await;
    let counter = server.add(COUNTER);
    let get = async |host: &str, path: &str| {
        text(send(&server, Method::GET, host, path, b"").await).await
    };
    // Not of this subnet, and in its range.
    let foreign = "rrkah-fqaaa-aaaaa-aaaaq-cai";
    let not_found = (404, "404 - canister not found\n".to_owned());
    assert_eq!(get(&format!("{foreign}.localhost"), "/").await, not_found);
    assert_eq!(get("localhost", &format!("/?canisterId={foreign}")).await, not_found);
    assert_eq!(get("aaaaa-aa.localhost", "/").await, not_found);
    let unused = server.served.next_id().unwrap();
    let refused = get(&format!("{unused}.localhost"), "/").await;
    assert_eq!(refused, (502, format!("Canister {unused} not found\n")));
    let (status, refused) = get(&format!("{counter}.localhost"), "/a").await;
    assert_eq!(status, 502);
    assert!(refused.contains("has no query method 'http_request'"), "{refused}");
    // The page describes a canister that does not answer browsers.
    let (status, page) = get(&format!("{counter}.localhost"), "/").await;
    assert!(status == 200 && page.contains(&format!("Canister {counter}, running")), "{page}");
    let id = server.add(&canister(&[("query http_request", echo(200))]));
    for host in [format!("{id}.example"), format!("{id}.localhost.example"), "192.0.2.1".to_owned()]
    {
        let (status, _) = get(&host, &format!("/?canisterId={id}")).await;
        assert_eq!(status, 403, "{host}");
    }
    let request = server.client.post(format!("{}/?canisterId={id}", server.url));
    let foreign = request.header("origin", "https://example.com").send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    let large = server.client.post(format!("{}/?canisterId={id}", server.url));
    let large = large.body(vec![0; (2 << 20) + 1]).send().await.unwrap();
    assert_eq!(text(large).await, (413, "The body has more than 2097152 bytes.\n".to_owned()));
}

/// A request that waits does not keep the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_does_not_answer() {
    const ENDLESS: &str = r#"(module
        (func (export "canister_query http_request") (loop $again (br $again))))"#;
    let mut server = Server::start().await;
    let id = server.add(ENDLESS);
    let url = format!("{}/?canisterId={id}", server.url);
    let asked = tokio::spawn(server.client.get(url).send());
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.stop();
    let now = std::time::Instant::now();
    let (_, undone) = server.served.clone().finish(now, now).unwrap();
    assert!(undone <= 1);
    assert_eq!(asked.await.unwrap().unwrap().status(), 502);
}
