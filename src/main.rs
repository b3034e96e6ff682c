//! What storing and reading data costs in a canister of the Internet Computer.
//!
//! ```text
//!   cli → commands → suites → runner → replica
//!                                ├──→ cache
//!                                ├──→ results → compare → report
//!                                └──→ profile
//! ```

#![forbid(unsafe_code)]

mod cache;
mod canisters;
mod cli;
mod commands;
mod compare;
mod interrupt;
mod profile;
mod progress;
mod replica;
mod report;
mod results;
mod runner;
mod suites;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::execute(cli) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stablebench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whoever read the output has seen enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
