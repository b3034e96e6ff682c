//! Messages of users to canisters, their outcomes in the terms of the Interface Specification, and the
//! statuses of calls by request id, until they expire. A repeated request is not run again.
//!
//! ```text
//!   received → processing → replied | rejected → done     (the reply is dropped)
//! ```
//!
//! A call can be repeated until it expires, so its id is kept until then. The number of calls and
//! the bytes of their replies are limited. At the limit of calls, new ones are refused. A call takes
//! about 250 bytes in addition to its reply.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candid::Principal;
use ic_transport_types::{RejectResponse, RequestId};
use stablebench_replica::{ErrorCode, HostError, Reject, RejectCode, subnet};
use tokio::sync::oneshot;

use crate::certificates::Tree;
use crate::limits::{MAX_CALLS, MAX_REPLIES};
use crate::wire::MINUTE;

/// A message to a canister.
#[derive(Clone, Debug)]
pub struct Message {
    /// The sender.
    pub sender: Principal,
    /// The canister.
    pub canister: Principal,
    /// The method.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
}

impl Message {
    /// Returns the canister that the message is for, or is about; `None` if it creates one.
    ///
    /// # Errors
    ///
    /// If its argument cannot be decoded, or users cannot call the method.
    pub fn effective(&self) -> Result<Option<Principal>, Reject> {
        match self.is_management() {
            false => Ok(Some(self.canister)),
            true => effective_canister(&self.method, &self.argument),
        }
    }

    /// Returns `true` if it is for the management canister.
    pub fn is_management(&self) -> bool {
        self.canister == Principal::management_canister()
    }
}

/// The query of a canister that answers browsers.
pub const HTTP_REQUEST: &str = "http_request";

/// The only query of the management canister that is no update.
const LOGS: &str = "fetch_canister_logs";

/// Returns the canister that a message to the management canister is about; `None` if it creates one.
///
/// # Errors
///
/// The reject of a message that users cannot send, or whose argument cannot be decoded.
pub fn effective_canister(method: &str, argument: &[u8]) -> Result<Option<Principal>, Reject> {
    match method {
        // Calls of the first two are refused before. The third has no effective canister on the
        // network, where it costs nothing.
        LOGS | "canister_info" | "provisional_top_up_canister" => {
            Ok(subnet::effective_canister("canister_status", argument).ok().flatten())
        }
        "create_canister" => Ok(None),
        other => subnet::effective_canister(other, argument),
    }
}

/// Returns `true` if a method creates a canister, and so has no effective canister id.
pub fn creates(method: &str) -> bool {
    matches!(method, "create_canister" | "provisional_create_canister_with_cycles")
}

/// A reply or a reject.
pub type Outcome = Result<Vec<u8>, Rejected>;

/// The reject of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The reject.
    pub reject: Reject,
    /// `true` if the message was admitted. A message that was not has no request status.
    pub admitted: bool,
}

impl Rejected {
    /// The reject of a message that was admitted.
    pub fn admitted(reject: Reject) -> Self {
        Self { reject, admitted: true }
    }

    /// The reject of a message that was not admitted.
    pub fn not_admitted(reject: Reject) -> Self {
        Self { reject, admitted: false }
    }

    /// The error code as clients see it.
    fn error_code(&self) -> String {
        format!("IC{:04}", self.reject.code.number())
    }

    /// The reject code of the Interface Specification.
    fn code(&self) -> u8 {
        self.reject.code.reject_code() as u8
    }

    /// Converts the reject for a response that is not certified.
    pub fn response(&self) -> RejectResponse {
        use ic_transport_types::RejectCode as Transport;
        RejectResponse {
            reject_code: match self.reject.code.reject_code() {
                RejectCode::SysFatal => Transport::SysFatal,
                RejectCode::SysTransient | RejectCode::SysUnknown => Transport::SysTransient,
                RejectCode::DestinationInvalid => Transport::DestinationInvalid,
                RejectCode::CanisterReject => Transport::CanisterReject,
                RejectCode::CanisterError => Transport::CanisterError,
            },
            reject_message: self.reject.message.clone(),
            error_code: Some(self.error_code()),
        }
    }
}

/// Names the tool that converts a module for WASI, if that is the reason of a reject.
pub fn with_converter(reject: Reject) -> Reject {
    let Reject { code, mut message } = reject;
    if code == ErrorCode::CanisterInvalidWasm && message.contains("from 'wasi_") {
        message += " The module is for WASI; wasi2ic converts it for the Internet Computer.";
    }
    Reject { code, message }
}

/// The reject of a message that this machine failed to execute.
pub fn failed(error: &HostError) -> Reject {
    Reject { code: ErrorCode::CanisterOutOfMemory, message: error.to_string() }
}

/// The reject of a message whose execution panicked.
pub fn panicked() -> Reject {
    let message = "the replica failed; see its log".to_owned();
    Reject { code: ErrorCode::CanisterWasmEngineError, message }
}

/// The time for which a status is kept after its request has expired.
const RETENTION: u64 = MINUTE;

/// The calls and their statuses.
#[derive(Default)]
pub struct Ingress(Mutex<History>);

#[derive(Default)]
struct History {
    calls: BTreeMap<RequestId, CallRecord>,
    /// The finished calls, the oldest first.
    finished: VecDeque<RequestId>,
    bytes: usize,
    /// The time at which expired calls were last dropped.
    pruned: u64,
}

struct CallRecord {
    sender: Principal,
    receiver: Principal,
    expiry: u64,
    status: Status,
    waiting: Vec<oneshot::Sender<Finished>>,
}

enum Status {
    Received,
    Processing,
    Finished(Outcome),
    Done,
}

/// The end of a call.
#[derive(Clone, Debug)]
pub enum Finished {
    /// The call has a status, which can be certified.
    Certified,
    /// The call was not admitted, and has no status.
    NotAdmitted(Rejected),
}

/// The result of registering a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The call is new, and has to be run.
    New,
    /// The call was sent before.
    Known,
    /// There are [`MAX_CALLS`] calls already.
    Full,
}

/// A registered call.
pub struct Known {
    /// The sender.
    pub sender: Principal,
    /// The canister that is called.
    pub receiver: Principal,
}

impl Ingress {
    /// Registers a call if it is new and the limit is not reached.
    pub fn register(
        &self,
        id: RequestId,
        sender: Principal,
        receiver: Principal,
        expiry: u64,
        now: u64,
    ) -> Registered {
        let mut history = self.lock();
        history.prune(now);
        if history.calls.contains_key(&id) {
            return Registered::Known;
        }
        if history.calls.len() >= MAX_CALLS {
            return Registered::Full;
        }
        let (status, waiting) = (Status::Received, Vec::new());
        history.calls.insert(id, CallRecord { sender, receiver, expiry, status, waiting });
        Registered::New
    }

    /// Marks a call as processing.
    pub fn begin(&self, id: &RequestId) {
        if let Some(call) = self.lock().calls.get_mut(id) {
            call.status = Status::Processing;
        }
    }

    /// Stores the outcome of a call and notifies those who wait for it.
    pub fn finish(&self, id: &RequestId, outcome: Outcome) {
        let mut history = self.lock();
        let Some(call) = history.calls.get_mut(id) else { return };
        let waiting = std::mem::take(&mut call.waiting);
        // If no client waits, the status has to show the outcome.
        let awaited = waiting.iter().any(|waiter| !waiter.is_closed());
        let finished = match outcome {
            Err(reject) if !reject.admitted && awaited => {
                history.calls.remove(id);
                Finished::NotAdmitted(reject)
            }
            outcome => {
                let bytes = size(&outcome);
                call.status = Status::Finished(outcome);
                history.bytes += bytes;
                history.finished.push_back(*id);
                history.drop_old_replies();
                Finished::Certified
            }
        };
        drop(history);
        for waiter in waiting {
            // A client that has stopped waiting will poll the status.
            let _ = waiter.send(finished.clone());
        }
    }

    /// Removes a call that could not be queued.
    pub fn withdraw(&self, id: &RequestId) {
        self.lock().calls.remove(id);
    }

    /// Returns a receiver for the end of a call, or `None` if the call has ended or is not known.
    pub fn wait(&self, id: &RequestId) -> Option<oneshot::Receiver<Finished>> {
        let mut history = self.lock();
        let call = history.calls.get_mut(id)?;
        match call.status {
            Status::Received | Status::Processing => {
                let (sender, receiver) = oneshot::channel();
                call.waiting.retain(|waiter| !waiter.is_closed());
                call.waiting.push(sender);
                Some(receiver)
            }
            Status::Finished(..) | Status::Done => None,
        }
    }

    /// Returns a call if it is registered.
    pub fn get(&self, id: &RequestId) -> Option<Known> {
        let history = self.lock();
        let call = history.calls.get(id)?;
        Some(Known { sender: call.sender, receiver: call.receiver })
    }

    /// Returns the outcome of a call that has ended.
    pub fn outcome(&self, id: &RequestId) -> Option<Outcome> {
        match &self.lock().calls.get(id)?.status {
            Status::Finished(outcome) => Some(outcome.clone()),
            Status::Received | Status::Processing | Status::Done => None,
        }
    }

    /// Returns the statuses of the given calls, without those that are not registered.
    pub fn statuses(&self, ids: BTreeSet<RequestId>) -> Tree {
        let history = self.lock();
        Tree::node(ids.into_iter().filter_map(|id| {
            let part = match &history.calls.get(&id)?.status {
                Status::Received => named("received"),
                Status::Processing => named("processing"),
                Status::Finished(outcome) => status(outcome),
                Status::Done => named("done"),
            };
            Some((id.as_slice().to_vec(), part))
        }))
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        // No code panics between two related changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    /// Drops expired calls, a few times a minute.
    fn prune(&mut self, now: u64) {
        if now < self.pruned.saturating_add(RETENTION / 6) {
            return;
        }
        self.pruned = now;
        let bytes = &mut self.bytes;
        self.calls.retain(|_, call| {
            let ended = matches!(call.status, Status::Finished(..) | Status::Done);
            let kept = !ended || call.expiry.saturating_add(RETENTION) >= now;
            if let (false, Status::Finished(outcome)) = (kept, &call.status) {
                *bytes -= size(outcome);
            }
            kept
        });
        let calls = &self.calls;
        self.finished.retain(|id| calls.contains_key(id));
    }

    /// Drops the oldest replies while their total size is above the limit.
    fn drop_old_replies(&mut self) {
        while self.bytes > MAX_REPLIES
            && let Some(oldest) = self.finished.pop_front()
        {
            if let Some(call) = self.calls.get_mut(&oldest)
                && let Status::Finished(outcome) = &call.status
            {
                self.bytes -= size(outcome);
                call.status = Status::Done;
            }
        }
    }
}

fn named(status: &str) -> Tree {
    Tree::node([("status", Tree::leaf(status))])
}

/// Returns the bytes of a reply or of a reject message.
fn size(outcome: &Outcome) -> usize {
    outcome.as_ref().map_or_else(|rejected| rejected.reject.message.len(), Vec::len)
}

fn status(outcome: &Outcome) -> Tree {
    match outcome {
        Ok(reply) => {
            Tree::node([("status", Tree::leaf("replied")), ("reply", Tree::leaf(reply.clone()))])
        }
        Err(rejected) => Tree::node([
            ("status", Tree::leaf("rejected")),
            // LEB128 encodes a number below 128 as one byte.
            ("reject_code", Tree::leaf([rejected.code()])),
            ("reject_message", Tree::leaf(rejected.reject.message.clone())),
            ("error_code", Tree::leaf(rejected.error_code())),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> RequestId {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        RequestId::new(&bytes)
    }

    fn register(ingress: &Ingress, number: usize, expiry: u64, now: u64) -> Registered {
        let sender = Principal::anonymous();
        ingress.register(id(number), sender, sender, expiry, now)
    }

    #[test]
    fn calls_have_a_limit_and_expire() {
        let ingress = Ingress::default();
        let expiry = 5 * MINUTE;
        for number in 0..MAX_CALLS {
            assert_eq!(register(&ingress, number, expiry, 1), Registered::New);
            ingress.finish(&id(number), Ok(Vec::new()));
        }
        assert_eq!(register(&ingress, MAX_CALLS, expiry, 1), Registered::Full);
        // Calls that could be repeated are kept.
        assert_eq!(register(&ingress, 0, expiry, expiry), Registered::Known);
        assert_eq!(register(&ingress, 0, expiry, expiry + RETENTION), Registered::Known);
        let later = expiry + 2 * RETENTION;
        assert_eq!(register(&ingress, MAX_CALLS, later, later), Registered::New);
        assert_eq!(ingress.lock().calls.len(), 1);
        assert!(ingress.lock().finished.is_empty());
    }

    #[test]
    fn replies_have_a_limit() {
        let ingress = Ingress::default();
        let (reply, more) = (MAX_REPLIES / 4, 3);
        for number in 0..4 + more {
            assert_eq!(register(&ingress, number, MINUTE, 1), Registered::New);
            ingress.finish(&id(number), Ok(vec![0; reply]));
        }
        assert_eq!(ingress.lock().bytes, 4 * reply);
        let status = |number| ingress.statuses(BTreeSet::from([id(number)]));
        let done = Tree::node([(id(0).to_vec(), named("done"))]);
        assert_eq!(status(0), done);
        assert_ne!(status(more), Tree::node([(id(more).to_vec(), named("done"))]));
        assert_eq!(status(100), Tree::default());
    }

    #[test]
    fn receivers_that_were_dropped_are_removed() {
        let ingress = Ingress::default();
        register(&ingress, 0, MINUTE, 1);
        for _ in 0..100 {
            drop(ingress.wait(&id(0)));
        }
        let waiting = ingress.wait(&id(0));
        assert!(waiting.is_some());
        assert_eq!(ingress.lock().calls[&id(0)].waiting.len(), 1);
        let stopped =
            Reject { code: ErrorCode::CanisterStopped, message: "it is stopped".to_owned() };
        ingress.finish(&id(0), Err(Rejected::not_admitted(stopped)));
        assert_eq!(ingress.lock().calls.len(), 0);
    }
}
