//! The state of a running message in the engine, and the exports that it uses.

use std::fmt;
use std::sync::Arc;

use wasmtime::{Global, Memory, StoreLimits};

use super::message::{Effects, Message};
use super::slices::Slices;
use crate::execution::{Reading, SystemCalls};
use crate::memory::PageTracker;
use crate::profile::Recorder;

/// State of a running message in the engine's store.
pub struct Host {
    /// The message.
    pub message: Message,
    /// Its effects so far.
    pub effects: Effects,
    /// System API calls other than those of stable memory, if requested.
    pub calls: Option<SystemCalls>,
    /// Instructions that are not in the module's counter.
    pub slices: Slices,
    /// True if the module itself declares a heap.
    pub has_heap: bool,
    /// Limits that the engine enforces.
    pub limits: StoreLimits,
    /// Exports of the module, once it is instantiated.
    pub parts: Option<Parts>,
    /// Recorder of the call tree, in the profiled form.
    pub recorder: Option<Recorder>,
    /// Tracker of heap pages, if touching them is charged.
    pub pages: Option<Arc<PageTracker>>,
    /// Readings of the counter, if requested.
    pub readings: Option<Vec<Reading>>,
    /// True if the message was divided, so that pages of its first part are forgotten.
    pub divided: bool,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("message", &self.message).finish_non_exhaustive()
    }
}

/// Exports of the rewritten module that the host uses.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Instructions left of the slice.
    pub counter: Global,
    /// The heap.
    pub heap: Memory,
    /// Stable memory.
    pub stable: Memory,
    /// Byte map: stable pages that were accessed and written.
    pub byte_map: Memory,
    /// Page map, under rules that charge for touching pages.
    pub page_map: Option<Memory>,
    /// Number of stable pages that the message may still access.
    pub accessible: Global,
    /// Number of stable pages that the message may still write.
    pub writable: Global,
}
