//! October 2026: the additions since August 2026, read in the sources of that month. Prices of
//! operators, of the System API and of pages are those of August. `docs/metering.md` lists each
//! addition with its source.

use super::rules_2026_08::RULES as BEFORE;
use super::set::{ModuleLimits, RuleSet};

pub const RULES: RuleSet = RuleSet {
    name: "2026-10",
    log_store: true,
    charge_rounds: 50,
    error_documentation: "https://docs.internetcomputer.org/references/execution-errors",
    module: ModuleLimits { lacks: &[], ..BEFORE.module },
    management_queries: true,
    installs_at_32_bit_rate: true,
    adjusts_prepayments: true,
    loaded_snapshots_are_immutable: true,
    ..BEFORE
};
