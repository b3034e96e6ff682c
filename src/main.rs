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
mod canbench;
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
mod saving;
mod suites;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::follow_color(std::env::args_os());
    let cli = cli::Cli::understand(std::env::args_os()).unwrap_or_else(|error| error.exit());
    match commands::execute(cli) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let bold = anstyle::AnsiColor::Red.on_default().bold();
            // Canisters, networks and files say a part of it.
            let error = format!("{error:#}");
            anstream::eprintln!("{bold}stablebench:{bold:#} {}", terminal::safe(&error));
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
