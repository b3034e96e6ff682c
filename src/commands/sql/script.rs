//! `stablebench sql --script …`: the suite sql, `stablebench run sql`, with the same options.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use stablebench_suite::Suite;
use stablebench_suite_sql::script::SqlSuite;

use super::SqlArgs;
use super::tune::{Choice, tune};
use crate::commands::run::{Planned, execute, with_run_options};
use crate::progress::Output;

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
        return super::sql(&command.args, output);
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
        let replica = crate::commands::sql::replica();
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
