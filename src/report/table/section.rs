//! The table of a section: a row a case, a column a setting.
//!
//! A name `10 000 rows: read 100 uniform` belongs to a table of its own, "read 100
//! uniform", in the row "10 000 rows".

use super::grid::{Cell, Grid, Style};
use crate::report::{heading, is_floor};
use crate::results::{Case, Measured, Outcome, Results};
use crate::suites;

/// The setting that others are compared with.
pub const BASE: &str = "btree";

/// The section's tables, for whichever cases there are.
pub fn grids(results: &Results, section: &str, style: Style) -> Vec<Grid> {
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
        "settings" => vec![transposed(results, section, style)],
        _ => tables.iter().map(|table| grid(results, section, table, style)).collect(),
    };
    if let Some(last) = grids.last_mut() {
        last.notes.extend(reasons(results, section));
        if capacity {
            last.notes.push(
                "≥: all that could be asked for fitted. Else the next try, at most a thousandth \
                 more, did not."
                    .to_owned(),
            );
        }
    }
    grids
}

/// A table and a row of it.
fn split(case: &Case) -> (&str, &str) {
    match case.name.split_once(": ") {
        Some((row, table)) => (table, row),
        None if case.section == "insert" => case.name.split_once(' ').unwrap_or(("", &case.name)),
        None => ("", &case.name),
    }
}

/// Columns that have a case in the section, in their order.
pub fn columns<'a>(results: &'a Results, section: &str) -> Vec<&'a str> {
    let has = |key: &&str| results.section(section).any(|case| case.column == *key);
    results.columns.iter().map(|column| column.key.as_str()).filter(has).collect()
}

/// Whether numbers are of messages, not of operations.
fn of_message(section: &str) -> bool {
    matches!(section, "insert" | "base" | "locality")
}

/// The heading over the names of rows.
pub fn row_heading(section: &str) -> &'static str {
    match section {
        "insert" => "new rows",
        "base" => "rows",
        "working-set" => "chosen from",
        _ => "",
    }
}

fn title(results: &Results, section: &str, table: &str) -> String {
    let what = suites::describe(&results.suite, section).unwrap_or_else(|| section.to_owned());
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
        [(rows, payload)] => format!("{title}, {}", super::store_title(rows, payload)),
        _ => title,
    }
}

fn grid(results: &Results, section: &str, table: &str, style: Style) -> Grid {
    let keys = columns(results, section);
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for case in results.section(section) {
        let (its, row) = split(case);
        if its == table && !rows.iter().any(|(name, _)| *name == case.name) {
            rows.push((case.name.as_str(), row));
        }
    }
    let mut header = vec![row_heading(section).to_owned()];
    header.extend(keys.iter().map(|key| style.narrow(&heading(key))));
    let rows = rows.into_iter().map(|(name, label)| {
        let cases: Vec<Option<&Case>> =
            keys.iter().map(|key| results.case(section, name, key)).collect();
        [Cell::text(label)].into_iter().chain(numbers(&cases, section)).collect()
    });
    Grid {
        title: title(results, section, table),
        header,
        rows: rows.collect(),
        notes: Vec::new(),
        lines: section == "insert",
    }
}

/// A row a setting, a column a case.
fn transposed(results: &Results, section: &str, style: Style) -> Grid {
    let mut names: Vec<&str> = Vec::new();
    for case in results.section(section) {
        if !names.contains(&case.name.as_str()) {
            names.push(&case.name);
        }
    }
    let mut header = vec!["setting".to_owned()];
    header.extend(names.iter().map(|name| {
        let name = name.strip_suffix(", warm").unwrap_or(name);
        style.narrow(name)
    }));
    let best = |name: &str| {
        results
            .section(section)
            .filter(|case| case.name == name)
            .filter_map(|case| case.measured().map(Measured::each_operation))
            .min()
    };
    let rows = columns(results, section).into_iter().map(|key| {
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
    Grid {
        title: title(results, section, ""),
        header,
        rows: rows.collect(),
        notes: vec!["Bold or * is the cheapest of a column.".to_owned()],
        lines: false,
    }
}

/// A row's numbers, the best one marked.
fn numbers(cases: &[Option<&Case>], section: &str) -> Vec<Cell> {
    let value = |case: &Case| -> Option<u64> {
        let measured = case.measured()?;
        Some(match section {
            _ if of_message(section) => measured.instructions,
            "capacity" => measured.operations,
            _ => measured.each_operation(),
        })
    };
    let rated = || cases.iter().flatten().filter(|case| !is_floor(&case.column));
    let best = match section {
        "capacity" => rated().filter_map(|case| value(case)).max(),
        _ => rated().filter_map(|case| value(case)).min(),
    };
    let base = cases.iter().flatten().find(|case| case.column == BASE).and_then(|case| value(case));
    let cells = cases.iter().map(|case| {
        let Some(case) = case else { return Cell::Absent };
        let Some(number) = value(case) else { return Cell::missing(&case.outcome) };
        let unbounded = case.measured().and_then(|measured| measured.capacity);
        if unbounded.is_some_and(|capacity| capacity.exceeds.is_none()) {
            return Cell::Text(format!("≥ {}", crate::report::number::Grouped(number)));
        }
        let base = base.filter(|_| section == "insert");
        Cell::Number { value: number, base, best: Some(number) == best && !is_floor(&case.column) }
    });
    cells.collect()
}

/// Why something is not there, once for each reason.
fn reasons(results: &Results, section: &str) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for case in results.section(section) {
        let (mark, reason) = match &case.outcome {
            Outcome::Measured(_) => continue,
            Outcome::NotApplicable { reason } => ("n/a", reason),
            Outcome::Failed { reason } => ("failed", reason),
        };
        let line = format!("{mark}: {}: {reason}", heading(&case.column));
        if !reasons.contains(&line) {
            reasons.push(line);
        }
    }
    reasons
}
