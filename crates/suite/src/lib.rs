//! Everything that a suite is written with, apart from its question.
//!
//! ```text
//!   suite ──→ plan ──→ job            what is measured, and in which order
//!     └─────→ report ──→ compare      what is printed
//!                └─────→ results ──→ cost
//!   engines                           what it is measured with
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "fields of results are described in docs/running.md")]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read and decode what they have written")
)]

pub mod compare;
pub mod cost;
pub mod engines;
pub mod job;
pub mod plan;
pub mod report;
pub mod results;
pub mod saving;
pub mod terminal;

use std::ffi::OsStr;

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches};
use plan::Plan;
use report::Presentation;
use terminal::{quoted, split};

/// The repository of these tests.
#[cfg(test)]
fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

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
        // A value that begins with a hyphen would be an option.
        let equals = |value: &str| match argument.is_require_equals_set() || value.starts_with('-')
        {
            true => '=',
            false => ' ',
        };
        let word = |value: &str| format!("--{long}{}{}", equals(value), quoted(value));
        match argument.get_value_delimiter() {
            Some(_) => words.push(word(&values.join(","))),
            None => words.extend(values.iter().map(|value| word(value))),
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

/// Returns the smallest number of a range for which `fits` is true; `None` if it is false for the
/// largest. Where it is true for a number, it must be true for all larger ones.
pub fn smallest(range: std::ops::RangeInclusive<u64>, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut least, mut most) = range.into_inner();
    if least > most || !fits(most) {
        return None;
    }
    while least < most {
        let middle = least + (most - least) / 2;
        match fits(middle) {
            true => most = middle,
            false => least = middle + 1,
        }
    }
    Some(most)
}

/// Returns the plan of a suite for options as on the command line, with the seed 1.
///
/// # Errors
///
/// If there are no such options, or they contradict each other.
pub fn plan_of(suite: &dyn Suite, typed: &str) -> Result<Plan> {
    let typed = split(typed)?;
    let command = suite.arguments(clap::Command::new(suite.name()));
    let matches =
        command.try_get_matches_from([suite.name().to_owned()].into_iter().chain(typed))?;
    suite.plan(&matches, 1)
}
