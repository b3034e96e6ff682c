//! One thread a canister: messages run in the order in which they came, and wait for no other
//! canister.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::{io, thread};

use ic_error_types::ErrorCode;

use super::{Chunks, Hosted, Info};
use crate::outcome::{Outcome, Reject};

/// Messages that may wait for a canister.
const MOST_WAITING: usize = 1_000;

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
    info: Arc<RwLock<Arc<Info>>>,
    chunks: Chunks,
}

impl Handle {
    /// Starts a canister's thread.
    ///
    /// # Errors
    ///
    /// If the machine has no more threads.
    pub fn start(hosted: Hosted) -> io::Result<(Self, JoinHandle<Hosted>)> {
        let (queue, work) = sync_channel(MOST_WAITING);
        let info = Arc::new(RwLock::new(Arc::new(hosted.info())));
        let handle = Self { queue, info: Arc::clone(&info), chunks: Chunks::default() };
        let name = hosted.canister.id().to_string();
        let thread = thread::Builder::new().name(name).spawn(move || run(hosted, &work, &info))?;
        Ok((handle, thread))
    }

    /// Sends work.
    ///
    /// # Errors
    ///
    /// If too much waits already, or the canister is gone.
    pub fn send(&self, work: Work) -> Result<(), Full> {
        self.queue.try_send(work).map_err(|error| match error {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => Full,
        })
    }

    /// What the canister was after its last message.
    pub fn info(&self) -> Arc<Info> {
        Arc::clone(&self.info.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The chunks of modules that it keeps.
    pub fn chunks(&self) -> &Chunks {
        &self.chunks
    }
}

fn run(mut hosted: Hosted, work: &Receiver<Work>, info: &RwLock<Arc<Info>>) -> Hosted {
    for Work { run, done } in work {
        // A bug of this program is one client's error, not the end of the canister.
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut hosted))).unwrap_or_else(|_| {
            Err(Reject::new(ErrorCode::CanisterWasmEngineError, "the replica failed; see its log"))
        });
        *info.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hosted.info());
        done(outcome);
    }
    hosted
}
