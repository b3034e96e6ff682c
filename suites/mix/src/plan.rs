//! Arguments, fixtures and steps.

use crate::job::{Mix, MixTask, Operations, Place};
use crate::work::{self, MixModel};
use anyhow::{Result, ensure};
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};

use stablebench_suite::engines::{Configuration, Configurations, Kind};
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Details, Effect, Fixture, Messages, Plan, Step};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::{Suite, smallest};

/// The suite.
pub struct MixSuite;

/// The section in results.
pub const MESSAGES: &str = "messages";

/// The configurations that are compared by default.
const ENGINES: &str = "btree,sqlite/persist,sqlite/persist,cache_size=1000,sqlite/wal,cache_size=1000,sqlite/memory,\
                       cache_size=1000,sqlite-vfs";
/// The configurations of SQLite that can be the cheapest: journals on the heap and in stable memory,
/// small caches, small and large pages.
const TUNED: &str = "btree,sqlite/persist,cache_size=1000,sqlite/persist,cache_size=100,sqlite/wal,\
                     cache_size=1000,sqlite/wal,cache_size=100,sqlite/wal,page_size=8192,cache_size=500,\
                     sqlite/wal,page_size=16384,cache_size=250,sqlite/memory,cache_size=1000,\
                     sqlite-vfs,sqlite-vfs,page_size=4096";
/// The most operations of a kind in a message, and indexes.
const MAX_OPERATIONS: i64 = 100_000;
const MAX_INDEXES: i64 = 8;
/// The most rows before the first message.
const MAX_ROWS: u64 = 10_000_000;

#[derive(Clone, Debug, Args)]
pub struct MixArgs {
    /// New rows of a message.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = operations())]
    pub insert: u64,
    /// Rows that a message reads by their ids.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = operations())]
    pub read: u64,
    /// Rows of which a message replaces all columns.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = operations())]
    pub update: u64,
    /// Rows that a message deletes.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = operations())]
    pub delete: u64,
    /// Ranges of 100 rows that a message reads in the order of ids.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = operations())]
    pub scan: u64,
    /// Indexed columns: `CREATE INDEX` in SQLite, a further map in stable structures.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=MAX_INDEXES as u64))]
    pub indexes: u64,
    /// Rows before the first message.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(4..=MAX_ROWS))]
    pub rows: u64,
    /// Bytes of the payload of each row.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub payload: u32,
    /// The rows that messages work on.
    #[arg(long, value_enum, default_value_t = At::Random)]
    pub at: At,
    /// Measured messages, one after the other.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub messages: u64,
    /// Engines and their settings: btree, sqlite/wal,cache_size=1000, sqlite-vfs, doltlite.
    #[arg(long, value_name = "ENGINES", default_value = ENGINES)]
    pub engines: Configurations,
    /// Try the map and the settings of SQLite that can be the cheapest, and name the best.
    #[arg(long, conflicts_with = "engines")]
    pub tune: bool,
}

fn operations() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(0..=MAX_OPERATIONS as u64)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum At {
    /// The 1000 rows after the half; new rows are between them.
    Middle,
    /// The last 1000 rows; new rows follow them.
    End,
    /// All rows; new rows are between any of them.
    Random,
}

impl From<At> for Place {
    fn from(at: At) -> Self {
        match at {
            At::Middle => Self::Middle,
            At::End => Self::End,
            At::Random => Self::Random,
        }
    }
}

impl Suite for MixSuite {
    fn name(&self) -> &'static str {
        "mix"
    }

    fn summary(&self) -> &'static str {
        "Messages with your own mix of insertions, reads, updates, deletions and scans"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  Messages that insert 5 rows and read 20, at random places:
    stablebench run mix --insert 5 --read 20
  Two indexes, larger rows, and other settings:
    stablebench run mix --insert 5 --read 20 --indexes 2 --rows 200000 --payload 300 \\
        --engines btree,sqlite/wal,cache_size=1000
  The best settings for these messages:
    stablebench run mix --insert 5 --read 20 --tune"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        MixArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        plan(&MixArgs::from_arg_matches(matches)?)
    }
}

/// The name of the case of a mix: `5 inserts, 20 reads, at random`.
fn name(operations: &Operations, at: Place) -> String {
    let Operations { insert, read, update, delete, scan } = *operations;
    let kinds = [
        (insert, "insert"),
        (read, "read"),
        (update, "update"),
        (delete, "delete"),
        (scan, "scan"),
    ];
    let number = |(number, kind): (u64, &str)| match number {
        0 => None,
        1 => Some(format!("1 {kind}")),
        _ => Some(format!("{} {kind}s", Grouped(number))),
    };
    let place = match at {
        Place::Middle => "in the middle",
        Place::End => "at the end",
        Place::Random => "at random",
    };
    let names = kinds.into_iter().filter_map(number);
    names.chain([place.to_owned()]).collect::<Vec<_>>().join(", ")
}

/// The plan of the arguments.
///
/// # Errors
///
/// If a message does nothing, an operation finds no place, or an engine has no such table.
fn plan(args: &MixArgs) -> Result<Plan> {
    let operations = Operations {
        insert: args.insert,
        read: args.read,
        update: args.update,
        delete: args.delete,
        scan: args.scan,
    };
    ensure!(
        operations != Operations::default(),
        "a message without operations; choose --insert, --read, --update, --delete or --scan"
    );
    let job = |engine, task| Mix {
        engine,
        rows: args.rows,
        payload: args.payload,
        indexes: args.indexes as u32,
        at: args.at.into(),
        task,
    };
    let engines = if args.tune { TUNED.parse()? } else { args.engines.clone() };
    let first = engines.0.first().map(|configuration| configuration.engine.protocol);
    if let Some(engine) = first {
        let needed = (operations.insert * args.messages, operations.delete * args.messages);
        let room = |rows: u64| work::room(&Mix { rows, ..job(engine, MixTask::Create) });
        let (insertions, deletions) = room(args.rows);
        // The smallest number of rows with room for all, if there is one.
        let fits = |rows: u64| room(rows).0 >= needed.0 && room(rows).1 >= needed.1;
        let more = match smallest(args.rows..=MAX_ROWS, fits) {
            Some(least) => format!(", or --rows of at least {least}"),
            None => String::new(),
        };
        ensure!(
            needed.0 <= insertions,
            "there is room for {} new rows here; choose fewer --insert or --messages{more}",
            Grouped(insertions)
        );
        let random = if args.at == At::Random { "" } else { ", or --at random" };
        ensure!(
            needed.1 <= deletions,
            "there are {} rows to delete here; choose fewer --delete or --messages{random}{more}",
            Grouped(deletions)
        );
    }
    let mut fixtures = Vec::new();
    for configuration in &engines.0 {
        let engine = configuration.engine;
        ensure!(
            engine.kind == Kind::Sql || engine.key == "btree",
            "--engines {}: this engine has no indexes; take btree or one with SQL",
            configuration.key()
        );
        fixtures.push(fixture(configuration, args, &operations, |task| job(engine.protocol, task)));
    }
    Ok(Plan::new(MixSuite.name(), fixtures))
}

fn fixture(
    configuration: &Configuration,
    args: &MixArgs,
    operations: &Operations,
    job: impl Fn(MixTask) -> Mix,
) -> Fixture {
    let step = |task, operations| Step::new(Job::of(&job(task)), operations);
    let fill = Step { messages: Messages::ByCost, ..step(MixTask::Fill, args.rows) };
    let messages = Step {
        messages: Messages::Exactly(1),
        effect: Effect::Dropped,
        details: Details { size: true, ..Details::default() },
        ..step(MixTask::Message(*operations), args.messages)
    };
    Fixture {
        engine: configuration.engine.protocol,
        configuration: configuration.info(),
        name: match args.indexes {
            0 => String::new(),
            1 => "1 index".to_owned(),
            indexes => format!("{indexes} indexes"),
        },
        rows: args.rows,
        payload: args.payload,
        model: || Box::new(MixModel::default()),
        steps: vec![
            step(MixTask::Create, 1),
            fill,
            messages.named(MESSAGES, name(operations, args.at.into())),
        ],
        populated: 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan_of;

    #[test]
    fn a_mix_is_one_row_of_each_configuration() {
        let plan = plan_of(&MixSuite, "--insert 5 --read 20 --indexes 2").unwrap();
        assert_eq!(plan.rows, [(MESSAGES.to_owned(), "5 inserts, 20 reads, at random".to_owned())]);
        assert_eq!(plan.fixtures.len(), 6);
        assert_eq!(plan.fixtures[0].name, "2 indexes");
    }

    #[test]
    fn impossible_mixes_are_refused() {
        for (typed, part) in [
            ("--insert 0 --read 0", "without operations"),
            ("--delete 100 --at end", "500 rows to delete"),
            ("--insert 100 --rows 4", "room for 36 new rows"),
            ("--insert 100 --rows 4", "--messages, or --rows of at least 223"),
            ("--delete 100 --rows 3999", "--messages, or --rows of at least 4000"),
            ("--engines leveldb", "no indexes"),
        ] {
            let error = plan_of(&MixSuite, typed).unwrap_err().to_string();
            assert!(error.contains(part), "{typed}: {error}");
        }
    }
}
