//! The suite vfs: what the file layer below SQLite costs, through `ic-sqlite-vfs` and
//! through `ic-rusqlite`.
//!
//! ```text
//!   for each column and size of table:   install → configure → create → populate → check
//!     for each case:   fork → close, or open and warm → work, measured → check
//!                      fork → the same                → work, its phases
//! ```
//!
//! The table is that of the published benchmark. It gave one side a transaction around all
//! rows and the other a transaction a row, other pages and another journal: section
//! `as published`. All other sections have the same transactions on both sides, and columns
//! with the same pages, cache and journal.

pub mod published;

use anyhow::{Result, ensure};
use stablebench_protocol::{Engine, Job, JournalMode, Vfs, VfsTask, VfsTransaction, VfsWork};
use stablebench_workload::vfs::VfsModel;

use super::command::{Command, typed};
use super::lane::{Lane, Plan, Step};
use super::outline::Outline;
use super::users::{Library, Setting, unique};
use crate::cli::{VfsArgs, VfsSection};
use crate::report::number::Grouped;

/// The name in results.
pub const NAME: &str = "vfs";

/// Sections in results.
pub const AS_PUBLISHED: &str = "as published";
pub const EQUAL: &str = "equal";
pub const TRANSACTIONS: &str = "transactions";
pub const READS: &str = "reads";

/// Bytes of a value.
const PAYLOAD: u32 = 25;

/// What a section is about, from its name in results.
pub fn describe(section: &str) -> Option<String> {
    let what = match section {
        AS_PUBLISHED => {
            "The published benchmark as it was measured: one transaction, and one a statement"
        }
        EQUAL => "The published benchmark with one transaction on both sides",
        TRANSACTIONS => "Writes, by the rows of a transaction",
        READS => "Reads",
        _ => return None,
    };
    Some(what.to_owned())
}

/// The columns that differ in nothing but the library.
pub fn equal_columns(page_size: u32) -> [Setting; 2] {
    let mut vfs = Setting::through(Library::IcSqliteVfs);
    if page_size != 16_384 {
        vfs.sqlite.page_size = Some(page_size);
    }
    let mut rusqlite = Setting::sqlite(JournalMode::Memory);
    rusqlite.sqlite.page_size = (page_size != 4_096).then_some(page_size);
    rusqlite.sqlite.cache_size = Some(-32_768);
    [vfs, rusqlite]
}

/// The columns that were published: each library as it comes.
pub fn published_columns() -> [Setting; 2] {
    [Setting::through(Library::IcSqliteVfs), Setting::of(Engine::Sqlite)]
}

/// What the arguments mean.
///
/// # Errors
///
/// Where more rows would be read than there are, or a column has no SQL.
pub fn plan(args: &VfsArgs) -> Result<Plan> {
    if let Some(size) = args.sizes.iter().find(|size| **size > args.rows) {
        ensure!(
            !args.sections.iter().any(|section| *section != VfsSection::Published),
            "{} rows cannot be read of {}; choose other --sizes or more --rows",
            Grouped(*size),
            Grouped(args.rows)
        );
    }
    let columns = [equal_columns(16_384), equal_columns(4_096)];
    let mut settings = columns.concat();
    settings.push(Setting::of(Engine::Sqlite));
    for other in &args.other {
        ensure!(
            other.engine == Engine::Sqlite,
            "--other {}: it has no SQL; a setting is sqlite/JOURNAL_MODE, sqlite-vfs or doltlite",
            other.key()
        );
        if settings.iter().all(|setting| setting.key() != other.key()) {
            settings.push(*other);
        }
    }
    let mut lanes: Vec<Lane> = Vec::new();
    for setting in settings {
        lanes.extend(of_column(&setting, args));
    }
    let mut outline = Outline::new(NAME, command(args), &args.run);
    // The lanes are by table, the sections are not.
    for section in [AS_PUBLISHED, EQUAL, TRANSACTIONS, READS] {
        for case in lanes.iter().flat_map(|lane| &lane.steps).filter_map(|step| step.case.as_ref())
        {
            if case.0 == section && !outline.rows.contains(case) {
                outline.rows.push(case.clone());
            }
        }
    }
    Ok(Plan::new(outline, lanes))
}

fn of_column(setting: &Setting, args: &VfsArgs) -> Vec<Lane> {
    let mut lanes = Vec::new();
    if args.sections.contains(&VfsSection::Published) {
        for (rows, work) in PUBLISHED {
            let steps = work.iter().flat_map(|(name, work, operations)| {
                of_published(setting, name, *work, *operations)
            });
            lanes.push(lane(setting, rows, steps.collect()));
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
        match lanes.iter_mut().find(|lane: &&mut Lane| lane.rows == args.rows) {
            Some(lane) => lane.steps.extend(steps),
            None => lanes.push(lane(setting, args.rows, steps)),
        }
    }
    lanes
}

/// Tables by their rows, and what is done to them: name, work, operations.
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

/// As it was measured, for the columns that it was measured of, and equal. Only the lengths
/// of texts are asked for; the connection is open and the statement prepared.
fn of_published(setting: &Setting, name: &str, work: VfsWork, operations: u64) -> Vec<Step> {
    let prepared = Before::Prepared;
    let mut steps = Vec::new();
    if published_columns().iter().any(|column| column.key() == setting.key()) {
        let transaction = match setting.library {
            Library::IcSqliteVfs => VfsTransaction::Message,
            Library::IcRusqlite | Library::DoltLite => VfsTransaction::Statement,
        };
        steps.push(step(AS_PUBLISHED, name.to_owned(), work, operations, transaction, prepared));
    }
    let transaction = VfsTransaction::Message;
    steps.push(step(EQUAL, name.to_owned(), work, operations, transaction, prepared));
    for step in &mut steps {
        if let Job::Vfs(job) = &mut step.job {
            job.copy = false;
        }
    }
    steps
}

/// One transaction of each size, warm and cold, and many of them.
fn transactions(args: &VfsArgs) -> Vec<Step> {
    let mut steps = Vec::new();
    for (verb, work) in [("insert", VfsWork::Insert(args.rows)), ("update", VfsWork::Update)] {
        for size in unique(args.sizes.clone()) {
            for before in [Before::Warm, Before::Cold] {
                let name = format!("{verb} {}, {}", Grouped(size), before.name());
                let transaction = VfsTransaction::Message;
                steps.push(step(TRANSACTIONS, name, work, size, transaction, before));
            }
        }
        for size in unique(args.sizes.clone()).into_iter().filter(|size| *size < args.rows) {
            let name = format!("{verb} {} by {}", Grouped(args.rows), Grouped(size));
            let transaction = VfsTransaction::Operations(size);
            steps.push(step(TRANSACTIONS, name, work, args.rows, transaction, Before::Warm));
        }
    }
    steps
}

fn reads(args: &VfsArgs) -> Vec<Step> {
    let mut steps = Vec::new();
    for (verb, work) in
        [("point read", VfsWork::Read), ("scan", VfsWork::Scan), ("IN", VfsWork::List)]
    {
        for size in unique(args.sizes.clone()) {
            for before in [Before::Warm, Before::Cold] {
                let name = format!("{verb} {}, {}", Grouped(size), before.name());
                let transaction = VfsTransaction::Message;
                steps.push(step(READS, name, work, size, transaction, before));
            }
        }
    }
    steps
}

/// What the work finds; made so in a message before it.
#[derive(Clone, Copy)]
enum Before {
    /// The connection is closed.
    Cold,
    /// The connection is open and the statement prepared.
    Prepared,
    /// As well, and the table was gone through.
    Warm,
}

impl Before {
    fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Prepared => "prepared",
            Self::Warm => "warm",
        }
    }
}

fn step(
    section: &str,
    name: String,
    work: VfsWork,
    operations: u64,
    transaction: VfsTransaction,
    before: Before,
) -> Step {
    let job = |task| Job::Vfs(Vfs { transaction, copy: true, task });
    let before = match before {
        Before::Cold => VfsTask::Close,
        Before::Prepared => VfsTask::Prepare(work),
        Before::Warm => VfsTask::Warm(work),
    };
    Step {
        case: Some((section.to_owned(), name)),
        job: job(VfsTask::Work(work)),
        before: Some(job(before)),
        operations,
        message_operations: operations,
        as_measured: false,
        anew: false,
        forked: true,
        upgraded: false,
        inspected: false,
        phases: true,
    }
}

/// A table with so many rows.
fn lane(setting: &Setting, rows: u64, steps: Vec<Step>) -> Lane {
    let ready = |task, operations| Step {
        case: None,
        job: Job::Vfs(Vfs { transaction: VfsTransaction::Message, copy: true, task }),
        before: None,
        operations,
        message_operations: 100_000,
        as_measured: false,
        anew: false,
        forked: false,
        upgraded: false,
        inspected: false,
        phases: false,
    };
    let mut all = vec![ready(VfsTask::Create, 1)];
    if rows > 0 {
        all.push(ready(VfsTask::Work(VfsWork::Insert(0)), rows));
    }
    let populated = all.len();
    all.extend(steps);
    Lane {
        column: setting.column(),
        name: String::new(),
        rows,
        payload: PAYLOAD,
        tables: |_| Box::new(VfsModel::default()),
        steps: all,
        populated,
    }
}

/// The command that repeats the run.
fn command(args: &VfsArgs) -> String {
    let mut command = Command::new(NAME);
    command.values("--sections", args.sections.iter().map(typed));
    command.value("--rows", args.rows);
    command.values("--sizes", &args.sizes);
    for other in &args.other {
        command.value("--other", other.key());
    }
    command.run(&args.run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn args(typed: &str) -> VfsArgs {
        let words = typed.split(' ').filter(|word| !word.is_empty());
        match crate::cli::Cli::parse_from(words).command {
            Some(crate::cli::Command::Run { suite: Some(crate::cli::Suite::Vfs(args)) }) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_repeats_the_run() {
        for typed in
            ["", "--other doltlite --sections reads --rows 50 --sizes 1,50", "--sections published"]
        {
            let first = plan(&args(&format!("stablebench run vfs {typed}"))).unwrap();
            let again = plan(&args(&first.outline.command)).unwrap();
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
        }
        let error = plan(&args("stablebench run vfs --rows 50")).unwrap_err().to_string();
        assert!(error.starts_with("100 rows cannot be read of 50"), "{error}");
    }

    /// Every published case is measured as it was, and by all columns equally.
    #[test]
    fn the_published_cases_are_measured_twice() {
        let plan = plan(&args("stablebench run vfs")).unwrap();
        let published = published::published().unwrap();
        let columns = |section: &str, name: &str| -> Vec<String> {
            let case = (section.to_owned(), name.to_owned());
            let has =
                |lane: &&Lane| lane.steps.iter().any(|step| step.case.as_ref() == Some(&case));
            plan.lanes.iter().filter(has).map(|lane| lane.column.key.clone()).collect()
        };
        for figures in &published.cases {
            let as_published = columns(AS_PUBLISHED, &figures.name);
            assert_eq!(as_published, ["sqlite-vfs", "sqlite/persist"], "{}", figures.name);
            assert_eq!(columns(EQUAL, &figures.name).len(), 5, "{}", figures.name);
        }
        assert!(plan.outline.stores.iter().any(|store| store.rows == published.pages.rows));
    }

    #[test]
    fn equal_columns_differ_in_the_library_alone() {
        let keys = |page_size| equal_columns(page_size).map(|setting| setting.key());
        assert_eq!(keys(16_384), ["sqlite-vfs", "sqlite/memory,page_size=16384,cache_size=-32768"]);
        assert_eq!(keys(4_096), ["sqlite-vfs,page_size=4096", "sqlite/memory,cache_size=-32768"]);
    }
}
