//! An endpoint in this process, and clients of it.

use std::sync::OnceLock;
use std::time::Duration;

use candid::Principal;
use ic_agent::identity::AnonymousIdentity;
use ic_agent::{Agent, Identity};
use stablebench_endpoint::{Access, Endpoint};
use stablebench_replica::{Canister, Replica, Settings};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub const COUNTER: &str = include_str!("counter.wat");
pub const CLOSED: &str = include_str!("closed.wat");

/// An endpoint. It stops when it is dropped.
pub struct Server {
    pub url: String,
    pub root_key: Vec<u8>,
    pub endpoint: Endpoint,
    pub client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
}

impl Server {
    pub async fn start() -> Self {
        Self::open_to(Access::default()).await
    }

    pub async fn open_to(access: Access) -> Self {
        let endpoint = Endpoint::new(replica().clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = endpoint.clone();
        tokio::spawn(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            served.serve(listener, access, stopped).await.unwrap();
        });
        let client = reqwest::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        Self { url, root_key: endpoint.root_key().to_vec(), endpoint, client, stop: Some(stop) }
    }

    /// An endpoint with a canister that the anonymous principal controls.
    pub async fn with(wat: &str) -> (Self, Principal) {
        let server = Self::start().await;
        let id = server.add(wat);
        (server, id)
    }

    pub fn add(&self, wat: &str) -> Principal {
        self.add_of(wat, vec![Principal::anonymous()])
    }

    /// Another canister, which these control.
    pub fn add_of(&self, wat: &str, controllers: Vec<Principal>) -> Principal {
        let module = replica().compile(&wasm(wat)).unwrap();
        let usual = replica().create_canister().unwrap().settings().clone();
        let id = self.endpoint.next_id().unwrap();
        let mut canister = Canister::new(Settings { id, controllers, ..usual }).unwrap();
        let installed = canister.install(&module, Principal::anonymous(), &[]).unwrap();
        installed.outcome.unwrap();
        self.endpoint.adopt(canister).unwrap()
    }

    /// A client that trusts the root key, and no more.
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

    /// Sends a body; answers status code, content type and text.
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
    REPLICA.get_or_init(|| Replica::new(stablebench_replica::Rules::of_2025_10(), None).unwrap())
}
