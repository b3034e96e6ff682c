//! PocketIC's REST interface, without a client that hides it, and the HTTP gateways of its instances.

mod interface;
mod limits;

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use candid::utils::ArgumentEncoder;
use candid::{CandidType, Encode, Func, Principal, encode_args};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, InstallCodeArgs, ProvisionalCreateCanisterWithCyclesArgs,
};
use reqwest::Method;
use serde_json::{Value, json};
use stablebench_replica::{Replica, Rules};
use stablebench_server::pocket_ic::{PocketIc, Replicas, Version};
use stablebench_server::{Access, Listener};
use tokio::sync::oneshot;

use crate::gateway::{Callback, Part, Streaming};
use crate::server::wasm;

const MANAGEMENT: Principal = Principal::management_canister();

/// A server. It stops when it is dropped.
struct Server {
    url: String,
    client: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

/// An instance.
struct Instance<'a> {
    server: &'a Server,
    path: String,
    topology: Value,
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn bytes(value: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(value.as_str().unwrap_or_else(|| panic!("{value}"))).unwrap()
}

/// The configuration of one application subnet.
fn one_subnet() -> Value {
    json!({ "subnet_config_set": { "application": [{}] } })
}

impl Server {
    async fn start() -> Self {
        let source = |kind| {
            let rules = Rules::today().on(kind);
            Replica::new(rules, None).map_err(|error| error.to_string())
        };
        let server = PocketIc::new(Version::default(), Replicas::new(source));
        let local = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(local, Access::default()).unwrap();
        let url = format!("http://{}", listener.address());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            server.serve(listener, stopped).await.unwrap();
        });
        let client = reqwest::Client::builder().timeout(Duration::from_secs(120)).build().unwrap();
        Self { url, client, _stop: stop }
    }

    async fn request(&self, method: Method, path: &str, body: Vec<u8>) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.url)).body(body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.request(Method::GET, path, Vec::new()).await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.request(Method::POST, path, body.to_string().into_bytes()).await
    }

    async fn delete(&self, path: &str) -> u16 {
        self.request(Method::DELETE, path, Vec::new()).await.0
    }

    async fn create(&self, config: &Value) -> Instance<'_> {
        let (status, created) = self.post("/instances", config).await;
        assert_eq!(status, 201, "{created}");
        let created = &created["Created"];
        let path = format!("/instances/{}", created["instance_id"]);
        Instance { server: self, path, topology: created["topology"].clone() }
    }
}

impl Instance<'_> {
    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.server.post(&format!("{}/{path}", self.path), &body).await
    }

    /// Executes an operation, which must succeed.
    async fn done(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.post(path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    async fn time(&self) -> u64 {
        let (_, time) = self.server.get(&format!("{}/read/get_time", self.path)).await;
        time["nanos_since_epoch"].as_u64().unwrap()
    }

    /// Executes an update, and returns its result.
    async fn update(&self, canister: Principal, method: &str, argument: &[u8]) -> Value {
        let effective = json!({ "CanisterId": base64(canister.as_slice()) });
        let call = call(canister, effective, method, argument);
        self.done("update/execute_ingress_message", call).await
    }

    async fn query(&self, canister: Principal, method: &str) -> Value {
        let call = call(canister, json!("None"), method, &[]);
        self.done("read/query", call).await
    }

    async fn manage(
        &self,
        effective: Value,
        method: &str,
        arguments: impl ArgumentEncoder,
    ) -> Vec<u8> {
        let call = call(MANAGEMENT, effective, method, &encode_args(arguments).unwrap());
        let result = self.done("update/execute_ingress_message", call).await;
        assert!(result["Err"].is_null(), "{method}: {result}");
        bytes(&result["Ok"])
    }

    /// Creates a canister on a subnet, or where canisters are created by default.
    async fn create_canister(&self, subnet: Option<Principal>) -> Principal {
        let effective = match subnet {
            Some(id) => json!({ "SubnetId": base64(id.as_slice()) }),
            None => json!("None"),
        };
        let args = ProvisionalCreateCanisterWithCyclesArgs {
            amount: Some(100_000_000_000_000_u64.into()),
            ..Default::default()
        };
        let method = "provisional_create_canister_with_cycles";
        let reply = self.manage(effective, method, (args,)).await;
        candid::decode_one::<CanisterIdRecord>(&reply).unwrap().canister_id
    }

    async fn install(&self, canister_id: Principal, wat: &str) {
        let args = InstallCodeArgs {
            mode: CanisterInstallMode::Install,
            canister_id,
            wasm_module: wasm(wat),
            arg: Vec::new(),
            sender_canister_version: None,
        };
        let effective = json!({ "CanisterId": base64(canister_id.as_slice()) });
        self.manage(effective, "install_code", (args,)).await;
    }

    async fn with(&self, wat: &str) -> Principal {
        let id = self.create_canister(None).await;
        self.install(id, wat).await;
        id
    }
}

fn call(canister: Principal, effective: Value, method: &str, argument: &[u8]) -> Value {
    json!({
        "sender": base64(Principal::anonymous().as_slice()),
        "canister_id": base64(canister.as_slice()),
        "effective_principal": effective,
        "method": method,
        "payload": base64(argument),
    })
}

/// A canister with these queries and their replies.
fn answering(replies: &[(&str, Vec<u8>)]) -> String {
    let (mut memory, mut queries, mut at) = (String::new(), String::new(), 0);
    for (name, reply) in replies {
        memory.extend(reply.iter().map(|byte| format!("\\{byte:02x}")));
        queries += &format!(
            r#"(func (export "canister_query {name}")
                (call $append (i32.const {at}) (i32.const {}))
                (call $reply))"#,
            reply.len()
        );
        at += reply.len();
    }
    format!(
        r#"(module
            (import "ic0" "msg_reply" (func $reply))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (memory 1)
            (data (i32.const 0) "{memory}")
            {queries})"#
    )
}

/// The number that the counter replies.
fn number(result: &Value) -> u64 {
    let reply = bytes(&result["Ok"]);
    u64::from_le_bytes(reply.try_into().unwrap())
}

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
