//! What a measured message costs without work.

use super::grid::{Cell, Grid};
use crate::report::number::Grouped;
use crate::report::price::{cycles, usd};
use crate::results::Results;

/// The message without work of each canister: the whole of it, and its price.
pub fn grid(results: &Results) -> Option<Grid> {
    const MESSAGES: f64 = 1e6;
    let rows: Vec<Vec<Cell>> = results
        .harness
        .iter()
        .filter_map(|case| {
            let cost = case.measured()?.detail.as_ref()?.cost;
            let pages = cost.inside.and_then(|inside| Some((inside, inside.pages?)));
            let number =
                |value: Option<u64>| value.map_or(Cell::Absent, |value| Cell::text(Grouped(value)));
            let cycles = cycles(cost.cycles, &results.prices);
            let dollars = usd(cycles, MESSAGES, &results.prices);
            Some(vec![
                Cell::text(&case.column),
                number(cost.inside.map(|inside| inside.charge)),
                number(pages.and_then(|(inside, pages)| pages.compute(inside.charge))),
                number(pages.map(|(_, pages)| pages.heap)),
                number(pages.map(|(_, pages)| pages.stable)),
                Cell::text(Grouped(cycles)),
                Cell::Text(format!("${dollars:.2}")),
            ])
        })
        .collect();
    let header =
        ["canister", "charge", "compute", "heap pages", "stable pages", "cycles", "$ a million"];
    (!rows.is_empty()).then(|| Grid {
        title: "The base of a message: one without work".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "The message reads the call's id, checks the caller, reads the counter, and replies; \
             its heap pages are the stack, globals and the allocator. That much of each charge \
             is not the engine's. It is not subtracted."
                .to_owned(),
        ],
        lines: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    #[test]
    fn each_canister_has_a_row() {
        let mut results = sample::full();
        assert!(grid(&results).is_none());
        results.harness = vec![results.cases[0].clone()];
        results.harness[0].column = "bench".to_owned();
        let grid = grid(&results).unwrap();
        let shown = ["bench", "241", "90", "75", "76", "39", "$0.00"].map(Cell::text);
        assert_eq!(grid.rows, [shown.to_vec()]);
    }
}
