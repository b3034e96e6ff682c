//! `stablebench compare`: two result files.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use crate::cli::CompareArgs;
use crate::compare::compare;
use crate::report::comparison;
use crate::results::Results;

/// Lists what differs; exit code 1 if anything does.
pub fn run(args: &CompareArgs) -> Result<ExitCode> {
    let (base, new) = (Results::read(&args.base)?, Results::read(&args.new)?);
    let found = compare(&base, &new, args.threshold)?;
    let mut out = std::io::stdout().lock();
    out.write_all(comparison::render(&found, args.threshold).as_bytes())?;
    out.flush()?;
    Ok(if found.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
