//! `stablebench run users`, and what runs without a command.

use std::io::Write;

use anyhow::{Result, bail};
use sha2::{Digest, Sha256};

use super::replica::target;
use crate::canisters::{self, BENCH, Built};
use crate::cli::UsersArgs;
use crate::interrupt::{self, Interrupted};
use crate::progress::Progress;
use crate::replica::Replica;
use crate::report;
use crate::report::number::Grouped;
use crate::results::{CanisterInfo, FORMAT, Outcome, Results};
use crate::runner::Runner;
use crate::suites::users::{Plan, Setting};

/// Runs the users suite and prints what it found.
pub fn users(args: &UsersArgs) -> Result<()> {
    let plan = Plan::new(args)?;
    if args.list {
        return list(&plan);
    }
    Results::check_writable(&args.out)?;
    interrupt::listen()?;
    let progress = Progress::new();
    let replica = target(&args.target, &args.replica, &args.out, &progress)?;
    let built = canisters::build(BENCH, &progress)?;
    let mut results = empty(&plan, &*replica, &built);
    if args.resume {
        results = resumed(args, results, &progress)?;
    }
    let runner = Runner::new(&*replica, &built.wasm, &plan, &progress, &args.out, results)?;
    let ran = runner.run(usize::try_from(args.jobs).unwrap_or(1));
    let results = runner.results();
    if !results.cases.is_empty() {
        print(&report::render(&results, args.format)?)?;
    }
    // What the disk holds, which may have refused the last.
    let cases = Results::read(&args.out).map_or(0, |saved| saved.cases.len());
    let saved = format!("{} cases saved to {}", Grouped(cases as u64), args.out.display());
    match ran {
        Err(error) if error.is::<Interrupted>() => {
            Err(error.context(format!("the run is not complete; {saved}; add --resume to go on")))
        }
        Err(error) => Err(error.context(format!("the run failed; {saved}; add --resume to go on"))),
        Ok(()) => {
            progress.note(&saved);
            failures(&results)
        }
    }
}

/// Results without cases.
fn empty(plan: &Plan, replica: &dyn Replica, built: &Built) -> Results {
    Results {
        format: FORMAT,
        stablebench: env!("CARGO_PKG_VERSION").to_owned(),
        revision: revision(),
        suite: "users".to_owned(),
        command: plan.command.clone(),
        published: plan.published.clone(),
        seed: plan.seed,
        prices: plan.prices,
        replica: replica.identity(),
        canister: CanisterInfo {
            name: built.name.clone(),
            sha256: format!("{:x}", Sha256::digest(&built.wasm)),
            bytes: built.wasm.len() as u64,
            crates: Vec::new(),
            sqlite: None,
        },
        columns: plan.settings().iter().map(Setting::column).collect(),
        stores: Vec::new(),
        cases: Vec::new(),
    }
}

/// What the saved run found, if it was the same run.
fn resumed(args: &UsersArgs, new: Results, progress: &Progress) -> Result<Results> {
    let old = match Results::read(&args.out) {
        Ok(old) => old,
        Err(_) if !args.out.exists() => {
            progress.note(&format!("there is no run at {} yet; it begins", args.out.display()));
            return Ok(new);
        }
        Err(error) => return Err(error),
    };
    for (what, saved, now) in [
        ("command", &old.command, &new.command),
        ("canister", &old.canister.sha256, &new.canister.sha256),
        ("stablebench", &old.stablebench, &new.stablebench),
        ("replica", &format!("{:?}", old.replica), &format!("{:?}", new.replica)),
    ] {
        if saved != now {
            bail!(
                "the run saved at {} cannot go on, its {what} was another one:\n  saved: {saved}\n  \
                 now:   {now}\nrepeat it without --resume, or choose another --out",
                args.out.display()
            );
        }
    }
    progress.note(&format!("{} cases are measured already", old.cases.len()));
    Ok(Results { stores: old.stores, cases: old.cases, ..new })
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
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn list(plan: &Plan) -> Result<()> {
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
    print(&text)
}

/// The revision that the sources are at, where git can tell.
fn revision() -> Option<String> {
    let output = std::process::Command::new("git")
        .args(["describe", "--always", "--dirty", "--exclude=*"])
        .current_dir(canisters::root())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
