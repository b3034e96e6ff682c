//! A message during its execution: its input, its effects, and the log.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use ic_principal::Principal;

use super::prices::BYTE_TRANSMITTED;
use crate::limits::{self, LOG_RECORD_OVERHEAD};
use crate::memory::TouchPrices;
use crate::rules::Rules;
use crate::units::{Bytes, Cycles, Instructions, OsPages};

/// The role in which the canister's code runs. It determines the allowed calls and the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The module's start function.
    Start,
    /// `canister_init` or `canister_post_upgrade`.
    Init,
    /// `canister_pre_upgrade`.
    PreUpgrade,
    /// An update.
    Update,
    /// A query method called as an update.
    ReplicatedQuery,
    /// A query.
    Query,
    /// A composite query.
    CompositeQuery,
    /// `canister_inspect_message`.
    InspectMessage,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Init => "init",
            Self::PreUpgrade => "pre upgrade",
            Self::Update => "update",
            Self::ReplicatedQuery => "replicated query",
            Self::Query => "non replicated query",
            Self::CompositeQuery => "composite query",
            Self::InspectMessage => "inspect message",
        })
    }
}

impl Mode {
    /// Returns true if every node executes it and the result is agreed upon.
    pub fn is_replicated(self) -> bool {
        !matches!(self, Self::Query | Self::CompositeQuery | Self::InspectMessage)
    }

    /// Returns true if changes are committed on success.
    pub fn keeps_changes(self) -> bool {
        matches!(self, Self::Start | Self::Init | Self::PreUpgrade | Self::Update)
    }

    /// Returns true if the message may reply or reject.
    pub fn may_reply(self) -> bool {
        matches!(self, Self::Update | Self::ReplicatedQuery | Self::Query | Self::CompositeQuery)
    }

    /// Instructions of the message and of a slice.
    pub fn instructions(self, rules: Rules) -> (Instructions, Instructions) {
        let limits = rules.instructions();
        match self {
            Self::Start | Self::Init | Self::PreUpgrade => (limits.install, limits.install_slice),
            Self::Update => (limits.update, limits.slice),
            Self::ReplicatedQuery => (limits.query, limits.slice),
            Self::Query | Self::CompositeQuery => (limits.query, limits.query),
            Self::InspectMessage => (limits.inspect, limits.inspect),
        }
    }

    /// Instructions for the first touch of a Wasm page and for the first write. Most queries do
    /// not pay for writes.
    pub fn touch_prices(self, rules: Rules) -> TouchPrices {
        let pays_writes = match self {
            Self::Start | Self::Init | Self::PreUpgrade | Self::Update | Self::CompositeQuery => {
                true
            }
            Self::ReplicatedQuery | Self::Query | Self::InspectMessage => false,
        };
        let pages = rules.pages();
        TouchPrices {
            touched: pages.wasm_page_touched.get().cast_signed(),
            written: pays_writes.then_some(pages.wasm_page_written.get().cast_signed()),
        }
    }

    /// Stable pages that the message may access, and also the number that it may write.
    pub fn stable_pages(self, rules: Rules) -> OsPages {
        let limits = &rules.set().memory;
        match self {
            Self::Init | Self::PreUpgrade => limits.stable_install,
            Self::ReplicatedQuery | Self::Query | Self::CompositeQuery | Self::InspectMessage => {
                limits.stable_query
            }
            Self::Start | Self::Update => limits.stable_update,
        }
    }

    /// Returns true if the canister's heap limit applies.
    pub fn limits_heap(self) -> bool {
        matches!(self, Self::Start | Self::Init | Self::Update)
    }

    /// Largest reply.
    pub fn max_reply(self, rules: Rules) -> Bytes {
        let limits = &rules.set().messages;
        match self {
            Self::Query | Self::CompositeQuery => limits.query_reply,
            _ => limits.reply,
        }
    }
}

/// The input of a message, and what the canister can find out about itself.
#[derive(Clone, Debug)]
pub struct Message {
    /// The role.
    pub mode: Mode,
    /// The rules by which it is charged and limited.
    pub rules: Rules,
    /// The sender.
    pub caller: Principal,
    /// The method, for `canister_inspect_message`.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
    /// The canister's id.
    pub canister: Principal,
    /// The canister's controllers.
    pub controllers: Vec<Principal>,
    /// The canister's environment variables, values by name.
    pub environment: Arc<BTreeMap<String, String>>,
    /// The canister's version.
    pub version: u64,
    /// Cycles that the canister has.
    pub balance: Cycles,
    /// Bytes that the canister occupies.
    pub memory: Bytes,
    /// Time in nanoseconds since 1970.
    pub time: u64,
    /// The canister's global timer, 0 when not set.
    pub timer: u64,
    /// Heap limit of updates.
    pub heap_limit: Bytes,
    /// True if System API calls are reported.
    pub reports_calls: bool,
    /// True if readings of the counter are reported.
    pub reports_readings: bool,
    /// True if the heap is copied before the message runs, because it writes to most pages.
    pub copies_ahead: bool,
}

/// The answer to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No answer yet; the reply data so far.
    Pending(Vec<u8>),
    /// A reply.
    Reply(Vec<u8>),
    /// A reject with its text.
    Reject(String),
}

/// Effects of a message other than memory changes.
#[derive(Clone, Debug)]
pub struct Effects {
    /// The answer.
    pub answer: Answer,
    /// True if `accept_message` was called.
    pub accepted: bool,
    /// New certified data.
    pub certified_data: Option<Vec<u8>>,
    /// The global timer.
    pub timer: u64,
    /// Cycles burned.
    pub burned: Cycles,
    /// Printed texts, up to a limit.
    pub printed: Vec<String>,
    /// Bytes left for printed texts; `None` once a text did not fit.
    printable: Option<usize>,
    pub(super) log: Log,
}

impl Effects {
    /// Creates the effects of a message that has not started.
    pub fn new(rules: Rules, timer: u64) -> Self {
        Self {
            answer: Answer::Pending(Vec::new()),
            accepted: false,
            certified_data: None,
            timer,
            burned: Cycles(0),
            printed: Vec::new(),
            printable: Some(limits::MAX_PRINTED.get() as usize),
            log: Log::new(rules.set().messages.log),
        }
    }

    /// Returns true if a short enough text would be kept.
    pub(super) fn may_print(&self) -> bool {
        self.printable.is_some() && self.printed.len() < limits::MAX_PRINTED_TEXTS
    }

    /// Keeps a printed text, unless it or an earlier one did not fit.
    pub(super) fn print(&mut self, text: String) {
        let left = self.printable.and_then(|left| left.checked_sub(text.len()));
        self.printable = left.filter(|_| self.may_print());
        if self.printable.is_some() {
            self.printed.push(text);
        }
    }
}

/// The log of one message: sizes of its records, oldest first. The free space determines the price
/// of a text.
///
/// Source: `CanisterLog` in `rs/types/management_canister_types` of the replica; the `log` cases of
/// the conformance suite.
#[derive(Clone, Debug)]
pub struct Log {
    /// Largest size of the log.
    most: u64,
    records: VecDeque<u64>,
    used: u64,
}

impl Log {
    /// Creates an empty log with at most `most` bytes.
    pub fn new(most: Bytes) -> Self {
        Self { most: most.get(), records: VecDeque::new(), used: 0 }
    }

    /// Instructions for a text of `bytes`, in addition to the price of the call.
    pub fn charge(&self, bytes: u64) -> u64 {
        let kept = bytes.min(self.most);
        let transmitted = bytes.min(self.most.saturating_sub(self.used));
        2 * kept + BYTE_TRANSMITTED * transmitted
    }

    /// Adds a record and removes the oldest ones to make room.
    pub fn add(&mut self, bytes: u64) {
        let longest = self.most - LOG_RECORD_OVERHEAD.get();
        let record = bytes.min(longest) + LOG_RECORD_OVERHEAD.get();
        while self.used + record > self.most {
            match self.records.pop_front() {
                Some(oldest) => self.used -= oldest,
                None => break,
            }
        }
        self.records.push_back(record);
        self.used += record;
    }
}
