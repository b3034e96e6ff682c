//! Scenarios that run on several replicas: the embedded one, the tool as a PocketIC server, and a real
//! server.
//!
//! Each pair of a replica and a scenario is one test:
//!
//! ```text
//!   embedded::NAME      the embedded replica
//!   served_16::NAME     `stablebench pocket-ic`, through the newest client and the one of the
//!   served_10::NAME     generation on which cases were recorded
//!   pocket_ic::NAME     the server that POCKET_IC_BIN names, if it is set
//!   failures::NAME      the tool's errors when a server is missing, unsupported or fails
//! ```
//!
//! Every answer is compared with that of the embedded replica, so the servers' answers are equal too.
//! Those on servers need the feature `pocket-ic`; `docs/testing-with-pocket-ic.md` explains how to run
//! them and where to get a server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod pair;
mod replica;
mod scenarios;

#[cfg(feature = "pocket-ic")]
#[path = "../../examples/pocket_ic.rs"]
mod example;
#[cfg(feature = "pocket-ic")]
mod failures;
#[cfg(feature = "pocket-ic")]
mod faulty;
#[cfg(feature = "pocket-ic")]
mod served;
#[cfg(feature = "pocket-ic")]
mod server;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use replica::{Embedded, Replica, Rules};
use scenarios::{SCENARIOS, Scenario};

fn main() -> ExitCode {
    #[cfg(feature = "pocket-ic")]
    if let Some(arguments) = faulty::arguments() {
        return faulty::main(&arguments);
    }
    let arguments = Arguments::from_args();
    // `run` takes the trials, so servers stop with the last trial that uses them.
    libtest_mimic::run(&arguments, trials(&arguments)).exit_code()
}

/// Returns the tests of this build.
#[cfg_attr(not(feature = "pocket-ic"), expect(unused_variables, reason = "there is no server"))]
fn trials(arguments: &Arguments) -> Vec<Trial> {
    let embedded: Arc<dyn Replica> = Arc::new(Embedded(Rules::of_2025_10()));
    let mut trials = on("embedded", &embedded, SCENARIOS);
    #[cfg(not(feature = "pocket-ic"))]
    {
        let name = "failures::built_without_the_feature";
        trials.push(Trial::test(name, built_without_the_feature));
    }
    #[cfg(feature = "pocket-ic")]
    {
        use server::{BINARY, PocketIc};
        if std::env::var_os(BINARY).is_some() {
            trials.extend(on("pocket_ic", &PocketIc::from_environment(), SCENARIOS));
        }
        if !arguments.list {
            for (name, version) in served::VERSIONS {
                trials.extend(on(name, &PocketIc::served(version), SCENARIOS));
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
