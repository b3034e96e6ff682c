//! Runs of the suite sysbench: every workload, shape and place, the ceilings, and invalid sides.

use std::path::Path;

use serde_json::Value;

use super::{stablebench, stderr, stdout};

/// Few rows, but more than one page of each table.
const SMALL: &[&str] = &["run", "sysbench", "--rows=300", "--no-wall-time", "--format=json"];

fn run(options: &[&str], directory: &Path) -> String {
    let output = stablebench(&[SMALL, options].concat(), directory);
    assert!(output.status.success(), "{}", stderr(&output));
    let saved = std::fs::read_to_string(directory.join("sysbench.json")).unwrap();
    assert!(stdout(&output) == saved, "the printed results are the saved ones");
    saved
}

#[test]
fn everything_is_measured_and_two_runs_are_equal() {
    let directory = tempfile::tempdir().unwrap();
    let one = run(&["--jobs=1"], directory.path());
    let other = run(&["--jobs=3"], directory.path());
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
        let output = stablebench(&["run", "sysbench", option], directory.path());
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert_eq!(stdout(&output), "", "{option}");
        assert!(stderr(&output).contains(message), "{option}: {}", stderr(&output));
    }
}
