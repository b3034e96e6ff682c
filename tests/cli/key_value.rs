//! Runs of the suites that store keys with values: db-bench, cuckoo and collections.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use stablebench_suite_db_bench::work::random_key;

use crate::{Server, fails, stablebench, stderr, stdout, succeeds};

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

fn db_bench(directory: &Path, more: &[&str]) -> Value {
    let args = ["run", "db-bench", "--num=2000", "--no-wall-time", "--format=json"];
    let output = succeeds(&[&args, more].concat(), directory);
    let saved = fs::read_to_string(directory.join("db-bench.json")).unwrap();
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
    let results = db_bench(directory.path(), &["--jobs=1"]);
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
    assert!(db_bench(again.path(), &["--jobs=3"]) == results, "two runs differ");
    let other =
        db_bench(again.path(), &["--seed=2", "--benchmarks=fillrandom", "--use-rowids=false"]);
    let digest =
        |results: &Value| measured(results, "fillrandom", COLUMNS[1])["detail"]["digest"].clone();
    assert_ne!(digest(&other), digest(&results), "another seed is another run");
    assert_eq!(other["cases"].as_array().unwrap().len(), 4);
}

#[test]
fn each_operation_is_in_a_histogram() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["--histogram", "--benchmarks=fillseqbatch,readrandom,readseq", "--reads=500"];
    let results = db_bench(directory.path(), &args);
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
    let results = db_bench(directory.path(), &args);
    let held = &results["fixtures"][0]["outcome"]["measured"]["sqlite"];
    assert_eq!((&held["page_size"], &held["synchronous"]), (&1024.into(), &"off".into()));
    let small = &measured(&results, "fillseq", COLUMNS[0])["detail"]["stored"]["bytes"];
    assert_eq!(small.as_u64().unwrap() % 1_024, 0);
}

#[test]
fn planned_cases_are_listed() {
    let args = ["run", "db-bench", "--list", "--num=10000"];
    let mut printed = stdout(&stablebench(&args, Path::new("."))) + "\n";
    let mistakes = [
        &["--benchmarks=readseq"][..],
        &["--benchmarks=fillsequence"],
        &["--num=0"],
        &["--page-size=1000"],
        &["--use-rowids=maybe"],
    ];
    for mistake in mistakes {
        let output = fails(&[&["run", "db-bench"], mistake].concat(), Path::new("."));
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
    let results = db_bench(directory.path(), &args);
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
    succeeds(&["report", "db-bench.json", "--out=page.html"], directory.path());
}

const CUCKOO: &[&str] = &["run", "cuckoo", "--num=256", "--lookups=100", "--no-wall-time"];

fn cuckoo(jobs: &str, directory: &Path) -> String {
    let args = [CUCKOO, &[jobs, "--format=json"]].concat();
    let output = succeeds(&args, directory);
    let saved = fs::read_to_string(directory.join("cuckoo.json")).unwrap();
    assert!(stdout(&output) == saved, "what is printed is what is saved");
    saved
}

#[test]
fn every_row_is_measured_and_two_runs_are_equal() {
    let directory = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let saved = cuckoo("--jobs=1", directory.path());
    assert!(saved == cuckoo("--jobs=3", other.path()), "two runs differ");

    let results: Value = serde_json::from_str(&saved).unwrap();
    let cases = results["cases"].as_array().unwrap();
    // Four utilisations: hits and misses of two kinds of keys and building, in six configurations;
    // five batches in two of them; two rows after an upgrade in all of them.
    assert_eq!(cases.len(), 4 * (6 * 6 + 5 * 2) + 2 * 6);
    assert_eq!(results["fixtures"].as_array().unwrap().len(), 4 * 2 * 6);
    for case in cases {
        let measured = &case["outcome"]["measured"];
        assert!(measured["instructions"].as_u64().unwrap() > 0, "{case}");
        let operations = measured["operations"].as_u64().unwrap();
        let rows = measured["detail"]["rows"].as_u64().unwrap();
        let missed = case["section"] == "miss" || case["name"].as_str().unwrap().contains("miss");
        assert_eq!(rows, if missed { 0 } else { operations }, "{case}");
    }
    // A table is read once or twice for a key, whatever it holds; a map at least once for
    // each of its nodes. Pages that a message touches first cost more than so few lookups.
    let each = |column: &str| {
        let mut of =
            cases.iter().filter(|case| case["section"] == "hit" && case["configuration"] == column);
        let measured = &of.next().unwrap()["outcome"]["measured"];
        let number = |path| measured.pointer(path).unwrap().as_u64().unwrap();
        let pages = number("/detail/pages/heap") + number("/detail/pages/stable");
        (number("/instructions") - pages) / 100
    };
    assert!(each("cuckoo/murmur") * 5 < each("sqlite/persist"));
    assert!(each("cuckoo/identity") * 5 < each("btree"));

    // A resumed complete run measures nothing.
    let again = cuckoo("--resume", directory.path());
    assert!(again == saved);
}

#[test]
fn the_tables_show_reads_and_the_published_figures() {
    let directory = tempfile::tempdir().unwrap();
    let args =
        [CUCKOO, &["--engines=cuckoo/identity,array", "--keys=sequential", "--format=markdown"]];
    let output = succeeds(&args.concat(), directory.path());
    let printed = stdout(&output);
    for text in [
        "Read from stable memory by a lookup",
        "Compared with the published figures",
        "12.1 M/s",
        "1.00 / 60",
        "1.00 / 12",
    ] {
        assert!(printed.contains(text), "{text}:\n{printed}");
    }
}

#[test]
fn the_number_of_buckets_is_a_power_of_two() {
    for num in ["--num=1000", "--num=64", "--num=0", "--num=x"] {
        let output = fails(&["run", "cuckoo", num], Path::new("."));
        assert!(stderr(&output).contains("a power of two"), "{}", stderr(&output));
    }
}

fn collections(more: &[&str], directory: &Path) -> String {
    let words = ["run", "collections", "--no-wall-time"];
    let output = succeeds(&[&words, more].concat(), directory);
    stdout(&output)
}

struct Saved(Value);

impl Saved {
    fn of(more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let saved = collections(&[more, &["--format=json"]].concat(), directory.path());
        Self(serde_json::from_str(&saved).unwrap())
    }

    fn outcome(&self, section: &str, map: &str) -> &Value {
        let mut cases = self.0["cases"].as_array().unwrap().iter();
        let found =
            cases.find(|case| case["section"] == section && case["configuration"] == map).unwrap();
        &found["outcome"]
    }

    fn number(&self, section: &str, map: &str, path: &str) -> u64 {
        let found = self.outcome(section, map).pointer(&format!("/measured{path}"));
        let number = found.and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("{section}, {map}: no {path}"))
    }

    /// The content after a case: the number of entries, and their hashes.
    fn digest(&self, section: &str, map: &str) -> [u64; 3] {
        ["rows", "low", "high"]
            .map(|part| self.number(section, map, &format!("/detail/digest/{part}")))
    }

    fn maps(&self) -> Vec<&str> {
        let configurations = self.0["configurations"].as_array().unwrap();
        configurations.iter().map(|of| of["key"].as_str().unwrap()).collect()
    }
}

/// Both languages do the same to the same entries, whatever the map.
#[test]
fn all_maps_have_the_same_content() {
    let saved = Saved::of(&["--entries=300"]);
    let maps = saved.maps();
    assert_eq!(maps.len(), 11);
    for (section, rows) in [("generate", 300), ("put", 350), ("remove", 250), ("upgrade", 300)] {
        for map in &maps {
            assert_eq!(saved.digest(section, map), saved.digest(section, maps[0]), "{map}");
        }
        assert_eq!(saved.digest(section, maps[0])[0], rows, "{section}");
    }
    for map in &maps {
        for (section, rows) in [("get", 0), ("get existing", 50), ("put", 50), ("remove", 50)] {
            assert_eq!(saved.number(section, map, "/detail/rows"), rows, "{section}, {map}");
            // The tables subtract it.
            saved.number(section, map, "/detail/pages/heap");
        }
    }
}

/// An upgrade writes and reads the entries, unless they are in stable memory, or on a heap that stays.
#[test]
fn upgrades_cost_by_the_persistence_of_a_map() {
    let maps = "--maps=rust-btree-map,rust-table,motoko-map,classical-rb-tree,classical-table";
    let few = Saved::of(&["--entries=100", maps]);
    let many = Saved::of(&["--entries=4000", maps]);
    for map in few.maps() {
        let [few, many] = [&few, &many].map(|saved| saved.number("upgrade", map, "/instructions"));
        let grows = many > few + 4_000_000;
        assert_eq!(grows, ["rust-btree-map", "classical-rb-tree"].contains(&map), "{few} {many}");
    }
}

/// Motoko's collection of garbage is part of the message, but not of the work.
#[test]
fn garbage_is_collected_after_the_work() {
    let saved = Saved::of(&["--entries=30000", "--maps=rust-hash-map,classical-rb-tree"]);
    let rest = |map| {
        saved.number("generate", map, "/detail/cost/inside/instructions")
            - saved.number("generate", map, "/detail/message_instructions")
    };
    assert!(rest("rust-hash-map") < 100_000, "{}", rest("rust-hash-map"));
    assert!(rest("classical-rb-tree") > 10_000_000, "{}", rest("classical-rb-tree"));
}

#[test]
fn published_figures_are_beside_ours() {
    let directory = tempfile::tempdir().unwrap();
    let maps = "--maps=rust-btree-map,rust-stable-btree-map";
    let printed = collections(&["--entries=50000", maps, "--format=markdown"], directory.path());
    for figure in ["published: btreemap_stable_rs", "4 224 209 849", "653 359"] {
        assert!(printed.contains(figure), "{printed}");
    }
    // No figures were published for this size.
    let printed = collections(&["--entries=60", maps, "--format=markdown"], directory.path());
    assert!(!printed.contains("published: "), "{printed}");
}

/// An upgrade over the network says that the heap stays; otherwise the replica refuses it.
#[test]
fn upgrades_keep_the_heap_on_a_network() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench_motoko", "bench_collections"], directory.path());
    let small = ["--entries=60", "--maps=rust-table,motoko-map,motoko-table", "--format=json"];
    let saved = collections(&[&small[..], &server.target()].concat(), directory.path());
    let saved = Saved(serde_json::from_str(&saved).unwrap());
    let embedded = Saved::of(&small[..2]);
    for map in saved.maps() {
        for section in ["generate", "get", "get existing", "put", "remove"] {
            let of = |saved: &Saved| saved.number(section, map, "/instructions");
            assert_eq!(of(&saved), of(&embedded), "{section}, {map}");
        }
        let outcome = saved.outcome("upgrade", map);
        let reason = outcome["not_applicable"]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("does not report the instructions"), "{outcome}");
    }
    let printed =
        collections(&[&small[..2], &["--verbose"], &server.target()].concat(), directory.path());
    assert!(printed.contains("generate is the work alone"), "{printed}");
}
