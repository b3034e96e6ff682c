//! Rows and costs as text.

use std::borrow::Cow;
use std::fmt::Write;

use stablebench_suite_sql::{Answer, Value};
use textwrap::core::display_width;

use super::session::Executed;
use crate::replica::PageCosts;
use crate::report::number::{Grouped, Short};
use crate::report::price::{cycles, usd};
use crate::results::Prices;
use crate::terminal::{safe, safe_line};

/// The form of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum PrintMode {
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
    safe_line(&raw(value)).into_owned()
}

/// Returns a value as text with its line breaks and controls.
fn raw(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::Integer(number) => Cow::Owned(number.to_string()),
        Value::Real(number) => Cow::Owned(real(*number)),
        Value::Text(text) => Cow::Borrowed(text),
        Value::TextBytes(bytes) => String::from_utf8_lossy(bytes),
        Value::Blob(bytes) => Cow::Owned(format!("x'{}'", hex::encode(bytes))),
    }
}

/// Returns a number as SQLite writes it: with 15 digits if they are enough, else with 17.
pub fn real(number: f64) -> String {
    if !number.is_finite() {
        return if number.is_nan() {
            String::new()
        } else {
            format!("{number}").replace("inf", "Inf")
        };
    }
    if number == 0.0 {
        return "0.0".to_owned();
    }
    let short = format!("{number:.14e}");
    let digits = match short.parse::<f64>() == Ok(number) {
        true => short,
        false => format!("{number:.16e}"),
    };
    let (digits, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let digits = digits.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let or_zero = |digits: &str| if digits.is_empty() { "0".to_owned() } else { digits.to_owned() };
    if !(-4..17).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}.{}e{mark}{:02}", or_zero(rest), exponent.abs());
    }
    let Ok(before) = usize::try_from(exponent + 1) else {
        return format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    };
    match before {
        0 => format!("{sign}0.{digits}"),
        before if before < digits.len() => {
            format!("{sign}{}.{}", &digits[..before], &digits[before..])
        }
        before => format!("{sign}{digits}{}.0", "0".repeat(before - digits.len())),
    }
}

/// Returns the rows of an answer as text, ending in a newline; empty if there are none.
pub fn rows(answer: &Answer, mode: PrintMode, width: Option<u16>) -> String {
    if answer.columns.is_empty() || answer.rows.is_empty() {
        return String::new();
    }
    if let Some(plan) = plan_of(answer) {
        return tree(&plan);
    }
    let names: Vec<String> =
        answer.columns.iter().map(|name| safe_line(name).into_owned()).collect();
    let cells = || answer.rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>());
    match mode {
        PrintMode::Box => match boxed(&names, &answer.rows, width.map(usize::from)) {
            Some(text) => text,
            None => rows(answer, PrintMode::Line, width),
        },
        PrintMode::Markdown => {
            let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
            let escaped = |row: Vec<String>| {
                row.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>()
            };
            let rule: Vec<String> = names.iter().map(|_| "---".to_owned()).collect();
            line(&escaped(names))
                + &line(&rule)
                + &cells().map(|row| line(&escaped(row))).collect::<String>()
        }
        PrintMode::List => {
            let cell = |value: &Value| safe_text(&raw(value));
            let row = |row: &Vec<Value>| row.iter().map(cell).collect::<Vec<_>>().join("|") + "\n";
            answer.rows.iter().map(row).collect()
        }
        PrintMode::Csv => {
            let cell = |value: &Value| match value {
                // Unlike NULL.
                Value::Text(text) if text.is_empty() => "\"\"".to_owned(),
                value => comma_separated(&safe_text(&raw(value))),
            };
            let names: Vec<String> = names.iter().map(|name| comma_separated(name)).collect();
            let row = |row: &Vec<Value>| row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
            names.join(",") + "\n" + &answer.rows.iter().map(row).collect::<String>()
        }
        PrintMode::Json => {
            let rows: Vec<String> =
                answer.rows.iter().map(|row| json(&answer.columns, row)).collect();
            format!("[{}]\n", rows.join(",\n"))
        }
        PrintMode::Line => {
            let width = names.iter().map(|name| display_width(name)).max().unwrap_or(0);
            let row = |row: Vec<String>| {
                let line = |(name, cell): (&String, &String)| {
                    format!("{}{name} = {cell}\n", " ".repeat(width - display_width(name)))
                };
                names.iter().zip(&row).map(line).collect::<String>()
            };
            cells().map(row).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Returns a text for programs, which line breaks of all systems do not harm.
fn safe_text(text: &str) -> String {
    text.split('\r').map(safe).collect::<Vec<_>>().join("\r")
}

fn comma_separated(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r', ' ']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// The characters in a line of a cell, and in the whole cell, at most.
const WRAP: usize = 60;
const CELL: usize = 3_000;
/// The narrowest column of a table that does not fit otherwise.
const NARROW: usize = 6;

/// Returns rows as `sqlite3 -box` draws them, or `None` if so many columns do not fit.
fn boxed(names: &[String], rows: &[Vec<Value>], width: Option<usize>) -> Option<String> {
    let cell = |value: &Value| -> Vec<String> {
        let raw = raw(value);
        let mut lines: Vec<String> = match raw.char_indices().nth(CELL) {
            None => raw.split('\n').map(|line| safe_line(line).into_owned()).collect(),
            Some((end, _)) => {
                let more = raw[end..].chars().count();
                let shown = raw[..end].split('\n').map(|line| safe_line(line).into_owned());
                shown.chain([format!("… {} more characters", Grouped(more as u64))]).collect()
            }
        };
        // A text that ends with a line break has no line after it.
        if lines.len() > 1 && lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    };
    let rows: Vec<Vec<Vec<String>>> =
        rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let mut widths: Vec<usize> = names
        .iter()
        .enumerate()
        .map(|(column, name)| {
            let cells = rows.iter().filter_map(|row| row.get(column)).flatten();
            let widest = cells.map(|line| display_width(line)).max().unwrap_or(0);
            widest.max(display_width(name)).clamp(1, WRAP)
        })
        .collect();
    if let Some(width) = width {
        let lines = 3 * names.len() + 1;
        while lines + widths.iter().sum::<usize>() > width {
            let widest = widths.iter_mut().max_by_key(|width| **width)?;
            if *widest <= NARROW {
                return None;
            }
            *widest -= 1;
        }
    }
    let rule = |start: &str, between: &str, end: &str| {
        let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{start}{}{end}\n", parts.join(between))
    };
    let wrapped = |lines: &[String], width: usize| -> Vec<String> {
        lines.iter().flat_map(|line| chunks(line, width)).collect()
    };
    let row = |cells: Vec<Vec<String>>, centred: bool| {
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        let mut text = String::new();
        for line in 0..height {
            for (cell, width) in cells.iter().zip(&widths) {
                let part = cell.get(line).map_or("", String::as_str);
                let room = width.saturating_sub(display_width(part));
                let before = if centred { room / 2 } else { 0 };
                let _ =
                    write!(text, "│ {}{part}{} ", " ".repeat(before), " ".repeat(room - before));
            }
            text += "│\n";
        }
        (text, height)
    };
    let header = names.iter().zip(&widths).map(|(name, width)| chunks(name, *width)).collect();
    let rows: Vec<(String, usize)> = rows
        .iter()
        .map(|cells| {
            let cells = cells.iter().zip(&widths).map(|(lines, width)| wrapped(lines, *width));
            row(cells.collect(), false)
        })
        .collect();
    // As in sqlite3, rows of several lines are told apart by lines.
    let between = match rows.iter().any(|(_, height)| *height > 1) {
        true => rule("├", "┼", "┤"),
        false => String::new(),
    };
    let rows: Vec<String> = rows.into_iter().map(|(text, _)| text).collect();
    Some(
        rule("┌", "┬", "┐")
            + &row(header, true).0
            + &rule("├", "┼", "┤")
            + &rows.join(&between)
            + &rule("└", "┴", "┘"),
    )
}

/// Splits a line into parts of at most `width` columns.
fn chunks(line: &str, width: usize) -> Vec<String> {
    let mut chunks = vec![String::new()];
    let mut used = 0;
    for letter in line.chars() {
        let wide = display_width(letter.encode_utf8(&mut [0; 4]));
        if used + wide > width && used > 0 {
            chunks.push(String::new());
            used = 0;
        }
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(letter);
        }
        used += wide;
    }
    chunks
}

fn json(columns: &[String], row: &[Value]) -> String {
    let string = |text: &str| crate::terminal::json(&text).unwrap_or_default();
    let value = |value: &Value| match value {
        Value::Null => "null".to_owned(),
        Value::Integer(number) => number.to_string(),
        // As in sqlite3: JSON has no infinity.
        Value::Real(number) if number.is_infinite() => {
            if *number > 0.0 { "1e999" } else { "-1e999" }.to_owned()
        }
        Value::Real(number) => real(*number),
        other => string(&raw(other)),
    };
    let members =
        columns.iter().zip(row).map(|(name, it)| format!("{}:{}", string(name), value(it)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A line of a query plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanLine {
    id: i64,
    parent: i64,
    pub detail: String,
}

/// Returns the plan that `EXPLAIN QUERY PLAN` answered.
pub fn plan_of(answer: &Answer) -> Option<Vec<PlanLine>> {
    if answer.columns != ["id", "parent", "notused", "detail"] {
        return None;
    }
    let line = |row: &Vec<Value>| match &row[..] {
        [Value::Integer(id), Value::Integer(parent), _, Value::Text(detail)] => {
            Some(PlanLine { id: *id, parent: *parent, detail: safe_line(detail).into_owned() })
        }
        _ => None,
    };
    answer.rows.iter().map(line).collect()
}

/// Returns a plan as `sqlite3` draws it.
pub fn tree(plan: &[PlanLine]) -> String {
    fn below(plan: &[PlanLine], parent: i64, indent: &str, text: &mut String) {
        let children: Vec<&PlanLine> = plan.iter().filter(|line| line.parent == parent).collect();
        for (place, line) in children.iter().enumerate() {
            let last = place + 1 == children.len();
            let _ = writeln!(text, "{indent}{}{}", if last { "`--" } else { "|--" }, line.detail);
            // A plan whose lines are their own parents would have no end.
            if line.id != parent && indent.len() < 300 {
                below(
                    plan,
                    line.id,
                    &format!("{indent}{}", if last { "   " } else { "|  " }),
                    text,
                );
            }
        }
    }
    let mut text = "QUERY PLAN\n".to_owned();
    below(plan, 0, "", &mut text);
    text
}

/// Returns what a plan reads and sorts, in brief.
pub fn brief(plan: &[PlanLine]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for PlanLine { detail, .. } in plan {
        let tells = ["SCAN ", "SEARCH ", "USE TEMP"].iter().any(|start| detail.starts_with(start));
        if tells && detail != "SCAN CONSTANT ROW" && !parts.contains(detail) {
            parts.push(detail.clone());
        }
    }
    parts
}

/// Where the instructions of a statement go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementCost {
    /// All instructions of the statement.
    pub instructions: u64,
    /// Those of pages, if they are known.
    pub pages: Option<PageCosts>,
}

impl StatementCost {
    pub fn of(answer: &Answer, pages: Option<PageCosts>) -> Self {
        Self { instructions: answer.prepare + answer.step + answer.around, pages }
    }
}

/// Returns the parts of the line below a statement's rows.
pub fn cost(
    answer: &Answer,
    spent: StatementCost,
    charged: Option<u64>,
    prices: &Prices,
) -> Vec<String> {
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
    parts
}

/// Joins parts to lines of at most `width` columns, which end between two parts if that is possible.
pub fn joined(parts: &[String], width: Option<u16>) -> Vec<String> {
    const BETWEEN: &str = " · ";
    let Some(width) = width.map(usize::from) else {
        return vec![parts.join(BETWEEN)];
    };
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if display_width(line) + display_width(part) + 3 <= width => {
                *line += BETWEEN;
                *line += part;
            }
            _ if display_width(part) > width => {
                lines.extend(textwrap::wrap(part, width).into_iter().map(Cow::into_owned));
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
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
        "one message: {} statements · {} instructions · {} cycles · ${:.2} a million calls",
        executed.answers.len(),
        Short(all),
        Short(cycles),
        usd(cycles, 1e6, prices)
    ))
}

/// Returns the lines of `.cost full`.
pub fn details(answer: &Answer, spent: StatementCost, executed: &Executed) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_sqlite_writes_them() {
        for (number, text) in [
            (1.005, "1.005"),
            (1e15, "1000000000000000.0"),
            (1e16, "10000000000000000.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-5, "1.0e-05"),
            (0.0001, "0.0001"),
            (-0.0, "0.0"),
            (123456789012345678.0, "1.2345678901234568e+17"),
            (f64::INFINITY, "Inf"),
            (-2.0 / 3.0, "-0.66666666666666663"),
            (123456.75, "123456.75"),
            (100.0, "100.0"),
            (9.99e99, "9.99e+99"),
            (0.5, "0.5"),
        ] {
            assert_eq!(real(number), text);
        }
    }

    fn answer(columns: &[&str], rows: Vec<Vec<Value>>) -> Answer {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Answer { columns, rows, ..Answer::default() }
    }

    #[test]
    fn rows_fit_the_terminal() {
        let long = "word ".repeat(30);
        let row = vec![Value::Integer(1), Value::Text(long), Value::Text("a\u{1b}[31m\nb".into())];
        let answer = answer(&["a", "text", "c"], vec![row; 2]);
        for width in [40, 60, 80, 140] {
            let text = rows(&answer, PrintMode::Box, Some(width));
            assert!(text.lines().all(|line| display_width(line) <= usize::from(width)), "{text}");
            assert!(text.starts_with('┌') && !text.contains('\u{1b}'), "{text}");
        }
        let text = rows(&answer, PrintMode::Box, Some(20));
        assert!(text.starts_with("   a = 1\ntext = word"), "{text}");
    }

    #[test]
    fn each_form_is_what_sqlite3_prints() {
        let row = vec![Value::Integer(1), Value::Null, Value::Text("x, \"y\"".to_owned())];
        let answer = answer(&["a", "b", "c"], vec![row]);
        for (mode, text) in [
            (
                PrintMode::Box,
                "┌───┬───┬────────┐\n│ a │ b │   c    │\n├───┼───┼────────┤\n│ 1 │   │ x, \"y\" │\n└───┴───┴────────┘\n",
            ),
            (PrintMode::List, "1||x, \"y\"\n"),
            (PrintMode::Csv, "a,b,c\n1,,\"x, \"\"y\"\"\"\n"),
            (PrintMode::Json, "[{\"a\":1,\"b\":null,\"c\":\"x, \\\"y\\\"\"}]\n"),
            (PrintMode::Markdown, "| a | b | c |\n| --- | --- | --- |\n| 1 |  | x, \"y\" |\n"),
            (PrintMode::Line, "a = 1\nb = \nc = x, \"y\"\n"),
        ] {
            assert_eq!(rows(&answer, mode, None), text);
        }
    }

    #[test]
    fn line_breaks_of_all_systems_are_kept_for_programs() {
        let row = vec![Value::Text("a\r\nb\u{1b}".to_owned())];
        let answer = answer(&["a"], vec![row]);
        assert_eq!(rows(&answer, PrintMode::List, None), "a\r\nb\\u{1b}\n");
        assert_eq!(rows(&answer, PrintMode::Csv, None), "a\n\"a\r\nb\\u{1b}\"\n");
        assert_eq!(rows(&answer, PrintMode::Line, None), "a = a\\u{d}\\u{a}b\\u{1b}\n");
    }

    #[test]
    fn plans_are_trees() {
        let line = |id, parent, detail: &str| {
            vec![
                Value::Integer(id),
                Value::Integer(parent),
                Value::Integer(0),
                Value::Text(detail.into()),
            ]
        };
        let answer = answer(
            &["id", "parent", "notused", "detail"],
            vec![line(2, 0, "CO-ROUTINE n"), line(3, 2, "SCAN CONSTANT ROW"), line(9, 0, "SCAN t")],
        );
        assert_eq!(
            rows(&answer, PrintMode::Box, None),
            "QUERY PLAN\n|--CO-ROUTINE n\n|  `--SCAN CONSTANT ROW\n`--SCAN t\n"
        );
        assert_eq!(brief(&plan_of(&answer).unwrap()), ["SCAN t"]);
    }
}
