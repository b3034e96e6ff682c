//! `stablebench sql`: the cost of any SQL, statement by statement.
//!
//! ```text
//!   text ── split ──→ statements ── Session ──→ one message each ──→ rows and cost
//!                     BEGIN … COMMIT ─────────→ one message
//! ```

mod advice;
mod dot;
mod dump;
mod echo;
mod files;
mod import;
mod later;
#[cfg(test)]
mod logic;
#[cfg(test)]
mod model;
mod print;
mod script;
mod session;
mod setup;
mod shell;
mod state;
mod text;
mod tune;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use stablebench_suite::engines::{Configuration, has_sql};
use stablebench_suite_sql::script::{FILES, MAGIC};

use super::run::PriceArgs;
use crate::progress::Output;
use crate::replica::options::ReplicaArgs;
use crate::results::Prices;
use files::Format;
use print::Mode;
pub use script::{SqlCommand, sql_command};
use session::Session;
use state::State;

#[derive(Clone, Debug, Args)]
pub struct SqlArgs {
    /// Files with SQL, whose statements are executed in their order; `-` reads standard input.
    /// Without a file or --command, a shell.
    pub files: Vec<PathBuf>,
    /// Execute this SQL. Repeat it for more, in their order.
    #[arg(short, long = "command", value_name = "SQL", conflicts_with = "files")]
    pub commands: Vec<String>,
    /// File with SQL that prepares the database: it is neither measured nor limited, and its result
    /// is cached. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub setup: Vec<PathBuf>,
    /// Engine and its settings: sqlite, sqlite/wal,cache_size=1000, sqlite-vfs, doltlite.
    #[arg(long, value_name = "ENGINE", default_value = "sqlite", value_parser = engine)]
    pub engine: Configuration,
    /// Begin with the SQLite database in this file.
    #[arg(long, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// Save the database to this file at the end.
    #[arg(long, value_name = "FILE")]
    pub save_db: Option<PathBuf>,
    /// Form of the rows, in the shell and with --command.
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub mode: Mode,
    /// Form of the table of statements, with files.
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub format: Format,
    /// Continue after a statement that fails.
    #[arg(long)]
    pub keep_going: bool,
    #[command(flatten)]
    pub prices: PriceArgs,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

fn engine(key: &str) -> Result<Configuration, String> {
    let name = key.split(['/', ',']).next().unwrap_or_default();
    if !has_sql(name) {
        return Err(format!("{name} is no engine with SQL; take sqlite, sqlite-vfs or doltlite"));
    }
    Configuration::of(key).map_err(|error| error.to_string())
}

/// Executes SQL and prints its cost.
///
/// # Errors
///
/// If a file cannot be read, or the database cannot be prepared or saved.
pub fn sql(args: &SqlArgs, output: &Output) -> Result<ExitCode> {
    if let Some(path) = &args.save_db {
        check_file(&args.engine, "--save-db")?;
        check_target(path)?;
    }
    let prices = Prices {
        nodes: args.prices.nodes,
        usd_per_trillion_cycles: args.prices.usd_per_trillion_cycles,
    };
    let mut state = State::new(setup::open(args, output)?, prices, args, output);
    let outcome = if !args.files.is_empty() {
        files::run(&mut state)
    } else if !args.commands.is_empty() {
        shell::commands(&mut state)
    } else if shell::is_interactive() {
        shell::run(&mut state).map(|()| false)
    } else {
        shell::piped(&mut state)
    };
    let is_closed = outcome.as_ref().is_err_and(crate::is_closed_pipe);
    if let Some(path) = &args.save_db
        && (outcome.is_ok() || is_closed)
    {
        save(&mut state.session, path)?;
        if is_closed {
            output.progress.note(&format!(
                "the output was closed: the rest was not executed, and {} has what was done before",
                path.display()
            ));
        }
    }
    let failed = outcome?;
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// Refuses engines that do not store their database as a file.
fn check_file(configuration: &Configuration, what: &str) -> Result<()> {
    let key = configuration.engine.key;
    ensure!(
        key == FILES,
        "{what}: {key} does not store its database as a file; .dump prints it as SQL, and .read executes that"
    );
    Ok(())
}

/// Refuses to replace a file that is no database, or one whose log or journal SQLite would apply to the
/// new content.
fn check_target(path: &Path) -> Result<()> {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!("cannot save the database to {shown}: there is no folder {}", folder.display());
    }
    crate::saving::check(path).with_context(|| format!("cannot save the database to {shown}"))?;
    if !path.is_file() {
        return Ok(());
    }
    let mut start = Vec::new();
    let file = stablebench_replica::files::open(path);
    let read = file.and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    read.with_context(|| format!("cannot read {shown}"))?;
    if !start.is_empty() && start != MAGIC {
        bail!("{shown} exists and is no SQLite database; choose another name");
    }
    for more in ["-wal", "-journal"] {
        let beside = crate::saving::with_more(path, more);
        if std::fs::metadata(&beside).is_ok_and(|file| file.len() > 0) {
            bail!(
                "SQLite would apply {} to the new content of {shown}; choose another name, or let SQLite \
                 end it first: sqlite3 {} 'PRAGMA journal_mode=delete'",
                beside.display(),
                crate::terminal::quoted(&shown.to_string())
            );
        }
    }
    Ok(())
}

/// Saves the database to a file.
fn save(session: &mut Session, path: &Path) -> Result<()> {
    check_file(session.configuration(), "saving")?;
    check_target(path)?;
    let file = session.file()?;
    crate::saving::save(path, &file)
        .with_context(|| format!("cannot save the database to {}", path.display()))
}

/// A replica with the cache of compiled modules that other tests use too.
#[cfg(test)]
fn replica() -> crate::replica::embedded::Embedded {
    // The program of these tests is in TARGET/PROFILE/deps.
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap();
    let cache = target.join("tmp/stablebench");
    std::fs::create_dir_all(&cache).unwrap();
    let rules = stablebench_replica::Rules::today();
    crate::replica::embedded::Embedded::new(
        stablebench_replica::Effort::Full,
        rules,
        Some(cache),
        |_| {},
    )
    .unwrap()
}
