//! Runs of the users suite: what is saved, printed, compared, repeated and gone on with.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{own_cache, stablebench, stderr, stdout};

/// Runs a small users suite and answers what it printed.
fn small_run(format: &str, directory: &Path) -> String {
    let args = [
        "run",
        "users",
        "--rows=2000",
        "--batches=1,20",
        "--journal-modes=persist,memory",
        "--format",
        format,
        "--out=saved.json",
    ];
    let output = stablebench(&args, directory);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// Everything but the search for capacity, which needs long messages.
const EVERY_SECTION: &[&str] = &[
    "run",
    "users",
    "--sections=insert,transactions,work,payload,curve,settings",
    "--rows=600",
    "--batches=1,20",
    "--at=middle,end,random",
    "--engines=btree,sqlite,sqlite-vfs,array",
    "--journal-modes=persist,wal",
    "--operations=20",
    "--transaction-rows=30",
    "--transactions=1,7,30",
    "--payloads=10,5000",
    "--curve-rows=100,600",
    "--page-sizes=512,4096",
    "--cache-sizes=0,500000",
    "--synchronous=off",
    "--per-operation",
    "--no-wall-time",
    "--format=json",
];

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn cases(results: &Value) -> &Vec<Value> {
    results["cases"].as_array().unwrap()
}

fn measured(case: &Value) -> &Value {
    let measured = &case["outcome"]["measured"];
    assert!(measured.is_object(), "{case}");
    measured
}

#[test]
fn two_runs_are_the_same_byte_for_byte() {
    let run = |jobs: &str| {
        let directory = tempfile::tempdir().unwrap();
        // Each populates by itself.
        let cache = own_cache(&directory.path().join("cache"));
        let output = stablebench(&[EVERY_SECTION, &[jobs, &cache]].concat(), directory.path());
        assert!(output.status.success(), "{}", stderr(&output));
        let saved = read(directory.path(), "results.json");
        assert!(stdout(&output) == saved, "what is printed is what is saved");
        saved
    };
    let (one, other) = (run("--jobs=1"), run("--jobs=3"));
    assert!(one == other, "two runs differ");
    let results = json(&one);
    for case in cases(&results) {
        // WAL in normal locking mode cannot be, nor what ic-sqlite-vfs sets; both say why.
        if case["column"] == "sqlite/wal,locking_mode=normal" {
            let reason = case["outcome"]["not_applicable"]["reason"].as_str().unwrap();
            assert!(reason.contains("shared memory"), "{reason}");
            continue;
        }
        let column = case["column"].as_str().unwrap();
        let fixed = ["sqlite-vfs/", "sqlite-vfs,synchronous", "sqlite-vfs,locking_mode"];
        if fixed.iter().any(|start| column.starts_with(start)) {
            let reason = case["outcome"]["not_applicable"]["reason"].as_str().unwrap();
            assert!(reason.contains("ic-sqlite-vfs opens its connections so"), "{reason}");
            continue;
        }
        let measured = measured(case);
        let inside = &measured["detail"]["cost"]["inside"];
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{case}"));
        let pages = &inside["pages"];
        assert!(0 < number(&measured["instructions"]), "{case}");
        assert!(number(&measured["instructions"]) < number(&inside["instructions"]), "{case}");
        assert_eq!(inside["charge"], inside["instructions"]);
        for (memory, written) in [("heap", "heap_written"), ("stable", "stable_written")] {
            let touched = &pages["touched"];
            let events = number(&touched[memory]) + number(&touched[written]);
            assert_eq!(number(&pages[memory]), 80_000 * events, "{case}");
        }
    }
}

#[test]
fn each_operation_is_measured_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let args = [
        "--rows=3000",
        "--batches=1,500",
        "--at=end",
        "--engines=btree,sqlite,array",
        "--journal-modes=memory",
        "--per-operation",
    ];
    let output = stablebench(&args, directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let results = json(&read(directory.path(), "results.json"));
    for case in cases(&results) {
        let measured = measured(case);
        let each = &measured["each"];
        if measured["operations"] == 1 {
            assert!(each.is_null(), "one operation has no percentiles: {case}");
            continue;
        }
        let number = |key: &str| each[key].as_u64().unwrap();
        let (sum, all) = (number("sum"), measured["instructions"].as_u64().unwrap());
        // One by one costs a little more; beginning and commit are missing. A floor does
        // next to nothing for a row, so that for it a little is much.
        assert!(all / 2 < sum && (sum < all * 2 || case["column"] == "array"), "{case}");
        let ascending = ["min", "p50", "p90", "p99", "max"].map(number);
        assert!(ascending.is_sorted(), "{case}");
        if case["column"] != "array" {
            assert!(number("allocating") > 0, "500 rows fill pages and nodes: {case}");
            let mean = number("allocating_sum") / number("allocating");
            assert!(mean > number("p50"), "a page or node is what is dear: {case}");
        }
    }
    let table = stdout(&output);
    assert!(table.contains("Instructions of single operations"), "{table}");
}

#[test]
fn a_run_goes_on_where_it_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let args = [EVERY_SECTION, &["--out=whole.json"]].concat();
    assert!(stablebench(&args, directory.path()).status.success());
    let whole = read(directory.path(), "whole.json");
    // As if it had been killed: half of the cases, and a store, are not there yet.
    let mut part = json(&whole);
    let all = cases(&part).len();
    let kept = part["cases"].as_array_mut().unwrap();
    for case in (0..all).step_by(2).rev() {
        kept.remove(case);
    }
    kept[0]["outcome"] = serde_json::json!({ "failed": { "reason": "for this test" } });
    part["stores"].as_array_mut().unwrap().remove(1);
    std::fs::write(directory.path().join("part.json"), part.to_string()).unwrap();
    let args = [EVERY_SECTION, &["--out=part.json", "--resume"]].concat();
    let output = stablebench(&args, directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("{} cases are measured already", all / 2 - 1)));
    assert!(read(directory.path(), "part.json") == whole, "the resumed run is another one");
    // Nothing is left to do: the file stays as it is.
    assert!(stablebench(&args, directory.path()).status.success());
    assert!(read(directory.path(), "part.json") == whole);
    // Another run cannot go on from it.
    let args = [EVERY_SECTION, &["--out=part.json", "--resume", "--seed=2"]].concat();
    let output = stablebench(&args, directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("its command was another one"), "{}", stderr(&output));
    assert!(read(directory.path(), "part.json") == whole, "nothing is lost");
}

#[test]
fn a_killed_run_loses_nothing_that_was_saved() {
    let directory = tempfile::tempdir().unwrap();
    let args = [EVERY_SECTION, &["--out=whole.json"]].concat();
    assert!(stablebench(&args, directory.path()).status.success());
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_stablebench"))
        .args([EVERY_SECTION, &["--out=killed.json"]].concat())
        .current_dir(directory.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let killed = directory.path().join("killed.json");
    while !killed.exists() {
        assert!(began.elapsed() < Duration::from_secs(300), "the run saves nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What is there is whole, however early the end came.
    let saved = json(&read(directory.path(), "killed.json"));
    assert!(!saved["stores"].as_array().unwrap().is_empty() || !cases(&saved).is_empty());
    let args = [EVERY_SECTION, &["--out=killed.json", "--resume"]].concat();
    assert!(stablebench(&args, directory.path()).status.success());
    assert!(read(directory.path(), "killed.json") == read(directory.path(), "whole.json"));
}

/// A part of the committed reference run is measured again: whatever changes a figure
/// shows here. `just bless` renews it.
#[test]
fn the_reference_run_is_what_this_build_measures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = json(&read(root, "results/users.json"));
    let directory = tempfile::tempdir().unwrap();
    let args = ["run", "users", "--sections=curve", "--curve-rows=10000", "--format=json"];
    let output = stablebench(&args, directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let slice = json(&stdout(&output));
    let wanted: Vec<&Value> = cases(&reference)
        .iter()
        .filter(|case| case["section"] == "curve" && case["rows"] == 10_000)
        .collect();
    assert_eq!(wanted.len(), 10 * 4, "ten settings, four kinds of work");
    assert_eq!(cases(&slice).len(), wanted.len());
    for (case, wanted) in cases(&slice).iter().zip(wanted) {
        assert_eq!(case, wanted, "renew the reference run: just bless");
    }
}

#[test]
fn runs_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    small_run("json", directory.path());
    let saved = json(&read(directory.path(), "saved.json"));
    // Of the case btree, middle, 1 row: an instruction of 100 000, and the text.
    for (name, instructions, low) in [("base.json", 100_000, 8), ("other.json", 100_001, 7)] {
        let mut results = saved.clone();
        let measured = &mut results["cases"][0]["outcome"]["measured"];
        measured["instructions"] = instructions.into();
        measured["detail"]["digest"]["low"] = low.into();
        std::fs::write(directory.path().join(name), results.to_string()).unwrap();
    }
    let compare = |arguments: &[&str], code: i32| {
        let output = stablebench(&[&["compare"], arguments].concat(), directory.path());
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        stdout(&output)
    };
    let same = compare(&["saved.json", "saved.json"], 0);
    assert!(same.contains("values compared"), "{same}");
    let differ = compare(&["base.json", "other.json"], 1);
    assert!(differ.contains("100 000") && differ.contains("100 001"), "{differ}");
    assert!(differ.contains("digest"), "{differ}");
    let near = compare(&["base.json", "other.json", "--threshold=0.5%"], 1);
    assert!(near.contains("digest"), "{near}");
    // SQLite's two journal modes side by side, with a ceiling that one of them breaks.
    let columns = ["saved.json", "--columns", "sqlite/memory", "sqlite/persist"];
    compare(&columns, 0);
    let broken = compare(&[&columns[..], &["--max-ratio=1.01"]].concat(), 1);
    assert!(broken.contains("middle 1"), "{broken}");
}

#[test]
fn every_format_has_every_case() {
    let directory = tempfile::tempdir().unwrap();
    let csv = small_run("csv", directory.path());
    // Each case, and the message without work of each canister.
    assert_eq!(csv.lines().count(), 1 + 6 * 4 + 2, "{csv}");
    let results = json(&read(directory.path(), "saved.json"));
    for format in ["table", "markdown"] {
        // Numbers are printed with their thousands apart, and some with a mark.
        let text = small_run(format, directory.path());
        for case in cases(&results) {
            let instructions = measured(case)["instructions"].to_string();
            let digits: Vec<char> = instructions.chars().rev().collect();
            let grouped: Vec<String> =
                digits.chunks(3).map(|chunk| chunk.iter().rev().collect()).collect();
            let grouped: Vec<&str> = grouped.iter().rev().map(String::as_str).collect();
            let grouped = grouped.join(" ");
            assert!(text.contains(&grouped), "{grouped} is not in\n{text}");
        }
        assert!(text.contains("Again: stablebench run users --sections insert --rows 2000 "));
        assert!(!text.contains('\u{1b}'), "no colours where nobody sees them");
        // The saved file prints as the run did.
        let args = ["report", "saved.json", "--format", format];
        assert_eq!(stdout(&stablebench(&args, directory.path())), text);
    }
}
