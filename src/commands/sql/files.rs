//! SQL from files, options and standard input.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use stablebench_suite_sql::split::{self, Control};

use super::print::Spent;
use super::session::{Bound, Session};
use super::shell::{State, shortened};
use super::{SqlArgs, read};
use crate::progress::Output;
use crate::report::grid::{Cell, Grid, Style};
use crate::report::number::{Grouped, Short};
use crate::report::price::{cycles, usd};
use crate::results::Prices;
use crate::terminal::{json_lines, print, safe};

/// The form of the table of statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table.
    #[default]
    Table,
    /// Comma-separated values.
    Csv,
    /// JSON.
    Json,
    /// A Markdown table.
    Markdown,
}

/// A statement that was executed.
#[derive(Clone, Debug, Serialize)]
struct Line {
    file: String,
    line: usize,
    statement: String,
    rows: u64,
    changed: u64,
    instructions: u64,
    prepare: u64,
    heap_pages: Option<u64>,
    stable_pages: Option<u64>,
    /// Of the whole message; none for a statement of a longer transaction that does not end it.
    cycles: Option<u64>,
    error: Option<String>,
}

/// Executes the statements of files, options or standard input. Returns `true` if one failed.
pub fn run(session: &mut Session, prices: Prices, args: &SqlArgs, output: &Output) -> Result<bool> {
    if !args.commands.is_empty() {
        return commands(State::new(session, prices, args, output), args);
    }
    let stdin = [PathBuf::from("-")];
    let files = if args.files.is_empty() { &stdin[..] } else { &args.files };
    let mut lines: Vec<Line> = Vec::new();
    let mut failed = false;
    'files: for path in files {
        let text = read(path)?;
        let statements = split::statements(&text);
        let step = output.progress.step(&name(path), "statements", statements.len() as u64);
        let mut message: Vec<split::Statement<'_>> = Vec::new();
        for (number, statement) in statements.iter().enumerate() {
            message.push(*statement);
            let control = split::control(message[0].text);
            let ends =
                matches!(split::control(statement.text), Control::Commit | Control::Rollback);
            if control == Control::Begin && !ends && number + 1 < statements.len() {
                continue;
            }
            let executed = execute(session, path, &std::mem::take(&mut message), &mut lines)?;
            step.at(number as u64 + 1, "");
            if !executed {
                failed = true;
                if !args.keep_going {
                    step.done("");
                    break 'files;
                }
            }
        }
        step.done("");
    }
    print(&table(&lines, args.format, prices, output)?)?;
    for line in lines.iter().filter(|line| line.error.is_some()) {
        let error = line.error.as_deref().unwrap_or_default();
        output.progress.note(&format!(
            "error: {}, line {}: {}\n  {}",
            line.file,
            line.line,
            safe(error),
            shortened(&line.statement, 90)
        ));
    }
    Ok(failed)
}

/// Executes the SQL of options as in the shell.
fn commands(mut state: State<'_>, args: &SqlArgs) -> Result<bool> {
    let mut failed = false;
    for text in &args.commands {
        if text.starts_with('.') {
            super::dot::run(&mut state, text)?;
            continue;
        }
        for statement in split::statements(text) {
            if !state.statement(statement.text)? {
                failed = true;
                if !args.keep_going {
                    return Ok(true);
                }
            }
        }
    }
    Ok(failed)
}

fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// Executes a message. Returns `false` if a statement failed.
fn execute(
    session: &mut Session,
    path: &Path,
    message: &[split::Statement<'_>],
    lines: &mut Vec<Line>,
) -> Result<bool> {
    let bound: Vec<Bound> = message.iter().map(|statement| statement.text.into()).collect();
    let line = |number: usize| Line {
        file: name(path),
        line: message[number].line,
        statement: message[number].text.to_owned(),
        rows: 0,
        changed: 0,
        instructions: 0,
        prepare: 0,
        heap_pages: None,
        stable_pages: None,
        cycles: None,
        error: None,
    };
    let executed = match session.execute(&bound) {
        Ok(executed) => executed,
        Err(error) => {
            lines.push(Line { error: Some(format!("{error:#}")), ..line(0) });
            return Ok(false);
        }
    };
    let last = executed.answers.len();
    for (place, answer) in executed.answers.iter().enumerate() {
        let pages = executed.pages.get(place).copied().flatten();
        lines.push(Line {
            rows: answer.digest.rows,
            changed: answer.changes,
            instructions: Spent::of(answer, pages).instructions,
            prepare: answer.prepare,
            heap_pages: pages.map(|pages| pages.heap),
            stable_pages: pages.map(|pages| pages.stable),
            cycles: (place + 1 == last).then_some(executed.cost.cycles),
            error: answer.error.as_ref().map(|failure| failure.message.clone()),
            ..line(answer.call as usize)
        });
    }
    Ok(executed.answers.iter().all(|answer| answer.error.is_none()))
}

fn table(lines: &[Line], format: Format, prices: Prices, output: &Output) -> Result<String> {
    match format {
        Format::Json => return Ok(json_lines(&lines)?),
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            for line in lines {
                writer.serialize(line)?;
            }
            return Ok(safe(&String::from_utf8_lossy(&writer.into_inner()?)).into_owned());
        }
        Format::Table | Format::Markdown => {}
    }
    let style = match format {
        Format::Markdown => Style::MARKDOWN,
        _ => Style::of(output.terminal),
    };
    let width = match (format, output.terminal.width) {
        (Format::Table, Some(width)) => usize::from(width).saturating_sub(66).clamp(16, 80),
        _ => 60,
    };
    let number = |value: Option<u64>| value.map_or(Cell::Absent, |value| Cell::text(Short(value)));
    let rows = lines.iter().map(|line| {
        let error = line.error.is_some();
        vec![
            Cell::Text(safe(&shortened(&line.statement, width)).into_owned()),
            Cell::text(Grouped(line.rows + line.changed)),
            if error { Cell::Failed } else { Cell::text(Short(line.instructions)) },
            number(line.heap_pages),
            number(line.stable_pages),
            number(line.cycles.map(|charged| cycles(charged, &prices))),
            match line.cycles {
                Some(charged) => {
                    Cell::Text(format!("{:.2}", usd(cycles(charged, &prices), 1e6, &prices)))
                }
                None => Cell::Absent,
            },
        ]
    });
    let header = [
        "statement",
        "rows",
        "instructions",
        "heap pages",
        "stable pages",
        "cycles",
        "$ a million",
    ];
    let grid = Grid {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: vec![
            "rows: of the result, or changed. heap pages, stable pages: their part of the instructions. \
             cycles: of the message with the statement, in a transaction of all its statements."
                .to_owned(),
        ],
        ..Grid::default()
    };
    Ok(grid.render(style))
}
