//! `stablebench sql`: the cost of any SQL, statement by statement.
//!
//! ```text
//!   text ── split ──→ statements ── Session ──→ one message each ──→ rows and cost
//!                     BEGIN … COMMIT ─────────→ one message
//! ```

mod advice;
mod dot;
mod dump;
mod files;
mod import;
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

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use stablebench_suite::engines::{Configuration, has_sql};

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
    let configuration = Configuration::of(key).map_err(|error| error.to_string())?;
    match has_sql(configuration.engine.key) {
        true => Ok(configuration),
        false => Err(format!("{key} has no SQL; take sqlite, sqlite-vfs or doltlite")),
    }
}

/// Executes SQL and prints its cost.
///
/// # Errors
///
/// If a file cannot be read, or the database cannot be prepared or saved.
pub fn sql(args: &SqlArgs, output: &Output) -> Result<ExitCode> {
    if let Some(path) = &args.save_db {
        crate::saving::check(path)
            .with_context(|| format!("cannot save the database to {}", path.display()))?;
    }
    let prices = Prices {
        nodes: args.prices.nodes,
        usd_per_trillion_cycles: args.prices.usd_per_trillion_cycles,
    };
    let mut state = State::new(setup::open(args, output)?, prices, args, output);
    let failed = if !args.files.is_empty() {
        files::run(&mut state)?
    } else if !args.commands.is_empty() {
        shell::commands(&mut state)?
    } else if shell::is_interactive() {
        shell::run(&mut state)?;
        false
    } else {
        shell::piped(&mut state)?
    };
    if let Some(path) = &args.save_db {
        save(&mut state.session, path)?;
    }
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// Saves the database to a file.
fn save(session: &mut Session, path: &std::path::Path) -> Result<()> {
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
    crate::replica::embedded::Embedded::new(rules, Some(cache), |_| {}).unwrap()
}
