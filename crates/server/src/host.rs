//! The subnet behind a server, and the part of its state that is readable while it executes.
//!
//! ```text
//!   call, query ──→ send ──→ queue ──→ driver ──→ Subnet ──→ settle ──→ Info, Ingress
//!   exclusively ─────────────────────────────────→ Subnet ──→ settle
//! ```
//!
//! [`Pace`] determines whether the driver executes rounds or leaves that to others.
//!
//! Clients may see several subnets, with ids, keys and ranges of canister ids. All of them are one
//! subnet of the embedded replica, and the key of the first is the root key, which signs all
//! certificates.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use candid::Principal;
use ic_transport_types::RequestId;
use stablebench_replica::subnet::{Borrowed, Halt, MessageId, Part, Status, Subnet};
use stablebench_replica::{Canister, CustomSection, EntryPoint, MethodKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::certificates::Keys;
use crate::limits::{MAX_CANISTERS, MAX_GATEWAY_REQUESTS, MAX_LARGE_BODIES, MAX_WAITING};
use crate::message::{HTTP_REQUEST, Ingress, Message, Outcome, Rejected, with_converter};
use crate::system::{self, System, Withdrawal};
use crate::wire::now;

/// A subnet that clients see.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The id.
    pub id: Principal,
    /// The public key in DER.
    pub key: Vec<u8>,
    /// The first and the last canister id of each range.
    pub ranges: Vec<(Principal, Principal)>,
}

impl Listed {
    /// Returns `true` if a canister id is in one of the ranges.
    pub fn hosts(&self, id: &Principal) -> bool {
        self.ranges.iter().any(|(first, last)| first <= id && id <= last)
    }
}

/// The subnets. The first has the root key.
#[derive(Clone, Debug)]
pub struct Directory(pub Vec<Listed>);

impl Directory {
    /// Returns `true` if a canister id is in a range of a subnet.
    pub fn hosts(&self, id: &Principal) -> bool {
        self.0.iter().any(|subnet| subnet.hosts(id))
    }

    /// Returns `true` if a subnet has this id.
    pub fn contains(&self, id: &Principal) -> bool {
        self.0.iter().any(|subnet| subnet.id == *id)
    }
}

/// The memory that a large message occupies until it has run.
pub type MemoryPermit = Option<OwnedSemaphorePermit>;

/// A message that waits for the driver.
pub struct QueuedMessage {
    /// The canister that it waits for.
    pub canister: Principal,
    /// The message.
    pub message: Message,
    /// The memory that it occupies.
    pub memory: MemoryPermit,
    /// The receiver of its outcome.
    pub task: Task,
    /// The state of the module that it installs.
    pub compilation: Compilation,
}

/// The state of a module that a call installs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compilation {
    /// It was not looked at.
    Open,
    /// A thread compiles it.
    Running,
    /// It is compiled.
    Done,
}

/// The receiver of a message's outcome.
pub enum Task {
    /// It is the status of a call, which is registered.
    Call(RequestId),
    /// It is sent to a client.
    Query(oneshot::Sender<Outcome>),
}

/// The driver's inputs.
#[derive(Default)]
pub struct Queue {
    /// Messages in the order of their arrival.
    pub work: VecDeque<QueuedMessage>,
    /// Number of messages by canister, waiting and running.
    pub waiting: BTreeMap<Principal, usize>,
    /// Canisters that were away and are back.
    pub returned: Vec<Borrowed>,
    /// Calls whose modules are compiled.
    pub compiled: BTreeSet<RequestId>,
    /// The time by which everything has to end.
    pub deadline: Option<Instant>,
    /// `true` if the driver has to look.
    pub changed: bool,
    /// Number of those who wait for the subnet as a whole. The driver starts nothing meanwhile.
    pub exclusive: usize,
}

impl Queue {
    /// Returns `true` if there is something for the driver to do by itself.
    fn has_inputs(&self) -> bool {
        self.changed
            || self.deadline.is_some()
            || !(self.work.is_empty() && self.returned.is_empty() && self.compiled.is_empty())
    }
}

/// A call that is executed.
pub struct Open {
    /// Its id.
    pub id: RequestId,
    /// The canister that it waited for in the queue, if it did.
    pub canister: Option<Principal>,
    /// The cycles that the cycles ledger withdrew for it.
    pub withdrawal: Option<Withdrawal>,
    /// The memory that its message occupies.
    _memory: MemoryPermit,
}

impl Open {
    /// A call that waited in the queue.
    pub fn queued(
        id: RequestId,
        canister: Principal,
        withdrawal: Option<Withdrawal>,
        memory: MemoryPermit,
    ) -> Self {
        Self { id, canister: Some(canister), withdrawal, _memory: memory }
    }

    /// A call that has not waited in the queue.
    pub fn direct(id: RequestId) -> Self {
        Self { id, canister: None, withdrawal: None, _memory: None }
    }
}

/// The time between two rounds without messages, in which heartbeats run.
const ROUND: Duration = Duration::from_secs(1);

/// The time that the driver has to end after its messages were ended.
const LAST: Duration = Duration::from_secs(60);
/// The longest time until the end of the driver is noticed.
const TICK: Duration = Duration::from_millis(5);

/// The error of a canister that cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// All ids are taken.
    #[error("all canister ids of this subnet are taken")]
    NoId,
    /// There are too many canisters.
    #[error("there are {MAX_CANISTERS} canisters already; delete one")]
    Full,
    /// The id is not available.
    #[error("the canister id {0} is taken or not one of this subnet")]
    Taken(Principal),
}

/// The error of an execution that does not end.
#[derive(Debug, thiserror::Error)]
#[error("a message does not end, although it was stopped; this is a bug")]
pub struct Stuck;

/// The source of time, and of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Time is that of the machine's clock. Rounds are executed when there is something to do.
    Clock {
        /// Nanoseconds that the subnet is ahead of the clock.
        ahead: u64,
        /// The time between two rounds without messages, in which heartbeats run.
        idle: Duration,
        /// The least time between two rounds.
        least: Duration,
    },
    /// Time stands still, and rounds are executed on request only.
    Still,
}

impl Pace {
    /// The pace of a server: that of the clock.
    const CLOCK: Self = Self::Clock { ahead: 0, idle: ROUND, least: Duration::ZERO };
}

/// The part of a canister's state that is readable while the canister executes a message.
#[derive(Clone, Debug)]
pub struct Info {
    /// The controllers.
    pub controllers: Vec<Principal>,
    /// The module, unless the canister is empty.
    pub module: Option<ModuleInfo>,
    /// The status.
    pub status: Status,
    /// A number that grows with each change of the canister.
    pub version: u64,
}

/// The readable part of a module.
#[derive(Clone, Debug)]
pub struct ModuleInfo {
    /// The SHA-256 of the installed file.
    pub hash: [u8; 32],
    /// `true` if it inspects messages before they are admitted.
    pub inspects: bool,
    /// `true` if it answers browsers.
    pub answers_http: bool,
    /// The custom sections `icp:public …` and `icp:private …` by name.
    pub sections: Arc<BTreeMap<String, CustomSection>>,
}

impl Info {
    fn new(canister: &Canister, status: Status) -> Self {
        let module = canister.module().map(|module| ModuleInfo {
            hash: module.hash(),
            inspects: module.info().has(EntryPoint::InspectMessage),
            answers_http: module
                .info()
                .methods
                .iter()
                .any(|method| method.name == HTTP_REQUEST && method.kind != MethodKind::Update),
            sections: Arc::new(module.info().custom_sections.clone()),
        });
        let controllers = canister.settings().controllers.clone();
        Self { controllers, module, status, version: canister.version() }
    }
}

/// The subnet behind a server.
pub struct Host {
    /// The keys of the subnet and its node.
    pub keys: Arc<Keys>,
    /// The calls and their statuses.
    pub ingress: Ingress,
    /// One permit for each byte of large messages that is still free.
    pub memory: Arc<Semaphore>,
    /// Places for requests of gateways. Each that is answered needs a thread.
    pub gateway_requests: Arc<Semaphore>,
    /// The messages that wait for the driver.
    pub queue: Mutex<Queue>,
    /// Calls that are executed.
    pub open: Mutex<BTreeMap<MessageId, Open>>,
    system: Option<Arc<System>>,
    directory: RwLock<Directory>,
    subnet: Mutex<Subnet>,
    pace: Mutex<Pace>,
    /// `false` if senders need no signatures.
    pub verifies: bool,
    /// The time of the subnet when it was last settled.
    time: AtomicU64,
    infos: RwLock<BTreeMap<Principal, Arc<Info>>>,
    /// Ends messages that run.
    halt: Halt,
    /// Wakes the driver.
    pub wake: Condvar,
    /// Wakes those who wait for the subnet as a whole.
    back: Condvar,
    /// The thread that executes the rounds.
    pub driver: Mutex<Option<JoinHandle<usize>>>,
}

/// Locks a mutex. No code panics between two related changes.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    /// Lets a subnet follow the clock, with the canisters of the network that clients ask first. The
    /// time until now is passed over.
    pub fn new(mut subnet: Subnet) -> Arc<Self> {
        let keys = Keys::default();
        let ranges = subnet.parts().iter().flat_map(Part::ranges);
        let ranges = system::IDS.map(|id| (id, id)).into_iter().chain(ranges).collect();
        let listed = Listed { id: keys.subnet(), key: keys.root().to_vec(), ranges };
        subnet.resume(now());
        let system = Arc::new(System::new(keys.subnet(), subnet.creation_fee()));
        let callee = Arc::clone(&system);
        subnet.answer_remote_calls(move |call| callee.call(call));
        subnet.set_max_canisters(MAX_CANISTERS);
        let directory = Directory(vec![listed]);
        let host = Self::with_keys(subnet, keys, directory, Some(system), Pace::CLOCK, true);
        host.settle(&mut lock(&host.subnet));
        host
    }

    /// Creates the host of a subnet whose first entry in the directory has the root key.
    pub fn with_keys(
        mut subnet: Subnet,
        keys: Keys,
        directory: Directory,
        system: Option<Arc<System>>,
        pace: Pace,
        verifies: bool,
    ) -> Arc<Self> {
        let keys = Arc::new(keys);
        let signer = Arc::clone(&keys);
        subnet
            .set_certifier(move |canister, data, time| signer.certify_data(&canister, data, time));
        let host = Arc::new(Self {
            keys,
            ingress: Ingress::default(),
            memory: Arc::new(Semaphore::new(MAX_LARGE_BODIES)),
            gateway_requests: Arc::new(Semaphore::new(MAX_GATEWAY_REQUESTS)),
            queue: Mutex::default(),
            open: Mutex::default(),
            system,
            directory: RwLock::new(directory),
            time: AtomicU64::new(subnet.time()),
            halt: subnet.halt(),
            subnet: Mutex::new(subnet),
            pace: Mutex::new(pace),
            verifies,
            infos: RwLock::default(),
            wake: Condvar::new(),
            back: Condvar::new(),
            driver: Mutex::default(),
        });
        host.follow_clock(&mut lock(&host.subnet));
        host
    }

    /// The canisters of the network that clients ask first, if `id` is one of them.
    pub fn system(&self, id: &Principal) -> Option<&System> {
        self.system.as_deref().filter(|_| system::IDS.contains(id))
    }

    /// The subnets that clients see.
    pub fn directory(&self) -> Directory {
        self.directory.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the subnets that clients see.
    pub fn set_directory(&self, directory: Directory) {
        *self.directory.write().unwrap_or_else(PoisonError::into_inner) = directory;
    }

    /// The time of the subnet, in nanoseconds since 1970.
    pub fn now(&self) -> u64 {
        match *lock(&self.pace) {
            Pace::Clock { ahead, .. } => now().saturating_add(ahead),
            Pace::Still => self.time.load(Ordering::Acquire),
        }
    }

    /// The pace.
    pub fn pace(&self) -> Pace {
        *lock(&self.pace)
    }

    /// Changes the pace.
    pub fn set_pace(&self, pace: Pace) {
        *lock(&self.pace) = pace;
        self.notify();
    }

    /// Sets the time of the next round if the pace is that of the clock.
    pub fn follow_clock(&self, subnet: &mut Subnet) {
        if self.pace() != Pace::Still {
            subnet.set_time(self.now());
        }
    }

    /// Adds a canister that was created elsewhere.
    ///
    /// # Errors
    ///
    /// If its id is taken or not in the subnet's range, or there are too many canisters.
    pub fn adopt(&self, canister: Canister) -> Result<Principal, AddError> {
        let id = canister.id();
        let mut subnet = lock(&self.subnet);
        if self.infos().len() >= MAX_CANISTERS {
            return Err(AddError::Full);
        }
        if !subnet.hosts(&id) {
            return Err(AddError::Taken(id));
        }
        self.follow_clock(&mut subnet);
        subnet.add(canister).map_err(|_| AddError::Taken(id))?;
        self.settle(&mut subnet);
        drop(subnet);
        self.notify();
        Ok(id)
    }

    /// Takes the id of the next canister.
    ///
    /// # Errors
    ///
    /// If all ids are taken.
    pub fn next_id(&self) -> Result<Principal, AddError> {
        lock(&self.subnet).next_id().ok_or(AddError::NoId)
    }

    /// Returns the readable state of a canister.
    pub fn info(&self, id: &Principal) -> Option<Arc<Info>> {
        self.infos.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Returns that of all canisters.
    pub fn infos(&self) -> BTreeMap<Principal, Arc<Info>> {
        self.infos.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a message, which waits for `canister`. Returns `false` if too many do.
    pub fn send(
        &self,
        canister: Principal,
        message: Message,
        memory: MemoryPermit,
        task: Task,
    ) -> bool {
        let mut queue = lock(&self.queue);
        let waiting = queue.waiting.entry(canister).or_default();
        if *waiting >= MAX_WAITING {
            return false;
        }
        *waiting += 1;
        let compilation = Compilation::Open;
        queue.work.push_back(QueuedMessage { canister, message, memory, task, compilation });
        queue.changed = true;
        self.wake.notify_one();
        true
    }

    /// Ends a message that waited for a canister.
    pub fn done(&self, canister: &Principal) {
        let mut queue = lock(&self.queue);
        if let Some(waiting) = queue.waiting.get_mut(canister) {
            *waiting -= 1;
            if *waiting == 0 {
                queue.waiting.remove(canister);
            }
        }
    }

    /// Wakes the driver.
    pub fn notify(&self) {
        lock(&self.queue).changed = true;
        self.wake.notify_one();
    }

    /// The subnet, of which canisters may be away.
    pub fn subnet(&self) -> MutexGuard<'_, Subnet> {
        lock(&self.subnet)
    }

    /// Works on the subnet while no canister is away and no message is executed.
    pub fn exclusively<T>(&self, work: impl FnOnce(&mut Subnet) -> T) -> T {
        lock(&self.queue).exclusive += 1;
        let mut subnet = self.await_all();
        self.follow_clock(&mut subnet);
        let result = work(&mut subnet);
        self.settle(&mut subnet);
        drop(subnet);
        let mut queue = lock(&self.queue);
        queue.exclusive -= 1;
        // If time stands still, the driver has nothing to do but what is in the queue.
        if self.pace() != Pace::Still || queue.has_inputs() {
            queue.changed = true;
            self.wake.notify_one();
        }
        drop(queue);
        result
    }

    /// Waits until no canister is away.
    pub fn await_all(&self) -> MutexGuard<'_, Subnet> {
        loop {
            let mut subnet = lock(&self.subnet);
            let returned = std::mem::take(&mut lock(&self.queue).returned);
            self.take_back(&mut subnet, returned);
            if subnet.away() == 0 {
                return subnet;
            }
            drop(subnet);
            let queue = lock(&self.queue);
            if queue.returned.is_empty() {
                // Another thread may have taken back the last one.
                let waited = self.back.wait_timeout(queue, Duration::from_millis(10));
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Returns canisters that were away to the subnet.
    pub fn take_back(&self, subnet: &mut Subnet, returned: Vec<Borrowed>) {
        for borrowed in returned {
            subnet.give_back(borrowed);
        }
    }

    /// Receives a canister that was away.
    pub fn give_back(&self, borrowed: Borrowed) {
        let mut queue = lock(&self.queue);
        queue.returned.push(borrowed);
        queue.changed = true;
        self.wake.notify_one();
        self.back.notify_all();
    }

    /// Executes what waits until the deadline. Messages that run then may end until `halt`. Returns
    /// the subnet, and the number of messages that were not done by the deadline.
    ///
    /// # Errors
    ///
    /// If the driver does not end for a minute more.
    pub fn finish(&self, deadline: Instant, halt: Instant) -> Result<(Subnet, usize), Stuck> {
        lock(&self.queue).deadline = Some(deadline);
        self.notify();
        let mut undone = 0;
        if let Some(driver) = lock(&self.driver).take() {
            while !driver.is_finished() {
                if Instant::now() >= halt {
                    self.halt.halt();
                }
                if Instant::now() >= halt + LAST {
                    return Err(Stuck);
                }
                thread::sleep(TICK);
            }
            undone = driver.join().unwrap_or_default();
        }
        Ok((lock(&self.subnet).fork(), undone))
    }

    /// Makes the state of the subnet readable, and passes on the answers. A client that has its answer
    /// sees what the call changed.
    pub fn settle(&self, subnet: &mut Subnet) {
        self.time.store(subnet.time(), Ordering::Release);
        self.publish(subnet);
        for (id, response) in subnet.take_answers() {
            let call = lock(&self.open).remove(&id);
            let Some(Open { id, canister, withdrawal, .. }) = call else { continue };
            let response = match (withdrawal, &self.system) {
                (Some(withdrawal), Some(system)) => system.settle(withdrawal, response),
                _ => response,
            };
            // PocketIC's texts are those of the replica.
            let response = match self.system {
                Some(_) => response.map_err(with_converter),
                None => response,
            };
            self.ingress.finish(&id, response.map_err(Rejected::admitted));
            if let Some(canister) = canister {
                self.done(&canister);
            }
        }
    }

    fn publish(&self, subnet: &Subnet) {
        let mut infos = self.infos.write().unwrap_or_else(PoisonError::into_inner);
        infos.retain(|id, _| subnet.exists(id));
        for canister in subnet.canisters() {
            let id = canister.id();
            let Some(status) = subnet.status(&id) else { continue };
            let known = infos.get(&id).map(|info| (info.version, info.status));
            if known != Some((canister.version(), status)) {
                infos.insert(id, Arc::new(Info::new(canister, status)));
            }
        }
    }
}
