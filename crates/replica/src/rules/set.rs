//! The form of a rule set.

use crate::system_api::names::SystemCall;
use crate::units::{Bytes, Instructions, OsPages, WasmPages};

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
    pub(super) const NONE: Self = Self {
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
