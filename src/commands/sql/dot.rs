//! The commands of the shell, which begin with a dot as in `sqlite3`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use stablebench_suite::engines::Configuration;
use stablebench_suite_sql::{Value, split};

use super::print::{self, Mode};
use super::session::Bound;
use super::shell::{Costs, State};
use crate::terminal::{print, safe};

/// A command.
pub struct Command {
    pub name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&mut State<'_>, &[String]) -> Result<Next>,
}

/// What follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Line,
    Quit,
}

/// All commands.
pub const COMMANDS: &[Command] = &[
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
    Command { name: ".eqp", arguments: "on|off", about: "query plans below the costs", run: plans },
    Command { name: ".help", arguments: "", about: "this list", run: help },
    Command {
        name: ".import",
        arguments: "FILE TABLE",
        about: "insert the rows of a CSV file; the first line has the columns of a new table",
        run: import,
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
        arguments: "FILE",
        about: "replace the database by that of a file",
        run: open,
    },
    Command {
        name: ".parameter",
        arguments: "set NAME VALUE | list | clear",
        about: "values of :NAME in statements",
        run: parameter,
    },
    Command { name: ".quit", arguments: "", about: "end", run: quit },
    Command { name: ".read", arguments: "FILE", about: "execute the SQL in a file", run: read },
    Command { name: ".save", arguments: "FILE", about: "save the database to a file", run: save },
    Command { name: ".schema", arguments: "[TABLE]", about: "CREATE statements", run: schema },
    Command {
        name: ".tables",
        arguments: "[PATTERN]",
        about: "names of tables and views",
        run: tables,
    },
    Command {
        name: ".upgrade",
        arguments: "",
        about: "upgrade the canister, so that the next statement opens the database",
        run: upgrade,
    },
];

/// Executes a command. What fails is printed, and the shell goes on.
pub fn run(state: &mut State<'_>, line: &str) -> Result<Next> {
    let outcome = words(line).and_then(|words| {
        let (name, arguments) =
            words.split_first().context("a command has a name; .help lists them")?;
        (find(name)?.run)(state, arguments)
    });
    outcome.or_else(|error| {
        state.failure(&format!("{error:#}"))?;
        Ok(Next::Line)
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

/// Splits a line into words; quotes keep spaces in one.
fn words(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut letters = line.trim().trim_end_matches(';').chars().peekable();
    while let Some(first) = letters.peek().copied() {
        if first.is_whitespace() {
            letters.next();
            continue;
        }
        let mut word = String::new();
        match first {
            '\'' | '"' => {
                letters.next();
                loop {
                    match letters.next() {
                        Some(letter) if letter == first => break,
                        Some(letter) => word.push(letter),
                        None => bail!("a {first} has no end"),
                    }
                }
            }
            _ => {
                while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
                    word.push(letter);
                }
            }
        }
        words.push(word);
    }
    Ok(words)
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

fn help(_: &mut State<'_>, _: &[String]) -> Result<Next> {
    let width =
        COMMANDS.iter().map(|it| it.name.len() + it.arguments.len() + 1).max().unwrap_or(0).min(36);
    for Command { name, arguments, about, .. } in COMMANDS {
        print(&format!("{:width$}  {about}\n", format!("{name} {arguments}")))?;
    }
    Ok(Next::Line)
}

fn quit(_: &mut State<'_>, _: &[String]) -> Result<Next> {
    Ok(Next::Quit)
}

/// Prints the first column of a query's rows, one line each.
fn lines(state: &mut State<'_>, text: &str, parameter: Option<&str>) -> Result<Next> {
    let parameters = parameter.map(|text| Value::Text(text.to_owned())).into_iter().collect();
    let answers = state.session.look(&[Bound { text: text.to_owned(), parameters }])?;
    let answer = answers.first().context("the canister returned no answer")?;
    if let Some(failure) = &answer.error {
        bail!("{}", failure.message);
    }
    for row in &answer.rows {
        // Statements have lines of their own.
        let text = match row.first() {
            Some(Value::Text(text)) => safe(text).into_owned(),
            other => other.map(print::text).unwrap_or_default(),
        };
        print(&format!("{text}\n"))?;
    }
    Ok(Next::Line)
}

fn tables(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    let pattern = optional(arguments, "at most a pattern, as of LIKE")?;
    const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'";
    match pattern {
        None => lines(state, &format!("{TABLES} ORDER BY name"), None),
        Some(pattern) => {
            lines(state, &format!("{TABLES} AND name LIKE ?1 ORDER BY name"), Some(pattern))
        }
    }
}

fn indexes(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    const INDEXES: &str = "SELECT name FROM sqlite_schema WHERE type = 'index'";
    match optional(arguments, "at most a table")? {
        None => lines(state, &format!("{INDEXES} ORDER BY name"), None),
        Some(table) => {
            lines(state, &format!("{INDEXES} AND tbl_name LIKE ?1 ORDER BY name"), Some(table))
        }
    }
}

fn schema(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    const SCHEMA: &str =
        "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'";
    match optional(arguments, "at most a table")? {
        None => lines(state, SCHEMA, None),
        Some(table) => lines(state, &format!("{SCHEMA} AND tbl_name LIKE ?1"), Some(table)),
    }
}

fn mode(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    let known = "one of box, list, csv, json, markdown, line";
    let name = only(arguments, known)?;
    state.mode = <Mode as clap::ValueEnum>::from_str(name, true)
        .map_err(|_| anyhow!("a form is {known}"))?;
    Ok(Next::Line)
}

fn cost(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    state.costs = match only(arguments, "on, off or full")? {
        "on" => Costs::On,
        "off" => Costs::Off,
        "full" => Costs::Full,
        other => bail!("{other} is none of on, off and full"),
    };
    Ok(Next::Line)
}

fn plans(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    state.plans = match only(arguments, "on or off")? {
        "on" => true,
        "off" => false,
        other => bail!("{other} is neither on nor off"),
    };
    Ok(Next::Line)
}

fn config(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    if !arguments.is_empty() {
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

fn upgrade(state: &mut State<'_>, _: &[String]) -> Result<Next> {
    let cost = state.session.upgrade()?;
    if let Some(inside) = cost.inside {
        state.dim(&format!(
            "upgraded: {} instructions",
            crate::report::number::Grouped(inside.charge)
        ))?;
    }
    Ok(Next::Line)
}

fn parameter(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
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
                print(&format!(":{name} = {}\n", print::text(value)))?;
            }
        }
        ["clear"] => state.parameters.clear(),
        _ => bail!("the command takes set NAME VALUE, list or clear"),
    }
    Ok(Next::Line)
}

fn open(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    let path = PathBuf::from(only(arguments, "a file")?);
    super::load(state.session, &path, state.output)?;
    Ok(Next::Line)
}

fn save(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    let path = PathBuf::from(only(arguments, "a file")?);
    super::save(state.session, &path)?;
    Ok(Next::Line)
}

fn read(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    let path = PathBuf::from(only(arguments, "a file")?);
    let known = path.canonicalize().unwrap_or_else(|_| path.clone());
    if state.reading.contains(&known) {
        bail!("{} reads itself", path.display());
    }
    let text = super::read(Path::new(&path))?;
    state.reading.push(known);
    let outcome = read_text(state, &path, &text);
    state.reading.pop();
    outcome
}

/// Executes statements and commands of a file until one fails.
fn read_text(state: &mut State<'_>, path: &Path, text: &str) -> Result<Next> {
    for statement in split::statements(text) {
        if !state.statement(statement.text)? {
            bail!(
                "{}, line {}: the statement failed; the rest was not executed",
                path.display(),
                statement.line
            );
        }
    }
    Ok(Next::Line)
}

fn dump(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    let table = optional(arguments, "at most a table")?.unwrap_or("%").to_owned();
    print("BEGIN;\n")?;
    let all = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name LIKE ?1";
    let bound = Bound { text: all.to_owned(), parameters: vec![Value::Text(table.clone())] };
    let answers = state.session.look(&[bound])?;
    for row in answers.iter().flat_map(|answer| &answer.rows) {
        let [Value::Text(name), Value::Text(sql)] = &row[..] else { continue };
        print(&format!("{};\n", safe(sql)))?;
        let rows = state.session.rows(&format!("SELECT * FROM {}", quoted_name(name)))?;
        for row in rows {
            let values: Vec<String> = row.iter().map(literal).collect();
            print(&format!("INSERT INTO {} VALUES({});\n", quoted_name(name), values.join(",")))?;
        }
    }
    let others = "SELECT sql || ';' FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL AND tbl_name LIKE ?1";
    lines(state, others, Some(&table))?;
    print("COMMIT;\n")?;
    Ok(Next::Line)
}

/// Returns a name as an identifier of SQL.
fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns a value as a literal of SQL.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Text(text) => format!("'{}'", safe(text).replace('\'', "''")),
        Value::TextBytes(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("CAST(x'{hex}' AS TEXT)")
        }
        other => print::text(other),
    }
}

/// The rows of a message of `.import`, and the bytes of their values, at most.
const ROWS: usize = 1_000;
const BYTES: usize = 1 << 19;

fn import(state: &mut State<'_>, arguments: &[String]) -> Result<Next> {
    let [path, table] = arguments else { bail!("the command takes a CSV file and a table") };
    let text = super::read(Path::new(path))?;
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut records = reader.records().peekable();
    let exists = state.session.look(&[Bound {
        text: "SELECT count(*) FROM pragma_table_info(?1)".to_owned(),
        parameters: vec![Value::Text(table.clone())],
    }])?;
    let columns = match exists.first().and_then(|answer| answer.rows.first()?.first()) {
        Some(Value::Integer(columns)) if *columns > 0 => *columns as usize,
        _ => {
            let header = records.next().context("the file is empty")??;
            let names: Vec<String> =
                header.iter().map(|name| format!("{} TEXT", quoted_name(name))).collect();
            let create = format!("CREATE TABLE {}({})", quoted_name(table), names.join(", "));
            if !state.statement(&create)? {
                return Ok(Next::Line);
            }
            header.len()
        }
    };
    let places: Vec<String> = (1..=columns).map(|place| format!("?{place}")).collect();
    let insert = format!("INSERT INTO {} VALUES({})", quoted_name(table), places.join(","));
    let step = state.output.progress.spinner(&format!("importing {path}"));
    let mut rows = 0_u64;
    while records.peek().is_some() {
        let mut statements = vec![Bound::from("BEGIN")];
        let mut bytes = 0;
        while bytes < BYTES && statements.len() <= ROWS {
            let Some(record) = records.next() else { break };
            let record = record?;
            bytes += record.as_slice().len();
            if record.len() != columns {
                bail!(
                    "row {} has {} values, and the table has {columns} columns",
                    rows + 1,
                    record.len()
                );
            }
            let parameters = record.iter().map(|cell| Value::Text(cell.to_owned())).collect();
            statements.push(Bound { text: insert.clone(), parameters });
            rows += 1;
        }
        statements.push("COMMIT".into());
        let executed = state.session.execute(&statements)?;
        if let Some(failure) = executed.answers.iter().find_map(|answer| answer.error.as_ref()) {
            bail!("{}; the rows of this message were not inserted", failure.message);
        }
    }
    step.done("");
    state.dim(&format!("{} rows imported", crate::report::number::Grouped(rows)))?;
    Ok(Next::Line)
}
