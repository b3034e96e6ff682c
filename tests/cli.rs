//! The program as its users see it.

use std::path::Path;
use std::process::{Command, Output};

fn stablebench(args: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stablebench"))
        .args(args)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

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

#[test]
fn help() {
    let output = stablebench(&["--help"], Path::new("."));
    assert!(output.status.success());
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn list_of_suites_and_of_cases() {
    let suites = stdout(&stablebench(&["list"], Path::new(".")));
    assert!(suites.starts_with("users "), "{suites}");
    let args = ["--list", "--batches=10,1,10", "--journal-modes=wal", "--at=end"];
    insta::assert_snapshot!(stdout(&stablebench(&args, Path::new("."))));
}

#[test]
fn mistakes_end_in_one_message_and_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "no module").unwrap();
    std::fs::write(directory.path().join("old.json"), r#"{"format": 1}"#).unwrap();
    let mut told = String::new();
    for args in [
        &["--batches=0"][..],
        &["--rows=10", "--batches=6", "--at=middle"],
        &["--engines=rocksdb"],
        &["run", "nothing"],
        &["--as-published", "--rows=5"],
        &["--out=file/results.json", "--rows=10", "--batches=1"],
        &["call", "nothing", "describe"],
        &["call", "file", "describe"],
        &["call", "bench", "describe", "--state=file"],
        &["call", "bench", "describe", "--state=missing"],
        &["call", "bench", "nothing"],
        &["call", "bench", "set_payload", "(\"text\")"],
        &["call", "bench", "set_payload", "(1"],
        &["build", "nothing"],
        &["--verify-embedded"],
        &["--subnet=system"],
        &["run", "users", "--replica=mainnet"],
        &["compare", "missing", "missing"],
        &["compare", "file", "file"],
        &["compare", "file", "file", "--threshold=-1%"],
        &["compare", "old.json", "old.json"],
    ] {
        let output = stablebench(args, directory.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
        let error: String = stderr(&output)
            .lines()
            .filter(|line| !line.starts_with("building") && !line.starts_with("converting"))
            .map(|line| format!("{line}\n"))
            .collect();
        told += &format!("$ stablebench {}\n{error}\n", args.join(" "));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn two_runs_differ_in_nothing_but_wall_times() {
    let run = || {
        let directory = tempfile::tempdir().unwrap();
        let printed = small_run("json", directory.path());
        let saved = std::fs::read_to_string(directory.path().join("saved.json")).unwrap();
        assert_eq!(printed, saved, "what is printed is what is saved");
        let mut results: serde_json::Value = serde_json::from_str(&saved).unwrap();
        for setting in results["settings"].as_array_mut().unwrap() {
            assert!(setting["wall_milliseconds"].take().is_u64());
        }
        results
    };
    let (one, other) = (run(), run());
    assert_eq!(one, other);
    // StableBTreeMap, two journal modes, two floors; two batches in two places.
    assert_eq!(one["settings"].as_array().unwrap().len(), 5);
    assert_eq!(one["cases"].as_array().unwrap().len(), 5 * 4);
    for setting in one["settings"].as_array().unwrap() {
        assert_eq!(setting["digest"]["rows"], 2_000);
    }
    for case in one["cases"].as_array().unwrap() {
        let rows = case["rows"].as_u64().unwrap();
        assert_eq!(case["digest"]["rows"], 2_000 + rows);
        assert_eq!(case["measurement"]["rows"], rows);
        let inside = &case["message"]["inside"];
        let (measured, message, charge) = (
            case["measurement"]["instructions"].as_u64().unwrap(),
            inside["instructions"].as_u64().unwrap(),
            inside["charge"].as_u64().unwrap(),
        );
        let pages = inside["heap_pages_changed"].as_u64().unwrap();
        assert!(0 < measured && measured < message, "{case}");
        assert_eq!(charge, message + 1_000 * pages, "{case}");
    }
}

#[test]
fn runs_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    small_run("json", directory.path());
    let saved = std::fs::read_to_string(directory.path().join("saved.json")).unwrap();
    let mut other: serde_json::Value = serde_json::from_str(&saved).unwrap();
    // Of the case btree, middle, 1 row: an instruction of 100 000, and the text.
    other["cases"][0]["measurement"]["instructions"] = 100_001.into();
    other["cases"][0]["digest"]["low"] = 7.into();
    let mut base: serde_json::Value = serde_json::from_str(&saved).unwrap();
    base["cases"][0]["measurement"]["instructions"] = 100_000.into();
    base["cases"][0]["digest"]["low"] = 8.into();
    for (name, results) in [("base.json", base), ("other.json", other)] {
        std::fs::write(directory.path().join(name), results.to_string()).unwrap();
    }
    let compare = |arguments: &[&str], code: i32| {
        let output = stablebench(&[&["compare"], arguments].concat(), directory.path());
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        stdout(&output)
    };
    let same = compare(&["saved.json", "saved.json"], 0);
    assert!(same.ends_with(" values compared, 0 differ by more than 0 %\n"), "{same}");
    let differ = compare(&["base.json", "other.json"], 1);
    assert!(differ.contains("btree middle 1: instructions"), "{differ}");
    assert!(differ.contains("100 000") && differ.contains("100 001"), "{differ}");
    assert!(differ.contains("+0.001 %"), "{differ}");
    assert!(differ.contains("2 differ by more than 0 %"), "{differ}");
    let near = compare(&["base.json", "other.json", "--threshold=0.5%"], 1);
    assert!(near.contains("1 differ by more than 0.5 %") && near.contains("digest"), "{near}");
}

#[test]
fn every_format_has_every_case() {
    let directory = tempfile::tempdir().unwrap();
    let csv = small_run("csv", directory.path());
    assert_eq!(csv.lines().count(), 1 + 5 * 4, "{csv}");
    let columns = csv.lines().next().unwrap().split(',').count();
    for line in csv.lines() {
        assert_eq!(line.split(',').count(), columns, "{line}");
    }
    let saved = std::fs::read_to_string(directory.path().join("saved.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&saved).unwrap();
    for format in ["table", "markdown"] {
        // Numbers are printed with their thousands apart, and some with a mark.
        let text = small_run(format, directory.path());
        for case in results["cases"].as_array().unwrap() {
            let instructions = case["measurement"]["instructions"].to_string();
            let digits: Vec<char> = instructions.chars().rev().collect();
            let grouped: Vec<String> =
                digits.chunks(3).map(|chunk| chunk.iter().rev().collect()).collect();
            let grouped: Vec<&str> = grouped.iter().rev().map(String::as_str).collect();
            let grouped = grouped.join(" ");
            assert!(text.contains(&grouped), "{grouped} is not in\n{text}");
        }
        assert!(text.contains("Again: stablebench run users --rows 2000 "), "{text}");
        assert!(!text.contains('\u{1b}'), "no colours where nobody sees them");
    }
}

#[test]
fn a_called_canister_goes_on_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let call = |args: &[&str]| {
        let output = stablebench(&[&["call", "bench"], args].concat(), directory.path());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let added = call(&["add_users_sqlite", "(0, 10, 1000)", "--save=state"]);
    assert!(added.contains("rows = 1_000 : nat64"), "{added}");
    assert!(added.contains("\ninstructions "), "{added}");
    let read = call(&["read_users", "(variant { sqlite }, 0, 5, 10)", "--state=state"]);
    assert!(read.contains("rows = 5 : nat64"), "half of them are there: {read}");
    let fresh = call(&["describe"]);
    assert!(fresh.contains("occupant = variant { nobody }"), "{fresh}");
    let taken = call(&["add_users_sqlite", "(0, 10, 1)", "--state=state"]);
    assert!(taken.contains("IdExists = record { id = 0 : nat64 }"), "{taken}");
}

#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stablebench"))
        .args(["--list", "--batches=1,2,3"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}
