//! `stablebench profile`: the instructions of a case, or of a call, by function.
//!
//! A case is written as `SUITE/SECTION/NAME/COLUMN`. Case does not matter, nor do characters that
//! are neither letters nor digits; digits need not be grouped.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use stablebench_replica::Canister;
use stablebench_replica::subnet::Subnet;
use stablebench_suite::Suite;
use stablebench_suite::plan::{Details, Measures, Plan};

use super::call::{note, tree};
use super::closest_by;
use super::interface::{Argument, Names};
use super::replica::embedded;
use super::run::{Planned, empty, needed};
use super::subnet::{self, Environment, InstallArgs, Loaded, Message, check_size, follow, load};
use crate::cache::Cache;
use crate::interrupt;
use crate::profile::{self, Flame, Heading, Profiler, compare, of_executions};
use crate::progress::{Output, Progress};
use crate::replica::embedded::Embedded;
use crate::replica::options::ReplicaArgs;
use crate::report::number::{Factor, Grouped};
use crate::results::{Measured, Outcome, check_writable, save_text};
use crate::runner::Runner;
use crate::suites::{SUITES, normal, title};
use crate::terminal::{Terminal, print, quoted, safe_line};

#[derive(Debug, clap::Args)]
pub struct ProfileArgs {
    /// The case, SUITE/SECTION/NAME/COLUMN as --list prints it. With --list, the beginning of the
    /// cases to list.
    #[arg(required_unless_present_any = ["list", "wasm"])]
    pub case: Option<String>,
    /// List the cases without measuring them.
    #[arg(long, conflicts_with_all = ["diff", "wasm", "out", "format"])]
    pub list: bool,
    /// A second case: show the difference from the first, stack by stack.
    #[arg(long, value_name = "CASE2")]
    pub diff: Option<String>,
    /// Rows before the work, like --rows of the suite.
    #[arg(long, conflicts_with = "wasm", value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: Option<u64>,
    /// The seed of random choices, like --seed of the suite.
    #[arg(long, conflicts_with = "wasm")]
    pub seed: Option<u64>,
    /// Profile whole messages, with heap pages, instead of the measured work.
    #[arg(long, conflicts_with = "wasm")]
    pub whole_message: bool,
    /// Instead of a case, profile a call of this canister: a wasm file, or bench, bench_vfs,
    /// bench_leveldb or bench_doltlite; with --state also the id of a saved canister. Everything that
    /// the call causes is profiled.
    #[arg(long, value_name = "FILE", requires = "call", conflicts_with_all = ["case", "diff"])]
    pub wasm: Option<PathBuf>,
    /// The method and its arguments as Candid text [default: ()].
    #[arg(long, value_names = ["METHOD", "ARGUMENTS"], num_args = 1..=2, requires = "wasm")]
    pub call: Option<Vec<String>>,
    /// Another canister on the same subnet, by name or path, or by NAME=PATH; may be repeated. Their
    /// ids are printed.
    #[arg(long, value_name = "CANISTER", requires = "wasm")]
    pub with: Vec<String>,
    #[command(flatten)]
    pub install: InstallArgs,
    /// Show what canisters print, on standard error. Without it, only what a call printed that failed.
    #[arg(long, requires = "wasm")]
    pub show_canister_output: bool,
    /// Begin with the canisters that were saved in this file.
    #[arg(long, value_name = "FILE", requires = "wasm")]
    pub state: Option<PathBuf>,
    /// Save the profile to this file; the default is to print the most expensive functions.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The format [default: by the name of the file].
    #[arg(long, value_enum)]
    pub format: Option<ProfileFormat>,
    #[command(flatten)]
    pub replica: ReplicaArgs,
    /// After --, other options of the suite, such as --batches 500.
    #[arg(last = true, conflicts_with = "wasm")]
    pub options: Vec<String>,
}

/// The format of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileFormat {
    /// A flame graph, for a browser (.svg).
    Svg,
    /// A line for each stack, with its instructions (.folded, .txt).
    Folded,
    /// The whole profile, described in docs/profiling.md (.json).
    Json,
    /// For profiler.firefox.com.
    Firefox,
}

/// A profile with its title.
struct Found {
    title: String,
    flame: Box<Flame>,
    /// The executions of a call, if it caused several.
    tree: Option<String>,
    /// The failure of a call.
    failed: Option<String>,
}

/// One profile, or the difference of two.
enum Shown {
    One(Found),
    Difference(Found, Found),
}

/// Profiles a case or a call.
pub fn profile(args: &ProfileArgs, output: &Output) -> Result<()> {
    if args.list {
        return print(&list(args)?);
    }
    // Report a file that cannot be written before profiling.
    let format = format(args)?;
    if let Some(out) = &args.out {
        check_writable(out)?;
    }
    let shown = shown(args, &output.progress)?;
    let command = safe_line(&command(args)).into_owned();
    let heading = Heading { title: shown.title(), command };
    let table = shown.table(output.terminal);
    match (format, &args.out) {
        (None, _) => print(&table)?,
        (Some(format), None) => print(&shown.text(format, &heading)?)?,
        (Some(format), Some(out)) => {
            save_text(out, &shown.text(format, &heading)?)?;
            print(&table)?;
            output.progress.note(&format!("saved to {}", out.display()));
        }
    }
    match shown {
        Shown::One(Found { failed: Some(failed), .. }) => bail!("{failed}"),
        _ => Ok(()),
    }
}

fn shown(args: &ProfileArgs, progress: &Progress) -> Result<Shown> {
    if let Some(wasm) = &args.wasm {
        let (replica, _) = embedded(&args.replica, progress)?;
        return of_call(args, wasm, &replica, progress).map(Shown::One);
    }
    if let Some(word) = args.install.words().first() {
        bail!("{word} is for a call of a canister: --wasm FILE --call METHOD");
    }
    // Check all cases before anything is built.
    let case = args.case.as_deref().unwrap_or_default();
    let first = choose(args, case)?;
    let second = args.diff.as_deref().map(|case| choose(args, case)).transpose()?;
    interrupt::listen()?;
    let (replica, cache) = embedded(&args.replica, progress)?;
    let found = |chosen| -> Result<Found> {
        of_case(chosen, args.whole_message, &replica, cache.as_ref(), progress)
    };
    let before = found(first)?;
    Ok(match second {
        None => Shown::One(before),
        Some(second) => Shown::Difference(before, found(second)?),
    })
}

/// Returns the format of the profile; `None` for the table only.
fn format(args: &ProfileArgs) -> Result<Option<ProfileFormat>> {
    let ending = |path: &Path| {
        path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default()
    };
    let format = match (args.format, &args.out) {
        (Some(format), _) => Some(format),
        (None, None) => None,
        (None, Some(out)) => Some(match ending(out).as_str() {
            "svg" => ProfileFormat::Svg,
            "folded" | "txt" => ProfileFormat::Folded,
            "json" => ProfileFormat::Json,
            _ => bail!(
                "{} does not end with .svg, .folded, .txt or .json; choose a format with --format",
                out.display()
            ),
        }),
    };
    let of_one = matches!(format, Some(ProfileFormat::Json | ProfileFormat::Firefox));
    if args.diff.is_some() && of_one {
        bail!("a difference has the format svg or folded");
    }
    Ok(format)
}

/// Returns the command that repeats the profile, with the options that affect its content.
fn command(args: &ProfileArgs) -> String {
    let mut words = vec!["stablebench profile".to_owned()];
    words.extend(args.case.as_deref().map(quoted));
    let path = |path: &Path| quoted(&path.display().to_string());
    for (option, value) in [
        ("--diff", args.diff.as_deref().map(quoted)),
        ("--rows", args.rows.map(|rows| rows.to_string())),
        ("--seed", args.seed.map(|seed| seed.to_string())),
        ("--wasm", args.wasm.as_deref().map(path)),
        (
            "--call",
            args.call
                .as_ref()
                .map(|words| words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" ")),
        ),
        ("--state", args.state.as_deref().map(path)),
        ("--rules", Some(args.replica.rules().to_string())),
    ] {
        words.extend(value.map(|value| format!("{option} {value}")));
    }
    words.extend(args.with.iter().map(|name| format!("--with {}", quoted(name))));
    words.extend(args.install.words());
    if args.whole_message {
        words.push("--whole-message".to_owned());
    }
    if !args.options.is_empty() {
        words.push("--".to_owned());
        words.extend(args.options.iter().map(|it| quoted(it)));
    }
    words.join(" ")
}

impl Shown {
    fn title(&self) -> String {
        match self {
            Self::One(found) => found.title.clone(),
            Self::Difference(before, after) => format!("{} → {}", before.title, after.title),
        }
    }

    fn table(&self, terminal: Terminal) -> String {
        match self {
            Self::One(found) => found.table(terminal),
            Self::Difference(before, after) => {
                let (one, other) = (before.flame.all(), after.flame.all());
                let factor = Factor(other as f64 / one as f64);
                format!(
                    "{}\n{}\n{factor} the instructions\n",
                    before.table(terminal),
                    after.table(terminal)
                )
            }
        }
    }

    fn text(&self, format: ProfileFormat, heading: &Heading) -> Result<String> {
        match (self, format) {
            (Self::One(found), ProfileFormat::Svg) => profile::svg(&found.flame, heading),
            (Self::One(found), ProfileFormat::Folded) => Ok(profile::folded(&found.flame)),
            (Self::One(found), ProfileFormat::Json) => profile::json(&found.flame, heading),
            (Self::One(found), ProfileFormat::Firefox) => profile::firefox(&found.flame, heading),
            (Self::Difference(before, after), ProfileFormat::Folded) => {
                Ok(profile::difference(&before.flame, &after.flame))
            }
            (Self::Difference(before, after), ProfileFormat::Svg) => {
                profile::svg_of_difference(&before.flame, &after.flame, heading)
            }
            (Self::Difference(..), ProfileFormat::Json | ProfileFormat::Firefox) => {
                bail!("a difference has the format svg or folded")
            }
        }
    }
}

impl Found {
    fn table(&self, terminal: Terminal) -> String {
        let Flame { instructions, heap_pages, .. } = &*self.flame;
        let mut text = format!("{}\n{} instructions", self.title, Grouped(*instructions));
        if let Some(messages) = self.flame.counted() {
            text += &format!(" in {messages}");
        }
        if *heap_pages > 0 {
            text += &format!(", and {} for heap pages", Grouped(*heap_pages));
        }
        text += &format!("\n\n{}", profile::table(&self.flame, terminal));
        if let Some(tree) = &self.tree {
            text += &format!("\n{tree}");
        }
        text
    }
}

/// Adds the title of the case to an error.
fn of<T>(result: Result<T>, title: &str) -> Result<T> {
    result.with_context(|| title.to_owned())
}

/// A case, and a plan that measures nothing else.
struct Chosen {
    title: String,
    section: String,
    name: String,
    configuration: String,
    planned: Planned,
}

/// The place of a case in a plan.
struct Place {
    fixture: usize,
    step: usize,
    section: String,
    name: String,
    configuration: String,
}

/// Returns the case with the name `text`.
///
/// # Errors
///
/// If there is none; the message lists similar ones. If it cannot be profiled.
fn choose(args: &ProfileArgs, text: &str) -> Result<Chosen> {
    let mut parts = text.trim_matches('/').split('/');
    let suite = suite(parts.next().unwrap_or_default())?;
    let section = parts.next().unwrap_or_default();
    let planned = planned(args, suite, section, parts.next().unwrap_or_default())?;
    let places = places(&planned.plan);
    let wanted = normal(text);
    let titles: Vec<String> = places.iter().map(|place| place.title(suite)).collect();
    let at = titles.iter().position(|title| normal(title) == wanted);
    let Some(place) = at.and_then(|at| places.into_iter().nth(at)) else {
        let titles = closest_by(&wanted, &titles, normal);
        let options = args.options.join(" ");
        let (with, list) = match options.as_str() {
            "" => (String::new(), String::new()),
            options => (format!(" with {options}"), format!(" -- {options}")),
        };
        bail!(
            "there is no case {text}{with}; the nearest are\n{}stablebench profile --list {}{list} \
             prints all",
            titles.iter().map(|title| format!("  {title}\n")).collect::<String>(),
            suite.name()
        );
    };
    let title = place.title(suite);
    let Place { section, name, configuration: column, .. } = &place;
    let (section, name, column) = (section.clone(), name.clone(), column.clone());
    let planned = only(planned, &place).with_context(|| title.clone())?;
    Ok(Chosen { title, section, name, configuration: column, planned })
}

/// Returns a line for each case that begins with the chosen text.
fn list(args: &ProfileArgs) -> Result<String> {
    let wanted = args.case.as_deref().unwrap_or_default();
    let mut parts = wanted.trim_matches('/').split('/');
    let only = parts.next().filter(|name| !name.is_empty()).map(suite).transpose()?;
    let section = parts.next().unwrap_or_default();
    let mut text = String::new();
    for suite in SUITES {
        if only.is_some_and(|only| only.name() != suite.name()) {
            continue;
        }
        let places = places(&planned(args, suite, section, "")?.plan);
        for title in places.iter().map(|place| place.title(suite)) {
            if normal(&title).starts_with(&normal(wanted)) {
                text += &format!("{title}\n");
            }
        }
    }
    if text.is_empty() {
        bail!("no case begins with {wanted}");
    }
    Ok(text)
}

fn suite(name: &str) -> Result<&'static dyn Suite> {
    let found = SUITES.iter().find(|suite| normal(suite.name()) == normal(name));
    found.copied().with_context(|| {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name()).collect();
        format!(
            "there is no suite {name}; a case is SUITE/SECTION/NAME/COLUMN, and the suites are {}",
            names.join(", ")
        )
    })
}

/// Returns the suite's plan with the chosen options, and those that are needed for the case.
fn planned(
    args: &ProfileArgs,
    suite: &'static dyn Suite,
    section: &str,
    name: &str,
) -> Result<Planned> {
    let mut words = suite.options_of_case(&normal(section), &normal(name), &args.options);
    words.extend(args.rows.map(|rows| format!("--rows={rows}")));
    words.extend(args.seed.map(|seed| format!("--seed={seed}")));
    words.extend(args.options.iter().cloned());
    Planned::of(suite, &words)
}

fn places(plan: &Plan) -> Vec<Place> {
    let mut places = Vec::new();
    for (fixture, of) in plan.fixtures.iter().enumerate() {
        for (step, case) in of.steps.iter().enumerate() {
            if let Some((section, name)) = case.row() {
                places.push(Place {
                    fixture,
                    step,
                    section: section.to_owned(),
                    name: name.to_owned(),
                    configuration: of.configuration.key.clone(),
                });
            }
        }
    }
    places
}

impl Place {
    fn title(&self, suite: &dyn Suite) -> String {
        title(suite, &self.section, &self.name, &self.configuration)
    }
}

/// Returns the plan without everything that the case does not need.
fn only(planned: Planned, place: &Place) -> Result<Planned> {
    let Planned { suite, args, command, mut plan } = planned;
    let mut fixture = plan.fixtures.swap_remove(place.fixture);
    fixture.retain(|at, _| at == place.step);
    for step in &mut fixture.steps {
        step.details = Details::default();
    }
    if fixture.steps.last().is_some_and(|step| matches!(step.measures, Measures::Capacity(_))) {
        bail!("a search for a capacity has many messages, none of which is the case");
    }
    if let Some(step) = fixture.steps.last()
        && step.job.choose(step.operations, args.seed)?.observer().is_some()
    {
        bail!(
            "a transaction is many measurements, one for each statement; profile a call of the \
             canister instead: stablebench profile --wasm bench.wasm --call sql '(\"SELECT 1\", vec {{}})'"
        );
    }
    // The functions in which instructions are spent do not depend on what is read back afterwards.
    let plan = Plan { check_around: true, ..Plan::new(plan.suite, vec![fixture]) };
    Ok(Planned { suite, args, command, plan })
}

/// Profiles the case, measured as its suite does it.
fn of_case(
    chosen: Chosen,
    whole: bool,
    replica: &Embedded,
    cache: Option<&Cache>,
    progress: &Progress,
) -> Result<Found> {
    let title = chosen.title.clone();
    of(profiled_case(chosen, whole, replica, cache, progress), &title)
}

fn profiled_case(
    chosen: Chosen,
    whole: bool,
    replica: &Embedded,
    cache: Option<&Cache>,
    progress: &Progress,
) -> Result<Found> {
    let Chosen { title, section, name, configuration: column, planned } = chosen;
    let (built, missing) = needed(&planned.plan, progress)?;
    let profiler = Profiler::new(replica.clone(), whole);
    let results = empty(&planned, &profiler, &built);
    let runner = Runner::new(&profiler, &built, &planned.plan, progress, None, results)?
        .with_cache(cache)
        .with_missing(missing);
    runner.run(1)?;
    let results = runner.results();
    let measured = match results.case(&section, &name, &column).map(|case| &case.outcome) {
        Some(Outcome::Measured(measured)) => measured,
        Some(Outcome::NotApplicable { reason }) => bail!("it is not applicable: {reason}"),
        Some(Outcome::Failed { reason }) => bail!("it failed: {reason}"),
        None => bail!("it was not measured"),
    };
    let flame = profiler.flame();
    let (counted, charged) = expected(measured, whole);
    if (flame.instructions, flame.all()) != (counted, charged) {
        bail!(
            "the profile has {} of {counted} instructions, {} of {charged} with heap pages: this \
             is a bug",
            flame.instructions,
            flame.all()
        );
    }
    Ok(Found { title, flame: Box::new(flame), tree: None, failed: None })
}

/// Returns the instructions that the profile must contain, without and with those for heap pages.
fn expected(measured: &Measured, whole: bool) -> (u64, u64) {
    let inside = measured.detail.as_ref().and_then(|detail| detail.cost.inside);
    match inside.filter(|_| whole) {
        Some(inside) => (inside.instructions, inside.charge),
        None => (measured.instructions, measured.instructions),
    }
}

/// Profiles a call of any canister with everything that it causes. The call is executed on two equal
/// subnets, of which one profiles. Both must give the same answer and the same executions at the same
/// cost.
fn of_call(
    args: &ProfileArgs,
    wasm: &Path,
    replica: &Embedded,
    progress: &Progress,
) -> Result<Found> {
    let words = args.call.as_deref().unwrap_or_default();
    let name = wasm.display().to_string();
    let chosen = subnet::Chosen {
        canister: &name,
        with: &args.with,
        state: args.state.as_deref(),
        install: &args.install,
    };
    let Loaded { subnet: mut profiled, callee, interface, names, .. } =
        load(chosen, &Environment::default(), replica, progress)?;
    let canister = profiled.canister(&callee).context("the canister is gone")?;
    let module = canister.module().context("the canister has no module")?;
    let Some(method) = words.first() else {
        bail!("name a method of the canister: --call METHOD; {}", interface.methods("", module));
    };
    let title = format!("{method} of {name}");
    let method = interface.method(method, module)?;
    let mut argument = words.get(1).cloned().map(Argument::Text);
    argument.iter_mut().try_for_each(|argument| argument.fill(&names))?;
    let argument = method.encode(argument.as_ref())?;
    check_size(&argument, module.rules(), &method.name)?;
    let normal = profiled.fork();
    profiled.set_profiling(true);
    let message =
        Message { callee, method: &method.name, argument: &argument, query: method.query };
    let notes = Notes { names: &names, output: args.show_canister_output, progress };
    of(profiled_call(normal, profiled, message, &title, notes), &title)
}

/// Options for showing the output of canisters.
#[derive(Clone, Copy)]
struct Notes<'a> {
    names: &'a Names,
    output: bool,
    progress: &'a Progress,
}

fn profiled_call(
    mut normal: Subnet,
    mut profiled: Subnet,
    message: Message<'_>,
    title: &str,
    Notes { names, output, progress }: Notes<'_>,
) -> Result<Found> {
    let expected = follow(&mut normal, message)?;
    let followed = follow(&mut profiled, message)?;
    followed.note(progress);
    compare(&expected.call.executions, &followed.call.executions)?;
    let balances = |subnet: &Subnet| subnet.canisters().map(Canister::balance).collect::<Vec<_>>();
    ensure!(
        expected.call.response == followed.call.response
            && balances(&normal) == balances(&profiled),
        "the profiled call has another answer, or other balances: this is a bug"
    );
    let executions = &followed.call.executions;
    note(executions, output || followed.call.response.is_err(), names, progress);
    let mut failed = None;
    if let Err(reject) = &followed.call.response {
        let first = followed.first(message.method);
        if first.is_none_or(|first| first.execution.instructions.get() == 0) {
            return Err(anyhow!("{reject}"));
        }
        // The profile up to the failure is valid.
        failed = Some(match executions.len() {
            1 => format!("the call failed; the profile ends there: {reject}"),
            _ => format!("the call failed: {reject}"),
        });
    }
    let tree = (executions.len() > 1).then(|| tree(executions));
    let flame = Box::new(of_executions(executions)?);
    Ok(Found { title: safe_line(title).into_owned(), flame, tree, failed })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;
    use stablebench_suite::plan::Effect;

    use super::*;
    use crate::suites::ungrouped;

    #[derive(clap::Parser)]
    struct Parsed {
        #[command(flatten)]
        args: ProfileArgs,
    }

    fn args(words: &[&str]) -> ProfileArgs {
        Parsed::try_parse_from([&["profile"], words].concat()).unwrap().args
    }

    fn chosen(words: &[&str]) -> Result<Chosen> {
        choose(&args(words), words[0])
    }

    #[test]
    fn the_spelling_need_not_be_exact() {
        for typed in [
            "users/insert/middle 1 000/sqlite/delete",
            "users/insert/middle-1000/sqlite/delete",
            "Users/Insert/middle 1\u{202f}000/SQLite-delete/",
            "users/insert/middle_1000/sqlite/delete",
        ] {
            let found = chosen(&[typed]).unwrap();
            assert_eq!(found.title, "users/insert/middle 1000/sqlite/delete", "{typed}");
            assert_eq!(
                (found.name.as_str(), found.configuration.as_str()),
                ("middle 1 000", "sqlite/delete")
            );
        }
    }

    #[test]
    fn any_number_of_rows_can_be_inserted() {
        for (typed, name, rows) in [
            ("users/insert/middle-7/sqlite/wal", "middle 7", "40"),
            ("users/insert/random-2500/btree", "random 2 500", "100000"),
        ] {
            assert_eq!(chosen(&[typed, "--rows", rows]).unwrap().name, name);
        }
        // Options that are chosen stay, and the others are those of the case.
        let random = ["users/insert/random-7/btree", "--rows=4000", "--", "--at", "random"];
        assert_eq!(chosen(&random).unwrap().name, "random 7");
        let batches = ["users/insert/middle-8/btree", "--", "--batches=8"];
        assert_eq!(chosen(&batches).unwrap().name, "middle 8");
        for (typed, option, nearest) in [
            ("users/insert/middle-7/btree", "--batches=8", "users/insert/middle 8/btree"),
            ("users/insert/middle-7/btree", "--at=random", "users/insert/random 7/btree"),
        ] {
            let error = chosen(&[typed, "--", option]).err().unwrap().to_string();
            assert!(error.contains(&format!("{typed} with {option}; the nearest are")), "{error}");
            assert!(error.contains(&format!("\n  {nearest}\n")), "{error}");
            assert!(error.contains(&format!("--list users -- {option} prints all")), "{error}");
        }
    }

    /// Otherwise one of the two could not be chosen.
    #[test]
    fn no_two_cases_have_equal_names() {
        let args = args(&["--list"]);
        let mut seen = BTreeSet::new();
        for suite in SUITES {
            let found = places(&planned(&args, suite, "", "").unwrap().plan);
            assert!(!found.is_empty(), "{}", suite.name());
            for place in found {
                let title = place.title(suite);
                assert!(seen.insert(normal(&title)), "{title}");
            }
        }
        let listed = list(&args).unwrap();
        assert_eq!(listed.lines().count(), seen.len());
    }

    #[test]
    fn lists_begin_with_the_chosen_text() {
        for (typed, first, count) in [
            ("users/insert/end", "users/insert/end 1/btree", 6 * 10),
            ("vfs", "vfs/", 8 * 2),
            ("users/capacity", "users/capacity/rows inserted", 3 * 10),
        ] {
            let listed = list(&args(&["--list", typed])).unwrap();
            assert!(listed.starts_with(first), "{listed}");
            assert!(listed.lines().count() >= count, "{listed}");
            assert!(
                listed.lines().all(|line| normal(line).starts_with(&normal(typed))),
                "{listed}"
            );
        }
        assert!(list(&args(&["--list", "users/nothing"])).is_err());
    }

    #[test]
    fn options_are_the_suites() {
        let case = "users/payload/50-bytes-100-rows-of-2000-insert-end/btree";
        assert!(chosen(&[case, "--rows=2000"]).is_err());
        let found = chosen(&[case, "--rows=2000", "--seed=7", "--", "--payloads=50"]).unwrap();
        let Planned { plan, args, .. } = found.planned;
        assert_eq!((plan.fixtures[0].rows, args.seed), (2_000, 7));
        assert_eq!((plan.fixtures.len(), plan.fixtures[0].cases().count()), (1, 1));
        let error = chosen(&["db-bench/benchmarks/fillseq/btree", "--rows=100"]).err().unwrap();
        assert!(format!("{error:#}").contains("--rows"), "{error:#}");
    }

    #[test]
    fn a_fixture_ends_with_the_case() {
        for (words, kept) in [
            // In a fork after the steps that populate.
            (&["keys", "", ""][..], None),
            (&["vfs", "", ""], None),
            (&["cuckoo", "", ""], None),
            // After all steps before it: three benchmarks, each with its preparation.
            (&["db-bench", "fillrandom", "sqlite/with-rowid"], Some(1 + 2 * 4)),
        ] {
            let [suite, name, column] = words else { unreachable!() };
            let planned =
                planned(&args(&["--list"]), super::suite(suite).unwrap(), "", "").unwrap();
            let places = places(&planned.plan);
            let wanted = |place: &&Place| {
                (name.is_empty() || place.name == *name)
                    && (column.is_empty() || place.configuration == *column)
            };
            let place = places.iter().rfind(wanted).or(places.last()).unwrap();
            let plan = only(planned, place).unwrap().plan;
            let fixture = &plan.fixtures[0];
            let last = fixture.steps.last().unwrap();
            assert_eq!(last.row(), Some((&*place.section, &*place.name)), "{suite}");
            let before = &fixture.steps[..fixture.steps.len() - 1];
            // Nothing else is profiled.
            assert!(
                before.iter().all(|step| step.effect != Effect::Dropped && step.row().is_none()),
                "{suite}"
            );
            assert!(fixture.populated <= fixture.steps.len(), "{suite}");
            assert!(kept.is_none_or(|kept| kept == fixture.steps.len()), "{suite}");
            assert_eq!(last.details, Details::default(), "{suite}");
        }
    }

    #[test]
    fn a_search_cannot_be_profiled() {
        let error = chosen(&["users/capacity/rows-scanned-in-one-query/btree"]).err().unwrap();
        assert!(format!("{error:#}").contains("many messages"), "{error:#}");
    }

    #[test]
    fn an_unknown_case_is_answered_with_the_nearest() {
        let error = chosen(&["users/insert/midle-1000/sqlite/delete"]).err().unwrap();
        assert!(
            error.to_string().contains("\n  users/insert/middle 1000/sqlite/delete\n"),
            "{error}"
        );
        let error = chosen(&["user/insert"]).err().unwrap();
        assert!(error.to_string().contains("the suites are users, "), "{error}");
    }

    #[test]
    fn digits_stand_together() {
        for (text, expected) in [
            ("1 000", "1000"),
            ("1 000 000 rows by 1 000", "1000000 rows by 1000"),
            ("10 100 rows", "10100 rows"),
            ("1 00 rows", "1 00 rows"),
            ("1 0000 rows", "1 0000 rows"),
            ("", ""),
        ] {
            assert_eq!(ungrouped(text), expected);
        }
    }
}
