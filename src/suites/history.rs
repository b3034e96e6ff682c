//! The suite history: what commits, branches and diffs cost in DoltLite, whose tables have them.
//!
//! ```text
//!   install → configure → create → populate → commit
//!     for each case:   fork → rows changed, or a branch that differs → work, measured → check
//! ```

use anyhow::{Result, ensure};
use stablebench_protocol::{History, HistoryTask, Job};
use stablebench_workload::history::{HistoryModel, VALUE_BYTES};

use super::command::Command;
use super::lane::{Lane, Plan, Step};
use super::outline::Outline;
use super::users::{Library, Setting, unique};
use crate::cli::HistoryArgs;
use crate::report::number::Grouped;

/// The name in results.
pub const NAME: &str = "history";

/// Sections in results.
pub const COMMIT: &str = "commit";
pub const DIFF: &str = "diff";
pub const BRANCH: &str = "branch";

/// Rows that are added in a message.
const ADDED: u64 = 50_000;

/// What a section is about, from its name in results.
pub fn describe(section: &str) -> Option<String> {
    let what = match section {
        COMMIT => "dolt_commit, by the rows changed since the last",
        DIFF => "The rows that differ, read before and after",
        BRANCH => "dolt_branch, dolt_checkout and dolt_merge",
        _ => return None,
    };
    Some(what.to_owned())
}

/// What the arguments mean.
///
/// # Errors
///
/// Where more rows would be changed than there are.
pub fn plan(args: &HistoryArgs) -> Result<Plan> {
    let most = args.changes.iter().copied().max().unwrap_or(0);
    ensure!(
        most <= args.rows,
        "{} rows cannot be changed of {}; choose other --changes or more --rows",
        Grouped(most),
        Grouped(args.rows)
    );
    Ok(Plan::new(Outline::new(NAME, command(args), &args.run), vec![lane(args)]))
}

fn lane(args: &HistoryArgs) -> Lane {
    let rows = args.rows;
    let step = |task, operations, before: Option<HistoryTask>| Step {
        case: None,
        job: Job::History(History { rows, task }),
        before: before.map(|task| Job::History(History { rows, task })),
        operations,
        message_operations: ADDED,
        as_measured: false,
        anew: false,
        forked: false,
        upgraded: false,
        inspected: false,
        phases: false,
    };
    let mut steps = vec![
        step(HistoryTask::Create, 1, None),
        step(HistoryTask::Insert, rows, None),
        step(HistoryTask::Commit, 1, None),
    ];
    let populated = steps.len();
    let changes = unique(args.changes.clone());
    let mut case = |section: &str, name: String, task, before| {
        steps.push(Step {
            case: Some((section.to_owned(), name)),
            forked: true,
            inspected: !matches!(task, HistoryTask::Diff | HistoryTask::DiffBranch),
            ..step(task, 1, before)
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
    // Where all are changed there, the row that is changed here is a conflict.
    for &changed in changes.iter().filter(|changed| **changed < rows) {
        let name = format!("merge {}, one row new here", rows_of(changed));
        case(BRANCH, name, HistoryTask::Merge, Some(HistoryTask::Part(changed)));
    }
    Lane {
        column: Setting::through(Library::DoltLite).column(),
        name: String::new(),
        rows,
        payload: VALUE_BYTES as u32,
        tables: |_| Box::new(HistoryModel::default()),
        steps,
        populated,
    }
}

fn rows_of(changed: u64) -> String {
    match changed {
        1 => "1 row".to_owned(),
        many => format!("{} rows", Grouped(many)),
    }
}

/// The command that repeats the run.
fn command(args: &HistoryArgs) -> String {
    let mut command = Command::new(NAME);
    command.value("--rows", args.rows);
    command.values("--changes", unique(args.changes.clone()));
    command.run(&args.run)
}
