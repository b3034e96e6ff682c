//! PocketIC's REST interface, without a client that hides it.

mod gateways;
mod interface;
mod limits;
mod load;

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use candid::utils::ArgumentEncoder;
use candid::{Principal, encode_args};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, InstallCodeArgs, ProvisionalCreateCanisterWithCyclesArgs,
};
use serde_json::{Value, json};
use stablebench_replica::{Replica, Rules};
use stablebench_server::pocket_ic::{PocketIc, Replicas, Version};
use stablebench_server::{Access, Listener};
use tokio::sync::oneshot;

use super::server::wasm;

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

    async fn request(&self, method: reqwest::Method, path: &str, body: Vec<u8>) -> (u16, Value) {
        let request = self.client.request(method, format!("{}{path}", self.url)).body(body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.request(reqwest::Method::GET, path, Vec::new()).await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.request(reqwest::Method::POST, path, body.to_string().into_bytes()).await
    }

    async fn delete(&self, path: &str) -> u16 {
        self.request(reqwest::Method::DELETE, path, Vec::new()).await.0
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
