//! The thread of a canister: messages run in the order of their arrival, independently of other
//! canisters.
//!
//! At the end the canister is taken from its thread. A thread that works for longer than the
//! deadline is abandoned, together with the result of that work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};
use std::{io, thread};

use ic_error_types::ErrorCode;
use stablebench_replica::Canister;

use crate::canister::{Backup, Chunks, Hosted, Info};
use crate::outcome::{Outcome, Reject};

/// The most messages that may wait for a canister.
const MAX_WAITING: usize = 1_000;
/// The interval at which a busy canister is polled.
const TICK: Duration = Duration::from_millis(5);

/// A function that a canister's thread executes.
pub type Run = Box<dyn FnOnce(&mut Hosted) -> Outcome + Send>;

/// Work on a canister, and a callback for its outcome.
pub struct Work {
    /// The work.
    pub run: Run,
    /// Called with the outcome, after [`Handle::info`] shows the change.
    pub done: Box<dyn FnOnce(Outcome) + Send>,
}

/// The error of a canister's queue that is full.
#[derive(Debug, thiserror::Error)]
#[error("{MAX_WAITING} messages wait for the canister; try again later")]
pub struct Full;

/// The sending end of a canister's queue. The thread ends when the last handle is dropped.
#[derive(Clone)]
pub struct Handle {
    queue: SyncSender<Work>,
    chunks: Chunks,
    shared: Arc<Shared>,
}

/// State that a canister's thread and its handles share.
struct Shared {
    info: RwLock<Arc<Info>>,
    /// Locked while a message runs.
    hosted: Mutex<Hosted>,
    backup: Backup,
    /// `true` if the thread is to make a copy of the canister after its message.
    copy_requested: AtomicBool,
    copy: Mutex<Option<Canister>>,
    /// Messages that wait or run.
    waiting: AtomicUsize,
    /// `true` if no further message may start.
    closed: AtomicBool,
}

fn lock(canister: &Mutex<Option<Canister>>) -> MutexGuard<'_, Option<Canister>> {
    canister.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handle {
    /// Starts a canister's thread.
    ///
    /// # Errors
    ///
    /// If the machine cannot start a thread.
    pub fn start(hosted: Hosted) -> io::Result<Self> {
        let (queue, work) = sync_channel(MAX_WAITING);
        let name = hosted.canister.id().to_string();
        let shared = Arc::new(Shared {
            info: RwLock::new(Arc::new(hosted.info())),
            backup: hosted.backup.clone(),
            hosted: Mutex::new(hosted),
            copy_requested: AtomicBool::new(false),
            copy: Mutex::default(),
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
    /// If the queue is full, or the thread has ended.
    pub fn send(&self, work: Work) -> Result<(), Full> {
        self.shared.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.try_send(work).map_err(|error| {
            self.shared.waiting.fetch_sub(1, Ordering::SeqCst);
            match error {
                TrySendError::Full(_) | TrySendError::Disconnected(_) => Full,
            }
        })
    }

    /// Waits until all messages are done or the deadline passes, and returns the number of messages
    /// that are not done. No message starts after that.
    pub fn close(&self, deadline: Instant) -> usize {
        let waiting = || self.shared.waiting.load(Ordering::SeqCst);
        while waiting() > 0 && Instant::now() < deadline {
            thread::sleep(TICK);
        }
        self.shared.closed.store(true, Ordering::SeqCst);
        waiting()
    }

    /// Returns the canister after its last message. Waits for a running message, which the
    /// instruction limit ends, but not for compilation: then it returns the canister before that.
    pub fn take(&self) -> Canister {
        loop {
            if let Some(canister) = self.shared.backup.lock().take() {
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

    /// Returns a copy of the canister between two messages. While a message runs it returns `None`,
    /// and the next call returns a copy that is made after that message.
    pub fn copy(&self) -> Option<Canister> {
        let copy = lock(&self.shared.copy).take();
        if copy.is_some() {
            return copy;
        }
        if let Some(backup) = &*self.shared.backup.lock() {
            return Some(backup.fork());
        }
        match self.shared.hosted.try_lock() {
            Ok(hosted) => Some(hosted.canister.fork()),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner().canister.fork()),
            Err(TryLockError::WouldBlock) => {
                self.shared.copy_requested.store(true, Ordering::SeqCst);
                None
            }
        }
    }

    /// Returns the readable state after the last message.
    pub fn info(&self) -> Arc<Info> {
        Arc::clone(&self.shared.info.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the chunk store.
    pub fn chunks(&self) -> &Chunks {
        &self.chunks
    }
}

fn run(shared: &Shared, work: &Receiver<Work>) {
    for Work { run, done } in work {
        if !shared.closed.load(Ordering::SeqCst) {
            let mut hosted = shared.hosted.lock().unwrap_or_else(PoisonError::into_inner);
            // A bug in this program must fail one message only, not end the canister's thread.
            let outcome =
                catch_unwind(AssertUnwindSafe(|| run(&mut hosted))).unwrap_or_else(|_| {
                    Err(Reject::new(
                        ErrorCode::CanisterWasmEngineError,
                        "the replica failed; see its log",
                    ))
                });
            *shared.info.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hosted.info());
            if shared.copy_requested.swap(false, Ordering::SeqCst) {
                *lock(&shared.copy) = Some(hosted.canister.fork());
            }
            drop(hosted);
            *shared.backup.lock() = None;
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

    /// The canister is returned without the work that does not end.
    #[test]
    fn take_does_not_wait_for_compilation() {
        let canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
        let handle = Handle::start(Hosted::new(canister)).unwrap();
        let (begun, begins) = sync_channel(0);
        let first = work(|hosted| hosted.canister.count_change());
        let endless = work(move |hosted| {
            hosted.backup.during(&hosted.canister, || {
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

    /// Consecutive messages leave no time to read the canister between them.
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

    /// Work that panics must not leave a backup in place of later states.
    #[test]
    fn a_panic_drops_the_backup() {
        let canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
        let handle = Handle::start(Hosted::new(canister)).unwrap();
        let failing = work(|hosted| hosted.backup.during(&hosted.canister, || panic!("intended")));
        for work in [failing, work(|hosted| hosted.canister.count_change())] {
            handle.send(work).ok().unwrap();
        }
        assert_eq!(handle.close(Instant::now() + Duration::from_secs(60)), 0);
        assert_eq!(handle.take().version(), 1);
    }
}
