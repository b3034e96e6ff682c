//! The way of a message through a server: what is checked before it waits, and the thread that
//! executes the rounds of a subnet.
//!
//! ```text
//!   call, query ──→ queue ──→ submit ──→ round ──→ settle ──→ Ingress ──→ certificates
//!                        └──→ query, on a thread
//! ```
//!
//! Messages of a canister are executed in the order of their arrival. A canister that works for long
//! is away: the others go on, and what arrives for it waits. Modules are compiled before they are
//! installed, on threads of their own, while the subnet is free for others.
//!
//! If time stands still, the driver submits calls and answers queries, and others execute the rounds.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use candid::Principal;
use ic_transport_types::RequestId;
use stablebench_replica::subnet::{self, Borrowed, Call, Status, Subnet};
use stablebench_replica::{ErrorCode, HostError, Reject, Replica, text};
use tokio::sync::oneshot;

use crate::host::{Compilation, Host, MemoryPermit, Open, Pace, QueuedMessage, Task, lock};
use crate::limits::{MAX_CALLS, MAX_WAITING};
use crate::message::{Finished, Message, Outcome, Registered, Rejected, failed, panicked};
use crate::system::Update;
use crate::wire::now;

/// The result of sending a call.
pub enum Sent {
    /// The call ends later. `None` if it has ended, so that its status shows the outcome.
    Waiting(Option<oneshot::Receiver<Finished>>),
    /// The call was not admitted.
    Rejected(Rejected),
    /// A limit is reached, as described.
    Full(String),
}

/// Sends an update call, unless it was sent before. `memory` is released once it has run.
pub fn call(
    host: &Arc<Host>,
    id: RequestId,
    expiry: u64,
    mut message: Message,
    memory: MemoryPermit,
) -> Sent {
    let (sender, receiver) = (message.sender, message.canister);
    if host.ingress.get(&id).is_some() {
        return Sent::Waiting(host.ingress.wait(&id));
    }
    if message.is_management() && message.method == "create_canister" {
        // Users have no cycles to attach, so it is the provisional method.
        message.method = "provisional_create_canister_with_cycles".to_owned();
    }
    // Queries are no calls.
    let refused = match message.is_management() {
        true => subnet::effective_canister(&message.method, &message.argument).err(),
        false => None,
    };
    let checked = refused.map_or_else(|| check(host, &message), Err);
    let canister = match checked {
        Ok(canister) => canister,
        Err(reject) => return Sent::Rejected(Rejected::not_admitted(reject)),
    };
    match host.ingress.register(id, sender, receiver, expiry, host.now()) {
        Registered::New => {}
        Registered::Known => return Sent::Waiting(host.ingress.wait(&id)),
        Registered::Full => {
            return Sent::Full(format!(
                "{MAX_CALLS} calls came in that have not expired; try again later"
            ));
        }
    }
    let waiting = host.ingress.wait(&id);
    if host.send(canister, message, memory, Task::Call(id)) {
        return Sent::Waiting(waiting);
    }
    host.ingress.withdraw(&id);
    Sent::Full(full())
}

/// Sends a query. The receiver gets its outcome, and `memory` is released before that.
///
/// # Errors
///
/// If too many messages wait for the canister.
pub fn query(
    host: &Arc<Host>,
    message: Message,
    memory: MemoryPermit,
) -> Result<oneshot::Receiver<Outcome>, String> {
    let (sender, receiver) = oneshot::channel();
    if let Some(system) = host.system(&message.canister) {
        // The receiver still exists.
        let _ = sender.send(system.query(&message).map_err(Rejected::admitted));
        return Ok(receiver);
    }
    let canister = match message.effective() {
        Ok(canister) => canister.unwrap_or(message.canister),
        // The query is rejected in turn.
        Err(_) => message.canister,
    };
    match host.send(canister, message, memory, Task::Query(sender)) {
        true => Ok(receiver),
        false => Err(full()),
    }
}

fn full() -> String {
    format!("{MAX_WAITING} messages wait for the canister; try again later")
}

/// Returns the canister for which a call waits.
fn check(host: &Host, message: &Message) -> Result<Principal, Reject> {
    if host.system(&message.canister).is_some() {
        return Ok(message.canister);
    }
    let Some(id) = message.effective()? else { return Ok(message.canister) };
    let Some(info) = host.info(&id) else {
        let message = format!("Canister {id} not found");
        return Err(Reject { code: ErrorCode::CanisterNotFound, message });
    };
    if message.is_management() {
        return Ok(id);
    }
    if info.status == Status::Stopped {
        let message = format!("Canister {id} is stopped");
        return Err(Reject { code: ErrorCode::CanisterStopped, message });
    }
    if info.module.is_none() {
        let code = ErrorCode::CanisterWasmModuleNotFound;
        return Err(Reject { code, message: "Requested canister has no wasm module".to_owned() });
    }
    Ok(id)
}

/// The time for which a round waits for its canisters.
const PATIENCE: Duration = Duration::from_millis(20);
/// Nanoseconds from the time of a timer on the clock to the round that runs it.
const SLACK: u64 = 1_000_000;

/// Starts the driver of a host.
pub fn start(host: Arc<Host>) -> Arc<Host> {
    let driven = Arc::downgrade(&host);
    let driver = thread::Builder::new().name("rounds".into()).spawn(move || drive(&driven));
    *lock(&host.driver) = driver.ok();
    host
}

/// Executes rounds until the host is gone or has finished. Returns the number of messages that were
/// not done by its deadline.
fn drive(host: &Weak<Host>) -> usize {
    let (mut idle, mut last) = (true, Instant::now());
    while let Some(host) = host.upgrade() {
        let Driven { finished, idle: now } = step(&host, &mut last, idle);
        idle = now;
        if let Some(undone) = finished {
            return undone;
        }
    }
    0
}

/// The result of a step of the driver.
struct Driven {
    /// The number of messages that are not done, if the host has finished.
    finished: Option<usize>,
    /// `true` if there is nothing to execute.
    idle: bool,
}

/// Waits for work if there is none, and executes a round.
fn step(host: &Arc<Host>, last: &mut Instant, idle: bool) -> Driven {
    let due = host.subnet().next_task();
    let pace = host.pace();
    let mut queue = lock(&host.queue);
    if (idle && !queue.changed) || queue.exclusive > 0 {
        let wait = match pace {
            Pace::Still => None,
            Pace::Clock { idle, .. } if queue.exclusive > 0 => Some(idle),
            Pace::Clock { ahead, idle, least } => {
                let round = idle.max(least).saturating_sub(last.elapsed());
                let left = due.filter(|at| *at > 0).map(|at| {
                    let now = now().saturating_add(ahead);
                    // A round runs a timer whose time has come.
                    Duration::from_nanos(at.saturating_sub(now).saturating_add(SLACK))
                });
                let left = left.unwrap_or(round).max(least.saturating_sub(last.elapsed()));
                Some(left.min(round))
            }
        };
        let deadline =
            queue.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        queue = match [wait, deadline].into_iter().flatten().min() {
            Some(wait) => {
                let waited = host.wake.wait_timeout(queue, wait);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => host.wake.wait(queue).unwrap_or_else(PoisonError::into_inner),
        };
    }
    let closing = queue.deadline;
    let over = closing.is_some_and(|deadline| deadline <= Instant::now());
    if queue.exclusive > 0 && !over {
        // Those who wait for the whole subnet take back what returns.
        return Driven { finished: None, idle: false };
    }
    queue.changed = false;
    let returned = std::mem::take(&mut queue.returned);
    drop(queue);

    let mut subnet = host.subnet();
    host.take_back(&mut subnet, returned);
    host.follow_clock(&mut subnet);
    if over {
        let undone = lock(&host.open).len() + lock(&host.queue).work.len();
        drop(subnet);
        host.settle(&mut host.await_all());
        return Driven { finished: Some(undone), idle: true };
    }
    let mut waits = false;
    if let Pace::Clock { idle, least, .. } = pace {
        // Tasks come first, because a query takes its canister away.
        let is_due = subnet.next_task().is_some_and(|at| at > 0 && at <= host.now());
        let may = last.elapsed() >= least;
        if (is_due && may) || last.elapsed() >= idle.max(least) {
            *last = Instant::now();
            tick(host, &mut subnet);
        }
    }
    let submitted = start_work(host, &mut subnet);
    if let Pace::Clock { least, .. } = pace
        && (submitted || subnet.has_work())
    {
        waits = last.elapsed() < least;
        if !waits {
            if !least.is_zero() {
                *last = Instant::now();
            }
            tick(host, &mut subnet);
        }
    }
    host.settle(&mut subnet);
    let queue = lock(&host.queue);
    let finished = closing.is_some() && lock(&host.open).is_empty() && queue.work.is_empty();
    let idle = waits || pace == Pace::Still || !subnet.has_work();
    Driven { finished: finished.then_some(0), idle }
}

/// Executes a round.
fn tick(host: &Arc<Host>, subnet: &mut Subnet) {
    if let Err(error) = subnet.tick_in_parallel(|borrowed| execute(host, borrowed)) {
        // What is left of the round is executed in the next one.
        text::note(&error.to_string());
    }
}

/// Submits calls and starts queries, those of a canister in order. Returns `true` if a call was
/// submitted.
fn start_work(host: &Arc<Host>, subnet: &mut Subnet) -> bool {
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
        } else if let Some(task) = submit(host, subnet, work) {
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
fn compiles(host: &Arc<Host>, subnet: &Subnet, work: &mut QueuedMessage) -> bool {
    let Task::Call(id) = work.task else { return false };
    let management = work.message.canister == Principal::management_canister();
    if !management || work.compilation == Compilation::Done {
        return false;
    }
    let Message { method, argument, .. } = &work.message;
    let Some(wasm) = subnet.module_to_install(method, argument) else { return false };
    let (owner, canister) = (Arc::downgrade(host), work.canister);
    let replica = subnet.replica_of(&canister).clone();
    let spawned = thread::Builder::new().name("compiling".into()).spawn(move || {
        compile(&replica, canister, &wasm);
        if let Some(host) = owner.upgrade() {
            lock(&host.queue).compiled.insert(id);
            host.notify();
        }
    });
    if spawned.is_ok() {
        work.compilation = Compilation::Running;
        host.ingress.begin(&id);
    }
    spawned.is_ok()
}

fn submit(host: &Arc<Host>, subnet: &mut Subnet, work: QueuedMessage) -> Option<Started> {
    let QueuedMessage { canister, message, memory, task, .. } = work;
    match task {
        Task::Call(id) => {
            let (message, withdrawal) = match host.system(&canister) {
                None => (message, None),
                Some(system) => match system.update(&message) {
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
                    let call = Open::queued(id, canister, withdrawal, memory);
                    lock(&host.open).insert(message, call);
                    return Some(Started::Call);
                }
                Ok(Err(reject)) => Rejected::not_admitted(reject),
                Err(error) => Rejected::admitted(failed(&error)),
            };
            let outcome = match (withdrawal, host.system(&canister)) {
                (Some(withdrawal), Some(system)) => {
                    system.settle(withdrawal, Err(reject.reject)).map_err(Rejected::admitted)
                }
                _ => Err(reject),
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

fn outcome(called: Result<Call, HostError>) -> Outcome {
    match called {
        Ok(call) => call.response.map_err(Rejected::admitted),
        Err(error) => Err(Rejected::admitted(failed(&error))),
    }
}

/// Compiling that takes longer is announced on stderr.
const NOTABLE: Duration = Duration::from_secs(1);

/// Compiles a module for a canister, which is installed later. If that takes longer than a second, a
/// line on stderr says so.
pub fn compile(replica: &Replica, canister: Principal, wasm: &[u8]) {
    let (ended, ending) = channel::<()>();
    let note = format!("compiling a module of {:.1} MB for {canister}", wasm.len() as f64 / 1e6);
    let wait = move || {
        if ending.recv_timeout(NOTABLE) == Err(RecvTimeoutError::Timeout) {
            text::note(&note);
        }
    };
    // Without a thread there is no line.
    let _ = thread::Builder::new().name("note".into()).spawn(wait);
    // The reject of an invalid module comes when it is installed.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _ = replica.compile_for_subnet(&canister, wasm);
    }));
    drop(ended);
}
