//! Runs of the suite db-bench: every benchmark, its results, and the printed tables.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use stablebench_suite_db_bench::work::random_key;

use super::{stablebench, stderr, stdout};

const COLUMNS: [&str; 6] = [
    "sqlite/with-rowid",
    "sqlite/without-rowid",
    "sqlite-vfs/with-rowid",
    "sqlite-vfs/without-rowid",
    "btree",
    "array",
];
const NUM: u64 = 2_000;

/// Returns names, operations, and, for benchmarks that write, the number of rows afterwards.
fn benchmarks() -> [(&'static str, u64, Option<u64>); 14] {
    // Random keys depend on the seed 1 and the place in the run.
    let drawn = |places: &[u64], keys: u64| {
        let draws = places
            .iter()
            .flat_map(|place| (0..keys).map(move |index| random_key(1, keys, *place, index)));
        Some(draws.collect::<BTreeSet<u64>>().len() as u64)
    };
    let read_in_order = drawn(&[5, 6, 7], NUM).unwrap();
    [
        ("fillseq", NUM, Some(NUM)),
        ("fillseqsync", 20, Some(20)),
        ("fillseqbatch", NUM, Some(NUM)),
        ("fillrandom", NUM, drawn(&[3], NUM)),
        ("fillrandsync", 20, drawn(&[4], 20)),
        ("fillrandbatch", NUM, drawn(&[5], NUM)),
        ("overwrite", NUM, drawn(&[5, 6], NUM)),
        ("overwritebatch", NUM, drawn(&[5, 6, 7], NUM)),
        ("readrandom", NUM, None),
        ("readseq", read_in_order, None),
        ("fillrand100K", 2, drawn(&[10], 2)),
        ("fillseq100K", 2, Some(2)),
        ("readseq (100K)", 2, None),
        ("readrand100K", 2, None),
    ]
}

fn run(directory: &Path, more: &[&str]) -> Value {
    let args = ["run", "db-bench", "--num=2000", "--no-wall-time", "--format=json"];
    let output = stablebench(&[&args, more].concat(), directory);
    assert!(output.status.success(), "{}", stderr(&output));
    let saved = std::fs::read_to_string(directory.join("db-bench.json")).unwrap();
    assert!(stdout(&output) == saved, "the printed results are the saved ones");
    serde_json::from_str(&saved).unwrap()
}

fn case<'a>(results: &'a Value, name: &str, column: &str) -> &'a Value {
    let cases = results["cases"].as_array().unwrap().iter();
    let mut found = cases.filter(|case| case["name"] == name && case["configuration"] == column);
    let case = found.next().unwrap_or_else(|| panic!("{name}, {column}"));
    assert!(found.next().is_none(), "{case}");
    case
}

fn measured<'a>(results: &'a Value, name: &str, column: &str) -> &'a Value {
    let case = case(results, name, column);
    let measured = &case["outcome"]["measured"];
    assert!(measured.is_object(), "{case}");
    measured
}

#[test]
fn all_fourteen_are_measured_and_leave_the_written_rows() {
    let directory = tempfile::tempdir().unwrap();
    let results = run(directory.path(), &["--jobs=1"]);
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 14 * COLUMNS.len());
    for (name, operations, rows) in benchmarks() {
        let synced = name.ends_with("sync");
        let can = |column: &&&str| !(synced && column.starts_with("sqlite-vfs"));
        for column in COLUMNS.iter().filter(|column| !can(column)) {
            let case = case(&results, name, column);
            let reason = case["outcome"]["not_applicable"]["reason"].as_str().unwrap();
            assert!(reason.contains("synchronous=full"), "{reason}");
        }
        let digests: Vec<&Value> = COLUMNS
            .iter()
            .filter(can)
            .map(|column| {
                let measured = measured(&results, name, column);
                assert_eq!(measured["operations"], operations, "{name}");
                assert!(measured["instructions"].as_u64().unwrap() > 100 * operations, "{name}");
                let detail = &measured["detail"];
                let stored = detail["stored"]["bytes"].as_u64();
                assert_eq!(stored.is_some_and(|bytes| bytes > 1_000), rows.is_some(), "{name}");
                &detail["digest"]
            })
            .collect();
        assert_eq!(digests[0]["rows"].as_u64(), rows, "{name}");
        // Every engine contains the same rows.
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{name}: {digests:?}");
    }
    // Without rowid there is one b-tree instead of two.
    let trees = |column: &str| -> Vec<String> {
        let stored = &measured(&results, "overwritebatch", column)["detail"]["stored"];
        let objects = stored["objects"].as_array().unwrap().iter();
        let of_table = objects.filter(|object| object["table"] == "test");
        of_table.map(|object| object["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(trees(COLUMNS[0]), ["test", "sqlite_autoindex_test_1"]);
    assert_eq!(trees(COLUMNS[1]), ["test"]);

    let again = tempfile::tempdir().unwrap();
    assert!(run(again.path(), &["--jobs=3"]) == results, "two runs differ");
    let other = run(again.path(), &["--seed=2", "--benchmarks=fillrandom", "--use-rowids=false"]);
    let digest =
        |results: &Value| measured(results, "fillrandom", COLUMNS[1])["detail"]["digest"].clone();
    assert_ne!(digest(&other), digest(&results), "another seed is another run");
    assert_eq!(other["cases"].as_array().unwrap().len(), 4);
}

#[test]
fn each_operation_is_in_a_histogram() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["--histogram", "--benchmarks=fillseqbatch,readrandom,readseq", "--reads=500"];
    let results = run(directory.path(), &args);
    for name in ["fillseqbatch", "readrandom", "readseq"] {
        for column in COLUMNS {
            let measured = measured(&results, name, column);
            let each = &measured["each"];
            let buckets = each["buckets"].as_array().unwrap();
            let number = |of: &Value, key: &str| of[key].as_u64().unwrap();
            let counted: u64 = buckets.iter().map(|bucket| number(bucket, "count")).sum();
            assert_eq!(counted, number(measured, "operations"), "{name}, {column}");
            let (first, last) = (&buckets[0], &buckets[buckets.len() - 1]);
            assert!(number(first, "from") <= number(each, "min"));
            assert!(number(each, "max") < number(last, "below"));
            // Reading the counter has a cost too. Pages that are touched before the first operation
            // and after the last one are not counted.
            let (sum, all) = (number(each, "sum"), number(measured, "instructions"));
            let pages = &measured["detail"]["pages"];
            let compute = all - number(pages, "heap") - number(pages, "stable");
            assert!(
                compute * 8 / 10 < sum && sum < all * 3 + 1_000_000,
                "{name}, {column}: {sum} {all}"
            );
        }
    }
    let output = stablebench(&["report", "db-bench.json"], directory.path());
    let text = stdout(&output);
    assert!(text.contains("Instructions of each operation: readseq, SQLite WITH ROWID. Count 500"));
}

#[test]
fn sync_and_page_size_are_in_effect() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["--benchmarks=fillseqsync,fillseq", "--page-size=1024", "--use-rowids=true"];
    let results = run(directory.path(), &args);
    let held = &results["fixtures"][0]["outcome"]["measured"]["sqlite"];
    assert_eq!((&held["page_size"], &held["synchronous"]), (&1024.into(), &"off".into()));
    let small = &measured(&results, "fillseq", COLUMNS[0])["detail"]["stored"]["bytes"];
    assert_eq!(small.as_u64().unwrap() % 1_024, 0);
}

#[test]
fn planned_cases_are_listed() {
    let args = ["run", "db-bench", "--list", "--num=10000"];
    insta::assert_snapshot!(stdout(&stablebench(&args, Path::new("."))));
    let mistakes = [
        &["--benchmarks=readseq"][..],
        &["--benchmarks=fillsequence"],
        &["--num=0"],
        &["--page-size=1000"],
        &["--use-rowids=maybe"],
    ];
    let mut printed = String::new();
    for mistake in mistakes {
        let output = stablebench(&[&["run", "db-bench"], mistake].concat(), Path::new("."));
        assert_eq!(output.status.code(), Some(2), "{mistake:?}");
        printed += &format!("$ stablebench run db-bench {}\n{}\n", mistake[0], stderr(&output));
    }
    insta::assert_snapshot!(printed);
}

/// LevelDB, with tables that are small enough for compactions, compared with the map.
#[test]
fn leveldb_contains_the_rows_of_the_map_and_compacts_inside_of_single_writes() {
    let directory = tempfile::tempdir().unwrap();
    let args = [
        "--engines=btree,leveldb,write_buffer_size=65536,leveldb/snappy,write_buffer_size=65536",
        "--histogram",
    ];
    let results = run(directory.path(), &args);
    let columns =
        ["btree", "leveldb/none,write_buffer_size=65536", "leveldb/snappy,write_buffer_size=65536"];
    assert_eq!(results["cases"].as_array().unwrap().len(), 14 * columns.len());
    for (name, operations, rows) in benchmarks() {
        let of = columns.map(|column| measured(&results, name, column));
        assert!(of.iter().all(|measured| measured["operations"] == operations), "{name}");
        let digests = of.map(|measured| &measured["detail"]["digest"]);
        assert_eq!(digests[0]["rows"].as_u64(), rows, "{name}");
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{name}: {digests:?}");
    }
    let number = |name: &str, column: &str, path: &str| {
        measured(&results, name, column).pointer(path).and_then(Value::as_u64).unwrap()
    };
    for column in &columns[1..] {
        let max = number("fillrandom", column, "/each/max");
        let p99 = number("fillrandom", column, "/each/p99");
        assert!(max > 20 * p99, "a write that fills the buffer makes a table: {max}, {p99}");
        assert!(number("fillrandom", "btree", "/each/max") < max);
        // A single message writes the same rows as synced writes one by one, with fewer calls.
        let written = "/detail/cost/inside/stable_calls/writes";
        let (synced, plain) =
            (number("fillseqsync", column, written), number("fillseq", column, written));
        assert!(synced * 100 > plain, "{synced}, {plain}");
    }
    let stored = |column| number("overwritebatch", column, "/detail/stored/bytes");
    assert!(stored(columns[2]) < stored(columns[1]), "half of each value can be compressed away");

    let output = stablebench(&["report", "db-bench.json"], directory.path());
    let text = stdout(&output);
    for part in ["Write amplification", "mean / p99 / maximum", "LevelDB", "a compaction"] {
        assert!(text.contains(part), "{part}");
    }
    let output = stablebench(&["report", "db-bench.json", "--out=page.html"], directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
}
