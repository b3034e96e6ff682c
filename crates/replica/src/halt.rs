//! The end of messages that run, requested by another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A switch that ends the messages of a subnet or of a canister. Those that run fail within some billion
/// instructions, and so have no effect. No others are executed, except for queries.
#[derive(Clone, Debug, Default)]
pub struct Halt(Arc<AtomicBool>);

impl Halt {
    /// Ends the messages.
    pub fn halt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if messages have to end.
    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
