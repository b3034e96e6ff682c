//! HTTP gateways.

use candid::{CandidType, Encode, Func};
use reqwest::Method;

use super::*;
use crate::gateway::{Callback, Part, Streaming};

#[derive(CandidType)]
struct Response {
    status_code: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    streaming_strategy: Option<Streaming>,
}

/// A response, whose other parts are replies of `part` of a canister.
fn response(streaming: Option<Principal>) -> Vec<u8> {
    let strategy = |principal| Streaming::Callback {
        callback: Callback(Func { principal, method: "part".to_owned() }),
        token: 1,
    };
    let headers = vec![("x-answer".to_owned(), "yes".to_owned())];
    let body = b"short and stout".to_vec();
    let streaming_strategy = streaming.map(strategy);
    Encode!(&Response { status_code: 418, headers, body, streaming_strategy }).unwrap()
}

fn part(body: &[u8], token: Option<u64>) -> Vec<u8> {
    Encode!(&Part { body: body.to_vec(), token }).unwrap()
}

/// Asks for a gateway to an instance. Returns the answer.
async fn asked(instance: &Instance<'_>, mut config: Value) -> (u16, Value) {
    let number: usize = instance.path.rsplit('/').next().unwrap().parse().unwrap();
    config["forward_to"] = json!({ "PocketIcInstance": number });
    instance.server.post("/http_gateway", &config).await
}

/// Starts a gateway to an instance. Returns its port.
async fn started(instance: &Instance<'_>, config: Value) -> u64 {
    let (status, created) = asked(instance, config).await;
    assert_eq!(status, 201, "{created}");
    created["Created"]["port"].as_u64().unwrap()
}

/// Sends a request to a port of this machine. Returns the status, and the origin that may read the
/// answer.
async fn send(
    server: &Server,
    port: u64,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, Option<String>) {
    let mut request = server.client.request(method, format!("http://127.0.0.1:{port}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let shown = answer.headers().get("access-control-allow-origin");
    (answer.status().as_u16(), shown.map(|shown| shown.to_str().unwrap().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_let_canisters_answer_browsers() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let id = instance.with(&answering(&[("http_request", response(None))])).await;
    let port = started(&instance, json!({})).await;
    let url = format!("http://127.0.0.1:{port}/?canisterId={id}");
    let answer = server.client.get(&url).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x-answer"]),
        (418, &"yes".parse().unwrap())
    );
    assert_eq!(answer.text().await.unwrap(), "short and stout");
    let named = server.client.get(format!("http://127.0.0.1:{port}/"));
    let named = named.header("host", format!("{id}.localhost:{port}")).send().await.unwrap();
    assert_eq!(named.status(), 418);
    let status = server.client.get(format!("http://127.0.0.1:{port}/api/v2/status")).send();
    assert_eq!(status.await.unwrap().status(), 200);
    let topology = server.client.get(format!("http://127.0.0.1:{port}/_/topology")).send();
    let topology: Value =
        serde_json::from_str(&topology.await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(topology, instance.topology);
    assert_eq!(server.get("/http_gateway").await.1.as_array().unwrap().len(), 1);
    // A gateway ends with its instance.
    assert_eq!(server.delete(&instance.path).await, 200);
    assert_eq!(server.get("/http_gateway").await.1, json!([]));
    while server.client.get(&url).send().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_refuse_foreign_names_and_pages() {
    let server = Server::start().await;
    let mut config = one_subnet();
    config["http_gateway_config"] = json!({});
    let (_, created) = server.post("/instances", &config).await;
    let created = &created["Created"];
    let path = format!("/instances/{}", created["instance_id"]);
    let topology = created["topology"].clone();
    let instance = Instance { server: &server, path, topology };
    let id = instance.with(&answering(&[("http_request", response(None))])).await;
    let of_instance = created["http_gateway_info"]["port"].as_u64().unwrap();
    let usual = started(&instance, json!({})).await;
    let config = json!({ "ip_addr": "127.0.0.1", "domains": ["localhost", "app.example"] });
    let with_domains = started(&instance, config).await;
    let canister = format!("/?canisterId={id}");
    for (port, of_app) in [(of_instance, false), (usual, false), (with_domains, true)] {
        for (name, allowed) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("[::1]", true),
            (&*format!("{id}.localhost"), true),
            ("app.example", of_app),
            (&*format!("{id}.app.example"), of_app),
            ("evil.example", false),
            ("localhost.evil.example", false),
            (&*format!("{id}.evil.example"), false),
        ] {
            let host = format!("{name}:{port}");
            let page = format!("http://{name}:{port}");
            for path in [&*canister, "/api/v2/status", "/_/topology", "/_/dashboard"] {
                let of_canister = path == canister;
                let expected = match (allowed, of_canister) {
                    (false, _) => 403,
                    (true, true) => 418,
                    (true, false) => 200,
                };
                let named = send(&server, port, Method::GET, path, &[("host", &host)]).await;
                assert_eq!(named.0, expected, "{name} {path}");
                let of_page = send(&server, port, Method::GET, path, &[("origin", &page)]).await;
                assert_eq!(of_page.0, expected, "{page} {path}");
            }
            // Agents in pages ask first.
            let preflight = [
                ("origin", &*page),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", "content-type"),
            ];
            let path = format!("/api/v3/canister/{id}/call");
            let asked = send(&server, port, Method::OPTIONS, &path, &preflight).await;
            let expected = if allowed { (200, Some(page)) } else { (403, None) };
            assert_eq!(asked, expected, "{name}");
        }
        for headers in [("origin", "null"), ("origin", "https://evil.example"), ("host", "")] {
            let refused = send(&server, port, Method::POST, &canister, &[headers]).await;
            assert_eq!(refused, (403, None), "{headers:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_are_not_open_to_the_network() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    for address in ["0.0.0.0", "::", "192.0.2.1"] {
        let other = json!({ "ip_addr": address });
        let (status, refused) = asked(&instance, other.clone()).await;
        assert_eq!(status, 502, "{refused}");
        let message = refused["Error"]["message"].as_str().unwrap();
        let expected = format!(
            "Failed to bind to address {address}:0: the server listens at 127.0.0.1 only, and a \
             gateway is not more open. Leave out ip_addr, or start the server with --ip-addr \
             {address} (stablebench pocket-ic) or --listen {address} (stablebench serve)"
        );
        assert_eq!(message, expected);
        let mut config = one_subnet();
        config["http_gateway_config"] = other;
        let (status, refused) = server.post("/instances", &config).await;
        assert_eq!((status, refused["Error"]["message"].as_str()), (400, Some(&*expected)));
    }
    let (_, refused) = asked(&instance, json!({ "domains": ["*"] })).await;
    let message = refused["Error"]["message"].as_str().unwrap();
    assert!(
        message.ends_with("the domain \"*\" is no host name, such as example.com"),
        "{message}"
    );
    assert_eq!(server.get("/http_gateway").await.1, json!([]));
    // None of these has left an instance.
    assert_eq!(server.get("/instances").await.1, json!(["Available"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_gateways_is_limited() {
    let server = Server::start().await;
    let mut instances = Vec::new();
    for number in 0..16 {
        let instance = server.create(&one_subnet()).await;
        for _ in 0..16 {
            started(&instance, json!({})).await;
        }
        let (status, refused) = asked(&instance, json!({})).await;
        assert_eq!(status, 502);
        let expected = match number {
            15 => "This server has 256 gateways already; stop one.".to_owned(),
            _ => format!("Instance {number} has 16 gateways already; stop one."),
        };
        assert_eq!(refused["Error"]["message"], expected);
        instances.push(instance);
    }
    let mut config = one_subnet();
    config["http_gateway_config"] = json!({});
    let (status, refused) = server.post("/instances", &config).await;
    assert_eq!(status, 400, "{refused}");
    assert_eq!(server.get("/instances").await.1[16], "Deleted");
    // Those of a deleted instance, and those that are stopped, are no more.
    assert_eq!(server.delete(&instances[0].path).await, 200);
    let stopped = server.post("/http_gateway/255/stop", &Value::Null).await;
    assert_eq!(stopped.0, 200);
    started(&instances[15], json!({})).await;
    let (_, created) = server.post("/instances", &config).await;
    assert!(created["Created"]["http_gateway_info"]["port"].is_u64(), "{created}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_response_are_put_together_up_to_a_limit() {
    let server = Server::start().await;
    let instance = server.create(&one_subnet()).await;
    let port = started(&instance, json!({})).await;
    let get = async |id: Principal| {
        let url = format!("http://127.0.0.1:{port}/?canisterId={id}");
        let answer = server.client.get(&url).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for (last, expected) in [
        (part(b", that is all", None), (418, "short and stout, that is all")),
        // It never ends, and has no bytes.
        (part(b"", Some(1)), (502, "The response has more than 10000 parts.\n")),
    ] {
        let id = instance.create_canister(None).await;
        let replies = [("http_request", response(Some(id))), ("part", last)];
        instance.install(id, &answering(&replies)).await;
        assert_eq!(get(id).await, (expected.0, expected.1.to_owned()));
    }
}
