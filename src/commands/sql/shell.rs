//! The shell: reads statements and commands, line by line.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use stablebench_suite_sql::split::{self, Control, End};
use stablebench_suite_sql::{Answer, Value};

use super::advice::{self, Observed};
use super::print::{self, Mode, PlanLine, Spent};
use super::session::{Bound, Executed, Session};
use super::text::{Kind, items};
use super::{SqlArgs, dot};
use crate::interrupt;
use crate::progress::Output;
use crate::replica::embedded::Embedded;
use crate::report::number::Grouped;
use crate::results::Prices;
use crate::terminal::{Terminal, print, safe};

/// How much of a statement's cost is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Costs {
    Off,
    #[default]
    On,
    /// With preparing, counters of SQLite, and all pages.
    Full,
}

/// What is printed besides the rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    pub costs: Costs,
    /// `true` if whole query plans are printed, above the rows.
    pub plans: bool,
    /// `true` if the time on this machine is printed.
    pub timer: bool,
}

/// A session and what its commands have set.
pub struct State<'a> {
    pub session: Session,
    pub replica: Embedded,
    pub args: &'a SqlArgs,
    pub prices: Prices,
    pub output: &'a Output,
    pub mode: Mode,
    pub notes: Notes,
    /// The statements of the open transaction, which are one message.
    pub transaction: Vec<Bound>,
    /// The values of parameters by their names.
    pub parameters: Vec<(String, Value)>,
    /// The files that are being read, to stop at one that reads itself.
    pub reading: Vec<PathBuf>,
    /// The last statements, for advice.
    pub last: Vec<Observed>,
    /// `true` if a person types, who may interrupt a statement.
    interactive: bool,
}

impl<'a> State<'a> {
    pub fn new(
        (replica, session): (Embedded, Session),
        prices: Prices,
        args: &'a SqlArgs,
        output: &'a Output,
    ) -> Self {
        Self {
            session,
            replica,
            args,
            prices,
            output,
            mode: args.mode,
            notes: Notes::default(),
            transaction: Vec::new(),
            parameters: Vec::new(),
            reading: Vec::new(),
            last: Vec::new(),
            interactive: false,
        }
    }

    /// Executes a statement or a command. A failure is printed.
    pub fn item(&mut self, kind: Kind, text: &str) -> Result<dot::Next> {
        match kind {
            Kind::Command if self.interactive => {
                self.stoppable(|state| dot::run(state, text)).and_then(|(next, _)| next)
            }
            Kind::Command => dot::run(self, text),
            Kind::Statement if self.statement(text)? => Ok(dot::Next::Line),
            Kind::Statement => Ok(dot::Next::Failed),
        }
    }

    /// Executes all of a text, until something fails or `.quit`.
    pub fn all(&mut self, text: &str, from: &str, keep_going: bool) -> Result<dot::Next> {
        let mut outcome = dot::Next::Line;
        for item in items(text) {
            match self.item(item.kind, item.text)? {
                dot::Next::Line => {}
                dot::Next::Quit => return Ok(dot::Next::Quit),
                dot::Next::Failed => {
                    outcome = dot::Next::Failed;
                    if !from.is_empty() {
                        let statement = shortened(item.text, 60);
                        self.failure(&format!("{from}, line {}: {statement}", item.line))?;
                    }
                    if !keep_going {
                        break;
                    }
                }
            }
        }
        Ok(outcome)
    }

    /// Executes a statement, or keeps it until the end of its transaction. Returns `false` if it
    /// failed; the reason is printed.
    pub fn statement(&mut self, text: &str) -> Result<bool> {
        let bound = self.bind(text);
        match split::control(text) {
            Control::Begin if self.transaction.is_empty() => {
                self.transaction.push(bound);
                if self.interactive {
                    self.dim(&[
                        "the statements up to COMMIT or ROLLBACK are one message, which is \
                                sent then"
                            .to_owned(),
                    ])?;
                }
                Ok(true)
            }
            Control::Commit | Control::Rollback if !self.transaction.is_empty() => {
                let mut statements = std::mem::take(&mut self.transaction);
                statements.push(bound);
                self.execute(&statements)
            }
            _ if !self.transaction.is_empty() => {
                self.transaction.push(bound);
                Ok(true)
            }
            _ => self.execute(&[bound]),
        }
    }

    /// Says that a transaction has no end. Returns `false` then.
    pub fn finished(&mut self) -> Result<bool> {
        if self.transaction.is_empty() {
            return Ok(true);
        }
        self.transaction.clear();
        self.failure("the open transaction has no COMMIT, and nothing of it was executed")?;
        Ok(false)
    }

    /// Replaces named parameters by the values that `.parameter` has set.
    pub fn bind(&self, text: &str) -> Bound {
        let (text, names) = split::numbered(text);
        let value = |name: &str| {
            let known = self.parameters.iter().find(|(known, _)| known == name);
            known.map_or(Value::Null, |(_, value)| value.clone())
        };
        let parameters = names.iter().map(|name| value(name)).collect();
        Bound { text, parameters }
    }

    fn execute(&mut self, statements: &[Bound]) -> Result<bool> {
        if !self.interactive {
            return self.execute_and_print(statements)?.map_or_else(
                |error| {
                    self.whole_failure(statements, &error)?;
                    Ok(false)
                },
                Ok,
            );
        }
        let (done, ended) = self.stoppable(|state| state.execute_and_print(statements))?;
        match done? {
            Ok(succeeded) => return Ok(succeeded),
            Err(_) if ended => self.failure("interrupted; the message had no effect")?,
            Err(error) => self.whole_failure(statements, &error)?,
        }
        Ok(false)
    }

    /// Does work that Ctrl-C ends. Returns `true` if it was ended.
    fn stoppable<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<(T, bool)> {
        let switch = self.session.switch();
        let stop = move || switch.iter().for_each(stablebench_replica::subnet::Halt::halt);
        let (done, ended) = interrupt::stoppable(stop, || work(self))?;
        if ended {
            self.session.switch();
        }
        Ok((done, ended))
    }

    fn whole_failure(&self, statements: &[Bound], error: &anyhow::Error) -> Result<()> {
        let first = statements.first().map_or("", |statement| &statement.text);
        let more = match statements.len() {
            0 | 1 => String::new(),
            all => format!(" and {} more statements", all - 1),
        };
        self.failure(&format!("{}{more}: {error:#}", shortened(first, 60)))
    }

    /// Executes a message and prints its answers. The inner error is that of the whole message.
    fn execute_and_print(&mut self, statements: &[Bound]) -> Result<Result<bool>> {
        let began = Instant::now();
        let executed = match self.session.execute(statements) {
            Ok(executed) => executed,
            Err(error) => return Ok(Err(error)),
        };
        let took = began.elapsed();
        self.last.clear();
        let alone = executed.answers.len() == 1;
        for (number, answer) in executed.answers.iter().enumerate() {
            let statement = &statements[answer.call as usize];
            if !alone && self.notes.costs != Costs::Off {
                self.dim(&[shortened(&statement.text, 76)])?;
            }
            self.answer(statement, answer, &executed, number)?;
            self.last.push(Observed::new(statement, answer));
        }
        if let Some(message) = print::message(&executed, &self.prices)
            && self.notes.costs != Costs::Off
        {
            self.dim(&[message])?;
        }
        if self.notes.timer {
            self.dim(&[format!("Run Time: real {:.3}", took.as_secs_f64())])?;
        }
        Ok(Ok(executed.answers.iter().all(|answer| answer.error.is_none())))
    }

    fn answer(
        &mut self,
        statement: &Bound,
        answer: &Answer,
        executed: &Executed,
        number: usize,
    ) -> Result<()> {
        let shows = self.notes.plans || self.notes.costs != Costs::Off;
        let plan = match shows && answer.error.is_none() {
            true => advice::plan(&mut self.session, statement),
            false => Vec::new(),
        };
        if self.notes.plans && !plan.is_empty() {
            print(&print::tree(&plan))?;
        }
        print(&print::rows(answer, self.mode, self.terminal().width))?;
        if let Some((row, column, bytes)) = answer.cut.first() {
            self.dim(&[format!(
                "row {}, column {}: only the first MiB of {} bytes is shown",
                row + 1,
                column + 1,
                Grouped(*bytes)
            )])?;
        }
        if let Some(failure) = &answer.error {
            let mut message = failure.message.clone();
            if failure.rolled_back {
                message += "; the transaction was rolled back";
            }
            self.failure(&message)?;
            let place = |offset: u32| print::place(&statement.text, offset as usize);
            if let Some(place) = failure.offset.and_then(place) {
                error_line(&place);
            }
            return Ok(());
        }
        if self.notes.costs == Costs::Off {
            return Ok(());
        }
        let spent = Spent::of(answer, executed.pages.get(number).copied().flatten());
        let charged = (executed.answers.len() == 1).then_some(executed.cost.cycles);
        let mut parts = print::cost(answer, spent, charged, &self.prices);
        parts.extend(brief(&plan));
        self.dim(&parts)?;
        if self.notes.costs == Costs::Full {
            for line in print::details(answer, spent, executed) {
                self.dim(&[line])?;
            }
        }
        Ok(())
    }

    /// Standard output, whose width may have changed.
    fn terminal(&self) -> Terminal {
        match self.output.terminal.width {
            None => self.output.terminal,
            Some(_) => Terminal { width: Terminal::stdout().width, ..self.output.terminal },
        }
    }

    /// Prints notes below the rows, in one line if they fit. If the rows are for a program, they go to
    /// stderr.
    pub fn dim(&self, parts: &[String]) -> Result<()> {
        let terminal = self.terminal();
        let parts: Vec<String> = parts.iter().map(|part| safe(part).into_owned()).collect();
        for line in print::joined(&parts, terminal.width) {
            match (terminal.colour, self.mode) {
                (true, _) => print(&coloured(&line))?,
                (false, Mode::List | Mode::Csv | Mode::Json) => error_line(&line),
                (false, _) => print(&(line + "\n"))?,
            }
        }
        Ok(())
    }

    /// Prints an error, and goes on.
    pub fn failure(&self, text: &str) -> Result<()> {
        error_line(&format!("Error: {text}"));
        Ok(())
    }
}

/// Returns a line in dim letters, in which scans are highlighted.
fn coloured(line: &str) -> String {
    let dim = anstyle::Style::new().dimmed();
    let scan = anstyle::AnsiColor::Yellow.on_default().bold();
    let parts: Vec<String> = line
        .split(" · ")
        .map(|part| match part.starts_with("SCAN ") || part.starts_with("USE TEMP") {
            true => format!("{scan}{part}{scan:#}"),
            false => format!("{dim}{part}{dim:#}"),
        })
        .collect();
    parts.join(&format!("{dim} · {dim:#}")) + "\n"
}

/// Prints a line to stderr.
fn error_line(text: &str) {
    // Nobody may be able to read it.
    let _ = writeln!(std::io::stderr().lock(), "{}", safe(text.trim_end_matches('\n')));
}

/// Returns what a plan reads, the full scans first.
fn brief(plan: &[PlanLine]) -> Vec<String> {
    let mut parts = print::brief(plan);
    parts.sort_by_key(|part| !part.starts_with("SCAN "));
    parts
}

/// Returns a statement in one line of at most `width` characters.
pub fn shortened(text: &str, width: usize) -> String {
    // A statement may have megabytes.
    let start = text.char_indices().nth(4 * width).map_or(text, |(end, _)| &text[..end]);
    let line = start.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > width || start.len() < text.len() {
        true => line.chars().take(width - 1).collect::<String>() + "…",
        false => line,
    }
}

/// Executes a text as if it were typed, without prompts. Returns `true` if something failed.
pub fn piped(state: &mut State<'_>) -> Result<bool> {
    let text = super::text::read(Path::new("-"))?;
    let outcome = state.all(&text, "standard input", state.args.keep_going)?;
    Ok(outcome == dot::Next::Failed || !state.finished()?)
}

/// Executes the SQL and the commands of options. Returns `true` if something failed.
pub fn commands(state: &mut State<'_>) -> Result<bool> {
    let mut failed = false;
    for text in &state.args.commands {
        match state.all(text, "", state.args.keep_going)? {
            dot::Next::Line => {}
            dot::Next::Quit => break,
            dot::Next::Failed if state.args.keep_going => failed = true,
            dot::Next::Failed => return Ok(true),
        }
    }
    Ok(failed || !state.finished()?)
}

/// Reads lines until the end of input or `.quit`.
pub fn run(state: &mut State<'_>) -> Result<()> {
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
            if state.item(Kind::Command, &line)? == dot::Next::Quit {
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
                state.item(one.kind, one.text)?;
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
        Ok(self.candidates(&line[..at]))
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

    #[test]
    fn long_statements_are_shortened() {
        assert_eq!(shortened("select\n  1;", 20), "select 1;");
        assert_eq!(shortened(&"x".repeat(1 << 20), 5), "xxxx…");
        assert_eq!(shortened("äöüäöü", 4), "äöü…");
    }
}
