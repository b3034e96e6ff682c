//! Arguments, fixtures and steps.

use crate::job::{Vfs, VfsTask, VfsTransaction, VfsWork};
use crate::work::VfsModel;
use anyhow::{Result, ensure};
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};

use stablebench_suite::engines::{Configuration, Kind};
use stablebench_suite::job::Job;
use stablebench_suite::plan::{self, Details, Fixture, Messages, Plan, Step};
use stablebench_suite::report::number::Grouped;
use stablebench_suite::{Suite, unique};

/// The suite.
pub struct VfsSuite;

/// Sections in results.
pub const AS_PUBLISHED: &str = "as published";
pub const EQUAL: &str = "equal";
pub const TRANSACTIONS: &str = "transactions";
pub const READS: &str = "reads";

/// Bytes of a value.
const PAYLOAD: u32 = 25;

#[derive(Clone, Debug, Args)]
pub struct VfsArgs {
    /// Sections to measure.
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["published", "transactions", "reads"])]
    pub sections: Vec<VfsSection>,
    /// Sections transactions and reads: rows before the work.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rows: u64,
    /// Sections transactions and reads: rows in a transaction, and rows read; at most --rows.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1_000, 10_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub sizes: Vec<u64>,
    /// A further configuration, such as sqlite/persist or doltlite, with the transactions of all
    /// others. Can be repeated.
    #[arg(long, value_name = "CONFIGURATION")]
    pub other: Vec<Configuration>,
}

/// A part of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VfsSection {
    /// The published benchmark: as it was measured, and with equal transactions.
    Published,
    /// Inserts and updates, by the rows of a transaction.
    Transactions,
    /// Point reads, scans and lists of keys.
    Reads,
}

impl Suite for VfsSuite {
    fn name(&self) -> &'static str {
        "vfs"
    }

    fn summary(&self) -> &'static str {
        "SQLite through ic-sqlite-vfs and through ic-rusqlite: the cost of the file layer"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  The cost of the file layer below SQLite, in both libraries:
    stablebench run vfs
  As CSV:
    stablebench run vfs --format csv"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        VfsArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, _: u64) -> Result<Plan> {
        plan(&VfsArgs::from_arg_matches(matches)?)
    }
}

/// Configurations that differ in the library only: pages of 16384 or 4096 bytes, a cache of 32 MiB,
/// and the journal on the heap. Keys do not contain a library's defaults.
pub fn equal_keys(page_size: u32) -> [&'static str; 2] {
    match page_size {
        16_384 => ["sqlite-vfs", "sqlite/memory,page_size=16384,cache_size=-32768"],
        _ => ["sqlite-vfs,page_size=4096", "sqlite/memory,cache_size=-32768"],
    }
}

/// The configurations of the published figures: each library with its defaults.
pub fn published_keys() -> [&'static str; 2] {
    ["sqlite-vfs", "sqlite/persist"]
}

/// The plan of the arguments.
///
/// # Errors
///
/// If more rows would be read than there are, or an engine has no SQL.
fn plan(args: &VfsArgs) -> Result<Plan> {
    if let Some(size) = args.sizes.iter().max().filter(|size| **size > args.rows) {
        ensure!(
            args.sections.iter().all(|section| *section == VfsSection::Published),
            "{} rows cannot be read of {}; choose other --sizes, or --rows of at least {size}",
            Grouped(*size),
            Grouped(args.rows)
        );
    }
    let keys = [equal_keys(16_384), equal_keys(4_096)].concat();
    // The published section has no options.
    let keys = keys.into_iter().chain(["sqlite"]);
    let mut configurations = keys.map(Configuration::of).collect::<Result<Vec<_>, _>>()?;
    for other in &args.other {
        let key = other.key();
        ensure!(
            other.engine.kind == Kind::Sql,
            "--other {key}: this engine has no SQL; a configuration is sqlite/JOURNAL_MODE, sqlite-vfs or \
             doltlite"
        );
        if configurations.iter().all(|known| known.key() != key) {
            configurations.push(other.named());
        }
    }
    let fixtures: Vec<Fixture> = configurations.iter().flat_map(|of| fixtures(of, args)).collect();
    // The fixtures are by table, the sections are not.
    let mut rows: Vec<(String, String)> = Vec::new();
    for section in [AS_PUBLISHED, EQUAL, TRANSACTIONS, READS] {
        for case in fixtures.iter().flat_map(Fixture::cases) {
            let row = (case.0.to_owned(), case.1.to_owned());
            if row.0 == section && !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    Ok(Plan::in_order(VfsSuite.name(), rows, fixtures))
}

fn fixtures(configuration: &Configuration, args: &VfsArgs) -> Vec<Fixture> {
    let mut fixtures = Vec::new();
    if args.sections.contains(&VfsSection::Published) {
        for (rows, work) in PUBLISHED {
            let steps = work.iter().flat_map(|(name, work, operations)| {
                of_published(configuration, name, *work, *operations)
            });
            fixtures.push(fixture(configuration, rows, steps.collect()));
        }
    }
    let mut steps = Vec::new();
    if args.sections.contains(&VfsSection::Transactions) {
        steps.extend(transactions(args));
    }
    if args.sections.contains(&VfsSection::Reads) {
        steps.extend(reads(args));
    }
    if !steps.is_empty() {
        match fixtures.iter_mut().find(|fixture: &&mut Fixture| fixture.rows == args.rows) {
            Some(fixture) => fixture.steps.extend(steps),
            None => fixtures.push(fixture(configuration, args.rows, steps)),
        }
    }
    fixtures
}

/// Tables by their rows, and the work on them: name, work, operations.
type OfTable = (u64, &'static [(&'static str, VfsWork, u64)]);

const PUBLISHED: [OfTable; 3] = [
    (
        0,
        &[("insert 1 000", VfsWork::Insert(0), 1_000), ("insert 5 000", VfsWork::Insert(0), 5_000)],
    ),
    (
        1_000,
        &[
            ("upsert 1 000", VfsWork::Upsert, 1_000),
            ("update 1 000", VfsWork::Update, 1_000),
            ("point read 1", VfsWork::Read, 1),
            ("point read 1 000", VfsWork::Read, 1_000),
        ],
    ),
    (5_000, &[("ordered scan 5 000", VfsWork::Scan, 5_000), ("IN 1 000", VfsWork::List, 1_000)]),
];

/// The published cases, as they were measured and with equal transactions. Only the lengths of
/// texts are read; the connection is open and the statement prepared.
fn of_published(
    configuration: &Configuration,
    name: &str,
    work: VfsWork,
    operations: u64,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |section, transaction| {
        let work = CaseWork { work, transaction, copy: false };
        steps.push(work.step(section, name.to_owned(), operations, ConnectionState::Prepared));
    };
    let [vfs, rusqlite] = published_keys();
    match configuration.key() {
        key if key == vfs => add(AS_PUBLISHED, VfsTransaction::Message),
        key if key == rusqlite => add(AS_PUBLISHED, VfsTransaction::Statement),
        _ => {}
    }
    add(EQUAL, VfsTransaction::Message);
    steps
}

/// One transaction of each size, warm and cold, and many of them.
fn transactions(args: &VfsArgs) -> Vec<Step> {
    let mut steps = Vec::new();
    for (verb, work) in [("insert", VfsWork::Insert(args.rows)), ("update", VfsWork::Update)] {
        steps.extend(by_size(args, TRANSACTIONS, verb, work));
        for size in unique(&args.sizes).into_iter().filter(|size| *size < args.rows) {
            let name = format!("{verb} {} by {}", Grouped(args.rows), Grouped(size));
            let transaction = VfsTransaction::Operations(size);
            let work = CaseWork { work, transaction, copy: true };
            steps.push(work.step(TRANSACTIONS, name, args.rows, ConnectionState::Warm));
        }
    }
    steps
}

fn reads(args: &VfsArgs) -> Vec<Step> {
    [("point read", VfsWork::Read), ("scan", VfsWork::Scan), ("IN", VfsWork::List)]
        .into_iter()
        .flat_map(|(verb, work)| by_size(args, READS, verb, work))
        .collect()
}

/// CaseWork in one transaction of each size, warm and cold.
fn by_size(args: &VfsArgs, section: &str, verb: &str, work: VfsWork) -> Vec<Step> {
    let mut steps = Vec::new();
    for size in unique(&args.sizes) {
        for (temperature, before) in
            [("warm", ConnectionState::Warm), ("cold", ConnectionState::Cold)]
        {
            let name = format!("{verb} {}, {temperature}", Grouped(size));
            let work = CaseWork { work, transaction: VfsTransaction::Message, copy: true };
            steps.push(work.step(section, name, size, before));
        }
    }
    steps
}

/// The state of the connection before the work, prepared in a message of its own.
#[derive(Clone, Copy)]
enum ConnectionState {
    /// The connection is closed.
    Cold,
    /// The connection is open and the statement prepared.
    Prepared,
    /// Also, the table was read once.
    Warm,
}

#[derive(Clone, Copy)]
struct CaseWork {
    work: VfsWork,
    transaction: VfsTransaction,
    /// `true` if texts are copied; else only their lengths are read.
    copy: bool,
}

impl CaseWork {
    fn job(self, task: VfsTask) -> Job {
        let Self { transaction, copy, .. } = self;
        Job::of(&Vfs { transaction, copy, task })
    }

    fn step(self, section: &str, name: String, operations: u64, before: ConnectionState) -> Step {
        let before = match before {
            ConnectionState::Cold => VfsTask::Close,
            ConnectionState::Prepared => VfsTask::Prepare(self.work),
            ConnectionState::Warm => VfsTask::Warm(self.work),
        };
        // The preparation copies texts in any case.
        let before = Self { copy: true, ..self }.job(before);
        let job = self.job(VfsTask::Work(self.work));
        let details = Details { phases: true, ..Details::default() };
        let before = plan::Before::Job(before, operations);
        Step { before, details, ..Step::case(section, name, job, operations) }
    }
}

/// Returns the fixture of a table with this number of rows.
fn fixture(configuration: &Configuration, rows: u64, cases: Vec<Step>) -> Fixture {
    let insert = VfsWork::Insert(0);
    let work = CaseWork { work: insert, transaction: VfsTransaction::Message, copy: true };
    let step = |task, operations| Step {
        messages: Messages::UpTo(100_000),
        ..Step::new(work.job(task), operations)
    };
    let mut steps = vec![step(VfsTask::Create, 1)];
    if rows > 0 {
        steps.push(step(VfsTask::Work(insert), rows));
    }
    let populated = steps.len();
    steps.extend(cases);
    Fixture {
        engine: configuration.engine.protocol,
        configuration: configuration.info(),
        name: String::new(),
        rows,
        payload: PAYLOAD,
        model: || Box::new(VfsModel::default()),
        steps,
        populated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan_of;

    #[test]
    fn more_rows_than_there_are_cannot_be_read() {
        let error = plan_of(&VfsSuite, "--rows 50").unwrap_err().to_string();
        assert!(
            error.ends_with(" be read of 50; choose other --sizes, or --rows of at least 10000"),
            "{error}"
        );
    }

    #[test]
    fn equal_configurations_differ_in_the_library_alone() {
        for page_size in [16_384_u32, 4_096] {
            let effective = equal_keys(page_size).map(|key| {
                let configuration = Configuration::of(key).unwrap();
                ["journal_mode", "page_size", "cache_size", "synchronous", "locking_mode"]
                    .map(|name| configuration.effective(name).map(str::to_owned))
            });
            assert_eq!(effective[0], effective[1]);
            assert_eq!(effective[0][1], Some(page_size.to_string()));
        }
    }
}
