//! What the other sides of a run may cost at most against the base.

use std::process::ExitCode;

use anyhow::Result;

use super::Output;
use super::run::print;
use crate::cli::{Format, SysbenchArgs};
use crate::compare::{Gates, compare};
use crate::report::comparison;
use crate::report::style::Style;
use crate::results::Results;

/// Names what is above a ceiling; exit code 1 if anything is. Without ceilings, nothing.
///
/// What is printed for a program to read is left alone: then it goes to stderr.
pub fn ceilings(args: &SysbenchArgs, results: &Results, output: &Output) -> Result<ExitCode> {
    let SysbenchArgs { max_ratio, max_average, .. } = *args;
    if max_ratio.is_none() && max_average.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let base = args.base.key();
    let gates = Gates { threshold: None, max_ratio, max_average };
    let mut code = ExitCode::SUCCESS;
    for other in &args.other {
        let found = compare(results, results, Some((&base, &other.key())), gates)?;
        match args.run.format {
            Format::Table => {
                let style = Style::of(output.terminal);
                print(&format!("\n{}", comparison::verdict(&found, style)))?;
            }
            Format::Markdown => {
                print(&format!("\n{}", comparison::verdict(&found, Style::MARKDOWN)))?;
            }
            Format::Csv | Format::Json => {
                eprint!("{}", comparison::verdict(&found, Style::default()));
            }
        }
        if !found.failures.is_empty() {
            code = ExitCode::from(1);
        }
    }
    Ok(code)
}
