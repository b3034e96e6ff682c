//! `stablebench compare`: two results files, or two configurations.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use super::percent;
use super::report::read;
use crate::compare::{self, Configurations, Gates, ceiling};
use crate::progress::Output;
use crate::report::{Format, comparison, printable};

#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The base: a file with results, or published:users for published figures.
    pub base: PathBuf,
    /// The new results: a file, or published figures. Default with --configurations: the base.
    #[arg(required_unless_present = "configurations")]
    pub new: Option<PathBuf>,
    /// Compare configuration A of the base with configuration B of the new results, case by case:
    /// only ratios and ceilings, because other values of two engines differ.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "threshold")]
    pub configurations: Option<Vec<String>>,
    /// Maximum ratio of a case, such as 1.05.
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_ratio: Option<f64>,
    /// Maximum arithmetic average of a section's ratios.
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_average: Option<f64>,
    /// Maximum difference of any value from the base's, up or down: counters, pages, charges,
    /// cycles. Digests must be equal. [default: 0%, or none with --max-ratio, --max-average or
    /// --configurations]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// The format of the comparison.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// Prints ratios and failures. The exit code is 1 if there are failures.
pub fn compare(args: &CompareArgs, output: &Output) -> Result<ExitCode> {
    let step = output.progress.spinner("reading and comparing results");
    let read = |path: &Path| printable(&read(path)?);
    let base = read(&args.base)?;
    let new = args.new.as_deref().map(read).transpose()?;
    let new = new.as_ref().unwrap_or(&base);
    let found = compare::compare(&base, new, configurations(args), gates(args))?;
    step.done("");
    let mut out = std::io::stdout().lock();
    out.write_all(comparison::render(&found, args.format, output.terminal)?.as_bytes())?;
    out.flush()?;
    Ok(if found.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn configurations(args: &CompareArgs) -> Configurations<'_> {
    match args.configurations.as_deref() {
        Some([base, new]) => Some((base, new)),
        _ => None,
    }
}

/// Without ceilings and configurations, the runs must be equal.
fn gates(args: &CompareArgs) -> Gates {
    let CompareArgs { threshold, max_ratio, max_average, .. } = *args;
    let none = max_ratio.is_none() && max_average.is_none() && args.configurations.is_none();
    Gates { threshold: threshold.or(none.then_some(0.0)), max_ratio, max_average }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Parsed {
        #[command(flatten)]
        args: CompareArgs,
    }

    fn typed(arguments: &[&str]) -> Result<Gates, String> {
        let all = [&["compare", "base.json"], arguments].concat();
        Parsed::try_parse_from(all)
            .map(|parsed| gates(&parsed.args))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn without_other_gates_the_threshold_is_zero() {
        let threshold = |arguments: &[&str]| typed(arguments).unwrap().threshold;
        assert_eq!(threshold(&["new.json"]), Some(0.0));
        assert_eq!(threshold(&["new.json", "--threshold=2%"]), Some(2.0));
        assert_eq!(threshold(&["new.json", "--max-ratio=1.05"]), None);
        assert_eq!(threshold(&["new.json", "--max-average=1.05"]), None);
        assert_eq!(threshold(&["new.json", "--max-ratio=1.05", "--threshold=0.5"]), Some(0.5));
        assert_eq!(threshold(&["--configurations", "btree", "sqlite/wal"]), None);
        assert_eq!(threshold(&["--configurations", "btree", "sqlite/wal", "new.json"]), None);
    }

    #[test]
    fn invalid_arguments_are_refused() {
        for arguments in [
            &[][..],
            &["--configurations", "btree"],
            &["--configurations", "btree", "sqlite/wal", "--threshold=1%"],
            &["new.json", "--threshold=-1%"],
            &["new.json", "--max-ratio=0"],
            &["new.json", "--max-average=much"],
        ] {
            assert!(typed(arguments).is_err(), "{arguments:?}");
        }
    }
}
