//! `stablebench compare`: two result files, or two columns.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use super::Output;
use super::report::read;
use crate::cli::CompareArgs;
use crate::compare::{Columns, Gates, compare};
use crate::report::{comparison, printable};

/// Prints ratios and what is too much; exit code 1 if anything is.
pub fn run(args: &CompareArgs, output: &Output) -> Result<ExitCode> {
    let read = |path: &Path| printable(&read(path)?);
    let base = read(&args.base)?;
    let new = args.new.as_deref().map(read).transpose()?;
    let new = new.as_ref().unwrap_or(&base);
    let found = compare(&base, new, columns(args), gates(args))?;
    let mut out = std::io::stdout().lock();
    out.write_all(comparison::render(&found, args.format, output.terminal)?.as_bytes())?;
    out.flush()?;
    Ok(if found.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn columns(args: &CompareArgs) -> Columns<'_> {
    match args.columns.as_deref() {
        Some([base, new]) => Some((base, new)),
        _ => None,
    }
}

/// Who names no ceiling and no columns wants two runs that are the same.
fn gates(args: &CompareArgs) -> Gates {
    let CompareArgs { threshold, max_ratio, max_average, .. } = *args;
    let none = max_ratio.is_none() && max_average.is_none() && args.columns.is_none();
    Gates { threshold: threshold.or(none.then_some(0.0)), max_ratio, max_average }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn typed(arguments: &[&str]) -> Result<Gates, String> {
        let all = [&["stablebench", "compare", "base.json"], arguments].concat();
        match Cli::try_parse_from(all).map_err(|error| error.to_string())?.command {
            Some(Command::Compare(args)) => Ok(gates(&args)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_threshold_of_zero_is_for_who_names_nothing_else() {
        let threshold = |arguments: &[&str]| typed(arguments).unwrap().threshold;
        assert_eq!(threshold(&["new.json"]), Some(0.0));
        assert_eq!(threshold(&["new.json", "--threshold=2%"]), Some(2.0));
        assert_eq!(threshold(&["new.json", "--max-ratio=1.05"]), None);
        assert_eq!(threshold(&["new.json", "--max-average=1.05"]), None);
        assert_eq!(threshold(&["new.json", "--max-ratio=1.05", "--threshold=0.5"]), Some(0.5));
        assert_eq!(threshold(&["--columns", "btree", "sqlite/wal"]), None);
        assert_eq!(threshold(&["--columns", "btree", "sqlite/wal", "new.json"]), None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for arguments in [
            &[][..],
            &["--columns", "btree"],
            &["--columns", "btree", "sqlite/wal", "--threshold=1%"],
            &["new.json", "--threshold=-1%"],
            &["new.json", "--max-ratio=0"],
            &["new.json", "--max-average=much"],
        ] {
            assert!(typed(arguments).is_err(), "{arguments:?}");
        }
    }
}
