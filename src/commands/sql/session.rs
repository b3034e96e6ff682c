//! A database in a canister, and statements on it.

use anyhow::{Context, Result, bail};
use stablebench_protocol::{Job, Part, Setting};
use stablebench_suite::engines::{Configuration, has_sql};
use stablebench_suite_sql::{Answer, Answers, Call, FilePart, Sql, Statements, Value};

use crate::canisters;
use crate::progress::Progress;
use crate::replica::decoding::decode_one;
use crate::replica::{Canister, Cost, PageCosts, Replica};
use crate::runner::wire;

/// The bytes of values of a message's results that are kept for the caller.
const KEEP: u64 = 64 << 20;
/// The bytes of a part of a file in a message.
const PART: usize = 1 << 20;
/// The first bytes of a database file.
const MAGIC: &[u8] = b"SQLite format 3\0";

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

/// What a message did.
#[derive(Debug, Default)]
pub struct Executed {
    pub answers: Vec<Answer>,
    /// The cost of the message.
    pub cost: Cost,
    /// The pages of each statement, as far as the replica knows them.
    pub pages: Vec<Option<PageCosts>>,
}

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

    /// Returns the key of the configuration.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Opens the database again with other settings.
    ///
    /// # Errors
    ///
    /// If the library does not take one of them; they are unchanged then.
    pub fn configure(&mut self, configuration: Configuration) -> Result<()> {
        let settings = configuration.info().settings.unwrap_or_default();
        let settings = settings.iter().map(|(name, value)| Setting::new(name, value)).collect();
        self.work(&Sql::Configure(settings))?;
        self.configuration = configuration;
        Ok(())
    }

    /// Returns the settings in effect.
    pub fn settings(&mut self) -> Result<Vec<Setting>> {
        let (bytes, _) = self.kept(&Sql::Configure(Vec::new()), 0)?;
        Ok(decode_one(&bytes)?)
    }

    /// Executes statements in a message, measured.
    ///
    /// # Errors
    ///
    /// If the message fails as a whole; what SQLite refuses is an answer.
    pub fn execute(&mut self, statements: &[Bound]) -> Result<Executed> {
        let (measured, cost) = self.work(&Sql::Statements(job(statements)))?;
        let answers = self.answers(&Sql::Answers)?;
        let pages =
            answers.iter().map(|answer| measured.between(answer.readings.0, answer.readings.1));
        Ok(Executed { pages: pages.collect(), answers, cost })
    }

    /// Executes statements in a query, which leaves nothing behind.
    ///
    /// # Errors
    ///
    /// Those of [`execute`](Self::execute).
    pub fn look(&mut self, statements: &[Bound]) -> Result<Vec<Answer>> {
        self.answers(&Sql::Statements(job(statements)))
    }

    /// Executes a statement without parameters in a query.
    ///
    /// # Errors
    ///
    /// Those of [`look`](Self::look); SQLite's.
    pub fn rows(&mut self, text: &str) -> Result<Vec<Vec<Value>>> {
        let answers = self.look(&[text.into()])?;
        let answer = answers.into_iter().next().context("the canister returned no answer")?;
        match answer.error {
            Some(failure) => bail!("{}", failure.message),
            None => Ok(answer.rows),
        }
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
        check(file)?;
        let checksum = fnv1a(file);
        for (number, bytes) in file.chunks(PART).enumerate() {
            let offset = (number * PART) as u64;
            let part =
                FilePart { offset, bytes: bytes.to_vec(), size: file.len() as u64, checksum };
            self.work(&Sql::Load(part))?;
            step(offset + bytes.len() as u64);
        }
        // Reads the schema, and so finds out whether it is one.
        self.rows("SELECT count(*) FROM sqlite_schema").context("this is no usable database")?;
        Ok(())
    }

    /// Returns the database as a file.
    pub fn file(&mut self) -> Result<Vec<u8>> {
        let mut file = Vec::new();
        loop {
            let (bytes, next) = self.kept(&Sql::File, file.len() as u64)?;
            file.extend(bytes);
            if next.is_none() {
                return Ok(file);
            }
        }
    }

    fn work(&mut self, job: &Sql) -> Result<(crate::replica::Readings, Cost)> {
        let part = Part { job: Job::new(job), seed: 0, from: 0, count: 1, each: false };
        let search = stablebench_suite::plan::Search::Update;
        let done = wire::execute_unread(&mut *self.canister, &part, search)?;
        Ok((done.receipt.readings, done.receipt.cost))
    }

    fn answers(&mut self, job: &Sql) -> Result<Vec<Answer>> {
        let mut answers: Vec<Answer> = Vec::new();
        let mut position = 0;
        loop {
            let (bytes, next) = self.kept(job, position)?;
            let Answers { answers: part } = decode_one(&bytes)?;
            for mut answer in part {
                match answers.last_mut().filter(|last| last.call == answer.call) {
                    Some(last) => {
                        let before = last.rows.len() as u64;
                        last.cut
                            .extend(answer.cut.iter().map(|cut| (cut.0 + before, cut.1, cut.2)));
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

    fn kept(&mut self, job: &Sql, position: u64) -> Result<(Vec<u8>, Option<u64>)> {
        wire::kept(&mut *self.canister, &Job::new(job), position)
    }
}

/// A job with these statements; equal texts are prepared once.
fn job(statements: &[Bound]) -> Statements {
    let mut texts: Vec<String> = Vec::new();
    let mut calls = Vec::new();
    for Bound { text, parameters } in statements {
        let place = texts.iter().position(|known| known == text).unwrap_or_else(|| {
            texts.push(text.clone());
            texts.len() - 1
        });
        calls.push(Call { text: place as u32, parameters: parameters.clone() });
    }
    Statements { texts, calls, keep: KEEP }
}

/// Refuses files that are no database, and those with a write-ahead log, whose last changes may be in
/// another file.
fn check(file: &[u8]) -> Result<()> {
    if !file.starts_with(MAGIC) || file.len() < 512 {
        bail!("this is no SQLite database");
    }
    // The versions of the format that writing and reading need: 2 is a write-ahead log.
    if file[18] == 2 || file[19] == 2 {
        bail!(
            "the database is in journal mode WAL, and part of it may be in the file -wal; write it \
             back first: sqlite3 FILE 'PRAGMA journal_mode=delete'"
        );
    }
    Ok(())
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
