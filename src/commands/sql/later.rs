//! A spinner for what takes longer than a second.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};

use crate::durations::NOTABLE;
use crate::progress::Progress;

/// Work that may take long. Its spinner disappears when it is dropped.
#[derive(Debug)]
pub struct Later {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Begins something with this name.
pub fn later(progress: &Progress, name: String) -> Later {
    let (done, waiting) = channel();
    let progress = progress.clone();
    let wait = move || {
        if waiting.recv_timeout(NOTABLE) == Err(RecvTimeoutError::Timeout) {
            let _step = progress.spinner(&name);
            // Until the other end is dropped.
            let _ = waiting.recv();
        }
    };
    // Without a thread there is no spinner, and the work goes on.
    Later { done: Some(done), thread: Builder::new().spawn(wait).ok() }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
