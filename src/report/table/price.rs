//! What it costs to run: the whole charge, cycles and US dollars of messages.

use super::grid::{Cell, Grid, Style};
use super::section::columns;
use crate::report::heading;
use crate::report::number::{Grouped, Short};
use crate::results::{Case, Prices, Results};

/// Nodes of the subnet that the replica charges for.
const CHARGED_NODES: u64 = 13;

/// Cycles on a subnet of so many nodes, from those on one of 13.
pub fn cycles(charged: u64, prices: &Prices) -> u64 {
    let scaled = u128::from(charged) * u128::from(prices.nodes) / u128::from(CHARGED_NODES);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// US dollars for so many messages.
pub fn usd(cycles: u64, messages: f64, prices: &Prices) -> f64 {
    cycles as f64 / 1e12 * prices.usd_per_trillion_cycles * messages
}

/// Charge, cycles and price of the messages of the section `insert`.
pub fn grid(results: &Results, style: Style) -> Option<Grid> {
    const SECTION: &str = "insert";
    const MESSAGES: f64 = 1e6;
    let keys = columns(results, SECTION);
    let mut names: Vec<&str> = Vec::new();
    for case in results.section(SECTION) {
        let known = case.measured().is_some_and(|measured| measured.detail.is_some());
        if known && !names.contains(&case.name.as_str()) {
            names.push(&case.name);
        }
    }
    let rows: Vec<Vec<Cell>> = names
        .iter()
        .map(|name| {
            let cells = keys.iter().map(|key| {
                let case = results.case(SECTION, name, key);
                let detail = case.and_then(|case| case.measured()?.detail.as_ref());
                detail.map_or(Cell::Absent, |detail| {
                    let cycles = cycles(detail.cost.cycles, &results.prices);
                    let dollars = usd(cycles, MESSAGES, &results.prices);
                    let charge = match detail.cost.inside {
                        Some(inside) => Short(inside.charge).to_string(),
                        None => "–".to_owned(),
                    };
                    let price = format!("${dollars:.2}");
                    Cell::Text(style.stacked(&style.stacked(&charge, &Short(cycles)), &price))
                })
            });
            [Cell::text(name)].into_iter().chain(cells).collect()
        })
        .collect();
    let mut header = vec!["new rows".to_owned()];
    header.extend(keys.iter().map(|key| style.narrow(&heading(key))));
    (!rows.is_empty()).then(|| Grid {
        title: "What those messages cost: the whole charge, cycles, and US dollars a million of \
                them"
            .to_owned(),
        header,
        rows,
        notes: notes(results, SECTION),
        lines: true,
    })
}

fn notes(results: &Results, section: &str) -> Vec<String> {
    let around = |case: &Case| {
        let measured = case.measured()?;
        let inside = measured.detail.as_ref()?.cost.inside?;
        inside.instructions.checked_sub(measured.instructions)
    };
    let mut notes = vec![format!(
        "The charge is the counter at the end and 1 000 instructions for each heap page changed. \
         Cycles are for a subnet of {} nodes, the message's base and size included; a trillion at \
         ${}.",
        Grouped(results.prices.nodes.into()),
        results.prices.usd_per_trillion_cycles
    )];
    if let Some(least) = results.section(section).filter_map(around).min() {
        notes.push(format!(
            "At least {} instructions of each charge are around the work, whatever the engine: \
             this canister decodes its argument, checks it, and encodes its reply.",
            Grouped(least)
        ));
    }
    notes
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
