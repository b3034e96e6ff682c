//! The server of an input, with a canister that anybody controls, and a witness that no request
//! may change.

use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use candid::Principal;
use ic_transport_types::QueryResponse;
use tokio::runtime::Runtime;

use super::bounded::bounded_memory;
use crate::server::{COUNTER, Server, anonymous_query, call, in_minutes, number, unsigned};

/// The time limit of an answer. A synchronous call waits for ten seconds.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// The size limit of an answer, more than the largest, which contains a canister's metadata.
const SIZE_LIMIT: usize = 1 << 20;

pub struct Subject {
    server: Server,
    /// The tested canister, which the anonymous principal controls.
    pub id: Principal,
    /// A canister that no sender controls.
    pub witness: Principal,
}

/// The answer to a request.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Sends requests to a server, and checks that it still works.
pub fn test(requests: impl AsyncFnOnce(&Subject)) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        count_panics();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().expect("a runtime")
    });
    runtime.block_on(async {
        let subject = Subject::new().await;
        requests(&subject).await;
        subject.check().await;
    });
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a thread panicked");
    bounded_memory();
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics, which the server's threads catch.
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
        let witness = server.add_with(COUNTER, vec![Principal::management_canister()]);
        Self { server, id, witness }
    }

    pub fn subnet(&self) -> Principal {
        Principal::self_authenticating(&self.server.root_key)
    }

    /// Sends a request. Returns `None` if the address is not a valid URL.
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
        assert!(began.elapsed() < TIME_LIMIT, "{path}: {:?}", began.elapsed());
        let expected = [200, 202, 400, 403, 404, 405, 408, 413, 429];
        let text = || String::from_utf8_lossy(&body);
        assert!(expected.contains(&status), "{path}: {status} {}", text());
        assert!(body.len() < SIZE_LIMIT, "{path}: {} bytes", body.len());
        assert!(status < 400 || status == 405 || !body.is_empty(), "{path}: {status}");
        Some(Answer { status, body })
    }

    /// Sends a CBOR body.
    pub async fn post(&self, path: &str, body: Vec<u8>) -> Answer {
        let answer = self.send(path, "application/cbor", Some(body)).await;
        answer.unwrap_or_else(|| panic!("{path} is not a valid address"))
    }

    /// Returns a canister's count.
    pub async fn count(&self, id: Principal) -> u64 {
        let content = anonymous_query(id, "get", Vec::new());
        let path = format!("/api/v3/canister/{id}/query");
        let answer = self.post(&path, unsigned(content)).await;
        match serde_cbor_2::from_slice(&answer.body) {
            Ok(QueryResponse::Replied { reply, .. }) => number(&reply.arg),
            other => panic!("{other:?}"),
        }
    }

    /// Checks that the witness is unchanged and executes calls.
    async fn check(&self) {
        assert_eq!(self.count(self.witness).await, 0);
        let content = call(Principal::anonymous(), self.witness, "add", Vec::new(), in_minutes(4));
        let path = format!("/api/v3/canister/{}/call", self.witness);
        let answer = self.post(&path, unsigned(content)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(self.count(self.witness).await, 1);
    }
}
