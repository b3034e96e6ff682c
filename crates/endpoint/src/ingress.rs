//! What became of the calls that came in: the status of each by its request id, until it
//! expires. A request that is sent again is not run again.
//!
//! ```text
//!   received → processing → replied | rejected → done     (the reply is forgotten)
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candid::Principal;
use ic_certification::hash_tree::Hash;
use ic_error_types::RejectCode;
use ic_transport_types::RequestId;
use tokio::sync::oneshot;

use crate::clock::MINUTE;
use crate::outcome::{Outcome, Reject};
use crate::tree::Tree;

/// Replies that are kept, in bytes. Beyond, the oldest are forgotten.
const MOST_BYTES: usize = 256 << 20;
/// How long a status is kept after its request has expired.
const KEPT: u64 = MINUTE;

/// The calls that came in.
#[derive(Default)]
pub struct Ingress(Mutex<History>);

#[derive(Default)]
struct History {
    calls: BTreeMap<RequestId, Call>,
    /// Those that are finished, the oldest first.
    finished: VecDeque<RequestId>,
    bytes: usize,
    /// When expired calls were last dropped.
    pruned: u64,
}

struct Call {
    sender: Principal,
    receiver: Principal,
    expiry: u64,
    status: Status,
    waiting: Vec<oneshot::Sender<Finished>>,
}

enum Status {
    Received,
    Processing,
    /// The status in the state tree, and its hash.
    Finished(Tree, Hash, usize),
    Done,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub enum Finished {
    /// Its status tells.
    Certified,
    /// It was not let in, and has no status.
    Outside(Reject),
}

/// A call that is known.
pub struct Known {
    /// Who sent it.
    pub sender: Principal,
    /// The canister that it is for.
    pub receiver: Principal,
}

impl Ingress {
    /// Takes a call in; tells whether it is new.
    pub fn register(
        &self,
        id: RequestId,
        sender: Principal,
        receiver: Principal,
        expiry: u64,
        now: u64,
    ) -> bool {
        let mut history = self.lock();
        history.prune(now);
        if history.calls.contains_key(&id) {
            return false;
        }
        let (status, waiting) = (Status::Received, Vec::new());
        history.calls.insert(id, Call { sender, receiver, expiry, status, waiting });
        true
    }

    /// The call's turn has come.
    pub fn begin(&self, id: &RequestId) {
        if let Some(call) = self.lock().calls.get_mut(id) {
            call.status = Status::Processing;
        }
    }

    /// The call has ended.
    pub fn finish(&self, id: &RequestId, outcome: Outcome) {
        let mut history = self.lock();
        let Some(call) = history.calls.get_mut(id) else { return };
        let waiting = std::mem::take(&mut call.waiting);
        // Where nobody waits to be told, the status has to tell.
        let heard = waiting.iter().any(|waiter| !waiter.is_closed());
        let finished = match outcome {
            Err(reject) if !reject.admitted && heard => {
                history.calls.remove(id);
                Finished::Outside(reject)
            }
            outcome => {
                let bytes = outcome.as_ref().map_or_else(|reject| reject.message.len(), Vec::len);
                let tree = status(outcome);
                let hash = tree.digest();
                call.status = Status::Finished(tree, hash, bytes);
                history.bytes += bytes;
                history.finished.push_back(*id);
                history.forget();
                Finished::Certified
            }
        };
        drop(history);
        for waiter in waiting {
            // Who does not wait any more asks again.
            let _ = waiter.send(finished.clone());
        }
    }

    /// The call was not taken after all.
    pub fn withdraw(&self, id: &RequestId) {
        self.lock().calls.remove(id);
    }

    /// Tells when the call has ended; nothing where it has, or is not known.
    pub fn wait(&self, id: &RequestId) -> Option<oneshot::Receiver<Finished>> {
        let mut history = self.lock();
        let call = history.calls.get_mut(id)?;
        match call.status {
            Status::Received | Status::Processing => {
                let (sender, receiver) = oneshot::channel();
                call.waiting.push(sender);
                Some(receiver)
            }
            Status::Finished(..) | Status::Done => None,
        }
    }

    /// A call, if it is known.
    pub fn get(&self, id: &RequestId) -> Option<Known> {
        let history = self.lock();
        let call = history.calls.get(id)?;
        Some(Known { sender: call.sender, receiver: call.receiver })
    }

    /// All statuses, those of other calls than `shown` as hashes.
    pub fn statuses(&self, shown: &[RequestId]) -> Tree {
        let history = self.lock();
        Tree::node(history.calls.iter().map(|(id, call)| {
            let part = match &call.status {
                Status::Received => named("received"),
                Status::Processing => named("processing"),
                Status::Finished(tree, ..) if shown.contains(id) => tree.clone(),
                Status::Finished(_, hash, _) => Tree::Hidden(*hash),
                Status::Done => named("done"),
            };
            (id.as_slice(), part)
        }))
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        // Nothing panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    /// Drops what has expired, a few times a minute.
    fn prune(&mut self, now: u64) {
        if now < self.pruned.saturating_add(KEPT / 6) {
            return;
        }
        self.pruned = now;
        let bytes = &mut self.bytes;
        self.calls.retain(|_, call| {
            let ended = matches!(call.status, Status::Finished(..) | Status::Done);
            let kept = !ended || call.expiry.saturating_add(KEPT) >= now;
            if let (false, Status::Finished(_, _, size)) = (kept, &call.status) {
                *bytes -= size;
            }
            kept
        });
        let calls = &self.calls;
        self.finished.retain(|id| calls.contains_key(id));
    }

    /// Forgets the oldest replies where they are too many bytes.
    fn forget(&mut self) {
        while self.bytes > MOST_BYTES
            && let Some(oldest) = self.finished.pop_front()
        {
            if let Some(call) = self.calls.get_mut(&oldest)
                && let Status::Finished(_, _, size) = call.status
            {
                self.bytes -= size;
                call.status = Status::Done;
            }
        }
    }
}

fn named(status: &str) -> Tree {
    Tree::node([("status", Tree::leaf(status))])
}

fn status(outcome: Outcome) -> Tree {
    match outcome {
        Ok(reply) => Tree::node([("status", Tree::leaf("replied")), ("reply", Tree::leaf(reply))]),
        Err(reject) => Tree::node([
            ("status", Tree::leaf("rejected")),
            // LEB128 of a number below 128 is that byte.
            ("reject_code", Tree::leaf([RejectCode::from(reject.code) as u8])),
            ("reject_message", Tree::leaf(reject.message)),
            ("error_code", Tree::leaf(reject.code.to_string())),
        ]),
    }
}
