//! The shortest answer: what one operation costs, kind by kind.

use anyhow::{Context, Result};

use crate::report::heading;
use crate::report::number::Grouped;
use crate::report::open_rule::OpenRule;
use crate::report::style::Style;
use crate::report::table::grid::{Cell, Grid};
use crate::results::{Measured, Results};

/// What is shown: `ic-rusqlite` with its default, the same with WAL, `ic-sqlite-vfs`, a floor.
const COLUMNS: [&str; 5] = ["btree", "sqlite/persist", "sqlite/wal", "sqlite-vfs", "array"];
/// The floor, which is not for choosing.
const FLOOR: &str = "array";

/// A line of the table: what it is called, and which case it is.
const ROWS: [(&str, &str, &str); 9] = [
    ("insert, 1 row a message", "insert", "middle 1"),
    ("insert, 10 rows a message", "insert", "middle 10"),
    ("insert, 100 rows a message", "insert", "middle 100"),
    ("insert, 10 000 rows a message", "insert", "middle 10 000"),
    ("update, at random", "work", "update 1 000 uniform, warm"),
    ("delete, at random", "work", "delete 1 000 uniform, warm"),
    ("read one by one, at random", "work", "read 1 000 uniform, warm"),
    ("read all, in order", "work", "scan, warm"),
    ("the first read after an upgrade", "work", "read 1 uniform, upgraded"),
];

/// The table of today's run, below each line the same by the rules of 2025, and with both values
/// where the open rule decides on a figure.
pub fn part(users: &Results, earlier: &Results, open_rule: &OpenRule) -> Result<String> {
    let style = Style::MARKDOWN;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (label, section, name) in ROWS {
        let mut cells = line(users, section, name);
        for (column, cell) in COLUMNS.iter().zip(&mut cells) {
            let operations = users.case(section, name, column).and_then(|case| case.measured());
            let operations = operations.map_or(1, |measured| measured.operations);
            if let Some(other) = open_rule.other(section, name, column, operations) {
                let or = format!("or {}", Grouped(other));
                *cell = Cell::Text(style.stacked(&cell.render(style), &or));
            }
        }
        cells.insert(0, Cell::text(label));
        rows.push(cells);
        let mut cells = line(earlier, section, name);
        cells.insert(0, Cell::text("– in 2025"));
        rows.push(cells);
    }
    let of = users.case("insert", "middle 1", "btree").context("the run has no section insert")?;
    let mut header = vec![String::new()];
    header.extend(COLUMNS.map(|key| match key {
        // The name says which setting of it is meant.
        "sqlite/persist" => style.stacked(&"SQLite", &"ic-rusqlite"),
        "sqlite/wal" => style.stacked(&"the same", &"WAL"),
        "sqlite-vfs" => style.stacked(&"SQLite", &"ic-sqlite-vfs"),
        key => style.narrow(&heading(key)),
    }));
    let grid = Grid { header, rows, ..Grid::default() };
    Ok(format!(
        "Instructions a row, in {} rows of {} bytes, by the rules `{}`, and by those of 2025 \
         (`{}`):\n\n{}",
        Grouped(of.rows),
        Grouped(of.payload.into()),
        users.replica.rules,
        earlier.replica.rules,
        grid.render(style)
    ))
}

/// The costs of one kind of work, the cheapest choice marked.
fn line(users: &Results, section: &str, name: &str) -> Vec<Cell> {
    let cost = |column| users.case(section, name, column)?.measured().map(Measured::each_operation);
    let costs = COLUMNS.map(cost);
    let choice = COLUMNS.iter().zip(costs).filter(|(column, _)| **column != FLOOR);
    let best = choice.filter_map(|(_, cost)| cost).min();
    let cells = COLUMNS.iter().zip(costs).map(|(column, cost)| match cost {
        Some(value) => Cell::Number {
            value,
            base: costs[0].filter(|_| *column != COLUMNS[0]),
            best: Some(value) == best && *column != FLOOR,
        },
        None => Cell::Absent,
    });
    cells.collect()
}
