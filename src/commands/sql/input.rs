//! Where SQL comes from: the shell, which reads statements and commands line by line, options, a pipe, or
//! files, whose statements are shown with their costs as a table.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use serde::Serialize;
use stablebench_suite_sql::split::{self, Control, End};

use super::advice::{self, Observed};
use super::dot;
use super::print::{self, StatementCost};
use super::session::{Bound, Session};
use super::state::ShellState;
use super::text::{Item, Kind, items, name, note_of, read, shortened, words};
use crate::progress::Output;
use crate::report::grid::{Cell, Grid, Style};
use crate::report::number::{Grouped, Short};
use crate::report::price::{cycles, usd};
use crate::results::Prices;
use crate::terminal::{json_lines, print, safe};

/// Executes a text as if it were typed, without prompts. Returns `true` if something failed.
pub fn piped(state: &mut ShellState<'_>) -> Result<bool> {
    let text = read(Path::new("-"))?;
    dot::all(state, &text, "standard input", state.args.keep_going)?;
    Ok(state.failed || !state.finished()?)
}

/// Executes the SQL and the commands of options. Returns `true` if something failed.
pub fn commands(state: &mut ShellState<'_>) -> Result<bool> {
    for text in &state.args.commands {
        match dot::all(state, text, "", state.args.keep_going)? {
            dot::Next::Line => {}
            dot::Next::Quit => break,
            dot::Next::Failed if state.args.keep_going => {}
            dot::Next::Failed => return Ok(true),
        }
    }
    Ok(state.failed || !state.finished()?)
}

/// Reads lines until the end of input or `.quit`.
pub fn run(state: &mut ShellState<'_>) -> Result<()> {
    state.interactive = true;
    let config =
        Config::builder().completion_type(CompletionType::List).history_ignore_dups(true)?;
    let mut editor: Editor<Words, DefaultHistory> = Editor::with_config(config.build())?;
    editor.set_helper(Some(Words::default()));
    let history = history();
    if let Some(path) = &history {
        // The first session has none.
        let _ = editor.load_history(path);
    }
    let engine = state.session.configuration().key();
    state.dim(&[
        format!("{engine} in a canister"),
        "each statement is a message".to_owned(),
        ".help lists commands".to_owned(),
        ".quit or Ctrl-D ends".to_owned(),
    ])?;
    let mut text = String::new();
    let mut changed = true;
    loop {
        if let Some(words) = editor.helper_mut().filter(|_| changed) {
            words.names = names(&mut state.session);
            changed = false;
        }
        let prompt = match (text.is_empty(), state.transaction.is_empty()) {
            (false, _) => "   ...> ",
            (true, true) => "sql> ",
            (true, false) => "sql*> ",
        };
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                // As in sqlite3: the line is dropped, the session goes on.
                text.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        if line.contains('\0') {
            state.failure("the line contains a NUL byte, which SQL does not")?;
            continue;
        }
        if text.is_empty() && line.starts_with('.') {
            editor.add_history_entry(&line)?;
            changed = true;
            if dot::item(state, Kind::Command, &line)? == dot::Next::Quit {
                break;
            }
            continue;
        }
        text += &line;
        text.push('\n');
        if split::end(&text) == End::Missing(false) {
            text.clear();
        }
        while let End::At(end) = split::end(&text) {
            let rest = text.split_off(end);
            let statement = std::mem::replace(&mut text, rest);
            editor.add_history_entry(statement.trim())?;
            changed = true;
            for one in items(&statement) {
                dot::item(state, one.kind, one.text)?;
            }
            if split::end(&text) == End::Missing(false) {
                text.clear();
            }
        }
        if let Some(path) = &history {
            // Another session may write it too; what is lost is convenience.
            let _ = editor.save_history(path);
        }
    }
    state.finished().map(drop)
}

/// Returns `true` if a person types the statements.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal()
}

/// The file with earlier lines.
fn history() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let folder = folder.join("stablebench");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("sql_history"))
}

/// The names of tables and columns.
fn names(session: &mut Session) -> Vec<String> {
    const NAMES: &str = "SELECT name FROM sqlite_schema UNION SELECT c.name FROM sqlite_schema AS t \
                         JOIN pragma_table_info(t.name) AS c WHERE t.type = 'table'";
    let rows = session.rows(NAMES).unwrap_or_default();
    rows.iter().filter_map(|row| row.first()).map(print::text).collect()
}

/// Completes keywords, names of tables and columns, and commands.
#[derive(Debug, Default)]
struct Words {
    names: Vec<String>,
}

/// Keywords that people begin words with.
const KEYWORDS: &[&str] = &[
    "ALTER",
    "ANALYZE",
    "AND",
    "ATTACH",
    "BEGIN",
    "BETWEEN",
    "BLOB",
    "COMMIT",
    "CREATE",
    "DEFAULT",
    "DELETE",
    "DESC",
    "DISTINCT",
    "DROP",
    "EXISTS",
    "EXPLAIN",
    "FOREIGN",
    "FROM",
    "GROUP BY",
    "HAVING",
    "INDEX",
    "INNER",
    "INSERT INTO",
    "INTEGER",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT NULL",
    "OFFSET",
    "ORDER BY",
    "PRAGMA",
    "PRIMARY KEY",
    "QUERY PLAN",
    "REAL",
    "REFERENCES",
    "REINDEX",
    "REPLACE",
    "RETURNING",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "TABLE",
    "TEXT",
    "TRIGGER",
    "UNION",
    "UNIQUE",
    "UPDATE",
    "USING",
    "VACUUM",
    "VALUES",
    "VIEW",
    "WHERE",
    "WITH",
    "WITHOUT ROWID",
];

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let of_files = [".read ", ".import ", ".open ", ".save "];
        match of_files.iter().any(|command| line.starts_with(command)) {
            true => FilenameCompleter::new().complete_path(line, at),
            false => Ok(self.candidates(&line[..at])),
        }
    }
}

impl Words {
    /// Returns where the word at the end of a line begins, and what it may become.
    fn candidates(&self, before: &str) -> (usize, Vec<Pair>) {
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        if before.starts_with('.') && !before.contains(' ') {
            let commands = dot::COMMANDS.iter().map(|command| command.name);
            let fits = commands.filter(|name| name.starts_with(before));
            return (0, fits.map(str::to_owned).map(pair).collect());
        }
        let in_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let start = before
            .rfind(|it| !in_word(it))
            .map_or(0, |it| it + before[it..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        if word.is_empty() {
            return (start, Vec::new());
        }
        let begins = |name: &str| {
            name.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        };
        let lower = word.chars().all(char::is_lowercase);
        let keyword = |name: &&str| if lower { name.to_lowercase() } else { (*name).to_owned() };
        // After a dot, there are columns only.
        let keywords = KEYWORDS.iter().filter(|_| !before[..start].ends_with('.'));
        let keywords = keywords.filter(|name| begins(name)).map(keyword);
        let names = self.names.iter().filter(|name| begins(name)).cloned();
        (start, names.chain(keywords).map(pair).collect())
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Validator for Words {}
impl Helper for Words {}

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
    state: &'s mut ShellState<'a>,
    lines: Vec<Line>,
    observed: Vec<Observed>,
    notes: BTreeSet<&'static str>,
    /// `true` if a command was executed.
    commanded: bool,
    failed: bool,
}

/// Executes the statements of files. Returns `true` if one failed.
pub fn files(state: &mut ShellState<'_>) -> Result<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed() {
        let words = Words { names: ["users", "user_id", "größe"].map(str::to_owned).to_vec() };
        let of = |before: &str| {
            let (start, pairs) = words.candidates(before);
            (start, pairs.into_iter().map(|pair| pair.replacement).collect::<Vec<_>>())
        };
        assert_eq!(of("sel"), (0, vec!["select".to_owned()]));
        assert_eq!(of("SELECT * FROM Us").1, ["users", "user_id", "USING"]);
        assert_eq!(of("select u.us"), (9, vec!["users".to_owned(), "user_id".to_owned()]));
        assert_eq!(of("select grö").1, ["größe"]);
        assert_eq!(of(".sc"), (0, vec![".schema".to_owned()]));
        assert_eq!(of("select "), (7, Vec::new()));
    }
}
