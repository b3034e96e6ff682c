//! What the commands do.

mod all;
mod cache;
mod call;
mod ceilings;
mod compare;
mod profile;
mod replica;
mod report;
mod run;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use crate::canisters::{self, Source};
use crate::cli::{Cli, Command, Suite};
use crate::progress::Progress;
use crate::suites::SUITES;

/// Executes what was typed. A failure is an error; a code that is not 0 says that a
/// threshold was exceeded.
pub fn execute(cli: Cli) -> Result<ExitCode> {
    let done = |done: Result<()>| done.map(|()| ExitCode::SUCCESS);
    match cli.command {
        None | Some(Command::Run { suite: None }) => run::suite(&Suite::Users(Box::new(cli.users))),
        Some(Command::Run { suite: Some(suite) }) => run::suite(&suite),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Report(args)) => done(report::run(&args)),
        Some(Command::List) => {
            let mut out = std::io::stdout().lock();
            for (name, question) in SUITES {
                writeln!(out, "{name:<9} {question}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Profile(args)) => done(profile::run(&args)),
        Some(Command::Call(call)) => done(call::call(&call)),
        Some(Command::Build(build)) => {
            let source = Source::named(&build.canister).unwrap_or(canisters::BENCH);
            let built = canisters::build(source, &Progress::new())?;
            let path = built.path.strip_prefix(canisters::root()).unwrap_or(&built.path);
            writeln!(std::io::stdout(), "{}", path.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Cache(args)) => done(cache::cache(&args)),
    }
}
