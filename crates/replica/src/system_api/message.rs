//! A message while it is executed: what it was sent with, what it has answered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ic_principal::Principal;

use super::log::Log;
use crate::limits;
use crate::memory::TouchPrices;
use crate::rules::Rules;
use crate::units::{Bytes, Cycles, Instructions, OsPages};

/// In which role the canister's code runs. Decides which calls it may make and
/// how far it may go.
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
    /// Whether every node executes it and the result is agreed upon.
    pub fn is_replicated(self) -> bool {
        !matches!(self, Self::Query | Self::CompositeQuery | Self::InspectMessage)
    }

    /// Whether what it changes stays, if it ends well.
    pub fn keeps_changes(self) -> bool {
        matches!(self, Self::Start | Self::Init | Self::PreUpgrade | Self::Update)
    }

    /// Whether it may answer.
    pub fn answers(self) -> bool {
        matches!(self, Self::Update | Self::ReplicatedQuery | Self::Query | Self::CompositeQuery)
    }

    /// Instructions that it may use, and those of a slice.
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

    /// Instructions for the first touch of a Wasm page, and for the first write to it where
    /// that is charged: most queries pay for the touch alone.
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

    /// Stable pages that it may access, and as many write.
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

    /// Whether the canister's limit on its heap holds.
    pub fn limits_heap(self) -> bool {
        matches!(self, Self::Start | Self::Init | Self::Update)
    }

    /// Longest reply.
    pub fn max_reply(self, rules: Rules) -> Bytes {
        let limits = &rules.set().messages;
        match self {
            Self::Query | Self::CompositeQuery => limits.query_reply,
            _ => limits.reply,
        }
    }
}

/// What a canister was told, and what it can find out about itself.
#[derive(Clone, Debug)]
pub struct Message {
    /// The role.
    pub mode: Mode,
    /// The rules by which it is charged and limited.
    pub rules: Rules,
    /// Who sent it.
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
    /// Nanoseconds since 1970.
    pub time: u64,
    /// The canister's global timer, 0 when not set.
    pub timer: u64,
    /// Largest heap that an update may grow to.
    pub heap_limit: Bytes,
    /// Whether its calls of the System API are reported.
    pub reports_calls: bool,
    /// Whether its readings of the counter are reported.
    pub reports_readings: bool,
    /// Whether it writes to most pages of the heap.
    pub copies_ahead: bool,
}

/// Whether the caller has been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Not yet; the reply so far.
    Pending(Vec<u8>),
    /// With a reply.
    Reply(Vec<u8>),
    /// With a reject and its text.
    Reject(String),
}

/// What a message has done so far beside changing memory.
#[derive(Clone, Debug)]
pub struct Effects {
    /// The answer.
    pub answer: Answer,
    /// `accept_message` was called.
    pub accepted: bool,
    /// Certified data, where set.
    pub certified_data: Option<Vec<u8>>,
    /// The global timer.
    pub timer: u64,
    /// Cycles burned.
    pub burned: Cycles,
    /// Texts printed, the first ones.
    pub printed: Vec<String>,
    /// What is left of the bytes that printed texts may take, until one did not fit.
    printable: Option<usize>,
    pub(super) log: Log,
}

impl Effects {
    /// Nothing done yet.
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

    /// Whether another printed text would be kept, were it short enough.
    pub(super) fn may_print(&self) -> bool {
        self.printable.is_some() && self.printed.len() < limits::MAX_PRINTED_TEXTS
    }

    /// Keeps a printed text, unless it or one before it was too much: what is kept is
    /// the beginning of what was printed.
    pub(super) fn print(&mut self, text: String) {
        let left = self.printable.and_then(|left| left.checked_sub(text.len()));
        self.printable = left.filter(|_| self.may_print());
        if self.printable.is_some() {
            self.printed.push(text);
        }
    }
}
