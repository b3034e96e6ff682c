//! `stablebench canbench`: the benchmarks of a canbench project on the embedded replica.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use stablebench_replica::{Canister, Rules};

use super::closest;
use super::replica::embedded;
use crate::canbench::config::Config;
use crate::canbench::output::{
    COSTS, RULE, bench, costs, rules, rules_of, setup, significant, summary, touched_by_setup,
};
use crate::canbench::output::{Compared, Report, csv, json, markdown};
use crate::canbench::results::{self, Benches, Measured, Results, Setup, entries, regressed};
use crate::canbench::{self, How, Project, install, without_tracing};
use crate::canisters::{self, hash, plain};
use crate::progress::Output;
use crate::replica::options::{CacheUseArgs, ReplicaArgs, SubnetKind, rule_sets};
use crate::results::save_text;
use crate::terminal::{note, print, quoted, safe_line};

#[derive(Debug, Args)]
pub struct CanbenchArgs {
    /// Run only the benchmarks whose names contain this.
    pub pattern: Option<String>,
    /// Write the project's results file.
    #[arg(long)]
    pub persist: bool,
    /// Write the project's CSV file.
    #[arg(long)]
    pub csv: bool,
    /// Omit the summary.
    #[arg(long)]
    pub less_verbose: bool,
    /// Omit the individual benchmarks.
    #[arg(long)]
    pub hide_results: bool,
    /// Print the summary even with --less-verbose.
    #[arg(long)]
    pub show_summary: bool,
    /// Print the canister's debug output to stderr.
    #[arg(long)]
    pub show_canister_output: bool,
    /// Write an exact flame graph of each benchmark, NAME.svg, next to the results file.
    #[arg(long)]
    pub instruction_tracing: bool,
    /// Threshold below which a change is noise.
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = percent)]
    pub noise_threshold: f64,
    /// Without effect: there is no server.
    #[arg(long, value_name = "PATH")]
    pub runtime_path: Option<PathBuf>,
    /// Without effect: there is no server.
    #[arg(long)]
    pub no_runtime_integrity_check: bool,
    /// Rules to count by.
    #[arg(long, value_name = "RULES", value_delimiter = ',', default_value = Rules::today().name(),
        help = format!(
            "Rules to count by: {}. canbench 0.7 counts by 2025-10. Several, as 2025-10,2026-10, are \
             shown side by side; the first is compared and persisted",
            rule_sets()
        )
    )]
    pub rules: Vec<Rules>,
    /// Compare with this results file instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Exit with code 1 if a benchmark or scope regressed by more than the noise threshold.
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Charge pages that a benchmark's setup has touched again, as if it ran in a message before.
    /// Results are marked as such; the CSV file has no place for a mark.
    #[arg(long, conflicts_with = "csv")]
    pub separate_setup: bool,
    /// Print touched Wasm pages and cycles of each benchmark.
    #[arg(long)]
    pub show_costs: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: CanbenchFormat,
    /// Number of benchmarks to run in parallel; results are the same. [default: one per core]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub cache: CacheUseArgs,
}

/// Formats of benchmarks' results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CanbenchFormat {
    /// The output of canbench.
    #[default]
    Text,
    /// Tables with costs.
    Markdown,
    /// Everything that was measured.
    Json,
}

impl CanbenchArgs {
    fn setup(&self) -> Setup {
        if self.separate_setup { Setup::Separate } else { Setup::Shared }
    }

    /// A replica that counts by these rules, on a benchmarking subnet.
    pub fn replica(&self, rules: Rules) -> ReplicaArgs {
        ReplicaArgs {
            rules: Some(rules),
            subnet: SubnetKind::Benchmarking,
            cache: self.cache.clone(),
        }
    }
}

/// Parses a percentage: `2%` or `2`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("a threshold is a percentage, such as 2% or 0.5%".to_owned()),
    }
}

/// A request that does not fit the project, such as a pattern that no benchmark matches. The exit code
/// is that of wrong usage.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unfit(String);

/// Runs benchmarks. Failures exit with code 1, as in canbench.
pub fn canbench(args: &CanbenchArgs, output: &Output) -> Result<ExitCode> {
    match run(args, output) {
        Ok(true) if args.fail_on_regression => Ok(ExitCode::from(1)),
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(error) if crate::is_closed_pipe(&error) || error.is::<Unfit>() => Err(error),
        Err(error) => {
            note(&lines(&error));
            Ok(ExitCode::from(1))
        }
    }
}

/// The error and its causes, one per line. Scripts match lines of canbench.
fn lines(error: &anyhow::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.join("\n")
}

/// Runs benchmarks and returns `true` if one regressed.
fn run(args: &CanbenchArgs, output: &Output) -> Result<bool> {
    let note = |text: &str| output.progress.note(text);
    check(args)?;
    if args.runtime_path.is_some() || args.no_runtime_integrity_check {
        note("there is no server, so --runtime-path and --no-runtime-integrity-check do nothing");
    }
    let config = Config::read(note)?;
    config.build(args.format != CanbenchFormat::Text)?;
    let compared = args.compare.as_deref().unwrap_or(config.results_path());
    let before = match args.compare {
        Some(_) => Some(results::read_existing(compared)?),
        None => results::read(compared)?,
    };
    let before = before.filter(|before| !before.benches.is_empty());
    let deployed = module(&config.wasm_path, output)?;
    let wasm = plain(&deployed);
    let all = canbench::benches(&wasm)?;
    let project = Project {
        wasm: without_tracing(&wasm)?,
        init_args: config.init_args().to_vec(),
        stable_memory: config.stable_memory()?,
        environment: config.environment()?,
    };
    let names = chosen(all, args.pattern.as_deref())?;
    let known =
        |name: &String| before.as_ref().is_some_and(|before| before.benches.contains_key(name));
    if args.fail_on_regression && !names.iter().any(known) {
        return Err(Unfit(format!(
            "--fail-on-regression has nothing to compare: {} contains none of the {} benchmarks; \
             write their results with --persist, or name another file with --compare",
            compared.display(),
            names.len()
        ))
        .into());
    }
    if let Some(before) = &before {
        differences(args, before, compared).iter().for_each(|difference| note(difference));
    }

    let session = Session { args, output, config: &config, names: &names, project: &project };
    let old = before.as_ref().map(|before| before.benches.clone()).unwrap_or_default();
    let mut runs = vec![(args.rules[0].name(), session.first(&old)?)];
    for rules in &args.rules[1..] {
        runs.push((rules.name(), session.further(*rules)?));
    }

    let now: Benches = runs[0].1.iter().map(|it| (it.name.clone(), it.bench.clone())).collect();
    let entries = entries(&now, &old);
    let file = compared.display().to_string();
    let command = command();
    let report = Report {
        command: &command,
        module: &hash(&deployed),
        compared: before.as_ref().map(|before| Compared {
            file: &file,
            rules: &before.rules,
            setup: before.setup,
        }),
        entries: &entries,
        noise: args.noise_threshold,
        setup: args.setup(),
        runs: &runs,
    };
    match args.format {
        CanbenchFormat::Text => print(&rest(args, &report))?,
        CanbenchFormat::Markdown => print(&markdown(&report))?,
        CanbenchFormat::Json => print(&json(&report)?)?,
    }
    if args.csv {
        let path = config.csv_results_path();
        save_text(path, &csv(&entries)?)?;
        session.say(&format!("CSV results saved to {}", path.display()))?;
    }
    if args.persist {
        session.persist(now, &old)?;
    }
    Ok(regressed(&entries, args.noise_threshold))
}

/// Checks the options.
fn check(args: &CanbenchArgs) -> Result<()> {
    for (at, rules) in args.rules.iter().enumerate() {
        if args.rules[..at].contains(rules) {
            bail!("--rules names {rules} twice");
        }
    }
    Ok(())
}

/// Returns the benchmarks whose names contain the pattern.
///
/// # Errors
///
/// If there are none; the message lists close names.
fn chosen(all: Vec<String>, pattern: Option<&str>) -> Result<Vec<String>, Unfit> {
    if all.is_empty() {
        return Err(Unfit(
            "the module exports no benchmarks; mark functions with #[canbench_rs::bench]"
                .to_owned(),
        ));
    }
    let Some(pattern) = pattern else { return Ok(all) };
    let (chosen, others): (Vec<String>, Vec<String>) =
        all.into_iter().partition(|name| name.contains(pattern));
    if chosen.is_empty() {
        let close: Vec<_> = closest(pattern, &others).into_iter().map(safe_line).collect();
        let (pattern, close) = (safe_line(pattern), close.join(", "));
        return Err(Unfit(format!(
            "no benchmark has a name that contains {pattern}; the closest are {close}"
        )));
    }
    Ok(chosen)
}

/// Returns a note for each way in which the earlier results were counted differently.
fn differences(args: &CanbenchArgs, before: &Results, file: &Path) -> Vec<String> {
    let (file, now, old) = (file.display(), args.rules[0], &before.rules);
    let same = old.parse::<Rules>().is_ok_and(|old| now.counts_as(old));
    let of_rules = (!same).then(|| {
        let of_canbench = [now.name(), old].contains(&Rules::of_2025_10().name());
        let of_canbench = match of_canbench {
            true => " canbench 0.7 runs PocketIC 13.0.0, which does not charge for touched pages.",
            false => "",
        };
        format!(
            "{file} was counted by the rules {}, this is counted by {}: changes include those of the \
             rules.{of_canbench} --rules {old} counts by the same.",
            rules(old),
            rules(now.name())
        )
    });
    let of_setup = match (before.setup, args.setup()) {
        (Setup::Shared, Setup::Separate) => Some(format!(
            "{file} was counted without --separate-setup: changes include pages that setup touched"
        )),
        (Setup::Separate, Setup::Shared) => Some(format!(
            "{file} was counted with --separate-setup, this is not: changes include pages that setup \
             touched"
        )),
        (Setup::Shared, Setup::Shared) | (Setup::Separate, Setup::Separate) => None,
    };
    of_rules.into_iter().chain(of_setup).collect()
}

fn module(path: &Path, output: &Output) -> Result<Vec<u8>> {
    let loaded = canisters::load(path, &output.progress);
    let loaded = loaded.map_err(|error| match error.downcast_ref::<io::Error>() {
        Some(cause) => anyhow!(
            "Couldn't read file at {}. Are you sure the file exists?\n{cause}",
            path.display()
        ),
        None => error,
    });
    Ok(loaded?.wasm)
}

/// The command line.
fn command() -> String {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| quoted(&safe_line(&word.to_string_lossy())))
        .collect();
    format!("stablebench {}", words.join(" "))
}

/// The context for running a project's benchmarks.
struct Session<'a> {
    args: &'a CanbenchArgs,
    output: &'a Output,
    config: &'a Config,
    names: &'a [String],
    project: &'a Project,
}

impl Session<'_> {
    /// Runs the benchmarks by the first rules, each of which is printed as soon as it has run.
    fn first(&self, before: &Benches) -> Result<Vec<Measured>> {
        let Self { args, output, .. } = *self;
        let canister = self.installed(args.rules[0], args.show_canister_output)?;
        let text = args.format == CanbenchFormat::Text;
        let mut all = Vec::new();
        self.run(&canister, args.instruction_tracing, |mut measured| {
            let name = &measured.name;
            if let (Setup::Shared, Some(pages)) = (args.setup(), touched_by_setup(&measured)) {
                output.progress.note(&pages);
            }
            if args.show_canister_output {
                self.printed(&canister, &measured.printed);
            }
            let mut shown = String::new();
            if text && !args.hide_results {
                let noise = args.noise_threshold;
                let before = before.get(name);
                let bench = bench(name, &measured.bench, before, noise, output.terminal);
                shown += &format!("{RULE}\n\n{bench}");
            }
            if let Some(flame) = measured.flame.take() {
                let path = self.flame_path(name);
                save_text(&path, &flame)?;
                let traced = format!("Instruction traces written to {}", path.display());
                match text {
                    true => shown += &format!("{traced}\n"),
                    false => output.progress.note(&traced),
                }
            }
            if text && !args.hide_results {
                shown.push('\n');
            }
            print(&shown)?;
            all.push(measured);
            Ok(())
        })?;
        Ok(all)
    }

    /// Runs them by other rules.
    fn further(&self, rules: Rules) -> Result<Vec<Measured>> {
        let canister = self.installed(rules, false)?;
        let name = format!("by the rules {rules}");
        let step = self.output.progress.step(&name, "benchmarks", self.names.len() as u64);
        let mut all = Vec::new();
        self.run(&canister, false, |measured| {
            step.advance();
            all.push(measured);
            Ok(())
        })?;
        step.done("");
        Ok(all)
    }

    fn installed(&self, rules: Rules, show_output: bool) -> Result<Canister> {
        let (replica, _) = embedded(&self.args.replica(rules), &self.output.progress)?;
        let step = self.output.progress.spinner("compiling and installing");
        let (canister, printed) = install(&replica, self.project)?;
        step.done("");
        if show_output {
            self.printed(&canister, &printed);
        }
        Ok(canister)
    }

    fn run(
        &self,
        canister: &Canister,
        traced: bool,
        report: impl FnMut(Measured) -> Result<()>,
    ) -> Result<()> {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        let threads = self.args.jobs.map_or_else(cores, usize::from);
        let how = How { setup: self.args.setup(), traced };
        canbench::run(canister, self.names, threads, how, report)
    }

    /// Replaces the results file.
    fn persist(&self, now: Benches, before: &Benches) -> Result<()> {
        let path = self.config.results_path();
        let left_out = before.keys().filter(|name| !now.contains_key(*name)).count();
        let rules = self.args.rules[0].name().to_owned();
        results::write(path, &Results { benches: now, rules, setup: self.args.setup() })?;
        self.say(&format!("Successfully persisted results to {}", path.display()))?;
        if left_out > 0 && self.args.compare.is_none() {
            self.output.progress.note(&format!(
                "{left_out} benchmarks that did not run are no longer in {}",
                path.display()
            ));
        }
        Ok(())
    }

    /// Prints a message to stdout, or to stderr if stdout is reserved for a document.
    fn say(&self, text: &str) -> Result<()> {
        match self.args.format {
            CanbenchFormat::Text => print(&format!("{text}\n")),
            CanbenchFormat::Markdown | CanbenchFormat::Json => {
                self.output.progress.note(text);
                Ok(())
            }
        }
    }

    fn printed(&self, canister: &Canister, texts: &[String]) {
        for text in texts {
            note(&format!("[Canister {}] {text}", canister.id()));
        }
    }

    /// Returns a path next to the results.
    fn flame_path(&self, name: &str) -> PathBuf {
        self.config.results_path().with_file_name(format!("{}.svg", file_stem(name)))
    }
}

/// The most bytes of a file name from a benchmark's name. File systems allow 255 with the ending.
const MAX_STEM: usize = 200;

/// Returns a file name for a benchmark's name, which is from the module: letters, digits, `_`, `-` and
/// `.`. The end of one that was changed or shortened is a hash, so that no two names share a file.
fn file_stem(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    if name.len() <= MAX_STEM && name.chars().all(plain) {
        return name.to_owned();
    }
    let mut stem = String::new();
    for letter in name.chars().map(|letter| if plain(letter) { letter } else { '_' }) {
        if stem.len() + letter.len_utf8() > MAX_STEM - HASH - 1 {
            break;
        }
        stem.push(letter);
    }
    format!("{stem}-{}", &hash(name.as_bytes())[..HASH])
}

/// The digits of a hash in a file name.
const HASH: usize = 16;

/// The output after the benchmarks.
fn rest(args: &CanbenchArgs, report: &Report<'_>) -> String {
    let mut text = format!("{RULE}\n");
    if !args.less_verbose || args.show_summary {
        text += &format!("\n{}\n{RULE}\n", summary(report.entries, report.noise));
        if let Some(table) = significant(report.entries, report.noise) {
            text += &format!("\nOnly significant changes:\n{table}\n{RULE}\n");
        }
    }
    if args.show_costs || report.runs.len() > 1 {
        let runs: Vec<(&str, &[Measured])> =
            report.runs.iter().map(|(rules, run)| (*rules, &run[..])).collect();
        text += &format!(
            "\nCosts by the rules {}{}:\n{}\n{COSTS}\n\n{RULE}\n",
            rules_of(runs.iter().map(|(rules, _)| *rules)),
            setup(report.setup),
            costs(&runs)
        );
    }
    text
}
