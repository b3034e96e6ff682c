//! `stablebench sql`: the cost of any SQL, statement by statement.
//!
//! ```text
//!   text ── split ──→ statements ── Session ──→ one message each ──→ rows and cost
//!                     BEGIN … COMMIT ─────────→ one message
//! ```
//!
//! With `--script`, it is the suite sql, `stablebench run sql`, with the same options.

mod advice;
#[cfg(test)]
mod as_sqlite;
mod dot;
mod dump;
mod input;
mod print;
mod session;
mod setup;
mod state;
mod text;
mod tune;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use stablebench_suite::Suite;
use stablebench_suite::engines::{Configuration, has_sql};
use stablebench_suite_sql::script::{FILES, MAGIC, SqlSuite};

use super::run::{Planned, PriceArgs, execute, with_run_options};
use crate::progress::Output;
use crate::replica::options::ReplicaArgs;
use crate::results::Prices;
use input::Format;
use print::PrintMode;
use session::Session;
use state::ShellState;
use tune::{Choice, tune};

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
    pub mode: PrintMode,
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
    let mut state = ShellState::new(setup::open(args, output)?, prices, args, output);
    let outcome = if !args.files.is_empty() {
        input::files(&mut state)
    } else if !args.commands.is_empty() {
        input::commands(&mut state)
    } else if input::is_interactive() {
        input::run(&mut state).map(|()| false)
    } else {
        input::piped(&mut state)
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

/// The options that choose scripts.
const CHOICES: [&str; 3] = ["scripts", "builtins", TUNE];
/// The option that searches for settings.
const TUNE: &str = "tune";
/// The options that a search varies.
const VARIED: [&str; 2] = ["engines", "per_message"];
/// The options of the shell and of files, with what scripts have instead.
const OTHERS: [(&str, &str); 6] = [
    ("files", "--script FILE"),
    ("commands", "--script FILE"),
    ("engine", "--engines"),
    ("save_db", "stablebench sql -c '' --save-db"),
    ("mode", "--format"),
    ("keep_going", "nothing: an error ends the run"),
];

/// The options of `sql`: those of the shell and of files, and those of scripts.
#[derive(Clone, Debug)]
pub struct SqlCommand {
    args: SqlArgs,
    matches: ArgMatches,
}

/// The options of the suite and of all suites.
fn run_options() -> Command {
    with_run_options(SqlSuite.arguments(Command::new("").next_help_heading("Scripts")))
}

impl FromArgMatches for SqlCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { args: SqlArgs::from_arg_matches(matches)?, matches: matches.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SqlCommand {
    fn augment_args(command: Command) -> Command {
        let own = SqlArgs::augment_args(command);
        let of_suite = SqlSuite.arguments(Command::new(""));
        let is_known = |command: &Command, id: &clap::Id| {
            command.get_arguments().any(|known| known.get_id() == id)
        };
        let tune = Arg::new(TUNE)
            .long(TUNE)
            .action(ArgAction::SetTrue)
            .help_heading("Scripts")
            .help("Measure the scripts with many settings, and rank them");
        run_options().get_arguments().chain([&tune]).fold(own, |command, argument| {
            let id = argument.get_id();
            if is_known(&command, id) {
                return command;
            }
            // Those of all suites are in the help of `run sql`.
            let hidden = !is_known(&of_suite, id) && id != TUNE;
            command.arg(argument.clone().hide(hidden))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl SqlCommand {
    fn is_given(&self, id: &str) -> bool {
        let source =
            self.matches.try_get_raw(id).ok().flatten().map(|_| self.matches.value_source(id));
        source.flatten() == Some(ValueSource::CommandLine)
    }

    /// Returns the options of `run sql` that were given, but some.
    fn words(&self, but: &[&str]) -> Vec<String> {
        let mut words = Vec::new();
        for argument in run_options().get_arguments() {
            let id = argument.get_id().as_str();
            let wanted = !but.contains(&id) && self.is_given(id);
            let Some(long) = argument.get_long().filter(|_| wanted) else { continue };
            if matches!(argument.get_action(), ArgAction::SetTrue) {
                words.push(format!("--{long}"));
                continue;
            }
            let values = self.matches.get_raw(id).into_iter().flatten();
            words.extend(values.map(|value| format!("--{long}={}", value.to_string_lossy())));
        }
        words
    }
}

/// Executes SQL and prints its cost.
///
/// # Errors
///
/// If a statement fails, or options contradict each other.
pub fn sql_command(command: &SqlCommand, output: &Output) -> Result<ExitCode> {
    if !CHOICES.iter().any(|id| command.is_given(id)) {
        let own = SqlArgs::augment_args(Command::new(""));
        let is_own = |id: &clap::Id| own.get_arguments().any(|known| known.get_id() == id);
        let options = run_options();
        let strange = options.get_arguments().find(|argument| {
            !is_own(argument.get_id()) && command.is_given(argument.get_id().as_str())
        });
        if let Some(long) = strange.and_then(Arg::get_long) {
            bail!("--{long} is for scripts; add --script FILE or --builtin NAME");
        }
        return sql(&command.args, output);
    }
    if let Some((id, instead)) = OTHERS.iter().find(|(id, _)| command.is_given(id)) {
        let option = match *id {
            "files" => "a file with SQL".to_owned(),
            id => format!("--{}", id.trim_end_matches('s').replace('_', "-")),
        };
        bail!("{option} is not for scripts; they have {instead}");
    }
    if command.is_given(TUNE) {
        let given = |id: &str| command.is_given(id);
        let choice = Choice {
            words: command.words(&VARIED),
            engines: given("engines")
                .then(|| command.matches.get_one("engines").cloned())
                .flatten(),
            per_message: given("per_message")
                .then(|| command.matches.get_one("per_message").copied())
                .flatten(),
            transactions: given("transactions")
                .then(|| command.matches.get_one("transactions").copied())
                .flatten(),
        };
        return tune(choice, output);
    }
    execute(&Planned::of(&SqlSuite, &command.words(&[]))?, output)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::commands::run::{empty, needed};
    use crate::progress::Progress;
    use crate::replica::ceiling::Ceiling;
    use crate::runner::Runner;

    #[test]
    fn a_setup_without_end_is_ended_and_its_statement_named() {
        let folder = tempfile::tempdir().unwrap();
        let [setup, script] = ["setup.sql", "tx.sql"].map(|name| folder.path().join(name));
        let endless = "CREATE TABLE t(a);\nINSERT INTO t VALUES(1);\n\
                       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)\n\
                       INSERT INTO t SELECT i FROM n;\nSELECT 1;";
        std::fs::write(&setup, endless).unwrap();
        std::fs::write(&script, "SELECT 1;").unwrap();
        let words = [
            format!("--setup={}", setup.display()),
            format!("--script={}", script.display()),
            "--engines=sqlite".to_owned(),
        ];
        let planned = Planned::of(&SqlSuite, &words).unwrap();
        let replica = replica();
        let (built, _) = needed(&planned.plan, &Progress::Quiet).unwrap();
        for (ceiling, reason) in [
            (Ceiling { time: Duration::from_secs(2), ..Ceiling::SETUP }, "it was ended after 2 s,"),
            #[cfg(target_os = "linux")]
            (Ceiling { memory: 64 << 20, ..Ceiling::SETUP }, "it had taken 64.0 MiB of memory,"),
        ] {
            let results = empty(&planned, &replica, &built);
            let runner =
                Runner::new(&replica, &built, &planned.plan, &Progress::Quiet, None, results);
            let error = runner.unwrap().with_ceiling(ceiling).run(1).unwrap_err();
            let error = format!("{error:#}");
            let place =
                "setup.sql, line 3: WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1";
            assert!(error.contains(place) && error.contains(reason), "{error}");
            assert!(error.ends_with(" and had no effect: does it have an end?"), "{error}");
        }
    }
}
