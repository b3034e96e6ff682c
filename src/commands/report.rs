//! `stablebench report`: saved results, printed once more.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::Output;
use crate::cli::ReportArgs;
use crate::report;
use crate::results::{Results, save_text};
use crate::suites::published;
use crate::terminal::Terminal;

/// Prints or saves them one after the other.
pub fn run(args: &ReportArgs, output: &Output) -> Result<()> {
    // A file is not a terminal.
    let terminal = if args.out.is_some() { Terminal::default() } else { output.terminal };
    let texts = args
        .files
        .iter()
        .map(|file| {
            let results = read(file)?.only(&args.sections)?;
            report::render(&results, args.format, terminal)
                .with_context(|| format!("cannot print {}", file.display()))
        })
        .collect::<Result<Vec<String>>>()?;
    let text = texts.join("\n");
    match &args.out {
        Some(path) => save_text(path, &text),
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            Ok(out.flush()?)
        }
    }
}

/// The results of a file, or published figures where `published:` says so.
pub fn read(path: &Path) -> Result<Results> {
    match path.to_str().and_then(|text| text.strip_prefix("published:")) {
        Some(name) => published::get(name),
        None => Results::read(path),
    }
}
