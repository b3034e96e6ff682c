//! An endpoint for each input, with a canister that anybody controls, and another one that is
//! what it was whatever is asked.

use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use candid::Principal;
use ic_transport_types::{EnvelopeContent, QueryResponse};
use tokio::runtime::Runtime;

use super::envelope;
use super::host::bounded_memory;
use crate::server::{COUNTER, Server, number};

/// The longest that an answer may take: a synchronous call waits for ten seconds.
const LONGEST: Duration = Duration::from_secs(15);
/// More than the largest answer here, which has a canister's metadata.
const LARGEST: usize = 1 << 20;

pub struct Subject {
    server: Server,
    /// The canister that the anonymous principal controls, and what is asked is about.
    pub id: Principal,
    /// A canister that nobody here controls.
    pub witness: Principal,
}

/// The answer to a request.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Asks an endpoint, which goes on as before.
pub fn ask(asks: impl AsyncFnOnce(&Subject)) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        count_panics();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().expect("a runtime")
    });
    runtime.block_on(async {
        let subject = Subject::new().await;
        asks(&subject).await;
        subject.goes_on().await;
    });
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "something panicked");
    bounded_memory();
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Threads of the endpoint catch panics, to go on for other clients.
fn count_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
}

impl Subject {
    async fn new() -> Self {
        let (server, id) = Server::with(COUNTER).await;
        let witness = server.add_of(COUNTER, vec![Principal::management_canister()]);
        Self { server, id, witness }
    }

    pub fn subnet(&self) -> Principal {
        Principal::self_authenticating(&self.server.root_key)
    }

    /// Sends a body, or nothing; none where the address cannot be written down.
    pub async fn send(&self, path: &str, kind: &str, body: Option<Vec<u8>>) -> Option<Answer> {
        let url = reqwest::Url::parse(&format!("{}{path}", self.server.url)).ok()?;
        let request = match body {
            Some(body) => self.server.client.post(url).body(body),
            None => self.server.client.get(url),
        };
        let request = request.header("content-type", kind).build().ok()?;
        let began = Instant::now();
        let answer = self.server.client.execute(request).await.expect("an answer");
        let status = answer.status().as_u16();
        let body = answer.bytes().await.expect("a whole answer").to_vec();
        assert!(began.elapsed() < LONGEST, "{path}: {:?}", began.elapsed());
        let expected = [200, 202, 400, 403, 404, 405, 408, 413, 429];
        let told = || String::from_utf8_lossy(&body);
        assert!(expected.contains(&status), "{path}: {status} {}", told());
        assert!(body.len() < LARGEST, "{path}: {} bytes", body.len());
        assert!(status < 400 || status == 405 || !body.is_empty(), "{path}: {status}");
        Some(Answer { status, body })
    }

    /// Sends a body of CBOR.
    pub async fn post(&self, path: &str, body: Vec<u8>) -> Answer {
        let answer = self.send(path, "application/cbor", Some(body)).await;
        answer.unwrap_or_else(|| panic!("{path} is an address"))
    }

    /// What a canister's count is.
    pub async fn count(&self, id: Principal) -> u64 {
        let content = EnvelopeContent::Query {
            ingress_expiry: envelope::in_time(),
            sender: Principal::anonymous(),
            canister_id: id,
            method_name: "get".to_owned(),
            arg: Vec::new(),
            nonce: None,
            sender_info: None,
        };
        let path = format!("/api/v3/canister/{id}/query");
        let answer = self.post(&path, envelope::unsigned(content)).await;
        match serde_cbor_2::from_slice(&answer.body) {
            Ok(QueryResponse::Replied { reply, .. }) => number(&reply.arg),
            other => panic!("{other:?}"),
        }
    }

    /// The other canister is what it was, and what is asked of it is done.
    async fn goes_on(&self) {
        assert_eq!(self.count(self.witness).await, 0);
        let content = envelope::call(self.witness, "add", Vec::new());
        let path = format!("/api/v3/canister/{}/call", self.witness);
        let answer = self.post(&path, envelope::unsigned(content)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(self.count(self.witness).await, 1);
    }
}
