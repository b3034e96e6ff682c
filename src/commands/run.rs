//! `stablebench run`: a suite from its options to the printed results. `stablebench run all`: every suite
//! with its defaults.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::{ArgMatches, Args, FromArgMatches};
use sha2::{Digest, Sha256};
use stablebench_suite::plan::{Ceilings, Plan, Shard};
use stablebench_suite::{Suite, words};
use stablebench_suite_builds::NotBuilt;

use super::closest_by;
use super::replica::{check, remember_durations, target};
use super::spending::agree;
use crate::canisters::{self, Built};
use crate::compare::{Gates, compare};
use crate::interrupt::{self, Interrupted};
use crate::progress::{Output, Progress};
use crate::replica::Replica;
use crate::replica::options::{AccessArgs, CacheUseArgs, ReplicaArg, ReplicaArgs, TargetArgs};
use crate::report::grid::Style;
use crate::report::number::Grouped;
use crate::report::{self, Format, comparison};
use crate::results::{
    CanisterInfo, Case, FORMAT, Input, Outcome, Prices, Results, RunFile, save_text,
};
use crate::runner::{Missing, Runner};
use crate::suites::{SUITES, matches, normal, title};
use crate::terminal::{Terminal, note, print, quoted};

/// Options of all suites. The command in the results repeats them, and `--resume` compares them, except
/// for those in the structs that [`repeated`] names.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Run and output")]
pub struct RunArgs {
    /// The seed of random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub prices: PriceArgs,
    /// Measure only cases with these words in their names, which --list prints; may be repeated.
    #[arg(long, value_name = "PATTERN", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub case: Vec<String>,
    /// Measure only part I of N, for machines that share a run; `merge` joins their files.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub output: RunOutputArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

/// Options of the way in which a run proceeds, and of what becomes of its results. They change no result.
#[derive(Clone, Debug, Args)]
pub struct RunOutputArgs {
    /// The file of the results [default: results.json, or the suite's name].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Resume the run that was saved there and did not end.
    #[arg(long)]
    pub resume: bool,
    /// Leave wall times out of the results.
    #[arg(long)]
    pub no_wall_time: bool,
    /// The format in which results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Print all tables instead of the answer.
    #[arg(short, long)]
    pub verbose: bool,
    /// Do not write the page of the results, which is saved beside them.
    #[arg(long)]
    pub no_page: bool,
    /// List the cases without measuring them.
    #[arg(long)]
    pub list: bool,
    /// Canisters that run in parallel.
    #[arg(long, default_value_t = default_jobs(), value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: u64,
}

impl RunArgs {
    /// The file of a suite's results.
    pub fn out(&self, suite: &str) -> PathBuf {
        out_of(self.output.out.as_deref(), suite)
    }
}

/// The file that was chosen for a suite's results, or the default one.
pub fn out_of(chosen: Option<&Path>, suite: &str) -> PathBuf {
    match chosen {
        Some(out) => out.to_owned(),
        None if suite == "users" => Path::new("results.json").to_owned(),
        None => Path::new(suite).with_extension("json"),
    }
}

/// The prices of cycles.
#[derive(Clone, Copy, Debug, Args)]
pub struct PriceArgs {
    /// Nodes of the subnet that prices are shown for; cycles scale with them from 13.
    #[arg(long, default_value_t = 13, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub nodes: u32,
    /// US dollars for a trillion cycles, which is one XDR.
    #[arg(long, default_value_t = 1.36, value_parser = price)]
    pub usd_per_trillion_cycles: f64,
}

fn price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err("a price is a number of US dollars, such as 1.36".to_owned()),
    }
}

fn default_jobs() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

/// Adds the options of all suites to those of a suite.
pub fn with_run_options(command: clap::Command) -> clap::Command {
    RunArgs::augment_args(command)
}

/// The option that is repeated with its value even if it was left out: the default changes with the network.
const RULES: &str = "rules";

/// Returns `true` for an option that the command in the results repeats as it was given: for every
/// option, unless it is of those that change no result.
fn repeated(id: &str) -> bool {
    let change_nothing =
        [RunOutputArgs::augment_args, AccessArgs::augment_args, CacheUseArgs::augment_args];
    let defines = |augment: fn(clap::Command) -> clap::Command| {
        augment(clap::Command::new("")).get_arguments().any(|argument| argument.get_id() == id)
    };
    id != RULES && !change_nothing.into_iter().any(defines)
}

/// A suite with the options that were given.
pub struct Planned {
    pub suite: &'static dyn Suite,
    pub args: RunArgs,
    /// The command that repeats the run.
    pub command: String,
    pub plan: Plan,
}

impl Planned {
    /// Plans a suite. Its own options are in `matches`, those of all suites in `run`, parsed from
    /// `run_matches`.
    ///
    /// # Errors
    ///
    /// If the options ask for the impossible.
    pub fn new(
        suite: &'static dyn Suite,
        matches: &ArgMatches,
        args: RunArgs,
        run_matches: &ArgMatches,
    ) -> Result<Self> {
        let mut plan = suite.plan(matches, args.seed)?;
        if !args.case.is_empty() {
            chosen(suite, &mut plan, &args.case)?;
        }
        if plan.fixtures.iter().all(|fixture| fixture.cases().next().is_none()) {
            bail!(
                "these options leave no case of the suite {}; `stablebench run {} --help` lists others",
                suite.name(),
                suite.name()
            );
        }
        if let Some(shard) = args.shard {
            if plan.ceilings.is_some() {
                bail!(
                    "a shard has only some of the configurations that ceilings compare; join the \
                     shards with `stablebench merge`, and check the whole with `stablebench compare \
                     FILE --configurations A B`, which has --max-ratio and --max-average"
                );
            }
            plan = shard.of(plan);
        }
        let mut command = vec![format!("stablebench run {}", suite.name())];
        let measured = |id: &str| !suite.gates().contains(&id);
        command.extend(words(&suite.arguments(clap::Command::new("")), matches, measured));
        command.extend(words(&with_run_options(clap::Command::new("")), run_matches, repeated));
        if args.target.replica == ReplicaArg::Embedded {
            command.push(format!("--{RULES} {}", args.replica.rules()));
        }
        Ok(Self { suite, args, command: command.join(" "), plan })
    }

    /// Plans a suite for the words that follow its name.
    ///
    /// # Errors
    ///
    /// If the options do not exist, or ask for the impossible.
    pub fn of(suite: &'static dyn Suite, words: &[impl AsRef<str>]) -> Result<Self> {
        let command = with_run_options(suite.arguments(clap::Command::new(suite.name())));
        let words = words.iter().map(AsRef::as_ref);
        let words = [suite.name()].into_iter().chain(words);
        let matches = command.try_get_matches_from(words).map_err(|error| {
            let message = error.render().to_string();
            let message = message.split("\n\n").next().unwrap_or_default();
            anyhow!("{}", message.trim_start_matches("error: ").trim_end())
                .context(format!("the suite {} does not have that option", suite.name()))
        })?;
        Self::new(suite, &matches, RunArgs::from_arg_matches(&matches)?, &matches)
    }
}

/// Leaves out of a plan all cases that no pattern matches.
///
/// # Errors
///
/// If a pattern matches no case; the message lists similar ones.
fn chosen(suite: &dyn Suite, plan: &mut Plan, patterns: &[String]) -> Result<()> {
    let mut titles = Vec::new();
    for fixture in &plan.fixtures {
        let title = |(section, name)| title(suite, section, name, &fixture.configuration.key);
        titles.extend(fixture.cases().map(title));
    }
    for pattern in patterns {
        if !titles.iter().any(|title| matches(pattern, title)) {
            let near = closest_by(&normal(pattern), &titles, normal);
            bail!(
                "no case has \"{pattern}\" in its name; the nearest are\n{}`stablebench run {} --list` \
                 prints all",
                near.iter().map(|title| format!("  {title}\n")).collect::<String>(),
                suite.name()
            );
        }
    }
    plan.retain(|section, name, configuration| {
        let title = title(suite, section, name, configuration);
        patterns.iter().any(|pattern| matches(pattern, &title))
    });
    Ok(())
}

/// Runs a suite and prints its results.
pub fn run(suite: &'static dyn Suite, matches: &ArgMatches, output: &Output) -> Result<ExitCode> {
    let args = RunArgs::from_arg_matches(matches)?;
    execute(&Planned::new(suite, matches, args, matches)?, output)
}

/// Prints names and questions of the suites.
pub fn list() -> Result<()> {
    let mut out = std::io::stdout().lock();
    let width = SUITES.iter().map(|suite| suite.name().len()).max().unwrap_or_default();
    for suite in SUITES {
        writeln!(out, "{:<width$} {}", suite.name(), suite.question().unwrap_or_default())?;
    }
    Ok(())
}

/// Executes a plan, or lists its cases, and prints the results.
pub fn execute(planned: &Planned, output: &Output) -> Result<ExitCode> {
    for note in &planned.plan.notes {
        output.progress.note(note);
    }
    if planned.args.output.list {
        print(&list_of(&planned.plan))?;
        return Ok(ExitCode::SUCCESS);
    }
    let results = measure(planned, output)?;
    match planned.plan.ceilings {
        Some(ceilings) => check_ceilings(ceilings, &results, planned.args.output.format, output),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn measure(planned: &Planned, output: &Output) -> Result<Results> {
    let Planned { suite, args, plan, .. } = planned;
    let out = args.out(plan.suite);
    let mut file = RunFile::new(&out)?;
    interrupt::listen()?;
    let progress = &output.progress;
    check(&args.target, &args.replica)?;
    remember_durations(&args.replica);
    let saved = file.summary_of_incomplete();
    let (built, missing) = needed(plan, progress).map_err(|error| not_begun(error, &saved))?;
    let target = target(&args.target, &args.replica, &out, &built, progress)
        .map_err(|error| not_begun(error, &saved))?;
    let replica = &*target.replica;
    let mut results = empty(planned, replica, &built);
    if args.output.resume {
        results = resumed(&mut file, results, progress)?;
    }
    let mut jobs = usize::try_from(args.output.jobs).unwrap_or(1);
    if let Some(spending) = &target.spending {
        agree(spending, &args.replica, jobs, plan, &built, &results, progress)?;
        progress
            .note("fixtures are measured one after the other: a canister contains one at a time");
        jobs = 1;
    }
    let saved = file.summary_of_incomplete();
    let runner = Runner::new(replica, &built, plan, progress, Some(file), results)
        .map_err(|error| not_begun(error, &saved))?
        .with_wall_time(!args.output.no_wall_time)
        .with_cache(target.cache.as_ref())
        .with_missing(missing);
    let ran = runner.run(jobs);
    let results = runner.results();
    if !results.cases.is_empty() {
        let shown = (args.output.format, args.output.verbose);
        show(*suite, &results, shown, &out, output)?;
    }
    let (saved, incomplete) = runner
        .file()
        .map(|file| (file.summary(), file.summary_of_incomplete()))
        .unwrap_or_default();
    match ran {
        Err(error) => Err(ended(error, &incomplete)),
        Ok(()) => {
            progress.note(&saved);
            // A part is no result to look at.
            if !args.output.no_page && args.shard.is_none() {
                save_page(*suite, &results, &out, progress)?;
            }
            failures(&results)?;
            agree_on_rows(plan, &results)?;
            Ok(results)
        }
    }
}

/// Prints results: the answer, or all tables if they are `verbose`, or another format.
pub fn show(
    suite: &dyn Suite,
    results: &Results,
    (format, verbose): (Format, bool),
    out: &Path,
    output: &Output,
) -> Result<()> {
    if verbose || format != Format::Table {
        return print(&report::render(suite, results, format, output.terminal)?);
    }
    let height = Terminal::height();
    print(&report::answer::answer(suite, results, output.terminal, height)?)?;
    let file = quoted(&out.to_string_lossy());
    print(&format!("All tables: stablebench report {file}\n"))
}

/// Saves the page of results beside their file, and says where it is.
pub fn save_page(
    suite: &dyn Suite,
    results: &Results,
    out: &Path,
    progress: &Progress,
) -> Result<()> {
    // A stream has no place beside it.
    if !out.is_file() {
        return Ok(());
    }
    let page = out.with_extension("html");
    if page.exists() && !report::is_page(&page)? {
        progress.note(&format!(
            "{} is not a page of stablebench and stays as it is; for a page: stablebench report {} \
             -o FILE.html",
            page.display(),
            quoted(&out.to_string_lossy())
        ));
        return Ok(());
    }
    let name = out.file_name().unwrap_or(out.as_os_str()).to_string_lossy().into_owned();
    let text = report::page(&[(name, suite, results.clone())])?;
    save_text(&page, &text)?;
    let address = page.canonicalize().unwrap_or(page);
    progress.note(&format!("open the page: file://{}", address.display()));
    Ok(())
}

/// Fails if configurations that must agree have found or left other rows. Within a run, the first
/// difference ends it; this is for runs that were resumed or joined.
///
/// # Errors
///
/// The first difference.
pub fn agree_on_rows(plan: &Plan, results: &Results) -> Result<()> {
    let digest = |case: &Case| case.measured()?.detail.as_ref()?.digest;
    for (section, name) in plan.rows.iter().filter(|_| plan.agrees) {
        let found: Vec<_> = results
            .section(section)
            .filter(|case| case.name == *name)
            .filter_map(|case| Some((case.configuration.as_str(), digest(case)?)))
            .collect();
        for pair in found.windows(2) {
            let [(one, rows), (other, others)] = pair else { continue };
            if rows != others {
                bail!(
                    "{one} and {other} have other rows in {section}: {name}: {} and {}; repeat the \
                     run without --resume and --shard, which shows the first difference",
                    Grouped(rows.rows),
                    Grouped(others.rows)
                );
            }
        }
    }
    Ok(())
}

/// Adds to an interruption before the first case what was saved earlier.
fn not_begun(error: anyhow::Error, saved: &str) -> anyhow::Error {
    if error.is::<Interrupted>() { ended(error, saved) } else { error }
}

/// Adds to the error that ended a run what was saved until then.
fn ended(error: anyhow::Error, saved: &str) -> anyhow::Error {
    match error.is::<Interrupted>() {
        true => error.context(format!("the run is not complete; {saved}")),
        false => error.context(format!("the run failed; {saved}")),
    }
}

/// Builds the canisters of a plan's configurations. Returns the reasons why some have no module.
pub fn needed(plan: &Plan, progress: &Progress) -> Result<(Vec<Built>, Missing)> {
    let (mut built, mut missing) = (Vec::new(), Missing::new());
    let names = plan.configurations.iter().map(|column| column.canister.as_str());
    for name in canisters::in_order(names) {
        interrupt::check()?;
        match canisters::find(name, progress) {
            Ok(module) => built.push(module),
            Err(error) => {
                let NotBuilt { reason, .. } = error.downcast()?;
                if !missing.values().any(|known| *known == reason) {
                    progress.note(&format!("{name}: {reason}"));
                }
                missing.insert(name.to_owned(), reason);
            }
        }
    }
    Ok((built, missing))
}

/// Returns results without cases.
pub fn empty(planned: &Planned, replica: &dyn Replica, built: &[Built]) -> Results {
    let Planned { args, command, plan, .. } = planned;
    let canister = |built: &Built| CanisterInfo {
        name: built.name.clone(),
        sha256: format!("{:x}", Sha256::digest(&built.wasm)),
        bytes: built.wasm.len() as u64,
        crates: Vec::new(),
        sqlite: None,
    };
    Results {
        format: FORMAT,
        stablebench: env!("CARGO_PKG_VERSION").to_owned(),
        revision: canisters::revision(),
        suite: plan.suite.to_owned(),
        command: command.clone(),
        published: plan.published.clone(),
        seed: args.seed,
        prices: Prices {
            nodes: args.prices.nodes,
            usd_per_trillion_cycles: args.prices.usd_per_trillion_cycles,
        },
        replica: replica.identity(),
        inputs: plan.inputs.clone(),
        canisters: built.iter().map(canister).collect(),
        configurations: plan.configurations.clone(),
        fixtures: Vec::new(),
        cases: Vec::new(),
        harness: Vec::new(),
        planned: Some(plan.fixtures.iter().map(|fixture| fixture.cases().count() as u64).sum()),
    }
}

/// Lists the configurations whose ratios to the first one exceed a ceiling. The exit code is 1 if
/// there are any.
///
/// If results are printed for a program, the list goes to stderr.
fn check_ceilings(
    ceilings: Ceilings,
    results: &Results,
    format: Format,
    output: &Output,
) -> Result<ExitCode> {
    let Ceilings { max_ratio, max_average } = ceilings;
    let gates = Gates { threshold: None, max_ratio, max_average };
    let mut code = ExitCode::SUCCESS;
    let Some((base, others)) = results.configurations.split_first() else { return Ok(code) };
    for other in others {
        let found = compare(results, results, Some((&base.key, &other.key)), gates)?;
        match format {
            Format::Table => {
                let style = Style::of(output.terminal);
                print(&format!("\n{}", comparison::verdict(&found, style)))?;
            }
            Format::Markdown => {
                print(&format!("\n{}", comparison::verdict(&found, Style::MARKDOWN)))?;
            }
            Format::Csv | Format::Json => {
                note(comparison::verdict(&found, Style::default()).trim_end());
            }
        }
        if !found.failures.is_empty() {
            code = ExitCode::from(1);
        }
    }
    Ok(code)
}

/// Returns the canisters' names and hashes.
fn modules(results: &Results) -> String {
    let module = |of: &CanisterInfo| format!("{} {}", of.name, of.sha256);
    results.canisters.iter().map(module).collect::<Vec<_>>().join(", ")
}

/// Returns the results of the saved run if its options were the same.
fn resumed(file: &mut RunFile, new: Results, progress: &Progress) -> Result<Results> {
    let old = file.resume()?;
    let out = file.path().display();
    let Some(old) = old else {
        progress.note(&format!("there is no run at {out} yet; starting a new one"));
        return Ok(new);
    };
    let changed = old.inputs.iter().find(|input| !new.inputs.contains(input));
    if let Some(Input { name, .. }) = changed.filter(|_| old.command == new.command) {
        bail!(
            "the run saved at {out} cannot be resumed, because its input differs: {name} has changed; \
             repeat it without --resume, or choose another --out"
        );
    }
    for (what, saved, now) in [
        ("command", &old.command, &new.command),
        ("canister", &modules(&old), &modules(&new)),
        ("stablebench", &old.stablebench, &new.stablebench),
        ("replica", &format!("{:?}", old.replica), &format!("{:?}", new.replica)),
    ] {
        if saved != now {
            bail!(
                "the run saved at {out} cannot be resumed, because its {what} differs:\n  saved: {saved}\n  \
                 now:   {now}\nrepeat it without --resume, or choose another --out"
            );
        }
    }
    // Failed cases are measured again.
    let failed = |case: &&Case| matches!(case.outcome, Outcome::Failed { .. });
    let done = old.cases.len() - old.cases.iter().filter(failed).count();
    progress.note(&format!("{done} cases are measured already"));
    Ok(Results { fixtures: old.fixtures, cases: old.cases, harness: old.harness, ..new })
}

/// Fails if any case failed.
pub fn failures(results: &Results) -> Result<()> {
    let failed = failed(results);
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} cases failed; run them again with --resume:\n{}", failed.len(), failed.join("\n"))
}

/// Returns a line for each case that failed.
pub fn failed(results: &Results) -> Vec<String> {
    let line = |case: &Case| match &case.outcome {
        Outcome::Failed { reason } => Some(format!("  {}: {reason}", case.title())),
        Outcome::Measured(_) | Outcome::NotApplicable { .. } => None,
    };
    results.cases.iter().filter_map(line).collect()
}

/// Returns the fixtures and their cases as text.
fn list_of(plan: &Plan) -> String {
    let mut text = String::new();
    for fixture in &plan.fixtures {
        text += &format!("{}\n", fixture.label());
        for (section, name) in fixture.cases() {
            text += &format!("  {section:<12} {name}\n");
        }
    }
    text
}

/// The default folder of the results.
const FOLDER: &str = "stablebench-results";

/// Runs one suite after the other. If one fails, the others still run; an interruption ends all.
pub fn run_all(matches: &ArgMatches, output: &Output) -> Result<ExitCode> {
    let run = RunArgs::from_arg_matches(matches)?;
    let folder = run.output.out.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
    let mut worst = ExitCode::SUCCESS;
    let mut failed = Vec::new();
    for suite in SUITES.iter().copied().filter(|suite| suite.in_all()) {
        let name = suite.name();
        output.progress.note(&format!("run {name}"));
        let defaults = with_run_options(suite.arguments(clap::Command::new(name)));
        let defaults = defaults.try_get_matches_from([name])?;
        let out = Some(folder.join(name).with_extension("json"));
        let mut run = run.clone();
        run.output.out = out;
        let ran = Planned::new(suite, &defaults, run, matches)
            .and_then(|planned| execute(&planned, output));
        match ran {
            Ok(code) if code == ExitCode::SUCCESS => {}
            Ok(code) => worst = code,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    if !failed.is_empty() {
        bail!("{} suites failed:\n{}", failed.len(), failed.join("\n"));
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::suite;

    /// What is not repeated is known: a new option is, unless its struct says that it changes no result.
    #[test]
    fn options_are_repeated_unless_they_change_no_result() {
        let command = with_run_options(clap::Command::new(""));
        let ids = command.get_arguments().map(|argument| argument.get_id().as_str());
        let (again, once): (Vec<_>, Vec<_>) = ids.partition(|id| repeated(id));
        let output =
            ["out", "resume", "no_wall_time", "format", "verbose", "no_page", "list", "jobs"];
        let access = ["identity", "yes", "root_key", "verify_embedded"];
        let cache = ["cache_dir", "cache_limit", "no_cache"];
        assert_eq!(once, [&output[..], &access, &[RULES], &cache].concat());
        assert!(again.contains(&"seed") && again.contains(&"subnet"), "{again:?}");
    }

    #[test]
    fn the_command_repeats_what_was_given() {
        let typed = [
            "--seed=7",
            "--nodes=34",
            "--usd-per-trillion-cycles=2",
            "--shard=1/2",
            "--subnet=system",
            "--out=other.json",
            "--jobs=1",
            "--no-cache",
        ];
        let planned = Planned::of(suite("users").unwrap(), &typed).unwrap();
        let rules = planned.args.replica.rules();
        let options = "--seed 7 --nodes 34 --usd-per-trillion-cycles 2 --shard 1/2 --subnet system";
        assert_eq!(planned.command, format!("stablebench run users {options} --rules {rules}"));
    }
}
