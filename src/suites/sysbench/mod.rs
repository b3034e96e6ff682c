//! The suite sysbench: statements in the manner of that program, on two sides or more.
//!
//! ```text
//!   for each shape of key, place and side:   install → configure → create → populate → check
//!     for each workload:   fork → work, measured → check
//! ```
//!
//! In stable memory each workload is done twice: a message a transaction, and a statement a
//! transaction.

pub mod published;
mod section;

use anyhow::{Result, bail};
use stablebench_protocol::{Engine, Job, KeyShape, Storage, Sysbench, SysbenchTask};
use stablebench_protocol::{SysbenchTask::Workload, SysbenchWorkload};
use stablebench_workload::Tables;
use stablebench_workload::sysbench::workload::name;
use stablebench_workload::sysbench::{Model, WORKLOADS, operations, populated};

use super::command::{Command, typed};
use super::lane::{Lane, Plan, Step};
use super::outline::Outline;
use crate::cli::{SysbenchArgs, SysbenchPlace};
use crate::suites::users::Setting;
pub use section::{Section, describe};

/// The name in results.
pub const NAME: &str = "sysbench";

/// Bytes of the texts of a row.
const PAYLOAD: u32 = 90;

/// Operations a message; more would need much heap to be made ready.
const MOST_OPERATIONS: u64 = 100_000;
/// Operations a message where each statement is a transaction, which can cost 1.5 M.
const MOST_TRANSACTIONS: u64 = 20_000;
/// Rows that are looked at one by one in a message: with what is read once more for its
/// digest, below the limit of a message.
const MOST_LOOKED_AT: u64 = 5_000_000;

/// What the arguments mean.
///
/// # Errors
///
/// Where a side is no SQL database, or both are the same.
pub fn plan(args: &SysbenchArgs) -> Result<Plan> {
    let others = args.other.iter().map(|side| ("--other", side));
    let sides: Vec<(&str, &Setting)> = [("--base", &args.base)].into_iter().chain(others).collect();
    for (place, (option, side)) in sides.iter().enumerate() {
        if side.engine != Engine::Sqlite {
            bail!(
                "{option} {}: it has no SQL; a side is sqlite/JOURNAL_MODE, sqlite-vfs or doltlite",
                side.key()
            );
        }
        if sides[..place].iter().any(|(_, other)| other.key() == side.key()) {
            bail!("two sides are {}; choose another --base or --other", side.key());
        }
    }
    let mut lanes = Vec::new();
    for shape in unique(&args.keys) {
        for (storage, places) in [
            (Storage::Heap, &[SysbenchPlace::Memory][..]),
            (Storage::Stable, &[SysbenchPlace::Stable, SysbenchPlace::Autocommit]),
        ] {
            let places: Vec<SysbenchPlace> =
                places.iter().copied().filter(|place| args.places.contains(place)).collect();
            if !places.is_empty() {
                for (_, side) in &sides {
                    lanes.push(lane(side, shape.into(), storage, &places, args.rows));
                }
            }
        }
    }
    Ok(Plan::new(Outline::new(NAME, command(args), &args.run), lanes))
}

/// A side with tables of a shape in one place.
fn lane(
    side: &Setting,
    shape: KeyShape,
    storage: Storage,
    places: &[SysbenchPlace],
    rows: u64,
) -> Lane {
    let job = |task, autocommit| Sysbench { shape, storage, autocommit, rows, task };
    let make_ready = |task, operations, message_operations| Step {
        case: None,
        job: Job::Sysbench(job(task, false)),
        operations,
        message_operations,
        before: None,
        phases: false,
        as_measured: false,
        anew: false,
        forked: false,
        upgraded: false,
        inspected: false,
    };
    let mut steps = vec![
        make_ready(SysbenchTask::Create, 1, 1),
        make_ready(SysbenchTask::Populate, populated(rows), 10_000),
    ];
    let populated = steps.len();
    for place in places {
        for (workload, _, _) in WORKLOADS {
            let section = Section::of(shape, *place, workload);
            steps.push(Step {
                case: Some((section.name(), name(workload).to_owned())),
                job: Job::Sysbench(job(Workload(workload), *place == SysbenchPlace::Autocommit)),
                operations: operations(workload, rows),
                message_operations: message_operations(workload, *place, rows),
                before: None,
                phases: false,
                as_measured: false,
                anew: false,
                forked: true,
                upgraded: false,
                inspected: false,
            });
        }
    }
    Lane {
        column: side.column(),
        name: format!("{} keys, {}", section::shape_name(shape), section::storage_name(storage)),
        rows,
        payload: PAYLOAD,
        tables: |lane| {
            let of = lane.steps.first().map(|step| &step.job);
            let shape = match of {
                Some(Job::Sysbench(job)) => job.shape,
                _ => KeyShape::Integer,
            };
            Box::new(Model::new(shape)) as Box<dyn Tables>
        },
        steps,
        populated,
    }
}

/// All in one message, unless it would come to the limit.
fn message_operations(workload: SysbenchWorkload, place: SysbenchPlace, rows: u64) -> u64 {
    match workload {
        SysbenchWorkload::TableScan => (MOST_LOOKED_AT / rows.max(1)).max(1),
        _ if place == SysbenchPlace::Autocommit => MOST_TRANSACTIONS,
        _ => MOST_OPERATIONS,
    }
}

/// The command, without what only says where results go or what is too much.
fn command(args: &SysbenchArgs) -> String {
    let mut command = Command::new(NAME);
    command.value("--base", args.base.key());
    for side in &args.other {
        command.value("--other", side.key());
    }
    command.value("--rows", args.rows);
    command.values("--keys", unique(&args.keys).iter().map(typed));
    command.values("--places", unique(&args.places).iter().map(typed));
    command.run(&args.run)
}

fn unique<T: Copy + PartialEq>(items: &[T]) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(item) {
            seen.push(*item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::collections::BTreeSet;

    fn planned(typed: &[&str]) -> Result<Plan> {
        let typed = [&["stablebench", "run", NAME], typed].concat();
        match crate::cli::Cli::parse_from(typed).command {
            Some(crate::cli::Command::Run { suite: Some(crate::cli::Suite::Sysbench(args)) }) => {
                plan(&args)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_side_has_every_workload_in_every_shape_and_place() {
        let plan = planned(&[]).unwrap();
        assert_eq!(plan.outline.rows.len(), 23 * 3 * 4);
        assert_eq!(plan.outline.columns.len(), 3);
        let cases: BTreeSet<_> = plan
            .lanes
            .iter()
            .flat_map(|lane| {
                let cases = lane.steps.iter().filter_map(|step| step.case.clone());
                cases.map(|case| (lane.column.key.clone(), case))
            })
            .collect();
        assert_eq!(cases.len(), 3 * 23 * 3 * 4);
        let mut sections: Vec<&str> =
            plan.outline.rows.iter().map(|(section, _)| section.as_str()).collect();
        sections.dedup();
        assert_eq!(sections.len(), 24, "each section is in one piece");
        assert!(sections.iter().all(|section| describe(section).is_some()));
        assert!(describe("insert").is_none());
    }

    #[test]
    fn the_command_repeats_the_run() {
        let chosen = ["--base=sqlite/off,page_size=512", "--keys=text,text", "--rows=7"];
        let command = planned(&chosen).unwrap().outline.command;
        let typed: Vec<&str> = command.split(' ').skip(3).collect();
        assert_eq!(planned(&typed).unwrap().outline.command, command);
        assert!(command.contains("--keys text --places memory,stable,autocommit"), "{command}");
    }

    #[test]
    fn sides_that_cannot_be_are_refused() {
        for (typed, part) in [
            ("--base=btree", "--base btree: it has no SQL"),
            ("--other=sqlite/persist", "two sides are sqlite/persist"),
        ] {
            let error = planned(&[typed]).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
