//! Autumn 2025. Source: `rs/config/src/{embedders,subnet_config}.rs`,
//! `rs/embedders/src/wasm_utils` and `rs/pocket_ic_server` of the replica, October 2025. Cases
//! recorded on PocketIC 10.0.0 check everything except what `docs/metering.md` lists.

use super::set::{
    Fees, InstructionLimits, MemoryLimits, MessageLimits, ModuleLimits, PagePrices, RuleSet,
};
use crate::system_api::names::SystemCall;
use crate::units::{Bytes, Instructions, OsPages, WasmPages};

const GIB: u64 = 1 << 30;
const G: u64 = 1_000_000_000;
/// Unreachable in practice.
const BENCHMARKING: Instructions = Instructions(99_999_999_999_999);

pub const RULES: RuleSet = RuleSet {
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
