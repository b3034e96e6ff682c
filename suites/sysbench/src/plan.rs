//! Arguments, fixtures and steps, and the sections of the published layout: a shape of key, a place,
//! and whether rows are changed.

use crate::job::{KeyShape, Sysbench, SysbenchTask, SysbenchWorkload};
use crate::work::{SHAPES, SysbenchModel, WORKLOADS, name, operations, populated, writes};
use anyhow::{Result, ensure};
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use stablebench_protocol::Storage;

use stablebench_suite::compare::ceiling;
use stablebench_suite::engines::{Configuration, Kind};
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Ceilings, Fixture, Messages, Plan, Step};
use stablebench_suite::{Suite, unique};

/// The suite.
pub struct SysbenchSuite;

/// Bytes of the texts of a row.
const PAYLOAD: u32 = 90;

/// The maximum number of operations in a message. Preparing more would need much heap.
const MAX_OPERATIONS: u64 = 100_000;
/// The same if each statement is a transaction, which can cost 1.5 M instructions.
const MAX_TRANSACTIONS: u64 = 20_000;
/// The maximum number of rows that a message scans. With the second read for the digest, it stays
/// below the limit of instructions.
const MAX_SCANNED: u64 = 5_000_000;

#[derive(Clone, Debug, Args)]
pub struct SysbenchArgs {
    /// The configuration that others are compared with: sqlite/JOURNAL_MODE, sqlite-vfs or
    /// doltlite, optionally with ,page_size=… ,cache_size=… ,synchronous=… ,locking_mode=…
    #[arg(long, value_name = "SIDE", default_value = "sqlite/persist")]
    pub base: Configuration,
    /// A configuration whose instructions are divided by those of the base. Can be repeated.
    #[arg(long, value_name = "SIDE",
          default_values = ["sqlite/delete,locking_mode=normal", "sqlite-vfs"])]
    pub other: Vec<Configuration>,
    /// Rows of the main table; operations are those published for 100 000 rows, in proportion.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rows: u64,
    /// Shapes of the primary keys.
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["integer", "composite", "blob", "text"])]
    pub keys: Vec<KeyArg>,
    /// Places of the tables, and extents of transactions.
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["memory", "stable", "autocommit"])]
    pub places: Vec<Place>,
    /// Maximum multiplier of a workload. The exit code is 1 if one is larger; the published ceiling
    /// is 6. [default: none]
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_ratio: Option<f64>,
    /// Maximum average of a section. The exit code is 1 if one is larger; the published ceiling is
    /// 5. [default: none]
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_average: Option<f64>,
}

/// The shape of the primary keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyArg {
    /// INTEGER: the rowid itself.
    Integer,
    /// Two integers, WITHOUT ROWID.
    Composite,
    /// 16 bytes.
    Blob,
    /// 32 hexadecimal digits.
    Text,
}

impl From<KeyArg> for KeyShape {
    fn from(key: KeyArg) -> Self {
        match key {
            KeyArg::Integer => Self::Integer,
            KeyArg::Composite => Self::Composite,
            KeyArg::Blob => Self::Blob,
            KeyArg::Text => Self::Text,
        }
    }
}

impl Suite for SysbenchSuite {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn summary(&self) -> &'static str {
        "Statements as sysbench has them, for two engines or configurations side by side"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  WAL against PERSIST, with a ceiling as a gate (exit code 1):
    stablebench run sysbench --base sqlite/persist --other sqlite/wal --max-ratio 6
  Two other configurations at once:
    stablebench run sysbench --other sqlite/delete --other sqlite-vfs
  SQLite against DoltLite, as published, with the published ceilings as a gate:
    stablebench run sysbench --other doltlite --max-ratio 6 --max-average 5"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        SysbenchArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        plan(&SysbenchArgs::from_arg_matches(matches)?)
    }

    fn gates(&self) -> &'static [&'static str] {
        &["max_ratio", "max_average"]
    }
}

/// The plan of the arguments.
///
/// # Errors
///
/// If a side is not an SQL database, or two are the same.
fn plan(args: &SysbenchArgs) -> Result<Plan> {
    let others = args.other.iter().map(|side| ("--other", side));
    let sides: Vec<(&str, &Configuration)> =
        [("--base", &args.base)].into_iter().chain(others).collect();
    for (at, (option, side)) in sides.iter().enumerate() {
        let key = side.key();
        ensure!(
            side.engine.kind == Kind::Sql,
            "{option} {key}: this engine has no SQL; a side is sqlite/JOURNAL_MODE, sqlite-vfs or doltlite"
        );
        ensure!(
            sides[..at].iter().all(|(_, other)| other.key() != key),
            "two sides are {key}; choose another --base or --other"
        );
    }
    let mut fixtures = Vec::new();
    for shape in unique(&args.keys) {
        for (storage, places) in [
            (Storage::Heap, &[Place::Memory][..]),
            (Storage::Stable, &[Place::Stable, Place::Autocommit]),
        ] {
            let places: Vec<Place> =
                places.iter().copied().filter(|place| args.places.contains(place)).collect();
            if !places.is_empty() {
                for (_, side) in &sides {
                    fixtures.push(fixture(side, shape.into(), storage, &places, args.rows));
                }
            }
        }
    }
    let mut plan = Plan::new(SysbenchSuite.name(), fixtures);
    let SysbenchArgs { max_ratio, max_average, .. } = *args;
    if max_ratio.is_some() || max_average.is_some() {
        plan.ceilings = Some(Ceilings { max_ratio, max_average });
    }
    Ok(plan)
}

/// A side with tables of a shape in one place.
fn fixture(
    side: &Configuration,
    shape: KeyShape,
    storage: Storage,
    places: &[Place],
    rows: u64,
) -> Fixture {
    let job = |task, autocommit| Job::of(&Sysbench { shape, storage, autocommit, rows, task });
    let populate = Step::new(job(SysbenchTask::Populate, false), populated(rows));
    let mut steps = vec![
        Step::new(job(SysbenchTask::Create, false), 1),
        Step { messages: Messages::UpTo(10_000), ..populate },
    ];
    let populated = steps.len();
    for place in places {
        for (workload, _, _) in WORKLOADS {
            let section = Section::of(shape, *place, workload).name();
            let job = job(SysbenchTask::Workload(workload), *place == Place::Autocommit);
            steps.push(Step {
                messages: Messages::UpTo(message_operations(workload, *place, rows)),
                ..Step::case(&section, name(workload), job, operations(workload, rows))
            });
        }
    }
    Fixture {
        engine: side.engine.protocol,
        configuration: side.info(),
        name: format!("{} keys, {}", shape_name(shape), storage_name(storage)),
        rows,
        payload: PAYLOAD,
        model: match shape {
            KeyShape::Integer => || Box::new(SysbenchModel::new(KeyShape::Integer)),
            KeyShape::Composite => || Box::new(SysbenchModel::new(KeyShape::Composite)),
            KeyShape::Text => || Box::new(SysbenchModel::new(KeyShape::Text)),
            KeyShape::Blob => || Box::new(SysbenchModel::new(KeyShape::Blob)),
        },
        steps,
        populated,
    }
}

/// All operations in one message, unless they would not fit.
fn message_operations(workload: SysbenchWorkload, place: Place, rows: u64) -> u64 {
    match workload {
        SysbenchWorkload::TableScan => (MAX_SCANNED / rows.max(1)).max(1),
        _ if place == Place::Autocommit => MAX_TRANSACTIONS,
        _ => MAX_OPERATIONS,
    }
}

/// The place of the tables, and the extent of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// On the heap, as :memory:; a message is a transaction.
    Memory,
    /// In stable memory; a message is a transaction.
    Stable,
    /// In stable memory; each statement is a transaction.
    Autocommit,
}

const PLACES: [Place; 3] = [Place::Memory, Place::Stable, Place::Autocommit];

/// A table of the published layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    pub shape: KeyShape,
    pub place: Place,
    pub writes: bool,
}

impl Section {
    /// All 24, in the published order.
    pub fn all() -> impl Iterator<Item = Self> {
        SHAPES.into_iter().flat_map(|shape| {
            PLACES.into_iter().flat_map(move |place| {
                [false, true].into_iter().map(move |writes| Self { shape, place, writes })
            })
        })
    }

    /// The section of a workload.
    fn of(shape: KeyShape, place: Place, workload: SysbenchWorkload) -> Self {
        Self { shape, place, writes: writes(workload) }
    }

    /// The name in results: `integer memory reads`, …
    pub fn name(self) -> String {
        let place = match self.place {
            Place::Memory => "memory",
            Place::Stable => "stable",
            Place::Autocommit => "autocommit",
        };
        format!("{} {place} {}", shape_name(self.shape), self.kind())
    }

    /// `reads` or `writes`.
    pub fn kind(self) -> &'static str {
        if self.writes { "writes" } else { "reads" }
    }

    /// The title in tables.
    pub fn title(self) -> String {
        let shape = match self.shape {
            KeyShape::Integer => "INTEGER keys",
            KeyShape::Composite => "composite keys (a, b) WITHOUT ROWID",
            KeyShape::Blob => "BLOB keys of 16 bytes",
            KeyShape::Text => "TEXT keys of 32 digits",
        };
        format!("{shape}, {}, {}", self.place_title(), self.kind())
    }

    /// The place of its tables.
    pub fn place_title(self) -> &'static str {
        match self.place {
            Place::Memory => "in memory",
            Place::Stable => "on stable memory",
            Place::Autocommit => "on stable memory, each statement a transaction",
        }
    }
}

/// The title of a section, from its name in results.
pub fn describe(name: &str) -> Option<String> {
    Section::all().find(|section| section.name() == name).map(Section::title)
}

/// One word for a shape.
fn shape_name(shape: KeyShape) -> &'static str {
    match shape {
        KeyShape::Integer => "integer",
        KeyShape::Composite => "composite",
        KeyShape::Blob => "blob",
        KeyShape::Text => "text",
    }
}

/// The place of a database.
fn storage_name(storage: Storage) -> &'static str {
    match storage {
        Storage::Heap => "in memory",
        Storage::Stable => "on stable memory",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use stablebench_suite::plan_of;

    #[test]
    fn each_side_has_every_workload_in_every_shape_and_place() {
        let plan = plan_of(&SysbenchSuite, "").unwrap();
        assert_eq!(plan.rows.len(), 23 * 3 * 4);
        assert_eq!(plan.configurations.len(), 3);
        let cases = plan.fixtures.iter().flat_map(|fixture| {
            fixture.cases().map(|case| (fixture.configuration.key.clone(), case))
        });
        assert_eq!(cases.collect::<BTreeSet<_>>().len(), 3 * 23 * 3 * 4);
        let mut sections: Vec<&str> =
            plan.rows.iter().map(|(section, _)| section.as_str()).collect();
        sections.dedup();
        assert_eq!(sections.len(), 24, "each section is in one piece");
    }

    #[test]
    fn impossible_sides_are_refused() {
        for (typed, part) in [
            ("--base=btree", "--base btree: this engine has no SQL"),
            ("--other=sqlite/persist", "two sides are sqlite/persist"),
        ] {
            let error = plan_of(&SysbenchSuite, typed).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
