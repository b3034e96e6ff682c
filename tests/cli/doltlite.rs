//! DoltLite in the suites.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::{stablebench, stderr, stdout};

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
    let text = std::fs::read_to_string(directory.path().join("sysbench.json")).unwrap();
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
