//! SQL from files: every statement with its cost, as a table.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use stablebench_suite_sql::split::{self, Control};

use super::advice::{self, Observed};
use super::dot;
use super::print::StatementCost;
use super::session::Bound;
use super::state::State;
use super::text::{Item, Kind, items, name, note_of, read, shortened, words};
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
#[derive(Clone, Debug, Default, Serialize)]
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

impl Line {
    /// A line about a statement, without costs.
    fn of(path: &Path, item: &Item<'_>) -> Self {
        let statement = match item.text.char_indices().nth(KEPT) {
            None => item.text.to_owned(),
            Some((end, _)) => format!("{}…", &item.text[..end]),
        };
        Self { file: name(path), line: item.line, statement, ..Self::default() }
    }
}

/// The letters of a statement that are kept for the table.
const KEPT: usize = 2_000;
/// The statements that are kept for advice. There may be millions.
const OBSERVED: usize = 10_000;

/// The statements of files, one after the other.
struct Run<'s, 'a> {
    state: &'s mut State<'a>,
    lines: Vec<Line>,
    observed: Vec<Observed>,
    notes: BTreeSet<&'static str>,
    /// `true` if a command was executed.
    commanded: bool,
    failed: bool,
}

/// Executes the statements of files. Returns `true` if one failed.
pub fn run(state: &mut State<'_>) -> Result<bool> {
    let (args, output, prices) = (state.args, state.output, state.prices);
    let (lines, observed, notes) = Default::default();
    let mut run = Run { state, lines, observed, notes, commanded: false, failed: false };
    // What was executed before is printed even if a file cannot be read.
    let mut outcome = Ok(true);
    for path in &args.files {
        outcome = read(path).and_then(|text| run.file(path, &text));
        if !matches!(outcome, Ok(true)) {
            break;
        }
    }
    if !run.lines.is_empty() || args.format == Format::Json {
        print(&table(&run.lines, args.format, prices, output)?)?;
    }
    if run.lines.is_empty() && outcome.is_ok() && !run.commanded {
        let files = args.files.iter().map(|path| name(path)).collect::<Vec<_>>().join(", ");
        output.progress.note(&format!("there is no statement in {files}"));
    }
    for line in run.lines.iter().filter(|line| line.error.is_some()) {
        let error = line.error.as_deref().unwrap_or_default();
        output.progress.note(&format!(
            "stablebench: {}, line {}: {}\n  {}",
            line.file,
            line.line,
            safe(error),
            shortened(&line.statement, 90)
        ));
    }
    for note in run.notes {
        output.progress.note(note);
    }
    // The statements that worked have advice after others that failed, too.
    if args.format == Format::Table {
        for finding in advice::of(&mut run.state.session, &run.observed) {
            print(&advice::shown(&finding, output.terminal))?;
        }
    }
    outcome.map(|_| run.failed)
}

impl Run<'_, '_> {
    /// Executes a file. Returns `false` if the run ends here.
    fn file(&mut self, path: &Path, text: &str) -> Result<bool> {
        let step = self.state.output.progress.step(&name(path), "bytes", text.len() as u64);
        let mut message: Vec<Item<'_>> = Vec::new();
        let mut all = items(text).peekable();
        let mut at = 0;
        while let Some(item) = all.next() {
            if item.kind == Kind::Command {
                if !self.command(path, &item)? {
                    return Ok(false);
                }
                continue;
            }
            at += item.text.len();
            let control = split::control(item.text);
            let ends = matches!(control, Control::Commit | Control::Rollback);
            message.push(item);
            let open = split::control(message[0].text) == Control::Begin && !ends;
            if open && all.peek().is_some_and(|next| next.kind == Kind::Statement) {
                continue;
            }
            let message = std::mem::take(&mut message);
            step.says(shortened(message[0].text, 60));
            let executed = match open {
                true => self.has_no_end(path, &message),
                false => self.message(path, &message)?,
            };
            step.at(at as u64, "");
            if !executed {
                self.failed = true;
                if !self.state.args.keep_going {
                    return Ok(false);
                }
            }
        }
        step.done("");
        Ok(true)
    }

    /// Executes a command of the shell. Returns `false` if the run ends here.
    fn command(&mut self, path: &Path, item: &Item<'_>) -> Result<bool> {
        self.commanded = true;
        let words = words(item.text).unwrap_or_default();
        if words.first().is_some_and(|word| word == ".read")
            && let [_, file] = &words[..]
        {
            let file = PathBuf::from(file);
            let known = file.canonicalize().unwrap_or_else(|_| file.clone());
            if self.state.reading.contains(&known)
                || known == path.canonicalize().unwrap_or_default()
            {
                anyhow::bail!(
                    "{}, line {}: {} reads itself",
                    name(path),
                    item.line,
                    file.display()
                );
            }
            let text = read(&file)?;
            self.state.reading.push(path.canonicalize().unwrap_or_default());
            let outcome = self.file(&file, &text);
            self.state.reading.pop();
            return outcome;
        }
        self.state.place = Some((name(path), item.line));
        match dot::item(self.state, Kind::Command, item.text)? {
            dot::Next::Line => Ok(true),
            dot::Next::Quit => Ok(false),
            dot::Next::Failed => {
                self.failed = true;
                Ok(self.state.args.keep_going)
            }
        }
    }

    /// Keeps that a transaction has no end. Returns `false`.
    fn has_no_end(&mut self, path: &Path, message: &[Item<'_>]) -> bool {
        let error = "the transaction has no COMMIT, and nothing of it was executed";
        self.lines.push(Line { error: Some(error.to_owned()), ..Line::of(path, &message[0]) });
        false
    }

    /// Executes a message. Returns `false` if a statement failed.
    fn message(&mut self, path: &Path, message: &[Item<'_>]) -> Result<bool> {
        let bound: Vec<Bound> =
            message.iter().map(|statement| self.state.bind(statement.text)).collect();
        let line = |number: usize| Line::of(path, &message[number]);
        let executed = match self.state.session.execute(&bound) {
            Ok(executed) => executed,
            Err(error) => {
                self.lines.push(Line { error: Some(format!("{error:#}")), ..line(0) });
                return Ok(false);
            }
        };
        let last = executed.answers.len();
        for (place, answer) in executed.answers.iter().enumerate() {
            let pages = executed.pages.get(place).copied().flatten();
            self.lines.push(Line {
                rows: answer.digest.rows,
                changed: answer.changes,
                instructions: StatementCost::of(answer, pages).instructions,
                prepare: answer.prepare,
                heap_pages: pages.map(|pages| pages.heap),
                stable_pages: pages.map(|pages| pages.stable),
                cycles: (place + 1 == last).then_some(executed.cost.cycles),
                error: answer.error.as_ref().map(|failure| failure.message.clone()),
                ..line(answer.call as usize)
            });
            if answer.error.is_some() {
                continue;
            }
            self.notes.extend(note_of(&bound[answer.call as usize].text));
            if self.observed.len() < OBSERVED {
                self.observed.push(Observed::new(&bound[answer.call as usize], answer));
            }
        }
        Ok(executed.answers.iter().all(|answer| answer.error.is_none()))
    }
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
        (Format::Table, Some(width)) => usize::from(width).saturating_sub(73).clamp(16, 80),
        _ => 60,
    };
    let number = |value: Option<u64>| value.map_or(Cell::Absent, |value| Cell::text(Short(value)));
    let rows = lines.iter().map(|line| {
        let error = line.error.is_some();
        let charged = line.cycles.filter(|_| !error).map(|charged| cycles(charged, &prices));
        vec![
            Cell::Text(safe(&shortened(&line.statement, width)).into_owned()),
            if error { Cell::Absent } else { Cell::text(Grouped(line.rows + line.changed)) },
            if error { Cell::Failed } else { Cell::text(Short(line.instructions)) },
            number(line.heap_pages.filter(|_| !error)),
            number(line.stable_pages.filter(|_| !error)),
            number(charged),
            match charged {
                Some(cycles) => Cell::Text(format!("{:.2}", usd(cycles, 1e6, &prices))),
                None => Cell::Absent,
            },
        ]
    });
    let header =
        ["statement", "rows", "instructions", "heap pages", "stable", "cycles", "$ / million"];
    let grid = Grid {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: vec![
            "rows: of the result, or changed, by triggers and foreign keys too. heap pages, stable: the \
             pages' part of the instructions. cycles, $: of the message, which a transaction shares."
                .to_owned(),
        ],
        ..Grid::default()
    };
    Ok(grid.render(style))
}
