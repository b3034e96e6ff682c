//! Arguments, fixtures and steps.

use crate::job::{History, HistoryTask};
use crate::work::{HistoryModel, VALUE_BYTES};
use anyhow::{Result, ensure};
use clap::{ArgMatches, Args, FromArgMatches};

use stablebench_suite::engines::Configuration;
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Before, Details, Fixture, Messages, Plan, Step};
use stablebench_suite::report::Presentation;
use stablebench_suite::report::answer::{growth, shares};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::results::Results;
use stablebench_suite::{Suite, unique};

/// The suite.
pub struct HistorySuite;

/// Sections in results.
const COMMIT: &str = "commit";
const DIFF: &str = "diff";
const BRANCH: &str = "branch";

/// The number of rows that are added in a message.
const ADDED: u64 = 50_000;

#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Rows of the table.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows: u64,
    /// Rows that are changed, spread over the table; at most --rows.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1_000, 10_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub changes: Vec<u64>,
}

impl Presentation for HistorySuite {
    fn question(&self) -> Option<&'static str> {
        Some("What do commits, branches and diffs of a table cost in DoltLite?")
    }

    fn headlines(&self) -> &'static [&'static str] {
        &["dolt_commit", "dolt_branch"]
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        let first = results.configurations.first()?;
        let grown = growth(results, COMMIT, &first.key);
        Some(grown.into_iter().chain(shares(results)).collect())
    }

    fn section(&self, name: &str) -> Option<String> {
        let title = match name {
            COMMIT => "dolt_commit, by the rows changed since the last",
            DIFF => "The rows that differ, read before and after",
            BRANCH => "dolt_branch, dolt_checkout and dolt_merge",
            _ => return None,
        };
        Some(title.to_owned())
    }
}

impl Suite for HistorySuite {
    fn name(&self) -> &'static str {
        "history"
    }

    fn summary(&self) -> &'static str {
        "Commits, branches, diffs and merges of a table in DoltLite"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  Commits, branches, diffs and merges of a table in DoltLite:
    stablebench run history
  A smaller table:
    stablebench run history --rows 10000 --changes 1,100"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        HistoryArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        let args = HistoryArgs::from_arg_matches(matches)?;
        let most = args.changes.iter().copied().max().unwrap_or(0);
        ensure!(
            most <= args.rows,
            "{} rows cannot be changed of {}; choose other --changes, or --rows of at least {most}",
            Grouped(most),
            Grouped(args.rows)
        );
        Ok(Plan::new(self.name(), vec![fixture(&args)?]))
    }
}

fn fixture(args: &HistoryArgs) -> Result<Fixture> {
    let rows = args.rows;
    let job = |task| Job::of(&History { rows, task });
    let step = |task, operations| Step {
        messages: Messages::UpTo(ADDED),
        ..Step::new(job(task), operations)
    };
    let mut steps = vec![
        step(HistoryTask::Create, 1),
        step(HistoryTask::Insert, rows),
        step(HistoryTask::Commit, 1),
    ];
    let populated = steps.len();
    let changes = unique(&args.changes);
    let mut case = |section: &str, name: String, task, before: Option<HistoryTask>| {
        let size = !matches!(task, HistoryTask::Diff | HistoryTask::DiffBranch);
        steps.push(Step {
            before: before.map_or(Before::Nothing, |task| Before::Job(job(task), 1)),
            details: Details { size, ..Details::default() },
            ..Step::case(section, name, job(task), 1)
        });
    };
    for &changed in &changes {
        case(COMMIT, rows_of(changed), HistoryTask::Commit, Some(HistoryTask::Change(changed)));
    }
    for &changed in &changes {
        let name = format!("{} since the last commit", rows_of(changed));
        case(DIFF, name, HistoryTask::Diff, Some(HistoryTask::Change(changed)));
    }
    for &changed in &changes {
        let name = format!("{} between two branches", rows_of(changed));
        case(DIFF, name, HistoryTask::DiffBranch, Some(HistoryTask::Diverge(changed)));
    }
    case(BRANCH, "make a branch".to_owned(), HistoryTask::Branch, None);
    for &changed in &changes {
        let name = format!("go to a branch, {} differ", rows_of(changed));
        case(BRANCH, name, HistoryTask::Checkout, Some(HistoryTask::Diverge(changed)));
    }
    for &changed in &changes {
        let name = format!("merge {}, nothing new here", rows_of(changed));
        case(BRANCH, name, HistoryTask::Merge, Some(HistoryTask::Diverge(changed)));
    }
    // If all rows are changed there, the row that is changed here is a conflict.
    for &changed in changes.iter().filter(|changed| **changed < rows) {
        let name = format!("merge {}, one row new here", rows_of(changed));
        case(BRANCH, name, HistoryTask::Merge, Some(HistoryTask::Part(changed)));
    }
    let configuration = Configuration::of("doltlite")?.info();
    Ok(Fixture {
        engine: configuration.engine,
        configuration,
        name: String::new(),
        rows,
        payload: VALUE_BYTES as u32,
        model: || Box::new(HistoryModel::default()),
        steps,
        populated,
    })
}

fn rows_of(changed: u64) -> String {
    match changed {
        1 => "1 row".to_owned(),
        many => format!("{} rows", Grouped(many)),
    }
}
