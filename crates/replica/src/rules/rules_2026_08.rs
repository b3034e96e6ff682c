//! Since August 2026. The first touch of each Wasm page in a message and the first write to it are
//! charged, in place of 4 KiB pages. Source: `dfinity/ic` #10789 for pages, and the changes that
//! `docs/metering.md` lists with each rule, including the rules that no released server has
//! confirmed. Checked by cases recorded on a server with these page charges.

use super::rules_2025_10::RULES as BEFORE;
use super::set::{Fees, ModuleLimits, PagePrices, RuleSet};
use crate::system_api::names::SystemCall;
use crate::units::{Bytes, Instructions};

/// 5 000 for each 4 KiB of a Wasm page.
const WASM_PAGE: Instructions = Instructions(16 * 5_000);

pub const RULES: RuleSet = RuleSet {
    name: "2026-08",
    server: "PocketIC 13.0.0 with the page charges of August 2026",
    module: ModuleLimits {
        code: Bytes(12 << 20),
        function_name: Some(Bytes(1 << 20)),
        only_function_tables: true,
        lacks: &[SystemCall::SubnetSelfNodeCount],
        ..BEFORE.module
    },
    environment_variables: 32,
    status_of_logs: true,
    snapshot_viewers: true,
    reject_code_in_cleanup: true,
    pages: PagePrices {
        stable_os_page_written: Instructions(0),
        heap_os_page_changed: Instructions(0),
        heap64_factor: 1,
        wasm_page_touched: WASM_PAGE,
        wasm_page_written: WASM_PAGE,
    },
    fees: Fees {
        management: 0,
        storage_gib_second: 317_500,
        canister_second: 10_000,
        ..BEFORE.fees
    },
    ..BEFORE
};

/// The server on which the cases were recorded. Its source has a price of `return_call_indirect`
/// that `dfinity/ic` had for one day (#10086, 5 May 2026) and then reverted (#10095).
pub const RECORDED: RuleSet =
    RuleSet { name: "2026-08-recorded", return_call_indirect: Instructions(6), ..RULES };
