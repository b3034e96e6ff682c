//! Runs of the users suite: saved and printed results, comparisons, and resumed runs.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{fails, own_cache, stablebench, stderr, stdout, succeeds};

/// Runs a small users suite and returns its output.
fn small_run(format: &str, directory: &Path) -> String {
    let args = [
        "run",
        "users",
        "--rows=2000",
        "--batches=1,20",
        "--journal-modes=persist,memory",
        "--format",
        format,
        "--verbose",
        "--out=saved.json",
    ];
    let output = succeeds(&args, directory);
    stdout(&output)
}

/// Every section except capacity, which needs long messages.
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
fn two_runs_are_equal_byte_for_byte() {
    let run = |jobs: &str| {
        let directory = tempfile::tempdir().unwrap();
        // Without populated canisters of other runs.
        let cache = own_cache(&directory.path().join("cache"));
        let output = succeeds(&[EVERY_SECTION, &[jobs, &cache]].concat(), directory.path());
        let saved = read(directory.path(), "results.json");
        assert!(stdout(&output) == saved, "the printed results are the saved ones");
        saved
    };
    let (one, other) = (run("--jobs=1"), run("--jobs=3"));
    assert!(one == other, "two runs differ");
    let results = json(&one);
    for case in cases(&results) {
        // WAL in normal locking mode and the settings that ic-sqlite-vfs fixes are not supported,
        // with the reason.
        if case["configuration"] == "sqlite/wal,locking_mode=normal" {
            let reason = case["outcome"]["not_applicable"]["reason"].as_str().unwrap();
            assert!(reason.contains("shared memory"), "{reason}");
            continue;
        }
        let column = case["configuration"].as_str().unwrap();
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
        "--verbose",
    ];
    let output = succeeds(&args, directory.path());
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
        // Measuring one by one adds a little, and begin and commit are missing. For a floor, whose
        // work on a row is very small, a little is much.
        assert!(all / 2 < sum && (sum < all * 2 || case["configuration"] == "array"), "{case}");
        let ascending = ["min", "p50", "p90", "p99", "max"].map(number);
        assert!(ascending.is_sorted(), "{case}");
        if case["configuration"] != "array" {
            assert!(number("allocating") > 0, "500 rows fill pages and nodes: {case}");
            let mean = number("allocating_sum") / number("allocating");
            assert!(mean > number("p50"), "allocating is expensive: {case}");
        }
    }
    let table = stdout(&output);
    assert!(table.contains("Instructions of single operations"), "{table}");
}

#[test]
fn a_run_can_be_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let args = [EVERY_SECTION, &["--out=whole.json"]].concat();
    assert!(stablebench(&args, directory.path()).status.success());
    let whole = read(directory.path(), "whole.json");
    // The results of a killed run, without half of the cases and a fixture.
    let mut part = json(&whole);
    let all = cases(&part).len();
    let kept = part["cases"].as_array_mut().unwrap();
    for case in (0..all).step_by(2).rev() {
        kept.remove(case);
    }
    kept[0]["outcome"] = serde_json::json!({ "failed": { "reason": "for this test" } });
    part["fixtures"].as_array_mut().unwrap().remove(1);
    std::fs::write(directory.path().join("part.json"), part.to_string()).unwrap();
    let args = [EVERY_SECTION, &["--out=part.json", "--resume"]].concat();
    let output = succeeds(&args, directory.path());
    assert!(stderr(&output).contains(&format!("{} cases are measured already", all / 2 - 1)));
    assert!(read(directory.path(), "part.json") == whole, "the results of the resumed run differ");
    // A complete run measures nothing, and the file is unchanged.
    assert!(stablebench(&args, directory.path()).status.success());
    assert!(read(directory.path(), "part.json") == whole);
    // A run with another seed cannot be resumed.
    let args = [EVERY_SECTION, &["--out=part.json", "--resume", "--seed=2"]].concat();
    let output = fails(&args, directory.path());
    assert!(stderr(&output).contains("because its command differs"), "{}", stderr(&output));
    assert!(read(directory.path(), "part.json") == whole, "nothing is lost");
}

#[test]
fn a_killed_run_keeps_its_saved_results() {
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
    // The file is complete at any time.
    let saved = json(&read(directory.path(), "killed.json"));
    assert!(!saved["fixtures"].as_array().unwrap().is_empty() || !cases(&saved).is_empty());
    let args = [EVERY_SECTION, &["--out=killed.json", "--resume"]].concat();
    assert!(stablebench(&args, directory.path()).status.success());
    assert!(read(directory.path(), "killed.json") == read(directory.path(), "whole.json"));
}

/// Measures a part of the committed reference run again, and finds changes of figures. `just bless`
/// renews it.
#[test]
fn this_build_measures_the_figures_of_the_reference_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = json(&read(root, "suites/users/results.json"));
    let directory = tempfile::tempdir().unwrap();
    let args = ["run", "users", "--sections=curve", "--curve-rows=10000", "--format=json"];
    let output = succeeds(&args, directory.path());
    let slice = json(&stdout(&output));
    let wanted: Vec<&Value> = cases(&reference)
        .iter()
        .filter(|case| case["section"] == "curve" && case["rows"] == 10_000)
        .collect();
    assert_eq!(wanted.len(), 11 * 4, "eleven configurations, four kinds of work");
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
    // The first case differs by one of 100 000 instructions, and in its digest.
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
    // Two journal modes of SQLite, with a ceiling that one of them exceeds.
    let modes = ["saved.json", "--configurations", "sqlite/memory", "sqlite/persist"];
    compare(&modes, 0);
    let broken = compare(&[&modes[..], &["--max-ratio=1.01"]].concat(), 1);
    assert!(broken.contains("middle 1"), "{broken}");
}

#[test]
fn a_run_prints_its_answer_and_saves_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("results.html");
    let run = |more: &[&str]| {
        let args = ["run", "users", "--rows=2000", "--batches=1,20", "--engines=btree,sqlite/wal"];
        let output = succeeds(&[&args, more].concat(), directory.path());
        (stdout(&output), stderr(&output))
    };
    let (answer, _) = run(&["--no-page"]);
    assert!(answer.lines().count() <= 40, "{answer}");
    for part in ["users: 2 000 rows of 100 bytes", "What to do", "stablebench report results.json"]
    {
        assert!(answer.contains(part), "{answer}");
    }
    assert!(!page.exists());
    let (_, notes) = run(&[]);
    assert!(notes.contains("open the page: file://"), "{notes}");
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!doctype html>"));
    // The user's own file stays.
    std::fs::write(&page, "<!doctype html> mine").unwrap();
    let (_, notes) = run(&[]);
    assert!(notes.contains("is not a page of stablebench"), "{notes}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "<!doctype html> mine");
}

#[test]
fn a_pattern_chooses_cases_and_changes_no_figure() {
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let args = ["run", "users", "--rows=2000", "--batches=1,10,100", "--no-wall-time"];
        let engines = ["--engines=btree,sqlite/wal", "--format=json", "--sections=insert,work"];
        let output = succeeds(&[&args[..], &engines, more].concat(), directory.path());
        json(&stdout(&output))
    };
    let all = run(&["--operations=20"]);
    let some = run(&["--operations=20", "--case=middle 10", "--case=scan warm/sqlite"]);
    let name = |case: &Value| {
        ["section", "name", "configuration"].map(|key| case[key].as_str().unwrap().to_owned())
    };
    let names: Vec<_> = cases(&some).iter().map(name).collect();
    let expected = [
        ["insert", "middle 10", "btree"],
        ["insert", "middle 10", "sqlite/wal"],
        ["work", "scan, warm", "sqlite/wal"],
    ];
    assert_eq!(names, expected.map(|case| case.map(str::to_owned)));
    for case in cases(&some) {
        assert!(cases(&all).contains(case), "{case}");
    }
    let none = fails(&["run", "users", "--case=midle 10"], directory.path());
    assert!(stderr(&none).contains("no case has \"midle 10\" in its name"), "{}", stderr(&none));
}

#[test]
fn every_format_has_every_case() {
    let directory = tempfile::tempdir().unwrap();
    let csv = small_run("csv", directory.path());
    // A line for each case, and for the message without work of each canister.
    assert_eq!(csv.lines().count(), 1 + 7 * 4 + 2, "{csv}");
    let results = json(&read(directory.path(), "saved.json"));
    for format in ["table", "markdown"] {
        // Numbers are printed with separated thousands, and some with a mark.
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
        assert!(text.contains("Repeat with: stablebench run users --rows 2000 "));
        assert!(!text.contains('\u{1b}'), "a pipe gets no colours");
        // A report of the saved file equals the output of the run.
        let args = ["report", "saved.json", "--format", format];
        assert_eq!(stdout(&stablebench(&args, directory.path())), text);
    }
}

#[test]
fn equal_journal_modes_share_a_column_on_a_terminal_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let report = |format: &str| {
        let args = ["report", "suites/users/results.json", "--sections=insert", "--format", format];
        stdout(&stablebench(&args, root))
    };
    let (table, markdown) = (report("table"), report("markdown"));
    // DELETE overwrites the journal's header as PERSIST does.
    assert!(table.contains("PERSIST = DELETE"), "{table}");
    assert!(!markdown.contains("PERSIST = DELETE"));
    assert!(markdown.contains("SQLite<br>DELETE"));
    // Notes name the modes that share a column.
    let lines = table.lines().filter(|line| !line.contains(": their figures differ"));
    let headings: Vec<&str> =
        lines.filter(|line| line.contains("TRUNCATE") && line.contains("PERSIST")).collect();
    assert!(headings.len() > 4, "{table}");
    let without = |line: &&str| line.replace("PERSIST = DELETE", "PERSIST");
    assert!(headings.iter().all(|line| !without(line).contains("DELETE")), "{table}");
}
