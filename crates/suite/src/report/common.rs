//! Tables that every suite has: fixtures, settings, bytes written, single operations, and the base
//! of a message.

use super::grid::{Cell, Grid};
use super::modes::Columns;
use super::number::{Grouped, Short};
use super::price::{cycles, usd};
use super::style::Style;
use crate::engines::heading;
use crate::results::{Case, FixtureInfo, Measured, Results, Spread};

/// The size of a Wasm page in bytes.
const WASM_PAGE: u64 = 65_536;
/// The size of the pages that the replica counts, in bytes.
const OS_PAGE: u64 = 4_096;

/// Returns a table of all fixtures.
pub fn fixtures(results: &Results) -> Grid {
    let header = [
        "fixture",
        "rows",
        "payload",
        "populate",
        "a row",
        "messages",
        "stored",
        "bytes a row",
        "× payload",
        "virtual",
        "raw",
        "heap",
        "page cache",
    ];
    let rows = results.fixtures.iter().map(row).collect();
    Grid {
        title: "The fixtures after populating".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "stored: pages of the database, or nodes of the map. × payload: stored bytes divided by \
             the bytes of the texts. virtual: the virtual memories that contain them. raw: stable \
             memory, which is allocated in buckets of 8 MiB. heap: its largest size so far."
                .to_owned(),
        ],
        lines: false,
    }
}

fn row(fixture: &FixtureInfo) -> Vec<Cell> {
    let mut cells = vec![
        match fixture.name.as_str() {
            "" => Cell::text(heading(&fixture.configuration)),
            name => Cell::Text(format!("{}, {name}", heading(&fixture.configuration))),
        },
        Cell::text(Grouped(fixture.rows)),
        Cell::text(Grouped(fixture.payload.into())),
    ];
    let Some(held) = fixture.outcome.measured() else {
        cells.extend((0..10).map(|_| Cell::missing(&fixture.outcome)));
        return cells;
    };
    let rows = fixture.rows.max(1);
    let bytes = |bytes: u64| Cell::Text(format!("{}B", Short(bytes)));
    let optional = |value: Option<u64>| value.map_or(Cell::Absent, bytes);
    let payload = fixture.rows * u64::from(fixture.payload);
    cells.extend([
        Cell::text(Short(held.populate.instructions)),
        Cell::text(Grouped(held.populate.instructions / rows)),
        Cell::text(Grouped(held.populate.messages)),
        bytes(held.stored_bytes),
        Cell::text(Grouped(held.stored_bytes / rows)),
        amplification(held.stored_bytes, payload),
        optional(held.virtual_bytes),
        bytes(held.stable_pages * WASM_PAGE),
        bytes(held.heap_pages * WASM_PAGE),
        match held.sqlite {
            Some(_) => optional(held.cache_bytes),
            None => Cell::Absent,
        },
    ]);
    cells
}

fn amplification(bytes: u64, payload: u64) -> Cell {
    match payload {
        0 => Cell::Absent,
        payload => Cell::Text(format!("{:.2}", bytes as f64 / payload as f64)),
    }
}

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

/// Returns a table of SQLite's settings, as they were read back.
pub fn settings(results: &Results) -> Option<Grid> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut seen: Vec<(&str, bool)> = Vec::new();
    for fixture in &results.fixtures {
        let Some(sqlite) = fixture.outcome.measured().and_then(|held| held.sqlite.as_ref()) else {
            continue;
        };
        // A database on the heap may have other settings than one in stable memory.
        let held = fixture.outcome.measured();
        let memory = held.is_some_and(|held| held.virtual_bytes == Some(0));
        let known = (fixture.configuration.as_str(), memory);
        if seen.contains(&known) {
            continue;
        }
        seen.push(known);
        let word = |value: &dyn std::fmt::Debug| Cell::text(format!("{value:?}").to_lowercase());
        rows.push(vec![
            Cell::Text(heading(&fixture.configuration) + if memory { ", in memory" } else { "" }),
            word(&sqlite.journal_mode),
            word(&sqlite.synchronous),
            word(&sqlite.locking_mode),
            word(&sqlite.temp_store),
            Cell::text(Grouped(sqlite.page_size.into())),
            Cell::text(sqlite.cache_size),
        ]);
    }
    let header = [
        "configuration",
        "journal_mode",
        "synchronous",
        "locking_mode",
        "temp_store",
        "page_size",
        "cache_size",
    ];
    (!rows.is_empty()).then(|| Grid {
        title: "The settings of SQLite, read back".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: Vec::new(),
        lines: false,
    })
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
