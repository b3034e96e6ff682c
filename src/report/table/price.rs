//! What it costs to run: the whole charge and its parts, cycles and US dollars of messages.

use super::grid::{Cell, Grid, Style};
use super::section::columns;
use crate::replica::Inside;
use crate::report::heading;
use crate::report::number::{Grouped, Short};
use crate::report::price::{cycles, usd};
use crate::report::rules;
use crate::results::{Case, Detail, Results};
use crate::suites;

/// Charge, cycles and price of the messages of the section `insert`.
pub fn grid(results: &Results, style: Style) -> Option<Grid> {
    let price = |detail: &Detail| {
        const MESSAGES: f64 = 1e6;
        let cycles = cycles(detail.cost.cycles, &results.prices);
        let dollars = usd(cycles, MESSAGES, &results.prices);
        let charge = match detail.cost.inside {
            Some(inside) => Short(inside.charge).to_string(),
            None => "–".to_owned(),
        };
        let price = format!("${dollars:.2}");
        Some(style.stacked(&style.stacked(&charge, &Short(cycles)), &price))
    };
    let title =
        "What those messages cost: the whole charge, cycles, and US dollars a million of them";
    titled(title, notes(results), cells(results, "insert", style, price))
}

/// Compute, heap pages and stable pages in the charge of a section's messages, where they are
/// known.
pub fn parts(results: &Results, section: &str, style: Style) -> Option<Grid> {
    let name = suites::describe(&results.suite, section)?;
    let title = format!("{name}: compute, heap pages and stable pages in the charge");
    let note = format!(
        "Instructions of all messages of a case under the rules {}. Compute is what is not for \
         pages; the three add up to the whole charge.",
        results.replica.rules
    );
    let parts = |detail: &Detail| parts_of(&detail.cost.inside?, style);
    titled(&title, vec![note], cells(results, section, style, parts))
}

fn titled(
    title: &str,
    notes: Vec<String>,
    (header, rows): (Vec<String>, Vec<Vec<Cell>>),
) -> Option<Grid> {
    let title = title.to_owned();
    (!rows.is_empty()).then_some(Grid { title, header, rows, notes, lines: true })
}

/// The parts of a charge, where they are known.
fn parts_of(inside: &Inside, style: Style) -> Option<String> {
    let pages = inside.pages?;
    let [compute, heap, stable] =
        [pages.compute(inside.charge)?, pages.heap, pages.stable].map(Short);
    Some(style.stacked(&style.stacked(&compute, &heap), &stable))
}

/// Headings, and a row for each case that has a text in some column.
fn cells(
    results: &Results,
    section: &str,
    style: Style,
    text: impl Fn(&Detail) -> Option<String>,
) -> (Vec<String>, Vec<Vec<Cell>>) {
    let keys = columns(results, section);
    let of = |case: &Case| text(case.measured()?.detail.as_ref()?);
    let mut names: Vec<&str> = Vec::new();
    for case in results.section(section) {
        if !names.contains(&case.name.as_str()) && of(case).is_some() {
            names.push(&case.name);
        }
    }
    let row = |name: &&str| {
        let cell = |key: &&str| results.case(section, name, key).and_then(of);
        let cells = keys.iter().map(|key| cell(key).map_or(Cell::Absent, Cell::Text));
        [Cell::text(name)].into_iter().chain(cells).collect()
    };
    let mut header = vec![super::section::row_heading(section).to_owned()];
    header.extend(keys.iter().map(|key| style.narrow(&heading(key))));
    (header, names.iter().map(row).collect())
}

fn notes(results: &Results) -> Vec<String> {
    let around = |case: &Case| {
        let measured = case.measured()?;
        let inside = measured.detail.as_ref()?.cost.inside?;
        inside.instructions.checked_sub(measured.instructions)
    };
    let mut notes = vec![format!(
        "{} Cycles are for a subnet of {} nodes, the message's base and size included; a trillion \
         at ${}.",
        rules::charge(&results.replica.rules),
        Grouped(results.prices.nodes.into()),
        results.prices.usd_per_trillion_cycles
    )];
    if !results.harness.is_empty() {
        notes.push("What a message costs without work stands in a table of its own.".to_owned());
    } else if let Some(least) = results.section("insert").filter_map(around).min() {
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
    use crate::replica::PageCosts;
    use crate::results::{Outcome, sample};

    fn texts(results: &Results) -> Vec<(String, String, String)> {
        let style = Style::MARKDOWN;
        let grids = [grid(results, style), parts(results, "insert", style)];
        let text =
            |grid: &Grid| (grid.title.clone(), grid.texts()[0][1].clone(), grid.notes.join(" "));
        grids.iter().flatten().map(text).collect()
    }

    #[test]
    fn the_parts_of_a_charge_stand_below_it() {
        let found = texts(&sample::full());
        assert_eq!(found.len(), 2);
        assert!(found[0].1.starts_with("241<br>39<br>"), "{}", found[0].1);
        assert_eq!(found[1].1, "90<br>75<br>76");
        assert!(
            found[0].2.starts_with("Rules 2026-08: the charge is the counter at the end. It holds")
        );
        assert!(found[1].2.contains("under the rules 2026-08."));
    }

    #[test]
    fn without_parts_there_is_the_charge_alone() {
        let mut results = sample::full();
        results.replica.rules = "2025-10".to_owned();
        let Outcome::Measured(measured) = &mut results.cases[0].outcome else { panic!() };
        let inside = measured.detail.as_mut().unwrap().cost.inside.as_mut().unwrap();
        // More than the whole charge is no part of it.
        inside.pages = Some(PageCosts { heap: 242, stable: 0, touched: None });
        assert_eq!(texts(&results).len(), 1);
        let Outcome::Measured(measured) = &mut results.cases[0].outcome else { panic!() };
        measured.detail.as_mut().unwrap().cost.inside.as_mut().unwrap().pages = None;
        let found = texts(&results);
        assert_eq!(found.len(), 1);
        assert!(found[0].2.contains("1 000 instructions for each heap page (4 KiB) changed."));
    }
}
