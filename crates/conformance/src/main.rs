//! The program `conformance`, which runs recorded cases on the embedded replica. See `--help`.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use stablebench_conformance::{Embedded, Failure, SelectedFile, compared};
use stablebench_replica::Rules;
use stablebench_replica::text::note;

const EXAMPLES: &str = "\
Examples:
  conformance check --group pages crates/conformance/cases/2026-08/canister.json.gz
  conformance check --rules 2025-10 crates/conformance/cases/2025-10/*.json

Exit codes: 0 no differences, 1 differences, 2 failure.";

/// Compares the embedded replica with recorded cases
#[derive(Debug, Parser)]
#[command(name = "conformance", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs recorded cases on the embedded replica and lists differences
    Check(Check),
}

#[derive(Debug, Args)]
struct Check {
    /// The rules of the replica: those under which the cases were recorded
    #[arg(long, value_name = "RULES", default_value_t)]
    rules: Rules,
    /// Only the cases of this group; may be repeated
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Files of recorded cases, plain or gzipped
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn check(command: &Check) -> Result<bool, Failure> {
    let Check { rules, groups, files } = command;
    compared(&mut Embedded::new(*rules)?, &SelectedFile::of(files, groups), |_, _| {})
}

fn main() -> ExitCode {
    let Command::Check(command) = Arguments::parse().command;
    match check(&command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            note(&format!("conformance: {error}"));
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
