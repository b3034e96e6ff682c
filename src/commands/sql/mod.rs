//! `stablebench sql`: the cost of any SQL, statement by statement.
//!
//! ```text
//!   text ── split ──→ statements ── Session ──→ one message each ──→ rows and cost
//!                     BEGIN … COMMIT ─────────→ one message
//! ```

mod dot;
mod files;
#[cfg(test)]
mod logic;
mod print;
mod script;
mod session;
mod shell;
mod tune;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use stablebench_suite::engines::{Configuration, has_sql};

use super::replica::embedded;
use super::run::PriceArgs;
use crate::progress::Output;
use crate::replica::options::ReplicaArgs;
use crate::results::Prices;
use files::Format;
use print::Mode;
pub use script::{SqlCommand, sql_command};
use session::Session;

#[derive(Clone, Debug, Args)]
pub struct SqlArgs {
    /// Files with SQL, whose statements are executed in their order; `-` reads standard input.
    /// Without a file, a shell.
    pub files: Vec<PathBuf>,
    /// Execute this SQL. Repeat it for more, in their order.
    #[arg(short, long = "command", value_name = "SQL", conflicts_with = "files")]
    pub commands: Vec<String>,
    /// SQL that prepares the database; it is not measured and has no practical limits. May be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    pub setup: Vec<PathBuf>,
    /// Engine and its settings: sqlite, sqlite/wal,cache_size=1000, sqlite-vfs, doltlite.
    #[arg(long, value_name = "ENGINE", default_value = "sqlite", value_parser = engine)]
    pub engine: Configuration,
    /// Begin with the database in this file.
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
    let configuration = Configuration::of(key).map_err(|error| error.to_string())?;
    match has_sql(configuration.engine.key) {
        true => Ok(configuration),
        false => Err(format!("{key} has no SQL; take sqlite, sqlite-vfs or doltlite")),
    }
}

/// The largest file with SQL, in bytes.
const MAX_SQL: u64 = 1 << 30;
/// The largest database that is loaded, in bytes.
const MAX_DATABASE: u64 = 16 << 30;

/// Executes SQL and prints its cost.
///
/// # Errors
///
/// If a statement fails and nobody is there to read it and go on.
pub fn sql(args: &SqlArgs, output: &Output) -> Result<ExitCode> {
    if let Some(path) = &args.save_db {
        crate::saving::check(path)
            .with_context(|| format!("cannot save the database to {}", path.display()))?;
    }
    let prices = Prices {
        nodes: args.prices.nodes,
        usd_per_trillion_cycles: args.prices.usd_per_trillion_cycles,
    };
    let (replica, _) = embedded(&args.replica, &output.progress)?;
    let mut session = Session::open(&replica, args.engine.clone(), &output.progress)?;
    if let Some(path) = &args.db {
        load(&mut session, path, output)?;
    }
    let interactive = args.files.is_empty() && args.commands.is_empty();
    let failed = if interactive && std::io::stdin().is_terminal() {
        shell::run(shell::State::new(&mut session, prices, args, output))?;
        false
    } else {
        files::run(&mut session, prices, args, output)?
    };
    if let Some(path) = &args.save_db {
        save(&mut session, path)?;
    }
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// Replaces the database by that of a file.
fn load(session: &mut Session, path: &std::path::Path, output: &Output) -> Result<()> {
    let name = path.display();
    let file = stablebench_replica::files::read(path, MAX_DATABASE)
        .with_context(|| format!("cannot read {name}"))?;
    let step = output.progress.step(&format!("loading {name}"), "bytes", file.len() as u64);
    session
        .load(&file, |loaded| step.at(loaded, ""))
        .with_context(|| format!("cannot load {name}"))?;
    step.done("");
    Ok(())
}

/// Saves the database to a file.
fn save(session: &mut Session, path: &std::path::Path) -> Result<()> {
    let file = session.file()?;
    crate::saving::save(path, &file)
        .with_context(|| format!("cannot save the database to {}", path.display()))
}

/// Reads SQL from a file, or from standard input if its name is `-`.
fn read(path: &std::path::Path) -> Result<String> {
    let bytes = match path.as_os_str() == "-" {
        true => stablebench_replica::files::read_at_most(std::io::stdin().lock(), MAX_SQL),
        false => stablebench_replica::files::read(path, MAX_SQL),
    };
    let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) => bail!("{} contains a NUL byte, which SQL cannot", path.display()),
        Err(error) => bail!("{} is not UTF-8: {error}", path.display()),
    }
}
