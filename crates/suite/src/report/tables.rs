//! Results as tables: section by section, then the fixtures and their settings, advice, and the origin
//! of the figures.
//!
//! Each row of a section's table is a case, and each column a configuration. The case `10 000 rows:
//! read 100 uniform` is in a separate table, "read 100 uniform", in the row "10 000 rows".

use std::fmt::Write;

use anyhow::Result;
use stablebench_protocol::{JournalMode, LockingMode};

use super::grid::{BEST, Cell, Columns, Grid, Style, cheapest, row_heading};
use super::number::{Grouped, Rows, Short};
use super::price;
use super::{Presentation, advice};
use crate::engines::{heading, is_floor};
use crate::results::{Case, FixtureInfo, Measured, Outcome, Results};

/// Returns all tables of some results as text.
///
/// # Errors
///
/// If published figures cannot be read.
pub fn tables(suite: &dyn Presentation, results: &Results, style: Style) -> Result<String> {
    let grids = grids(suite, results, style)?;
    let mut text = incomplete(results).map_or_else(String::new, |it| style.sentence(&it) + "\n\n");
    for grid in &grids {
        writeln!(text, "{}", grid.render(style))?;
    }
    let advice = if suite.compares_engines() { advice::advice(results, style) } else { Vec::new() };
    for (title, sentences) in advice {
        writeln!(text, "{}\n", style.heading(title))?;
        for sentence in sentences {
            writeln!(text, "{}", style.item(&sentence))?;
        }
        writeln!(text)?;
    }
    let marks = grids.iter().any(Grid::marks_best);
    text.push_str(&notes(suite, results, marks, style)?);
    Ok(text)
}

/// Returns all tables of some results, in the order in which they are printed.
///
/// # Errors
///
/// If published figures cannot be read.
pub fn grids(suite: &dyn Presentation, results: &Results, style: Style) -> Result<Vec<Grid>> {
    let mut sections: Vec<&str> = Vec::new();
    if suite.has_section_tables() {
        for case in &results.cases {
            if !sections.contains(&case.section.as_str()) {
                sections.push(&case.section);
            }
        }
    }
    let mut grids: Vec<Grid> = Vec::new();
    for section in sections {
        grids.extend(section_tables(suite, results, section, style));
        grids.extend(suite.after_section(results, section, style)?);
    }
    grids.extend(suite.tables(results, style)?);
    grids.extend(price::spread(results));
    grids.extend(price::harness(results));
    if suite.compares_engines() {
        grids.extend(price::writes(results, style));
    }
    if !results.fixtures.is_empty() {
        grids.extend(suite.lists_fixtures().then(|| fixtures(results)));
        if suite.compares_engines() {
            grids.extend(settings(results));
        }
    }
    Ok(grids)
}

/// Says how much of a run is missing, if it is not complete.
pub fn incomplete(results: &Results) -> Option<String> {
    let planned = results.planned?;
    Some(format!(
        "NOT COMPLETE: {} of {} cases were measured. The others may change what is said here.",
        Grouped(results.cases.len() as u64),
        Grouped(planned)
    ))
}

/// Returns the tables that contain more than the cases of a section: ratios, published figures,
/// fixtures.
///
/// # Errors
///
/// If published figures cannot be read.
pub fn summaries(suite: &dyn Presentation, results: &Results) -> Result<Vec<Grid>> {
    let mut grids = suite.summaries(results)?;
    grids.extend(price::harness(results));
    if suite.compares_engines() {
        grids.extend(price::writes(results, Style::MARKDOWN));
    }
    grids.extend(suite.lists_fixtures().then(|| fixtures(results)));
    grids.retain(|grid| !grid.rows.is_empty());
    Ok(grids)
}

/// The configuration that others are compared with.
pub const BASE: &str = "btree";

/// Returns the tables of the section's cases.
fn section_tables(
    suite: &dyn Presentation,
    results: &Results,
    section: &str,
    style: Style,
) -> Vec<Grid> {
    let mut tables: Vec<&str> = Vec::new();
    for case in results.section(section) {
        let (table, _) = split(case);
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    let capacity = results
        .section(section)
        .any(|case| case.measured().is_some_and(|measured| measured.capacity.is_some()));
    let mut grids: Vec<Grid> = match section {
        "settings" => vec![transposed(suite, results, section, style)],
        _ => tables.iter().map(|table| grid(suite, results, section, table, style)).collect(),
    };
    if let Some(last) = grids.last_mut() {
        last.notes.extend(reasons(results, section));
        if capacity {
            last.notes.push(
                "≥: the largest possible number fits. Otherwise, a number that is larger by at most \
                 a thousandth does not fit."
                    .to_owned(),
            );
        }
    }
    grids
}

/// Returns the names of the case's table and row.
fn split(case: &Case) -> (&str, &str) {
    match case.name.split_once(": ") {
        Some((row, table)) => (table, row),
        None if case.section == "insert" => case.name.split_once(' ').unwrap_or(("", &case.name)),
        None => ("", &case.name),
    }
}

/// Returns `true` if the numbers of a section are those of messages, not of operations.
fn of_message(section: &str) -> bool {
    matches!(section, "insert" | "base" | "locality")
}

fn title(suite: &dyn Presentation, results: &Results, section: &str, table: &str) -> String {
    let what = suite.section(section).unwrap_or_else(|| section.to_owned());
    let unit = match section {
        "capacity" => "",
        _ if of_message(section) => ": instructions of the message",
        _ => ": instructions an operation",
    };
    let mut title = format!("{what}{unit}");
    if !table.is_empty() {
        title = format!("{title}, {table}");
    }
    let mut sizes: Vec<(u64, u32)> =
        results.section(section).map(|case| (case.rows, case.payload)).collect();
    sizes.dedup();
    match sizes[..] {
        [(rows, payload)] => format!("{title}, {}", Rows { rows, payload }),
        _ => title,
    }
}

fn grid(
    suite: &dyn Presentation,
    results: &Results,
    section: &str,
    table: &str,
    style: Style,
) -> Grid {
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for case in results.section(section) {
        let (its, row) = split(case);
        if its == table && !rows.iter().any(|(name, _)| *name == case.name) {
            rows.push((case.name.as_str(), row));
        }
    }
    let columns = Columns::of_section(results, section, results.configurations_of(section), style);
    let keys = &columns.shown;
    let mut header = vec![row_heading(section).to_owned()];
    header.extend(keys.iter().map(|key| style.narrow(&columns.heading(key))));
    let rows = rows.into_iter().map(|(name, label)| {
        let rank = |key: &str| {
            let number = figure(results.case(section, name, key)?, section)?;
            // The more rows fit, the better.
            Some(if section == "capacity" { u64::MAX - number } else { number })
        };
        let case = |key: &&str| results.case(section, name, columns.best(key, rank));
        let cases: Vec<Option<&Case>> = keys.iter().map(case).collect();
        [Cell::text(label)].into_iter().chain(numbers(&cases, section)).collect()
    });
    Grid {
        title: title(suite, results, section, table),
        header,
        rows: rows.collect(),
        notes: columns.note().into_iter().collect(),
        lines: section == "insert",
    }
}

/// Returns a table in which each row is a configuration and each column a case.
fn transposed(suite: &dyn Presentation, results: &Results, section: &str, style: Style) -> Grid {
    let names = results.names(section);
    let mut header = vec!["setting".to_owned()];
    header.extend(names.iter().map(|name| {
        let name = name.strip_suffix(", warm").unwrap_or(name);
        style.narrow(name)
    }));
    let best = |name: &str| {
        let cases = results.section(section).filter(|case| case.name == name);
        cheapest(cases.filter_map(|case| case.measured().map(Measured::each_operation)))
    };
    let rows = results.configurations_of(section).into_iter().map(|key| {
        let cells = names.iter().map(|name| match results.case(section, name, key) {
            None => Cell::Absent,
            Some(case) => match case.measured() {
                None => Cell::missing(&case.outcome),
                Some(measured) => {
                    let value = measured.each_operation();
                    Cell::Number { value, base: None, best: Some(value) == best(name) }
                }
            },
        });
        [Cell::text(key.strip_prefix("sqlite/").unwrap_or(key))].into_iter().chain(cells).collect()
    });
    let mut grid = Grid {
        title: title(suite, results, section, ""),
        header,
        rows: rows.collect(),
        notes: Vec::new(),
        lines: false,
    };
    if grid.marks_best() {
        grid.notes.push("Bold or * marks the cheapest of a column.".to_owned());
    }
    grid
}

/// Returns the number that the table of a section shows for a case.
fn figure(case: &Case, section: &str) -> Option<u64> {
    let measured = case.measured()?;
    Some(match section {
        _ if of_message(section) => measured.instructions,
        "capacity" => measured.operations,
        _ => measured.each_operation(),
    })
}

/// Returns the numbers of a row, with the best one marked.
fn numbers(cases: &[Option<&Case>], section: &str) -> Vec<Cell> {
    let value = |case: &Case| figure(case, section);
    let rated = cases.iter().flatten().filter(|case| !is_floor(&case.configuration));
    let rated: Vec<u64> = rated.filter_map(|case| value(case)).collect();
    let best = match section {
        "capacity" => rated.iter().copied().max().filter(|_| rated.len() > 1),
        _ => cheapest(rated),
    };
    let base =
        cases.iter().flatten().find(|case| case.configuration == BASE).and_then(|case| value(case));
    let cells = cases.iter().map(|case| {
        let Some(case) = case else { return Cell::Absent };
        let Some(number) = value(case) else { return Cell::missing(&case.outcome) };
        let unbounded = case.measured().and_then(|measured| measured.capacity.as_ref());
        if unbounded.is_some_and(|capacity| capacity.exceeds.is_none()) {
            return Cell::Text(format!("≥ {}", Grouped(number)));
        }
        let base = base.filter(|_| section == "insert");
        Cell::Number {
            value: number,
            base,
            best: Some(number) == best && !is_floor(&case.configuration),
        }
    });
    cells.collect()
}

/// Returns the reasons for missing numbers, each once.
fn reasons(results: &Results, section: &str) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for case in results.section(section) {
        let (mark, reason) = match &case.outcome {
            Outcome::Measured(_) => continue,
            Outcome::NotApplicable { reason } => ("n/a", reason),
            Outcome::Failed { reason } => ("failed", reason),
        };
        let line = format!("{mark}: {}: {reason}", heading(&case.configuration));
        if !reasons.contains(&line) {
            reasons.push(line);
        }
    }
    reasons
}

fn notes(suite: &dyn Presentation, results: &Results, marks: bool, style: Style) -> Result<String> {
    let mut text = String::new();
    let detail = results.cases.iter().find_map(|case| case.measured()?.detail.as_ref());
    if let Some(detail) = detail {
        if let Some(note) = suite.note(results) {
            writeln!(text, "{}", style.sentence(&note))?;
        }
        if suite.has_section_tables() && marks {
            let best = if style.markdown { "Bold" } else { BEST };
            writeln!(text, "{best} marks the cheapest of a row.")?;
        }
        let mut counted = match detail.counter_overhead {
            0 => "Instructions are those of whole messages.".to_owned(),
            overhead => format!(
                "Instructions are read from performance_counter(0) inside of the canister. Reading \
                 it twice costs {overhead}, which are not subtracted."
            ),
        };
        if let Some(seen) = price::counter(&results.replica.rules) {
            counted = format!("{counted}\n{seen}");
        }
        writeln!(text, "{}", style.sentence(&counted))?;
    }
    // In rusqlite, in exclusive locking mode.
    let deletes = |results: &Results| {
        let of_rusqlite = |key: &str| {
            let configuration =
                results.configurations.iter().find(|configuration| configuration.key == key);
            configuration.is_none_or(|configuration| configuration.canister == "bench")
        };
        results.fixtures.iter().filter(|fixture| of_rusqlite(&fixture.configuration)).any(
            |fixture| {
                let sqlite = fixture.outcome.measured().and_then(|held| held.sqlite.as_ref());
                sqlite.is_some_and(|sqlite| {
                    (sqlite.locking_mode, sqlite.journal_mode)
                        == (LockingMode::Exclusive, JournalMode::Delete)
                })
            },
        )
    };
    if suite.compares_engines() && deletes(results) {
        let open = "In exclusive locking mode, ic-rusqlite's default, SQLite keeps the journal \
                    file open: DELETE then overwrites its header.";
        writeln!(text, "{}", style.sentence(open))?;
    }
    writeln!(text)?;
    let mut before = String::new();
    for canister in &results.canisters {
        let versions: Vec<String> = canister
            .crates
            .iter()
            .map(|version| format!("{} {}", version.name, version.version))
            .chain(canister.sqlite.iter().map(|sqlite| format!("SQLite {}", sqlite.version)))
            .collect();
        let versions = versions.join(", ");
        let hash = &canister.sha256[..canister.sha256.len().min(16)];
        let measured = match versions == before {
            true => format!("Canister {} {hash}: the same versions", canister.name),
            false => format!("Canister {} {hash}: {versions}", canister.name),
        };
        writeln!(text, "{}", style.sentence(&measured))?;
        before = versions;
    }
    let ran = format!(
        "Replica {} {}, rules {}, stablebench {}{}",
        results.replica.kind,
        results.replica.version,
        results.replica.rules,
        results.stablebench,
        results.revision.as_ref().map(|revision| format!(" {revision}")).unwrap_or_default()
    );
    writeln!(text, "{}", style.sentence(&ran))?;
    writeln!(text, "Repeat with: {}", results.command)?;
    Ok(text)
}

/// The size of a Wasm page in bytes.
const WASM_PAGE: u64 = 65_536;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PLAIN;
    use crate::results::sample::{case, full, of};

    /// Of modes that are about equal, the best number is shown and marked.
    #[test]
    fn a_joined_column_shows_the_best_number() {
        for (section, best) in [("insert", 100), ("capacity", 105)] {
            let numbers = [("persist", 105), ("delete", 100), ("wal", 101)];
            let cases = numbers.map(|(mode, number)| {
                let mut case = case(section, "10: middle", &format!("sqlite/{mode}"), number);
                let Outcome::Measured(measured) = &mut case.outcome else { panic!("not measured") };
                measured.operations = number;
                case
            });
            // The map is worse in both: one row fits, and 103 instructions.
            let map = case(section, "10: middle", "btree", 103);
            let results = of(cases.into_iter().chain([map]).collect());
            let table = grid(&PLAIN, &results, section, "middle", Style::default());
            let shown = table.rows.iter().flatten().filter_map(|cell| match cell {
                Cell::Number { value, best, .. } => Some((*value, *best)),
                _ => None,
            });
            let shown: Vec<(u64, bool)> = shown.collect();
            assert!(shown.contains(&(best, true)), "{section}: {shown:?}");
        }
    }

    #[test]
    fn the_note_on_delete_is_for_runs_with_delete() {
        for (mode, noted) in
            [(JournalMode::Delete, true), (JournalMode::Persist, false), (JournalMode::Wal, false)]
        {
            let mut results = full();
            let Outcome::Measured(held) = &mut results.fixtures[0].outcome else {
                panic!("no fixture")
            };
            held.sqlite.as_mut().unwrap().journal_mode = mode;
            let text = notes(&PLAIN, &results, true, Style::default()).unwrap();
            assert_eq!(text.contains("DELETE then overwrites its header"), noted, "{mode:?}");
            assert!(!text.contains("PERSIST"), "{text}");
        }
    }
}
