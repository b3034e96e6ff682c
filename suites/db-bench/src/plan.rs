//! Arguments, the benchmarks of `db_bench_sqlite3`, and a fixture for each configuration that executes
//! them.

use crate::job::{DbBench, DbBenchTask, DbBenchWrite};
use crate::work::{DbBenchModel, ExistingKeys};
use anyhow::{Result, bail};
use clap::builder::BoolishValueParser;
use clap::{ArgAction, ArgMatches, Args, FromArgMatches, ValueEnum};
use stablebench_workload::digits::KEY_BYTES;

use stablebench_suite::Suite;
use stablebench_suite::engines::{Configuration, Configurations, Kind};
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Details, Effect, Fixture, Messages, Plan, Step};
use stablebench_suite::results::ConfigurationInfo;

/// The suite.
pub struct DbBenchSuite;

/// The only section.
pub const SECTION: &str = "benchmarks";

/// The configurations of the SQL engines, of which `--use-rowids` chooses one each.
pub const WITH_ROWID: &str = "sqlite/with-rowid";
pub const WITHOUT_ROWID: &str = "sqlite/without-rowid";
const VFS_WITH_ROWID: &str = "sqlite-vfs/with-rowid";
const VFS_WITHOUT_ROWID: &str = "sqlite-vfs/without-rowid";
const DOLTLITE_WITH_ROWID: &str = "doltlite/with-rowid";
const DOLTLITE_WITHOUT_ROWID: &str = "doltlite/without-rowid";

impl Suite for DbBenchSuite {
    fn name(&self) -> &'static str {
        "db-bench"
    }

    fn summary(&self) -> &'static str {
        "LevelDB's db_bench for SQLite, with and without rowid, and for a map"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  100 000 keys and values of 100 bytes:
    stablebench run db-bench
  A tenth of them, in LevelDB with and without compression:
    stablebench run db-bench --num 10000 --engines leveldb/none,leveldb/snappy"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        DbBenchArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, seed: u64) -> Result<Plan> {
        let args = DbBenchArgs::from_arg_matches(matches)?;
        Ok(Plan::new(self.name(), fixtures(&args, seed)?))
    }
}

/// Command-line options. They have db_bench's names, with its underscores or with hyphens.
#[derive(Clone, Debug, Args)]
pub struct DbBenchArgs {
    /// Benchmarks to run on each fixture, in this order; fill… benchmarks empty it first.
    /// Default: all fourteen of db_bench.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Benchmark::ALL)]
    pub benchmarks: Vec<Benchmark>,
    /// Engines or full configurations, such as `leveldb/snappy,write_buffer_size=65536`.
    #[arg(long, value_name = "ENGINES", default_value = "sqlite,sqlite-vfs,btree,array")]
    pub engines: Configurations,
    /// Keys to write; …sync benchmarks write a hundredth of them, …100K a thousandth. The
    /// published figures have 1000000.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub num: u64,
    /// Reads of readrandom, the maximum of readseq, a thousandth of them for readrand100K
    /// [default: as many as --num].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub reads: Option<u64>,
    /// Bytes of a value; those of …100K have 100000.
    #[arg(long, alias = "value_size", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub value_size: u32,
    /// Only one of SQLite's two tables: true is the table with rowid, false the one without, which
    /// is db_bench's default. By default, both are measured.
    #[arg(long, alias = "use_rowids", value_parser = BoolishValueParser::new())]
    pub use_rowids: Option<bool>,
    /// Bytes of a page of SQLite. db_bench's 1024 stands for SQLite's own default, which is 4096
    /// since SQLite 3.12.
    #[arg(long, alias = "page_size", default_value_t = 4_096, value_parser = page_size)]
    pub page_size: u32,
    /// Also measure each operation by itself, in a fork, and print a histogram.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    pub histogram: bool,
}

fn page_size(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bytes) if bytes.is_power_of_two() && (512..=65_536).contains(&bytes) => Ok(bytes),
        _ => Err("a page has 512, 1024, 2048, … or 65536 bytes".to_owned()),
    }
}

/// The number of entries in a transaction of a …batch benchmark.
pub const BATCH: u64 = 1_000;
/// The length of a value of a …100K benchmark in bytes.
const LARGE_VALUE: u32 = 100_000;
/// A …sync benchmark writes every hundredth key.
const SYNC_ONE_IN: u64 = 100;
/// A …100K benchmark uses every thousandth key.
const LARGE_ONE_IN: u64 = 1_000;

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// Keys in order into an empty table, each in a transaction of its own.
    Fillseq,
    /// The same for a hundredth of the keys, each synced.
    Fillseqsync,
    /// Keys in order into an empty table, 1000 a transaction.
    Fillseqbatch,
    /// Random keys into an empty table, each in a transaction of its own.
    Fillrandom,
    /// The same for a hundredth of the keys, each synced.
    Fillrandsync,
    /// Random keys into an empty table, 1000 a transaction.
    Fillrandbatch,
    /// Random keys into a full table, each in a transaction of its own.
    Overwrite,
    /// Random keys into a full table, 1000 a transaction.
    Overwritebatch,
    /// Lookups of random keys.
    Readrandom,
    /// A read of all rows in the order of keys.
    Readseq,
    /// A thousandth of the keys in random order, values of 100000 bytes, into an empty table.
    #[value(name = "fillrand100K")]
    Fillrand100K,
    /// The same in the order of keys.
    #[value(name = "fillseq100K")]
    Fillseq100K,
    /// Lookups of a thousandth of the keys, at random.
    #[value(name = "readrand100K")]
    Readrand100K,
}

/// A benchmark that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fill {
    /// `true` if the table is emptied first.
    fresh: bool,
    /// `true` if SQLite syncs.
    sync: bool,
    /// The number of operations.
    entries: u64,
    write: DbBenchWrite,
}

impl Benchmark {
    /// The benchmarks of `db_bench` without arguments.
    pub const ALL: [Self; 14] = [
        Self::Fillseq,
        Self::Fillseqsync,
        Self::Fillseqbatch,
        Self::Fillrandom,
        Self::Fillrandsync,
        Self::Fillrandbatch,
        Self::Overwrite,
        Self::Overwritebatch,
        Self::Readrandom,
        Self::Readseq,
        Self::Fillrand100K,
        Self::Fillseq100K,
        Self::Readseq,
        Self::Readrand100K,
    ];

    /// Returns the writes, if it writes; `stream` is its place in the run.
    fn fill(self, args: &DbBenchArgs, stream: u64) -> Option<Fill> {
        let random = match self {
            Self::Readrandom | Self::Readseq | Self::Readrand100K => return None,
            Self::Fillseq | Self::Fillseqsync | Self::Fillseqbatch | Self::Fillseq100K => false,
            Self::Fillrandom
            | Self::Fillrandsync
            | Self::Fillrandbatch
            | Self::Overwrite
            | Self::Overwritebatch
            | Self::Fillrand100K => true,
        };
        let sync = matches!(self, Self::Fillseqsync | Self::Fillrandsync);
        let large = self.fills_large();
        let batched =
            matches!(self, Self::Fillseqbatch | Self::Fillrandbatch | Self::Overwritebatch);
        let entries = match (sync, large) {
            (true, _) => part(args.num, SYNC_ONE_IN),
            (_, true) => part(args.num, LARGE_ONE_IN),
            _ => args.num,
        };
        let write = DbBenchWrite {
            random,
            keys: entries,
            value_bytes: if large { LARGE_VALUE } else { args.value_size },
            batch: if batched { BATCH } else { 1 },
            stream,
        };
        let fresh = !matches!(self, Self::Overwrite | Self::Overwritebatch);
        Some(Fill { fresh, sync, entries, write })
    }

    /// Returns the lookups and their number, if it looks keys up.
    fn lookups(self, args: &DbBenchArgs, stream: u64) -> Option<(DbBenchTask, u64)> {
        let reads = args.reads.unwrap_or(args.num);
        let keys = match self {
            Self::Readrandom => reads,
            Self::Readrand100K => part(reads, LARGE_ONE_IN),
            _ => return None,
        };
        Some((DbBenchTask::ReadRandom { keys, stream }, keys))
    }

    /// Returns `true` if values have 100 000 bytes afterwards.
    fn fills_large(self) -> bool {
        matches!(self, Self::Fillrand100K | Self::Fillseq100K)
    }
}

/// Returns a part of the keys, at least one, since a run with few keys executes everything.
fn part(of: u64, one_in: u64) -> u64 {
    (of / one_in).max(1)
}

impl std::fmt::Display for Benchmark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}

/// The maximum number of operations in a message.
const MESSAGE_OPERATIONS: u64 = 1 << 16;
/// The maximum size of the rows that a message writes, in bytes.
const MESSAGE_BYTES: u64 = 64 << 20;

/// A benchmark at its place in the run.
struct Planned {
    name: String,
    task: DbBenchTask,
    operations: u64,
    message_operations: u64,
    /// The task that prepares the table for it.
    ready: Option<DbBenchTask>,
}

/// Returns a fixture for each configuration.
///
/// # Errors
///
/// If a benchmark has nothing to read, or an engine does not support the page size.
fn fixtures(args: &DbBenchArgs, seed: u64) -> Result<Vec<Fixture>> {
    let planned = benchmarks(args, seed)?;
    let mut fixtures = Vec::new();
    for configuration in &args.engines.0 {
        for (info, rowids) in infos(args, configuration)? {
            fixtures.push(fixture(args, &planned, info, rowids));
        }
    }
    Ok(fixtures)
}

/// Returns a configuration for each kind of table, and `true` for tables with rowids.
fn infos(
    args: &DbBenchArgs,
    configuration: &Configuration,
) -> Result<Vec<(ConfigurationInfo, bool)>> {
    let (with, without) = match (configuration.engine.key, configuration.engine.kind) {
        ("sqlite", _) => (WITH_ROWID, WITHOUT_ROWID),
        ("sqlite-vfs", _) => (VFS_WITH_ROWID, VFS_WITHOUT_ROWID),
        ("doltlite", _) => (DOLTLITE_WITH_ROWID, DOLTLITE_WITHOUT_ROWID),
        (_, Kind::KeyValue | Kind::Floor) => return Ok(vec![(configuration.info(), false)]),
        (engine, _) => bail!("db-bench does not support the engine {engine}"),
    };
    // DoltLite has no such pages.
    let paged =
        configuration.engine.key != "doltlite" && configuration.value("page_size").is_none();
    let configuration = match paged {
        true => configuration.clone().with("page_size", args.page_size)?,
        false => configuration.clone(),
    };
    let tables = [(with, true), (without, false)].into_iter();
    let chosen = tables.filter(|(_, rowids)| args.use_rowids.is_none_or(|only| only == *rowids));
    Ok(chosen
        .map(|(key, rowids)| {
            (ConfigurationInfo { key: key.to_owned(), ..configuration.info() }, rowids)
        })
        .collect())
}

fn fixture(
    args: &DbBenchArgs,
    planned: &[Planned],
    configuration: ConfigurationInfo,
    rowids: bool,
) -> Fixture {
    let engine = configuration.engine;
    let step = |task, operations| {
        let job = Job::of(&DbBench { engine, rowids, task });
        let effect = match task {
            DbBenchTask::Ready { fresh: true, .. } => Effect::KeptAfresh,
            _ => Effect::Kept,
        };
        Step { effect, ..Step::new(job, operations) }
    };
    // Like db_bench, which opens an empty database before its first benchmark.
    let mut steps = vec![step(DbBenchTask::Ready { fresh: true, sync: false }, 1)];
    for benchmark in planned {
        steps.extend(benchmark.ready.map(|task| step(task, 1)));
        let size = matches!(benchmark.task, DbBenchTask::Write(_));
        steps.push(Step {
            messages: Messages::UpTo(benchmark.message_operations),
            details: Details { size, each: args.histogram, ..Details::default() },
            ..step(benchmark.task, benchmark.operations).named(SECTION, &benchmark.name)
        });
    }
    Fixture {
        engine,
        configuration,
        name: String::new(),
        rows: args.num,
        payload: args.value_size,
        model: || Box::new(DbBenchModel::default()),
        populated: steps.len(),
        steps,
    }
}

/// Returns the benchmarks in order. The number of rows that a sequential read finds depends on the
/// keys that were written before.
fn benchmarks(args: &DbBenchArgs, seed: u64) -> Result<Vec<Planned>> {
    let mut planned: Vec<Planned> = Vec::new();
    let (mut keys, mut large) = (ExistingKeys::default(), false);
    for (stream, &benchmark) in (0..).zip(&args.benchmarks) {
        let name = name(benchmark, large, &planned);
        planned.push(if let Some(fill) = benchmark.fill(args, stream) {
            let ready = DbBenchTask::Ready { fresh: fill.fresh, sync: fill.sync };
            let task = DbBenchTask::Write(fill.write);
            keys.execute(seed, &ready, 1);
            keys.execute(seed, &task, fill.entries);
            large = benchmark.fills_large() || large && !fill.fresh;
            let message_operations = in_a_message(fill.write.batch, fill.write.value_bytes);
            let operations = fill.entries;
            Planned { name, task, operations, message_operations, ready: Some(ready) }
        } else if let Some((task, operations)) = benchmark.lookups(args, stream) {
            let message_operations = MESSAGE_OPERATIONS;
            Planned { name, task, operations, message_operations, ready: None }
        } else {
            let rows = keys.rows();
            let operations = rows.min(args.reads.unwrap_or(args.num));
            if operations == 0 {
                bail!("{benchmark} finds nothing to read: put a fill benchmark before it");
            }
            let task = DbBenchTask::ReadSequential { rows };
            // One statement reads all of them.
            Planned { name, task, operations, message_operations: operations, ready: None }
        });
    }
    Ok(planned)
}

/// Returns a name that differs from those of the previous benchmarks.
fn name(benchmark: Benchmark, large: bool, planned: &[Planned]) -> String {
    let of_large = large && matches!(benchmark, Benchmark::Readseq | Benchmark::Readrandom);
    let name = format!("{benchmark}{}", if of_large { " (100K)" } else { "" });
    let taken = |name: &str| planned.iter().any(|other| other.name == name);
    if !taken(&name) {
        return name;
    }
    let numbered = (2..).map(|number| format!("{name} #{number}"));
    numbered.into_iter().find(|name| !taken(name)).unwrap_or(name)
}

/// Returns the number of operations in a message: a power of two of whole transactions, so that
/// halves are whole as well.
fn in_a_message(batch: u64, value_bytes: u32) -> u64 {
    let row_bytes = KEY_BYTES as u64 + u64::from(value_bytes);
    let most = MESSAGE_OPERATIONS.min(MESSAGE_BYTES / row_bytes);
    let mut operations = batch;
    while operations * 2 <= most {
        operations *= 2;
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan_of;

    fn plan(typed: &[&str]) -> Result<Plan> {
        plan_of(&DbBenchSuite, &typed.join(" "))
    }

    /// Returns the names and operations of a configuration's benchmarks.
    fn benchmarks(typed: &[&str]) -> Vec<(String, u64)> {
        let plan = plan(typed).unwrap();
        let steps = plan.fixtures[0].steps.iter();
        steps.filter_map(|step| Some((step.row()?.1.to_owned(), step.operations))).collect()
    }

    #[test]
    fn the_number_of_reads_is_an_option() {
        let of = |typed: &[&str], name: &str| {
            let planned = benchmarks(typed);
            planned.into_iter().find(|(other, _)| other == name).map(|(_, operations)| operations)
        };
        let typed = &["--num=10000", "--reads=3000"];
        assert_eq!(of(typed, "readrandom"), Some(3_000));
        assert_eq!(of(typed, "readseq"), Some(3_000));
        assert_eq!(of(typed, "readseq (100K)"), Some(10), "there are no more rows");
        assert_eq!(of(typed, "readrand100K"), Some(3));
        assert_eq!(of(&["--num=5"], "fillseqsync"), Some(1), "everything runs at least once");
        assert_eq!(of(&["--num=5"], "fillrand100K"), Some(1));
    }

    #[test]
    fn repeated_benchmarks_have_different_names() {
        let names = |typed: &str| -> Vec<String> {
            let typed = format!("--benchmarks={typed}");
            benchmarks(&["--num=10", &typed]).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(
            names("fillseq,readseq,readseq,readseq"),
            ["fillseq", "readseq", "readseq #2", "readseq #3"]
        );
        assert_eq!(
            names("fillseq100K,readrandom,overwrite,readseq,fillseq,readseq"),
            [
                "fillseq100K",
                "readrandom (100K)",
                "overwrite",
                "readseq (100K)",
                "fillseq",
                "readseq"
            ]
        );
        let error = plan(&["--benchmarks=readseq"]).unwrap_err().to_string();
        assert_eq!(error, "readseq finds nothing to read: put a fill benchmark before it");
    }

    #[test]
    fn tables_are_emptied_and_synced_as_by_db_bench() {
        let plan = plan(&["--num=1000"]).unwrap();
        let ready: Vec<(bool, bool)> = plan.fixtures[0]
            .steps
            .iter()
            .filter_map(|step| {
                match step.job.choose(1, 1).unwrap().tables().decode::<DbBench>().unwrap().task {
                    DbBenchTask::Ready { fresh, sync } => Some((fresh, sync)),
                    _ => None,
                }
            })
            .collect();
        let (fresh, synced, kept) = ((true, false), (true, true), (false, false));
        let opened = fresh;
        assert_eq!(
            ready,
            [opened, fresh, synced, fresh, fresh, synced, fresh, kept, kept, fresh, fresh]
        );
    }

    #[test]
    fn each_library_has_both_tables_or_the_chosen_one() {
        let configurations = |typed: &[&str]| -> Vec<String> {
            let plan = plan(typed).unwrap();
            plan.configurations.into_iter().map(|configuration| configuration.key).collect()
        };
        let all = [WITH_ROWID, WITHOUT_ROWID, VFS_WITH_ROWID, VFS_WITHOUT_ROWID, "btree", "array"];
        assert_eq!(configurations(&[]), all);
        assert_eq!(
            configurations(&["--use-rowids=true"]),
            [WITH_ROWID, VFS_WITH_ROWID, "btree", "array"]
        );
        assert_eq!(
            configurations(&["--use_rowids=0"]),
            [WITHOUT_ROWID, VFS_WITHOUT_ROWID, "btree", "array"]
        );
    }

    #[test]
    fn engines_are_in_the_requested_order() {
        let configurations = |typed: &str| -> Vec<(String, String)> {
            let typed: Vec<&str> = typed.split(' ').collect();
            let configurations = plan(&typed).unwrap().configurations.into_iter();
            configurations
                .map(|configuration| (configuration.key, configuration.canister))
                .collect()
        };
        let of = |keys: &[&str], canister: &str| -> Vec<(String, String)> {
            keys.iter().map(|key| ((*key).to_owned(), canister.to_owned())).collect()
        };
        assert_eq!(
            configurations("--engines=leveldb,btree,leveldb"),
            [of(&["leveldb/none"], "bench_leveldb"), of(&["btree"], "bench")].concat()
        );
        let keys =
            ["leveldb/snappy,write_buffer_size=65536", "leveldb/none,write_buffer_size=65536"];
        assert_eq!(
            configurations(
                "--engines=leveldb/snappy,write_buffer_size=65536,leveldb/none,write_buffer_size=65536"
            ),
            of(&keys, "bench_leveldb")
        );
        let keys = [DOLTLITE_WITH_ROWID, DOLTLITE_WITHOUT_ROWID];
        assert_eq!(configurations("--engines=doltlite"), of(&keys, "bench_doltlite"));
        let doltlite = plan(&["--engines=doltlite"]).unwrap();
        let chosen = doltlite.configurations.iter().map(|of| of.settings.as_ref().unwrap().len());
        assert!(chosen.eq([0, 0]), "its pages are not SQLite's");
    }
}
