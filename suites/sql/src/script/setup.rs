//! The SQL that prepares a database, split over messages.
//!
//! ```text
//!   statements ── 1 MiB and 1 000 statements at most, transactions whole ──→ messages
//!   INSERT … INSERT …  ──→  BEGIN  INSERT … INSERT …  COMMIT
//! ```
//!
//! Statements that only write are executed in a transaction together, so that a file of a million
//! insertions takes seconds.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use stablebench_protocol::{Job, JobPart, Setting};
use stablebench_suite::job::{Chosen, Message, Observed, Observer, Work, decode_one};
use stablebench_suite::saving::with_more;
use stablebench_suite::terminal::quoted;

use super::expression::{BASIS, Number, fnv1a};
use super::transactions::{excerpt, joined};
use crate::split::{self, Control};
use crate::{Answers, Call, FilePart, Sql, Statements, Value};

/// The bytes of SQL in a message, at most, unless a statement or a transaction is longer.
const BYTES: usize = 1 << 20;
/// The statements in a message, at most, unless a transaction has more.
const STATEMENTS: usize = 1_000;

/// A text with SQL.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in errors.
    pub name: String,
    pub text: String,
}

/// The messages that prepare a database.
#[derive(Clone)]
pub struct Setup {
    messages: Arc<Vec<Vec<Line>>>,
    /// A hash of them, for the cache.
    identity: [u64; 2],
}

/// A statement of a message, with its place.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    /// The name of its file and the line; nothing for statements that were added.
    place: Option<(Arc<str>, usize)>,
    text: String,
    parameters: Vec<Value>,
}

impl Setup {
    /// Splits the statements of some texts over messages.
    ///
    /// # Errors
    ///
    /// If a variable in them is not defined.
    pub fn new(sources: &[Source], defined: &[(String, Number)]) -> Result<Self> {
        let mut units: Vec<Vec<Line>> = Vec::new();
        for Source { name, text } in sources {
            let name: Arc<str> = name.as_str().into();
            let mut begun: Option<Vec<Line>> = None;
            for statement in split::statements(text) {
                let (numbered, variables) = split::numbered(statement.text);
                let value = |variable: &&str| {
                    let known = defined.iter().rev().find(|(known, _)| known == variable);
                    known.map(|(_, value)| Value::from(value.clone()))
                };
                let mut parameters = Vec::new();
                for variable in &variables {
                    let Some(value) = value(variable) else {
                        bail!(
                            "{name}, line {}: the variable :{variable} has no value; set it with \
                             --define {variable}=VALUE",
                            statement.line
                        );
                    };
                    parameters.push(value);
                }
                let place = Some((Arc::clone(&name), statement.line));
                let line = Line { place, text: numbered, parameters };
                match (split::control(statement.text), begun.take()) {
                    (Control::Begin, None) => begun = Some(vec![line]),
                    (Control::Commit | Control::Rollback, Some(mut lines)) => {
                        lines.push(line);
                        units.push(lines);
                    }
                    (_, Some(mut lines)) => {
                        lines.push(line);
                        begun = Some(lines);
                    }
                    (_, None) => units.push(vec![line]),
                }
            }
            units.extend(begun);
        }
        let messages = messages(units);
        let identity = [BASIS, 1].map(|basis| {
            let mut hash = basis;
            for line in messages.iter().flatten() {
                hash = fnv1a(hash, line.text.as_bytes());
                hash = fnv1a(hash, format!("\0{:?}\0", line.parameters).as_bytes());
            }
            hash
        });
        Ok(Self { messages: Arc::new(messages), identity })
    }

    /// Returns the number of its messages.
    pub fn len(&self) -> u64 {
        self.messages.len() as u64
    }
}

/// Joins statements and transactions to messages.
fn messages(units: Vec<Vec<Line>>) -> Vec<Vec<Line>> {
    let mut messages: Vec<Vec<Line>> = Vec::new();
    let mut message: Vec<Vec<Line>> = Vec::new();
    let (mut bytes, mut count) = (0, 0);
    for unit in units {
        let size: usize = unit.iter().map(|line| line.text.len()).sum();
        if count > 0 && (bytes + size > BYTES || count + unit.len() > STATEMENTS) {
            messages.push(in_transactions(std::mem::take(&mut message)));
            (bytes, count) = (0, 0);
        }
        bytes += size;
        count += unit.len();
        message.push(unit);
    }
    // A database without statements is opened all the same.
    messages.push(in_transactions(message));
    messages
}

/// Puts neighbouring statements that only write into transactions.
fn in_transactions(units: Vec<Vec<Line>>) -> Vec<Line> {
    let added = |text: &str| Line { place: None, text: text.to_owned(), parameters: Vec::new() };
    let mut lines = Vec::new();
    let mut units = units.into_iter().peekable();
    while let Some(unit) = units.next() {
        let mut run = unit;
        if !writes(&run) {
            lines.append(&mut run);
            continue;
        }
        while let Some(mut next) = units.next_if(|next| writes(next)) {
            run.append(&mut next);
        }
        if run.len() == 1 {
            lines.append(&mut run);
            continue;
        }
        lines.push(added("BEGIN"));
        lines.append(&mut run);
        lines.push(added("COMMIT"));
    }
    lines
}

/// Returns `true` for a single statement that may be in a transaction with others.
fn writes(unit: &[Line]) -> bool {
    let [line] = unit else { return false };
    let first = split::first_word(&line.text).unwrap_or_default().to_ascii_lowercase();
    ["insert", "replace", "update", "delete", "with", "create", "alter", "drop"]
        .contains(&first.as_str())
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.identity;
        write!(f, "Setup({} messages, {low:016x}{high:016x})", self.messages.len())
    }
}

impl Work for Setup {
    fn choose(&self, _: u64, seed: u64) -> Result<Box<dyn Chosen>> {
        Ok(Box::new(ChosenSetup { setup: self.clone(), seed }))
    }

    fn is_random(&self) -> bool {
        false
    }
}

struct ChosenSetup {
    setup: Setup,
    seed: u64,
}

impl Chosen for ChosenSetup {
    fn part(&self, from: u64, count: u64, each: bool) -> JobPart {
        let lines = self.setup.messages.iter().skip(from as usize).take(count as usize).flatten();
        JobPart { job: job(lines), seed: self.seed, from, count, each }
    }

    fn whole(&self) -> JobPart {
        self.part(0, self.setup.len(), false)
    }

    fn tables(&self) -> Job {
        Job::new(&Sql::Answers)
    }

    fn observer(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(SetupObserver(self.setup.clone())))
    }

    fn is_unlimited(&self) -> bool {
        true
    }

    fn pieces(&self, from: u64) -> Vec<(String, JobPart)> {
        let lines = self.setup.messages.get(from as usize).into_iter().flatten();
        let piece = |line: &Line| {
            let (name, number) = line.place.as_ref()?;
            let place = format!("{name}, line {number}: {}", excerpt(&joined(&line.text), 90));
            let job = job([line].into_iter());
            Some((place, JobPart { job, seed: self.seed, from, count: 1, each: false }))
        };
        lines.filter_map(piece).collect()
    }
}

/// Returns the job that executes these statements.
fn job<'l>(lines: impl Iterator<Item = &'l Line>) -> Job {
    let mut statements = Statements::default();
    for line in lines {
        let text = statements.texts.len() as u32;
        statements.texts.push(line.text.clone());
        statements.calls.push(Call { text, parameters: line.parameters.clone() });
    }
    Job::new(&Sql::Statements(statements))
}

/// An observer that ends the run if a statement fails.
struct SetupObserver(Setup);

impl Observer for SetupObserver {
    fn kept(&self) -> Job {
        Job::new(&Sql::Answers)
    }

    fn message(&mut self, message: Message<'_>) -> Result<()> {
        for bytes in message.kept {
            let Answers { answers } = decode_one(bytes)?;
            for answer in answers {
                let Some(failure) = answer.error else { continue };
                let Some(line) = self
                    .0
                    .messages
                    .get(message.from as usize)
                    .and_then(|lines| lines.get(answer.call as usize))
                else {
                    bail!("the setup: {}", failure.message);
                };
                let place = match &line.place {
                    Some((name, number)) => format!("{name}, line {number}"),
                    None => "the setup".to_owned(),
                };
                bail!("{place}: {}\n  {}", failure.message, excerpt(&joined(&line.text), 200));
            }
        }
        Ok(())
    }

    fn rows(self: Box<Self>) -> Result<Vec<Observed>> {
        Ok(Vec::new())
    }
}

/// Refuses files that are no database, and those whose last changes may be in another file: a
/// write-ahead log, or the journal of a transaction that has not ended.
///
/// # Errors
///
/// The reason, with a command for the shell that helps.
pub fn check_database(file: &[u8], path: &Path) -> Result<()> {
    let name = quoted(&path.display().to_string());
    if !file.starts_with(MAGIC) || file.len() < 512 {
        bail!("this is no SQLite database");
    }
    // The versions of the format that writing and reading need: 2 is a write-ahead log.
    if file[18] == 2 || file[19] == 2 {
        bail!(
            "it is in journal mode WAL, and its last changes may be in the file {name}-wal; write \
             them back first: sqlite3 {name} 'PRAGMA journal_mode=delete'"
        );
    }
    if std::fs::metadata(with_more(path, "-journal")).is_ok_and(|journal| journal.len() > 0) {
        bail!(
            "its file {name}-journal shows a transaction that has not ended; let SQLite roll it back \
             first: sqlite3 {name} 'PRAGMA user_version'"
        );
    }
    Ok(())
}

/// The checksum of a database file, by which the canister finds out that it is complete.
pub fn checksum(file: &[u8]) -> u64 {
    fnv1a(BASIS, file)
}

/// The bytes of a database file in a message.
const PART: usize = 1 << 20;
/// The header of the tree of page 1, whose root is the schema: its type, the first free block, the
/// number of cells, the beginning of their content, and fragments.
const SCHEMA: usize = 100;
/// The place of the number of changes and, after it, of pages. Without a number of pages, a database has
/// as many as its file.
const CHANGES: usize = 24;
const PAGES: usize = CHANGES + 4;

/// Returns the number of parts in which a database file is loaded.
pub fn parts(file: &[u8]) -> usize {
    file.len().div_ceil(PART) + 1
}

/// Returns a part of a database file, and where it is written.
///
/// ```text
///   0          page 1 with an empty schema, and what follows
///   1 …        the file from the next MiB on
///   the last   page 1 as it is, from the number of changes on
/// ```
///
/// The canister opens what it has before each part: a schema would name pages that are not there yet.
pub fn part(file: &[u8], number: usize) -> (usize, Vec<u8>) {
    let page = match file.get(16..18) {
        Some([0, 1]) => 65_536,
        Some([high, low]) => usize::from(*high) << 8 | usize::from(*low),
        _ => 0,
    };
    if number + 1 == parts(file) {
        return (CHANGES, file.get(CHANGES..page.min(file.len())).unwrap_or_default().to_vec());
    }
    let begin = number * PART;
    let mut bytes = file[begin..file.len().min(begin + PART)].to_vec();
    if number == 0 && bytes.len() > SCHEMA + 8 {
        bytes[PAGES..PAGES + 4].fill(0);
        // 65,536 is stored as 0.
        let content = (page as u16).wrapping_sub(bytes[20].into());
        bytes[SCHEMA..SCHEMA + 5].copy_from_slice(&[13, 0, 0, 0, 0]);
        bytes[SCHEMA + 5..SCHEMA + 7].copy_from_slice(&content.to_be_bytes());
        bytes[SCHEMA + 7] = 0;
    }
    (begin, bytes)
}

/// The first bytes of a database file.
pub const MAGIC: &[u8] = b"SQLite format 3\0";

/// A database file to begin with.
#[derive(Clone)]
pub struct Load {
    file: Arc<Vec<u8>>,
    checksum: u64,
    sha256: String,
}

impl Load {
    /// Of the content of the file at a path, with this SHA-256.
    ///
    /// # Errors
    ///
    /// Those of [`check_database`].
    pub fn new(file: Vec<u8>, sha256: String, path: &Path) -> Result<Self> {
        check_database(&file, path)?;
        let checksum = checksum(&file);
        Ok(Self { file: Arc::new(file), checksum, sha256 })
    }

    /// Returns the number of its messages.
    pub fn len(&self) -> u64 {
        parts(&self.file) as u64
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Load({})", self.sha256)
    }
}

impl Work for Load {
    fn choose(&self, _: u64, seed: u64) -> Result<Box<dyn Chosen>> {
        Ok(Box::new(ChosenLoad { load: self.clone(), seed }))
    }

    fn is_random(&self) -> bool {
        false
    }
}

struct ChosenLoad {
    load: Load,
    seed: u64,
}

impl Chosen for ChosenLoad {
    fn part(&self, from: u64, count: u64, each: bool) -> JobPart {
        let file = &self.load.file;
        let (offset, bytes) = match count {
            1 => part(file, from as usize),
            _ => (0, file.to_vec()),
        };
        let job = Job::new(&Sql::Load(FilePart {
            offset: offset as u64,
            bytes,
            size: file.len() as u64,
            checksum: self.load.checksum,
        }));
        JobPart { job, seed: self.seed, from, count, each }
    }

    fn whole(&self) -> JobPart {
        self.part(0, self.load.len(), false)
    }

    fn tables(&self) -> Job {
        Job::new(&Sql::Answers)
    }

    fn observer(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(Unobserved))
    }

    fn is_unlimited(&self) -> bool {
        true
    }
}

/// The settings of a configuration, with which the connection is opened.
#[derive(Clone, Debug)]
pub struct Configure(pub Vec<Setting>);

impl Work for Configure {
    fn choose(&self, _: u64, seed: u64) -> Result<Box<dyn Chosen>> {
        Ok(Box::new(ChosenSettings { settings: self.0.clone(), seed }))
    }

    fn is_random(&self) -> bool {
        false
    }
}

struct ChosenSettings {
    settings: Vec<Setting>,
    seed: u64,
}

impl Chosen for ChosenSettings {
    fn part(&self, from: u64, count: u64, each: bool) -> JobPart {
        JobPart {
            job: Job::new(&Sql::Configure(self.settings.clone())),
            seed: self.seed,
            from,
            count,
            each,
        }
    }

    fn whole(&self) -> JobPart {
        self.part(0, 1, false)
    }

    fn tables(&self) -> Job {
        Job::new(&Sql::Answers)
    }

    fn observer(&self) -> Option<Box<dyn Observer>> {
        Some(Box::new(Unobserved))
    }

    fn configures(&self) -> bool {
        true
    }
}

/// An observer of messages without answers.
struct Unobserved;

impl Observer for Unobserved {
    fn kept(&self) -> Job {
        // Nothing is kept of a part of a file.
        Job::new(&Sql::Load(FilePart { offset: 0, bytes: Vec::new(), size: 0, checksum: 0 }))
    }

    fn message(&mut self, _: Message<'_>) -> Result<()> {
        Ok(())
    }

    fn rows(self: Box<Self>) -> Result<Vec<Observed>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Vec<String>> {
        let source = Source { name: "a.sql".to_owned(), text: text.to_owned() };
        let setup = Setup::new(&[source], &[]).unwrap();
        let texts = |lines: &Vec<Line>| lines.iter().map(|line| line.text.clone()).collect();
        setup.messages.iter().map(texts).collect()
    }

    #[test]
    fn neighbouring_writes_are_a_transaction() {
        let found =
            lines("create table t(x); insert into t values(1); pragma x; insert into t values(2);");
        let expected = [
            "BEGIN",
            "create table t(x);",
            "insert into t values(1);",
            "COMMIT",
            "pragma x;",
            "insert into t values(2);",
        ];
        assert_eq!(found, [expected]);
        let transaction = ["begin;", "insert into t values(1);", "end;"];
        assert_eq!(lines(&transaction.join(" ")), [transaction]);
        assert_eq!(lines("-- nothing"), [[""; 0]]);
    }

    #[test]
    fn long_texts_are_split_between_statements_and_transactions() {
        let insert = "insert into t values(1);";
        let found = lines(&insert.repeat(2_500));
        let counts: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(counts, [1_002, 1_002, 502]);
        let long = format!("insert into t values('{}');", "x".repeat(700_000));
        assert_eq!(lines(&long.repeat(3)).len(), 3);
        let whole = format!("begin; {}end;", insert.repeat(3_000));
        assert_eq!(lines(&whole).len(), 1);
    }

    #[test]
    fn variables_are_defined() {
        let source = Source { name: "a.sql".to_owned(), text: "\nselect :n;".to_owned() };
        let error = Setup::new(std::slice::from_ref(&source), &[]).unwrap_err().to_string();
        assert!(error.starts_with("a.sql, line 2: the variable :n has no value"), "{error}");
        let defined = [("n".to_owned(), Number::Integer(7))];
        let setup = Setup::new(&[source], &defined).unwrap();
        assert_eq!(setup.messages[0][0].parameters, [Value::Integer(7)]);
    }

    /// The cache tells setups apart by what they execute, whatever else a run has.
    #[test]
    fn a_setup_is_known_by_its_statements() {
        let shown = |text: &str, n: i64| {
            let source = Source { name: n.to_string(), text: text.to_owned() };
            let defined = [("n".to_owned(), Number::Integer(n)), ("m".to_owned(), Number::Null)];
            format!("{:?}", Setup::new(&[source], &defined).unwrap())
        };
        assert_eq!(shown("select 1;", 1), shown("-- one\nselect 1;", 2));
        assert_ne!(shown("select :n;", 1), shown("select :n;", 2));
        assert_ne!(shown("select 1; select 2;", 1), shown("select 1;", 1));
    }

    #[test]
    fn files_that_are_no_database_are_refused() {
        let mut file = MAGIC.to_vec();
        file.extend([2, 0]);
        file.resize(PART + 512, 7);
        let load = Load::new(file.clone(), String::new(), Path::new("a.db")).unwrap();
        assert_eq!(load.len(), 3);
        let chosen = load.choose(3, 1).unwrap();
        let mut loaded = vec![0; file.len()];
        let mut places = Vec::new();
        for number in 0..3 {
            assert_ne!(loaded, file);
            let job = chosen.part(number, 1, false).job;
            let Sql::Load(part) = job.decode().unwrap() else { panic!() };
            let begin = part.offset as usize;
            loaded[begin..begin + part.bytes.len()].copy_from_slice(&part.bytes);
            places.push((begin, part.bytes.len()));
        }
        assert_eq!(loaded, file);
        assert_eq!(places, [(0, PART), (PART, 512), (CHANGES, 512 - CHANGES)]);
        file[18] = 2;
        assert!(
            Load::new(file, String::new(), Path::new("a.db"))
                .unwrap_err()
                .to_string()
                .contains("WAL")
        );
        assert!(Load::new(b"CREATE TABLE".to_vec(), String::new(), Path::new("a.sql")).is_err());
    }
}
