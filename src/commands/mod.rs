//! What the commands do.

mod all;
mod build;
mod cache;
mod call;
mod canbench;
mod ceilings;
mod compare;
mod environment;
mod profile;
mod readme;
mod replica;
mod report;
mod revision;
mod run;
mod serve;
mod shell;
mod spending;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{Cli, Command, Suite};
use crate::progress::Progress;
use crate::suites::SUITES;
use crate::terminal::Terminal;

/// Where output goes.
#[derive(Clone, Debug)]
pub struct Output {
    pub progress: Progress,
    pub terminal: Terminal,
}

/// A word of a command line, quoted for a shell if it has to be.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_=./,:%+@".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Executes what was typed. A failure is an error; a code that is not 0 says that a
/// threshold was exceeded.
pub fn execute(cli: Cli) -> Result<ExitCode> {
    let done = |done: Result<()>| done.map(|()| ExitCode::SUCCESS);
    let output = Output { progress: Progress::new(cli.output.quiet), terminal: Terminal::stdout() };
    match cli.command {
        None | Some(Command::Run { suite: None }) => {
            run::suite(&Suite::Users(Box::new(cli.users)), &output)
        }
        Some(Command::Run { suite: Some(suite) }) => run::suite(&suite, &output),
        Some(Command::Compare(args)) => compare::run(&args, &output),
        Some(Command::Report(args)) => done(report::run(&args, &output)),
        Some(Command::List) => {
            let mut out = std::io::stdout().lock();
            for (name, question) in SUITES {
                writeln!(out, "{name:<9} {question}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Profile(args)) => done(profile::run(&args, &output)),
        Some(Command::Canbench(args)) => canbench::canbench(&args, &output),
        Some(Command::Call(call)) => done(call::call(&call, &output)),
        Some(Command::Serve(args)) => done(serve::serve(&args, &output)),
        Some(Command::Build(args)) => done(build::build(&args, &output)),
        Some(Command::Cache(args)) => done(cache::cache(&args)),
        Some(Command::Completions { shell }) => done(shell::completions(shell)),
        Some(Command::Readme { check }) => done(readme::readme(check)),
        Some(Command::Man { out }) => done(shell::man(out.as_deref())),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_a_shell_where_they_have_to_be() {
        for plain in ["insert", "--rules=2025-10,2026-08", "users/insert/end-1/sqlite/wal"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(["", "a b", "$x;y"].map(quoted), ["''", "'a b'", "'$x;y'"]);
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
