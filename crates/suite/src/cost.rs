//! The cost of a message, and the identity of the replica that reports it, as results contain them.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// The identity of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// `embedded`, `pocket-ic`, `network`.
    pub kind: String,
    pub version: String,
    /// `application`, `system` or `benchmarking`, on which limits and prices depend. For a
    /// network, the subnet's id or `unknown`.
    pub subnet: String,
    /// The name of the rule set by which it charges, such as `2026-10`, or `unknown`.
    #[serde(default = "first_rules")]
    pub rules: String,
}

/// The rule set of old results, which name none.
fn first_rules() -> String {
    "2025-10".to_owned()
}

/// The cost of a message as the replica reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Cycles paid.
    pub cycles: u64,
    /// Details that only the embedded replica reports.
    pub inside: Option<Inside>,
}

/// The activity of a message inside the embedded replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    /// The instruction counter at the end of the message.
    pub instructions: u64,
    /// Charged instructions: the counter and the costs of pages.
    pub charge: u64,
    /// Heap pages of 4 KiB whose content changed.
    pub heap_pages_changed: u64,
    /// Stable pages of 4 KiB read or written.
    pub stable_pages_accessed: u64,
    /// Stable pages of 4 KiB written.
    pub stable_pages_written: u64,
    /// Calls that read or write stable memory; absent from older results.
    pub stable_calls: Option<StableCalls>,
    /// The part of `charge` that is for pages; absent from older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageCosts>,
    /// The executions and their messages, for a canister that calls others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messaging: Option<Messaging>,
}

/// The executions that a message caused, and the cycles for sending messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messaging {
    /// Number of executions, callbacks and tasks included.
    pub executions: u64,
    /// The part of the cycles that is for the ingress message, for calls, and for responses.
    pub cycles: u64,
}

/// Instructions that are charged for memory pages, and the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageCosts {
    /// Instructions for pages of the heap.
    pub heap: u64,
    /// Instructions for pages of stable memory.
    pub stable: u64,
    /// The pages, under rules that charge for touching them.
    pub touched: Option<TouchedPages>,
}

/// Wasm pages (64 KiB) that a message touched and wrote, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TouchedPages {
    /// Pages of the heap that were read or written.
    pub heap: u64,
    /// Pages of the heap that were written; none are counted in queries.
    pub heap_written: u64,
    /// Pages of stable memory that were read or written.
    pub stable: u64,
    /// Pages of stable memory that were written; none are counted in queries.
    pub stable_written: u64,
}

impl PageCosts {
    /// Returns `total` without the cost of pages, or `None` if the pages cost more.
    pub fn compute(&self, total: u64) -> Option<u64> {
        total.checked_sub(self.heap)?.checked_sub(self.stable)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cycles: self.cycles + other.cycles,
            inside: self.inside.zip(other.inside).map(|(one, other)| one + other),
        }
    }
}

impl Add for Inside {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let calls = self.stable_calls.zip(other.stable_calls);
        let messaging = self.messaging.zip(other.messaging);
        Self {
            instructions: self.instructions + other.instructions,
            charge: self.charge + other.charge,
            heap_pages_changed: self.heap_pages_changed + other.heap_pages_changed,
            stable_pages_accessed: self.stable_pages_accessed + other.stable_pages_accessed,
            stable_pages_written: self.stable_pages_written + other.stable_pages_written,
            stable_calls: calls.map(|(one, other)| one + other),
            pages: self.pages.zip(other.pages).map(|(one, other)| one + other),
            messaging: messaging.map(|(one, other)| one + other),
        }
    }
}

impl Add for StableCalls {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            bytes_read: self.bytes_read + other.bytes_read,
            writes: self.writes + other.writes,
            bytes_written: self.bytes_written + other.bytes_written,
        }
    }
}

impl Add for Messaging {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { executions: self.executions + other.executions, cycles: self.cycles + other.cycles }
    }
}

impl Add for TouchedPages {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            heap: self.heap + other.heap,
            heap_written: self.heap_written + other.heap_written,
            stable: self.stable + other.stable,
            stable_written: self.stable_written + other.stable_written,
        }
    }
}

impl Sub for TouchedPages {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            heap: self.heap.saturating_sub(other.heap),
            heap_written: self.heap_written.saturating_sub(other.heap_written),
            stable: self.stable.saturating_sub(other.stable),
            stable_written: self.stable_written.saturating_sub(other.stable_written),
        }
    }
}

impl Sub for PageCosts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            heap: self.heap.saturating_sub(other.heap),
            stable: self.stable.saturating_sub(other.stable),
            touched: self.touched.zip(other.touched).map(|(one, other)| one - other),
        }
    }
}

impl Add for PageCosts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            heap: self.heap + other.heap,
            stable: self.stable + other.stable,
            touched: self.touched.zip(other.touched).map(|(one, other)| one + other),
        }
    }
}

/// A message's calls of stable memory, 32-bit and 64-bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StableCalls {
    /// Number of reads.
    pub reads: u64,
    pub bytes_read: u64,
    /// Number of writes.
    pub writes: u64,
    pub bytes_written: u64,
}
