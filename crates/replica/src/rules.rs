//! Rules of the network: its prices and limits, in sets as of a date.
//!
//! The network's rules change over time. Each set is a table of prices, limits and switches:
//!
//! ```text
//!   2025-10   autumn 2025, as counted by PocketIC 10
//!   2026-08   since August 2026: touching a Wasm page is charged
//!   2026-10   the additions up to October 2026
//! ```
//!
//! [`Rules`] is a set and the kind of subnet that it is applied to. A replica has one, and it is
//! recorded in everything that depends on it: compiled modules, saved canisters, results. Prices
//! of operators (`instrument/charges.rs`) and of the System API (`system_api/functions.rs`)
//! are the same in all sets so far and have their own tables.
//!
//! To add a set, add its table and its name to [`Rules::SETS`], and record its cases.
//!
//! Below the sets are the limits and prices that are the same in all of them, and limits of this process.
//! Source: `rs/config/src/{embedders,execution_environment,subnet_config}.rs` and
//! `rs/embedders/src/lib.rs` of the replica.

use std::fmt;
use std::str::FromStr;

use crate::system_api::functions::SystemCall;
use crate::units::{Bytes, Instructions, OsPages, WasmPages};

/// A rule set and the kind of subnet that it is applied to.
#[derive(Clone, Copy)]
pub struct Rules {
    set: &'static RuleSet,
    subnet: SubnetKind,
}

impl Rules {
    /// All sets, oldest first.
    pub const SETS: &[&str] = &[RULES_2025_10.name, RULES_2026_08.name, RULES_2026_10.name];

    /// The rules of PocketIC 10, autumn 2025, on an application subnet.
    pub const fn of_2025_10() -> Self {
        Self { set: &RULES_2025_10, subnet: SubnetKind::Application }
    }

    /// The rules in force since August 2026, on an application subnet.
    pub const fn of_2026_08() -> Self {
        Self { set: &RULES_2026_08, subnet: SubnetKind::Application }
    }

    /// The rules of October 2026, on an application subnet.
    pub const fn of_2026_10() -> Self {
        Self { set: &RULES_2026_10, subnet: SubnetKind::Application }
    }

    /// The newest rules on an application subnet.
    pub const fn today() -> Self {
        Self::of_2026_10()
    }

    /// The same set on another kind of subnet.
    #[must_use]
    pub const fn on(self, subnet: SubnetKind) -> Self {
        Self { subnet, ..self }
    }

    /// Variants of sets that differ in one rule: a price that the recording server had for a day.
    pub const VARIANTS: &[&str] = &[RECORDED_2026_08.name];

    /// Name of the set, such as `2026-08`.
    pub const fn name(&self) -> &'static str {
        self.set.name
    }

    /// The kind of subnet.
    pub const fn subnet(&self) -> SubnetKind {
        self.subnet
    }

    /// Prices, limits and switches of the set.
    pub const fn set(&self) -> &'static RuleSet {
        self.set
    }

    /// Instruction limits of messages.
    pub const fn instructions(&self) -> &'static InstructionLimits {
        match self.subnet {
            SubnetKind::Application | SubnetKind::Free => &self.set.application,
            SubnetKind::System => &self.set.system,
            SubnetKind::Benchmarking | SubnetKind::FreeBenchmarking => &self.set.benchmarking,
        }
    }

    /// Cycles for messages and memory.
    pub const fn fees(&self) -> &'static Fees {
        match self.subnet {
            SubnetKind::Application | SubnetKind::Benchmarking => &self.set.fees,
            SubnetKind::System | SubnetKind::Free | SubnetKind::FreeBenchmarking => &Fees::NONE,
        }
    }

    /// Prices of touched pages.
    pub const fn pages(&self) -> &'static PagePrices {
        &self.set.pages
    }

    /// Returns true if the same work counts the same instructions as by the other rules.
    pub fn counts_as(&self, other: Self) -> bool {
        let counted = |rules: &Self| (rules.set.pages, rules.set.return_call_indirect);
        counted(self) == counted(&other)
    }

    /// Returns true if the first touch of a Wasm page is charged.
    pub const fn charges_touches(&self) -> bool {
        self.set.pages.wasm_page_touched.get() > 0
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::today()
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        (self.set.name, self.subnet) == (other.set.name, other.subnet)
    }
}

impl Eq for Rules {}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.set.name)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rules").field(&self.set.name).field(&self.subnet).finish()
    }
}

/// No rule set has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are no rules {0}; there are {known}", known = Rules::SETS.join(", "))]
pub struct UnknownRules(String);

impl FromStr for Rules {
    type Err = UnknownRules;

    fn from_str(name: &str) -> Result<Self, UnknownRules> {
        let sets = [&RULES_2025_10, &RULES_2026_08, &RECORDED_2026_08, &RULES_2026_10];
        let set = sets.into_iter().find(|set| set.name == name);
        let set = set.ok_or_else(|| UnknownRules(name.to_owned()))?;
        Ok(Self { set, subnet: SubnetKind::Application })
    }
}

/// Kinds of subnets, as in PocketIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SubnetKind {
    /// 13 nodes, production limits.
    #[default]
    Application,
    /// Larger limits; nothing is charged.
    System,
    /// An application subnet whose instruction limits are out of reach.
    Benchmarking,
    /// An application subnet on which nothing is charged.
    Free,
    /// The limits of a benchmarking subnet; nothing is charged.
    FreeBenchmarking,
}

impl SubnetKind {
    /// The name in PocketIC and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::System => "system",
            Self::Benchmarking => "benchmarking",
            Self::Free => "free",
            Self::FreeBenchmarking => "free benchmarking",
        }
    }
}

impl fmt::Display for SubnetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A dated set of prices, limits and switches.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RuleSet {
    /// Name: year and month in which the rules took effect.
    pub name: &'static str,
    /// The server on which the cases were recorded.
    pub server: &'static str,
    /// Instruction limits on an application subnet.
    pub application: InstructionLimits,
    /// Instruction limits on a system subnet.
    pub system: InstructionLimits,
    /// Instruction limits on a benchmarking subnet.
    pub benchmarking: InstructionLimits,
    /// Price of `return_call_indirect`. Other operators cost the same in all sets.
    pub return_call_indirect: Instructions,
    /// Sizes of memories, and how much of them a message may touch.
    pub memory: MemoryLimits,
    /// Sizes of messages.
    pub messages: MessageLimits,
    /// Sizes of modules.
    pub module: ModuleLimits,
    /// Largest number of environment variables of a canister.
    pub environment_variables: usize,
    /// True if `canister_status` reports the memory of the log, and who may see status and snapshots.
    pub status_of_logs: bool,
    /// True if the settings decide who may list and read snapshots, rejects about snapshots have
    /// the words of 2026, and a memory allocation does not limit what a snapshot adds.
    pub snapshot_viewers: bool,
    /// True if the cleanup callback may ask for the code of the reject.
    pub reject_code_in_cleanup: bool,
    /// True if each canister has a store for its log, which counts as memory.
    pub log_store: bool,
    /// Rounds from one charge for storage to the next.
    pub charge_rounds: u64,
    /// The page to whose sections rejects link.
    pub error_documentation: &'static str,
    /// True if `canister_info` is a query of the management canister too, and composite queries may
    /// call its queries.
    pub management_queries: bool,
    /// True if installing a module with a 64-bit heap costs as much as with a 32-bit heap.
    pub installs_at_32_bit_rate: bool,
    /// True if a callback is prepaid by the width of the heap that the canister has when it runs.
    pub adjusts_prepayments: bool,
    /// True if an uploaded snapshot cannot be changed once it was loaded.
    pub loaded_snapshots_are_immutable: bool,
    /// Prices of touched pages.
    pub pages: PagePrices,
    /// Cycles on an application subnet of 13 nodes.
    pub fees: Fees,
}

/// Instruction limits of messages.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct InstructionLimits {
    /// One update, start, heartbeat or timer message.
    pub update: Instructions,
    /// One query, including one called as an update.
    pub query: Instructions,
    /// An install or upgrade, for all its functions together.
    pub install: Instructions,
    /// `canister_inspect_message`.
    pub inspect: Instructions,
    /// Instructions after which a core starts no further message in a round.
    pub round: Instructions,
    /// The slice after which a long message yields to the next round.
    pub slice: Instructions,
    /// The slice of installs and upgrades.
    pub install_slice: Instructions,
}

/// Sizes of memories, and how much of stable memory a message may touch.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MemoryLimits {
    /// Largest heap with 32-bit addresses.
    pub heap32: WasmPages,
    /// Largest heap with 64-bit addresses.
    pub heap64: WasmPages,
    /// Default limit of heap growth in updates. Growing beyond it fails the message.
    pub default_heap_limit: Bytes,
    /// Largest stable memory.
    pub stable: WasmPages,
    /// Largest stable memory that the 32-bit calls support.
    pub stable32: WasmPages,
    /// Stable pages that one update may access, and also the number that it may write.
    pub stable_update: OsPages,
    /// The same for a query, including one called as an update.
    pub stable_query: OsPages,
    /// The same for an install or upgrade.
    pub stable_install: OsPages,
}

/// Times that a request within a subnet may be as large as one to another subnet.
const LOCAL_REQUEST: u64 = 5;

/// Sizes of messages.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MessageLimits {
    /// Largest argument of an ingress message.
    pub argument: Bytes,
    /// Largest reply of an update.
    pub reply: Bytes,
    /// Largest reply of a query.
    pub query_reply: Bytes,
    /// Log bytes that one message may write.
    pub log: Bytes,
}

impl MessageLimits {
    /// Largest request to a canister of the same subnet: name of the method and argument.
    pub const fn largest_request(&self) -> Bytes {
        Bytes(self.argument.0 * LOCAL_REQUEST)
    }
}

/// Sizes of modules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ModuleLimits {
    /// Largest code section.
    pub code: Bytes,
    /// Largest number of defined functions.
    pub functions: usize,
    /// Largest number of defined globals.
    pub globals: usize,
    /// Highest complexity of a function.
    pub complexity: u64,
    /// Largest number of exported methods.
    pub methods: usize,
    /// Largest total size of their names.
    pub method_names: usize,
    /// Longest function name in the name section, if limited.
    pub function_name: Option<Bytes>,
    /// True if tables must contain functions.
    pub only_function_tables: bool,
    /// System API calls that are not available.
    pub lacks: &'static [SystemCall],
}

/// Instructions charged for pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PagePrices {
    /// A stable page of 4 KiB when the message writes it for the first time.
    pub stable_os_page_written: Instructions,
    /// A heap page of 4 KiB whose content changed, at the end of the message.
    pub heap_os_page_changed: Instructions,
    /// Factor by which such a page of a 64-bit heap costs more.
    pub heap64_factor: u64,
    /// The first touch of a Wasm page of heap or stable memory in a message.
    pub wasm_page_touched: Instructions,
    /// The first write to a Wasm page in a message that is not a query.
    pub wasm_page_written: Instructions,
}

/// Cycles on an application subnet of 13 nodes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Fees {
    /// Execution of a message, regardless of its instructions.
    pub execution: u128,
    /// A method of the management canister that pays for instructions, regardless of them.
    pub management: u128,
    /// An instruction of a 32-bit canister.
    pub instruction: u128,
    /// An instruction of a 64-bit canister.
    pub instruction64: u128,
    /// Induction of an ingress message.
    pub ingress: u128,
    /// A byte of an ingress message.
    pub ingress_byte: u128,
    /// A call to another canister.
    pub call: u128,
    /// A byte of a call, request and response.
    pub call_byte: u128,
    /// Creation of a canister.
    pub creation: u128,
    /// A GiB of memory for a second.
    pub storage_gib_second: u128,
    /// A canister for a second.
    pub canister_second: u128,
    /// A percent of compute allocation for a second.
    pub compute_percent_second: u128,
    /// An HTTPS outcall, for each node.
    pub http_request: u128,
    /// An HTTPS outcall, for each pair of nodes.
    pub http_request_quadratic: u128,
    /// A byte of its request, for each node.
    pub http_request_byte: u128,
    /// A byte of its response, for each node.
    pub http_response_byte: u128,
}

impl Fees {
    /// The fees of a system subnet.
    const NONE: Self = Self {
        execution: 0,
        management: 0,
        instruction: 0,
        instruction64: 0,
        ingress: 0,
        ingress_byte: 0,
        call: 0,
        call_byte: 0,
        creation: 0,
        storage_gib_second: 0,
        canister_second: 0,
        compute_percent_second: 0,
        http_request: 0,
        http_request_quadratic: 0,
        http_request_byte: 0,
        http_response_byte: 0,
    };
}

const GIB: u64 = 1 << 30;
const G: u64 = 1_000_000_000;
/// Unreachable in practice.
const BENCHMARKING: Instructions = Instructions(99_999_999_999_999);

/// Autumn 2025. Source: `rs/config/src/{embedders,subnet_config}.rs`,
/// `rs/embedders/src/wasm_utils` and `rs/pocket_ic_server` of the replica, October 2025. Cases
/// recorded on PocketIC 10.0.0 check everything except what `docs/metering.md` lists.
const RULES_2025_10: RuleSet = RuleSet {
    name: "2025-10",
    server: "PocketIC 10.0.0",
    application: InstructionLimits {
        update: Instructions(40 * G),
        query: Instructions(5 * G),
        install: Instructions(300 * G),
        inspect: Instructions(200_000_000),
        round: Instructions(2 * G),
        slice: Instructions(2 * G),
        install_slice: Instructions(2 * G),
    },
    system: InstructionLimits {
        update: Instructions(50 * G),
        query: Instructions(50 * G),
        install: Instructions(1_000 * G),
        inspect: Instructions(200_000_000),
        round: Instructions(2 * G),
        slice: Instructions(2 * G),
        install_slice: Instructions(5 * G),
    },
    benchmarking: InstructionLimits {
        update: BENCHMARKING,
        query: BENCHMARKING,
        install: Instructions(300 * G),
        inspect: Instructions(200_000_000),
        round: BENCHMARKING,
        slice: BENCHMARKING,
        install_slice: Instructions(2 * G),
    },
    return_call_indirect: Instructions(60),
    memory: MemoryLimits {
        heap32: WasmPages(4 * GIB / 65_536),
        heap64: WasmPages(6 * GIB / 65_536),
        default_heap_limit: Bytes(3 * GIB),
        stable: WasmPages(500 * GIB / 65_536),
        stable32: WasmPages(4 * GIB / 65_536),
        stable_update: OsPages(2 * GIB / 4_096),
        stable_query: OsPages(GIB / 4_096),
        stable_install: OsPages(8 * GIB / 4_096),
    },
    messages: MessageLimits {
        argument: Bytes(2 << 20),
        reply: Bytes(2 << 20),
        query_reply: Bytes(3 << 20),
        log: Bytes(4_096),
    },
    module: ModuleLimits {
        code: Bytes(11 << 20),
        functions: 50_000,
        globals: 1_000,
        complexity: 1_000_000,
        methods: 1_000,
        method_names: 20_000,
        function_name: None,
        only_function_tables: false,
        lacks: &[
            SystemCall::MsgCallerInfoDataSize,
            SystemCall::MsgCallerInfoDataCopy,
            SystemCall::MsgCallerInfoSignerSize,
            SystemCall::MsgCallerInfoSignerCopy,
            SystemCall::CostHttpRequestV2,
            SystemCall::SubnetSelfNodeCount,
        ],
    },
    environment_variables: 20,
    status_of_logs: false,
    snapshot_viewers: false,
    reject_code_in_cleanup: false,
    log_store: false,
    charge_rounds: 1,
    error_documentation: "https://internetcomputer.org/docs/current/references/execution-errors",
    management_queries: false,
    installs_at_32_bit_rate: false,
    adjusts_prepayments: false,
    loaded_snapshots_are_immutable: false,
    pages: PagePrices {
        stable_os_page_written: Instructions(1_000),
        heap_os_page_changed: Instructions(1_000),
        heap64_factor: 4,
        wasm_page_touched: Instructions(0),
        wasm_page_written: Instructions(0),
    },
    fees: Fees {
        execution: 5_000_000,
        management: 5_000_000,
        instruction: 1,
        instruction64: 2,
        ingress: 1_200_000,
        ingress_byte: 2_000,
        call: 260_000,
        call_byte: 1_000,
        creation: 500_000_000_000,
        storage_gib_second: 127_000,
        canister_second: 0,
        compute_percent_second: 10_000_000,
        http_request: 3_000_000,
        http_request_quadratic: 60_000,
        http_request_byte: 400,
        http_response_byte: 800,
    },
};

/// 5 000 for each 4 KiB of a Wasm page.
const WASM_PAGE_PRICE: Instructions = Instructions(16 * 5_000);

/// Since August 2026. The first touch of each Wasm page in a message and the first write to it are
/// charged, in place of 4 KiB pages. Source: `dfinity/ic` #10789 for pages, and the changes that
/// `docs/metering.md` lists with each rule, including the rules that no released server has
/// confirmed. Checked by cases recorded on a server with these page charges.
const RULES_2026_08: RuleSet = RuleSet {
    name: "2026-08",
    server: "PocketIC 13.0.0 with the page charges of August 2026",
    module: ModuleLimits {
        code: Bytes(12 << 20),
        function_name: Some(Bytes(1 << 20)),
        only_function_tables: true,
        lacks: &[SystemCall::SubnetSelfNodeCount],
        ..RULES_2025_10.module
    },
    environment_variables: 32,
    status_of_logs: true,
    snapshot_viewers: true,
    reject_code_in_cleanup: true,
    pages: PagePrices {
        stable_os_page_written: Instructions(0),
        heap_os_page_changed: Instructions(0),
        heap64_factor: 1,
        wasm_page_touched: WASM_PAGE_PRICE,
        wasm_page_written: WASM_PAGE_PRICE,
    },
    fees: Fees {
        management: 0,
        storage_gib_second: 317_500,
        canister_second: 10_000,
        ..RULES_2025_10.fees
    },
    ..RULES_2025_10
};

/// The server on which the cases were recorded. Its source has a price of `return_call_indirect`
/// that `dfinity/ic` had for one day (#10086, 5 May 2026) and then reverted (#10095).
const RECORDED_2026_08: RuleSet =
    RuleSet { name: "2026-08-recorded", return_call_indirect: Instructions(6), ..RULES_2026_08 };

/// October 2026: the additions since August 2026, read in the sources of that month. Prices of
/// operators, of the System API and of pages are those of August. `docs/metering.md` lists each
/// addition with its source.
const RULES_2026_10: RuleSet = RuleSet {
    name: "2026-10",
    log_store: true,
    charge_rounds: 50,
    error_documentation: "https://docs.internetcomputer.org/references/execution-errors",
    module: ModuleLimits { lacks: &[], ..RULES_2026_08.module },
    management_queries: true,
    installs_at_32_bit_rate: true,
    adjusts_prepayments: true,
    loaded_snapshots_are_immutable: true,
    ..RULES_2026_08
};

/// Largest number of slices of a message.
pub(crate) const MAX_SLICES: i64 = 400;

/// Size of a log record without its content.
pub(crate) const LOG_RECORD_OVERHEAD: Bytes = Bytes(40);
/// Smallest store of a log, and its size by default, without what it needs besides records.
pub(crate) const DEFAULT_LOG: Bytes = Bytes(4 << 10);
/// Largest store of a log.
pub(crate) const MAX_LOG: Bytes = Bytes(2 << 20);
/// Most bytes of records that are returned at once, with their overhead.
pub(crate) const MAX_FETCHED_LOG: Bytes = Bytes(2_000_000);
/// Instructions that reading a log counts as in a composite query, besides one for each byte of its
/// texts.
pub(crate) const READ_LOG_INSTRUCTIONS: Instructions = Instructions(150_000);
/// Instructions for each of the records.
pub(crate) const READ_LOG_RECORD_INSTRUCTIONS: Instructions = Instructions(900);
/// Bytes of the header and of the index of a store.
pub(crate) const LOG_STORE_OVERHEAD: Bytes = Bytes(8 << 10);
/// Longest text of `trap` and `debug_print`.
pub(crate) const MAX_TEXT: Bytes = Bytes(32 << 10);
/// Printed texts of a message that are kept, with the overhead of a log record each.
pub(crate) const MAX_PRINTED: Bytes = MAX_LOG;
/// Readings of the counter that are reported for a message.
pub(crate) const MAX_READINGS: usize = 1 << 20;
/// Longest name of an environment variable that code can look up.
pub(crate) const MAX_ENVIRONMENT_NAME: Bytes = Bytes(100);
/// Longest name and longest value of an environment variable.
pub(crate) const MAX_ENVIRONMENT_TEXT: Bytes = Bytes(128);
/// Longest certified data.
pub(crate) const MAX_CERTIFIED_DATA: Bytes = Bytes(32);

/// Changes of a canister that the replica keeps.
pub(crate) const MAX_HISTORY: usize = 20;
/// Most controllers of a canister.
pub(crate) const MAX_CONTROLLERS: usize = 10;
/// Largest limit of a heap.
pub(crate) const MAX_HEAP_LIMIT: u64 = 1 << 48;
/// Memory of a subnet.
pub(crate) const SUBNET_CAPACITY: Bytes = Bytes(2 << 40);
/// Memory that canisters of a subnet can allocate.
pub(crate) const SUBNET_MEMORY: Bytes = Bytes(SUBNET_CAPACITY.get() - (10 << 30));
/// Memory in use from which canisters reserve cycles for more.
pub(crate) const SCARCE_MEMORY: Bytes = Bytes(750 << 30);
/// Seconds of storage that canisters reserve on a full subnet.
pub(crate) const MAX_RESERVATION: u64 = 300_000_000;
/// Percent of compute that canisters of a subnet can reserve together.
pub(crate) const COMPUTE_CAPACITY: u64 = 50 * (CORES as u64 - 1);
/// Most chunks of a canister.
pub(crate) const MAX_CHUNKS: usize = 100;
/// Most snapshots of a canister.
pub(crate) const MAX_SNAPSHOTS: usize = 10;
/// Instructions for uploading a chunk.
pub(crate) const UPLOAD_INSTRUCTIONS: Instructions = Instructions(200_000_000);
/// Instructions for taking or loading a snapshot, besides one for each byte.
pub(crate) const SNAPSHOT_INSTRUCTIONS: Instructions = Instructions(2_000_000_000);
/// Instructions for reading a part of a snapshot, besides one for each byte.
pub(crate) const READ_SNAPSHOT_INSTRUCTIONS: Instructions = Instructions(5_000_000);
/// Most bytes of a part of a snapshot that is read at once.
pub(crate) const MAX_SNAPSHOT_SLICE: Bytes = Bytes(2_000_000);
/// Seconds after which a call gives up waiting for a canister to stop.
pub(crate) const STOP_TIMEOUT: u64 = 300;

/// Messages that a queue between two canisters holds, in each direction.
pub(crate) const MAX_QUEUE: usize = 500;
/// Messages of users that wait for a canister of a subnet, so that memory stays bounded. The Internet
/// Computer limits them for the whole subnet.
pub(crate) const MAX_INGRESS: usize = 1_000;
/// Bytes of a request in memory, without name and argument.
pub(crate) const REQUEST_OVERHEAD: u64 = 176;
/// Bytes of a response in memory, without the reply.
pub(crate) const RESPONSE_OVERHEAD: u64 = 144;
/// Seconds between two charges for storage.
pub(crate) const CHARGE_INTERVAL: u64 = 10;
/// Longest timeout of a best-effort call, in seconds.
pub(crate) const MAX_CALL_TIMEOUT: u32 = 300;

/// Callbacks that each canister may register at any time.
pub(crate) const GUARANTEED_CALLBACKS: usize = 50;
/// Callbacks of a subnet beyond which canisters only have those guaranteed to them.
pub(crate) const MAX_CALLBACKS: usize = 1_000_000;
/// Percentage of a callback's instructions that is kept back for the cleanup.
pub(crate) const CLEANUP_PERCENT: u64 = 5;
/// Deepest nesting of composite queries.
pub(crate) const MAX_QUERY_DEPTH: usize = 6;
/// Instructions of a composite query with all queries that it calls.
pub(crate) const MAX_QUERY_INSTRUCTIONS: Instructions = Instructions(5_000_000_000);
/// Instructions that each call of a query counts as, towards this limit.
pub(crate) const QUERY_CALL_OVERHEAD: Instructions = Instructions(50_000_000);
/// Cores on which the canisters of a subnet run.
pub(crate) const CORES: usize = 4;
/// Instructions that each message counts as, towards the limit of a round.
pub(crate) const MESSAGE_OVERHEAD: Instructions = Instructions(2_000_000);
/// Instructions that a canister with messages counts as, in each iteration of a round.
pub(crate) const CANISTER_OVERHEAD: Instructions = Instructions(8_000_000);
/// Instructions that each canister of the subnet counts as, in each iteration of a round.
pub(crate) const ITERATION_OVERHEAD: Instructions = Instructions(12_000);

/// Stack of WebAssembly code.
pub(crate) const WASM_STACK: usize = 5 << 20;
/// Largest number of elements of a table.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 1_000_000;

/// Instructions of a stable read without its bytes.
pub(crate) const STABLE_READ_COST: i64 = 20;
/// Instructions of a stable write without its bytes.
pub(crate) const STABLE_WRITE_COST: i64 = 20;
/// Instructions for growing stable memory.
pub(crate) const STABLE_GROW_COST: Instructions = Instructions(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_is_found_by_its_name() {
        for name in Rules::SETS {
            let rules: Rules = name.parse().unwrap();
            assert_eq!((rules.name(), rules.subnet()), (*name, SubnetKind::Application));
        }
        let error = "2024-01".parse::<Rules>().unwrap_err().to_string();
        assert_eq!(error, "there are no rules 2024-01; there are 2025-10, 2026-08, 2026-10");
    }

    #[test]
    fn the_subnet_decides_on_limits_and_fees() {
        let rules = Rules::of_2025_10();
        assert_eq!(rules.on(SubnetKind::System).instructions().update.get(), 50_000_000_000);
        assert_eq!(rules.on(SubnetKind::System).fees().instruction, 0);
        let benchmarking = rules.on(SubnetKind::Benchmarking);
        assert_eq!(benchmarking.instructions().query.get(), 99_999_999_999_999);
        assert_eq!(benchmarking.fees().instruction, 1);
        assert_ne!(benchmarking, rules);
    }

    #[test]
    fn variants_differ_in_one_rule() {
        let (set, variant) = (Rules::of_2026_08(), Rules::VARIANTS[0].parse().unwrap());
        assert_ne!(set, variant);
        let prices = [set, variant].map(|rules| rules.set().return_call_indirect.get());
        assert_eq!(prices, [60, 6]);
    }

    #[test]
    fn additions_do_not_change_counts() {
        assert!(Rules::of_2026_10().counts_as(Rules::of_2026_08()));
        assert!(!Rules::of_2026_08().counts_as(Rules::of_2025_10()));
        assert!(!Rules::of_2026_08().counts_as(Rules::VARIANTS[0].parse().unwrap()));
    }
}
