//! Scenarios that run on several replicas: the embedded one and PocketIC servers.
//!
//! Each pair of a replica and a scenario is one test:
//!
//! ```text
//!   embedded::NAME      the embedded replica; always run
//!   pocket_ic::NAME     the server that POCKET_IC_BIN names; ignored, with a line that gives the
//!                       reason, without a server or without the feature `pocket-ic`
//!   stand_in_10::NAME   this program as a server of either generation; tests the client side of
//!   stand_in_16::NAME   the connection with a few scenarios, and says nothing about PocketIC
//!   failures::NAME      the tool's errors when a server is missing, unsupported or fails
//! ```
//!
//! `docs/testing-with-pocket-ic.md` explains how to run them and where to get a server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]

mod pair;
mod replica;
mod scenarios;

#[cfg(feature = "pocket-ic")]
#[path = "../../examples/pocket_ic.rs"]
mod example;
#[cfg(feature = "pocket-ic")]
mod failures;
#[cfg(feature = "pocket-ic")]
mod server;
#[cfg(feature = "pocket-ic")]
mod stand_in;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use replica::{Embedded, Replica, Rules};
use scenarios::{SCENARIOS, Scenario};

fn main() -> ExitCode {
    #[cfg(feature = "pocket-ic")]
    if let Some(command) = stand_in::command() {
        return stand_in::main(&command);
    }
    let arguments = Arguments::from_args();
    // `run` takes the trials, so servers stop with the last trial that uses them.
    libtest_mimic::run(&arguments, trials(&arguments)).exit_code()
}

/// Returns the tests of this build, including those that this machine has to ignore.
fn trials(arguments: &Arguments) -> Vec<Trial> {
    let embedded: Arc<dyn Replica> = Arc::new(Embedded(Rules::of_2025_10()));
    let mut trials = on("embedded", &embedded, SCENARIOS);
    #[cfg(not(feature = "pocket-ic"))]
    {
        trials.extend(ignored(arguments, "built without --features pocket-ic"));
        let name = "failures::built_without_the_feature";
        trials.push(Trial::test(name, built_without_the_feature));
    }
    #[cfg(feature = "pocket-ic")]
    {
        use server::{BINARY, PocketIc};
        match std::env::var_os(BINARY) {
            Some(_) => trials.extend(on("pocket_ic", &PocketIc::from_environment(), SCENARIOS)),
            None => trials.extend(ignored(arguments, &format!("{BINARY} is not set"))),
        }
        if !arguments.list {
            let covered: Vec<_> = SCENARIOS
                .iter()
                .filter(|(name, _)| stand_in::SCENARIOS.contains(name))
                .copied()
                .collect();
            assert_eq!(covered.len(), stand_in::SCENARIOS.len());
            for (name, version) in [("stand_in_10", "10.0.0"), ("stand_in_16", "16.1.0")] {
                trials.extend(on(name, &PocketIc::stand_in(version), &covered));
            }
        }
        trials.extend(failures::trials());
    }
    trials
}

/// Returns one test for each scenario on the given replica.
fn on(name: &str, replica: &Arc<dyn Replica>, scenarios: &[(&str, Scenario)]) -> Vec<Trial> {
    let trial = |&(scenario, run): &(&str, Scenario)| {
        let replica = Arc::clone(replica);
        Trial::test(format!("{name}::{scenario}"), move || {
            run(&*replica);
            Ok(())
        })
    };
    scenarios.iter().map(trial).collect()
}

/// Returns all scenarios as ignored tests, and prints the reason for each.
fn ignored(arguments: &Arguments, reason: &str) -> Vec<Trial> {
    let trial = |(scenario, _): &(&str, Scenario)| {
        let name = format!("pocket_ic::{scenario}");
        if !arguments.list && is_selected(arguments, &name) {
            eprintln!("ignored: {name}: {reason}");
        }
        // With `--ignored` or `--include-ignored` the test runs, and fails.
        let reason = reason.to_owned();
        Trial::test(name, move || Err(reason.into())).with_ignored_flag(true)
    };
    SCENARIOS.iter().map(trial).collect()
}

/// Returns `true` if the filters on the command line select the test.
fn is_selected(arguments: &Arguments, name: &str) -> bool {
    let matches = |pattern: &String| match arguments.exact {
        true => name == pattern,
        false => name.contains(pattern.as_str()),
    };
    arguments.filter.as_ref().is_none_or(matches) && !arguments.skip.iter().any(matches)
}

#[cfg(not(feature = "pocket-ic"))]
fn built_without_the_feature() -> Result<(), libtest_mimic::Failed> {
    use scenarios::suites::{stablebench, stderr, stdout};
    let directory = tempfile::tempdir()?;
    let mut run = stablebench(directory.path());
    let output =
        run.args(["run", "users", "--replica=pocket-ic", "--rows=10", "--batches=1"]).output()?;
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(stdout(&output), "");
    assert!(message.contains("--features pocket-ic"), "{message}");
    assert!(std::fs::read_dir(directory.path())?.next().is_none(), "nothing is saved");
    Ok(())
}
