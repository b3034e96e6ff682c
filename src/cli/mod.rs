//! Command-line definitions: the list of subcommands, and the options of the tool as a whole; shell
//! completions and manual pages are made of them. Each command owns its options, and each suite its own.

mod examples;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstream::ColorChoice;
use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{
    ArgMatches, Args, Command as Clap, CommandFactory, FromArgMatches, Parser, Subcommand,
    ValueEnum,
};
use clap_complete::Shell;
use stablebench_suite::Suite;
use stablebench_suite_users::UsersSuite;

use crate::commands::{
    self, BuildsArgs, CacheArgs, CallArgs, CanbenchArgs, CompareArgs, MergeArgs, ModuleArgs,
    PocketIcArgs, ProfileArgs, ReportArgs, RunArgs, ServeArgs, SqlCommand, with_run_options,
};
use crate::progress::{Output, Progress};
use crate::suites::SUITES;
use crate::terminal::{Terminal, print_bytes, safe_line};

/// The cost of storing and reading data in a canister of the Internet Computer.
///
/// Without a command: the users suite on 1 000 000 rows, with the options of `run users`.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = examples::TOOL)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The definition of the whole command line. Options of the users suite are accepted without a
/// command, too; the help of `run users` describes them.
pub fn command() -> Clap {
    let mut command = Cli::command();
    for argument in with_run_options(UsersSuite.arguments(Clap::new(""))).get_arguments() {
        command = command.arg(argument.clone().hide(true));
    }
    command.mut_subcommand("run", |run| run.after_long_help(help_of_runs()))
}

/// Returns the options of all suites, and examples, for the end of `run --help`.
fn help_of_runs() -> String {
    let mut options = with_run_options(Clap::new("").disable_help_flag(true))
        .max_term_width(100)
        .help_template("{all-args}");
    let options = options.render_help();
    format!(
        "The options of every suite follow its name; `run SUITE --help` adds those of the suite:\n\n\
         {}\n\n{}",
        options.ansi().to_string().trim_end(),
        examples::RUN
    )
}

impl Cli {
    /// Executes the command. An exit code other than 0 means that a threshold was exceeded.
    ///
    /// # Errors
    ///
    /// Those of the command.
    pub fn execute(self) -> Result<ExitCode> {
        let done = |done: Result<()>| done.map(|()| ExitCode::SUCCESS);
        let progress = Progress::new(self.output.quiet);
        let output = Output { progress, terminal: Terminal::stdout() };
        match self.command {
            None | Some(Command::Run { suite: None }) => {
                let command = suite_command(&UsersSuite);
                let matches = command.try_get_matches_from([UsersSuite.name()])?;
                commands::run(&UsersSuite, &matches, &output)
            }
            Some(Command::Run { suite: Some(SuiteCommand { suite: Some(suite), matches }) }) => {
                commands::run(suite, &matches, &output)
            }
            Some(Command::Run { suite: Some(SuiteCommand { suite: None, matches }) }) => {
                commands::run_all(&matches, &output)
            }
            Some(Command::List) => done(commands::list()),
            Some(Command::Compare(args)) => commands::compare(&args, &output),
            Some(Command::Merge(args)) => done(commands::merge(&args, &output)),
            Some(Command::Report(args)) => done(commands::report(&args, &output)),
            Some(Command::Profile(args)) => done(commands::profile(&args, &output)),
            Some(Command::Canbench(args)) => commands::canbench(&args, &output),
            Some(Command::Sql(args)) => commands::sql_command(&args, &output),
            Some(Command::Call(args)) => done(commands::call(&args, &output)),
            Some(Command::Serve(args)) => done(commands::serve(&args, &output)),
            Some(Command::PocketIc(args)) => done(commands::pocket_ic(&args, &output)),
            Some(Command::Builds(args)) => done(commands::builds(&args, &output)),
            Some(Command::Module(args)) => done(commands::module(&args, &output)),
            Some(Command::Cache(args)) => done(commands::cache(&args)),
            Some(Command::Completions { shell }) => done(completions(shell, command())),
            Some(Command::Man { out }) => done(man(out.as_deref(), command())),
        }
    }

    /// Parses the words of a command line.
    ///
    /// # Errors
    ///
    /// If they do not fit the definitions, or an option of the users suite precedes another command,
    /// where it would change nothing.
    pub fn understand(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().collect();
        Self::parsed(&words).map_err(|error| {
            // The error shows the words, which may come from elsewhere: it is made again from words
            // that do not control a terminal.
            let safe = |word: &OsString| match safe_line(&word.to_string_lossy()) {
                Cow::Owned(safe) => safe.into(),
                Cow::Borrowed(_) => word.clone(),
            };
            let safe: Vec<OsString> = words.iter().map(safe).collect();
            Self::parsed(&safe).err().unwrap_or(error)
        })
    }

    fn parsed(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = command();
        let matches = command.try_get_matches_from_mut(words)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        let Some(name) = matches.subcommand_name() else {
            let suite = SuiteCommand { suite: Some(&UsersSuite), matches };
            cli.command = Some(Command::Run { suite: Some(suite) });
            return Ok(cli);
        };
        let everywhere = OutputArgs::augment_args(Clap::new(""));
        let everywhere: Vec<&clap::Id> =
            everywhere.get_arguments().map(clap::Arg::get_id).collect();
        let typed = matches.ids().find(|id| {
            let typed = matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
            // Groups of arguments have ids too.
            let argument = command.get_arguments().any(|known| known.get_id() == *id);
            typed && argument && !everywhere.contains(id)
        });
        if let Some(id) = typed {
            let option = id.as_str().replace('_', "-");
            let message =
                format!("--{option} is not supported by {name} unless it follows that word");
            return Err(command.error(ErrorKind::ArgumentConflict, message));
        }
        Ok(cli)
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a suite.
    #[command(after_help = examples::RUN)]
    Run {
        #[command(subcommand)]
        suite: Option<SuiteCommand>,
    },
    /// List the suites.
    #[command(after_help = examples::LIST)]
    List,
    /// Compare two runs, or two configurations: ratios of instructions, ceilings, every value.
    ///
    /// Prints new / base of the instructions of each case that both have, and the means of each
    /// section and of all; for capacities, base / new: more than 1 is always worse.
    ///
    /// The exit code is 1 if a ceiling or the threshold is exceeded, or if a case or fixture of the
    /// base is missing from the new results, failed there, or is no longer applicable there.
    #[command(after_help = examples::COMPARE)]
    Compare(CompareArgs),
    /// Join the shards of a run.
    ///
    /// Saves and prints what one run without --shard would have saved and printed, except for wall
    /// times. Shards of different runs, and incomplete ones, are refused.
    #[command(after_help = examples::MERGE)]
    Merge(MergeArgs),
    /// Print saved results as tables, CSV, JSON or an HTML page.
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Show the functions in which a case spends its instructions.
    ///
    /// The case is measured as its suite does it, on the embedded replica, and executed once more
    /// with a counter for each function. Their sum is exactly the measured number.
    #[command(after_help = examples::PROFILE)]
    Profile(Box<ProfileArgs>),
    /// Run the benchmarks of a canbench project, without a server.
    ///
    /// Reads canbench.yml, as canbench 0.7 does, builds the canister and runs its benchmarks on the
    /// embedded replica. Prints and writes what canbench does, so that scripts keep working.
    #[command(after_help = examples::CANBENCH)]
    Canbench(Box<CanbenchArgs>),
    /// Execute SQL in a canister and show what each statement costs.
    #[command(after_help = examples::SQL)]
    Sql(Box<SqlCommand>),
    /// Call a method of a canister on the embedded replica.
    #[command(after_help = examples::CALL)]
    Call(CallArgs),
    /// Serve canisters on this machine to the Internet Computer's ordinary clients.
    ///
    /// The HTTP interface of the Internet Computer over the embedded replica: dfx, icp and agents
    /// in any language call the canisters and get exact counts, and browsers see the answers of
    /// http_request at http://ID.localhost:PORT. Prints the URL, the canisters' ids, first commands, and
    /// the root key.
    #[command(after_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Serve the tests of canisters as a PocketIC server does.
    ///
    /// The REST interface of PocketIC over the embedded replica: tests that use the crate pocket-ic, or
    /// @dfinity/pic, run without downloading a server. Set POCKET_IC_BIN to this program, or to a link
    /// to it whose name begins with pocket-ic; clients start and stop it.
    #[command(after_help = examples::POCKET_IC)]
    PocketIc(PocketIcArgs),
    /// Write the module of a canister to files, ready to be deployed.
    ///
    /// Prints hash and path of two files, as `sha256sum` does: the module in gzip, which is deployed,
    /// and the plain module, which runs measure. The first hash is the `module_hash` that the Internet
    /// Computer shows. The program contains the modules; `cargo xtask modules` builds them in a checkout.
    #[command(after_help = examples::MODULE)]
    Module(ModuleArgs),
    /// Build a crate with many options, and compare what its calls cost
    ///
    /// Builds the crate of a canister with cargo, installs each module in a new canister on the embedded
    /// replica, and makes the same calls in all of them. The replies must be the same. Prints a
    /// row for each build, and a profile to copy into Cargo.toml. `run builds` does the same for a canister
    /// of stablebench.
    #[command(after_help = examples::BUILDS)]
    Builds(BuildsArgs),
    /// Show or clear the cache of compiled modules and populated canisters.
    ///
    /// Runs on the embedded replica reuse an entry if everything that it depends on is the same: the
    /// module, the configuration, rows and payload, this tool and its replica. Results are the same
    /// with and without the cache. Entries that cannot be used are replaced, with a note.
    #[command(after_help = examples::CACHE)]
    Cache(CacheArgs),
    /// Print a completion script for a shell.
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page.
    #[command(after_help = examples::MAN)]
    Man {
        /// Save the pages of all commands in this folder instead.
        #[arg(short, long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// A suite, or all of them, and the options that were given.
#[derive(Clone)]
pub struct SuiteCommand {
    /// `None` for all suites.
    pub suite: Option<&'static dyn Suite>,
    pub matches: ArgMatches,
}

impl std::fmt::Debug for SuiteCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.suite.map_or("all", |suite| suite.name()))
    }
}

const ALL: &str = "all";

impl FromArgMatches for SuiteCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) =
            matches.subcommand().ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        Ok(Self { suite: crate::suites::suite(name), matches: matches.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for SuiteCommand {
    fn augment_subcommands(command: Clap) -> Clap {
        let suites = SUITES.iter().map(|suite| suite_command(*suite));
        let all = RunArgs::augment_args(Clap::new(ALL))
            .about("Every suite but builds with its defaults, each into a file of its own")
            .mut_arg("out", |out| {
                out.value_name("DIR")
                    .help("The folder of the results [default: stablebench-results]")
            })
            .after_help(examples::ALL);
        command.subcommands(suites).subcommand(all)
    }

    fn augment_subcommands_for_update(command: Clap) -> Clap {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == ALL || crate::suites::suite(name).is_some()
    }
}

/// The definition of `run SUITE`.
fn suite_command(suite: &'static dyn Suite) -> Clap {
    let command = Clap::new(suite.name()).next_help_heading("Workload");
    // Arguments bring their own description, which the suite's replaces.
    with_run_options(suite.arguments(command))
        .about(suite.summary())
        .long_about(None)
        .after_help(suite.examples())
}

#[derive(Clone, Copy, Debug, Args)]
pub struct OutputArgs {
    /// Print results and errors only: no progress, no notes.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Use colours and bold text; NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorArg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// On a terminal only.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Applies `--color` to all output. It is searched before the command line is parsed, so that it
/// affects help and parsing errors too.
pub fn follow_color(words: impl IntoIterator<Item = OsString>) {
    match typed_color(words) {
        ColorArg::Auto => ColorChoice::Auto,
        ColorArg::Always => ColorChoice::Always,
        ColorArg::Never => ColorChoice::Never,
    }
    .write_global();
}

/// Returns the last valid value of `--color`. Invalid values are refused later.
fn typed_color(words: impl IntoIterator<Item = OsString>) -> ColorArg {
    let mut found = ColorArg::Auto;
    let mut words = words.into_iter().map_while(|word| {
        let word = word.into_string().unwrap_or_default();
        (word != "--").then_some(word)
    });
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        if let Some(value) = value.and_then(|value| ColorArg::from_str(&value, false).ok()) {
            found = value;
        }
    }
    found
}

/// Prints a shell's completion script.
fn completions(shell: Shell, mut command: Clap) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "stablebench", &mut script);
    print_bytes(&script)
}

/// Prints the manual page, or saves the pages of all commands in a folder.
fn man(folder: Option<&Path>, command: Clap) -> Result<()> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return print_bytes(&page);
    };
    let saved = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command, folder)
    };
    saved().with_context(|| format!("cannot save manual pages in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_is_found_at_any_position() {
        let typed = |words: &[&str]| typed_color(words.iter().map(OsString::from));
        assert_eq!(typed(&["stablebench", "run", "users"]), ColorArg::Auto);
        assert_eq!(typed(&["stablebench", "--color=never", "run"]), ColorArg::Never);
        assert_eq!(typed(&["stablebench", "run", "--color", "always"]), ColorArg::Always);
        assert_eq!(typed(&["stablebench", "--", "--color=always"]), ColorArg::Auto);
        assert_eq!(typed(&["stablebench", "--color=green"]), ColorArg::Auto);
        assert_eq!(typed(&["stablebench", "--colour=never"]), ColorArg::Auto);
    }
}
