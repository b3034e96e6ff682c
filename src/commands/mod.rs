//! What the commands do.

mod call;
mod run;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use crate::canisters::{self, Source};
use crate::cli::{Cli, Command, ReplicaArgs, Suite};
use crate::progress::Progress;
use crate::replica::embedded::Embedded;
use crate::suites::SUITES;

/// Executes what was typed.
pub fn execute(cli: Cli) -> Result<()> {
    match cli.command {
        None => run::users(&cli.users),
        Some(Command::Run { suite: None }) => run::users(&cli.users),
        Some(Command::Run { suite: Some(Suite::Users(users)) }) => run::users(&users),
        Some(Command::List) => {
            let mut out = std::io::stdout().lock();
            for (name, question) in SUITES {
                writeln!(out, "{name:<8} {question}")?;
            }
            Ok(())
        }
        Some(Command::Call(call)) => call::call(&call),
        Some(Command::Build(build)) => {
            let source = Source::named(&build.canister).unwrap_or(canisters::BENCH);
            let built = canisters::build(source, &Progress::new())?;
            let path = built.path.strip_prefix(canisters::root()).unwrap_or(&built.path);
            writeln!(std::io::stdout(), "{}", path.display())?;
            Ok(())
        }
    }
}

/// The embedded replica, with a cache where that was not forbidden.
fn embedded(args: &ReplicaArgs) -> Result<Embedded> {
    let cache = (!args.no_cache).then(|| args.cache_dir.clone().or_else(default_cache)).flatten();
    Embedded::new(cache)
}

fn default_cache() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("stablebench"))
}
