//! Commands for saved results: `stablebench report` renders them, `stablebench compare` compares two
//! files or two configurations, and `stablebench merge` makes a run's results of those of its shards.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error, Result, bail, ensure};
use stablebench_suite::plan::{Fixture, Plan, Shard};

use super::canbench::percent;
use super::run::{Planned, agree_on_rows, failures, out_of, save_page, show};
use crate::canisters;
use crate::compare::{self, Configurations, Gates, ceiling};
use crate::progress::{Output, Progress};
use crate::report::{self, Format, comparison, printable};
use crate::results::{CanisterInfo, Case, FixtureInfo, Input, Results, RunFile, save_text};
use crate::suites::{presentation, published, suite};
use crate::terminal::{Terminal, split};

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
fn read(path: &Path) -> Result<Results> {
    match path.to_str().and_then(|text| text.strip_prefix("published:")) {
        Some(name) => published(name),
        None => Results::read(path),
    }
}

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

#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    /// The results of all shards, in any order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The file of the joined results [default: results.json, or the suite's name].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The format in which results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Print all tables instead of the answer.
    #[arg(short, long)]
    pub verbose: bool,
    /// Do not write the page of the results, which is saved beside them.
    #[arg(long)]
    pub no_page: bool,
}

/// The results of a shard.
struct ShardResults {
    file: PathBuf,
    shard: Shard,
    /// The run that it is a part of.
    whole: Planned,
    results: Results,
}

/// Saves and prints the results of the whole run.
///
/// # Errors
///
/// If the files are not the complete shards of one run, or a case failed.
pub fn merge(args: &MergeArgs, output: &Output) -> Result<()> {
    let step = output.progress.spinner("reading the shards");
    let parts =
        args.files.iter().map(|file| ShardResults::read(file)).collect::<Result<Vec<_>>>()?;
    step.done("");
    let parts = in_order(parts)?;
    let Some(whole) = parts.first().map(|part| &part.whole) else {
        bail!("there are no shards");
    };
    let results = joined(whole, &parts)?;
    let out = out_of(args.out.as_deref(), &results.suite);
    let real = |path: &Path| path.canonicalize().ok();
    if real(&out).is_some() && parts.iter().any(|part| real(&part.file) == real(&out)) {
        bail!("{} is one of the shards; choose another --out", out.display());
    }
    let mut file = RunFile::new(&out)?;
    file.finish(&results, true)?;
    if !results.cases.is_empty() {
        show(whole.suite, &results, (args.format, args.verbose), &out, output)?;
    }
    output.progress.note(&file.summary());
    if !args.no_page {
        save_page(whole.suite, &results, &out, &output.progress)?;
    }
    failures(&results)?;
    agree_on_rows(&whole.plan, &results)
}

impl ShardResults {
    fn read(file: &Path) -> Result<Self> {
        let results = Results::read(file)?;
        let name = file.display();
        let words = split(&results.command).with_context(|| name.to_string())?;
        let mut words: Vec<String> = words.into_iter().skip(3).collect();
        let Some(at) = words.iter().position(|word| *word == "--shard") else {
            bail!("{name} is not a shard: its command has no --shard, {}", results.command);
        };
        let shard = words.drain(at..words.len().min(at + 2)).next_back().unwrap_or_default();
        let shard: Shard = shard.parse().map_err(Error::msg).with_context(|| name.to_string())?;
        let suite = suite(&results.suite);
        let suite = suite.with_context(|| format!("{name}: no suite {}", results.suite))?;
        let not_planned = || {
            format!(
                "{name} cannot be merged, because this stablebench does not understand its command, {}",
                results.command
            )
        };
        let whole = Planned::of(suite, &words).with_context(not_planned)?;
        let without = results.command.replacen(&format!(" --shard {shard}"), "", 1);
        ensure!(whole.command == without, not_planned());
        Ok(Self { file: file.to_owned(), shard, whole, results })
    }

    /// The properties that all parts of a run have in common.
    fn identity(&self) -> [(&'static str, String); 6] {
        let Results { stablebench, revision, prices, replica, .. } = &self.results;
        [
            ("command", self.whole.command.clone()),
            ("number of shards", self.shard.of.to_string()),
            ("stablebench", stablebench.clone()),
            ("revision", revision.clone().unwrap_or_default()),
            ("replica", format!("{replica:?}")),
            ("prices", format!("{prices:?}")),
        ]
    }
}

/// Returns the parts by their numbers, if they are all parts of one run.
fn in_order(mut parts: Vec<ShardResults>) -> Result<Vec<ShardResults>> {
    parts.sort_by_key(|part| part.shard.number);
    for pair in parts.windows(2) {
        let [base, other] = pair else { continue };
        let names = format!("{} and {}", base.file.display(), other.file.display());
        let same = |input: &&Input| other.results.inputs.contains(input);
        if let Some(input) = base.results.inputs.iter().find(|input| !same(input)) {
            bail!(
                "{names} are not shards of one run, because their input differs: {} is another one",
                input.name
            );
        }
        for ((what, base), (_, other)) in base.identity().into_iter().zip(other.identity()) {
            ensure!(
                base == other,
                "{names} are not shards of one run, because their {what} differs:\n  {base}\n  {other}"
            );
        }
        ensure!(base.shard != other.shard, "{names} are both shard {}", base.shard);
    }
    let of = parts.first().map_or(0, |part| part.shard.of);
    let missing: Vec<String> = (1..=of)
        .filter(|number| parts.iter().all(|part| part.shard.number != *number))
        .map(|number| Shard { number, of }.to_string())
        .collect();
    ensure!(missing.is_empty(), "the file of shard {} is missing", missing.join(", of "));
    Ok(parts)
}

/// Returns the results that one run would have saved.
fn joined(whole: &Planned, parts: &[ShardResults]) -> Result<Results> {
    let Planned { plan, command, .. } = whole;
    for part in parts {
        complete(part)?;
    }
    let results = || parts.iter().map(|part| &part.results);
    let first = results().next().context("there are no shards")?;
    let canisters = canisters(plan, parts)?;
    let harness = canisters.iter().filter_map(|canister| {
        let of = |case: &&Case| case.configuration == canister.name;
        results().flat_map(|part| &part.harness).find(of).cloned()
    });
    let harness = harness.collect();
    let mut fixtures: Vec<FixtureInfo> =
        results().flat_map(|part| &part.fixtures).cloned().collect();
    let keys: Vec<_> = plan.fixtures.iter().map(Fixture::key).collect();
    fixtures.sort_by_key(|fixture| keys.iter().position(|key| key.is_of(fixture)));
    let mut cases: Vec<Case> = results().flat_map(|part| &part.cases).cloned().collect();
    let order = plan.order();
    cases.sort_by_key(|case| order.place(case));
    Ok(Results {
        command: command.clone(),
        configurations: plan.configurations.clone(),
        canisters,
        fixtures,
        cases,
        harness,
        ..first.clone()
    })
}

/// Fails if cases or fixtures of a part are missing, or others are in it.
fn complete(part: &ShardResults) -> Result<()> {
    let ShardResults { file, shard, whole, results } = part;
    let name = file.display();
    let fixtures: Vec<&Fixture> = shard.fixtures(&whole.plan).collect();
    let mut expected = 0;
    let mut missing = 0;
    for fixture in &fixtures {
        let key = &fixture.configuration.key;
        for (section, case) in fixture.cases() {
            expected += 1;
            missing += usize::from(results.case(section, case, key).is_none());
        }
        let key = fixture.key();
        missing += usize::from(!results.fixtures.iter().any(|known| key.is_of(known)));
    }
    ensure!(
        missing == 0,
        "{name} is not complete; finish shard {shard} first:\n  {} --out {name} --resume",
        results.command
    );
    ensure!(
        (results.cases.len(), results.fixtures.len()) == (expected, fixtures.len()),
        "{name} contains more than shard {shard} measures: {} cases of {} fixtures instead of {} of {}",
        results.cases.len(),
        results.fixtures.len(),
        expected,
        fixtures.len()
    );
    Ok(())
}

/// Returns the canisters of all parts, in the order of a run.
fn canisters(plan: &Plan, parts: &[ShardResults]) -> Result<Vec<CanisterInfo>> {
    let mut found = Vec::new();
    for name in canisters::in_order(plan.configurations.iter().map(|of| of.canister.as_str())) {
        let mut named = parts.iter().filter_map(|part| {
            let of = part.results.canisters.iter().find(|canister| canister.name == name)?;
            Some((part, of))
        });
        let Some((base, known)) = named.next() else { continue };
        for (part, canister) in named {
            ensure!(
                known == canister,
                "{} and {} are not shards of one run, because their canister {} differs:\n  {}\n  {}",
                base.file.display(),
                part.file.display(),
                name,
                known.sha256,
                canister.sha256
            );
        }
        found.push(known.clone());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct ParsedReport {
        #[command(flatten)]
        args: ReportArgs,
    }

    fn chosen(options: &[&str]) -> ReportFormat {
        tried(options).unwrap()
    }

    fn tried(options: &[&str]) -> Result<ReportFormat> {
        let words = ["report", "results.json"].iter().chain(options);
        format(&ParsedReport::parse_from(words).args)
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

    #[derive(clap::Parser)]
    struct ParsedCompare {
        #[command(flatten)]
        args: CompareArgs,
    }

    fn typed(arguments: &[&str]) -> Result<Gates, String> {
        let all = [&["compare", "base.json"], arguments].concat();
        ParsedCompare::try_parse_from(all)
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
