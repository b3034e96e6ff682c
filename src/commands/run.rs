//! `stablebench run users`, and what runs without a command.

use std::io::Write;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::replica::target;
use crate::canisters::{self, BENCH};
use crate::cli::UsersArgs;
use crate::interrupt::{self, Interrupted};
use crate::progress::Progress;
use crate::report;
use crate::report::number::Grouped;
use crate::results::{CanisterInfo, FORMAT, Results};
use crate::runner::Runner;
use crate::suites::users::Plan;

/// Runs the users suite and prints what it found.
pub fn users(args: &UsersArgs) -> Result<()> {
    let plan = Plan::new(args);
    if args.list {
        return list(&plan);
    }
    // A run whose insertions are impossible must not populate first.
    for insertion in &plan.insertions {
        plan.ids(*insertion).with_context(|| {
            format!(
                "{} rows cannot be added in the {} of {}; choose other --batches or more --rows",
                Grouped(insertion.rows),
                insertion.place,
                Grouped(plan.rows)
            )
        })?;
    }
    Results::check_writable(&args.out)?;
    interrupt::listen()?;
    let progress = Progress::new();
    let replica = target(&args.target, &args.replica, &args.out, &progress)?;
    let built = canisters::build(BENCH, &progress)?;
    let results = Results {
        format: FORMAT,
        stablebench: env!("CARGO_PKG_VERSION").to_owned(),
        revision: revision(),
        suite: "users".to_owned(),
        command: plan.command.clone(),
        as_published: plan.as_published,
        replica: replica.identity(),
        canister: CanisterInfo {
            name: built.name.clone(),
            sha256: format!("{:x}", Sha256::digest(&built.wasm)),
            bytes: built.wasm.len() as u64,
            crates: Vec::new(),
            sqlite: None,
        },
        rows: plan.rows,
        payload: plan.payload,
        settings: Vec::new(),
        cases: Vec::new(),
    };
    let runner = Runner::new(&*replica, &built.wasm, &plan, &progress, &args.out, results)?;
    let ran = runner.run(usize::try_from(args.jobs).unwrap_or(1));
    let results = runner.results();
    if !results.cases.is_empty() {
        print(&report::render(&results, args.format)?)?;
    }
    let saved = format!("{} cases saved to {}", results.cases.len(), args.out.display());
    match ran {
        Err(error) if error.is::<Interrupted>() => {
            Err(error.context(format!("the run is not complete; {saved}")))
        }
        Err(error) => Err(error.context(format!("the run failed; {saved}"))),
        Ok(()) => {
            progress.note(&saved);
            Ok(())
        }
    }
}

fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn list(plan: &Plan) -> Result<()> {
    let mut text = String::new();
    for setting in &plan.settings {
        for insertion in &plan.insertions {
            text += &format!(
                "{:<16} {:<6} {:>10} rows\n",
                setting.key(),
                insertion.place,
                Grouped(insertion.rows)
            );
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
