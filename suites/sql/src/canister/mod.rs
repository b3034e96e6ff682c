//! The suite in a canister.
//!
//! ```text
//!   counter ─ library: opens, begins ─ counter ┐
//!     for each call:                           │
//!       counter ─ prepare ─ counter            │ once for each text
//!       bind, step ─ counter                   │
//!       row: digest, copy  (not counted)       │ until the last row
//!       counter ─ step ─ counter               │
//!   counter ─ library: commits ─ counter       ┘
//! ```
//!
//! Between two readings of the counter is the work and the cost of one reading, which is the same each
//! time and is left out: else a scan of many rows would cost what its readings cost.

mod statement;

pub use statement::Handle;

use crate::split::{self, Control};
use crate::{Answer, Answers, Call, Failure, FilePart, Sql, Statements, Value};
use candid::CandidType;
use stablebench_harness::{
    Canister, Staged, Suite, instructions, measure, measure_step, sql, trap,
};
use stablebench_protocol::{
    Digest, Engine, Error, Inspected, JobPart, KeptPart, Measurement, OperationCost, PartCost,
    Result, Storage, SuiteJob,
};
use stablebench_workload::sql::RowBytes;
use stablebench_workload::{Amount, ContentDigest};
use statement::{Prepared, StepOutcome};
use std::cell::RefCell;
use std::ops::Range;

/// A canister with SQLite's C interface and a database in stable memory.
pub trait SqlCanister: Canister {
    /// `true` if the library has a transaction of its own around all work that writes.
    const OWN_TRANSACTIONS: bool = false;

    /// Work: opens the connection if it is closed, and does `work` on it. A library with transactions
    /// of its own begins one, which writes or does not, and undoes it if the work fails.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work.
    fn with_handle(
        &mut self,
        writes: bool,
        work: &mut dyn FnMut(Handle<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Writes a part of a file over the database, whose connection is closed.
    ///
    /// # Errors
    ///
    /// If the library does not support it, or stable memory cannot grow.
    fn write_file(&mut self, _: &FilePart) -> Result<()> {
        Err(unsupported("replace its database by a file; execute its SQL (.dump, .read)"))
    }

    /// Reads at most this number of bytes of the database, whose connection is closed. Returns them,
    /// and the number of bytes of the whole file.
    ///
    /// # Errors
    ///
    /// If the library does not support it.
    fn read_file(&mut self, _offset: u64, _bytes: u64) -> Result<(Vec<u8>, u64)> {
        Err(unsupported("save its database as a file; print its SQL (.dump)"))
    }
}

fn unsupported(operation: &str) -> Error {
    Error::Unsupported { engine: Engine::SQLITE, operation: operation.to_owned() }
}

/// The bytes of values in a reply, which may have 2 MiB with their types and lengths.
const REPLY_BYTES: u64 = 1 << 20;

/// The bytes of an answer without its columns and rows, at most.
const ANSWER_BYTES: u64 = 256;

thread_local! {
    /// The answers to the statements of the last message.
    static ANSWERS: RefCell<Vec<Answer>> = const { RefCell::new(Vec::new()) };
}

impl<C: SqlCanister> Suite<C> for Sql {
    fn stage(self, _: &JobPart) -> Result<Staged<C>> {
        Ok(match self {
            Self::Statements(statements) => {
                check(&statements)?;
                Staged::writing(move |canister: &mut C| run(canister, &statements))
            }
            Self::Configure(settings) => {
                let config = sql::parse_settings(&settings)?;
                Staged::writing(move |canister: &mut C| {
                    let sql = canister.sql(Storage::Stable)?;
                    Ok(measure_step(|| sql::reopen(sql, config).map(drop))?.into())
                })
            }
            Self::Load(part) => Staged::writing(move |canister: &mut C| {
                canister.sql(Storage::Stable)?.close();
                Ok(measure_step(|| canister.write_file(&part))?.into())
            }),
            Self::Answers | Self::File => {
                let message = "it is no work, but what the query kept returns".to_owned();
                return Err(Error::InvalidJob { suite: Self::SUITE.to_owned(), message });
            }
        })
    }

    fn results(&self, _: &mut C, _: &JobPart) -> Result<Option<Digest>> {
        Ok(None)
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        sql::all_content(canister.sql(Storage::Stable)?, position, limit, digest)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        sql::inspect(canister.sql(Storage::Stable)?)
    }

    /// A query, whose changes are dropped.
    fn kept(&self, canister: &mut C, position: u64) -> Result<KeptPart> {
        match self {
            Self::Answers => ANSWERS.with_borrow(|answers| part_of(answers, position)),
            Self::Statements(statements) => {
                check(statements)?;
                run(canister, statements)?;
                ANSWERS.with_borrow(|answers| part_of(answers, position))
            }
            Self::Configure(_) => {
                let settings = canister.sql(Storage::Stable)?.settings()?;
                Ok(KeptPart::encoded(&settings.list(), None))
            }
            Self::File => {
                canister.sql(Storage::Stable)?.close();
                let (bytes, size) = canister.read_file(position, REPLY_BYTES)?;
                let end = position + bytes.len() as u64;
                Ok(KeptPart { bytes, next: (end < size).then_some(end) })
            }
            Self::Load(_) => Ok(KeptPart::default()),
        }
    }
}

/// Refuses calls of texts that do not exist.
fn check(statements: &Statements) -> Result<()> {
    let texts = statements.texts.len();
    match statements.calls.iter().all(|call| (call.text as usize) < texts) {
        true => Ok(()),
        false => {
            let message = format!("a call is of a text after the last of {texts}");
            Err(Error::InvalidJob { suite: "sql".to_owned(), message })
        }
    }
}

/// Executes all calls until one fails, and keeps their answers.
pub fn run<C: SqlCanister>(canister: &mut C, statements: &Statements) -> Result<PartCost> {
    let mut execution = Execution::new(statements);
    // The whole message, with the copies of rows.
    let mut measurement = measure(|| {
        for group in groups::<C>(statements) {
            if execution.group(canister, group)? {
                break;
            }
        }
        Ok(Amount::default())
    })?;
    let answers = execution.answers;
    let cost = |answer: &Answer| answer.prepare + answer.step + answer.around;
    measurement.instructions = answers.iter().map(cost).sum();
    measurement.rows = answers.iter().map(|answer| answer.digest.rows + answer.changes).sum();
    let each =
        answers.iter().map(|answer| OperationCost { instructions: cost(answer), allocated: 0 });
    let each = each.collect();
    ANSWERS.set(answers);
    Ok(PartCost { measurement, each })
}

/// Takes the answers to the statements of the last message.
pub fn take_answers() -> Vec<Answer> {
    ANSWERS.take()
}

/// The result of the method `sql`.
#[derive(CandidType, Clone, Debug, Default)]
pub struct SqlResult {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The first rows.
    pub rows: Vec<Vec<Value>>,
    /// The cost of preparing and executing the statement.
    pub measurement: Measurement,
}

/// Executes one statement, for calls by hand.
///
/// # Errors
///
/// SQLite's.
pub fn execute<C: SqlCanister>(
    canister: &mut C,
    text: String,
    parameters: Vec<Value>,
) -> Result<SqlResult> {
    let calls = vec![Call { text: 0, parameters }];
    let statements = Statements { texts: vec![text], calls, keep: REPLY_BYTES };
    let measurement = run(canister, &statements)?.measurement;
    let answer = take_answers().pop().unwrap_or_default();
    match answer.error {
        Some(failure) => Err(Error::Sqlite { message: failure.message }),
        None => Ok(SqlResult { columns: answer.columns, rows: answer.rows, measurement }),
    }
}

/// Exports the method `sql` of a canister, after `stablebench_harness::canister!`.
#[macro_export]
macro_rules! sql_method {
    () => {
        #[ic_cdk::update]
        fn sql(
            text: String,
            parameters: Vec<$crate::Value>,
        ) -> Result<$crate::canister::SqlResult> {
            controlled(|host| $crate::canister::execute(host.canister(), text, parameters))
        }
    };
}

/// The calls that are executed together: all of a message, or those of one transaction where the
/// library has its own.
fn groups<C: SqlCanister>(statements: &Statements) -> Vec<Range<usize>> {
    let calls = &statements.calls;
    if !C::OWN_TRANSACTIONS {
        return std::iter::once(0..calls.len()).collect();
    }
    let mut groups = Vec::new();
    let mut begun = None;
    for (number, call) in calls.iter().enumerate() {
        match (split::control(&statements.texts[call.text as usize]), begun) {
            (Control::Begin, None) => begun = Some(number),
            (Control::Commit | Control::Rollback, Some(first)) => {
                groups.push(first..number + 1);
                begun = None;
            }
            (_, None) => groups.push(number..number + 1),
            (_, Some(_)) => {}
        }
    }
    groups.extend(begun.map(|first| first..calls.len()));
    groups
}

struct Execution<'a> {
    statements: &'a Statements,
    answers: Vec<Answer>,
    /// The bytes of values that may still be kept.
    left: u64,
    /// The cost of reading the counter.
    reading: u64,
}

/// The reason why a library undoes its transaction.
const UNDONE: Error = Error::NoRows;

impl<'a> Execution<'a> {
    fn new(statements: &'a Statements) -> Self {
        let first = instructions();
        let reading = instructions() - first;
        let answers = Vec::with_capacity(statements.calls.len());
        Self { statements, answers, left: statements.keep, reading }
    }

    /// Returns the instructions between two readings of the counter.
    fn between(&self, before: u64, after: u64) -> u64 {
        after.saturating_sub(before).saturating_sub(self.reading)
    }

    /// Executes a group. Returns `true` if a statement failed.
    fn group<C: SqlCanister>(&mut self, canister: &mut C, group: Range<usize>) -> Result<bool> {
        let calls = &self.statements.calls[group.clone()];
        let text = |call: &Call| self.statements.texts[call.text as usize].as_str();
        let writes = !calls.iter().all(|call| split::only_reads(text(call)));
        let first = self.answers.len();
        let (mut inside, mut failed) = ((0, 0), false);
        let before = instructions();
        let outcome = canister.with_handle(writes, &mut |handle| {
            let entered = instructions();
            let undo = self.calls::<C>(handle, group.clone());
            failed = self.answers.last().is_some_and(|answer| answer.error.is_some());
            inside = (entered, instructions());
            if undo && C::OWN_TRANSACTIONS { Err(UNDONE) } else { Ok(()) }
        });
        let after = instructions();
        match outcome {
            Err(error) if error != UNDONE || self.answers.len() == first => return Err(error),
            _ => {}
        }
        // What the library does before is of the first statement, and what it does after, of the last.
        let (opening, ending) = (self.between(before, inside.0), self.between(inside.1, after));
        if let [start, ..] = &mut self.answers[first..] {
            start.around += opening;
            start.readings = (before, start.readings.1.max(inside.0));
        }
        if let [.., last] = &mut self.answers[first..] {
            last.around += ending;
            let from = if last.readings.0 == 0 { inside.1 } else { last.readings.0 };
            last.readings = (from, after);
        }
        Ok(failed)
    }

    /// Executes the calls of a group until one fails. Returns `true` if the library has to undo them.
    fn calls<C: SqlCanister>(&mut self, handle: Handle<'_>, group: Range<usize>) -> bool {
        let mut prepared: Vec<Option<Prepared<'_>>> = Vec::new();
        prepared.resize_with(self.statements.texts.len(), || None);
        for number in group {
            let call = &self.statements.calls[number];
            let text = &self.statements.texts[call.text as usize];
            let mut answer = Answer { call: number as u32, ..Answer::default() };
            let control = split::control(text);
            if C::OWN_TRANSACTIONS && control != Control::None {
                self.answers.push(answer);
                if control == Control::Rollback {
                    return true;
                }
                continue;
            }
            let outcome = self.call(handle, &mut prepared[call.text as usize], number, &mut answer);
            answer.error = outcome.err();
            if let Some(failure) = &mut answer.error {
                drop(prepared);
                failure.rolled_back = C::OWN_TRANSACTIONS || rolled_back(handle, failure);
                self.answers.push(answer);
                return true;
            }
            self.answers.push(answer);
        }
        false
    }

    /// Executes a call.
    fn call<'c>(
        &mut self,
        handle: Handle<'c>,
        prepared: &mut Option<Prepared<'c>>,
        number: usize,
        answer: &mut Answer,
    ) -> std::result::Result<(), Failure> {
        let call = &self.statements.calls[number];
        let begun = instructions();
        answer.readings = (begun, begun);
        if prepared.is_none() {
            let outcome = handle.prepare(&self.statements.texts[call.text as usize]);
            answer.readings.1 = instructions();
            answer.prepare = self.between(begun, answer.readings.1);
            *prepared = outcome?;
        }
        let Some(statement) = prepared else { return Ok(()) };
        answer.columns = statement.columns();
        let changes = handle.total_changes();
        let mut digest = ContentDigest::default();
        let mut last = instructions();
        let outcome = statement.bind(&call.parameters).and_then(|()| {
            loop {
                let stepped = statement.step();
                answer.readings.1 = instructions();
                answer.step += self.between(last, answer.readings.1);
                match stepped? {
                    StepOutcome::Done => return Ok(()),
                    StepOutcome::Row => self.row(statement, &mut digest, answer),
                }
                last = instructions();
            }
        });
        statement.reset();
        answer.digest = digest.value();
        answer.counters = statement.counters();
        if !statement.is_readonly() {
            let changed = handle.total_changes().wrapping_sub(changes);
            answer.changes = u64::try_from(changed).unwrap_or(0);
        }
        outcome
    }

    /// Adds a row to the digest, and keeps it if there is room.
    fn row(
        &mut self,
        statement: &mut Prepared<'_>,
        digest: &mut ContentDigest,
        answer: &mut Answer,
    ) {
        let mut bytes = RowBytes::default();
        let mut row = Vec::new();
        let mut cut = Vec::new();
        let number = answer.rows.len() as u64;
        statement.row(&mut bytes, |value, all| {
            cut.extend(all.map(|all| (number, row.len() as u32, all)));
            row.push(value);
        });
        bytes.digest(digest, 0);
        let size: u64 = row.iter().map(Value::bytes).sum();
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                answer.rows.push(row);
                answer.cut.append(&mut cut);
            }
            // The rows that are kept are the first ones.
            None => self.left = 0,
        }
    }
}

/// Rolls an open transaction back. Returns `false` if there is none. Without a journal, SQLite cannot
/// undo what a statement did; the system can, so the message ends.
fn rolled_back(handle: Handle<'_>, failure: &Failure) -> bool {
    let first = |text: &str| {
        let mut statement = handle.prepare(text)?;
        let mut first = None;
        if let Some(statement) = &mut statement
            && statement.step()? == StepOutcome::Row
        {
            statement
                .row(&mut RowBytes::default(), |value, _| first = first.take().or(Some(value)));
        }
        Ok::<_, Failure>(first)
    };
    if first("PRAGMA journal_mode") == Ok(Some(Value::Text("off".to_owned()))) {
        trap(&format!("{} (journal_mode=off: the message is undone)", failure.message));
    }
    if handle.is_autocommit() {
        return false;
    }
    if let Err(rollback) = first("ROLLBACK") {
        trap(&format!("{}; ROLLBACK failed: {}", failure.message, rollback.message));
    }
    true
}

/// Returns a part of the answers from a position on, as large as a reply can be. Positions count an
/// answer and then each of its rows:
///
/// ```text
///   0 answer   1 row   2 row   3 answer   4 answer   5 row
/// ```
fn part_of(answers: &[Answer], position: u64) -> Result<KeptPart> {
    let (mut skip, mut room) = (position, REPLY_BYTES);
    let mut next = position;
    let mut part = Answers::default();
    for answer in answers {
        let units = answer.rows.len() as u64 + 1;
        if skip >= units {
            skip -= units;
            continue;
        }
        let from = skip.saturating_sub(1) as usize;
        let columns: u64 = answer.columns.iter().map(|name| name.len() as u64).sum();
        let header = ANSWER_BYTES + columns;
        if header > room && next > position {
            return Ok(KeptPart::encoded(&part, Some(next)));
        }
        room = room.saturating_sub(header);
        next += u64::from(skip == 0);
        skip = 0;
        let mut to = from;
        while let Some(row) = answer.rows.get(to) {
            let bytes: u64 = row.iter().map(Value::bytes).sum();
            // A single row always fits, since its values are kept in part only.
            if bytes > room && to > from {
                break;
            }
            room = room.saturating_sub(bytes);
            to += 1;
            next += 1;
        }
        part.answers.push(answer.with_rows(from..to));
        if to < answer.rows.len() {
            return Ok(KeptPart::encoded(&part, Some(next)));
        }
    }
    Ok(KeptPart::encoded(&part, None))
}
