//! Cycles and US dollars where a canister would run.

use crate::results::Prices;

/// Nodes of the subnet that the replica charges for.
pub const CHARGED_NODES: u64 = 13;

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
}
