//! The one subnet of the endpoint: its canisters, its keys, and the calls that came in.
//!
//! ```text
//!   http ── Request ──→ Subnet ──→ a canister's thread ──→ Ingress ──→ certificates
//!                         └──→ management: which canister, and what is done to it
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use candid::Principal;
use ic_error_types::ErrorCode;
use ic_transport_types::RequestId;
use stablebench_replica::{Canister, Cycles, HostError, Replica, Settings};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::canister::{Full, Handle, Hosted, Work};
use crate::clock;
use crate::ingress::{Finished, Ingress, MOST_CALLS, Registered};
use crate::keys::Keys;
use crate::management;
use crate::outcome::{Outcome, Reject, outcome};

/// The first canister of a fresh subnet, and how many there may be.
const FIRST: u64 = 0xffff_ffff_ffe0_0000;
const RANGE: u64 = 0x10_0000;
/// Canisters at a time: each has a thread.
const MOST_CANISTERS: usize = 1_000;
/// Bytes of large messages that are read, wait or run.
const MOST_BYTES: usize = 256 << 20;

/// The subnet.
pub struct Subnet {
    replica: Replica,
    /// Its keys.
    pub keys: Keys,
    /// The calls that came in.
    pub ingress: Ingress,
    /// Bytes of large messages for which there is still room.
    pub room: Arc<Semaphore>,
    canisters: RwLock<BTreeMap<Principal, Handle>>,
    most_canisters: usize,
    /// The number of the next id. Locked while a canister is added, so that an id is found free
    /// and taken in one step.
    next: Mutex<u64>,
}

/// The room that a large message takes, until it has run.
pub type Held = Option<OwnedSemaphorePermit>;

/// A message to a canister.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who sends it.
    pub sender: Principal,
    /// To which canister.
    pub canister: Principal,
    /// The method.
    pub method: String,
    /// Its argument.
    pub argument: Vec<u8>,
}

/// What became of a call when it was sent.
pub enum Sent {
    /// It ends later, or has ended: then the status tells.
    Waiting(Option<oneshot::Receiver<Finished>>),
    /// It was not let in.
    Refused(Reject),
    /// Too much waits already, as it says.
    Full(String),
}

/// The endpoint has no place for another canister.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// All ids are taken.
    #[error("all {RANGE} canister ids of this subnet are taken")]
    NoId,
    /// There are too many canisters.
    #[error("there are {0} canisters already; delete one")]
    Full(usize),
    /// The id that was asked for cannot be given.
    #[error("the canister id {0} is taken or not one of this subnet")]
    Taken(Principal),
    /// The machine has no memory or no threads left.
    #[error("cannot start another canister: {0}")]
    Host(#[from] io::Error),
    /// The machine has no memory left.
    #[error(transparent)]
    Memory(#[from] HostError),
    /// The settings cannot be what they should.
    #[error("{}", .0.message)]
    Settings(Reject),
}

impl From<Reject> for CreateError {
    fn from(reject: Reject) -> Self {
        Self::Settings(reject)
    }
}

impl Subnet {
    /// A subnet without canisters.
    pub fn new(replica: Replica) -> Arc<Self> {
        Self::with_room(replica, MOST_CANISTERS)
    }

    fn with_room(replica: Replica, most_canisters: usize) -> Arc<Self> {
        Arc::new(Self {
            replica,
            keys: Keys::default(),
            ingress: Ingress::default(),
            room: Arc::new(Semaphore::new(MOST_BYTES)),
            canisters: RwLock::default(),
            most_canisters,
            next: Mutex::new(FIRST),
        })
    }

    /// What runs modules.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The first and the last id that canisters can have.
    pub fn range(&self) -> (Principal, Principal) {
        (id(FIRST), id(FIRST + RANGE - 1))
    }

    /// Whether a canister of that id is, was, or could be here.
    pub fn hosts(&self, canister: &Principal) -> bool {
        let (first, last) = self.range();
        (first..=last).contains(canister) && canister.as_slice().len() == first.as_slice().len()
    }

    /// Creates an empty canister of that controller, with that id if one is given.
    ///
    /// # Errors
    ///
    /// Where there is no place for it, or its settings are refused.
    pub fn create(
        &self,
        wanted: Option<Principal>,
        controller: Principal,
        cycles: Cycles,
        settings: impl FnOnce(&mut Hosted) -> Result<(), Reject>,
    ) -> Result<Principal, CreateError> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match wanted {
            Some(id) => self.free(id)?,
            None => self.after(&mut next)?,
        };
        let heap_limit = self.replica.create_canister()?.settings().heap_limit;
        let controllers = vec![controller];
        let canister = Canister::new(Settings { id, controllers, balance: cycles, heap_limit })?;
        let mut hosted = Hosted::new(canister);
        settings(&mut hosted)?;
        self.add(hosted)?;
        Ok(id)
    }

    /// Takes in a canister that came to be elsewhere.
    ///
    /// # Errors
    ///
    /// Where its id is taken or none of this subnet.
    pub fn adopt(&self, canister: Canister) -> Result<Principal, CreateError> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let id = self.free(canister.id())?;
        self.add(Hosted::new(canister))?;
        Ok(id)
    }

    fn free(&self, id: Principal) -> Result<Principal, CreateError> {
        let free = self.hosts(&id) && self.canister(&id).is_none();
        if free { Ok(id) } else { Err(CreateError::Taken(id)) }
    }

    fn add(&self, hosted: Hosted) -> Result<(), CreateError> {
        let id = hosted.canister.id();
        let mut canisters = self.canisters.write().unwrap_or_else(PoisonError::into_inner);
        if canisters.len() >= self.most_canisters {
            return Err(CreateError::Full(self.most_canisters));
        }
        canisters.insert(id, Handle::start(hosted)?);
        Ok(())
    }

    /// The id of the next canister.
    ///
    /// # Errors
    ///
    /// Where all are taken.
    pub fn next_id(&self) -> Result<Principal, CreateError> {
        self.after(&mut self.next.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn after(&self, next: &mut u64) -> Result<Principal, CreateError> {
        loop {
            if *next == FIRST + RANGE {
                return Err(CreateError::NoId);
            }
            let id = id(*next);
            *next += 1;
            if self.canister(&id).is_none() {
                return Ok(id);
            }
        }
    }

    /// A canister.
    pub fn canister(&self, id: &Principal) -> Option<Handle> {
        self.canisters.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// All canisters.
    pub fn canisters(&self) -> BTreeMap<Principal, Handle> {
        self.canisters.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a canister away; what waits for it is still answered.
    pub fn remove(&self, id: &Principal) {
        self.canisters.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Waits until all that was sent is done, but not after `deadline`; answers the canisters,
    /// and how many messages were not done by then.
    pub fn finish(&self, deadline: Instant) -> (Vec<Canister>, usize) {
        let handles =
            std::mem::take(&mut *self.canisters.write().unwrap_or_else(PoisonError::into_inner));
        let undone = handles.values().map(|handle| handle.close(deadline)).sum();
        (handles.values().map(Handle::take).collect(), undone)
    }

    /// Sends an update call, once: one that is known already is not run again.
    /// `held` is given back once it has run.
    pub fn call(
        self: &Arc<Self>,
        id: RequestId,
        expiry: u64,
        message: Message,
        held: Held,
    ) -> Sent {
        let (sender, now) = (message.sender, clock::now());
        if self.ingress.get(&id).is_some() {
            return Sent::Waiting(self.ingress.wait(&id));
        }
        let task = match self.task(&message) {
            Ok(task) => task,
            Err(reject) => return Sent::Refused(reject),
        };
        match self.ingress.register(id, sender, message.canister, expiry, now) {
            Registered::New => {}
            Registered::Known => return Sent::Waiting(self.ingress.wait(&id)),
            Registered::Full => {
                return Sent::Full(format!(
                    "{MOST_CALLS} calls came in that have not expired; try again later"
                ));
            }
        }
        let waiting = self.ingress.wait(&id);
        let sent = match task {
            Task::Create => {
                self.ingress.finish(&id, management::create(self, &message));
                Ok(())
            }
            Task::On(handle, run) => {
                let (begins, ends) = (Arc::clone(self), Arc::clone(self));
                handle.send(Work {
                    run: Box::new(move |hosted| {
                        begins.ingress.begin(&id);
                        let outcome = run(hosted);
                        drop(held);
                        outcome
                    }),
                    done: Box::new(move |outcome| ends.ingress.finish(&id, outcome)),
                })
            }
        };
        match sent {
            Ok(()) => Sent::Waiting(waiting),
            Err(full) => {
                self.ingress.withdraw(&id);
                Sent::Full(full.to_string())
            }
        }
    }

    /// What is to be done for a message.
    fn task(self: &Arc<Self>, message: &Message) -> Result<Task, Reject> {
        if message.canister == Principal::management_canister() {
            return management::task(self, message);
        }
        let handle =
            self.canister(&message.canister).ok_or_else(|| not_found(&message.canister))?;
        let info = handle.info();
        if !info.running {
            return Err(stopped(&message.canister));
        }
        if info.module.is_none() {
            return Err(Reject::outside(
                ErrorCode::CanisterWasmModuleNotFound,
                "Requested canister has no wasm module",
            ));
        }
        let message = message.clone();
        let run = move |hosted: &mut Hosted| {
            hosted.ready(&message.canister)?;
            hosted.canister.set_time(clock::now());
            let Message { sender, method, argument, .. } = &message;
            let executed = hosted.canister.update(*sender, method, argument);
            hosted.ran(executed)
        };
        Ok(Task::On(handle, Box::new(run)))
    }

    /// Asks a query; its outcome comes later. `held` is given back then.
    ///
    /// # Errors
    ///
    /// Where too much waits already.
    pub fn query(
        self: &Arc<Self>,
        message: Message,
        held: Held,
    ) -> Result<oneshot::Receiver<Outcome>, Full> {
        let (answer, answered) = oneshot::channel();
        let (handle, run) = match self.query_task(message) {
            Ok(task) => task,
            Err(reject) => {
                // The receiver is here.
                let _ = answer.send(Err(reject));
                return Ok(answered);
            }
        };
        handle.send(Work {
            run: Box::new(move |hosted| {
                let outcome = run(hosted);
                drop(held);
                outcome
            }),
            done: Box::new(move |outcome| {
                // Who does not wait any more does not hear it.
                let _ = answer.send(outcome);
            }),
        })?;
        Ok(answered)
    }

    fn query_task(self: &Arc<Self>, message: Message) -> Result<(Handle, Run), Reject> {
        if message.canister == Principal::management_canister() {
            return management::query_task(self, &message);
        }
        let handle =
            self.canister(&message.canister).ok_or_else(|| not_found(&message.canister))?;
        let run = move |hosted: &mut Hosted| {
            hosted.ready(&message.canister)?;
            hosted.canister.set_time(clock::now());
            let Message { sender, method, argument, .. } = &message;
            outcome(hosted.canister.query(*sender, method, argument))
        };
        Ok((handle, Box::new(run)))
    }
}

/// What is to be done for a message.
pub enum Task {
    /// Something on a canister's thread.
    On(Handle, Run),
    /// A canister is made, which waits for no other.
    Create,
}

/// What is done to a canister.
pub type Run = Box<dyn FnOnce(&mut Hosted) -> Outcome + Send>;

impl Hosted {
    /// Refuses messages to a canister that does not run.
    fn ready(&self, id: &Principal) -> Result<(), Reject> {
        if self.deleted {
            Err(not_found(id))
        } else if self.running {
            Ok(())
        } else {
            Err(stopped(id))
        }
    }
}

/// There is no such canister.
pub fn not_found(id: &Principal) -> Reject {
    Reject::outside(ErrorCode::CanisterNotFound, format!("Canister {id} not found"))
}

fn stopped(id: &Principal) -> Reject {
    Reject::outside(ErrorCode::CanisterStopped, format!("Canister {id} is stopped"))
}

fn id(number: u64) -> Principal {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend([1, 1]);
    Principal::from_slice(&bytes)
}

#[cfg(test)]
mod tests {
    use stablebench_replica::Rules;

    use super::*;

    #[test]
    fn there_is_room_for_so_many_canisters() {
        let subnet = Subnet::with_room(Replica::new(Rules::of_2025_10(), None).unwrap(), 5);
        let create = || subnet.create(None, Principal::anonymous(), Cycles(0), |_| Ok(()));
        let first = create().unwrap();
        for _ in 1..5 {
            create().unwrap();
        }
        assert!(matches!(create(), Err(CreateError::Full(5))));
        subnet.remove(&first);
        create().unwrap();
        assert!(matches!(create(), Err(CreateError::Full(5))));
    }
}
