//! One thread a canister: messages run in the order in which they came, and wait for no other
//! canister.
//!
//! In the end a canister is taken from its thread. Where the thread is at work for longer than
//! may be waited for, it is left behind, and so is what it would have done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};
use std::{io, thread};

use ic_error_types::ErrorCode;
use stablebench_replica::Canister;

use super::{Chunks, Hosted, Info};
use crate::outcome::{Outcome, Reject};

/// Messages that may wait for a canister.
const MOST_WAITING: usize = 1_000;
/// How often a canister is looked at that is still at work.
const TICK: Duration = Duration::from_millis(5);

/// Work on a canister, and who hears what came of it.
pub struct Work {
    /// The work.
    pub run: Box<dyn FnOnce(&mut Hosted) -> Outcome + Send>,
    /// Told in the end, once [`Handle::info`] tells of the change.
    pub done: Box<dyn FnOnce(Outcome) + Send>,
}

/// Too many messages wait for the canister.
#[derive(Debug, thiserror::Error)]
#[error("{MOST_WAITING} messages wait for the canister; try again later")]
pub struct Full;

/// Where work for a canister is sent. Its thread ends when no handle is left.
#[derive(Clone)]
pub struct Handle {
    queue: SyncSender<Work>,
    chunks: Chunks,
    shared: Arc<Shared>,
}

/// What a canister's thread and others share.
struct Shared {
    info: RwLock<Arc<Info>>,
    /// Locked while a message runs.
    hosted: Mutex<Hosted>,
    aside: Aside,
    /// Whether a copy of the canister is asked for, and the copy once there is one.
    copy_asked: AtomicBool,
    copied: Mutex<Option<Canister>>,
    /// Messages that wait or run.
    waiting: AtomicUsize,
    /// No further message runs.
    closed: AtomicBool,
}

/// The canister as it is before work that may take very long and leaves it as it is until its
/// end. It is there while that work lasts.
#[derive(Clone, Default)]
pub struct Aside(Arc<Mutex<Option<Canister>>>);

impl Aside {
    /// Does work of that kind.
    pub fn during<T>(&self, canister: &Canister, work: impl FnOnce() -> T) -> T {
        *self.lock() = Some(canister.fork());
        let done = work();
        *self.lock() = None;
        done
    }

    fn lock(&self) -> MutexGuard<'_, Option<Canister>> {
        lock(&self.0)
    }
}

fn lock(canister: &Mutex<Option<Canister>>) -> MutexGuard<'_, Option<Canister>> {
    canister.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    /// Starts a canister's thread.
    ///
    /// # Errors
    ///
    /// If the machine has no more threads.
    pub fn start(hosted: Hosted) -> io::Result<Self> {
        let (queue, work) = sync_channel(MOST_WAITING);
        let name = hosted.canister.id().to_string();
        let shared = Arc::new(Shared {
            info: RwLock::new(Arc::new(hosted.info())),
            aside: hosted.aside.clone(),
            hosted: Mutex::new(hosted),
            copy_asked: AtomicBool::new(false),
            copied: Mutex::default(),
            waiting: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        });
        let handle = Self { queue, chunks: Chunks::default(), shared: Arc::clone(&shared) };
        thread::Builder::new().name(name).spawn(move || run(&shared, &work))?;
        Ok(handle)
    }

    /// Sends work.
    ///
    /// # Errors
    ///
    /// If too much waits already, or the canister is gone.
    pub fn send(&self, work: Work) -> Result<(), Full> {
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.try_send(work).map_err(|error| {
            self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
            match error {
                TrySendError::Full(_) | TrySendError::Disconnected(_) => Full,
            }
        })
    }

    /// Waits until all messages are done, but not after `deadline`; answers how many are not.
    /// From then on none begins.
    pub fn close(&self, deadline: Instant) -> usize {
        let waiting = || self.shared.waiting.load(Ordering::SeqCst);
        while waiting() > 0 && Instant::now() < deadline {
            thread::sleep(TICK);
        }
        self.shared.closed.store(true, Ordering::SeqCst);
        waiting()
    }

    /// The canister after its last message. A message that runs is waited for: its limit of
    /// instructions ends it. Compiling is not waited for: the canister is what it was before.
    pub fn take(&self) -> Canister {
        loop {
            if let Some(canister) = self.shared.aside.lock().take() {
                return canister;
            }
            match self.shared.hosted.try_lock() {
                Ok(hosted) => return hosted.canister.fork(),
                Err(TryLockError::Poisoned(poisoned)) => {
                    return poisoned.into_inner().canister.fork();
                }
                Err(TryLockError::WouldBlock) => thread::sleep(TICK),
            }
        }
    }

    /// A copy of the canister as it is between two messages. Where one runs there is none: it
    /// is made after that one, for who asks again.
    pub fn copy(&self) -> Option<Canister> {
        let copied = lock(&self.shared.copied).take();
        if copied.is_some() {
            return copied;
        }
        if let Some(aside) = &*self.shared.aside.lock() {
            return Some(aside.fork());
        }
        match self.shared.hosted.try_lock() {
            Ok(hosted) => Some(hosted.canister.fork()),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner().canister.fork()),
            Err(TryLockError::WouldBlock) => {
                self.shared.copy_asked.store(true, Ordering::SeqCst);
                None
            }
        }
    }

    /// What the canister was after its last message.
    pub fn info(&self) -> Arc<Info> {
        Arc::clone(&self.shared.info.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The chunks of modules that it keeps.
    pub fn chunks(&self) -> &Chunks {
        &self.chunks
    }
}

fn run(shared: &Shared, work: &Receiver<Work>) {
    for Work { run, done } in work {
        if !shared.closed.load(Ordering::SeqCst) {
            let mut hosted = shared.hosted.lock().unwrap_or_else(PoisonError::into_inner);
            // A bug of this program is one client's error, not the end of the canister.
            let outcome =
                catch_unwind(AssertUnwindSafe(|| run(&mut hosted))).unwrap_or_else(|_| {
                    Err(Reject::new(
                        ErrorCode::CanisterWasmEngineError,
                        "the replica failed; see its log",
                    ))
                });
            *shared.info.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hosted.info());
            if shared.copy_asked.swap(false, Ordering::SeqCst) {
                *lock(&shared.copied) = Some(hosted.canister.fork());
            }
            drop(hosted);
            *shared.aside.lock() = None;
            done(outcome);
        }
        shared.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use stablebench_replica::{Replica, Rules};

    use super::*;

    fn work(run: impl FnOnce(&mut Hosted) + Send + 'static) -> Work {
        let run = move |hosted: &mut Hosted| {
            run(hosted);
            Ok(Vec::new())
        };
        Work { run: Box::new(run), done: Box::new(|_| {}) }
    }

    /// The canister is had without the work that does not end.
    #[test]
    fn compiling_is_not_waited_for() {
        let canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
        let handle = Handle::start(Hosted::new(canister)).unwrap();
        let (begun, begins) = sync_channel(0);
        let first = work(|hosted| hosted.canister.count_change());
        let endless = work(move |hosted| {
            hosted.aside.during(&hosted.canister, || {
                begun.send(()).unwrap();
                thread::sleep(Duration::from_secs(600));
            });
            hosted.canister.count_change();
        });
        let later = work(|hosted| hosted.canister.count_change());
        for work in [first, endless, later] {
            handle.send(work).ok().unwrap();
        }
        begins.recv().unwrap();
        let began = Instant::now();
        assert_eq!(handle.close(began + Duration::from_millis(100)), 2);
        assert_eq!(handle.take().version(), 1);
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    /// Messages in a row leave no time to look at the canister between them.
    #[test]
    fn a_busy_canister_is_copied_between_messages() {
        let canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
        let handle = Handle::start(Hosted::new(canister)).unwrap();
        assert_eq!(handle.copy().unwrap().version(), 0);
        let (begun, begins) = sync_channel(0);
        let (end, ends) = sync_channel(0);
        let first = work(move |hosted| {
            begun.send(()).unwrap();
            ends.recv().unwrap();
            hosted.canister.count_change();
        });
        let (begun, begins_next) = sync_channel(0);
        let (end_next, ends) = sync_channel(0);
        let next = work(move |hosted| {
            hosted.canister.count_change();
            begun.send(()).unwrap();
            ends.recv().unwrap();
        });
        for work in [first, next] {
            handle.send(work).ok().unwrap();
        }
        begins.recv().unwrap();
        assert!(handle.copy().is_none());
        end.send(()).unwrap();
        begins_next.recv().unwrap();
        assert_eq!(handle.copy().unwrap().version(), 1);
        end_next.send(()).unwrap();
    }

    /// What was set aside is not had in place of what came later, whatever happened.
    #[test]
    fn what_was_set_aside_does_not_come_back() {
        let canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
        let handle = Handle::start(Hosted::new(canister)).unwrap();
        let failing = work(|hosted| hosted.aside.during(&hosted.canister, || panic!("on purpose")));
        for work in [failing, work(|hosted| hosted.canister.count_change())] {
            handle.send(work).ok().unwrap();
        }
        assert_eq!(handle.close(Instant::now() + Duration::from_secs(60)), 0);
        assert_eq!(handle.take().version(), 1);
    }
}
