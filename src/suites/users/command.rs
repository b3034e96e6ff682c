//! The command that repeats a run: everything that decides what is measured.

use super::Section;
use crate::cli::{EngineArg, UsersArgs};
use crate::suites::command::{Command, typed};

/// The command, without what only says where results go.
pub fn command(args: &UsersArgs) -> String {
    let mut command = Command::new("users");
    let sections = args.sections();
    let any = |wanted: &[Section]| sections.iter().any(|section| wanted.contains(section));
    if args.as_published {
        command.flag("--as-published");
    } else {
        command.values("--sections", args.sections.iter().map(typed));
        command.value("--rows", args.rows);
        command.values("--engines", args.engines.iter().map(typed));
        command.values("--journal-modes", args.journal_modes.iter().map(typed));
        if args.engines.contains(&EngineArg::Leveldb) {
            command.values("--compression", args.compression.iter().map(typed));
        }
        command.value("--payload", args.payload);
        if any(&[Section::Insert]) {
            command.values("--batches", &args.batches);
            command.values("--at", args.at.iter().map(typed));
        }
        if any(&[Section::Transactions]) {
            command.value("--transaction-rows", args.transaction_rows);
            command.values("--transactions", &args.transactions);
        }
        if any(&[Section::Work, Section::WorkingSet, Section::Settings]) {
            command.value("--operations", args.operations);
        }
        if any(&[Section::Payload]) {
            command.values("--payloads", &args.payloads);
        }
        if any(&[Section::Curve]) {
            command.values("--curve-rows", &args.curve_rows);
        }
        if any(&[Section::WorkingSet]) {
            command.values("--working-sets", &args.working_sets);
        }
        if any(&[Section::Settings]) {
            let sweep = &args.sweep;
            command.values("--page-sizes", &sweep.page_sizes);
            command.values("--cache-sizes", &sweep.cache_sizes);
            command.values("--synchronous", sweep.synchronous.iter().map(typed));
            command.values("--locking-modes", sweep.locking_modes.iter().map(typed));
            if sweep.product {
                command.flag("--product");
            }
        }
    }
    if args.per_operation {
        command.flag("--per-operation");
    }
    if args.check_around {
        command.flag("--check-around");
    }
    command.run(&args.run)
}

#[cfg(test)]
mod tests {
    use crate::suites::users::Plan;
    use clap::Parser;

    fn plan(typed: &[&str]) -> Plan {
        let cli = crate::cli::Cli::parse_from([&["stablebench"], typed].concat());
        Plan::new(&cli.users).unwrap()
    }

    /// Whatever was typed, the command that is printed measures the same.
    #[test]
    fn the_command_repeats_the_run() {
        for typed in [
            &[][..],
            &[
                "--sections=all",
                "--per-operation",
                "--check-around",
                "--seed=7",
                "--curve-rows=500",
            ],
            &["--sections=settings", "--product", "--page-sizes=512", "--cache-sizes=-100,5"],
            &["--batches=3,9", "--at=random", "--engines=array", "--nodes=34", "--rows=50"],
            &["--as-published", "--seed=3"],
        ] {
            let first = plan(typed);
            let words: Vec<&str> = first.outline.command.split(' ').collect();
            let again = crate::cli::Cli::parse_from(words);
            let Some(crate::cli::Command::Run { suite: Some(crate::cli::Suite::Users(args)) }) =
                again.command
            else {
                panic!("{}", first.outline.command);
            };
            let second = Plan::new(&args).unwrap();
            assert_eq!(format!("{first:?}"), format!("{second:?}"));
        }
    }
}
