//! The only subnet of the endpoint: its canisters, keys, and calls.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use candid::Principal;
use stablebench_replica::{Canister, Cycles, HostError, Replica, Settings};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::canister::Hosted;
use crate::ingress::Ingress;
use crate::keys::Keys;
use crate::outcome::Reject;
use crate::worker::Handle;

/// The number of the first canister id.
const FIRST: u64 = 0xffff_ffff_ffe0_0000;
/// The number of canister ids.
const RANGE: u64 = 0x10_0000;
/// The most canisters at a time: each has a thread.
const MAX_CANISTERS: usize = 1_000;
/// The most bytes of large messages that are received, waiting or running.
const MAX_BYTES: usize = 256 << 20;

/// The subnet.
pub struct Subnet {
    replica: Replica,
    /// The keys of the subnet and its node.
    pub keys: Keys,
    /// The calls and their statuses.
    pub ingress: Ingress,
    /// One permit for each byte of large messages that is still free.
    pub memory: Arc<Semaphore>,
    canisters: RwLock<BTreeMap<Principal, Handle>>,
    max_canisters: usize,
    /// The number of the next id. Locked while a canister is added, so that an id is checked and
    /// taken in one step.
    next: Mutex<u64>,
}

/// The memory that a large message occupies until it has run.
pub type MemoryPermit = Option<OwnedSemaphorePermit>;

/// The error of a canister that cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// All ids are taken.
    #[error("all {RANGE} canister ids of this subnet are taken")]
    NoId,
    /// There are too many canisters.
    #[error("there are {0} canisters already; delete one")]
    Full(usize),
    /// The requested id is not available.
    #[error("the canister id {0} is taken or not one of this subnet")]
    Taken(Principal),
    /// The machine cannot start a thread.
    #[error("cannot start another canister: {0}")]
    Host(#[from] io::Error),
    /// The machine has no memory left.
    #[error(transparent)]
    Memory(#[from] HostError),
    /// The settings are refused.
    #[error("{}", .0.message)]
    Settings(Reject),
}

impl From<Reject> for CreateError {
    fn from(reject: Reject) -> Self {
        Self::Settings(reject)
    }
}

impl Subnet {
    /// Creates a subnet without canisters.
    pub fn new(replica: Replica) -> Arc<Self> {
        Self::with_limit(replica, MAX_CANISTERS)
    }

    fn with_limit(replica: Replica, max_canisters: usize) -> Arc<Self> {
        Arc::new(Self {
            replica,
            keys: Keys::default(),
            ingress: Ingress::default(),
            memory: Arc::new(Semaphore::new(MAX_BYTES)),
            canisters: RwLock::default(),
            max_canisters,
            next: Mutex::new(FIRST),
        })
    }

    /// Returns the embedded replica.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Returns the first and the last possible canister id.
    pub fn range(&self) -> (Principal, Principal) {
        (id(FIRST), id(FIRST + RANGE - 1))
    }

    /// Returns `true` if the id is in the subnet's range.
    pub fn hosts(&self, canister: &Principal) -> bool {
        let (first, last) = self.range();
        (first..=last).contains(canister) && canister.as_slice().len() == first.as_slice().len()
    }

    /// Creates an empty canister, with the wanted id if one is given.
    ///
    /// # Errors
    ///
    /// If the id is not available, a limit is reached, or the settings are refused.
    pub fn create(
        &self,
        wanted: Option<Principal>,
        controller: Principal,
        cycles: Cycles,
        settings: impl FnOnce(&mut Hosted) -> Result<(), Reject>,
    ) -> Result<Principal, CreateError> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match wanted {
            Some(id) => self.check_free(id)?,
            None => self.next_free(&mut next)?,
        };
        let heap_limit = self.replica.create_canister()?.settings().heap_limit;
        let controllers = vec![controller];
        let canister = Canister::new(Settings { id, controllers, balance: cycles, heap_limit })?;
        let mut hosted = Hosted::new(canister);
        settings(&mut hosted)?;
        self.add(hosted)?;
        Ok(id)
    }

    /// Adds a canister that was created elsewhere.
    ///
    /// # Errors
    ///
    /// If its id is taken or not in the subnet's range, or a limit is reached.
    pub fn adopt(&self, canister: Canister) -> Result<Principal, CreateError> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let id = self.check_free(canister.id())?;
        self.add(Hosted::new(canister))?;
        Ok(id)
    }

    fn check_free(&self, id: Principal) -> Result<Principal, CreateError> {
        let free = self.hosts(&id) && self.canister(&id).is_none();
        if free { Ok(id) } else { Err(CreateError::Taken(id)) }
    }

    fn add(&self, hosted: Hosted) -> Result<(), CreateError> {
        let id = hosted.canister.id();
        let mut canisters = self.canisters.write().unwrap_or_else(PoisonError::into_inner);
        if canisters.len() >= self.max_canisters {
            return Err(CreateError::Full(self.max_canisters));
        }
        canisters.insert(id, Handle::start(hosted)?);
        Ok(())
    }

    /// Returns the id of the next canister.
    ///
    /// # Errors
    ///
    /// If all ids are taken.
    pub fn next_id(&self) -> Result<Principal, CreateError> {
        self.next_free(&mut self.next.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn next_free(&self, next: &mut u64) -> Result<Principal, CreateError> {
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

    /// Returns a canister.
    pub fn canister(&self, id: &Principal) -> Option<Handle> {
        self.canisters.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Returns all canisters.
    pub fn canisters(&self) -> BTreeMap<Principal, Handle> {
        self.canisters.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Removes a canister. Messages that wait for it are still answered.
    pub fn remove(&self, id: &Principal) {
        self.canisters.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Waits until all messages are done or the deadline passes. Returns the canisters, and the
    /// number of messages that are not done.
    pub fn finish(&self, deadline: Instant) -> (Vec<Canister>, usize) {
        let handles =
            std::mem::take(&mut *self.canisters.write().unwrap_or_else(PoisonError::into_inner));
        let undone = handles.values().map(|handle| handle.close(deadline)).sum();
        (handles.values().map(Handle::take).collect(), undone)
    }
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
    fn the_number_of_canisters_is_limited() {
        let subnet = Subnet::with_limit(Replica::new(Rules::of_2025_10(), None).unwrap(), 5);
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
