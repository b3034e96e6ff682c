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

mod bench;
mod messages;
mod replica;

#[cfg(feature = "pocket-ic")]
#[path = "../../examples/pocket_ic.rs"]
mod example;
#[cfg(feature = "pocket-ic")]
mod failures;
#[cfg(feature = "pocket-ic")]
mod server;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use stablebench_protocol::{Engine, JournalMode};

use replica::{Embedded, Replica, Rules};

/// A test on a replica. It panics if the replica does not behave as expected.
type Scenario = fn(&dyn Replica);

/// All scenarios by name.
#[rustfmt::skip]
const SCENARIOS: &[(&str, Scenario)] = &[
    ("controllers_call_every_method", bench::controllers_call_every_method),
    ("strangers_may_only_query", bench::strangers_may_only_query),
    ("counts_of_btree", |replica| bench::counts_of_engine(replica, Engine::BTREE)),
    ("counts_of_append", |replica| bench::counts_of_engine(replica, Engine::APPEND)),
    ("counts_of_array", |replica| bench::counts_of_engine(replica, Engine::ARRAY)),
    ("counts_of_sqlite_delete", |replica| bench::counts_of_sqlite(replica, JournalMode::Delete)),
    ("counts_of_sqlite_truncate", |replica| bench::counts_of_sqlite(replica, JournalMode::Truncate)),
    ("counts_of_sqlite_persist", |replica| bench::counts_of_sqlite(replica, JournalMode::Persist)),
    ("counts_of_sqlite_memory", |replica| bench::counts_of_sqlite(replica, JournalMode::Memory)),
    ("counts_of_sqlite_wal", |replica| bench::counts_of_sqlite(replica, JournalMode::Wal)),
    ("counts_of_sqlite_off", |replica| bench::counts_of_sqlite(replica, JournalMode::Off)),
    ("suite_users", |replica| bench::suite(replica, bench::USERS)),
    ("suite_db_bench", |replica| bench::suite(replica, bench::DB_BENCH)),
    ("suite_keys", |replica| bench::suite(replica, bench::KEYS)),
    ("suite_sysbench", |replica| bench::suite(replica, bench::SYSBENCH)),
    ("suite_cuckoo", |replica| bench::suite(replica, bench::CUCKOO)),
    ("suite_sql", |replica| bench::suite(replica, bench::SQL)),
    ("suite_mix", |replica| bench::suite(replica, bench::MIX)),
    ("install_small_and_large", messages::install_small_and_large),
    ("install_refused", messages::install_refused),
    ("install_that_traps", messages::install_that_traps),
    ("upgrade", messages::upgrade),
    ("upgrade_that_traps", messages::upgrade_that_traps),
    ("upgrade_then_restore", messages::upgrade_then_restore),
    ("reinstall", messages::reinstall),
    ("snapshot", messages::snapshot),
    ("snapshots_replace_each_other", messages::snapshots_replace_each_other),
    ("snapshot_of_an_open_connection", messages::snapshot_of_an_open_connection),
    ("traps_roll_back", messages::traps_roll_back),
    ("rejects_keep_changes", messages::rejects_keep_changes),
    ("queries_roll_back", messages::queries_roll_back),
    ("query_instruction_limit", messages::query_instructions),
    ("update_instruction_limit", messages::update_instructions),
    ("reply_size_limit", messages::reply_size),
    ("query_stable_page_limit", messages::query_stable_pages),
    ("long_message", messages::long_message),
    ("long_message_that_traps", messages::long_message_that_traps),
];

fn main() -> ExitCode {
    #[cfg(feature = "pocket-ic")]
    if let Some(arguments) = failures::arguments() {
        return failures::serve(&arguments);
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
        use server::{BINARY, PocketIc, VERSIONS};
        if std::env::var_os(BINARY).is_some() {
            trials.extend(on("pocket_ic", &PocketIc::from_environment(), SCENARIOS));
        }
        if !arguments.list {
            for (name, version) in VERSIONS {
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
    use bench::{stablebench, stderr, stdout};
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
