//! What became of the calls that came in: the status of each by its request id, until it
//! expires. A request that is sent again is not run again.
//!
//! ```text
//!   received → processing → replied | rejected → done     (the reply is forgotten)
//! ```
//!
//! A call can be sent again until it expires, so it stays known for as long. Both the calls and
//! the bytes of their replies have a limit: beyond that of calls, new ones are refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candid::Principal;
use ic_error_types::RejectCode;
use ic_transport_types::RequestId;
use tokio::sync::oneshot;

use crate::clock::MINUTE;
use crate::outcome::{Outcome, Reject};
use crate::tree::Tree;

/// Calls that are known. One takes about 250 bytes beside its reply.
pub const MOST_CALLS: usize = 500_000;
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
    Finished(Outcome),
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

/// What became of a call that was to be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is new, and has to be run.
    New,
    /// It was sent before.
    Known,
    /// There are [`MOST_CALLS`] calls already.
    Full,
}

/// A call that is known.
pub struct Known {
    /// Who sent it.
    pub sender: Principal,
    /// The canister that it is for.
    pub receiver: Principal,
}

impl Ingress {
    /// Takes a call in, if it is new and there is a place for it.
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
        if history.calls.len() >= MOST_CALLS {
            return Registered::Full;
        }
        let (status, waiting) = (Status::Received, Vec::new());
        history.calls.insert(id, Call { sender, receiver, expiry, status, waiting });
        Registered::New
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
                let bytes = size(&outcome);
                call.status = Status::Finished(outcome);
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
                call.waiting.retain(|waiter| !waiter.is_closed());
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

    /// The statuses of these calls, of those that are known.
    pub fn statuses(&self, shown: BTreeSet<RequestId>) -> Tree {
        let history = self.lock();
        Tree::node(shown.into_iter().filter_map(|id| {
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
            if let (false, Status::Finished(outcome)) = (kept, &call.status) {
                *bytes -= size(outcome);
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

/// Bytes of a reply or of an error's message.
fn size(outcome: &Outcome) -> usize {
    outcome.as_ref().map_or_else(|reject| reject.message.len(), Vec::len)
}

fn status(outcome: &Outcome) -> Tree {
    match outcome {
        Ok(reply) => {
            Tree::node([("status", Tree::leaf("replied")), ("reply", Tree::leaf(reply.clone()))])
        }
        Err(reject) => Tree::node([
            ("status", Tree::leaf("rejected")),
            // LEB128 of a number below 128 is that byte.
            ("reject_code", Tree::leaf([RejectCode::from(reject.code) as u8])),
            ("reject_message", Tree::leaf(reject.message.clone())),
            ("error_code", Tree::leaf(reject.code.to_string())),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use ic_error_types::ErrorCode;

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
        for number in 0..MOST_CALLS {
            assert_eq!(register(&ingress, number, expiry, 1), Registered::New);
            ingress.finish(&id(number), Ok(Vec::new()));
        }
        assert_eq!(register(&ingress, MOST_CALLS, expiry, 1), Registered::Full);
        // None that could be sent again is forgotten.
        assert_eq!(register(&ingress, 0, expiry, expiry), Registered::Known);
        assert_eq!(register(&ingress, 0, expiry, expiry + KEPT), Registered::Known);
        let later = expiry + 2 * KEPT;
        assert_eq!(register(&ingress, MOST_CALLS, later, later), Registered::New);
        assert_eq!(ingress.lock().calls.len(), 1);
        assert!(ingress.lock().finished.is_empty());
    }

    #[test]
    fn replies_have_a_limit() {
        let ingress = Ingress::default();
        let (reply, more) = (MOST_BYTES / 4, 3);
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
    fn those_who_left_are_not_kept() {
        let ingress = Ingress::default();
        register(&ingress, 0, MINUTE, 1);
        for _ in 0..100 {
            drop(ingress.wait(&id(0)));
        }
        let waiting = ingress.wait(&id(0));
        assert!(waiting.is_some());
        assert_eq!(ingress.lock().calls[&id(0)].waiting.len(), 1);
        ingress.finish(&id(0), Err(Reject::outside(ErrorCode::CanisterStopped, "x")));
        assert_eq!(ingress.lock().calls.len(), 0);
    }
}
