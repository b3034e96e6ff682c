//! Operations that take longer than a request may. Their results are read later.
//!
//! ```text
//!   operation ──→ 200, or after the client's patience 202 with a name
//!   GET    /read_graph/LABEL/NUMBER     404 until it is done, then its result
//!   DELETE /prune_graph/LABEL/NUMBER    drops the result
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Failed;
use super::types::{ApiError, Started};
use crate::host::lock;
use crate::limits::MAX_RESULTS;

/// The time for which a request waits, unless it says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);
/// The header with another time.
const HEADER: &str = "processing-timeout-ms";
/// The state in which all operations begin, in the words of the interface.
const LABEL: &str = "instance";

/// The result of an operation: JSON, or a failure.
pub type Outcome = Result<Vec<u8>, Failed>;

/// A status and JSON.
#[derive(Clone)]
struct Answer(StatusCode, Arc<Vec<u8>>);

impl Answer {
    fn new(outcome: Outcome) -> Self {
        match outcome {
            Ok(json) => Self(StatusCode::OK, Arc::new(json)),
            Err(failed) => {
                let (status, message) = failed.into_parts();
                let json = serde_json::to_vec(&ApiError { message }).unwrap_or_default();
                Self(status, Arc::new(json))
            }
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (self.0, kind, Arc::unwrap_or_clone(self.1)).into_response()
    }
}

#[derive(Default)]
struct Results {
    /// `None` while the operation runs.
    answers: BTreeMap<u64, Option<Answer>>,
    done: VecDeque<u64>,
    next: u64,
}

/// The operations of a server that take long.
#[derive(Clone, Default)]
pub struct Pending(Arc<Mutex<Results>>);

impl Pending {
    /// Answers with the result of an operation, or with its name if it takes too long.
    pub async fn answer(&self, headers: &HeaderMap, mut task: JoinHandle<Outcome>) -> Response {
        let named = headers.get(HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
        let patience = named.map_or(PATIENCE, Duration::from_millis);
        if let Ok(done) = timeout(patience, &mut task).await {
            return Answer::new(done.unwrap_or_else(failed)).into_response();
        }
        let number = {
            let mut results = lock(&self.0);
            let number = results.next;
            results.next += 1;
            results.answers.insert(number, None);
            number
        };
        let pending = self.clone();
        tokio::spawn(async move {
            let answer = Answer::new(task.await.unwrap_or_else(failed));
            let mut results = lock(&pending.0);
            if let Some(slot) = results.answers.get_mut(&number) {
                *slot = Some(answer);
                results.done.push_back(number);
            }
            while results.done.len() > MAX_RESULTS
                && let Some(oldest) = results.done.pop_front()
            {
                results.answers.remove(&oldest);
            }
        });
        let started = Started { state_label: LABEL.to_owned(), op_id: number.to_string() };
        (StatusCode::ACCEPTED, Json(started)).into_response()
    }

    /// Answers with the result of an operation that was started before.
    pub fn read(&self, number: &str) -> Response {
        let found =
            number.parse().ok().and_then(|number: u64| lock(&self.0).answers.get(&number).cloned());
        match found {
            Some(Some(answer)) => answer.into_response(),
            Some(None) => Failed::Missing("The operation is not done.".to_owned()).into_response(),
            None => Failed::Missing(format!("There is no operation {number}.")).into_response(),
        }
    }

    /// Drops a result.
    pub fn prune(&self, number: &str) -> Response {
        if let Ok(number) = number.parse::<u64>() {
            let mut results = lock(&self.0);
            results.answers.remove(&number);
            results.done.retain(|done| *done != number);
        }
        Json(()).into_response()
    }
}

/// The failure of a task that panicked.
fn failed(error: tokio::task::JoinError) -> Outcome {
    Err(Failed::Machine(format!("The server failed: {error}; see its log.")))
}
