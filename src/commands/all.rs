//! `stablebench run all`: every suite with its defaults.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{ArgMatches, FromArgMatches};

use super::run::{Planned, RunArgs, execute, with_run_options};
use crate::interrupt::Interrupted;
use crate::progress::Output;
use crate::suites::SUITES;

/// The default folder of the results.
const FOLDER: &str = "stablebench-results";

/// Runs one suite after the other. If one fails, the others still run; an interruption ends all.
pub fn run_all(matches: &ArgMatches, output: &Output) -> Result<ExitCode> {
    let run = RunArgs::from_arg_matches(matches)?;
    let folder = run.output.out.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
    let mut worst = ExitCode::SUCCESS;
    let mut failed = Vec::new();
    for suite in SUITES.iter().copied().filter(|suite| suite.in_all()) {
        let name = suite.name();
        output.progress.note(&format!("run {name}"));
        let defaults = with_run_options(suite.arguments(clap::Command::new(name)));
        let defaults = defaults.try_get_matches_from([name])?;
        let out = Some(folder.join(name).with_extension("json"));
        let mut run = run.clone();
        run.output.out = out;
        let ran = Planned::new(suite, &defaults, run, matches)
            .and_then(|planned| execute(&planned, output));
        match ran {
            Ok(code) if code == ExitCode::SUCCESS => {}
            Ok(code) => worst = code,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    if !failed.is_empty() {
        bail!("{} suites failed:\n{}", failed.len(), failed.join("\n"));
    }
    Ok(worst)
}
