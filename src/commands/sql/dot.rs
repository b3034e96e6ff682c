//! The commands of the shell, which begin with a dot as in `sqlite3`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use stablebench_replica::Rules;
use stablebench_suite::engines::Configuration;
use stablebench_suite_sql::Value;

use super::dump::{copy, import, parts};
use super::print::{self, PrintMode};
use super::session::Session;
use super::state::{Costs, ShellState};
use super::text::{Kind, items, words};
use super::{advice, check_file, setup, text};
use crate::commands::replica::embedded;
use crate::interrupt;
use crate::replica::Replica;
use crate::replica::embedded::Embedded;
use crate::replica::options::ReplicaArgs;
use crate::report::number::Grouped;
use crate::terminal::{print, safe};

/// A command.
pub struct Command {
    pub name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&mut ShellState<'_>, &[String]) -> Result<Next>,
}

/// What follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Line,
    /// It failed, and the reason is printed.
    Failed,
    Quit,
}

/// All commands.
pub const COMMANDS: &[Command] = &[
    Command {
        name: ".advice",
        arguments: "",
        about: "indexes and changes that would help the last statement",
        run: advise,
    },
    Command {
        name: ".config",
        arguments: "[NAME=VALUE …]",
        about: "settings as read back, or others, with which the database is opened again",
        run: config,
    },
    Command { name: ".cost", arguments: "on|off|full", about: "costs below the rows", run: cost },
    Command {
        name: ".dump",
        arguments: "[TABLE]",
        about: "SQL that makes the database again",
        run: dump,
    },
    Command {
        name: ".engine",
        arguments: "[ENGINE]",
        about: "the engine, or another one with the same database",
        run: engine,
    },
    Command {
        name: ".eqp",
        arguments: "on|off",
        about: "whole query plans above the rows",
        run: plans,
    },
    Command { name: ".exit", arguments: "", about: "the same as .quit", run: quit },
    Command { name: ".help", arguments: "", about: "this list", run: help },
    Command {
        name: ".import",
        arguments: "FILE TABLE",
        about: "insert the rows of a CSV file; a new table gets its columns from the first line",
        run: import_rows,
    },
    Command { name: ".indexes", arguments: "[TABLE]", about: "names of indexes", run: indexes },
    Command {
        name: ".mode",
        arguments: "box|list|csv|json|markdown|line",
        about: "form of the rows",
        run: mode,
    },
    Command {
        name: ".open",
        arguments: "[FILE]",
        about: "replace the database by that of a file, or by an empty one",
        run: open,
    },
    Command {
        name: ".parameter",
        arguments: "set NAME VALUE | list | clear",
        about: "values of :NAME in statements",
        run: parameter,
    },
    Command { name: ".quit", arguments: "", about: "end", run: quit },
    Command {
        name: ".read",
        arguments: "FILE",
        about: "execute the statements and commands in a file",
        run: read,
    },
    Command {
        name: ".rules",
        arguments: "[RULES]",
        about: "the rules of charging, or others, with the same database",
        run: rules,
    },
    Command { name: ".save", arguments: "FILE", about: "save the database to a file", run: save },
    Command { name: ".schema", arguments: "[TABLE]", about: "CREATE statements", run: schema },
    Command {
        name: ".tables",
        arguments: "[PATTERN]",
        about: "names of tables and views",
        run: tables,
    },
    Command {
        name: ".timer",
        arguments: "on|off",
        about: "time of each message on this machine",
        run: timer,
    },
    Command {
        name: ".upgrade",
        arguments: "",
        about: "upgrade the canister, so that the next statement opens the database",
        run: upgrade,
    },
];

/// Executes a command. What fails is printed, and the shell goes on.
pub fn run(state: &mut ShellState<'_>, line: &str) -> Result<Next> {
    let outcome = words(line).and_then(|words| {
        let (name, arguments) =
            words.split_first().context("a command has a name; .help lists them")?;
        (find(name)?.run)(state, arguments)
    });
    outcome.or_else(|error| {
        state.failure(&format!("{error:#}"))?;
        Ok(Next::Failed)
    })
}

/// Finds a command by its name or by the beginning of only one.
fn find(name: &str) -> Result<&'static Command> {
    if let Some(exact) = COMMANDS.iter().find(|command| command.name == name) {
        return Ok(exact);
    }
    let mut found = COMMANDS.iter().filter(|command| command.name.starts_with(name));
    match (found.next(), found.next()) {
        (Some(one), None) if name.len() > 1 => Ok(one),
        (Some(_), Some(_)) if name.len() > 1 => {
            bail!("{name} is the beginning of several commands; .help lists them")
        }
        _ => bail!("there is no command {name}; .help lists them"),
    }
}

/// Executes a statement or a command. A failure is printed.
pub fn item(state: &mut ShellState<'_>, kind: Kind, text: &str) -> Result<Next> {
    match kind {
        Kind::Command if state.interactive => {
            state.stoppable(|state| run(state, text)).and_then(|(next, _)| next)
        }
        Kind::Command => run(state, text),
        Kind::Statement if state.statement(text)? => Ok(Next::Line),
        Kind::Statement => Ok(Next::Failed),
    }
}

/// Executes all of a text, until something fails or `.quit`.
pub fn all(state: &mut ShellState<'_>, text: &str, from: &str, keep_going: bool) -> Result<Next> {
    let mut outcome = Next::Line;
    let around = state.place.take();
    for one in items(text) {
        state.place = (!from.is_empty()).then(|| (from.to_owned(), one.line));
        match item(state, one.kind, one.text)? {
            Next::Line => {}
            Next::Quit => {
                outcome = Next::Quit;
                break;
            }
            Next::Failed => {
                outcome = Next::Failed;
                state.failed = true;
                if !keep_going {
                    break;
                }
            }
        }
    }
    state.place = around;
    Ok(outcome)
}

fn only<'a>(arguments: &'a [String], what: &str) -> Result<&'a str> {
    match arguments {
        [one] => Ok(one),
        _ => bail!("the command takes {what}"),
    }
}

fn optional<'a>(arguments: &'a [String], what: &str) -> Result<Option<&'a str>> {
    match arguments {
        [] => Ok(None),
        _ => only(arguments, what).map(Some),
    }
}

fn help(state: &mut ShellState<'_>, _: &[String]) -> Result<Next> {
    const BEFORE: usize = 42;
    let width = state.output.terminal.width.map_or(100, usize::from).max(BEFORE + 20);
    for Command { name, arguments, about, .. } in COMMANDS {
        let before = format!("{name} {arguments}");
        let lines = textwrap::wrap(about, width - BEFORE);
        for (place, line) in lines.iter().enumerate() {
            let before = if place == 0 { before.as_str() } else { "" };
            print(&format!("{before:BEFORE$}{line}\n"))?;
        }
    }
    Ok(Next::Line)
}

fn quit(_: &mut ShellState<'_>, _: &[String]) -> Result<Next> {
    Ok(Next::Quit)
}

/// Returns the first column of a query's rows.
fn column(state: &mut ShellState<'_>, text: &str, parameter: Option<&str>) -> Result<Vec<String>> {
    let parameters = parameter.map(|text| Value::Text(text.to_owned())).into_iter().collect();
    let rows = state.session.rows_of(text, parameters)?;
    let first = |row: &Vec<Value>| match row.first() {
        // Statements have lines of their own.
        Some(Value::Text(text)) => safe(text).into_owned(),
        other => other.map(print::text).unwrap_or_default(),
    };
    Ok(rows.iter().map(first).collect())
}

fn tables(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') \
                          AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let names = match optional(arguments, "at most a pattern, as of LIKE")? {
        None => column(state, &format!("{TABLES} ORDER BY name"), None)?,
        Some(pattern) => {
            column(state, &format!("{TABLES} AND name LIKE ?1 ORDER BY name"), Some(pattern))?
        }
    };
    print(&in_columns(&names, state.output.terminal.width.map_or(80, usize::from)))?;
    Ok(Next::Line)
}

/// Returns names in columns, as `sqlite3` prints them: downwards, then to the right.
fn in_columns(names: &[String], width: usize) -> String {
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) + 2;
    let columns = (width / widest).max(1);
    let height = names.len().div_ceil(columns).max(1);
    let mut text = String::new();
    for row in 0..height.min(names.len()) {
        let names: Vec<String> = names[row..]
            .iter()
            .step_by(height)
            .map(|name| format!("{name:<width$}", width = widest - 2))
            .collect();
        text += names.join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn lines(lines: &[String]) -> Result<Next> {
    for line in lines {
        print(&format!("{line}\n"))?;
    }
    Ok(Next::Line)
}

fn indexes(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    const INDEXES: &str = "SELECT name FROM sqlite_schema WHERE type = 'index'";
    let found = match optional(arguments, "at most a table")? {
        None => column(state, &format!("{INDEXES} ORDER BY name"), None)?,
        Some(table) => {
            column(state, &format!("{INDEXES} AND tbl_name LIKE ?1 ORDER BY name"), Some(table))?
        }
    };
    lines(&found)
}

fn schema(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    const SCHEMA: &str = "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL \
                          AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let found = match optional(arguments, "at most a table")? {
        None => column(state, SCHEMA, None)?,
        Some(table) => column(state, &format!("{SCHEMA} AND tbl_name LIKE ?1"), Some(table))?,
    };
    lines(&found)
}

fn mode(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    const KNOWN: &str = "one of box, list, csv, json, markdown, line";
    state.mode = PrintMode::from_str(only(arguments, KNOWN)?, true)
        .map_err(|error| anyhow!("{error}; a form is {KNOWN}"))?;
    Ok(Next::Line)
}

fn cost(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    state.notes.costs = match only(arguments, "on, off or full")? {
        "on" => Costs::On,
        "off" => Costs::Off,
        "full" => Costs::Full,
        other => bail!("{other} is none of on, off and full"),
    };
    Ok(Next::Line)
}

fn switch(arguments: &[String]) -> Result<bool> {
    match only(arguments, "on or off")? {
        "on" => Ok(true),
        "off" => Ok(false),
        other => bail!("{other} is neither on nor off"),
    }
}

fn plans(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    state.notes.plans = switch(arguments)?;
    Ok(Next::Line)
}

fn timer(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    state.notes.timer = switch(arguments)?;
    Ok(Next::Line)
}

fn advise(state: &mut ShellState<'_>, _: &[String]) -> Result<Next> {
    if state.last.is_empty() {
        bail!("no statement was executed yet");
    }
    let advice = advice::of(&mut state.session, &state.last);
    interrupt::check_work()?;
    if advice.is_empty() {
        state.dim(&["nothing to improve was found in the last statement".to_owned()])?;
    }
    for finding in advice {
        print(&advice::shown(&finding, state.output.terminal))?;
    }
    Ok(Next::Line)
}

fn engine(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    if let Some(key) = optional(arguments, "at most an engine")? {
        let configuration = super::engine(key).map_err(|error| anyhow!("{error}"))?;
        if state.args.save_db.is_some() {
            check_file(&configuration, "--save-db")?;
        }
        let replica = state.replica.clone();
        again(state, replica, configuration)?;
    }
    print(&format!("{}\n", state.session.configuration().key()))?;
    Ok(Next::Line)
}

fn rules(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    if let Some(name) = optional(arguments, "at most the name of rules")? {
        let rules: Rules = name.parse()?;
        let args = ReplicaArgs { rules: Some(rules), ..state.args.replica.clone() };
        let (replica, _) = embedded(&args, &state.output.progress)?;
        let configuration = state.session.configuration().clone();
        again(state, replica, configuration)?;
    }
    let identity = state.replica.identity();
    print(&format!("{} ({} subnet)\n", identity.rules, identity.subnet))?;
    Ok(Next::Line)
}

/// Opens the database in another canister.
fn again(
    state: &mut ShellState<'_>,
    replica: Embedded,
    configuration: Configuration,
) -> Result<()> {
    state.check_no_transaction()?;
    let mut session = Session::open(&replica, configuration, &state.output.progress)?;
    let is_empty = state.session.rows("SELECT 1 FROM sqlite_schema LIMIT 1")?.is_empty();
    if !is_empty {
        copy(&mut state.session, &mut session)
            .context("the database cannot be taken along; begin with an empty one: .open")?;
    }
    (state.session, state.replica) = (session, replica);
    Ok(())
}

fn config(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    if !arguments.is_empty() {
        state.check_no_transaction()?;
        let mut configuration: Configuration = state.session.configuration().clone();
        for argument in arguments.iter().flat_map(|argument| argument.split(',')) {
            let (name, value) = argument
                .split_once('=')
                .with_context(|| format!("{argument} is not NAME=VALUE"))?;
            configuration = configuration.with(name, value)?;
        }
        state.session.configure(configuration)?;
    }
    for setting in state.session.settings()? {
        print(&format!("{} = {}\n", setting.name, setting.value))?;
    }
    Ok(Next::Line)
}

fn upgrade(state: &mut ShellState<'_>, _: &[String]) -> Result<Next> {
    state.check_no_transaction()?;
    let cost = state.session.upgrade()?;
    if let Some(inside) = cost.inside {
        state.dim(&[format!("upgraded: {} instructions", Grouped(inside.charge))])?;
    }
    Ok(Next::Line)
}

fn parameter(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["set", name, value] => {
            let name = name.trim_start_matches([':', '@', '$']).to_owned();
            let value = match (value.parse::<i64>(), value.parse::<f64>()) {
                (Ok(number), _) => Value::Integer(number),
                (_, Ok(number)) => Value::Real(number),
                _ => Value::Text(value.to_owned()),
            };
            state.parameters.retain(|(known, _)| *known != name);
            state.parameters.push((name, value));
        }
        ["list"] | [] => {
            for (name, value) in &state.parameters {
                print(&format!(":{} = {}\n", safe(name), print::text(value)))?;
            }
        }
        ["clear"] => state.parameters.clear(),
        _ => bail!("the command takes set NAME VALUE, list or clear"),
    }
    Ok(Next::Line)
}

fn open(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    state.check_no_transaction()?;
    let configuration = state.session.configuration().clone();
    // A file that cannot be used leaves the database as it is.
    let mut session = Session::open(&state.replica, configuration, &state.output.progress)?;
    if let Some(path) = optional(arguments, "at most a file")? {
        setup::load_file(&mut session, &state.replica, Path::new(path), state.output)?;
    }
    state.session = session;
    Ok(Next::Line)
}

fn save(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    let path = PathBuf::from(only(arguments, "a file")?);
    state.check_no_transaction()?;
    super::save(&mut state.session, &path)?;
    Ok(Next::Line)
}

fn read(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    let path = Path::new(only(arguments, "a file")?);
    let known = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if state.reading.contains(&known) {
        bail!("{} reads itself", path.display());
    }
    let text = text::read(path)?;
    state.reading.push(known);
    let outcome = all(state, &text, &path.display().to_string(), state.args.keep_going);
    state.reading.pop();
    outcome
}

fn dump(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    let table = optional(arguments, "at most a table")?.unwrap_or("%");
    // The last is for libraries with transactions of their own, in which the first has no effect.
    print("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nPRAGMA defer_foreign_keys=ON;\n")?;
    // A file must make the same names again.
    let is_shown = std::io::stdout().is_terminal();
    parts(&mut state.session, table, &mut |part| match (part.sql(), is_shown) {
        (sql, true) => print(&safe(&sql)),
        (sql, false) => print(&sql),
    })?;
    print("COMMIT;\n")?;
    Ok(Next::Line)
}

fn import_rows(state: &mut ShellState<'_>, arguments: &[String]) -> Result<Next> {
    let [path, table] = arguments else { bail!("the command takes a CSV file and a table") };
    state.check_no_transaction()?;
    let rows = import(&mut state.session, Path::new(path), table, &state.output.progress)?;
    state.dim(&[format!("{} rows imported", Grouped(rows))])?;
    Ok(Next::Line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_be_shortened() {
        assert_eq!(find(".sch").unwrap().name, ".schema");
        assert!(find(".s").is_err() && find(".").is_err() && find(".nothing").is_err());
    }

    #[test]
    fn names_are_printed_downwards() {
        let names = ["a", "bbb", "c", "d", "e"].map(str::to_owned);
        assert_eq!(in_columns(&names, 16), "a    c    e\nbbb  d\n");
        assert_eq!(in_columns(&names[..1], 3), "a\n");
        assert_eq!(in_columns(&[], 80), "");
    }
}
