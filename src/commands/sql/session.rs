//! A database in a canister, and statements on it.

use anyhow::{Context, Result, bail};
use stablebench_protocol::{Job, JobPart, Setting};
use stablebench_replica::subnet::Halt;
use stablebench_suite::engines::{Configuration, has_sql};
use stablebench_suite_sql::script::{checksum, pages_of, part, parts};
use stablebench_suite_sql::{Answer, Answers, Call, FilePart, Sql, Statements, Value};

use crate::progress::Progress;
use crate::replica::ceiling::{Below, Ceiling};
use crate::replica::decoding::decode_one;
use crate::replica::{Canister, Cost, Messages, PageCosts, Readings, Reject, Replica, SubnetKind};
use crate::report::number::{Binary, Grouped};
use crate::runner::wire;
use crate::{canisters, interrupt};

/// The bytes of values of a message's results that are kept for the caller.
pub const KEEP: u64 = 64 << 20;
/// The bytes of a message, without what Candid adds.
const MESSAGE: usize = (2 << 20) - (1 << 10);

/// A statement with the values of its parameters.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    pub text: String,
    pub parameters: Vec<Value>,
}

impl From<&str> for Bound {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), parameters: Vec::new() }
    }
}

impl Bound {
    /// Returns the bytes that it takes in a message, about.
    pub fn bytes(&self) -> usize {
        let values: u64 = self.parameters.iter().map(Value::bytes).sum();
        self.text.len() + values as usize
    }
}

/// What a message did.
#[derive(Debug, Default)]
pub struct Executed {
    pub answers: Vec<Answer>,
    /// The cost of the message.
    pub cost: Cost,
    /// The pages of each statement, as far as the replica knows them.
    pub pages: Vec<Option<PageCosts>>,
}

/// The message reached the limit of instructions, and had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it needs more than {} instructions, the limit of a message, and had no effect (--setup and \
     --subnet benchmarking allow more)", Grouped(*.0)
)]
pub struct TooLong(u64);

/// A row has more bytes than a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a row's values take more than a reply of 3 MiB; select parts of them: substr(x, 1, 1000000)"
)]
pub struct TooLarge;

/// A database in a canister.
pub struct Session {
    canister: Box<dyn Canister>,
    configuration: Configuration,
}

impl Session {
    /// Installs the canister of a configuration, and opens its database.
    ///
    /// # Errors
    ///
    /// If the engine has no SQL, or does not take a setting.
    pub fn open(
        replica: &dyn Replica,
        configuration: Configuration,
        progress: &Progress,
    ) -> Result<Self> {
        let key = configuration.key();
        if !has_sql(configuration.engine.key) {
            bail!("{key} has no SQL; take sqlite, sqlite-vfs or doltlite");
        }
        let built = canisters::find(configuration.engine.canister, progress)?;
        let canister = replica.install(&built.wasm)?;
        let mut session = Self { canister, configuration };
        session.configure(session.configuration.clone())?;
        Ok(session)
    }

    /// A canister whose database is open with this configuration.
    pub fn with(canister: Box<dyn Canister>, configuration: Configuration) -> Self {
        Self { canister, configuration }
    }

    /// Returns the canister.
    pub fn canister(&self) -> &dyn Canister {
        &*self.canister
    }

    /// Returns the key of the configuration.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Lifts the limits of messages, and returns the kind of subnet that has them.
    pub fn lift_limits(&mut self) -> Option<SubnetKind> {
        self.canister.lift_limits()
    }

    /// Sets the limits of a kind of subnet again.
    pub fn set_limits(&mut self, subnet: SubnetKind) {
        self.canister.set_limits(subnet);
    }

    /// Returns a new switch that ends the statement under way.
    pub fn switch(&mut self) -> Option<Halt> {
        self.canister.switch()
    }

    /// Opens the database again with other settings.
    ///
    /// # Errors
    ///
    /// If the library does not take one of them; they are unchanged then.
    pub fn configure(&mut self, configuration: Configuration) -> Result<()> {
        let settings = configuration.info().settings.unwrap_or_default();
        let settings = settings.iter().map(|(name, value)| Setting::new(name, value)).collect();
        let configured = work(&mut *self.canister, &Sql::Configure(settings));
        configured.map_err(|error| self.with_engine(error))?;
        self.configuration = configuration;
        Ok(())
    }

    /// Returns the settings in effect.
    pub fn settings(&mut self) -> Result<Vec<Setting>> {
        let (bytes, _) = kept(&mut *self.canister, &Sql::Configure(Vec::new()), 0)?;
        Ok(decode_one(&bytes)?)
    }

    /// Executes statements in a message, measured.
    ///
    /// # Errors
    ///
    /// If the message fails as a whole; what SQLite refuses is an answer.
    pub fn execute(&mut self, statements: &[Bound]) -> Result<Executed> {
        execute(&mut *self.canister, statements)
    }

    /// Executes statements in a message that is ended at a ceiling.
    ///
    /// # Errors
    ///
    /// Those of [`execute`](Self::execute); [`Exceeded`](crate::replica::ceiling::Exceeded).
    pub fn execute_below(&mut self, statements: &[Bound], ceiling: Ceiling) -> Result<Executed> {
        execute(&mut Below::new(&mut *self.canister, ceiling), statements)
    }

    /// Executes statements in a query, which leaves nothing behind.
    ///
    /// # Errors
    ///
    /// Those of [`execute`](Self::execute).
    pub fn look(&mut self, statements: &[Bound]) -> Result<Vec<Answer>> {
        look(&mut *self.canister, statements, KEEP)
    }

    /// Executes a statement without parameters in a query.
    ///
    /// # Errors
    ///
    /// Those of [`look`](Self::look); SQLite's.
    pub fn rows(&mut self, text: &str) -> Result<Vec<Vec<Value>>> {
        rows(&mut *self.canister, &text.into())
    }

    /// Executes a statement in a query, and returns its rows.
    ///
    /// # Errors
    ///
    /// Those of [`look`](Self::look); SQLite's; if there are more rows than are kept.
    pub fn rows_of(&mut self, text: &str, parameters: Vec<Value>) -> Result<Vec<Vec<Value>>> {
        rows(&mut *self.canister, &Bound { text: text.to_owned(), parameters })
    }

    /// Executes a statement in a query, and returns its answer with the first rows, whose values have
    /// as many bytes at most, and can be cut.
    ///
    /// # Errors
    ///
    /// Those of [`look`](Self::look); SQLite's.
    pub fn first_rows(&mut self, statement: &Bound, bytes: u64) -> Result<Answer> {
        answer(&mut *self.canister, statement, bytes)
    }

    /// Tries something on a copy of the canister, which is dropped.
    ///
    /// # Errors
    ///
    /// Those of the trial; if the replica cannot copy canisters.
    pub fn trial<T>(&mut self, trial: impl FnOnce(&mut dyn Messages) -> Result<T>) -> Result<T> {
        trial(&mut *self.canister.fork()?)
    }

    /// Upgrades the canister: the next statement opens the database.
    pub fn upgrade(&mut self) -> Result<Cost> {
        self.canister.upgrade()
    }

    /// Replaces the database by that of a file.
    ///
    /// # Errors
    ///
    /// If it is no database, or one that a canister cannot open.
    pub fn load(&mut self, file: &[u8], step: impl Fn(u64)) -> Result<()> {
        let checksum = checksum(file);
        let mut send = |offset: usize, bytes: Vec<u8>| {
            let (offset, size) = (offset as u64, file.len() as u64);
            let part = FilePart { offset, bytes, size, checksum };
            let sent = work(&mut *self.canister, &Sql::Load(part));
            sent.map_err(|error| self.with_engine(error))
        };
        for number in 0..parts(file) {
            let (offset, bytes) = part(file, number);
            step((offset + bytes.len()) as u64);
            send(offset, bytes)?;
        }
        // Reads the schema, and so finds out whether it is one.
        self.rows("SELECT count(*) FROM sqlite_schema")?;
        Ok(())
    }

    /// Returns the database as a file.
    ///
    /// # Errors
    ///
    /// If the engine does not store it as one.
    pub fn file(&mut self) -> Result<Vec<u8>> {
        // Each query closes the connection, which writes to all pages of its cache.
        let emptied = self.trial(|copy| {
            execute(copy, &["PRAGMA shrink_memory".into()])?;
            file_of(copy)
        });
        let file = emptied.or_else(|_| file_of(&mut *self.canister));
        match file.map_err(|error| self.with_engine(error))? {
            // SQLite writes nothing until there is a table.
            file if file.is_empty() => self.trial(|copy| {
                execute(copy, &["VACUUM".into()])?;
                file_of(copy)
            }),
            file => Ok(file),
        }
    }

    /// Names the engine in what its library does not do. Canisters know only that it is SQLite.
    fn with_engine(&self, error: anyhow::Error) -> anyhow::Error {
        match error.downcast_ref() {
            Some(stablebench_protocol::Error::Unsupported { operation, .. }) => {
                anyhow::anyhow!("{} cannot {operation}", self.configuration.engine.key)
            }
            _ => error,
        }
    }
}

/// Returns the database of a canister as a file, without a byte if nothing was ever written.
fn file_of(canister: &mut dyn Messages) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    loop {
        let (bytes, next) = kept(canister, &Sql::File, file.len() as u64)?;
        file.extend(bytes);
        if next.is_none() {
            return Ok(file);
        }
    }
}

/// Executes statements in a message, measured.
///
/// # Errors
///
/// If the message fails as a whole; what SQLite refuses is an answer.
pub fn execute(canister: &mut dyn Messages, statements: &[Bound]) -> Result<Executed> {
    interrupt::check_work()?;
    let bytes: usize = statements.iter().map(Bound::bytes).sum();
    if bytes > MESSAGE {
        bail!(
            "{} of SQL, and a message takes at most 2 MiB; bind large values, load them with \
             .import, prepare with --setup FILE, or begin with a database: --db FILE",
            Binary(bytes as u64)
        );
    }
    let (measured, cost) = work(canister, &Sql::Statements(job(statements, KEEP)))?;
    let answers = answers(canister, &Sql::Answers)?;
    let pages = answers.iter().map(|answer| pages_of(&measured.0, answer));
    Ok(Executed { pages: pages.collect(), answers, cost })
}

fn look(canister: &mut dyn Messages, statements: &[Bound], keep: u64) -> Result<Vec<Answer>> {
    interrupt::check_work()?;
    answers(canister, &Sql::Statements(job(statements, keep)))
}

/// Executes a statement in a query, and returns its rows.
///
/// # Errors
///
/// SQLite's; if there are more rows than are kept.
pub fn rows(canister: &mut dyn Messages, statement: &Bound) -> Result<Vec<Vec<Value>>> {
    let answer = answer(canister, statement, KEEP)?;
    if (answer.rows.len() as u64) < answer.digest.rows || !answer.cut.is_empty() {
        bail!("the rows have more than {}, or a value more than 1 MiB", Binary(KEEP));
    }
    Ok(answer.rows)
}

fn answer(canister: &mut dyn Messages, statement: &Bound, keep: u64) -> Result<Answer> {
    let answers = look(canister, std::slice::from_ref(statement), keep)?;
    let answer = answers.into_iter().next().context("the canister returned no answer")?;
    match &answer.error {
        Some(failure) => bail!("{}", failure.message),
        None => Ok(answer),
    }
}

fn work(canister: &mut dyn Messages, job: &Sql) -> Result<(Readings, Cost)> {
    let part = JobPart { job: Job::new(job), seed: 0, from: 0, count: 1, each: false };
    let search = stablebench_suite::plan::Search::Update;
    let done = wire::execute_unread(canister, &part, search).map_err(explained)?;
    Ok((done.receipt.readings, done.receipt.cost))
}

/// Says what to do about a message that reached the limit, and leaves out what tells a user nothing.
fn explained(error: anyhow::Error) -> anyhow::Error {
    if let Some(refusal) = error.downcast_ref::<stablebench_protocol::Error>() {
        return refusal.clone().into();
    }
    let Some(Reject { code, message }) = error.downcast_ref() else { return error };
    let after = |start: &str| message.split_once(start).map(|(_, rest)| rest);
    match code.as_str() {
        "CanisterInstructionLimitExceeded" => {
            let limit = after("limit of ").and_then(|rest| rest.split(' ').next()?.parse().ok());
            limit.map_or(error, |limit| TooLong(limit).into())
        }
        "CanisterContractViolation" if message.contains("payload size") => TooLarge.into(),
        // Without a journal, the canister undoes what SQLite refuses.
        "CanisterCalledTrap" => {
            match after("with message: '").and_then(|it| it.rsplit_once('\'')) {
                Some((reason, _)) => anyhow::anyhow!("{reason}"),
                None => error,
            }
        }
        _ => error,
    }
}

fn answers(canister: &mut dyn Messages, job: &Sql) -> Result<Vec<Answer>> {
    let mut answers: Vec<Answer> = Vec::new();
    let mut position = 0;
    loop {
        let (bytes, next) = kept(canister, job, position)?;
        let Answers { answers: part } = decode_one(&bytes)?;
        for mut answer in part {
            match answers.last_mut().filter(|last| last.call == answer.call) {
                Some(last) => {
                    last.cut.append(&mut answer.cut);
                    last.rows.append(&mut answer.rows);
                }
                None => answers.push(answer),
            }
        }
        match next {
            Some(next) => position = next,
            None => return Ok(answers),
        }
    }
}

fn kept(canister: &mut dyn Messages, job: &Sql, position: u64) -> Result<(Vec<u8>, Option<u64>)> {
    wire::kept(canister, &Job::new(job), position).map_err(explained)
}

/// A job with these statements; equal texts are prepared once.
fn job(statements: &[Bound], keep: u64) -> Statements {
    let mut texts: Vec<String> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let mut calls = Vec::new();
    for Bound { text, parameters } in statements {
        let place = *places.entry(text.as_str()).or_insert_with(|| {
            texts.push(text.clone());
            texts.len() - 1
        });
        calls.push(Call { text: place as u32, parameters: parameters.clone() });
    }
    Statements { texts, calls, keep }
}
