//! The subnet, and the thread that executes its rounds.
//!
//! ```text
//!   call, query ──→ queue ──→ driver ──→ submit ──→ round ──→ answers ──→ Ingress
//!                               └──────→ query, on a thread
//! ```
//!
//! Messages of a canister are executed in the order of their arrival. A canister that works for long
//! is away: the others go on, and what arrives for it waits. Modules are compiled before they are
//! installed, on threads of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use candid::Principal;
use ic_transport_types::RequestId;
use stablebench_replica::subnet::{Borrowed, MessageId, Status, Subnet};
use stablebench_replica::{Canister, CustomSection, EntryPoint, HostError, Replica};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::clock;
use crate::ingress::Ingress;
use crate::keys::Keys;
use crate::messages::Message;
use crate::outcome::{Outcome, Rejected, failed, panicked};
use crate::state_tree;
use crate::system::{self, System, Update, Withdrawal};

/// The most canisters at a time.
const MAX_CANISTERS: usize = 1_000;
/// The most messages that may wait for a canister.
pub const MAX_WAITING: usize = 1_000;
/// The most bytes of large messages that are received, waiting or running.
const MAX_BYTES: usize = 256 << 20;
/// The time for which a round waits for its canisters.
const PATIENCE: Duration = Duration::from_millis(20);
/// The time between two rounds without messages, in which heartbeats run.
const ROUND: Duration = Duration::from_secs(1);
/// Nanoseconds from the time of a timer on the clock to the round that runs it.
const SLACK: u64 = 1_000_000;

/// The memory that a large message occupies until it has run.
pub type MemoryPermit = Option<OwnedSemaphorePermit>;

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
    /// The custom sections `icp:public …` and `icp:private …` by name.
    pub sections: Arc<BTreeMap<String, CustomSection>>,
}

impl Info {
    fn new(canister: &Canister, status: Status) -> Self {
        let module = canister.module().map(|module| ModuleInfo {
            hash: module.hash(),
            inspects: module.info().has(EntryPoint::InspectMessage),
            sections: Arc::new(module.info().custom_sections.clone()),
        });
        let controllers = canister.settings().controllers.clone();
        Self { controllers, module, status, version: canister.version() }
    }
}

/// A message that waits for the driver.
struct Work {
    /// The canister that it waits for.
    canister: Principal,
    message: Message,
    memory: MemoryPermit,
    task: Task,
    compilation: Compilation,
}

/// The state of a module that a call installs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compilation {
    /// It was not looked at.
    Open,
    Running,
    Done,
}

/// What becomes of a message's outcome.
pub enum Task {
    /// It is the status of a call, which is registered.
    Call(RequestId),
    /// It is sent to a client.
    Query(oneshot::Sender<Outcome>),
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    /// Number of messages by canister, waiting and running.
    waiting: BTreeMap<Principal, usize>,
    /// Canisters that were away and are back.
    returned: Vec<Borrowed>,
    /// Calls whose modules are compiled.
    compiled: BTreeSet<RequestId>,
    /// The time by which everything has to end.
    deadline: Option<Instant>,
    /// `true` if the driver has to look.
    changed: bool,
}

/// The subnet behind an endpoint.
pub struct Host {
    /// The keys of the subnet and its node.
    pub keys: Arc<Keys>,
    /// The canisters of the network that clients call first.
    pub system: Arc<System>,
    /// The calls and their statuses.
    pub ingress: Ingress,
    /// One permit for each byte of large messages that is still free.
    pub memory: Arc<Semaphore>,
    replica: Replica,
    subnet: Mutex<Subnet>,
    infos: RwLock<BTreeMap<Principal, Arc<Info>>>,
    /// Copies that were requested while a canister was away.
    copies: Mutex<BTreeMap<Principal, Option<Canister>>>,
    queue: Mutex<Queue>,
    wake: Condvar,
    driver: Mutex<Option<JoinHandle<usize>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    /// Creates a subnet without canisters, and its thread.
    pub fn new(replica: Replica) -> Arc<Self> {
        let keys = Arc::new(Keys::default());
        let mut subnet = Subnet::new(&replica);
        subnet.set_time(clock::now());
        let signer = Arc::clone(&keys);
        subnet.set_certifier(move |canister, data, time| {
            state_tree::data_certificate(&signer, &canister, data, time)
        });
        let system = Arc::new(System::new(keys.subnet(), subnet.creation_fee()));
        let callee = Arc::clone(&system);
        subnet.set_outside(move |call| callee.call(call));
        subnet.set_max_canisters(MAX_CANISTERS);
        let host = Arc::new(Self {
            keys,
            system,
            ingress: Ingress::default(),
            memory: Arc::new(Semaphore::new(MAX_BYTES)),
            replica,
            subnet: Mutex::new(subnet),
            infos: RwLock::default(),
            copies: Mutex::default(),
            queue: Mutex::default(),
            wake: Condvar::new(),
            driver: Mutex::default(),
        });
        let driven = Arc::downgrade(&host);
        let driver = thread::Builder::new().name("rounds".into()).spawn(move || drive(&driven));
        *lock(&host.driver) = driver.ok();
        host
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
        if !Subnet::hosts(&id) {
            return Err(AddError::Taken(id));
        }
        subnet.set_time(clock::now());
        subnet.add(canister).map_err(|_| AddError::Taken(id))?;
        self.publish(&subnet);
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

    /// Returns a copy of a canister between two messages. While the canister is away it returns `None`,
    /// and a later call returns a copy that is made when the canister is back.
    pub fn copy(&self, id: &Principal) -> Option<Canister> {
        if let Some(Some(copy)) = lock(&self.copies).remove(id) {
            return Some(copy);
        }
        let subnet = lock(&self.subnet);
        if subnet.is_away(id) {
            lock(&self.copies).insert(*id, None);
        }
        subnet.canister(id).map(Canister::fork)
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
        queue.work.push_back(Work { canister, message, memory, task, compilation });
        queue.changed = true;
        self.wake.notify_one();
        true
    }

    fn notify(&self) {
        lock(&self.queue).changed = true;
        self.wake.notify_one();
    }

    /// Executes what waits until the deadline, then finishes running messages. Returns the canisters,
    /// and the number of messages that were not done by then.
    pub fn finish(&self, deadline: Instant) -> (Vec<Canister>, usize) {
        lock(&self.queue).deadline = Some(deadline);
        self.notify();
        let driver = lock(&self.driver).take();
        let undone = driver.map_or(0, |driver| driver.join().unwrap_or_default());
        let mut subnet = lock(&self.subnet);
        let ids: Vec<Principal> = subnet.canisters().map(Canister::id).collect();
        (ids.iter().filter_map(|id| subnet.remove(id)).collect(), undone)
    }

    /// Makes the state of the canisters that changed readable.
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

    /// Takes back a canister that was away.
    fn give_back(&self, borrowed: Borrowed) {
        let mut queue = lock(&self.queue);
        queue.returned.push(borrowed);
        queue.changed = true;
        self.wake.notify_one();
    }

    fn done(&self, canister: &Principal) {
        let mut queue = lock(&self.queue);
        if let Some(waiting) = queue.waiting.get_mut(canister) {
            *waiting -= 1;
            if *waiting == 0 {
                queue.waiting.remove(canister);
            }
        }
    }
}

/// A call that is executed.
struct Open {
    id: RequestId,
    canister: Principal,
    /// The cycles that the cycles ledger withdrew for it.
    withdrawal: Option<Withdrawal>,
    _memory: MemoryPermit,
}

/// Executes rounds until the host is gone or has finished. Returns the number of messages that were
/// not done by its deadline.
fn drive(host: &Weak<Host>) -> usize {
    let mut open = BTreeMap::new();
    let (mut idle, mut rounds) = (true, Instant::now());
    while let Some(host) = host.upgrade() {
        let Driven { finished, idle: now } = step(&host, &mut open, &mut rounds, idle);
        idle = now;
        if let Some(undone) = finished {
            return undone;
        }
    }
    0
}

/// What the driver found out.
struct Driven {
    /// The number of messages that are not done, if the host has finished.
    finished: Option<usize>,
    /// `true` if there is nothing to execute.
    idle: bool,
}

/// Waits for work if there is none, and executes a round.
fn step(
    host: &Arc<Host>,
    open: &mut BTreeMap<MessageId, Open>,
    rounds: &mut Instant,
    idle: bool,
) -> Driven {
    let due = lock(&host.subnet).next_task();
    let mut queue = lock(&host.queue);
    if idle && !queue.changed {
        let now = clock::now();
        let round = ROUND.saturating_sub(rounds.elapsed());
        let wait = match due {
            // A round runs a timer whose time has come.
            Some(at) if at > 0 => {
                Duration::from_nanos(at.saturating_sub(now).saturating_add(SLACK)).min(round)
            }
            _ => round,
        };
        let wait = match queue.deadline {
            Some(deadline) => wait.min(deadline.saturating_duration_since(Instant::now())),
            None => wait,
        };
        let waited = host.wake.wait_timeout(queue, wait);
        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    queue.changed = false;
    let returned = std::mem::take(&mut queue.returned);
    let closing = queue.deadline;
    let over = closing.is_some_and(|deadline| deadline <= Instant::now());
    drop(queue);

    let mut subnet = lock(&host.subnet);
    for borrowed in returned {
        copy(host, borrowed.canister());
        subnet.give_back(borrowed);
    }
    subnet.set_time(clock::now());
    if over {
        let undone = open.len() + lock(&host.queue).work.len();
        drop(subnet);
        await_away(host);
        return Driven { finished: Some(undone), idle: true };
    }
    // Tasks come first, because a query takes its canister away.
    let is_due = subnet.next_task().is_some_and(|at| at > 0 && at <= clock::now());
    if is_due || rounds.elapsed() >= ROUND {
        *rounds = Instant::now();
        tick(host, &mut subnet);
    }
    if start_work(host, &mut subnet, open) || subnet.has_work() {
        tick(host, &mut subnet);
    }
    // A client that has its answer sees what the call changed.
    host.publish(&subnet);
    for (id, response) in subnet.take_answers() {
        if let Some(Open { id, canister, withdrawal, .. }) = open.remove(&id) {
            let response = match withdrawal {
                Some(withdrawal) => host.system.settle(withdrawal, response),
                None => response,
            };
            host.ingress.finish(&id, response.map_err(Rejected::admitted));
            host.done(&canister);
        }
    }
    let queue = lock(&host.queue);
    let finished = closing.is_some() && open.is_empty() && queue.work.is_empty();
    let idle = !subnet.has_work();
    Driven { finished: finished.then_some(0), idle }
}

/// Executes a round.
fn tick(host: &Arc<Host>, subnet: &mut Subnet) {
    if let Err(error) = subnet.tick_in_parallel(|borrowed| execute(host, borrowed)) {
        // What is left of the round is executed in the next one.
        eprintln!("{error}");
    }
}

/// Waits until no canister is away.
fn await_away(host: &Arc<Host>) {
    let mut subnet = lock(&host.subnet);
    while subnet.away() > 0 {
        drop(subnet);
        let mut queue = lock(&host.queue);
        while queue.returned.is_empty() {
            let waited = host.wake.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let returned = std::mem::take(&mut queue.returned);
        drop(queue);
        subnet = lock(&host.subnet);
        returned.into_iter().for_each(|borrowed| subnet.give_back(borrowed));
    }
    host.publish(&subnet);
}

/// Submits calls and starts queries, those of a canister in order. Returns `true` if a call was
/// submitted.
fn start_work(host: &Arc<Host>, subnet: &mut Subnet, open: &mut BTreeMap<MessageId, Open>) -> bool {
    let mut queue = lock(&host.queue);
    let all = std::mem::take(&mut queue.work);
    let mut compiled = std::mem::take(&mut queue.compiled);
    drop(queue);
    let (mut kept, mut blocked, mut called) = (VecDeque::new(), BTreeSet::new(), BTreeSet::new());
    for mut work in all {
        let id = work.canister;
        if let Task::Call(id) = &work.task
            && compiled.remove(id)
        {
            work.compilation = Compilation::Done;
        }
        let management = work.message.canister == Principal::management_canister();
        // These see what the calls before them have done.
        let is_later = management || matches!(work.task, Task::Query(_));
        let waits = blocked.contains(&id)
            || subnet.is_away(&id)
            || work.compilation == Compilation::Running
            || (is_later && called.contains(&id))
            || compiles(host, subnet, &mut work);
        if waits {
            blocked.insert(id);
            kept.push_back(work);
        } else if let Some(task) = start(host, subnet, work, open) {
            match task {
                Started::Call => called.insert(id),
                Started::Query => blocked.insert(id),
            };
            if management {
                blocked.insert(id);
            }
        }
    }
    let mut queue = lock(&host.queue);
    kept.append(&mut queue.work);
    queue.work = kept;
    !called.is_empty()
}

enum Started {
    Call,
    Query,
}

/// Compiles the module of an install on another thread. Returns `true` if that takes time.
fn compiles(host: &Arc<Host>, subnet: &Subnet, work: &mut Work) -> bool {
    let Task::Call(id) = work.task else { return false };
    let management = work.message.canister == Principal::management_canister();
    if !management || work.compilation == Compilation::Done {
        return false;
    }
    let Message { method, argument, .. } = &work.message;
    let Some(wasm) = subnet.module_to_install(method, argument) else { return false };
    let (owner, canister) = (Arc::downgrade(host), work.canister);
    let replica = host.replica.clone();
    let spawned = thread::Builder::new().name("compiling".into()).spawn(move || {
        // The reject of an invalid module comes when it is installed.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _ = replica.compile_for_subnet(&canister, &wasm);
        }));
        if let Some(host) = owner.upgrade() {
            lock(&host.queue).compiled.insert(id);
            host.notify();
        }
    });
    if spawned.is_ok() {
        work.compilation = Compilation::Running;
    }
    spawned.is_ok()
}

fn start(
    host: &Arc<Host>,
    subnet: &mut Subnet,
    work: Work,
    open: &mut BTreeMap<MessageId, Open>,
) -> Option<Started> {
    let Work { canister, message, memory, task, .. } = work;
    match task {
        Task::Call(id) => {
            let (message, withdrawal) = match system::IDS.contains(&canister) {
                false => (message, None),
                true => match host.system.update(&message) {
                    Ok(Update::Manage(message, withdrawal)) => (message, Some(withdrawal)),
                    Ok(Update::Reply(reply)) => return finish(host, &id, &canister, Ok(reply)),
                    Err(reject) => {
                        return finish(host, &id, &canister, Err(Rejected::admitted(reject)));
                    }
                },
            };
            let Message { sender, canister: callee, method, argument } = message;
            let reject = match subnet.submit(sender, callee, &method, &argument) {
                Ok(Ok(message)) => {
                    host.ingress.begin(&id);
                    open.insert(message, Open { id, canister, withdrawal, _memory: memory });
                    return Some(Started::Call);
                }
                Ok(Err(reject)) => Rejected::not_admitted(reject),
                Err(error) => Rejected::admitted(failed(&error)),
            };
            let outcome = match withdrawal {
                Some(withdrawal) => {
                    host.system.settle(withdrawal, Err(reject.reject)).map_err(Rejected::admitted)
                }
                None => Err(reject),
            };
            finish(host, &id, &canister, outcome)
        }
        Task::Query(sender_of_outcome) => {
            let Message { sender, canister: callee, method, argument } = message;
            let management = callee == Principal::management_canister();
            let borrowed = match management || subnet.is_composite(&callee, &method) {
                true => None,
                false => subnet.borrow(&callee),
            };
            let Some(borrowed) = borrowed else {
                let called = subnet.query(sender, callee, &method, &argument);
                // The client may have stopped waiting.
                let _ = sender_of_outcome.send(outcome(called));
                host.done(&canister);
                return None;
            };
            let host = Arc::clone(host);
            on_thread(borrowed, move |borrowed| {
                let queried = || outcome(borrowed.query(sender, &method, &argument));
                let outcome = catch_unwind(AssertUnwindSafe(queried));
                host.give_back(borrowed);
                drop(memory);
                host.done(&canister);
                let failed = |_| Err(Rejected::admitted(panicked()));
                let _ = sender_of_outcome.send(outcome.unwrap_or_else(failed));
            });
            Some(Started::Query)
        }
    }
}

/// Ends a call that was not submitted.
fn finish(host: &Host, id: &RequestId, canister: &Principal, outcome: Outcome) -> Option<Started> {
    host.ingress.finish(id, outcome);
    host.done(canister);
    None
}

/// Canisters that execute in a round.
#[derive(Default)]
struct Batch {
    done: Mutex<Vec<Borrowed>>,
    /// `true` if the round goes on without those that are not done.
    over: Mutex<bool>,
    changed: Condvar,
}

/// Executes canisters, and returns those that are done in time. The others come back later.
fn execute(host: &Arc<Host>, borrowed: Vec<Borrowed>) -> Vec<Borrowed> {
    let all = borrowed.len();
    let batch = Arc::new(Batch::default());
    for borrowed in borrowed {
        let (batch, host) = (Arc::clone(&batch), Arc::clone(host));
        on_thread(borrowed, move |mut borrowed| {
            match catch_unwind(AssertUnwindSafe(|| borrowed.execute())) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => borrowed.fail(&failed(&error)),
                // A bug in this program must fail one message only.
                Err(_) => borrowed.fail(&panicked()),
            }
            let over = lock(&batch.over);
            if *over {
                host.give_back(borrowed);
            } else {
                lock(&batch.done).push(borrowed);
                batch.changed.notify_one();
            }
        });
    }
    let end = Instant::now() + PATIENCE;
    let mut over = lock(&batch.over);
    while lock(&batch.done).len() < all && Instant::now() < end {
        let left = end.saturating_duration_since(Instant::now());
        let waited = batch.changed.wait_timeout(over, left);
        over = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    *over = true;
    std::mem::take(&mut *lock(&batch.done))
}

/// Works on a canister on another thread, or here if the machine cannot start one.
fn on_thread(borrowed: Borrowed, work: impl FnOnce(Borrowed) + Send + 'static) {
    let slot = Arc::new(Mutex::new(Some((borrowed, work))));
    let taken = Arc::clone(&slot);
    let run = move || {
        let taken = lock(&taken).take();
        if let Some((borrowed, work)) = taken {
            work(borrowed);
        }
    };
    if thread::Builder::new().name("canister".into()).spawn(run.clone()).is_err() {
        run();
    }
}

/// Makes the copy of a canister that was requested while it was away.
fn copy(host: &Host, canister: Option<&Canister>) {
    if let Some(canister) = canister
        && let Some(wanted) = lock(&host.copies).get_mut(&canister.id())
    {
        *wanted = Some(canister.fork());
    }
}

fn outcome(called: Result<stablebench_replica::subnet::Call, HostError>) -> Outcome {
    match called {
        Ok(call) => call.response.map_err(Rejected::admitted),
        Err(error) => Err(Rejected::admitted(failed(&error))),
    }
}
