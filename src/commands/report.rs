//! `stablebench report`: saved results, printed once more.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::Output;
use crate::cli::{Format, ReportArgs, ReportFormat};
use crate::report;
use crate::report::style::Style;
use crate::results::{Results, save_text};
use crate::suites::published;
use crate::terminal::Terminal;

/// Prints or saves them one after the other, or as one page.
pub fn run(args: &ReportArgs, output: &Output) -> Result<()> {
    // A file is not a terminal.
    let terminal = if args.out.is_some() { Terminal::default() } else { output.terminal };
    let format = format(args);
    if args.open_rule.is_some() && !matches!(format, ReportFormat::Table | ReportFormat::Markdown) {
        bail!("--open-rule adds a table; it needs --format table or markdown");
    }
    let text = match format {
        ReportFormat::Table => texts(args, Format::Table, terminal),
        ReportFormat::Markdown => texts(args, Format::Markdown, terminal),
        ReportFormat::Csv => texts(args, Format::Csv, terminal),
        ReportFormat::Json => texts(args, Format::Json, terminal),
        ReportFormat::Html => page(args),
    }?;
    match &args.out {
        Some(path) => save_text(path, &text),
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            Ok(out.flush()?)
        }
    }
}

/// The format that was asked for, else that of the file's name.
fn format(args: &ReportArgs) -> ReportFormat {
    let extension = args.out.as_deref().and_then(Path::extension);
    let is_page = |extension: &OsStr| {
        extension.eq_ignore_ascii_case("html") || extension.eq_ignore_ascii_case("htm")
    };
    args.format.unwrap_or(match extension {
        Some(extension) if is_page(extension) => ReportFormat::Html,
        _ => ReportFormat::Table,
    })
}

fn texts(args: &ReportArgs, format: Format, terminal: Terminal) -> Result<String> {
    let style = match format {
        Format::Markdown => Style::MARKDOWN,
        _ => Style::of(terminal),
    };
    let mut texts = args
        .files
        .iter()
        .map(|file| {
            let results = read(file)?.only(&args.sections)?;
            report::render(&results, format, terminal)
                .with_context(|| format!("cannot print {}", file.display()))
        })
        .collect::<Result<Vec<String>>>()?;
    if let Some(path) = &args.open_rule {
        texts.push(report::open_rule(path, &args.sections, style)?);
    }
    Ok(texts.join("\n"))
}

fn page(args: &ReportArgs) -> Result<String> {
    let named = args.files.iter().map(|file| {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        Ok((name, read(file)?.only(&args.sections)?))
    });
    report::page(&named.collect::<Result<Vec<_>>>()?)
}

/// The results of a file, or published figures where `published:` says so.
pub fn read(path: &Path) -> Result<Results> {
    match path.to_str().and_then(|text| text.strip_prefix("published:")) {
        Some(name) => published::get(name),
        None => Results::read(path),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn chosen(options: &[&str]) -> ReportFormat {
        let words = ["stablebench", "report", "results.json"].iter().chain(options);
        match Cli::parse_from(words).command {
            Some(Command::Report(args)) => format(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_files_name_tells_the_format_where_nothing_else_does() {
        assert_eq!(chosen(&[]), ReportFormat::Table);
        assert_eq!(chosen(&["--out", "tables.md"]), ReportFormat::Table);
        for name in ["report.html", "report.HTM"] {
            assert_eq!(chosen(&["--out", name]), ReportFormat::Html);
        }
        assert_eq!(chosen(&["--out", "report.html", "--format", "csv"]), ReportFormat::Csv);
        assert_eq!(chosen(&["--format", "html"]), ReportFormat::Html);
    }
}
