//! `conformance`: runs, records, verifies and generates cases. See `--help`.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use stablebench_conformance::{
    Case, Embedded, Error, Outcome, Target, generate, hold, import, write,
};
use stablebench_replica::text::safe;

mod cli;
mod server;

use cli::{Arguments, Check, Command, Generate, What};

/// Something could not be done: nothing is known about differences.
type Unable = stablebench_conformance::Failure;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Check(command) => check(&command),
        Command::Record(command) => server::record(&command).map(|()| true),
        Command::Verify(command) => server::verify(&command),
        Command::Generate(command) => make(&command).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Where stderr is closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "conformance: {}", safe(&error.to_string()));
            ExitCode::from(2)
        }
    }
}

fn check(command: &Check) -> Result<bool, Unable> {
    let mut replica = Embedded::new(command.rules)?;
    compare(&mut replica, &command.files, |_| {})
}

/// Holds files against a target and tells what differs; whether nothing does. What was
/// found is told even if the target fails at some point.
fn compare(
    target: &mut dyn Target,
    files: &[PathBuf],
    mut begin: impl FnMut(&Case),
) -> Result<bool, Unable> {
    let mut outcome = Outcome::default();
    let held: Result<(), Error> =
        files.iter().try_for_each(|file| hold(target, file, &mut outcome, &mut begin));
    let mut text = String::new();
    for difference in &outcome.differences {
        text += &format!("{}\n", safe(&difference.to_string()));
    }
    if held.is_ok() {
        text += &format!("{} passed, {} failed\n", outcome.passed, outcome.differences.len());
    }
    match io::stdout().write_all(text.as_bytes()) {
        // Who closed the pipe has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    held?;
    Ok(outcome.differences.is_empty())
}

fn make(command: &Generate) -> Result<(), Unable> {
    let Generate { what, seed, count, wasm, out } = command;
    let count = |default| count.unwrap_or(default);
    let cases = match (what, wasm) {
        (What::Modules, None) => generate::modules::cases(*seed, count(1)),
        (What::Random, None) => generate::random::cases(*seed, count(100)),
        (What::Canister, Some(wasm)) => {
            generate::canister::cases(*seed, count(10), &import::relative(wasm, out)?)?
        }
        (What::Modules | What::Random, Some(_)) => {
            return Err("--wasm is for canister alone: modules and random make their own".into());
        }
        // clap has asked for it.
        (What::Canister, None) => return Err("canister needs --wasm FILE".into()),
    };
    write(out, &cases)?;
    let calls: usize = cases.iter().map(|case| case.calls.len()).sum();
    let _ = writeln!(io::stderr(), "{}: {} cases, {calls} calls", out.display(), cases.len());
    Ok(())
}
