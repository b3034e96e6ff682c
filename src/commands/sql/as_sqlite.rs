//! Statements in canisters have the results of SQLite.
//!
//! Random statements are executed in canisters and in SQLite on this machine: the same rows, the same
//! errors, in every journal mode, with upgrades and messages without effect in between.
//!
//! Files in the language of SQLite's sqllogictest are executed as `stablebench sql` executes statements:
//!
//! ```text
//!   statement ok              query IT rowsort            skipif sqlite-vfs
//!   CREATE TABLE t(a, b)      SELECT a, b FROM t          hash-threshold 8
//!                             ----                        halt
//!   statement error           1
//!   INSERT INTO nosuch …      x
//! ```
//!
//! A query has a letter for each column (I, R, T) and a form of sorting; each value is a line, or all
//! of them are `30 values hashing to …` (MD5). `STABLEBENCH_SQLLOGIC=FOLDER cargo test --release
//! sqllogic` runs the files of any folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use stablebench_suite::engines::Configuration;
use stablebench_suite_sql::Value;
use stablebench_workload::Rng;

use super::replica;
use super::session::{Bound, Session};
use crate::progress::Progress;
use crate::replica::embedded::Embedded;

/// The messages of a run.
const MESSAGES: u64 = 60;

/// The rows of a statement, in any order unless it has one, or SQLite's message.
type Outcome = Result<Vec<Vec<String>>, String>;

fn shown(value: &Value) -> String {
    match value {
        Value::Real(number) => format!("{:016x}", number.to_bits()),
        other => format!("{other:?}"),
    }
}

fn sorted(mut rows: Vec<Vec<String>>, text: &str) -> Vec<Vec<String>> {
    if !text.contains("ORDER BY 1") {
        rows.sort();
    }
    rows
}

/// SQLite on this machine.
struct Native(rusqlite::Connection);

impl Native {
    fn new() -> Self {
        Self(rusqlite::Connection::open_in_memory().unwrap())
    }

    fn execute(&self, text: &str) -> Outcome {
        let message = |error: rusqlite::Error| match error {
            rusqlite::Error::SqliteFailure(_, Some(message)) => message,
            rusqlite::Error::SqlInputError { msg, .. } => msg,
            other => other.to_string(),
        };
        let mut statement = self.0.prepare(text).map_err(message)?;
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(message)? {
            let value = |column| match row.get_ref(column).unwrap() {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Integer(number),
                ValueRef::Real(number) => Value::Real(number),
                ValueRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).unwrap()),
                ValueRef::Blob(blob) => Value::Blob(blob.to_vec()),
            };
            found.push((0..columns).map(value).map(|value| shown(&value)).collect());
        }
        Ok(sorted(found, text))
    }

    /// Executes the statements of a message until one fails, which undoes its transaction.
    fn message(&self, texts: &[String]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for text in texts {
            let outcome = self.execute(text);
            let failed = outcome.is_err();
            outcomes.push(outcome);
            if failed {
                if !self.0.is_autocommit() {
                    self.execute("ROLLBACK").unwrap();
                }
                break;
            }
        }
        outcomes
    }
}

/// Executes a message in a canister. Without a journal, an error is that of the whole message.
fn in_canister(session: &mut Session, texts: &[String]) -> Result<Vec<Outcome>, String> {
    let statements: Vec<Bound> = texts.iter().map(|text| text.as_str().into()).collect();
    let executed = session.execute(&statements).map_err(|error| format!("{error:#}"))?;
    let outcome = |answer: &stablebench_suite_sql::Answer| match &answer.error {
        Some(failure) => Err(failure.message.clone()),
        None => {
            let rows = answer.rows.iter().map(|row| row.iter().map(shown).collect());
            Ok(sorted(rows.collect(), &texts[answer.call as usize]))
        }
    };
    Ok(executed.answers.iter().map(outcome).collect())
}

/// A table that statements refer to. It may have been dropped.
#[derive(Clone, Debug)]
struct Table {
    name: String,
    columns: Vec<String>,
}

/// Random statements.
struct Statements {
    rng: Rng,
    tables: Vec<Table>,
    made: u64,
}

impl Statements {
    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.rng.below(from.len() as u64) as usize]
    }

    fn value(&mut self) -> String {
        match self.rng.below(9) {
            0 => "NULL".to_owned(),
            1 => format!("'{}'", ["", "a", "ä", "it''s", "12", "1e3"][self.rng.below(6) as usize]),
            2 => format!("{}.5", self.rng.below(100)),
            3 => format!("x'{:02x}'", self.rng.below(256)),
            4 => format!("-{}", self.rng.below(1_000)),
            _ => self.rng.below(30).to_string(),
        }
    }

    fn table(&mut self) -> Table {
        let unknown = Table { name: "missing".to_owned(), columns: vec!["c0".to_owned()] };
        match self.tables.len() as u64 {
            0 => unknown,
            _ if self.rng.below(40) == 0 => unknown,
            tables => self.tables[self.rng.below(tables) as usize].clone(),
        }
    }

    fn column(&mut self, table: &Table) -> String {
        table.columns[self.rng.below(table.columns.len() as u64) as usize].clone()
    }

    fn condition(&mut self, table: &Table) -> String {
        let (column, other, value) = (self.column(table), self.column(table), self.value());
        let operator = self.pick(&["=", "<", ">=", "IS NOT", "LIKE"]);
        match self.rng.below(5) {
            0 => format!("{column} IN ({value}, {})", self.value()),
            1 => format!("{column} {operator} {other}"),
            2 => format!("typeof({column}) = '{}'", self.pick(&["integer", "text", "null"])),
            _ => format!("{column} {operator} {value}"),
        }
    }

    fn create(&mut self) -> String {
        let name = format!("t{}", self.made);
        self.made += 1;
        let mut columns = Vec::new();
        let mut definitions = Vec::new();
        let without_rowid = self.rng.below(4) == 0;
        for place in 0..=self.rng.below(4) {
            let column = format!("c{place}");
            let kind = self.pick(&["INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC", ""]);
            let rule = match (place, self.rng.below(9)) {
                (0, _) if without_rowid => "PRIMARY KEY".to_owned(),
                (0, 0..4) => "PRIMARY KEY".to_owned(),
                (_, 4) => "UNIQUE".to_owned(),
                (_, 5) => "NOT NULL".to_owned(),
                (_, 6) => format!("DEFAULT {}", self.value()),
                (_, 7) => format!("CHECK ({column} IS NOT 7)"),
                (1.., 8) => "COLLATE NOCASE".to_owned(),
                _ => String::new(),
            };
            definitions.push(format!("{column} {kind} {rule}").trim_end().to_owned());
            columns.push(column);
        }
        let end = if without_rowid { " WITHOUT ROWID" } else { "" };
        let text = format!("CREATE TABLE {name}({}){end}", definitions.join(", "));
        self.tables.push(Table { name, columns });
        text
    }

    fn change(&mut self) -> String {
        let table = self.table();
        let Table { name, columns } = &table;
        let row = |this: &mut Self| {
            let values: Vec<String> = columns.iter().map(|_| this.value()).collect();
            format!("({})", values.join(", "))
        };
        match self.rng.below(8) {
            0 => format!(
                "UPDATE {name} SET {} = {} WHERE {}",
                self.column(&table),
                self.value(),
                self.condition(&table)
            ),
            1 => format!("DELETE FROM {name} WHERE {}", self.condition(&table)),
            2 => format!(
                "INSERT OR {} INTO {name} VALUES {}",
                self.pick(&["IGNORE", "REPLACE"]),
                row(self)
            ),
            3 => format!("INSERT INTO {name} VALUES {} RETURNING *", row(self)),
            4 => {
                let other = self.table();
                let values: Vec<String> = columns.iter().map(|_| self.column(&other)).collect();
                format!(
                    "INSERT OR IGNORE INTO {name} SELECT {} FROM {}",
                    values.join(", "),
                    other.name
                )
            }
            _ => {
                let rows: Vec<String> = (0..=self.rng.below(4)).map(|_| row(self)).collect();
                format!("INSERT INTO {name} VALUES {}", rows.join(", "))
            }
        }
    }

    fn query(&mut self) -> String {
        let (table, other) = (self.table(), self.table());
        let (column, condition) = (self.column(&table), self.condition(&table));
        let name = &table.name;
        match self.rng.below(7) {
            0 => format!(
                "SELECT count(*), total({column}), max({column}) FROM {name} WHERE {condition}"
            ),
            1 => format!("SELECT {column}, count(*) FROM {name} GROUP BY {column} ORDER BY 1"),
            2 => format!(
                "SELECT a.{column}, b.{} FROM {name} AS a LEFT JOIN {} AS b ON a.{column} = b.{}",
                self.column(&other),
                other.name,
                self.column(&other)
            ),
            3 => format!(
                "SELECT {column}, count(*) OVER (PARTITION BY typeof({column})) FROM {name}"
            ),
            4 => format!(
                "SELECT * FROM {name} WHERE {column} IN (SELECT {} FROM {})",
                self.column(&other),
                other.name
            ),
            _ => format!("SELECT * FROM {name} WHERE {condition}"),
        }
    }

    fn schema(&mut self) -> String {
        let table = self.table();
        let (name, column) = (&table.name, self.column(&table));
        let number = self.rng.below(1_000);
        match self.rng.below(7) {
            0 => format!("CREATE INDEX i{number} ON {name}({column})"),
            1 => format!(
                "CREATE INDEX i{number} ON {name}({column}, lower({column})) WHERE {column} > 3"
            ),
            2 => format!(
                "CREATE TRIGGER r{number} AFTER INSERT ON {name} WHEN new.{column} = 3 BEGIN \
                 DELETE FROM {name} WHERE {column} = 3; END"
            ),
            3 => format!("ALTER TABLE {name} ADD COLUMN d{number} DEFAULT 5"),
            4 => "REINDEX".to_owned(),
            5 if self.tables.len() > 2 => format!("DROP TABLE {name}"),
            _ => self.create(),
        }
    }

    fn statement(&mut self) -> String {
        match self.rng.below(12) {
            0 => self.schema(),
            1..5 => self.query(),
            _ => self.change(),
        }
    }

    /// The statements of a message.
    fn message(&mut self) -> Vec<String> {
        if self.tables.len() < 2 {
            return vec![self.create()];
        }
        if self.rng.below(3) > 0 {
            return vec![self.statement()];
        }
        let mut texts = vec!["BEGIN".to_owned()];
        texts.extend((0..=self.rng.below(5)).map(|_| self.statement()));
        texts.push(self.pick(&["COMMIT", "COMMIT", "ROLLBACK"]).to_owned());
        texts
    }
}

/// All rows of all tables, and the result of SQLite's check.
fn content(execute: &mut dyn FnMut(&str) -> Outcome) -> BTreeMap<String, Outcome> {
    let names = execute("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let mut content = BTreeMap::new();
    for row in names {
        let name = row[0].trim_start_matches("Text(\"").trim_end_matches("\")").to_owned();
        let rows = execute(&format!("SELECT * FROM {name}"));
        content.insert(name, rows);
    }
    content.insert("schema".to_owned(), execute("SELECT type, name, sql FROM sqlite_schema"));
    content.insert("check".to_owned(), execute("PRAGMA integrity_check"));
    content
}

/// A statement that runs until it is ended.
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

/// Compares a run, in which the message with the number `ended` has no effect.
fn compare(engine: &str, seed: u64, ended: Option<u64>) {
    let configuration = Configuration::of(engine).unwrap();
    let mut session = Session::open(&replica(), configuration, &Progress::Quiet).unwrap();
    let native = Native::new();
    let mut statements = Statements { rng: Rng::new(seed), tables: Vec::new(), made: 0 };
    let without_journal = engine.ends_with("/off");
    for number in 0..MESSAGES {
        let texts = statements.message();
        let place = format!("{engine}, seed {seed}, message {number}: {texts:?}");
        if ended == Some(number) {
            let switch = session.switch().unwrap();
            switch.halt();
            let insert = "INSERT INTO ended VALUES (1), (2)";
            let create = vec!["CREATE TABLE ended(a)".to_owned()];
            assert_eq!(in_canister(&mut session, &create).unwrap(), native.message(&create));
            let whole = ["BEGIN", insert, "DROP TABLE ended", ENDLESS, "COMMIT"].map(str::to_owned);
            in_canister(&mut session, &whole).unwrap_err();
            session.switch();
        } else {
            let expected = native.message(&texts);
            match in_canister(&mut session, &texts) {
                Ok(found) => assert_eq!(found, expected, "{place}"),
                Err(message) => {
                    assert!(without_journal, "{place}: {message}");
                    let Some(Err(expected)) = expected.last() else { panic!("{place}: {message}") };
                    assert!(message.contains(expected), "{place}: {message}, not {expected}");
                }
            }
        }
        statements.remember(&native);
        if statements.rng.below(10) == 0 {
            session.upgrade().unwrap();
        }
    }
    let expected = content(&mut |text| native.execute(text));
    let found = content(&mut |text| {
        let mut outcomes = in_canister(&mut session, &[text.to_owned()]).unwrap();
        outcomes.pop().unwrap()
    });
    assert_eq!(found, expected, "{engine}, seed {seed}");
    assert_eq!(found["check"], Ok(vec![vec![shown(&Value::Text("ok".to_owned()))]]));
}

#[test]
fn canisters_answer_as_sqlite_does() {
    let seeds = std::env::var("STABLEBENCH_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(2);
    let modes = ["delete", "truncate", "persist", "memory", "off", "wal"];
    let engines = modes.map(|mode| format!("sqlite/{mode}")).into_iter();
    for (place, engine) in engines.chain(["sqlite-vfs".to_owned()]).enumerate() {
        for seed in 0..seeds {
            // An ended message takes a second.
            let ended = (seed == 0 && place % 3 == 0).then_some(MESSAGES / 2);
            compare(&engine, seed * 100 + place as u64, ended);
        }
    }
}

impl Statements {
    /// Forgets the tables that are not there after all.
    fn remember(&mut self, native: &Native) {
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let names = native.execute(names).unwrap().concat();
        self.tables.retain(|table| names.contains(&shown(&Value::Text(table.name.clone()))));
    }
}

#[test]
fn statements_are_varied() {
    let mut statements = Statements { rng: Rng::new(1), tables: Vec::new(), made: 0 };
    let native = Native::new();
    let (mut succeeded, mut failed) = (0, 0);
    for _ in 0..2_000 {
        for outcome in native.message(&statements.message()) {
            match outcome {
                Ok(_) => succeeded += 1,
                Err(_) => failed += 1,
            }
        }
        statements.remember(&native);
    }
    // Both are common.
    assert!(failed > 200 && succeeded > 2_000, "{succeeded} succeeded, {failed} failed");
}

/// A record of a file.
#[derive(Debug)]
enum Record {
    Statement {
        sql: String,
        fails: bool,
    },
    Query {
        sql: String,
        types: String,
        sort: Sort,
        expected: Vec<String>,
    },
    /// All later results with more values are compared by their hash.
    Threshold,
    Halt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    None,
    Rows,
    Values,
}

/// Parses a file for an engine. Each record has the line of its first word.
fn parse(text: &str, engine: &str) -> Result<Vec<(usize, Record)>, String> {
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line)).peekable();
    let mut skipped = false;
    while let Some((number, line)) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut block = || {
            let mut block: Vec<&str> = Vec::new();
            while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
                block.push(line);
            }
            block
        };
        let record = match words[..] {
            [] => continue,
            [comment, ..] if comment.starts_with('#') => continue,
            ["skipif", name, ..] => {
                skipped |= name == engine || name == "sqlite";
                continue;
            }
            ["onlyif", name, ..] => {
                skipped |= name != engine && name != "sqlite";
                continue;
            }
            ["halt"] => Record::Halt,
            ["hash-threshold", _] => Record::Threshold,
            ["statement", outcome @ ("ok" | "error"), ..] => {
                Record::Statement { sql: block().join("\n"), fails: outcome == "error" }
            }
            ["query", types, ref rest @ ..] => {
                let sort = match rest.first() {
                    None | Some(&"nosort") => Sort::None,
                    Some(&"rowsort") => Sort::Rows,
                    Some(&"valuesort") => Sort::Values,
                    Some(other) => return Err(format!("line {number}: no sorting {other}")),
                };
                let block = block();
                let rule = block.iter().position(|line| *line == "----").unwrap_or(block.len());
                let expected = block.iter().skip(rule + 1).map(|line| (*line).to_owned()).collect();
                let sql = block[..rule].join("\n");
                Record::Query { sql, types: types.to_owned(), sort, expected }
            }
            _ => return Err(format!("line {number}: no record begins with {line:?}")),
        };
        if !std::mem::take(&mut skipped) {
            records.push((number, record));
        }
    }
    Ok(records)
}

/// Formats a value as the language does.
fn formatted(value: &Value, letter: char) -> String {
    let text = |text: &str| match text {
        "" => "(empty)".to_owned(),
        text => text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '@' }).collect(),
    };
    match (value, letter) {
        (Value::Null, _) => "NULL".to_owned(),
        (Value::Integer(number), 'R') => format!("{:.3}", *number as f64),
        (Value::Integer(number), _) => number.to_string(),
        (Value::Real(number), 'R') => format!("{number:.3}"),
        (Value::Real(number), 'I') => (*number as i64).to_string(),
        (Value::Real(number), _) => super::print::text(&Value::Real(*number)),
        (Value::Text(value), 'I') => value.parse::<i64>().unwrap_or(0).to_string(),
        (Value::Text(value), _) => text(value),
        (Value::Blob(bytes) | Value::TextBytes(bytes), _) => text(&String::from_utf8_lossy(bytes)),
    }
}

/// Executes a record, and returns what differs.
fn difference(session: &mut Session, record: &Record) -> Option<String> {
    let sql = match record {
        Record::Statement { sql, .. } | Record::Query { sql, .. } => sql,
        Record::Threshold | Record::Halt => return None,
    };
    let executed = match session.execute(&[sql.as_str().into()]) {
        Ok(executed) => executed,
        Err(error) => return Some(format!("{error:#}")),
    };
    let answer = executed.answers.into_iter().next()?;
    let error = answer.error.as_ref().map(|failure| failure.message.clone());
    match record {
        Record::Statement { fails, .. } => match (error, fails) {
            (Some(error), false) => Some(error),
            (None, true) => Some("it did not fail".to_owned()),
            _ => None,
        },
        Record::Query { types, sort, expected, .. } => {
            if let Some(error) = error {
                return Some(error);
            }
            let letters: Vec<char> = types.chars().collect();
            if answer.columns.len() != letters.len() {
                return Some(format!("{} columns, expected {types}", answer.columns.len()));
            }
            let row = |row: &Vec<Value>| {
                row.iter().zip(&letters).map(|(v, l)| formatted(v, *l)).collect::<Vec<_>>()
            };
            let mut rows: Vec<Vec<String>> = answer.rows.iter().map(row).collect();
            if *sort == Sort::Rows {
                rows.sort();
            }
            let mut values: Vec<String> = rows.into_iter().flatten().collect();
            if *sort == Sort::Values {
                values.sort();
            }
            match &expected[..] {
                [hash] if hash.contains(" values hashing to ") => {
                    let text = values.iter().map(|value| value.clone() + "\n").collect::<String>();
                    let got =
                        format!("{} values hashing to {:x}", values.len(), md5::compute(text));
                    (got != *hash).then(|| format!("{got}, expected {hash}"))
                }
                _ => (values != *expected).then(|| format!("{values:?}, expected {expected:?}")),
            }
        }
        Record::Threshold | Record::Halt => None,
    }
}

/// Executes a file in a fresh database. Returns the number of records and what differs.
fn execute(replica: &Embedded, engine: &str, path: &Path) -> (usize, Vec<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let records =
        parse(&text, engine).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let configuration = Configuration::of(engine).unwrap();
    let mut session = Session::open(replica, configuration, &Progress::Quiet).unwrap();
    let mut differences = Vec::new();
    for (line, record) in &records {
        if matches!(record, Record::Halt) {
            break;
        }
        if let Some(difference) = difference(&mut session, record) {
            differences.push(format!("{engine}: {}:{line}: {difference}", path.display()));
        }
    }
    (records.len(), differences)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => files(&path, found),
            false if path.extension().is_some_and(|ending| ending == "test") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn sqllogic() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/sql/logic");
    let other = std::env::var_os("STABLEBENCH_SQLLOGIC").map(PathBuf::from);
    let mut paths = Vec::new();
    files(other.as_deref().unwrap_or(&own), &mut paths);
    let replica = replica();
    let mut differences = Vec::new();
    for engine in ["sqlite", "sqlite-vfs"] {
        let done = paths.iter().map(|path| execute(&replica, engine, path));
        let (records, found): (Vec<usize>, Vec<Vec<String>>) = done.unzip();
        differences.extend(found.concat());
        assert!(other.is_some() || records.iter().sum::<usize>() >= 300);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A wrong value, a statement that should fail and an unknown record are found.
#[test]
fn a_difference_is_found() {
    let replica = replica();
    let configuration = Configuration::of("sqlite").unwrap();
    let mut session = Session::open(&replica, configuration, &Progress::Quiet).unwrap();
    let text = "query I\nSELECT 1\n----\n2\n\nstatement error\nSELECT 1\n\nstatement ok\nSELECT x\n\n\
                query IT rowsort\nVALUES (2, 'b'), (1, '')\n----\n1\n(empty)\n2\nb\n\n\
                query I\nSELECT 1\n----\n1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1\n";
    let records = parse(text, "sqlite").unwrap();
    let found: Vec<bool> =
        records.iter().map(|(_, record)| difference(&mut session, record).is_some()).collect();
    assert_eq!(found, [true, true, true, false, false]);
    assert!(parse("nonsense", "sqlite").is_err());
}
