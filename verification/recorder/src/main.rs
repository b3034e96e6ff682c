//! The program `recorder`, which generates and records cases, and verifies servers. See `--help`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use stablebench_replica::text::note;

mod cli;
mod commands;

use cli::{Arguments, Command};

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Record(command) => commands::record(&command).map(|()| true),
        Command::Verify(command) => commands::verify(&command),
        Command::Generate(command) => commands::make(&command).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            note(&format!("recorder: {error}"));
            ExitCode::from(2)
        }
    }
}
