//! The registry of suites. Each has a folder with its arguments, its plan, its tables and the
//! figures that others have published.

pub mod builds;
pub mod calls;
pub mod collections;
pub mod cuckoo;
pub mod db_bench;
pub mod history;
pub mod keys;
pub mod plan;
pub mod rows;
pub mod shard;
pub mod sysbench;
pub mod users;
pub mod vfs;

use std::ffi::OsStr;

use anyhow::{Context, Result, bail};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches};

use crate::report::{PLAIN, Presentation};
use crate::results::Results;
use plan::Plan;

/// A suite: a question, and the benchmarks that answer it.
pub trait Suite: Presentation {
    /// Returns the name on the command line and in results.
    fn name(&self) -> &'static str;

    /// Returns a line for the list of suites in the help.
    fn summary(&self) -> &'static str;

    /// Returns examples for the end of its help.
    fn examples(&self) -> &'static str;

    /// Adds the suite's own options to a command.
    fn arguments(&self, command: clap::Command) -> clap::Command;

    /// Returns the plan for the parsed options.
    ///
    /// # Errors
    ///
    /// If the options contradict each other.
    fn plan(&self, matches: &ArgMatches, seed: u64) -> Result<Plan>;

    /// Returns the ids of options that only decide about the exit code.
    fn gates(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns `true` if `run all` includes it.
    fn in_all(&self) -> bool {
        true
    }

    /// Returns published figures in the format of results, if there are any: `published:NAME`.
    fn published_results(&self) -> Option<&'static str> {
        None
    }

    /// Returns the options of a plan that contains a case and little else, unless the user has
    /// `chosen` others. Section and name are in lower case, with hyphens for everything but letters
    /// and digits.
    fn options_of_case(&self, _section: &str, _name: &str, _chosen: &[String]) -> Vec<String> {
        Vec::new()
    }
}

/// Every suite.
pub static SUITES: [&dyn Suite; 10] = [
    &users::Users,
    &db_bench::DbBench,
    &keys::KeysSuite,
    &sysbench::SysbenchSuite,
    &cuckoo::CuckooSuite,
    &vfs::VfsSuite,
    &history::HistorySuite,
    &calls::CallsSuite,
    &builds::BuildsSuite,
    &collections::CollectionsSuite,
];

/// Returns the suite with this name.
pub fn suite(name: &str) -> Option<&'static dyn Suite> {
    SUITES.iter().copied().find(|suite| suite.name() == name)
}

/// Returns the presentation of some results: that of their suite, or a plain one if this program
/// does not have the suite.
pub fn presentation(results: &Results) -> &'static dyn Presentation {
    match suite(&results.suite) {
        Some(suite) => suite,
        None => &PLAIN,
    }
}

/// Returns the published figures with this name.
///
/// # Errors
///
/// If there are none; the message lists the known names.
pub fn published(name: &str) -> Result<Results> {
    let known = || SUITES.iter().filter(|suite| suite.published_results().is_some());
    match known().find(|suite| suite.name() == name).and_then(|suite| suite.published_results()) {
        Some(text) => Results::parse(text).with_context(|| format!("published:{name}")),
        None => {
            let names: Vec<&str> = known().map(|suite| suite.name()).collect();
            bail!("there are no published figures {name}; known names: {}", names.join(", "))
        }
    }
}

/// Returns the words that repeat the `wanted` options of a command line that were given explicitly,
/// in the order of the help.
pub fn words(
    command: &clap::Command,
    matches: &ArgMatches,
    wanted: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut words = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let given = wanted(id) && matches.value_source(id) == Some(ValueSource::CommandLine);
        let Some(long) = argument.get_long().filter(|_| given) else { continue };
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            words.push(format!("--{long}"));
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        let values: Vec<_> = values.map(OsStr::to_string_lossy).collect();
        let equals = if argument.is_require_equals_set() { '=' } else { ' ' };
        match argument.get_value_delimiter() {
            Some(_) => words.push(format!("--{long}{equals}{}", values.join(","))),
            None => words.extend(values.iter().map(|value| format!("--{long}{equals}{value}"))),
        }
    }
    words
}

/// Returns the items without repetitions, in the order of their first occurrences.
pub fn unique<T: Clone + PartialEq>(items: &[T]) -> Vec<T> {
    let mut seen: Vec<T> = Vec::new();
    for item in items {
        if !seen.contains(item) {
            seen.push(item.clone());
        }
    }
    seen
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns the plan of a suite for options as on the command line.
    pub fn plan_of(suite: &dyn Suite, typed: &str) -> Result<Plan> {
        let typed = typed.split(' ').filter(|word| !word.is_empty());
        let command = suite.arguments(clap::Command::new(suite.name()));
        let matches = command.try_get_matches_from([suite.name()].into_iter().chain(typed))?;
        suite.plan(&matches, 1)
    }

    #[test]
    fn names_are_unique_and_sections_have_titles() {
        for suite in SUITES {
            let found = SUITES.iter().filter(|other| other.name() == suite.name());
            assert_eq!(found.count(), 1, "{}", suite.name());
            let plan = plan_of(suite, "").unwrap();
            for (section, _) in &plan.rows {
                assert!(suite.section(section).is_some(), "{}: {section}", suite.name());
            }
            assert!(suite.section("nothing").is_none());
        }
    }

    /// No two cases of a plan have the same section, name and configuration.
    #[test]
    fn cases_are_unique() {
        for (suite, typed) in SUITES.iter().map(|suite| (suite.name(), "")).chain([
            ("users", "--sections=all"),
            ("keys", "--schemas a,a --keys ulid,ulid --engines sqlite,sqlite"),
        ]) {
            let plan = plan_of(super::suite(suite).unwrap(), typed).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for fixture in &plan.fixtures {
                for (section, name) in fixture.cases() {
                    let case = (section, name, &fixture.configuration.key);
                    assert!(seen.insert(case), "{suite}: {case:?}");
                }
            }
        }
    }

    /// The words that repeat a command line plan the same run.
    #[test]
    fn words_repeat_the_run() {
        for (name, typed) in [
            ("users", ""),
            ("users", "--sections=all --per-operation --check-around --curve-rows=500"),
            ("users", "--sections=settings --product --page-sizes=512 --cache-sizes=-100,5"),
            (
                "users",
                "--batches=3,9 --at=random --engines=array,sqlite/wal,page_size=512 --rows=50",
            ),
            ("users", "--as-published"),
            ("db-bench", "--histogram --num=500 --reads=7"),
            ("db-bench", "--benchmarks=fillseq,readseq --histogram=1 --page_size=512"),
            ("db-bench", "--engines=leveldb/snappy,write_buffer_size=70000,sqlite-vfs"),
            ("keys", "--rows 400000 --watches 200 --movies 10000"),
            ("keys", "--schemas d,c-rowid --keys uuidv7,integer --foreign-keys off"),
            ("sysbench", "--base=sqlite/off,page_size=512 --keys=text,text --rows=7"),
            ("sysbench", "--other=sqlite/wal --other=doltlite --max-ratio=6"),
            ("cuckoo", "--num 256 --engines cuckoo/identity,array --keys scattered"),
            ("vfs", "--other doltlite --sections reads --rows 50 --sizes 1,50"),
            ("history", "--rows 500 --changes 1,7"),
            ("builds", "--build lto=fat,wasm-opt=O3 --build default --work heap,install"),
            ("collections", "--entries 70,50 --maps motoko-map,rust-table"),
            ("calls", "--sizes 0,5 --fan-out 2 --states 7 --sections size,fan-out,upgrade"),
        ] {
            let suite = suite(name).unwrap();
            let command = || suite.arguments(clap::Command::new(name));
            let given = [name].into_iter().chain(typed.split(' ').filter(|word| !word.is_empty()));
            let matches = command().try_get_matches_from(given).unwrap();
            let again = words(&command(), &matches, |_| true).join(" ");
            let first = plan_of(suite, typed).unwrap();
            let second = plan_of(suite, &again).unwrap();
            assert_eq!(format!("{first:?}"), format!("{second:?}"), "{again}");
        }
    }
}
