//! The shell: reads statements and commands, line by line.

use std::borrow::Cow;

use anyhow::Result;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use stablebench_suite_sql::split::{self, Control, End};
use stablebench_suite_sql::{Answer, Value};

use super::print::{self, Mode, Spent};
use super::session::{Bound, Executed, Session};
use super::{SqlArgs, dot};
use crate::progress::Output;
use crate::results::Prices;
use crate::terminal::{print, safe};

/// How much of a statement's cost is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Costs {
    Off,
    #[default]
    On,
    /// With preparing, counters of SQLite, and all pages.
    Full,
}

/// A session and what its commands have set.
pub struct State<'a> {
    pub session: &'a mut Session,
    pub prices: Prices,
    pub output: &'a Output,
    pub mode: Mode,
    pub costs: Costs,
    /// `true` if query plans are printed.
    pub plans: bool,
    /// The statements of the open transaction, which are one message.
    pub transaction: Vec<Bound>,
    /// The values of parameters by their names.
    pub parameters: Vec<(String, Value)>,
    /// The files that are being read, to stop at one that reads itself.
    pub reading: Vec<std::path::PathBuf>,
}

impl<'a> State<'a> {
    pub fn new(
        session: &'a mut Session,
        prices: Prices,
        args: &SqlArgs,
        output: &'a Output,
    ) -> Self {
        Self {
            session,
            prices,
            output,
            mode: args.mode,
            costs: Costs::default(),
            plans: true,
            transaction: Vec::new(),
            parameters: Vec::new(),
            reading: Vec::new(),
        }
    }

    /// Executes a statement, or keeps it until the end of its transaction. Returns `false` if it
    /// failed; the reason is printed.
    pub fn statement(&mut self, text: &str) -> Result<bool> {
        let bound = self.bind(text)?;
        match split::control(text) {
            Control::Begin if self.transaction.is_empty() => {
                self.transaction.push(bound);
                self.dim(
                    "the statements up to COMMIT or ROLLBACK are one message, which is sent then",
                )?;
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

    /// Replaces named parameters by the values that `.parameter` has set.
    fn bind(&self, text: &str) -> Result<Bound> {
        let (text, names) = split::numbered(text);
        let value = |name: &str| {
            let known = self.parameters.iter().find(|(known, _)| known == name);
            known.map_or(Value::Null, |(_, value)| value.clone())
        };
        let parameters = names.iter().map(|name| value(name)).collect();
        Ok(Bound { text, parameters })
    }

    fn execute(&mut self, statements: &[Bound]) -> Result<bool> {
        let executed = match self.session.execute(statements) {
            Ok(executed) => executed,
            Err(error) => {
                self.failure(&format!("{error:#}"))?;
                return Ok(false);
            }
        };
        let alone = executed.answers.len() == 1;
        for (number, answer) in executed.answers.iter().enumerate() {
            let text = &statements[answer.call as usize].text;
            if !alone && self.costs != Costs::Off {
                self.dim(&shortened(text, 76))?;
            }
            self.answer(text, answer, &executed, number)?;
        }
        if let Some(message) = print::message(&executed, &self.prices)
            && self.costs != Costs::Off
        {
            self.dim(&message)?;
        }
        Ok(executed.answers.iter().all(|answer| answer.error.is_none()))
    }

    fn answer(
        &mut self,
        text: &str,
        answer: &Answer,
        executed: &Executed,
        number: usize,
    ) -> Result<()> {
        print(&print::rows(answer, self.mode))?;
        if let Some(failure) = &answer.error {
            let mut message = failure.message.clone();
            if failure.rolled_back {
                message += "; the transaction was rolled back";
            }
            self.failure(&message)?;
            if let Some(place) =
                failure.offset.and_then(|offset| print::place(text, offset as usize))
            {
                print(&place)?;
            }
            return Ok(());
        }
        if self.costs == Costs::Off {
            return Ok(());
        }
        let spent = Spent::of(answer, executed.pages.get(number).copied().flatten());
        let charged = (executed.answers.len() == 1).then_some(executed.cost.cycles);
        self.dim(&print::cost(answer, spent, charged, &self.prices))?;
        if self.costs == Costs::Full {
            for line in print::details(answer, spent, executed) {
                self.dim(&line)?;
            }
        }
        if self.plans {
            for line in self.plan(text) {
                self.dim(&line)?;
            }
        }
        Ok(())
    }

    /// Returns the query plan of a statement, if it has one.
    fn plan(&mut self, text: &str) -> Vec<String> {
        let explained = matches!(
            split::first_word(text).unwrap_or_default().to_ascii_lowercase().as_str(),
            "select" | "with" | "values" | "insert" | "update" | "delete" | "replace"
        );
        if !explained {
            return Vec::new();
        }
        let explain = Bound { text: format!("EXPLAIN QUERY PLAN {text}"), ..Bound::default() };
        let (_, names) = split::numbered(&explain.text);
        let parameters = vec![Value::Null; names.len()];
        // A plan is a note: without one, the answer is still right.
        let Ok(answers) = self.session.look(&[Bound { parameters, ..explain }]) else {
            return Vec::new();
        };
        let rows = answers.first().map(|answer| answer.rows.as_slice()).unwrap_or_default();
        rows.iter().filter_map(|row| row.last()).map(print::text).collect()
    }

    /// Prints a note below the rows.
    pub fn dim(&self, text: &str) -> Result<()> {
        let style = anstyle::Style::new().dimmed();
        let text = self.output.terminal.wrapped(text);
        match self.output.terminal.colour {
            true => print(&format!("{style}{}{style:#}\n", safe(&text))),
            false => print(&format!("{}\n", safe(&text))),
        }
    }

    /// Prints an error, and goes on.
    pub fn failure(&self, text: &str) -> Result<()> {
        print(&format!("Error: {}\n", safe(text)))
    }
}

/// Returns a statement in one line of at most `width` characters.
pub fn shortened(text: &str, width: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > width {
        true => line.chars().take(width - 1).collect::<String>() + "…",
        false => line,
    }
}

/// Reads lines until the end of input or `.quit`.
pub fn run(mut state: State<'_>) -> Result<()> {
    let mut editor: Editor<Words, DefaultHistory> = Editor::new()?;
    editor.set_helper(Some(Words::default()));
    let history = history();
    if let Some(path) = &history {
        // The first session has none.
        let _ = editor.load_history(path);
    }
    let engine = state.session.configuration().key();
    state.dim(&format!(
        "{engine} in a canister · each statement is a message · .help lists commands, .quit or Ctrl-D ends"
    ))?;
    let mut text = String::new();
    loop {
        if let Some(words) = editor.helper_mut() {
            words.names = names(state.session);
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
        if text.is_empty() && line.starts_with('.') {
            editor.add_history_entry(&line)?;
            if dot::run(&mut state, &line)? == dot::Next::Quit {
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
            for one in split::statements(&statement) {
                state.statement(one.text)?;
            }
            if split::end(&text) == End::Missing(false) {
                text.clear();
            }
        }
    }
    if !state.transaction.is_empty() {
        state.failure("the open transaction was not committed, and nothing of it was sent")?;
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

/// The file with earlier lines.
fn history() -> Option<std::path::PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name).map(std::path::PathBuf::from).filter(|path| path.is_absolute())
    };
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
        let before = &line[..at];
        let letter = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
        let start = before
            .rfind(|it| !letter(it))
            .map_or(0, |it| it + before[it..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        if word.is_empty() {
            return Ok((start, Vec::new()));
        }
        let begins = |name: &str| {
            name.len() >= word.len()
                && name.is_char_boundary(word.len())
                && name[..word.len()].eq_ignore_ascii_case(word)
        };
        let commands = dot::COMMANDS.iter().map(|command| command.name).filter(|_| start == 0);
        let all =
            self.names.iter().map(String::as_str).chain(KEYWORDS.iter().copied()).chain(commands);
        let pair = |name: &str| Pair { display: name.to_owned(), replacement: name.to_owned() };
        Ok((start, all.filter(|name| begins(name)).map(pair).collect()))
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
