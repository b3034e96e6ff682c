//! Cycles and US dollars where a canister would run.

use serde::Serialize;
use stablebench_replica::Rules;

use crate::results::Prices;

/// Nodes of the subnet that the replica charges for.
pub const CHARGED_NODES: u64 = 13;

/// What a rule set charges on an application subnet of [`CHARGED_NODES`], in cycles, as far as the
/// page computes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fees {
    /// Execution of an update.
    pub execution: u128,
    /// Taking a message in.
    pub ingress: u128,
    /// Each byte of it.
    pub ingress_byte: u128,
    /// An instruction.
    pub instruction: u128,
    /// A GiB of memory for a second.
    pub storage_gib_second: u128,
    /// A canister for a second, whatever it holds.
    pub canister_second: u128,
}

impl From<Rules> for Fees {
    fn from(rules: Rules) -> Self {
        let fees = rules.fees();
        Self {
            execution: fees.execution,
            ingress: fees.ingress,
            ingress_byte: fees.ingress_byte,
            instruction: fees.instruction,
            storage_gib_second: fees.storage_gib_second,
            canister_second: fees.canister_second,
        }
    }
}

/// Cycles on a subnet of so many nodes, from those on one of 13.
pub fn cycles(charged: u64, prices: &Prices) -> u64 {
    let scaled = u128::from(charged) * u128::from(prices.nodes) / u128::from(CHARGED_NODES);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// US dollars for so many messages.
pub fn usd(cycles: u64, messages: f64, prices: &Prices) -> f64 {
    cycles as f64 / 1e12 * prices.usd_per_trillion_cycles * messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_scale_with_nodes() {
        let prices = |nodes| Prices { nodes, usd_per_trillion_cycles: 1.5 };
        assert_eq!(cycles(13_000_000, &prices(13)), 13_000_000);
        assert_eq!(cycles(13_000_000, &prices(34)), 34_000_000);
        assert_eq!(usd(2_000_000_000_000, 3.0, &prices(13)), 9.0);
    }

    /// What a GiB costs for a year of 365 days, as `docs/bill.md` states it.
    #[test]
    fn a_gib_for_a_year() {
        let year = |rules| Fees::from(rules).storage_gib_second * 31_536_000;
        let found = [Rules::of_2025_10(), Rules::of_2026_08()].map(year);
        assert_eq!(found, [4_005_072_000_000, 10_012_680_000_000]);
    }
}
