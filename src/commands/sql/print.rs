//! Rows and costs as text.

use std::fmt::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent};
use stablebench_suite_sql::{Answer, Value};

use super::session::Executed;
use crate::replica::PageCosts;
use crate::report::number::{Grouped, Short};
use crate::report::price::{cycles, usd};
use crate::results::Prices;
use crate::terminal::safe_line;

/// The form of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// A table with lines.
    #[default]
    Box,
    /// Values with `|` between them.
    List,
    /// Comma-separated values.
    Csv,
    /// A JSON object per row.
    Json,
    /// A Markdown table.
    Markdown,
    /// One line per value.
    Line,
}

/// Returns a value as text; `NULL` is empty, as in `sqlite3`.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => real(*number),
        Value::Text(text) => safe_line(text).into_owned(),
        Value::TextBytes(bytes) => safe_line(&String::from_utf8_lossy(bytes)).into_owned(),
        Value::Blob(bytes) => {
            bytes.iter().fold("x'".to_owned(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            }) + "'"
        }
    }
}

/// A number with a decimal point, as SQLite prints it.
fn real(number: f64) -> String {
    let text = format!("{number:?}");
    text.replace("inf", "Inf")
}

/// Returns the rows of an answer as text, ending in a newline; empty if there are no columns.
pub fn rows(answer: &Answer, mode: Mode) -> String {
    if answer.columns.is_empty() || (answer.rows.is_empty() && mode != Mode::Markdown) {
        return String::new();
    }
    let names: Vec<String> =
        answer.columns.iter().map(|name| safe_line(name).into_owned()).collect();
    let cells = || answer.rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>());
    match mode {
        Mode::Box => {
            let mut table = Table::new();
            table
                .load_preset(UTF8_FULL_CONDENSED)
                .set_content_arrangement(ContentArrangement::Disabled);
            // As `sqlite3 -box` draws it.
            table.set_style(TableComponent::LeftHeaderIntersection, '├');
            table.set_style(TableComponent::HeaderLines, '─');
            table.set_style(TableComponent::MiddleHeaderIntersections, '┼');
            table.set_style(TableComponent::RightHeaderIntersection, '┤');
            table.set_style(TableComponent::VerticalLines, '│');
            table.force_no_tty().set_header(names);
            for row in cells() {
                table.add_row(row);
            }
            for (place, column) in table.column_iter_mut().enumerate() {
                let number = |row: &Vec<Value>| {
                    matches!(row.get(place), Some(Value::Integer(_) | Value::Real(_) | Value::Null))
                };
                if answer.rows.iter().all(number) {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
            format!("{table}\n")
        }
        Mode::Markdown => {
            let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
            let escaped = |row: Vec<String>| {
                row.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>()
            };
            let rule: Vec<String> = names.iter().map(|_| "---".to_owned()).collect();
            line(&escaped(names))
                + &line(&rule)
                + &cells().map(|row| line(&escaped(row))).collect::<String>()
        }
        Mode::List => cells().map(|row| row.join("|") + "\n").collect(),
        Mode::Csv => {
            let quoted = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
                true => format!("\"{}\"", cell.replace('"', "\"\"")),
                false => cell.clone(),
            };
            let line = |row: &[String]| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
            line(&names) + &cells().map(|row| line(&row)).collect::<String>()
        }
        Mode::Json => answer.rows.iter().map(|row| json(&answer.columns, row) + "\n").collect(),
        Mode::Line => {
            let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
            let row = |row: Vec<String>| {
                let line = |(name, cell): (&String, &String)| format!("{name:>width$} = {cell}\n");
                names.iter().zip(&row).map(line).collect::<String>()
            };
            cells().map(row).collect::<Vec<_>>().join("\n")
        }
    }
}

fn json(columns: &[String], row: &[Value]) -> String {
    let value = |value: &Value| match value {
        Value::Null => serde_json::Value::Null,
        Value::Integer(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        other => text(other).into(),
    };
    let object: serde_json::Map<String, serde_json::Value> =
        columns.iter().cloned().zip(row.iter().map(value)).collect();
    crate::terminal::json(&object).unwrap_or_default()
}

/// Where the instructions of a statement go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// All instructions of the statement.
    pub instructions: u64,
    /// Those of pages, if they are known.
    pub pages: Option<PageCosts>,
}

impl Spent {
    pub fn of(answer: &Answer, pages: Option<PageCosts>) -> Self {
        Self { instructions: answer.prepare + answer.step + answer.around, pages }
    }
}

/// Returns the line below a statement's rows.
pub fn cost(answer: &Answer, spent: Spent, charged: Option<u64>, prices: &Prices) -> String {
    let mut parts = Vec::new();
    let rows = answer.digest.rows;
    let plural = |number: u64, one: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{} {one}s", Grouped(number)),
    };
    if !answer.columns.is_empty() {
        let kept = answer.rows.len() as u64;
        let shown = if kept < rows { format!(" ({} shown)", Grouped(kept)) } else { String::new() };
        parts.push(plural(rows, "row") + &shown);
    }
    if answer.changes > 0 {
        parts.push(format!("{} changed", plural(answer.changes, "row")));
    }
    let mut instructions = format!("{} instructions", Short(spent.instructions));
    if let Some(pages) = spent.pages {
        let compute = spent.instructions.saturating_sub(pages.heap + pages.stable);
        let _ = write!(
            instructions,
            " (compute {}, heap pages {}, stable pages {})",
            Short(compute),
            Short(pages.heap),
            Short(pages.stable)
        );
    }
    parts.push(instructions);
    if let Some(charged) = charged {
        let cycles = cycles(charged, prices);
        parts.push(format!("{} cycles", Short(cycles)));
        parts.push(format!("${:.2} a million calls", usd(cycles, 1e6, prices)));
    }
    parts.join(" · ")
}

/// Returns the whole message's cost, if it has several statements.
pub fn message(executed: &Executed, prices: &Prices) -> Option<String> {
    if executed.answers.len() < 2 {
        return None;
    }
    let of = |answer: &Answer| answer.prepare + answer.step + answer.around;
    let all: u64 = executed.answers.iter().map(of).sum();
    let cycles = cycles(executed.cost.cycles, prices);
    Some(format!(
        "one message: {} statements · {} instructions · {} cycles · ${:.2} a million",
        executed.answers.len(),
        Short(all),
        Short(cycles),
        usd(cycles, 1e6, prices)
    ))
}

/// Returns the lines of `.cost full`.
pub fn details(answer: &Answer, spent: Spent, executed: &Executed) -> Vec<String> {
    let mut lines = vec![format!(
        "prepare {} · step {} · library around it {}",
        Grouped(answer.prepare),
        Grouped(answer.step),
        Grouped(answer.around)
    )];
    let counters = answer.counters;
    lines.push(format!(
        "operations {} · steps of full scans {} · sorts {} · rows of automatic indexes {} · prepared again {}",
        Grouped(counters.operations), Grouped(counters.scanned), Grouped(counters.sorts),
        Grouped(counters.auto_indexed), Grouped(counters.prepared_again)
    ));
    if let Some(touched) = spent.pages.and_then(|pages| pages.touched) {
        lines.push(format!(
            "heap pages touched {}, written {} · stable pages touched {}, written {}",
            Grouped(touched.heap),
            Grouped(touched.heap_written),
            Grouped(touched.stable),
            Grouped(touched.stable_written)
        ));
    }
    if let Some(inside) = executed.cost.inside {
        lines.push(format!("the whole message: charge {}", Grouped(inside.charge)));
    }
    lines
}

/// Returns the line of a text that contains a byte, and a mark below that byte.
pub fn place(text: &str, offset: usize) -> Option<String> {
    let before = text.get(..offset)?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next()?;
    let column = before[start..].chars().count();
    Some(format!("  {}\n  {:>width$}\n", safe_line(line), "^", width = column + 1))
}
