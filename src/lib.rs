//! Measures the cost of storing and reading data in a canister of the Internet Computer.
//!
//! This is the library behind the program `stablebench`; the program is its interface.
//!
//! ```text
//!   cli → commands → runner → suites
//!            │          └───→ cache → replica
//!            └──→ profile, canbench, builds → canisters
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read and decode what they have written")
)]
#![cfg_attr(
    not(all(feature = "network", feature = "readme")),
    allow(dead_code, reason = "only networks and the rendering of README.md need some of it")
)]

mod builds;
mod cache;
mod canbench;
mod canisters;
mod cli;
mod commands;
mod interrupt;
mod profile;
mod progress;
#[cfg(feature = "readme")]
pub mod readme;
mod replica;
mod runner;
mod suites;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

#[cfg(feature = "readme")]
use stablebench_suite::engines;
use stablebench_suite::{compare, report, results, saving, terminal};

/// Runs the tool with a command line, whose first word is the name of the program. Errors are
/// printed.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words = commands::as_pocket_ic(words.into_iter().collect());
    cli::follow_color(words.iter().cloned());
    let cli = match cli::Cli::understand(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and the version are errors to clap, with exit code 0.
            let _ = error.print();
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    match cli.execute() {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let bold = anstyle::AnsiColor::Red.on_default().bold();
            // The message may contain text from canisters, networks and files.
            let error = format!("{error:#}");
            let error = terminal::safe(&error);
            // The exit code is the same if nobody can read the message.
            let _ = writeln!(anstream::stderr(), "{bold}stablebench:{bold:#} {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns `true` if the reader of the output has closed it.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
