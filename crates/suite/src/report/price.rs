//! What messages cost besides the instructions of their work: charge, cycles and US dollars, bytes written,
//! single operations, and the base of a message. Sentences say how a rule set charges.

use serde::Serialize;
use stablebench_replica::Rules;

use super::grid::{Cell, Columns, Grid, Style, row_heading};
use super::number::{Grouped, Short};
use crate::cost::Inside;
use crate::engines::heading;
use crate::results::{Case, Detail, Measured, Prices, Results, Spread};

/// The number of nodes of the subnet for which the replica charges.
pub const CHARGED_NODES: u64 = 13;

/// The fees of a rule set that the page uses, in cycles on an application subnet of
/// [`CHARGED_NODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fees {
    /// Execution of an update.
    pub execution: u128,
    /// Receipt of an ingress message.
    pub ingress: u128,
    /// A byte of an ingress message.
    pub ingress_byte: u128,
    /// An instruction.
    pub instruction: u128,
    /// A GiB of memory for a second.
    pub storage_gib_second: u128,
    /// A canister for a second, whatever its size.
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

/// Scales cycles from a subnet of [`CHARGED_NODES`] to the subnet of the prices.
pub fn cycles(charged: u64, prices: &Prices) -> u64 {
    let scaled = u128::from(charged) * u128::from(prices.nodes) / u128::from(CHARGED_NODES);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Returns the price of a number of messages in US dollars.
pub fn usd(cycles: u64, messages: f64, prices: &Prices) -> f64 {
    cycles as f64 / 1e12 * prices.usd_per_trillion_cycles * messages
}

/// Divides a sum by the number of operations, rounded.
fn a_piece(sum: u64, of: &Measured) -> u64 {
    let operations = of.operations.max(1);
    (sum + operations / 2) / operations
}

/// Returns compute, heap pages and stable pages of an operation, if they are known.
fn pages(of: &Measured) -> Option<[u64; 3]> {
    let pages = of.detail.as_ref()?.pages?;
    // Rows are copied between the readings of the counter, whose pages are not subtracted.
    let compute = of.instructions.saturating_sub(pages.heap).saturating_sub(pages.stable);
    Some([compute, pages.heap, pages.stable].map(|sum| a_piece(sum, of)))
}

/// Returns the cells of an operation's compute, heap pages, stable pages, cycles, and price of a million.
pub fn costs(results: &Results, of: &Measured) -> Vec<Cell> {
    let mut cells: Vec<Cell> = match pages(of) {
        Some(pages) => pages.map(|part| Cell::text(Short(part))).to_vec(),
        None => vec![Cell::Absent; 3],
    };
    let charged = of.detail.as_ref().map(|detail| cycles(detail.cost.cycles, &results.prices));
    let charged = charged.map(|charged| a_piece(charged, of));
    cells.push(charged.map_or(Cell::Absent, |charged| Cell::text(Short(charged))));
    cells.push(charged.map_or(Cell::Absent, |charged| {
        Cell::Text(format!("${:.2}", usd(charged, 1e6, &results.prices)))
    }));
    cells
}

/// Returns a table of the charge, the cycles and the price of the messages of the section `insert`.
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
        "The cost of these messages: the whole charge, cycles, and US dollars for a million";
    titled(title, notes(results), cells(results, "insert", style, price))
}

/// Returns a table of compute, heap pages and stable pages in the charge of a section's messages,
/// if they are known.
pub fn parts(results: &Results, section: &str, title: &str, style: Style) -> Option<Grid> {
    let title = format!("{title}: compute, heap pages and stable pages in the charge");
    let note = format!(
        "Instructions of all messages of a case under the rules {}. Compute is everything except \
         pages. The three add up to the whole charge.",
        results.replica.rules
    );
    let parts = |detail: &Detail| parts_of(&detail.cost.inside?);
    let text = |detail: &Detail| {
        let [compute, heap, stable] = parts(detail)?.map(Short);
        Some(style.stacked(&style.stacked(&compute, &heap), &stable))
    };
    titled(&title, vec![note], cells(results, section, style, text))
}

/// Returns the table with a title, and with these notes after its own.
fn titled(title: &str, notes: Vec<String>, mut grid: Grid) -> Option<Grid> {
    title.clone_into(&mut grid.title);
    grid.notes.extend(notes);
    (!grid.rows.is_empty()).then_some(grid)
}

/// Returns the parts of a charge, if they are known.
fn parts_of(inside: &Inside) -> Option<[u64; 3]> {
    let pages = inside.pages?;
    Some([pages.compute(inside.charge)?, pages.heap, pages.stable])
}

/// Returns a table with a row for each case that has a text for any configuration.
fn cells(
    results: &Results,
    section: &str,
    style: Style,
    text: impl Fn(&Detail) -> Option<String>,
) -> Grid {
    let of = |case: &Case| text(case.measured()?.detail.as_ref()?);
    let mut names: Vec<&str> = Vec::new();
    for case in results.section(section) {
        if !names.contains(&case.name.as_str()) && of(case).is_some() {
            names.push(&case.name);
        }
    }
    let columns = Columns::of_section(results, section, results.configurations_of(section), style);
    let keys = &columns.shown;
    let row = |name: &&str| {
        let measured = |key: &str| results.case(section, name, key)?.measured();
        // Of equal modes, the one whose instructions are shown.
        let cost = |key: &str| measured(key).map(|measured| measured.instructions);
        let cell = |key: &&str| results.case(section, name, columns.best(key, cost)).and_then(of);
        let cells = keys.iter().map(|key| cell(key).map_or(Cell::Absent, Cell::Text));
        [Cell::text(name)].into_iter().chain(cells).collect()
    };
    let mut header = vec![row_heading(section).to_owned()];
    header.extend(keys.iter().map(|key| style.narrow(&columns.heading(key))));
    Grid {
        header,
        rows: names.iter().map(row).collect(),
        notes: columns.note().into_iter().collect(),
        lines: true,
        ..Grid::default()
    }
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
        charge(&results.replica.rules),
        Grouped(results.prices.nodes.into()),
        results.prices.usd_per_trillion_cycles
    )];
    if !results.harness.is_empty() {
        notes.push("A separate table shows the cost of a message without work.".to_owned());
    } else if let Some(least) = results.section("insert").filter_map(around).min() {
        notes.push(format!(
            "At least {} instructions of each charge are not part of the work, with any engine: \
             the canister decodes its argument, checks it, and encodes its reply.",
            Grouped(least)
        ));
    }
    notes
}

/// Returns a sentence about the content of a message's charge.
pub fn charge(name: &str) -> String {
    let Ok(rules) = name.parse::<Rules>() else {
        return format!("Rules {name}: the content of the charge is not known.");
    };
    let pages = rules.pages();
    if rules.charges_touches() {
        return format!(
            "Rules {name}: the charge is the counter at the end. It includes {} instructions for \
             the first touch of each Wasm page (64 KiB) of heap or stable memory in a message, and \
             another {} for its first write.",
            Grouped(pages.wasm_page_touched.get()),
            Grouped(pages.wasm_page_written.get()),
        );
    }
    format!(
        "Rules {name}: the charge is the counter at the end and {} instructions for each heap page \
         (4 KiB) changed. The counter includes {} for each page of stable memory (4 KiB) written.",
        Grouped(pages.heap_os_page_changed.get()),
        Grouped(pages.stable_os_page_written.get()),
    )
}

/// Returns a sentence about the part of the charge that the counter shows, if it is known.
pub fn counter(name: &str) -> Option<&'static str> {
    Some(if name.parse::<Rules>().ok()?.charges_touches() {
        "The counter includes the cost of touching pages of heap and stable memory."
    } else {
        "The counter does not include changed heap pages; the whole charge does."
    })
}

/// The size of the pages that the replica counts, in bytes.
const OS_PAGE: u64 = 4_096;

/// Returns a table of the bytes written to stable memory per byte of text, for cases that write.
/// `None` if the replica did not report them.
pub fn writes(results: &Results, style: Style) -> Option<Grid> {
    let mut rows = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    let configurations: Vec<&str> =
        results.configurations.iter().map(|configuration| configuration.key.as_str()).collect();
    for case in &results.cases {
        let wanted = matches!(case.section.as_str(), "insert" | "transactions" | "work");
        let name = (case.section.as_str(), case.name.as_str());
        if wanted && case.measured().and_then(written).is_some() && !names.contains(&name) {
            names.push(name);
        }
    }
    let measured: Vec<&str> = configurations
        .into_iter()
        .filter(|key| {
            names.iter().any(|(section, name)| results.case(section, name, key).is_some())
        })
        .collect();
    let of = |(section, name): &(&str, &str), key: &str| {
        results.case(section, name, key).and_then(|case| case.measured()).and_then(written)
    };
    let columns = Columns::of(results, measured, style, |key| {
        let figures = names.iter().map(|name| of(name, key));
        figures.flat_map(|written| [written.map(|of| of.0), written.map(|of| of.1)]).collect()
    });
    for name in &names {
        let best = |key| columns.best(key, |key| of(name, key));
        let cells = columns.shown.iter().map(|key| match of(name, best(key)) {
            Some((bytes, pages, payload)) => Cell::Text(format!(
                "{:.2} / {:.2}",
                bytes as f64 / payload as f64,
                pages as f64 * OS_PAGE as f64 / payload as f64
            )),
            None => Cell::Absent,
        });
        let (section, name) = name;
        rows.push([Cell::text(format!("{section}: {name}"))].into_iter().chain(cells).collect());
    }
    let mut header = vec![String::new()];
    header.extend(columns.shown.iter().map(|key| columns.heading(key)));
    let mut notes: Vec<String> = columns.note().into_iter().collect();
    notes.push(
        "Bytes passed to stable_write, and bytes of the pages of 4 KiB that they touch, each divided \
         by the bytes of the texts written."
            .to_owned(),
    );
    (!rows.is_empty()).then(|| Grid {
        title: "Bytes written to stable memory for a byte of text".to_owned(),
        header,
        rows,
        notes,
        lines: false,
    })
}

/// Returns the bytes and the pages written to stable memory, and the bytes of the texts.
pub fn written(measured: &Measured) -> Option<(u64, u64, u64)> {
    let detail = measured.detail.as_ref()?;
    detail.digest?;
    let inside = detail.cost.inside?;
    let payload = detail.bytes.filter(|bytes| *bytes > 0)?;
    Some((inside.stable_calls?.bytes_written, inside.stable_pages_written, payload))
}

/// The minimum number of operations of a case in [`spread`]: percentiles of fewer are not useful.
const FEWEST: u64 = 100;

/// Returns a table of the cases with many operations that were measured one by one.
pub fn spread(results: &Results) -> Option<Grid> {
    let measured = |case: &Case| {
        let measured = case.measured().filter(|measured| measured.operations >= FEWEST)?;
        // Operations with a description are in the suite's own tables.
        measured.each.clone().filter(|each| each.worst_work.is_none())
    };
    let rows: Vec<Vec<Cell>> = results
        .cases
        .iter()
        .filter_map(|case| Some(spread_row(results, case, &measured(case)?)))
        .collect();
    let header = [
        "case",
        "configuration",
        "operations",
        "min",
        "p50",
        "p90",
        "p99",
        "max",
        "most expensive",
        "allocating",
    ];
    (!rows.is_empty()).then(|| Grid {
        title: "Instructions of single operations".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "Each operation is measured by itself, in one transaction, whose begin and commit are \
             not included. most expensive: its instructions, its number, from 1, the row's id, and \
             the nodes or pages that it allocated. allocating: operations that allocated or freed \
             nodes or pages, and their mean."
                .to_owned(),
        ],
        lines: false,
    })
}

fn spread_row(results: &Results, case: &Case, spread: &Spread) -> Vec<Cell> {
    let worst = spread.worst;
    let took = match worst.allocated {
        0 => String::new(),
        units => format!(", {units:+} {}", unit(results, &case.configuration, units)),
    };
    let allocating = match spread.allocating {
        0 => Cell::Absent,
        count => {
            Cell::Text(format!("{} × {}", Grouped(count), Grouped(spread.allocating_sum / count)))
        }
    };
    let operations = case.measured().map_or(0, |measured| measured.operations);
    vec![
        Cell::Text(format!("{}: {}", case.section, case.name)),
        Cell::text(heading(&case.configuration)),
        Cell::text(Grouped(operations)),
        Cell::text(Grouped(spread.min)),
        Cell::text(Grouped(spread.p50)),
        Cell::text(Grouped(spread.p90)),
        Cell::text(Grouped(spread.p99)),
        Cell::text(Grouped(spread.max)),
        Cell::Text(format!("{} (id {}){took}", Grouped(worst.index + 1), Grouped(worst.id))),
        allocating,
    ]
}

/// Returns the name of the units in which an engine allocates storage.
fn unit(results: &Results, configuration: &str, units: i64) -> &'static str {
    let configuration = results.configurations.iter().find(|other| other.key == configuration);
    let nodes = configuration
        .is_some_and(|configuration| configuration.engine == stablebench_protocol::Engine::BTREE);
    match (nodes, units.abs()) {
        (true, 1) => "node",
        (true, _) => "nodes",
        (false, 1) => "page",
        (false, _) => "pages",
    }
}

/// Returns a table of the message without work of each canister, with its price.
pub fn harness(results: &Results) -> Option<Grid> {
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
                Cell::text(&case.configuration),
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
             its heap pages are the stack, globals and the allocator. Each charge includes this \
             part, which is not the engine's."
                .to_owned(),
        ],
        lines: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::PageCosts;
    use crate::results::{Outcome, sample};

    #[test]
    fn cycles_scale_with_nodes() {
        let prices = |nodes| Prices { nodes, usd_per_trillion_cycles: 1.5 };
        assert_eq!(cycles(13_000_000, &prices(13)), 13_000_000);
        assert_eq!(cycles(13_000_000, &prices(34)), 34_000_000);
        assert_eq!(usd(2_000_000_000_000, 3.0, &prices(13)), 9.0);
    }

    /// The cost of a GiB for a year of 365 days.
    #[test]
    fn a_gib_for_a_year() {
        let year = |rules| Fees::from(rules).storage_gib_second * 31_536_000;
        let found = [Rules::of_2025_10(), Rules::of_2026_08()].map(year);
        assert_eq!(found, [4_005_072_000_000, 10_012_680_000_000]);
    }

    fn texts(results: &Results) -> Vec<(String, String, String)> {
        let style = Style::MARKDOWN;
        let grids = [grid(results, style), parts(results, "insert", "Inserts", style)];
        let text =
            |grid: &Grid| (grid.title.clone(), grid.texts()[0][1].clone(), grid.notes.join(" "));
        grids.iter().flatten().map(text).collect()
    }

    #[test]
    fn the_parts_of_a_charge_are_below_it() {
        let found = texts(&sample::full());
        assert_eq!(found.len(), 2);
        assert!(found[0].1.starts_with("241<br>39<br>"), "{}", found[0].1);
        assert_eq!(found[1].1, "90<br>75<br>76");
        assert!(
            found[0].2.starts_with("Rules 2026-08: the charge is the counter at the end. It incl")
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

    #[test]
    fn every_rule_set_has_a_description() {
        for name in Rules::SETS.iter().chain(Rules::VARIANTS) {
            assert!(charge(name).starts_with(&format!("Rules {name}: the charge is")));
            assert!(counter(name).is_some(), "{name}");
        }
        assert!(charge("2025-10").contains(" 1 000 instructions for each heap page"));
        assert!(charge("2026-08").contains(" 80 000 instructions for the first touch"));
        assert_eq!(charge("unknown"), "Rules unknown: the content of the charge is not known.");
        assert_eq!(counter("unknown"), None);
    }
}
