//! A message during its execution: its input, its effects with the calls that it makes, and the log.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use ic_principal::Principal;

use super::functions::BYTE_TRANSMITTED;
use crate::cycles::{Reserve, Threshold};
use crate::execution::{Printed, Readings};
use crate::fault::{MAX_MESSAGE, RejectCode, shortened};
use crate::memory::TouchPrices;
use crate::rules::{LOG_RECORD_OVERHEAD, MAX_QUEUE, REQUEST_OVERHEAD, RESPONSE_OVERHEAD, Rules};
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
    /// `canister_heartbeat`.
    Heartbeat,
    /// `canister_global_timer`.
    GlobalTimer,
    /// `canister_on_low_wasm_memory`.
    OnLowWasmMemory,
    /// The callback of a reply.
    ReplyCallback,
    /// The callback of a reject.
    RejectCallback,
    /// The cleanup callback, after the callback of a response failed.
    Cleanup,
    /// The callback of a reply to a composite query.
    CompositeReplyCallback,
    /// The callback of a reject to a composite query.
    CompositeRejectCallback,
    /// The cleanup callback of a composite query.
    CompositeCleanup,
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
            Self::Heartbeat => "heartbeat",
            Self::GlobalTimer => "global timer",
            Self::OnLowWasmMemory => "on low Wasm memory",
            Self::ReplyCallback => "reply callback",
            Self::RejectCallback => "reject callback",
            Self::Cleanup => "cleanup",
            Self::CompositeReplyCallback => "composite reply callback",
            Self::CompositeRejectCallback => "composite reject callback",
            Self::CompositeCleanup => "composite cleanup",
        })
    }
}

impl Mode {
    /// Returns true if every node executes it and the result is agreed upon.
    pub fn is_replicated(self) -> bool {
        match self {
            Self::Query | Self::InspectMessage => false,
            other => !other.is_composite(),
        }
    }

    /// Returns true for a composite query and its callbacks.
    pub fn is_composite(self) -> bool {
        match self {
            Self::CompositeQuery
            | Self::CompositeReplyCallback
            | Self::CompositeRejectCallback
            | Self::CompositeCleanup => true,
            Self::Start
            | Self::Init
            | Self::PreUpgrade
            | Self::Update
            | Self::ReplicatedQuery
            | Self::Query
            | Self::InspectMessage
            | Self::Heartbeat
            | Self::GlobalTimer
            | Self::OnLowWasmMemory
            | Self::ReplyCallback
            | Self::RejectCallback
            | Self::Cleanup => false,
        }
    }

    /// Returns true if the replica runs it without a caller.
    pub fn is_task(self) -> bool {
        matches!(self, Self::Heartbeat | Self::GlobalTimer | Self::OnLowWasmMemory)
    }

    /// Returns true for the callback of a reply or a reject.
    pub fn is_callback(self) -> bool {
        self.is_reply_callback() || self.is_reject_callback()
    }

    /// Returns true for the callback of a reply.
    fn is_reply_callback(self) -> bool {
        matches!(self, Self::ReplyCallback | Self::CompositeReplyCallback)
    }

    /// Returns true for the callback of a reject.
    pub fn is_reject_callback(self) -> bool {
        matches!(self, Self::RejectCallback | Self::CompositeRejectCallback)
    }

    /// Returns true for a cleanup callback.
    pub fn is_cleanup(self) -> bool {
        matches!(self, Self::Cleanup | Self::CompositeCleanup)
    }

    /// Returns true if changes are committed on success. The changes of a composite query last
    /// until it ends.
    pub fn keeps_changes(self) -> bool {
        !matches!(self, Self::ReplicatedQuery | Self::Query | Self::InspectMessage)
    }

    /// Returns true if the message may reply or reject.
    pub fn may_reply(self) -> bool {
        match self {
            Self::Update | Self::ReplicatedQuery | Self::Query | Self::CompositeQuery => true,
            other => other.is_callback(),
        }
    }

    /// Returns true if the message has a caller whose identity may carry a signed attribute.
    pub fn has_caller(self) -> bool {
        !matches!(self, Self::Start | Self::Init | Self::PreUpgrade) && !self.is_task()
    }

    /// Returns true if the message may call other canisters.
    pub fn may_call(self) -> bool {
        match self {
            Self::Update | Self::CompositeQuery => true,
            other => other.is_callback() || other.is_task(),
        }
    }

    /// Returns true if memory only grows while the canister can pay for it.
    pub fn may_freeze(self) -> bool {
        self == Self::Update || self.is_task()
    }

    /// Returns true if cycles are reserved for memory that grows.
    pub fn reserves_storage(self) -> bool {
        self.may_freeze()
            || matches!(self, Self::ReplyCallback | Self::RejectCallback | Self::Cleanup)
    }

    /// Returns true if the message may accept cycles of the call that it belongs to.
    pub fn may_accept_cycles(self) -> bool {
        matches!(
            self,
            Self::Update | Self::ReplicatedQuery | Self::ReplyCallback | Self::RejectCallback
        )
    }

    /// Instructions of the message and of a slice.
    pub fn instructions(self, rules: Rules) -> (Instructions, Instructions) {
        let limits = rules.instructions();
        match self {
            Self::Start | Self::Init | Self::PreUpgrade => (limits.install, limits.install_slice),
            Self::Update
            | Self::Heartbeat
            | Self::GlobalTimer
            | Self::OnLowWasmMemory
            | Self::ReplyCallback
            | Self::RejectCallback
            | Self::Cleanup => (limits.update, limits.slice),
            Self::ReplicatedQuery => (limits.query, limits.slice),
            Self::Query
            | Self::CompositeQuery
            | Self::CompositeReplyCallback
            | Self::CompositeRejectCallback
            | Self::CompositeCleanup => (limits.query, limits.query),
            Self::InspectMessage => (limits.inspect, limits.inspect),
        }
    }

    /// Instructions for the first touch of a Wasm page and for the first write. Most queries do
    /// not pay for writes.
    pub fn touch_prices(self, rules: Rules) -> TouchPrices {
        let pages = rules.pages();
        TouchPrices {
            touched: pages.wasm_page_touched.get().cast_signed(),
            written: self.keeps_changes().then_some(pages.wasm_page_written.get().cast_signed()),
        }
    }

    /// Stable pages that the message may access, and also the number that it may write.
    pub fn stable_pages(self, rules: Rules) -> OsPages {
        let limits = &rules.set().memory;
        match self {
            Self::Init | Self::PreUpgrade => limits.stable_install,
            Self::ReplicatedQuery => limits.stable_query,
            other if !other.is_replicated() => limits.stable_query,
            _ => limits.stable_update,
        }
    }

    /// Returns true if the canister's heap limit applies.
    pub fn limits_heap(self) -> bool {
        matches!(self, Self::Start | Self::Init | Self::Update)
    }

    /// Largest reply. Callbacks of composite queries have the limit of updates.
    pub fn max_reply(self, rules: Rules) -> Bytes {
        let limits = &rules.set().messages;
        match self {
            Self::Query | Self::CompositeQuery => limits.query_reply,
            _ => limits.reply,
        }
    }
}

/// A certificate that is signed when it is first read.
#[derive(Clone)]
pub struct Certificate {
    sign: Arc<dyn Fn() -> Vec<u8> + Send + Sync>,
    signed: Arc<OnceLock<Vec<u8>>>,
}

impl Certificate {
    /// A certificate that this function signs.
    pub fn new(sign: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self { sign: Arc::new(sign), signed: Arc::default() }
    }

    /// The certificate.
    pub fn bytes(&self) -> &[u8] {
        self.signed.get_or_init(|| (self.sign)())
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate").field(&self.signed.get()).finish()
    }
}

/// A function that signs the certified data of a canister at a time.
type Sign = dyn Fn(Principal, &[u8], u64) -> Vec<u8> + Send + Sync;

/// Signs certified data, which queries can read.
#[derive(Clone)]
pub struct Certifier(Arc<Sign>);

impl Certifier {
    /// A certifier with this function.
    pub fn new(sign: impl Fn(Principal, &[u8], u64) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self(Arc::new(sign))
    }

    /// Returns the certificate of a canister's data, which is signed when it is first read.
    pub fn certificate(&self, canister: Principal, data: &[u8], time: u64) -> Certificate {
        let (sign, data) = (Arc::clone(&self.0), data.to_vec());
        Certificate::new(move || sign(canister, &data, time))
    }
}

impl fmt::Debug for Certifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certifier")
    }
}

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
    /// Cycles of these that the canister cannot spend, because it would freeze.
    pub threshold: Threshold,
    /// `canister_status`.
    pub status: Status,
    /// What the message knows of the call that it belongs to.
    pub context: Context,
    /// The calls that the message may make; `None` if there are no other canisters.
    pub quota: Option<Arc<Quota>>,
    /// How cycles are reserved when memory grows; `None` if none are.
    pub reserve: Option<Reserve>,
    /// The switch that ends the messages of the subnet.
    pub halt: Option<Halt>,
    /// True if the subnet holds threshold keys.
    pub holds_keys: bool,
    /// Number of nodes of the subnet.
    pub nodes: u32,
    /// The certificate of the certified data, in a query.
    pub certificate: Option<Certificate>,
    /// Time in nanoseconds since 1970.
    pub time: u64,
    /// The canister's global timer, 0 when not set.
    pub timer: u64,
    /// Heap limit of updates.
    pub heap_limit: Bytes,
    /// True if heap addresses have 64 bits, which makes instructions more expensive.
    pub wasm64: bool,
    /// True if System API calls are reported.
    pub reports_calls: bool,
    /// The use of readings of the counter.
    pub readings: Readings,
    /// True if the heap is copied before the message runs, because it writes to most pages.
    pub copies_ahead: bool,
}

/// The status of a canister, as `canister_status` reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Status {
    /// It executes messages.
    #[default]
    Running = 1,
    /// It only executes responses to its calls.
    Stopping = 2,
    /// It executes nothing.
    Stopped = 3,
}

/// What a message knows of the call that it belongs to: its call context.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Instructions that earlier messages of the call were charged.
    pub used: Instructions,
    /// Cycles that came with the call and were not accepted yet.
    pub available: Cycles,
    /// Time at which a best-effort call expires, in nanoseconds since 1970; otherwise 0.
    pub deadline: u64,
    /// True if an earlier message answered the call.
    pub answered: bool,
    /// Cycles that came back with the response, in a callback.
    pub refund: Cycles,
    /// The reject, in the callback of a reject.
    pub rejection: Option<Rejection>,
}

/// A reject as the calling canister sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The reject code.
    pub code: RejectCode,
    /// The text.
    pub message: String,
}

impl Rejection {
    /// Creates a reject, whose text is cut if it is long.
    pub fn new(code: RejectCode, message: String) -> Self {
        Self { code, message: shortened(message, MAX_MESSAGE, 75) }
    }
}

impl Message {
    /// Returns true if the caller controls the canister, and so learns how many cycles are missing.
    pub fn by_controller(&self) -> bool {
        self.controllers.contains(&self.caller)
    }
}

/// A call to another canister.
#[derive(Clone, Debug)]
pub struct Request {
    /// The canister that is called.
    pub callee: Principal,
    /// Its method.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
    /// The callback of a reply.
    pub on_reply: Closure,
    /// The callback of a reject.
    pub on_reject: Closure,
    /// The callback that runs if one of the others fails.
    pub on_cleanup: Option<Closure>,
    /// Cycles sent with the call.
    pub cycles: Cycles,
    /// Seconds after which a best-effort call expires.
    pub timeout: Option<u32>,
}

/// Bytes of memory for a request with `bytes` of name and argument, or for the largest response if
/// that is guaranteed.
pub fn request_memory(rules: Rules, bytes: u64, best_effort: bool) -> Bytes {
    let request = Bytes(bytes + REQUEST_OVERHEAD);
    if best_effort { request } else { request.max(reserved_memory(rules)) }
}

/// Bytes of memory reserved for a guaranteed response.
pub fn reserved_memory(rules: Rules) -> Bytes {
    rules.set().messages.reply + Bytes(RESPONSE_OVERHEAD)
}

/// A function of the canister's table with its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closure {
    /// Index in the table.
    pub function: u32,
    /// The argument.
    pub environment: u64,
}

/// The calls that a message may make.
#[derive(Clone, Debug)]
pub struct Quota {
    /// Number of calls to any canister.
    pub calls: usize,
    /// Number of calls to a canister, if fewer than fit into an empty queue.
    pub slots: BTreeMap<Principal, usize>,
}

impl Quota {
    /// Returns true if a message that made `requests` may call `callee` once more.
    pub fn allows(&self, callee: &Principal, requests: &[Request]) -> bool {
        let slots = self.slots.get(callee).copied().unwrap_or(MAX_QUEUE);
        let used = requests.iter().filter(|request| request.callee == *callee).count();
        requests.len() < self.calls && used < slots
    }
}

impl Request {
    /// Bytes that the fee depends on.
    pub fn bytes(&self) -> u64 {
        (self.method.len() + self.argument.len()) as u64
    }

    /// Bytes of memory for the request, or for the largest response if that is guaranteed.
    pub fn memory(&self, rules: Rules) -> Bytes {
        request_memory(rules, self.bytes(), self.timeout.is_some())
    }
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
    /// An earlier message of the same call answered it.
    Earlier,
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
    /// Cycles accepted from the call.
    pub received: Cycles,
    /// Cycles attached to calls, and the fees of these calls.
    pub spent: Cycles,
    /// Bytes by which the memories grew, if cycles are reserved for that.
    pub grown: Bytes,
    /// Cycles reserved for storage.
    pub reserved: Cycles,
    /// Bytes of the calls made, with what is reserved for their responses.
    pub sent: Bytes,
    /// The call under construction.
    pub request: Option<Request>,
    /// The calls made.
    pub requests: Vec<Request>,
    /// Printed texts.
    pub printed: Printed,
    pub(super) log: Log,
}

impl Effects {
    /// Creates the effects of a message that has not started.
    pub fn new(message: &Message) -> Self {
        let answered = message.context.answered;
        let pending = Answer::Pending(Vec::new());
        Self {
            answer: if answered { Answer::Earlier } else { pending },
            accepted: false,
            certified_data: None,
            timer: message.timer,
            burned: Cycles(0),
            received: Cycles(0),
            spent: Cycles(0),
            grown: Bytes(0),
            reserved: Cycles(0),
            sent: Bytes(0),
            request: None,
            requests: Vec::new(),
            printed: Printed::default(),
            log: Log::new(message.rules.set().messages.log),
        }
    }

    /// Drops the call under construction, if there is one, and takes back its cycles.
    pub fn drop_request(&mut self) {
        if let Some(dropped) = self.request.take() {
            self.spent = self.spent - dropped.cycles;
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
