#![allow(clippy::unwrap_used, reason = "tests may panic")]

use crate::job::{DbBench, DbBenchTask};
use anyhow::Result;
use stablebench_suite::plan::Plan;
use stablebench_suite::plan_of;

use crate::benchmarks::{
    DOLTLITE_WITH_ROWID, DOLTLITE_WITHOUT_ROWID, VFS_WITH_ROWID, VFS_WITHOUT_ROWID, WITH_ROWID,
    WITHOUT_ROWID,
};
use crate::plan::DbBenchSuite;
use crate::published;

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
        ["fillseq100K", "readrandom (100K)", "overwrite", "readseq (100K)", "fillseq", "readseq"]
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
        configurations.map(|configuration| (configuration.key, configuration.canister)).collect()
    };
    let of = |keys: &[&str], canister: &str| -> Vec<(String, String)> {
        keys.iter().map(|key| ((*key).to_owned(), canister.to_owned())).collect()
    };
    assert_eq!(
        configurations("--engines=leveldb,btree,leveldb"),
        [of(&["leveldb/none"], "bench_leveldb"), of(&["btree"], "bench")].concat()
    );
    let keys = ["leveldb/snappy,write_buffer_size=65536", "leveldb/none,write_buffer_size=65536"];
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
