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
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::failure::Failed;
use super::types::{ApiError, Started};
use crate::host::lock;
use crate::limits::{MAX_RESULT_BYTES, MAX_RESULTS};

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
struct Answer(StatusCode, Bytes);

impl Answer {
    fn new(outcome: Outcome) -> Self {
        match outcome {
            Ok(json) => Self(StatusCode::OK, json.into()),
            Err(failed) => {
                let (status, message) = failed.into_parts();
                let json = serde_json::to_vec(&ApiError { message }).unwrap_or_default();
                Self(status, json.into())
            }
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (self.0, kind, self.1).into_response()
    }
}

#[derive(Default)]
struct Results {
    /// `None` while the operation runs.
    answers: BTreeMap<u64, Option<Answer>>,
    done: VecDeque<u64>,
    /// Bytes of those that are done.
    bytes: usize,
    next: u64,
}

impl Results {
    /// Keeps the answer to an operation that ran, unless nobody wants it any more. At a limit, the
    /// oldest are dropped.
    fn keep(&mut self, number: u64, mut answer: Answer) {
        if answer.1.len() > MAX_RESULT_BYTES {
            answer = Answer::new(Err(Failed::TooLarge(format!(
                "The result has {} bytes, at most {MAX_RESULT_BYTES} are kept for later; wait \
                 longer for it ({HEADER}), or ask for less.",
                answer.1.len()
            ))));
        }
        let Some(slot) = self.answers.get_mut(&number) else { return };
        self.bytes += answer.1.len();
        *slot = Some(answer);
        self.done.push_back(number);
        while (self.done.len() > MAX_RESULTS || self.bytes > MAX_RESULT_BYTES)
            && let Some(oldest) = self.done.pop_front()
        {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(Some(answer)) = self.answers.remove(&number) {
            self.bytes -= answer.1.len();
        }
    }
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
            lock(&pending.0).keep(number, answer);
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
            results.forget(number);
            results.done.retain(|done| *done != number);
        }
        Json(()).into_response()
    }
}

/// The failure of a task that panicked.
fn failed(error: tokio::task::JoinError) -> Outcome {
    Err(Failed::Machine(format!("The server failed: {error}; see its log.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Results {
        fn begin(&mut self) -> u64 {
            self.next += 1;
            self.answers.insert(self.next, None);
            self.next
        }

        fn kept(&self) -> usize {
            assert_eq!(self.answers.values().flatten().count(), self.done.len());
            let sizes = self.answers.values().flatten().map(|answer| answer.1.len());
            assert_eq!(sizes.sum::<usize>(), self.bytes);
            self.done.len()
        }
    }

    fn answer(bytes: usize) -> Answer {
        Answer::new(Ok(vec![0; bytes]))
    }

    #[test]
    fn kept_results_have_a_number_and_a_size() {
        let mut results = Results::default();
        for number in 0..MAX_RESULTS + 5 {
            let started = results.begin();
            results.keep(started, answer(1));
            assert_eq!(results.kept(), MAX_RESULTS.min(number + 1));
        }
        for number in [1, 2, 3, 4, 4] {
            let started = results.begin();
            results.keep(started, answer(MAX_RESULT_BYTES / 4 - 1_000));
            assert_eq!(
                results.answers.values().flatten().filter(|it| it.1.len() > 1).count(),
                number
            );
            assert!(results.bytes <= MAX_RESULT_BYTES);
            results.kept();
        }
        // One that is too large by itself becomes an error, and pushes out no other.
        let (before, started) = (results.kept(), results.begin());
        results.keep(started, answer(MAX_RESULT_BYTES + 1));
        let refused = results.answers[&started].clone().unwrap();
        assert_eq!((refused.0, results.kept()), (StatusCode::PAYLOAD_TOO_LARGE, before + 1));
        // One that was pruned while it ran is not kept.
        let started = results.begin();
        results.forget(started);
        results.keep(started, answer(1));
        assert_eq!(results.kept(), before + 1);
    }
}
