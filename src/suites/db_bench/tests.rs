use super::*;
use clap::Parser;
use stablebench_protocol::{DbBenchTask, Job};

use crate::cli::{Cli, Suite};

fn args(typed: &[&str]) -> DbBenchArgs {
    parse([&["stablebench", "run", "db-bench"], typed].concat())
}

fn parse(words: Vec<&str>) -> DbBenchArgs {
    match Cli::parse_from(&words).command {
        Some(crate::cli::Command::Run { suite: Some(Suite::DbBench(args)) }) => *args,
        _ => panic!("{words:?}"),
    }
}

/// Names and operations of a column's benchmarks.
fn benchmarks(typed: &[&str]) -> Vec<(String, u64)> {
    let plan = plan(&args(typed)).unwrap();
    let steps = plan.lanes[0].steps.iter();
    steps.filter_map(|step| Some((step.case.clone()?.1, step.operations))).collect()
}

#[test]
fn all_fourteen_run_in_the_published_order_with_their_counts() {
    let published = published::get().unwrap();
    let planned = benchmarks(&["--num=100000"]);
    let names: Vec<&str> = planned.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, published.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>());
    let counts: Vec<u64> = planned.iter().map(|(_, operations)| *operations).collect();
    let num = 100_000;
    assert_eq!(counts[..9], [num, num / 100, num, num, num / 100, num, num, num, num]);
    // Three times as many draws as keys leave 1/e³ of them out.
    assert!((94_800..95_300).contains(&counts[9]), "{}", counts[9]);
    assert_eq!(counts[10..], [num / 1_000; 4]);
}

#[test]
fn reads_are_as_many_as_was_asked_for() {
    let of = |typed: &[&str], name: &str| {
        let planned = benchmarks(typed);
        planned.into_iter().find(|(other, _)| other == name).map(|(_, operations)| operations)
    };
    let typed = &["--num=10000", "--reads=3000"];
    assert_eq!(of(typed, "readrandom"), Some(3_000));
    assert_eq!(of(typed, "readseq"), Some(3_000));
    assert_eq!(of(typed, "readseq (100K)"), Some(10), "there are no more rows");
    assert_eq!(of(typed, "readrand100K"), Some(3));
    assert_eq!(of(&["--num=5"], "fillseqsync"), Some(1), "everything is done once at least");
    assert_eq!(of(&["--num=5"], "fillrand100K"), Some(1));
}

#[test]
fn a_benchmark_that_comes_again_has_a_name_of_its_own() {
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
        ["fillseq100K", "readrandom (100K)", "overwrite", "readseq (100K)", "fillseq", "readseq"]
    );
    let error = plan(&args(&["--benchmarks=readseq"])).unwrap_err().to_string();
    assert_eq!(error, "readseq finds nothing to read: put a fill benchmark before it");
}

#[test]
fn stores_are_emptied_and_synced_as_db_bench_does() {
    let plan = plan(&args(&["--num=1000"])).unwrap();
    let ready: Vec<(bool, bool)> = plan.lanes[0]
        .steps
        .iter()
        .filter_map(|step| match &step.job {
            Job::DbBench(job) => match job.task {
                DbBenchTask::Ready { fresh, sync } => Some((fresh, sync)),
                _ => None,
            },
            _ => None,
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
fn columns_are_all_or_one_of_each_library() {
    let columns = |typed: &[&str]| -> Vec<String> {
        let plan = plan(&args(typed)).unwrap();
        plan.outline.columns.into_iter().map(|column| column.key).collect()
    };
    let all = [WITH_ROWID, WITHOUT_ROWID, VFS_WITH_ROWID, VFS_WITHOUT_ROWID, "btree", "array"];
    assert_eq!(columns(&[]), all);
    assert_eq!(columns(&["--use-rowids=true"]), [WITH_ROWID, VFS_WITH_ROWID, "btree", "array"]);
    assert_eq!(columns(&["--use_rowids=0"]), [WITHOUT_ROWID, VFS_WITHOUT_ROWID, "btree", "array"]);
}

#[test]
fn engines_are_those_that_were_asked_for_in_that_order() {
    let columns = |typed: &str| -> Vec<(String, String)> {
        let typed: Vec<&str> = typed.split(' ').collect();
        let columns = plan(&args(&typed)).unwrap().outline.columns.into_iter();
        columns.map(|column| (column.key, column.canister)).collect()
    };
    let of = |keys: &[&str], canister: &str| -> Vec<(String, String)> {
        keys.iter().map(|key| ((*key).to_owned(), canister.to_owned())).collect()
    };
    assert_eq!(
        columns("--engines=leveldb,btree,leveldb"),
        [of(&["leveldb/none"], "bench_leveldb"), of(&["btree"], "bench")].concat()
    );
    let keys = ["leveldb/snappy,write_buffer_size=65536", "leveldb/none,write_buffer_size=65536"];
    assert_eq!(
        columns("--engines=leveldb --compression=snappy,none --write_buffer_size=65536"),
        of(&keys, "bench_leveldb")
    );
    let keys = [DOLTLITE_WITH_ROWID, DOLTLITE_WITHOUT_ROWID];
    assert_eq!(columns("--engines=doltlite"), of(&keys, "bench_doltlite"));
    let doltlite = plan(&args(&["--engines=doltlite"])).unwrap();
    let page_sizes = doltlite.outline.columns.iter().map(|of| of.sqlite.unwrap().page_size);
    assert!(page_sizes.eq([None, None]), "its pages are none of SQLite's");
}

/// Whatever was typed, the command that is printed measures the same.
#[test]
fn the_command_repeats_the_run() {
    for typed in [
        &[][..],
        &["--histogram", "--num=500", "--reads=7", "--seed=9"],
        &["--benchmarks=fillseq,readseq", "--histogram=1", "--page_size=512", "--nodes=34"],
        &["--use-rowids=1", "--value-size=17"],
        &["--engines=leveldb,sqlite-vfs", "--compression=snappy,none"],
        &["--engines=leveldb", "--write-buffer-size=70000"],
    ] {
        let first = plan(&args(typed)).unwrap();
        let again = parse(first.outline.command.split(' ').collect());
        let second = plan(&again).unwrap();
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
    }
}
