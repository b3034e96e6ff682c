//! Preparing a database, which is neither measured nor limited.
//!
//! ```text
//!   --db, --setup ──→ canister with the limits of a benchmarking subnet ──→ cache ─┐
//!                     the same canister with the limits of the measured subnet  ←──┘
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};
use stablebench_protocol::Digest;
use stablebench_suite::engines::Configuration;
use stablebench_suite_sql::script::{FILES, check_database};

use super::SqlArgs;
use super::dump::{copy, import};
use super::session::{Bound, Session};
use super::text::{Item, Kind, items, name, read, shortened, words};
use crate::cache::{Cache, Prepared, Setup};
use crate::canisters::{self, Built};
use crate::commands::replica::embedded;
use crate::progress::{Output, ProgressStep};
use crate::replica::ceiling::{Ceiling, Exceeded};
use crate::replica::embedded::Embedded;
use crate::replica::{Canister, Replica as _};
use crate::report::number::Binary;
use crate::results::{Held, Populate};

/// The largest database that is loaded, in bytes.
const MAX_DATABASE: u64 = 8 << 30;
/// The statements of a message, and their bytes, at most.
const STATEMENTS: usize = 500;
const BYTES: usize = 1 << 20;
/// The sources that decide what a prepared database is.
const SOURCES: [&str; 3] =
    [include_str!("setup.rs"), include_str!("session.rs"), include_str!("dump.rs")];

/// What prepares a database.
struct Sources<'a> {
    database: Option<(&'a Path, Vec<u8>)>,
    files: Vec<(&'a Path, String)>,
}

impl<'a> Sources<'a> {
    fn read(args: &'a SqlArgs) -> Result<Self> {
        let database = match args.db.as_deref() {
            Some(path) => Some((path, read_database(path)?)),
            None => None,
        };
        let files = args.setup.iter().map(|path| Ok((path.as_path(), read(path)?)));
        Ok(Self { database, files: files.collect::<Result<_>>()? })
    }

    fn is_empty(&self) -> bool {
        self.database.is_none() && self.files.is_empty()
    }

    /// The names of the files.
    fn name(&self) -> String {
        let database = self.database.iter().map(|(path, _)| *path);
        let all = database.chain(self.files.iter().map(|(path, _)| *path));
        all.map(name).collect::<Vec<_>>().join(", ")
    }

    /// The hash of everything that they contain and read.
    fn key(&self) -> Result<String> {
        let mut hash = Sha256::new();
        for source in SOURCES {
            hash.update(Sha256::digest(source));
        }
        if let Some((_, bytes)) = &self.database {
            hash.update(Sha256::digest(bytes));
        }
        let mut seen = BTreeSet::new();
        for (_, text) in &self.files {
            add(&mut hash, text, &mut seen)?;
        }
        Ok(format!("{:x}", hash.finalize()))
    }
}

/// Adds a text and the files that its commands read.
fn add(hash: &mut Sha256, text: &str, seen: &mut BTreeSet<PathBuf>) -> Result<()> {
    hash.update(Sha256::digest(text));
    // A command begins a line.
    if !text.lines().any(|line| line.trim_start().starts_with('.')) {
        return Ok(());
    }
    for item in items(text).filter(|item| item.kind == Kind::Command) {
        let words = words(item.text)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [".read", path] if seen.insert(path.into()) => {
                add(hash, &read(Path::new(path))?, seen)?
            }
            [".import", path, _] => {
                let file = stablebench_replica::files::open(Path::new(path))
                    .with_context(|| format!("cannot read {path}"))?;
                std::io::copy(&mut std::io::BufReader::new(file), hash)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Starts the replica, and opens the database that the options describe.
///
/// # Errors
///
/// If a file cannot be read, or a statement fails.
pub fn open(args: &SqlArgs, output: &Output) -> Result<(Embedded, Session)> {
    let sources = Sources::read(args)?;
    let (replica, cache) = embedded(&args.replica, &output.progress)?;
    if sources.is_empty() {
        let session = Session::open(&replica, args.engine.clone(), &output.progress)?;
        return Ok((replica, session));
    }
    let built = canisters::find(args.engine.engine.canister, &output.progress)?;
    let prepared = Prepared::database(args.engine.info(), sources.name(), sources.key()?);
    let hash = canisters::hash(&built.wasm);
    let setup = Setup::new(replica.identity(), hash, prepared);
    let known = cache.as_ref().and_then(|cache| taken(cache, &replica, &built, &setup));
    if let Some(canister) = known {
        output.progress.note(&format!("{}: prepared earlier", sources.name()));
        return Ok((replica, Session::with(canister, args.engine.clone())));
    }
    let mut session = Session::open(&replica, args.engine.clone(), &output.progress)?;
    let subnet = session.lift_limits();
    if let Some((path, bytes)) = &sources.database {
        load_any(&mut session, &replica, path, bytes, output)?;
    }
    for (path, text) in &sources.files {
        let step = output.progress.step(&name(path), "bytes", text.len() as u64);
        let mut execution = Execution {
            session: &mut session,
            output,
            reading: Vec::new(),
            step: &step,
            ceiling: Ceiling::SETUP,
        };
        execution.file(path, text)?;
        step.done("");
    }
    if let Some(subnet) = subnet {
        session.set_limits(subnet);
    }
    if let Some(cache) = cache {
        cache.keep(session.canister(), setup, &held());
    }
    Ok((replica, session))
}

fn taken(
    cache: &Cache,
    replica: &Embedded,
    built: &Built,
    setup: &Setup,
) -> Option<Box<dyn Canister>> {
    cache.take(replica, &built.wasm, setup, |_| true).map(|(canister, _)| canister)
}

/// Nothing is known of the content of such a database.
fn held() -> Held {
    Held {
        sqlite: None,
        populate: Populate::default(),
        stored_bytes: 0,
        virtual_bytes: None,
        cache_bytes: None,
        heap_pages: 0,
        stable_pages: 0,
        digest: Digest::default(),
        wall_milliseconds: None,
    }
}

fn read_database(path: &Path) -> Result<Vec<u8>> {
    let shown = path.display().to_string();
    let too_large = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_DATABASE);
    if too_large {
        bail!("{shown} is too large: at most {} are loaded", Binary(MAX_DATABASE));
    }
    let bytes = stablebench_replica::files::read(path, MAX_DATABASE)
        .with_context(|| format!("cannot read {shown}"))?;
    if !bytes.is_empty() {
        check_database(&bytes, path).with_context(|| format!("cannot load {shown}"))?;
    }
    Ok(bytes)
}

/// Replaces the database by that of a file.
///
/// # Errors
///
/// If it cannot be read, or SQLite refuses it.
pub fn load_file(
    session: &mut Session,
    replica: &Embedded,
    path: &Path,
    output: &Output,
) -> Result<()> {
    load_any(session, replica, path, &read_database(path)?, output)
}

fn load_any(
    session: &mut Session,
    replica: &Embedded,
    path: &Path,
    bytes: &[u8],
    output: &Output,
) -> Result<()> {
    if session.configuration().engine.key == FILES {
        return load(session, path, bytes, output);
    }
    // Other engines take the content as SQL.
    let mut from = Session::open(replica, Configuration::of(FILES)?, &output.progress)?;
    from.lift_limits();
    load(&mut from, path, bytes, output)?;
    let step = output.progress.spinner(&format!("copying {}", path.display()));
    copy(&mut from, session)?;
    step.done("");
    Ok(())
}

fn load(session: &mut Session, path: &Path, bytes: &[u8], output: &Output) -> Result<()> {
    if bytes.is_empty() {
        // As in sqlite3, a database without a table.
        return Ok(());
    }
    let shown = path.display();
    let step = output.progress.step(&format!("loading {shown}"), "bytes", bytes.len() as u64);
    session
        .load(bytes, |loaded| step.at(loaded, ""))
        .with_context(|| format!("cannot load {shown}"))?;
    step.done("");
    Ok(())
}

/// The execution of files, many statements to a message.
struct Execution<'a> {
    session: &'a mut Session,
    output: &'a Output,
    /// The files that are read.
    reading: Vec<PathBuf>,
    step: &'a ProgressStep,
    ceiling: Ceiling,
}

impl Execution<'_> {
    fn file(&mut self, path: &Path, text: &str) -> Result<()> {
        let known = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.reading.contains(&known) {
            bail!("{} reads itself", path.display());
        }
        self.reading.push(known);
        let mut waiting: Vec<Item<'_>> = Vec::new();
        let mut bytes = 0;
        let mut all = items(text);
        while let Some(item) = all.next() {
            if item.kind == Kind::Command {
                self.send(path, &mut waiting)?;
                bytes = 0;
                self.command(&item)
                    .with_context(|| format!("{}, line {}", name(path), item.line))?;
                continue;
            }
            if waiting.len() == STATEMENTS || bytes + item.text.len() > BYTES {
                self.send(path, &mut waiting)?;
                bytes = 0;
                if self.reading.len() == 1 {
                    self.step.at((text.len() - all.rest().len()) as u64, "");
                }
            }
            bytes += item.text.len();
            waiting.push(item);
        }
        self.send(path, &mut waiting)?;
        self.reading.pop();
        Ok(())
    }

    /// Executes the statements that wait. A transaction may last over several messages.
    fn send(&mut self, path: &Path, waiting: &mut Vec<Item<'_>>) -> Result<()> {
        if waiting.is_empty() {
            return Ok(());
        }
        let statements: Vec<Bound> = waiting.iter().map(|item| item.text.into()).collect();
        let place = |item: &Item<'_>| {
            let text = shortened(item.text, 90);
            format!("{}, line {}: {text}", name(path), item.line)
        };
        self.step.says(shortened(waiting[0].text, 60));
        let executed = match self.session.execute_below(&statements, self.ceiling) {
            Err(error) if error.is::<Exceeded>() => {
                let endless = self.endless(&statements);
                return Err(error.context(place(&waiting[endless])));
            }
            executed => executed.with_context(|| place(&waiting[0]))?,
        };
        for answer in &executed.answers {
            if let Some(failure) = &answer.error {
                let item = &waiting[answer.call as usize];
                return Err(anyhow::anyhow!("{}", failure.message)).context(place(item));
            }
        }
        waiting.clear();
        Ok(())
    }

    /// Returns the first of the statements that does not end soon if each is a message. They had no
    /// effect, and the setup fails.
    fn endless(&mut self, statements: &[Bound]) -> usize {
        let ends = |statement: &Bound| {
            let one = std::slice::from_ref(statement);
            let executed = self.session.execute_below(one, self.ceiling.short());
            !executed.is_err_and(|error| error.is::<Exceeded>())
        };
        statements.iter().map(ends).position(|ends| !ends).unwrap_or(0)
    }

    fn command(&mut self, item: &Item<'_>) -> Result<()> {
        let words = words(item.text)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [".import", path, table] => {
                import(self.session, Path::new(path), table, &self.output.progress).map(drop)
            }
            [".read", path] => {
                let path = Path::new(path);
                self.file(path, &read(path)?)
            }
            _ => bail!("a setup takes the commands .import FILE TABLE and .read FILE only"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::progress::Progress;
    use crate::terminal::Terminal;

    #[test]
    fn a_statement_without_end_is_ended_and_named() {
        let output = Output { progress: Progress::Quiet, terminal: Terminal::default() };
        let sqlite = Configuration::of("sqlite").unwrap();
        let mut session = Session::open(&crate::commands::sql::replica(), sqlite, &output.progress);
        let session = session.as_mut().unwrap();
        session.lift_limits();
        let step = output.progress.step("", "bytes", 1);
        let mut run = |text: &str, ceiling: Ceiling| {
            let (reading, session) = (Vec::new(), &mut *session);
            let mut execution =
                Execution { session, output: &output, reading, step: &step, ceiling };
            execution.file(Path::new("a.sql"), text)
        };
        let endless = "CREATE TABLE t(a);\nINSERT INTO t VALUES(1);\n\
                       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)\n\
                       INSERT INTO t SELECT i FROM n;\nSELECT 1;";
        for (ceiling, reason) in [
            (Ceiling { time: Duration::from_secs(2), ..Ceiling::SETUP }, "it was ended after 2 s"),
            #[cfg(target_os = "linux")]
            (
                Ceiling { memory: 64 << 20, ..Ceiling::SETUP },
                "it was ended after it had taken 64.0 MiB",
            ),
        ] {
            let error = format!("{:#}", run(endless, ceiling).unwrap_err());
            let place = "a.sql, line 3: WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL";
            assert!(error.starts_with(place) && error.contains(reason), "{error}");
            run("DROP TABLE t;", Ceiling::SETUP).unwrap();
        }
    }
}
