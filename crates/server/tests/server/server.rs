//! A server in this process, its clients, and requests without a client.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use candid::Principal;
use ic_agent::identity::{AnonymousIdentity, BasicIdentity};
use ic_agent::{Agent, Identity};
use ic_transport_types::{Envelope, EnvelopeContent};
use stablebench_replica::{Canister, Replica, Settings};
use stablebench_server::{Access, Listener, Server as Served};
use tokio::sync::oneshot;

/// A canister with a counter, and a method for each kind of answer.
pub const COUNTER: &str = r#"(module
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reject" (func $reject (param i32 i32)))
  (import "ic0" "msg_caller_size" (func $caller_size (result i32)))
  (import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
  (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
  (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
  (import "ic0" "time" (func $time (result i64)))
  (import "ic0" "trap" (func $trap (param i32 i32)))
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "debug_print" (func $print (param i32 i32)))
  (memory 2)
  (data (i32.const 0) "no such thing")
  (data (i32.const 16) "it is over")
  (global $count (mut i64) (i64.const 0))
  (func $answer (param $value i64)
    (i64.store (i32.const 64) (local.get $value))
    (call $append (i32.const 64) (i32.const 8))
    (call $reply))
  (func (export "canister_update add")
    (global.set $count (i64.add (global.get $count) (i64.const 1)))
    (call $answer (global.get $count)))
  (func (export "canister_query get") (call $answer (global.get $count)))
  (func (export "canister_query now") (call $answer (call $time)))
  (func (export "canister_query used") (call $answer (call $counter (i32.const 0))))
  (func (export "canister_update whoami")
    (call $caller_copy (i32.const 128) (i32.const 0) (call $caller_size))
    (call $append (i32.const 128) (call $caller_size))
    (call $reply))
  (func (export "canister_update echo")
    (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size))
    (call $append (i32.const 1024) (call $arg_size))
    (call $reply))
  (func (export "canister_update no") (call $reject (i32.const 0) (i32.const 13)))
  (func (export "canister_query no_query") (call $reject (i32.const 0) (i32.const 13)))
  (func (export "canister_update trap") (call $trap (i32.const 16) (i32.const 10)))
  (func (export "canister_update silent"))
  (func (export "canister_update print")
    (call $print (i32.const 0) (i32.const 13))
    (call $answer (i64.const 0)))
  ;; Loops as many times as the first eight bytes of the argument request.
  (func (export "canister_update spin")
    (local $left i64)
    (call $arg_copy (i32.const 64) (i32.const 0) (i32.const 8))
    (local.set $left (i64.load (i32.const 64)))
    (loop $again
      (local.set $left (i64.sub (local.get $left) (i64.const 1)))
      (br_if $again (i64.gt_s (local.get $left) (i64.const 0))))
    (global.set $count (i64.add (global.get $count) (i64.const 1)))
    (call $answer (global.get $count)))
  (@custom "icp:public candid:service" "service : {}")
  (@custom "icp:private plan" "for controllers"))"#;

/// A canister that admits messages of the method "open" only.
pub const CLOSED: &str = r#"(module
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "accept_message" (func $accept))
  (import "ic0" "msg_method_name_size" (func $name_size (result i32)))
  (memory 1)
  (func (export "canister_inspect_message")
    (if (i32.eq (call $name_size) (i32.const 4)) (then (call $accept))))
  (func (export "canister_update open") (call $reply))
  (func (export "canister_update closed") (call $reply)))"#;

/// A server. It stops when it is dropped.
pub struct Server {
    pub url: String,
    pub root_key: Vec<u8>,
    pub served: Served,
    pub client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
}

impl Server {
    pub async fn start() -> Self {
        Self::with_access(Access::default()).await
    }

    pub async fn with_access(access: Access) -> Self {
        let served = Served::new(replica().clone());
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), access).unwrap();
        let url = format!("http://{}", listener.address());
        let (stop, stopped) = oneshot::channel::<()>();
        let listening = served.clone();
        tokio::spawn(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            listening.serve(listener, stopped).await.unwrap();
        });
        let client = reqwest::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        Self { url, root_key: served.root_key().to_vec(), served, client, stop: Some(stop) }
    }

    /// Starts a server with a canister that the anonymous principal controls.
    pub async fn with(wat: &str) -> (Self, Principal) {
        let server = Self::start().await;
        let id = server.add(wat);
        (server, id)
    }

    pub fn add(&self, wat: &str) -> Principal {
        self.add_with(wat, vec![Principal::anonymous()])
    }

    /// Adds a canister with the given controllers.
    pub fn add_with(&self, wat: &str, controllers: Vec<Principal>) -> Principal {
        let module = replica().compile_for_subnet(&Principal::anonymous(), &wasm(wat)).unwrap();
        let defaults = replica().create_canister().unwrap().settings().clone();
        let id = self.served.next_id().unwrap();
        let mut canister = Canister::new(Settings { id, controllers, ..defaults }).unwrap();
        let installed = canister.install(&module, Principal::anonymous(), &[]).unwrap();
        installed.outcome.unwrap();
        self.served.adopt(canister).unwrap()
    }

    /// Adds a canister without a module.
    pub fn add_empty(&self) -> Principal {
        let defaults = replica().create_canister().unwrap().settings().clone();
        let id = self.served.next_id().unwrap();
        self.served.adopt(Canister::new(Settings { id, ..defaults }).unwrap()).unwrap()
    }

    /// Returns a client that trusts this root key only.
    pub fn agent(&self, identity: impl Identity + 'static) -> Agent {
        let agent = Agent::builder()
            .with_url(&self.url)
            .with_identity(identity)
            .with_verify_query_signatures(true)
            .with_max_tcp_error_retries(0)
            .build()
            .unwrap();
        agent.set_root_key(self.root_key.clone());
        agent
    }

    pub fn anonymous(&self) -> Agent {
        self.agent(AnonymousIdentity)
    }

    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Sends a body. Returns the status code, the content type and the answer.
    pub async fn post(&self, path: &str, body: Vec<u8>) -> (u16, String, Vec<u8>) {
        self.post_as(path, "application/cbor", body).await
    }

    pub async fn post_as(&self, path: &str, kind: &str, body: Vec<u8>) -> (u16, String, Vec<u8>) {
        let answer = self
            .client
            .post(format!("{}{path}", self.url))
            .header("content-type", kind)
            .body(body)
            .send()
            .await
            .unwrap();
        let status = answer.status().as_u16();
        let kind = answer.headers().get("content-type");
        let kind = kind.map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
        (status, kind, answer.bytes().await.unwrap().to_vec())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

pub fn wasm(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap()
}

pub fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Calls an update and waits for the certified reply.
pub async fn update(agent: &Agent, id: Principal, method: &str, argument: &[u8]) -> Vec<u8> {
    agent.update(&id, method).with_arg(argument).call_and_wait().await.unwrap()
}

pub async fn query(agent: &Agent, id: Principal, method: &str) -> Vec<u8> {
    agent.query(&id, method).call().await.unwrap()
}

fn replica() -> &'static Replica {
    static REPLICA: OnceLock<Replica> = OnceLock::new();
    REPLICA.get_or_init(|| Replica::new(stablebench_replica::Rules::today(), None).unwrap())
}

pub fn ed25519(seed: u8) -> BasicIdentity {
    BasicIdentity::from_raw_key(&[seed; 32])
}

/// Returns the time in some minutes, in nanoseconds since 1970.
pub fn in_minutes(minutes: i64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    now.saturating_add_signed(minutes * 60_000_000_000)
}

/// Encodes a request without a signature.
pub fn unsigned(content: EnvelopeContent) -> Vec<u8> {
    let content = Cow::Owned(content);
    Envelope { content, sender_pubkey: None, sender_sig: None, sender_delegation: None }
        .encode_bytes()
}

/// Returns a call.
pub fn call(
    sender: Principal,
    canister_id: Principal,
    method: &str,
    arg: Vec<u8>,
    ingress_expiry: u64,
) -> EnvelopeContent {
    EnvelopeContent::Call {
        nonce: None,
        ingress_expiry,
        sender,
        canister_id,
        method_name: method.to_owned(),
        arg,
        sender_info: None,
    }
}

/// Returns an anonymous query.
pub fn anonymous_query(canister_id: Principal, method: &str, arg: Vec<u8>) -> EnvelopeContent {
    EnvelopeContent::Query {
        ingress_expiry: in_minutes(4),
        sender: Principal::anonymous(),
        canister_id,
        method_name: method.to_owned(),
        arg,
        nonce: None,
        sender_info: None,
    }
}
