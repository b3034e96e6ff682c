//! Files in the language of SQLite's sqllogictest, executed as `stablebench sql` executes statements.
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

use std::path::{Path, PathBuf};

use stablebench_suite::engines::Configuration;
use stablebench_suite_sql::Value;

use super::session::Session;
use crate::progress::Progress;
use crate::replica::embedded::Embedded;

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
fn shown(value: &Value, letter: char) -> String {
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
                row.iter().zip(&letters).map(|(v, l)| shown(v, *l)).collect::<Vec<_>>()
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
    let replica = super::replica();
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
    let replica = super::replica();
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
