//! The suite keys: a link table of users and movies, under four kinds of key and five
//! declarations of its primary key.
//!
//! ```text
//!   for each schema and kind of key:   create → movies → users → lists, measured
//!                                        ├─ fork: what does this user want to watch?
//!                                        └─ fork: who wants to watch this movie?
//! ```
//!
//! A table's row is a schema, a column a kind of key.

mod claims;
pub mod size;

use anyhow::{Result, ensure};
use stablebench_protocol::{Job, KeyKind, Keys, KeysTask, LinkSchema};
use stablebench_workload::{Tables, keys};

use super::command::{Command, typed};
use super::lane::{Lane, Plan, Step};
use super::outline::Outline;
use super::users::{Library, Setting, unique};
use crate::cli::{KeysArgs, SwitchArg};
use crate::report::number::Grouped;
use crate::results::Column;

pub use claims::Claims;

/// The name in results.
pub const NAME: &str = "keys";

/// Sections in results.
pub const LISTS: &str = "lists";
pub const WANTS: &str = "wants";
pub const WATCHERS: &str = "watchers";

/// Movies or users that are added in a message.
const MADE_READY: u64 = 10_000;
/// Links that are added in a message, in whole lists.
const LINKS: u64 = 5_000;
/// Rows that questions of a message find.
const FOUND: u64 = 20_000;

/// What a section is about, from its name in results.
pub fn describe(section: &str) -> Option<String> {
    let what = match section {
        LISTS => "A user's list, added in a transaction",
        WANTS => "What does this user want to watch?",
        WATCHERS => "Who wants to watch this movie?",
        _ => return None,
    };
    Some(what.to_owned())
}

/// What the arguments mean.
///
/// # Errors
///
/// Where lists cannot be as long as asked for.
pub fn plan(args: &KeysArgs) -> Result<Plan> {
    ensure!(
        args.rows.is_multiple_of(args.watches),
        "{} links are not whole lists of {}; choose other --rows or --watches",
        Grouped(args.rows),
        Grouped(args.watches)
    );
    let movies = args.movies.unwrap_or_else(|| (args.rows / 10).max(args.watches));
    ensure!(
        movies >= args.watches,
        "a list of {} cannot be chosen from {} movies; choose other --watches or --movies",
        Grouped(args.watches),
        Grouped(movies)
    );
    let schemas = unique(args.schemas.iter().map(|schema| LinkSchema::from(*schema)).collect());
    let kinds = unique(args.keys.iter().map(|key| KeyKind::from(*key)).collect());
    let mut lanes = Vec::new();
    for schema in schemas {
        for library in unique(args.engines.iter().map(|engine| Library::from(*engine)).collect()) {
            for key in &kinds {
                let job = Keys {
                    schema,
                    key: *key,
                    users: args.rows / args.watches,
                    movies,
                    watches: args.watches,
                    rows_a_millisecond: args.rows_a_millisecond,
                    foreign_keys: args.foreign_keys == SwitchArg::On,
                    task: KeysTask::Create,
                };
                lanes.push(lane(&job, library, args));
            }
        }
    }
    Ok(Plan::new(Outline::new(NAME, command(args), &args.run), lanes))
}

fn lane(job: &Keys, library: Library, args: &KeysArgs) -> Lane {
    let step = |task| {
        let job = Keys { task, ..*job };
        let section = match task {
            KeysTask::Create | KeysTask::Users | KeysTask::Movies => None,
            KeysTask::Links => Some(LISTS),
            KeysTask::Wants => Some(WANTS),
            KeysTask::Watchers => Some(WATCHERS),
        };
        // What a message does is the same whatever it costs, so that two schemas compare.
        let message_operations = match task {
            KeysTask::Create => 1,
            KeysTask::Users | KeysTask::Movies => MADE_READY,
            KeysTask::Links => LINKS / job.watches,
            KeysTask::Wants => FOUND / job.watches,
            KeysTask::Watchers => FOUND * job.movies / (job.users * job.watches).max(1),
        };
        Step {
            case: section.map(|section| (section.to_owned(), schema_name(job.schema).to_owned())),
            operations: keys::operations(&job, args.questions),
            message_operations: message_operations.max(1),
            before: None,
            phases: false,
            as_measured: false,
            anew: false,
            forked: matches!(task, KeysTask::Wants | KeysTask::Watchers),
            upgraded: false,
            inspected: task == KeysTask::Links,
            job: Job::Keys(job),
        }
    };
    let steps = [
        KeysTask::Create,
        KeysTask::Movies,
        KeysTask::Users,
        KeysTask::Links,
        KeysTask::Wants,
        KeysTask::Watchers,
    ];
    Lane {
        column: column(library, job.key),
        name: schema_name(job.schema).to_owned(),
        rows: args.rows,
        payload: 0,
        tables,
        steps: steps.map(step).to_vec(),
        populated: 4,
    }
}

/// `ULID`, `sqlite-vfs ULID`
fn column(library: Library, key: KeyKind) -> Column {
    let prefix = match library {
        Library::IcRusqlite => String::new(),
        other => format!("{} ", other.engine_name()),
    };
    let column = Setting::through(library).column();
    Column { key: format!("{prefix}{}", key_name(key)), ..column }
}

fn tables(_: &Lane) -> Box<dyn Tables> {
    Box::new(keys::Model::default())
}

/// How tables call a schema.
pub fn schema_name(schema: LinkSchema) -> &'static str {
    match schema {
        LinkSchema::Id => "(a) id",
        LinkSchema::IdWithoutRowid => "(b) id, without rowid",
        LinkSchema::PairWithoutRowid => "(c) pair, without rowid",
        LinkSchema::Pair => "pair, with rowid",
        LinkSchema::Rowid => "(d) rowid alone",
    }
}

/// How tables call a kind of key.
pub fn key_name(key: KeyKind) -> &'static str {
    match key {
        KeyKind::Integer => "integer",
        KeyKind::Ulid => "ULID",
        KeyKind::UuidV4 => "UUIDv4",
        KeyKind::UuidV7 => "UUIDv7",
    }
}

/// The command that repeats the run.
fn command(args: &KeysArgs) -> String {
    let mut command = Command::new(NAME);
    command.value("--rows", args.rows);
    command.value("--watches", args.watches);
    if let Some(movies) = args.movies {
        command.value("--movies", movies);
    }
    command.value("--questions", args.questions);
    command.values("--schemas", args.schemas.iter().map(typed));
    command.values("--keys", args.keys.iter().map(typed));
    command.values("--engines", args.engines.iter().map(typed));
    command.value("--rows-a-millisecond", args.rows_a_millisecond);
    command.value("--foreign-keys", typed(&args.foreign_keys));
    command.run(&args.run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn args(typed: &str) -> KeysArgs {
        let words = typed.split(' ').filter(|word| !word.is_empty());
        match crate::cli::Cli::parse_from(words).command {
            Some(crate::cli::Command::Run { suite: Some(crate::cli::Suite::Keys(args)) }) => *args,
            other => panic!("{other:?}"),
        }
    }

    /// Whatever was typed, the command that is printed measures the same.
    #[test]
    fn the_command_repeats_the_run() {
        for typed in [
            "",
            "--rows 400000 --watches 200 --movies 10000 --seed 7",
            "--schemas d,c-rowid --keys uuidv7,integer --foreign-keys off",
            "--rows-a-millisecond 1 --questions 3 --nodes 34 --engines sqlite-vfs",
        ] {
            let first = plan(&args(&format!("stablebench run keys {typed}"))).unwrap();
            let again = plan(&args(&first.outline.command)).unwrap();
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
        }
    }

    /// A tenth as many movies as links, and each schema under each kind of key.
    #[test]
    fn the_published_size() {
        let plan = plan(&args("stablebench run keys --rows 100000")).unwrap();
        assert_eq!(plan.lanes.len(), 5 * 4 * 2);
        for lane in &plan.lanes {
            let operations: Vec<u64> = lane.steps.iter().map(|step| step.operations).collect();
            assert_eq!(operations, [1, 10_000, 1_000, 1_000, 200, 200]);
            assert_eq!(lane.rows, 100_000);
        }
    }

    #[test]
    fn a_combination_that_is_named_twice_is_measured_once() {
        let plan = plan(&args(
            "stablebench run keys --schemas a,a --keys ulid,ulid --engines sqlite,sqlite",
        ))
        .unwrap();
        assert_eq!(plan.lanes.len(), 1);
    }
}
