//! Where the instructions of a message go, by function.
//!
//! A message is profiled by executing it in a form of the module that tells its functions
//! apart (`instrument/profiled.rs`): it does and counts what the normal form does. What is
//! told is a call tree:
//!
//! ```text
//!   canister_update add         instructions of its own, calls
//!     ├─ serve::add
//!     │    ├─ [heap page]                   what touching pages costs, by its rules
//!     │    ├─ ic0.stable64_write
//!     │    │    └─ [stable page]
//!     │    └─ …
//!     └─ ic0.msg_reply
//! ```
//!
//! All instructions of the tree together are what the counter counted, which is held against
//! it before a [`Profile`] is given out.

pub(crate) mod names;
pub(crate) mod recorder;
#[cfg(test)]
mod tests;

use crate::canister::HostError;
use crate::units::Instructions;

/// The part of a message that is profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// All of it.
    #[default]
    Message,
    /// What the counter counts between two of the canister's own readings of it, by
    /// `performance_counter`. A message that fails after the first is profiled up to there.
    Between {
        /// What the first reading answered.
        from: Instructions,
        /// What the second one answered.
        to: Instructions,
    },
}

/// Where instructions went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The functions that ran.
    pub frames: Vec<Frame>,
    /// The call tree: a node for each stack of functions, parents before their children.
    pub nodes: Vec<Node>,
    /// Instructions of all nodes: what the counter counted in the span.
    pub instructions: Instructions,
    /// What is charged at the end of the message for heap pages that it changed, under rules
    /// that charge for that: the counter never shows it. 0 where the span is a part of it.
    pub heap_pages: Instructions,
    /// Calls that have no node, because there were too many or too deep ones: their
    /// instructions are their callers'.
    pub folded: u64,
}

/// A function, or what is charged beside functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: FrameKind,
    /// Its name, demangled. No two functions need have different ones.
    pub name: String,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A function of the module, by its index.
    Function(u32),
    /// A call of the System API.
    SystemCall,
    /// Stable pages that are charged: of 4 KiB when they are first written, or Wasm pages when
    /// they are first touched or written, as the rules have it.
    StablePages,
    /// Wasm pages of the heap that are charged when they are first touched or written.
    HeapPages,
}

/// A stack of functions that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Who called, by its place among the nodes; nobody where the replica did.
    pub parent: Option<usize>,
    /// Who was called, by its place among the frames.
    pub frame: usize,
    /// How often, within the span.
    pub calls: u64,
    /// Its own instructions, without those of what it called.
    pub instructions: Instructions,
}

/// A message could not be profiled.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The host has no memory left.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The canister did not read its counter so.
    #[error("the canister did not read {0} from its instruction counter")]
    NotRead(Instructions),
    /// The tree does not hold what was counted. This must not happen.
    #[error("the profile holds {profiled} instructions, but the counter counted {counted}")]
    Sum {
        /// Instructions of all nodes.
        profiled: u64,
        /// Instructions by the counter.
        counted: u64,
    },
}
