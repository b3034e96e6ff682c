//! `stablebench report`: rendering of saved results.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::progress::{Output, Progress};
use crate::report::{self, Format};
use crate::results::{Results, save_text};
use crate::suites::{presentation, published};
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Saved results, or published:users for published figures.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these sections.
    #[arg(long, value_delimiter = ',', value_name = "SECTION")]
    pub sections: Vec<String>,
    /// The format [default: that of the ending of --out, else table].
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    /// Save the report to this file: a page (.html, .htm), tables (.txt, .md), .csv, or .json.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    Table,
    Markdown,
    Csv,
    Json,
    /// A page of all files: charts, tables, the cheapest engine.
    Html,
}

/// Prints or saves reports one after the other, or as one page.
pub fn report(args: &ReportArgs, output: &Output) -> Result<()> {
    // A file is not a terminal.
    let terminal = if args.out.is_some() { Terminal::default() } else { output.terminal };
    let format = format(args)?;
    let step = output.progress.spinner("reading and reporting results");
    let text = match format {
        ReportFormat::Table => texts(args, Format::Table, terminal),
        ReportFormat::Markdown => texts(args, Format::Markdown, terminal),
        ReportFormat::Csv => texts(args, Format::Csv, terminal),
        ReportFormat::Json => texts(args, Format::Json, terminal),
        ReportFormat::Html => page(args, &output.progress),
    }?;
    step.done("");
    match &args.out {
        Some(path) => save_text(path, &text),
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            Ok(out.flush()?)
        }
    }
}

/// The endings of files, and their formats.
const ENDINGS: [(&str, ReportFormat); 6] = [
    ("html", ReportFormat::Html),
    ("htm", ReportFormat::Html),
    ("md", ReportFormat::Markdown),
    ("txt", ReportFormat::Table),
    ("csv", ReportFormat::Csv),
    ("json", ReportFormat::Json),
];

/// Returns the requested format, or the one for the ending of the file.
///
/// # Errors
///
/// If it is no file, or the ending is that of another format.
fn format(args: &ReportArgs) -> Result<ReportFormat> {
    ensure!(
        args.out.as_deref() != Some(Path::new("-")),
        "--out is a file; without it, the report goes to standard output"
    );
    let ending = args.out.as_deref().and_then(Path::extension);
    let (None, Some(ending)) = (args.format, ending) else {
        return Ok(args.format.unwrap_or(ReportFormat::Table));
    };
    let known = ENDINGS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
    known.map(|(_, format)| *format).with_context(|| {
        let known = ENDINGS.map(|(known, _)| format!(".{known}")).join(", ");
        format!(
            "a report cannot be written as .{}; the endings are {known}, or choose a --format",
            ending.display()
        )
    })
}

fn texts(args: &ReportArgs, format: Format, terminal: Terminal) -> Result<String> {
    let texts = args
        .files
        .iter()
        .map(|file| {
            let results = read(file)?.only(&args.sections)?;
            report::render(presentation(&results), &results, format, terminal)
                .with_context(|| format!("cannot print {}", file.display()))
        })
        .collect::<Result<Vec<String>>>()?;
    Ok(texts.join("\n"))
}

fn page(args: &ReportArgs, progress: &Progress) -> Result<String> {
    let named = args.files.iter().map(|file| {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let results = read(file)?.only(&args.sections)?;
        if let Some(incomplete) = report::incomplete(&results) {
            progress.note(&format!("{name}: {incomplete}"));
        }
        Ok((name, presentation(&results), results))
    });
    report::page(&named.collect::<Result<Vec<_>>>()?)
}

/// Returns the results of a file, or published figures for `published:NAME`.
pub fn read(path: &Path) -> Result<Results> {
    match path.to_str().and_then(|text| text.strip_prefix("published:")) {
        Some(name) => published(name),
        None => Results::read(path),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Parsed {
        #[command(flatten)]
        args: ReportArgs,
    }

    fn chosen(options: &[&str]) -> ReportFormat {
        tried(options).unwrap()
    }

    fn tried(options: &[&str]) -> Result<ReportFormat> {
        let words = ["report", "results.json"].iter().chain(options);
        format(&Parsed::parse_from(words).args)
    }

    #[test]
    fn the_default_format_depends_on_the_name_of_the_file() {
        assert_eq!(chosen(&[]), ReportFormat::Table);
        for (name, format) in [
            ("tables.md", ReportFormat::Markdown),
            ("tables.txt", ReportFormat::Table),
            ("cases.CSV", ReportFormat::Csv),
            ("copy.json", ReportFormat::Json),
            ("/dev/stdout", ReportFormat::Table),
        ] {
            assert_eq!(chosen(&["--out", name]), format, "{name}");
        }
        for name in ["report.html", "report.HTM"] {
            assert_eq!(chosen(&["--out", name]), ReportFormat::Html);
        }
        assert_eq!(chosen(&["--out", "report.html", "--format", "csv"]), ReportFormat::Csv);
        assert_eq!(chosen(&["--format", "html"]), ReportFormat::Html);
        assert_eq!(chosen(&["--out", "x.pdf", "--format", "table"]), ReportFormat::Table);
        let error = tried(&["--out", "-"]).unwrap_err().to_string();
        assert_eq!(error, "--out is a file; without it, the report goes to standard output");
        let error = tried(&["--out", "x.pdf"]).unwrap_err().to_string();
        assert!(error.contains(".pdf; the endings are .html, .htm, .md"), "{error}");
    }
}
