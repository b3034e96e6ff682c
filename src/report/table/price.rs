//! What it costs to run: the whole charge, cycles and US dollars of messages.

use super::grid::{Cell, Grid, Style};
use super::section::columns;
use crate::report::heading;
use crate::report::number::{Grouped, Short};
use crate::report::price::{cycles, usd};
use crate::results::{Case, Results};

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
    if !results.harness.is_empty() {
        notes.push("What a message costs without work stands in a table of its own.".to_owned());
    } else if let Some(least) = results.section(section).filter_map(around).min() {
        notes.push(format!(
            "At least {} instructions of each charge are around the work, whatever the engine: \
             this canister decodes its argument, checks it, and encodes its reply.",
            Grouped(least)
        ));
    }
    notes
}
