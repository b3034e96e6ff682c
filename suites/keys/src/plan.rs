//! Arguments, fixtures and steps.

use crate::job::{KeyKind, Keys, KeysTask, LinkSchema};
use crate::work;
use anyhow::{Result, ensure};
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};

use stablebench_suite::engines::{Configuration, Configurations, Kind};
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Details, Effect, Fixture, Messages, Plan, Step};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::results::ConfigurationInfo;
use stablebench_suite::{Suite, unique};

/// The suite.
pub struct KeysSuite;

/// Sections in results.
pub const LISTS: &str = "lists";
pub const WANTS: &str = "wants";
pub const WATCHERS: &str = "watchers";

/// The number of movies or users that are added in a message.
const PREPARED: u64 = 10_000;
/// The number of links that are added in a message, in whole lists.
const LINKS: u64 = 5_000;
/// The number of rows that the queries of a message find.
const FOUND: u64 = 20_000;

#[derive(Clone, Debug, Args)]
pub struct KeysArgs {
    /// Links, of which each user has as many as --watches; the published figures have 100000.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rows: u64,
    /// Movies on the list of each user, which is added in a transaction.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub watches: u64,
    /// Movies [default: a tenth of the links, or as many as a list needs].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub movies: Option<u64>,
    /// Repetitions of each of the two questions.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub questions: u64,
    /// Primary keys of the link table.
    #[arg(long, value_delimiter = ',', default_values = ["a", "b", "c", "c-rowid", "d"])]
    pub schemas: Vec<SchemaArg>,
    /// Ids of users, movies and, in the schemas a and b, links.
    #[arg(long, value_delimiter = ',', default_values = ["integer", "ulid", "uuidv4", "uuidv7"])]
    pub keys: Vec<KeyArg>,
    /// SQL engines: sqlite, sqlite-vfs, doltlite, or full configurations of them.
    #[arg(long, value_name = "ENGINES", default_value = "sqlite,sqlite-vfs")]
    pub engines: Configurations,
    /// Rows that are created in a millisecond: among those, ULIDs and UUIDv7s are in no order.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows_a_millisecond: u64,
    /// Foreign keys: SQLite looks for the user and the movie of each new link.
    #[arg(long, value_enum, default_value_t = SwitchArg::On)]
    pub foreign_keys: SwitchArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaArg {
    /// An id.
    A,
    /// An id, without rowid.
    B,
    /// The pair of user and movie, without rowid.
    C,
    /// The pair of user and movie, with rowid.
    CRowid,
    /// None but the rowid.
    D,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyArg {
    Integer,
    Ulid,
    #[value(name = "uuidv4")]
    UuidV4,
    #[value(name = "uuidv7")]
    UuidV7,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SwitchArg {
    On,
    Off,
}

impl From<SchemaArg> for LinkSchema {
    fn from(schema: SchemaArg) -> Self {
        match schema {
            SchemaArg::A => Self::Id,
            SchemaArg::B => Self::IdWithoutRowid,
            SchemaArg::C => Self::PairWithoutRowid,
            SchemaArg::CRowid => Self::Pair,
            SchemaArg::D => Self::Rowid,
        }
    }
}

impl From<KeyArg> for KeyKind {
    fn from(key: KeyArg) -> Self {
        match key {
            KeyArg::Integer => Self::Integer,
            KeyArg::Ulid => Self::Ulid,
            KeyArg::UuidV4 => Self::UuidV4,
            KeyArg::UuidV7 => Self::UuidV7,
        }
    }
}

impl Suite for KeysSuite {
    fn name(&self) -> &'static str {
        "keys"
    }

    fn summary(&self) -> &'static str {
        "Integers, ULIDs and UUIDs as keys of a link table, with and without rowid"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  Integers, ULIDs and UUIDs as keys of a link table:
    stablebench run keys
  The published size:
    stablebench run keys --rows 100000"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        KeysArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        plan(&KeysArgs::from_arg_matches(matches)?)
    }
}

/// The plan of the arguments.
///
/// # Errors
///
/// If lists cannot be as long as --watches, or an engine has no SQL.
fn plan(args: &KeysArgs) -> Result<Plan> {
    ensure!(
        args.rows.is_multiple_of(args.watches),
        "{} links are not whole lists of {}; choose other --watches, or --rows {}",
        Grouped(args.rows),
        Grouped(args.watches),
        args.rows.next_multiple_of(args.watches)
    );
    let movies = args.movies.unwrap_or_else(|| (args.rows / 10).max(args.watches));
    ensure!(
        movies >= args.watches,
        "a list of {} cannot be chosen from {} movies; choose other --watches or --movies",
        Grouped(args.watches),
        Grouped(movies)
    );
    let schemas = unique(&args.schemas).into_iter().map(LinkSchema::from);
    let kinds: Vec<KeyKind> = unique(&args.keys).into_iter().map(KeyKind::from).collect();
    let mut fixtures = Vec::new();
    for schema in schemas {
        for configuration in &args.engines.0 {
            let key = configuration.key();
            ensure!(
                configuration.engine.kind == Kind::Sql,
                "--engines {key}: this engine has no SQL"
            );
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
                fixtures.push(fixture(&job, configuration, args));
            }
        }
    }
    Ok(Plan::new(KeysSuite.name(), fixtures))
}

fn fixture(job: &Keys, configuration: &Configuration, args: &KeysArgs) -> Fixture {
    let step = |task| {
        let job = Keys { task, ..*job };
        let section = match task {
            KeysTask::Create | KeysTask::Users | KeysTask::Movies => None,
            KeysTask::Links => Some(LISTS),
            KeysTask::Wants => Some(WANTS),
            KeysTask::Watchers => Some(WATCHERS),
        };
        // Messages have a fixed number of operations, so that schemas can be compared.
        let operations = match task {
            KeysTask::Create => 1,
            KeysTask::Users | KeysTask::Movies => PREPARED,
            KeysTask::Links => LINKS / job.watches,
            KeysTask::Wants => FOUND / job.watches,
            KeysTask::Watchers => FOUND * job.movies / (job.users * job.watches).max(1),
        };
        let asks = matches!(task, KeysTask::Wants | KeysTask::Watchers);
        let step = Step {
            messages: Messages::UpTo(operations.max(1)),
            effect: if asks { Effect::Dropped } else { Effect::Kept },
            details: Details { size: task == KeysTask::Links, ..Details::default() },
            ..Step::new(Job::of(&job), work::operations(&job, args.questions))
        };
        match section {
            Some(section) => step.named(section, schema_name(job.schema)),
            None => step,
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
    Fixture {
        engine: configuration.engine.protocol,
        configuration: info(configuration, job.key),
        name: schema_name(job.schema).to_owned(),
        rows: args.rows,
        payload: 0,
        model: || Box::new(work::KeysModel::default()),
        steps: steps.map(step).to_vec(),
        populated: 4,
    }
}

/// `ULID`, `sqlite-vfs ULID`
fn info(configuration: &Configuration, key: KeyKind) -> ConfigurationInfo {
    let prefix = match configuration.to_string() {
        default if default == "sqlite" => String::new(),
        other => format!("{other} "),
    };
    ConfigurationInfo { key: format!("{prefix}{}", key_name(key)), ..configuration.info() }
}

/// Returns the name of a schema in tables.
pub fn schema_name(schema: LinkSchema) -> &'static str {
    match schema {
        LinkSchema::Id => "(a) id",
        LinkSchema::IdWithoutRowid => "(b) id, without rowid",
        LinkSchema::PairWithoutRowid => "(c) pair, without rowid",
        LinkSchema::Pair => "pair, with rowid",
        LinkSchema::Rowid => "(d) rowid alone",
    }
}

/// Returns the name of a kind of key in tables.
pub fn key_name(key: KeyKind) -> &'static str {
    match key {
        KeyKind::Integer => "integer",
        KeyKind::Ulid => "ULID",
        KeyKind::UuidV4 => "UUIDv4",
        KeyKind::UuidV7 => "UUIDv7",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan_of;

    /// A tenth as many movies as links, and each schema under each kind of key.
    #[test]
    fn the_published_size() {
        let plan = plan_of(&KeysSuite, "--rows 100000").unwrap();
        assert_eq!(plan.fixtures.len(), 5 * 4 * 2);
        for fixture in &plan.fixtures {
            let operations: Vec<u64> = fixture.steps.iter().map(|step| step.operations).collect();
            assert_eq!(operations, [1, 10_000, 1_000, 1_000, 200, 200]);
            assert_eq!(fixture.rows, 100_000);
        }
    }

    #[test]
    fn a_repeated_combination_is_measured_once() {
        let typed = "--schemas a,a --keys ulid,ulid --engines sqlite,sqlite";
        assert_eq!(plan_of(&KeysSuite, typed).unwrap().fixtures.len(), 1);
        let error = plan_of(&KeysSuite, "--engines btree").unwrap_err().to_string();
        assert_eq!(error, "--engines btree: this engine has no SQL");
    }
}
