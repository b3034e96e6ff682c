//! The shell: reads statements and commands, line by line.

use std::borrow::Cow;
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
use stablebench_suite_sql::split::{self, End};

use super::session::Session;
use super::state::State;
use super::text::{Kind, items};
use super::{dot, print};

/// Executes a text as if it were typed, without prompts. Returns `true` if something failed.
pub fn piped(state: &mut State<'_>) -> Result<bool> {
    let text = super::text::read(Path::new("-"))?;
    dot::all(state, &text, "standard input", state.args.keep_going)?;
    Ok(state.failed || !state.finished()?)
}

/// Executes the SQL and the commands of options. Returns `true` if something failed.
pub fn commands(state: &mut State<'_>) -> Result<bool> {
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
