//! Runs of the suites that compare tables and builds of SQLite: keys, sysbench, vfs and history, and
//! DoltLite in every suite with SQL.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::{fails, refused, stablebench, stderr, stdout, succeeds};

/// 400 links, in lists of 20.
fn keys(format: &str, more: &[&str], directory: &Path) -> String {
    let args = [
        "run",
        "keys",
        "--rows=400",
        "--watches=20",
        "--questions=10",
        "--no-wall-time",
        "--format",
        format,
        "--out=keys.json",
    ];
    let output = succeeds(&[&args, more].concat(), directory);
    stdout(&output)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn sum(objects: &[&Value], of: &str) -> u64 {
    objects.iter().map(|object| number(&object[of])).sum()
}

/// The run fails if a row, a result or the content differs from the model's.
#[test]
fn every_combination_is_measured_and_verified() {
    let directory = tempfile::tempdir().unwrap();
    let text = keys("json", &[], directory.path());
    let results: Value = serde_json::from_str(&text).unwrap();
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3 * 5 * 4 * 2, "sections, schemas, kinds of key, libraries");
    for case in cases {
        let measured = &case["outcome"]["measured"];
        let title = format!("{} {} {}", case["section"], case["name"], case["configuration"]);
        assert!(number(&measured["instructions"]) > 0, "{title}");
        let lists = case["section"] == "lists";
        assert_eq!(number(&measured["operations"]), if lists { 20 } else { 10 }, "{title}");
        assert_eq!(measured["detail"]["stored"].is_object(), lists, "{title}");
        if lists {
            assert_eq!(number(&measured["detail"]["rows"]), 400);
            // Users, movies and links.
            assert_eq!(number(&measured["detail"]["digest"]["rows"]), 20 + 40 + 400, "{title}");
            if case["configuration"].as_str().unwrap().starts_with("sqlite-vfs") {
                // It is built without dbstat.
                let stored = &measured["detail"]["stored"];
                assert_eq!(stored["objects"], json!([]), "{title}");
                assert!(number(&stored["bytes"]) > 16_384, "{title}");
            } else {
                sizes(case);
            }
        }
    }
    // Queries find the same rows with any kind of key.
    for section in ["wants", "watchers"] {
        let mut found: Vec<&Value> = cases
            .iter()
            .filter(|case| case["section"] == section)
            .map(|case| &case["outcome"]["measured"]["detail"]["rows"])
            .collect();
        found.dedup();
        assert_eq!(found.len(), 1, "{section}: {found:?}");
        assert!(number(found[0]) > 20, "{section}: {found:?}");
    }
    assert_eq!(keys("json", &[], directory.path()), text, "two runs are equal");
}

/// The b-trees are those of the schema, and their sum is the size of the database.
fn sizes(case: &Value) {
    let stored = &case["outcome"]["measured"]["detail"]["stored"];
    let all: Vec<&Value> = stored["objects"].as_array().unwrap().iter().collect();
    assert_eq!(sum(&all, "bytes"), number(&stored["bytes"]));
    let links: Vec<&Value> =
        all.iter().copied().filter(|object| object["table"] == "witch_watch").collect();
    let integer = case["configuration"] == "integer";
    let trees = match case["name"].as_str().unwrap() {
        // An integer id is the rowid.
        "(a) id" if integer => 3,
        "(a) id" | "pair, with rowid" => 4,
        "(b) id, without rowid" | "(c) pair, without rowid" | "(d) rowid alone" => 3,
        other => panic!("{other}"),
    };
    assert_eq!(links.len(), trees, "{}", case["name"]);
    for tree in links {
        let name = format!("{} {} {}", case["name"], case["configuration"], tree["name"]);
        let (pages, internal) = (number(&tree["pages"]), number(&tree["internal_pages"]));
        assert_eq!(number(&tree["bytes"]), pages * 4_096, "{name}");
        // Each page but the root is a child of one.
        assert_eq!(number(&tree["children"]), if internal == 0 { 0 } else { pages - 1 }, "{name}");
        assert_eq!(number(&tree["depth"]), if internal == 0 { 1 } else { 2 }, "{name}");
        let table = tree["index"] == false;
        // The internal pages of a table with rowid hold copies; all others hold entries.
        let rowid = table && !case["name"].as_str().unwrap().contains("without");
        let inside = if rowid { 0 } else { number(&tree["children"]) - internal };
        assert_eq!(number(&tree["leaf_entries"]) + inside, 400, "{name}");
    }
}

/// The layout of the tables; figures change with the canister.
#[test]
fn printed_tables() {
    let directory = tempfile::tempdir().unwrap();
    let few = ["--schemas=a,c", "--keys=integer,ulid"];
    let printed = keys("markdown", &few, directory.path());
    let (tables, _) = printed.split_once("### The fixtures after populating").unwrap();
    let (tables, _) = tables.split_once("### The base of a message").unwrap();
    let (ours, published) = tables.split_once("### Compared").unwrap();
    insta::assert_snapshot!(without_figures(ours) + "### Compared" + published, @r#"
    ### A user's list, added in a transaction: instructions an operation, 400 rows

    ||integer|ULID|sqlite-vfs<br>integer|sqlite-vfs<br>ULID|
    |(a) id|#|#|#|#|
    |(c) pair, without rowid|#|#|#|#|

    ### What does this user want to watch?: instructions an operation, 400 rows

    ||integer|ULID|sqlite-vfs<br>integer|sqlite-vfs<br>ULID|
    |(a) id|#|#|#|#|
    |(c) pair, without rowid|#|#|#|#|

    ### Who wants to watch this movie?: instructions an operation, 400 rows

    ||integer|ULID|sqlite-vfs<br>integer|sqlite-vfs<br>ULID|
    |(a) id|#|#|#|#|
    |(c) pair, without rowid|#|#|#|#|

    ### Adding a link: instructions a row of a list

    |schema|integer|ULID|sqlite-vfs integer|sqlite-vfs ULID|
    |(a) id|#|#|#|#|
    |(c) pair, without rowid|#|#|#|#|

    - ×: compared with integer.

    ### (a) id: bytes, and of b-trees fan-out and depth

    ||integer|ULID|sqlite-vfs integer|sqlite-vfs ULID|
    |table|#|#|–|–|
    |index of the key|–|#|–|–|
    |index of users|#|#|–|–|
    |index of movies|#|#|–|–|
    |movies and users|#|#|–|–|
    |all|#|#|–|–|
    |bytes a link|#|#|–|–|
    |indexes|#|#|–|–|
    |fan-out of indexes|–|#|–|–|

    ### (c) pair, without rowid: bytes, and of b-trees fan-out and depth

    ||integer|ULID|sqlite-vfs integer|sqlite-vfs ULID|
    |table|#|#|–|–|
    |index of users|#|#|–|–|
    |index of movies|#|#|–|–|
    |movies and users|#|#|–|–|
    |all|#|#|–|–|
    |bytes a link|#|#|–|–|
    |indexes|#|#|–|–|
    |fan-out of indexes|–|#|–|–|

    ### Compared with the published figures

    |                               | published | as a number | here |
    |-------------------------------|-----------|-------------|------|
    | share of indexes, %: (c) ULID |      51 % |          51 |   57 |

    - Published: article "A One-Part Serialized Mystery, Part 2: The Benchmarks", 2023, https://proclamations.nebcorp-hias.com/rnd/one-part-serialized-mystery-part-2/, with 100 000 links.
    - The published figures are in seconds, ours in instructions. The fan-out is that of a few pages, and depends on the size.
    "#);
}

/// Replaces each figure of a table by `#`, and removes lines that depend on the width of figures.
fn without_figures(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines().filter(|line| !line.starts_with("|-")) {
        for (place, cell) in line.split('|').enumerate() {
            // The first column contains labels.
            let figure = place > 1 && cell.contains(|letter: char| letter.is_ascii_digit());
            shown += if figure { "#" } else { cell.trim() };
            shown += "|";
        }
        shown.pop();
        shown.push('\n');
    }
    shown
}

#[test]
fn different_times_of_rows_change_only_ulids() {
    let directory = tempfile::tempdir().unwrap();
    let few = ["--schemas=a", "--keys=ulid,uuidv4"];
    let lists = |more: &[&str]| -> Vec<Value> {
        let text = keys("json", &[&few, more].concat(), directory.path());
        let results: Value = serde_json::from_str(&text).unwrap();
        let cases = results["cases"].as_array().unwrap();
        cases.iter().filter(|case| case["section"] == "lists").cloned().collect()
    };
    let digest = |case: &Value| case["outcome"]["measured"]["detail"]["digest"].clone();
    let (shared, own) = (lists(&[]), lists(&["--rows-a-millisecond=1"]));
    assert_ne!(digest(&shared[0]), digest(&own[0]), "ULIDs");
    // Times of day are whole seconds, which change as well.
    assert_eq!(
        shared[1]["outcome"]["measured"]["detail"]["stored"],
        own[1]["outcome"]["measured"]["detail"]["stored"]
    );
}

#[test]
fn foreign_keys_cost_two_lookups_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let lists = |switch: &str| -> [Value; 2] {
        let few = ["--schemas=d", "--keys=ulid", switch];
        let text = keys("json", &few, directory.path());
        let results: Value = serde_json::from_str(&text).unwrap();
        [0, 1].map(|place| results["cases"][place]["outcome"].clone())
    };
    let ([on, vfs_on], [off, vfs_off]) = (lists("--foreign-keys=on"), lists("--foreign-keys=off"));
    let [on, off, _] =
        [on, off, vfs_on].map(|outcome| number(&outcome["measured"]["instructions"]));
    assert!(on > off + 400 * 2_000, "{on} and {off}");
    let reason = vfs_off["not_applicable"]["reason"].as_str().unwrap();
    assert!(reason.contains("foreign_keys=0"), "{reason}");
}

#[test]
fn contradicting_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (args, said) in [
        (
            ["run", "keys", "--rows=150"],
            "150 links are not whole lists of 100; choose other --watches, or --rows 200",
        ),
        (
            ["run", "keys", "--movies=99"],
            "a list of 100 cannot be chosen from 99 movies; choose other --watches or --movies",
        ),
    ] {
        let output = fails(&args, directory.path());
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

/// Few rows, but more than one page of each table.
const SYSBENCH: &[&str] = &["run", "sysbench", "--rows=300", "--no-wall-time", "--format=json"];

fn sysbench(options: &[&str], directory: &Path) -> String {
    let output = succeeds(&[SYSBENCH, options].concat(), directory);
    let saved = fs::read_to_string(directory.join("sysbench.json")).unwrap();
    assert!(stdout(&output) == saved, "the printed results are the saved ones");
    saved
}

#[test]
fn everything_is_measured_and_two_runs_are_equal() {
    let directory = tempfile::tempdir().unwrap();
    let one = sysbench(&["--jobs=1"], directory.path());
    let other = sysbench(&["--jobs=3"], directory.path());
    assert!(one == other, "two runs differ");
    let results: Value = serde_json::from_str(&one).unwrap();
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3 * 23 * 3 * 4);
    for case in cases {
        if case["configuration"] == "sqlite-vfs"
            && case["section"].as_str().unwrap().contains("memory")
        {
            let reason = case["outcome"]["not_applicable"]["reason"].as_str().unwrap();
            assert!(reason.contains("on the heap"), "{reason}");
            continue;
        }
        // The case would have failed if rows or results differed from the model's.
        let measured = &case["outcome"]["measured"];
        assert!(measured["instructions"].as_u64().is_some_and(|count| count > 0), "{case}");
        let writes = case["section"].as_str().unwrap().ends_with("writes");
        assert_eq!(measured["detail"]["digest"].is_object(), writes, "{case}");
        assert_eq!(measured["detail"]["messages"], 1, "{case}");
    }
    // All instructions, and those without the cost of pages.
    let costs = |section: &str, name: &str, column: &str| {
        let case = cases.iter().find(|case| {
            (&case["section"], &case["name"], &case["configuration"])
                == (&section.into(), &name.into(), &column.into())
        });
        let measured = &case.unwrap()["outcome"]["measured"];
        let number = |value: &Value| value.as_u64().unwrap();
        let pages = &measured["detail"]["pages"];
        let all = number(&measured["instructions"]);
        (all, all - number(&pages["heap"]) - number(&pages["stable"]))
    };
    let (base, other) = ("sqlite/persist", "sqlite/delete,locking_mode=normal");
    // In memory both have their journal on the heap, and nothing is locked. Only the touched pages
    // of the heap differ.
    let in_memory = |column| costs("text memory writes", "update_index", column).1;
    let difference = in_memory(base).abs_diff(in_memory(other));
    assert!(difference * 100 < in_memory(base), "{difference}");
    let writes = |place: &str, column| {
        costs(&format!("integer {place} writes"), "update_non_index", column).0
    };
    assert!(writes("memory", base) < writes("stable", base));
    assert!(writes("stable", base) < writes("autocommit", base));
    assert!(
        writes("autocommit", base) < writes("autocommit", other),
        "repeated locking has a cost"
    );
    // The settings of SQLite are read back in each place.
    for store in results["fixtures"].as_array().unwrap() {
        let held = &store["outcome"]["measured"];
        let memory = store["name"].as_str().unwrap().ends_with("in memory");
        let mode = match (memory, store["configuration"].as_str().unwrap()) {
            (true, "sqlite-vfs") => {
                assert!(store["outcome"]["not_applicable"].is_object(), "{store}");
                continue;
            }
            (true, _) | (false, "sqlite-vfs") => "memory",
            (false, "sqlite/persist") => "persist",
            (false, _) => "delete",
        };
        assert_eq!(held["sqlite"]["journal_mode"], mode, "{store}");
        assert_eq!(held["virtual_bytes"] == 0, memory, "{store}");
    }
}

#[test]
fn exceeded_ceilings_are_listed_and_the_exit_code_is_1() {
    let directory = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        let of =
            ["run", "sysbench", "--rows=300", "--keys=integer", "--places=autocommit", "--verbose"];
        let output = stablebench(&[&of, options].concat(), directory.path());
        assert!(output.status.code().is_some_and(|code| code < 2), "{}", stderr(&output));
        (output.status.code(), stdout(&output), stderr(&output))
    };
    let (code, table, _) = run(&[]);
    assert_eq!(code, Some(0), "without ceilings nothing fails: {table}");
    assert!(table.contains("INTEGER keys, on stable memory, each statement a transaction, writes"));
    for text in ["average", "multiplier", "published", "4.090×", "4.510×", "point_select"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    // A resumed complete run measures nothing.
    let (code, table, _) = run(&["--resume", "--max-ratio=1000", "--max-average=1000"]);
    assert_eq!(code, Some(0), "{table}");
    assert!(table.contains("0 above 1000×, 0 sections above 1000×"), "{table}");
    let (code, table, _) = run(&["--resume", "--max-ratio=1.05", "--max-average=1.05"]);
    assert_eq!(code, Some(1), "{table}");
    let (_, verdict) = table.split_once("Above the largest ratio, 1.050×").unwrap();
    assert!(verdict.contains("integer autocommit writes: update_non_index"), "{verdict}");
    let (_, averages) = verdict.split_once("Sections above the largest average").unwrap();
    assert!(averages.contains("integer autocommit writes "), "{averages}");
    // If results are printed for a program, stdout contains nothing else.
    let (code, json, notes) = run(&["--resume", "--max-average=1.05", "--format=json"]);
    assert_eq!(code, Some(1));
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
    assert!(notes.contains("Sections above the largest average"), "{notes}");
}

#[test]
fn invalid_sides_are_reported_in_one_message() {
    let directory = tempfile::tempdir().unwrap();
    for (option, message) in [
        (
            "--base=sqlite/none",
            "none is not a value of journal_mode: it is one of delete, truncate",
        ),
        ("--other=dolt", "there is no engine dolt"),
        ("--base=btree", "--base btree: this engine has no SQL"),
        ("--other=sqlite/persist", "two sides are sqlite/persist"),
        ("--max-ratio=0", "a ceiling is a ratio"),
    ] {
        let error = refused(&["run", "sysbench", option], directory.path());
        assert!(error.contains(message), "{option}: {error}");
    }
}

const VFS: &[&str] = &["run", "vfs", "--rows=300", "--sizes=1,100,300", "--no-wall-time"];

const VFS_COLUMNS: [&str; 5] = [
    "sqlite-vfs",
    "sqlite/memory,page_size=16384,cache_size=-32768",
    "sqlite-vfs,page_size=4096",
    "sqlite/memory,cache_size=-32768",
    "sqlite/persist",
];

fn vfs(options: &[&str], directory: &Path) -> Value {
    let output = succeeds(&[VFS, &["--format=json"], options].concat(), directory);
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn every_case_is_measured_in_every_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let results = vfs(&["--jobs=1"], directory.path());
    assert_eq!(results, vfs(&["--jobs=3"], directory.path()), "two runs differ");
    let cases = results["cases"].as_array().unwrap();
    // Eight published cases; writes, warm and cold, of two sizes; reads of three kinds.
    let equal = 8 + 2 * (3 * 2 + 2) + 3 * 3 * 2;
    assert_eq!(cases.len(), 8 * 2 + equal * VFS_COLUMNS.len());
    for case in cases {
        let measured = &case["outcome"]["measured"];
        let instructions = measured["instructions"].as_u64().unwrap_or_else(|| panic!("{case}"));
        let phases = measured["phases"].as_array().unwrap();
        let sum = |key: &str| phases.iter().map(|phase| phase[key].as_u64().unwrap()).sum::<u64>();
        let readings = sum("times") * 1_000 + 2_000;
        // Pages that the message touches before the work do not belong to any phase.
        let pages = &measured["detail"]["pages"];
        let pages = pages["heap"].as_u64().unwrap() + pages["stable"].as_u64().unwrap();
        let in_phases = sum("instructions");
        assert!(
            in_phases < instructions + readings && in_phases + pages + readings > instructions,
            "{case}"
        );
        let cold = case["name"].as_str().unwrap().ends_with("cold");
        assert_eq!(phases[0]["instructions"].as_u64().unwrap() > 100_000, cold, "{case}");
    }
    for store in results["fixtures"].as_array().unwrap() {
        let sqlite = &store["outcome"]["measured"]["sqlite"];
        let (size, mode, cache) = match store["configuration"].as_str().unwrap() {
            column if column == VFS_COLUMNS[0] || column == VFS_COLUMNS[1] => {
                (16_384, "memory", -32_768)
            }
            column if column == VFS_COLUMNS[4] => (4_096, "persist", 500_000),
            _ => (4_096, "memory", -32_768),
        };
        assert_eq!(sqlite["page_size"], size, "{store}");
        assert_eq!(sqlite["journal_mode"], mode, "{store}");
        assert_eq!(sqlite["cache_size"], cache, "{store}");
    }
    let names: Vec<&str> = results["canisters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|canister| canister["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["bench", "bench_vfs"]);
    assert!(results["canisters"][1]["sqlite"]["compile_options"].as_array().unwrap().len() > 20);
}

/// The published factor is caused by one transaction for each row, and nothing else.
#[test]
fn equal_transactions_cost_about_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let results = vfs(&["--sections=published"], directory.path());
    let instructions = |section: &str, name: &str, column: &str| {
        let cases = results["cases"].as_array().unwrap();
        let case = cases.iter().find(|case| {
            (&case["section"], &case["name"], &case["configuration"])
                == (&section.into(), &name.into(), &column.into())
        });
        case.unwrap()["outcome"]["measured"]["instructions"].as_u64().unwrap()
    };
    for name in ["insert 1 000", "insert 5 000", "upsert 1 000", "update 1 000"] {
        let published = |column| instructions("as published", name, column);
        let equal = |column| instructions("equal", name, column);
        assert!(published(VFS_COLUMNS[0]) * 4 < published(VFS_COLUMNS[4]), "{name}");
        for pair in [[VFS_COLUMNS[0], VFS_COLUMNS[1]], [VFS_COLUMNS[2], VFS_COLUMNS[3]]] {
            let [vfs, rusqlite] = pair.map(equal);
            assert!(vfs.abs_diff(rusqlite) * 10 < rusqlite, "{name}: {vfs}, {rusqlite}");
        }
        assert_eq!(published(VFS_COLUMNS[0]), equal(VFS_COLUMNS[0]), "{name}: it is the same work");
    }
}

#[test]
fn the_tables_show_both_libraries_and_the_published_figures() {
    let directory = tempfile::tempdir().unwrap();
    vfs(&[], directory.path());
    let output = succeeds(&["report", "vfs.json", "--format=markdown"], directory.path());
    let printed = stdout(&output);
    for text in [
        "Compared with the published figures",
        "83 270 000",
        "sqlite-vfs / ic-rusqlite, the same work in the same transactions",
        "Instructions by phase: sqlite-vfs above, ic-rusqlite below",
        "Calls of stable memory",
        "6, virtual",
        "1 281, raw",
    ] {
        assert!(printed.contains(text), "{text}:\n{printed}");
    }
}

#[test]
fn reading_more_rows_than_exist_is_refused() {
    let output = fails(&["run", "vfs", "--rows=100"], Path::new("."));
    assert!(stderr(&output).contains("10 000 rows cannot be read of 100"), "{}", stderr(&output));
}

fn run(args: &[&str], directory: &Path) -> Output {
    stablebench(&[&["run"], args, &["--no-wall-time"]].concat(), directory)
}

fn results(args: &[&str], directory: &Path) -> Value {
    let output = run(&[args, &["--format=json"]].concat(), directory);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn outcomes<'a>(results: &'a Value, column: &str) -> Vec<&'a Value> {
    let cases = results["cases"].as_array().unwrap().iter();
    cases.filter(|case| case["configuration"] == column).map(|case| &case["outcome"]).collect()
}

#[test]
fn history_is_measured_and_equals_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["history", "--rows=300", "--changes=1,7,300"];
    let first = results(&args, directory.path());
    assert_eq!(first, results(&args, directory.path()), "two runs differ");
    let outcomes = outcomes(&first, "doltlite");
    // Commits, two diffs, checkouts and merges for each number of changes; a branch; and two merges
    // with a changed row, since a merge of all rows is a conflict.
    assert_eq!(outcomes.len(), 5 * 3 + 1 + 2);
    assert!(outcomes.iter().all(|outcome| outcome["measured"]["instructions"].is_u64()));
    let output = run(&["history", "--rows=2", "--changes=3"], directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains(
            "3 rows cannot be changed of 2; choose other --changes, or --rows of at least 3"
        ),
        "{}",
        stderr(&output)
    );
}

#[test]
fn sysbench_shows_multipliers_next_to_the_published_ones() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["sysbench", "--other=doltlite", "--rows=50", "--keys=composite,text"];
    let output = run(&[&args[..], &["--max-ratio=1.01", "-v"]].concat(), directory.path());
    assert_eq!(output.status.code(), Some(1), "a ceiling is exceeded: {}", stderr(&output));
    let printed = stdout(&output);
    for part in ["multiplier", "published", "1.310×", "instructions on stable memory"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!printed.contains("sides and units differ"));
    let text = fs::read_to_string(directory.path().join("sysbench.json")).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    let outcomes = outcomes(&results, "doltlite");
    assert_eq!(outcomes.len(), 23 * 3 * 2);
    assert!(outcomes.iter().all(|outcome| outcome["measured"].is_object()), "{outcomes:?}");
}

#[test]
fn all_suites_with_sql_support_it() {
    let directory = tempfile::tempdir().unwrap();
    for (column, args) in [
        (
            "doltlite",
            &[
                "users",
                "--engines=doltlite,btree",
                "--rows=300",
                "--batches=1,10",
                "--sections=insert,work,transactions",
                "--operations=20",
                "--transaction-rows=20",
                "--transactions=1,20",
            ][..],
        ),
        ("doltlite/with-rowid", &["db-bench", "--engines=doltlite", "--num=300"]),
        ("doltlite/without-rowid", &["db-bench", "--engines=doltlite", "--num=300"]),
        (
            "doltlite ULID",
            &["keys", "--engines=doltlite", "--keys=ulid", "--rows=200", "--watches=20"],
        ),
        ("doltlite", &["cuckoo", "--engines=doltlite", "--num=128", "--lookups=50"]),
        (
            "doltlite",
            &[
                "vfs",
                "--other=doltlite",
                "--rows=100",
                "--sizes=1,100",
                "--sections=transactions,reads",
            ],
        ),
    ] {
        let results = results(args, directory.path());
        let outcomes = outcomes(&results, column);
        assert!(!outcomes.is_empty(), "{args:?}");
        for outcome in outcomes {
            let refused = &outcome["not_applicable"]["reason"];
            assert!(outcome["measured"].is_object() || refused.is_string(), "{args:?}: {outcome}");
        }
    }
}
