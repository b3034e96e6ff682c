//! The program `conformance`, which runs, records, verifies and generates cases. See `--help`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use stablebench_replica::text::note;

mod cli;
mod commands;

use cli::{Arguments, Command};

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Check(command) => commands::check(&command),
        Command::Record(command) => commands::record(&command).map(|()| true),
        Command::Verify(command) => commands::verify(&command),
        Command::Generate(command) => commands::make(&command).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            note(&format!("conformance: {error}"));
            ExitCode::from(2)
        }
    }
}
