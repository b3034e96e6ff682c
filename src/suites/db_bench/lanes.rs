//! A lane for each column: the benchmarks as steps.

use anyhow::{Result, bail};
use stablebench_protocol::{Compression, DbBench, DbBenchTask, Engine, Job};
use stablebench_workload::db_bench::{KEY_BYTES, Keys, Model};

use super::{
    Benchmark, DOLTLITE_WITH_ROWID, DOLTLITE_WITHOUT_ROWID, SECTION, VFS_WITH_ROWID,
    VFS_WITHOUT_ROWID, WITH_ROWID, WITHOUT_ROWID,
};
use crate::cli::{DbBenchArgs, DbEngineArg};
use crate::results::Column;
use crate::suites::lane::{Lane, Step};
use crate::suites::users::{Library, Setting, unique};

/// Operations that a message begins with at most.
const MESSAGE_OPERATIONS: u64 = 1 << 16;
/// Bytes of the rows that such a message writes.
const MESSAGE_BYTES: u64 = 64 << 20;

/// A benchmark at its place in the run.
struct Planned {
    name: String,
    task: DbBenchTask,
    operations: u64,
    message_operations: u64,
    /// What makes the store ready for it.
    ready: Option<DbBenchTask>,
}

/// One lane a column.
pub fn lanes(args: &DbBenchArgs) -> Result<Vec<Lane>> {
    let planned = benchmarks(args)?;
    let lanes = unique(args.engines.clone()).into_iter().flat_map(|engine| {
        columns(args, engine)
            .into_iter()
            .map(|(column, rowids)| lane(args, &planned, column, rowids))
    });
    Ok(lanes.collect())
}

/// The columns of an engine, and whether each has row ids.
fn columns(args: &DbBenchArgs, engine: DbEngineArg) -> Vec<(Column, bool)> {
    let sql = |with, without, mut setting: Setting| {
        // The same for both libraries of SQLite; DoltLite has no such pages.
        if setting.library != Library::DoltLite {
            setting.sqlite.page_size = Some(args.page_size);
        }
        let tables = [(with, true), (without, false)].into_iter();
        tables
            .filter(|(_, rowids)| args.use_rowids.is_none_or(|only| only == *rowids))
            .map(|(key, rowids): (&str, _)| {
                (Column { key: key.to_owned(), ..setting.column() }, rowids)
            })
            .collect()
    };
    let through = Setting::through;
    match engine {
        DbEngineArg::Sqlite => sql(WITH_ROWID, WITHOUT_ROWID, through(Library::IcRusqlite)),
        DbEngineArg::SqliteVfs => {
            sql(VFS_WITH_ROWID, VFS_WITHOUT_ROWID, through(Library::IcSqliteVfs))
        }
        DbEngineArg::Doltlite => {
            sql(DOLTLITE_WITH_ROWID, DOLTLITE_WITHOUT_ROWID, through(Library::DoltLite))
        }
        DbEngineArg::Btree => vec![(Setting::of(Engine::Btree).column(), false)],
        DbEngineArg::Array => vec![(Setting::of(Engine::Array).column(), false)],
        DbEngineArg::Leveldb => {
            let ways = unique(args.compression.clone()).into_iter().map(Compression::from);
            ways.map(|way| {
                let mut setting = Setting::leveldb(way);
                setting.leveldb.write_buffer_size = args.write_buffer_size;
                (setting.column(), false)
            })
            .collect()
        }
    }
}

fn lane(args: &DbBenchArgs, planned: &[Planned], column: Column, rowids: bool) -> Lane {
    let engine = column.engine;
    let job = |task| Job::DbBench(DbBench { engine, rowids, task });
    let ready = |task| Step {
        case: None,
        job: job(task),
        operations: 1,
        message_operations: 1,
        before: None,
        phases: false,
        as_measured: false,
        anew: matches!(task, DbBenchTask::Ready { fresh: true, .. }),
        forked: false,
        upgraded: false,
        inspected: false,
    };
    // As db_bench, which opens an empty database before its first benchmark.
    let mut steps = vec![ready(DbBenchTask::Ready { fresh: true, sync: false })];
    for benchmark in planned {
        steps.extend(benchmark.ready.map(ready));
        steps.push(Step {
            case: Some((SECTION.to_owned(), benchmark.name.clone())),
            job: job(benchmark.task),
            operations: benchmark.operations,
            message_operations: benchmark.message_operations,
            inspected: matches!(benchmark.task, DbBenchTask::Write(_)),
            ..ready(benchmark.task)
        });
    }
    Lane {
        column,
        name: String::new(),
        rows: args.num,
        payload: args.value_size,
        tables: |_| Box::new(Model::default()),
        populated: steps.len(),
        steps,
    }
}

/// The benchmarks in their order. How many rows a sequential read finds follows from the
/// keys that were written before it.
fn benchmarks(args: &DbBenchArgs) -> Result<Vec<Planned>> {
    let mut planned: Vec<Planned> = Vec::new();
    let (mut keys, mut large) = (Keys::default(), false);
    for (stream, &benchmark) in (0..).zip(&args.benchmarks) {
        let name = name(benchmark, large, &planned);
        planned.push(if let Some(fill) = benchmark.fill(args, stream) {
            let ready = DbBenchTask::Ready { fresh: fill.fresh, sync: fill.sync };
            let task = DbBenchTask::Write(fill.write);
            keys.perform(args.run.seed, &ready, 1);
            keys.perform(args.run.seed, &task, fill.entries);
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
            // One statement reads them all.
            Planned { name, task, operations, message_operations: operations, ready: None }
        });
    }
    Ok(planned)
}

/// A name that no benchmark before it has.
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

/// Whole transactions, and so many that halves of them are whole for a while.
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

    #[test]
    fn a_message_holds_whole_transactions() {
        assert_eq!(in_a_message(1, 100), 65_536);
        assert_eq!(in_a_message(1_000, 100), 64_000);
        assert_eq!(in_a_message(1, 100_000), 512);
        // A transaction is never cut.
        assert_eq!(in_a_message(1_000, 100_000), 1_000);
    }
}
