//! `stablebench run`: a suite from what was typed to what is printed.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use sha2::{Digest, Sha256};

use super::Output;
use super::ceilings::ceilings;
use super::replica::{check, target};
use super::revision::revision;
use crate::canisters::{self, Built, SOURCES, Source};
use crate::cli::{RunArgs, Suite};
use crate::interrupt::{self, Interrupted};
use crate::progress::Progress;
use crate::replica::Replica;
use crate::report;
use crate::report::number::Grouped;
use crate::results::{CanisterInfo, Case, FORMAT, Outcome, Results, RunFile};
use crate::runner::Runner;
use crate::suites::outline::Outline;
use crate::suites::{cuckoo, db_bench, history, keys, lane, sysbench, users, vfs};

/// Runs a suite and prints what it found.
pub fn suite(suite: &Suite, output: &Output) -> Result<ExitCode> {
    if let Suite::All(args) = suite {
        return super::all::all(args, output);
    }
    let (args, planned) = plan(suite)?;
    if let Planned::Users(plan) = &planned
        && !plan.left_out.is_empty()
    {
        let batches: Vec<String> =
            plan.left_out.iter().map(|rows| Grouped(*rows).to_string()).collect();
        output.progress.note(&format!(
            "left out: batches of {} rows, which do not fit between the others; more --rows have \
             room for them",
            batches.join(", ")
        ));
    }
    if args.list {
        print(&planned.list())?;
        return Ok(ExitCode::SUCCESS);
    }
    let results = run(args, &planned, output)?;
    match suite {
        Suite::Sysbench(args) => ceilings(args, &results, output),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What the arguments of a suite mean.
pub fn plan(suite: &Suite) -> Result<(&RunArgs, Planned)> {
    Ok(match suite {
        Suite::Users(args) => (&args.run, Planned::Users(users::Plan::new(args)?)),
        Suite::DbBench(args) => (&args.run, Planned::Lanes(db_bench::plan(args)?)),
        Suite::Keys(args) => (&args.run, Planned::Lanes(keys::plan(args)?)),
        Suite::Sysbench(args) => (&args.run, Planned::Lanes(sysbench::plan(args)?)),
        Suite::Cuckoo(args) => (&args.run, Planned::Lanes(cuckoo::plan(args)?)),
        Suite::Vfs(args) => (&args.run, Planned::Lanes(vfs::plan(args)?)),
        Suite::History(args) => (&args.run, Planned::Lanes(history::plan(args)?)),
        Suite::All(_) => bail!("all suites have no plan together"),
    })
}

/// What a suite is going to measure.
pub enum Planned {
    Users(users::Plan),
    Lanes(lane::Plan),
}

impl Planned {
    pub fn outline(&self) -> &Outline {
        match self {
            Self::Users(plan) => &plan.outline,
            Self::Lanes(plan) => &plan.outline,
        }
    }

    /// Measures what is not measured yet, `jobs` canisters side by side.
    pub fn measure(&self, runner: &Runner<'_>, jobs: usize) -> Result<()> {
        match self {
            Self::Users(plan) => runner.run(jobs, &plan.stores, Runner::store),
            Self::Lanes(plan) => runner.run(jobs, &plan.lanes, Runner::lane),
        }
    }

    fn list(&self) -> String {
        match self {
            Self::Users(plan) => list_stores(plan),
            Self::Lanes(plan) => list_lanes(plan),
        }
    }
}

fn run(args: &RunArgs, planned: &Planned, output: &Output) -> Result<Results> {
    let outline = planned.outline();
    let out = args.out(outline.suite);
    let mut file = RunFile::new(&out)?;
    interrupt::listen()?;
    let progress = &output.progress;
    check(&args.target, &args.replica)?;
    let built = needed(outline, progress)?;
    let target = target(&args.target, &args.replica, &out, &built, progress)?;
    let replica = &*target.replica;
    let mut results = empty(outline, replica, &built);
    if args.resume {
        results = resumed(&mut file, results, progress)?;
    }
    let mut jobs = usize::try_from(args.jobs).unwrap_or(1);
    if let Some(spending) = &target.spending {
        spending.agree(args, planned, &built, &results, progress)?;
        progress.note("one store after the other: a canister holds one at a time");
        jobs = 1;
    }
    let runner = Runner::new(replica, &built, outline, progress, Some(file), results)?
        .with_cache(target.cache.as_ref());
    let ran = planned.measure(&runner, jobs);
    let results = runner.results();
    if !results.cases.is_empty() {
        print(&report::render(&results, args.format, output.terminal)?)?;
    }
    let (saved, left) = runner.file().map(|file| (file.told(), file.left())).unwrap_or_default();
    match ran {
        Err(error) if error.is::<Interrupted>() => {
            Err(error.context(format!("the run is not complete; {left}")))
        }
        Err(error) => Err(error.context(format!("the run failed; {left}"))),
        Ok(()) => {
            progress.note(&saved);
            failures(&results)?;
            Ok(results)
        }
    }
}

/// The canisters of the columns, built.
pub fn needed(outline: &Outline, progress: &Progress) -> Result<Vec<Built>> {
    let needed =
        |source: &&Source| outline.columns.iter().any(|column| column.canister == source.name);
    SOURCES.iter().filter(needed).map(|source| canisters::build(*source, progress)).collect()
}

/// Results without cases.
pub fn empty(outline: &Outline, replica: &dyn Replica, built: &[Built]) -> Results {
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
        revision: revision(canisters::root()),
        suite: outline.suite.to_owned(),
        command: outline.command.clone(),
        published: outline.published.clone(),
        seed: outline.seed,
        prices: outline.prices,
        replica: replica.identity(),
        canisters: built.iter().map(canister).collect(),
        columns: outline.columns.clone(),
        stores: Vec::new(),
        cases: Vec::new(),
        harness: Vec::new(),
    }
}

/// The canisters by name and hash.
fn modules(results: &Results) -> String {
    let module = |of: &CanisterInfo| format!("{} {}", of.name, of.sha256);
    results.canisters.iter().map(module).collect::<Vec<_>>().join(", ")
}

/// What the saved run found, if it was the same run.
fn resumed(file: &mut RunFile, new: Results, progress: &Progress) -> Result<Results> {
    let old = file.resume()?;
    let out = file.path().display();
    let Some(old) = old else {
        progress.note(&format!("there is no run at {out} yet; it begins"));
        return Ok(new);
    };
    for (what, saved, now) in [
        ("command", &old.command, &new.command),
        ("canister", &modules(&old), &modules(&new)),
        ("stablebench", &old.stablebench, &new.stablebench),
        ("replica", &format!("{:?}", old.replica), &format!("{:?}", new.replica)),
    ] {
        if saved != now {
            bail!(
                "the run saved at {out} cannot go on, its {what} was another one:\n  saved: {saved}\n  \
                 now:   {now}\nrepeat it without --resume, or choose another --out"
            );
        }
    }
    // What has failed is measured again.
    let failed = |case: &&Case| matches!(case.outcome, Outcome::Failed { .. });
    let done = old.cases.len() - old.cases.iter().filter(failed).count();
    progress.note(&format!("{done} cases are measured already"));
    Ok(Results { stores: old.stores, cases: old.cases, harness: old.harness, ..new })
}

/// Cases that failed make the run fail, but only in the end.
fn failures(results: &Results) -> Result<()> {
    let failed: Vec<String> = results
        .cases
        .iter()
        .filter_map(|case| match &case.outcome {
            Outcome::Failed { reason } => Some(format!("  {}: {reason}", case.title())),
            Outcome::Measured(_) | Outcome::NotApplicable { .. } => None,
        })
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} cases failed; add --resume to try them again:\n{}", failed.len(), failed.join("\n"))
}

pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

fn list_stores(plan: &users::Plan) -> String {
    let mut text = String::new();
    for store in &plan.stores {
        text += &format!(
            "{} with {} rows of {} bytes\n",
            store.setting.key(),
            Grouped(store.rows),
            Grouped(store.payload.into())
        );
        for case in &store.cases {
            text += &format!("  {:<12} {}\n", case.section.name(), case.name);
        }
    }
    text
}

fn list_lanes(plan: &lane::Plan) -> String {
    let mut text = String::new();
    for lane in &plan.lanes {
        text += &format!("{}, {} rows of {} bytes", lane.column.key, lane.rows, lane.payload);
        if !lane.name.is_empty() {
            text += &format!(", {}", lane.name);
        }
        text += "\n";
        for (section, name) in lane.steps.iter().filter_map(|step| step.case.as_ref()) {
            text += &format!("  {section}: {name}\n");
        }
    }
    text
}
