//! Command-line definitions: the list of subcommands, and the options of the tool as a whole; shell
//! completions and manual pages are made of them. Each command owns its options, and each suite its own.
//! Examples are at the end of `--help`. A test parses every line of them that begins with `stablebench`.

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
#[command(version, max_term_width = 100, after_help = TOOL_EXAMPLES)]
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
        RUN_EXAMPLES
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
    #[command(after_help = RUN_EXAMPLES)]
    Run {
        #[command(subcommand)]
        suite: Option<SuiteCommand>,
    },
    /// List the suites.
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Compare two runs, or two configurations: ratios of instructions, ceilings, every value.
    ///
    /// Prints new / base of the instructions of each case that both have, and the means of each
    /// section and of all; for capacities, base / new: more than 1 is always worse.
    ///
    /// The exit code is 1 if a ceiling or the threshold is exceeded, or if a case or fixture of the
    /// base is missing from the new results, failed there, or is no longer applicable there.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Join the shards of a run.
    ///
    /// Saves and prints what one run without --shard would have saved and printed, except for wall
    /// times. Shards of different runs, and incomplete ones, are refused.
    #[command(after_help = MERGE_EXAMPLES)]
    Merge(MergeArgs),
    /// Print saved results as tables, CSV, JSON or an HTML page.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Show the functions in which a case spends its instructions.
    ///
    /// The case is measured as its suite does it, on the embedded replica, and executed once more
    /// with a counter for each function. Their sum is exactly the measured number.
    #[command(after_help = PROFILE_EXAMPLES)]
    Profile(Box<ProfileArgs>),
    /// Run the benchmarks of a canbench project, without a server.
    ///
    /// Reads canbench.yml, as canbench 0.7 does, builds the canister and runs its benchmarks on the
    /// embedded replica. Prints and writes what canbench does, so that scripts keep working.
    #[command(after_help = CANBENCH_EXAMPLES)]
    Canbench(Box<CanbenchArgs>),
    /// Execute SQL in a canister and show what each statement costs.
    #[command(after_help = SQL_EXAMPLES)]
    Sql(Box<SqlCommand>),
    /// Call a method of a canister on the embedded replica.
    #[command(after_help = CALL_EXAMPLES)]
    Call(CallArgs),
    /// Serve canisters on this machine to the Internet Computer's ordinary clients.
    ///
    /// The HTTP interface of the Internet Computer over the embedded replica: dfx, icp and agents
    /// in any language call the canisters and get exact counts, and browsers see the answers of
    /// http_request at http://ID.localhost:PORT. Prints the URL, the canisters' ids, first commands, and
    /// the root key.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Serve the tests of canisters as a PocketIC server does.
    ///
    /// The REST interface of PocketIC over the embedded replica: tests that use the crate pocket-ic, or
    /// @dfinity/pic, run without downloading a server. Set POCKET_IC_BIN to this program, or to a link
    /// to it whose name begins with pocket-ic; clients start and stop it.
    #[command(after_help = POCKET_IC_EXAMPLES)]
    PocketIc(PocketIcArgs),
    /// Write the module of a canister to files, ready to be deployed.
    ///
    /// Prints hash and path of two files, as `sha256sum` does: the module in gzip, which is deployed,
    /// and the plain module, which runs measure. The first hash is the `module_hash` that the Internet
    /// Computer shows. The program contains the modules; `cargo xtask modules` builds them in a checkout.
    #[command(after_help = MODULE_EXAMPLES)]
    Module(ModuleArgs),
    /// Build a crate with many options, and compare what its calls cost
    ///
    /// Builds the crate of a canister with cargo, installs each module in a new canister on the embedded
    /// replica, and makes the same calls in all of them. The replies must be the same. Prints a
    /// row for each build, and a profile to copy into Cargo.toml. `run builds` does the same for a canister
    /// of stablebench.
    #[command(after_help = BUILDS_EXAMPLES)]
    Builds(BuildsArgs),
    /// Show or clear the cache of compiled modules and populated canisters.
    ///
    /// Runs on the embedded replica reuse an entry if everything that it depends on is the same: the
    /// module, the configuration, rows and payload, this tool and its replica. Results are the same
    /// with and without the cache. Entries that cannot be used are replaced, with a note.
    #[command(after_help = CACHE_EXAMPLES)]
    Cache(CacheArgs),
    /// Print a completion script for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page.
    #[command(after_help = MAN_EXAMPLES)]
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
            .after_help(ALL_EXAMPLES);
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

/// Examples of the tool.
const TOOL_EXAMPLES: &str = "\
Examples:
  The users suite on 1 000 000 rows, then a page for a browser:
    stablebench
    stablebench report results.json -o report.html
  Two configurations, quickly, as Markdown:
    stablebench --rows 10000 --engines btree,sqlite/wal --format markdown
  All options of a suite:
    stablebench run users --help";

/// Examples of `canbench`.
const CANBENCH_EXAMPLES: &str = "\
Examples:
  All benchmarks of the project in this folder:
    stablebench canbench
  Those with insert in their names, as canbench 0.7 counts:
    stablebench canbench insert --rules 2025-10
  As canbench 0.7 counts, beside today's network:
    stablebench canbench --rules 2025-10,2026-10 --hide-results
  On a pull request: compare with the results of the main branch, as Markdown, with a gate:
    stablebench canbench --compare main.yml --format markdown --fail-on-regression";

/// Examples of `run`.
const RUN_EXAMPLES: &str = "\
Examples:
  All sections of the users suite, each operation by itself too:
    stablebench run users --sections all --per-operation
  The cases, without measuring them:
    stablebench run keys --list
  Resume an interrupted run:
    stablebench run sysbench --resume
  In a canister that is deployed on a local network; --yes and --replica ic for the mainnet:
    stablebench run users --rows 10000 --engines btree,sqlite/wal \
--replica http://127.0.0.1:4943 \
--canister rrkah-fqaaa-aaaaa-aaaaq-cai --identity key.pem";

/// Examples of `run all`.
const ALL_EXAMPLES: &str = "\
Examples:
  Every suite, into a folder:
    stablebench run all --out nightly
  Resume it:
    stablebench run all --out nightly --resume";

/// Examples of `list`.
const LIST_EXAMPLES: &str = "\
Examples:
  The suites and their questions:
    stablebench list
  The cases of a suite, without measuring them:
    stablebench run users --list";

/// Examples of `compare`.
const COMPARE_EXAMPLES: &str = "\
Examples:
  Every value of two runs:
    stablebench compare results.json new.json
  A gate: no case more expensive by 5 %, no section by 2 % on average:
    stablebench compare results.json new.json --max-ratio 1.05 --max-average 1.02
  Two engines of one run:
    stablebench compare results.json --configurations btree sqlite/memory
  The published figures:
    stablebench compare published:users published.json";

/// Examples of `merge`.
const MERGE_EXAMPLES: &str = "\
Examples:
  Two machines, each with a half of the run, and a third that joins them:
    stablebench run users --sections all --shard 1/2 --out part1.json
    stablebench run users --sections all --shard 2/2 --out part2.json
    stablebench merge part1.json part2.json --out results.json
  The cases of the first half:
    stablebench run users --sections all --shard 1/2 --list";

/// Examples of `report`.
const REPORT_EXAMPLES: &str = "\
Examples:
  A page for a browser, of one run or several:
    stablebench report results.json keys.json -o report.html
  One section as Markdown:
    stablebench report results.json --sections insert --format markdown
  Raw values for a spreadsheet:
    stablebench report results.json --format csv --out results.csv
  The published figures:
    stablebench report published:users";

/// Examples of `profile`.
const PROFILE_EXAMPLES: &str = "\
Examples:
  A flame graph of 1 000 rows into SQLite, among 100 000:
    stablebench profile users/insert/middle-1000/sqlite/delete --rows 100000 -o flame.svg
  What WAL changes:
    stablebench profile users/insert/end-1/sqlite/persist --diff users/insert/end-1/sqlite/wal \
-o difference.svg
  The cases:
    stablebench profile --list users/insert
  A call of a canister of your own:
    stablebench profile --wasm my_canister.wasm --call greet '(\"world\")' -o flame.svg
  One that calls another canister:
    stablebench profile --wasm shop.wasm --with bank.wasm --call buy '(1)' -o flame.svg";

/// Examples of `call`.
const SQL_EXAMPLES: &str = "\
Examples:
  A shell, like sqlite3, that prints what each statement costs:
    stablebench sql
  Each statement of two files:
    stablebench sql schema.sql queries.sql
  Queries on data that a schema and a CSV file prepare, unmeasured; with advice on indexes:
    stablebench sql --setup schema.sql queries.sql
  One statement on a database file, with a small page cache:
    stablebench sql --db shop.sqlite --engine sqlite/persist,cache_size=1000 -c 'SELECT count(*) FROM orders'
  Two files on another library:
    stablebench sql --engine sqlite-vfs schema.sql queries.sql
  1 000 transactions of a script in pgbench's language, on two configurations:
    stablebench sql --setup schema.sql --script tx.sql --engines sqlite/persist,sqlite/wal
  pgbench's own, ten in a message:
    stablebench sql --builtin tpcb-like --per-message 10";

const CALL_EXAMPLES: &str = "\
Examples:
  1 000 rows, every 10th id from 0 on, into SQLite:
    stablebench call bench add_users_sqlite '(0, 10, 1000)' --save state
  Read some of them back:
    stablebench call bench read_users '(\"sqlite\", 0, 5, 10)' --state state
  A canister of your own:
    stablebench call my_canister.wasm greet '(\"world\")'
  100 calls and an upgrade, with the cost of each:
    stablebench call my_canister.wasm greet '(\"{i}\")' --repeat 100 --upgrade new.wasm
  One that is installed with arguments, which name another canister:
    stablebench call ledger.wasm symbol --with archive=ledger.wasm \
--init '(record { symbol = \"{archive}\" })' --init-of archive '(record { symbol = \"B\" })'
  With an environment variable and stable memory that was saved elsewhere:
    stablebench call my_canister.wasm greet '(\"world\")' --env LANGUAGE=en \
--stable-memory memory.bin
  Two canisters that call each other, saved and continued:
    stablebench call shop.wasm buy '(1)' --with bank.wasm --save shop.canisters
    stablebench call shop.wasm buy '(1)' --state shop.canisters";

/// Examples of `serve`.
const SERVE_EXAMPLES: &str = "\
Examples:
  The bench canister, for dfx and icp:
    stablebench serve
  Both canisters, at a port that is free:
    stablebench serve bench bench_vfs --port 0
  A canister that keeps its state, with those that clients create:
    stablebench serve bench --state bench.canister
  A canister of your own, with an environment variable:
    stablebench serve my_canister.wasm --env LANGUAGE=en";

/// Examples of `pocket-ic`.
const POCKET_IC_EXAMPLES: &str = "\
Examples:
  The tests of a project with the crate pocket-ic:
    POCKET_IC_BIN=$(command -v stablebench) cargo test
  Clients of version 13, and the rules of autumn 2025:
    STABLEBENCH_POCKET_IC_VERSION=13 STABLEBENCH_RULES=2025-10 cargo test
  The version that clients see:
    stablebench pocket-ic --version
  A server for clients that take a URL:
    stablebench pocket-ic --port 8000";

/// Examples of `module`.
const MODULE_EXAMPLES: &str = "\
Examples:
  The canister with StableBTreeMap and ic-rusqlite:
    stablebench module
  Only the hash that the IC will show for it:
    stablebench module --quiet | head -1
  The one with ic-sqlite-vfs:
    stablebench module bench_vfs";

/// Examples of `builds`.
const BUILDS_EXAMPLES: &str = "\
Examples:
  All options, for the crate in the current folder:
    stablebench builds --call add '(1, \"one\")' --call get '(1)'
  A package of a workspace, in two builds:
    stablebench builds --package backend --call list '()' --build default --build opt-level=z";

/// Examples of `cache`.
const CACHE_EXAMPLES: &str = "\
Examples:
  Its content and size:
    stablebench cache
  Clear it:
    stablebench cache clear";

/// Examples of `completions`.
const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  For bash:
    stablebench completions bash > ~/.local/share/bash-completion/completions/stablebench
  For fish:
    stablebench completions fish > ~/.config/fish/completions/stablebench.fish";

/// Examples of `man`.
const MAN_EXAMPLES: &str = "\
Examples:
  Read it:
    stablebench man | man -l -
  Pages of all commands:
    stablebench man --out ~/.local/share/man/man1";

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

    /// Words as a shell splits them, up to a redirection.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for letter in line.chars() {
            match letter {
                '\'' => quoted = !quoted,
                '>' | '|' if !quoted => break,
                ' ' if !quoted => words.push(String::new()),
                letter => words.last_mut().unwrap().push(letter),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn check(command: &clap::Command) -> usize {
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_else(|| panic!("{} has no examples", command.get_name()));
        // Long ones have several lines, as a shell takes them.
        let help = help.replace("\\\n", " ");
        let examples: Vec<&str> =
            help.lines().map(str::trim).filter(|line| line.starts_with("stablebench")).collect();
        assert!(examples.len() >= 2, "{}", command.get_name());
        for example in &examples {
            let parsed = Cli::understand(words(example).into_iter().map(Into::into));
            // Help is an error to clap.
            if let Some(error) = parsed.err().filter(|error| error.use_stderr()) {
                panic!("{example}\n{error}");
            }
        }
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let shown = shown.filter(|command| command.get_name() != "help");
        examples.len() + shown.filter(|command| !is_inner(command)).map(check).sum::<usize>()
    }

    /// `cache clear`, which the examples of `cache` show.
    fn is_inner(command: &clap::Command) -> bool {
        command.get_name() == "clear"
    }

    #[test]
    fn every_command_has_examples_and_each_parses() {
        assert!(check(&command()) > 30);
    }
}
