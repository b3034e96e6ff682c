//! `stablebench compare` and `report` on saved results.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure fails the test")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Returns the exit code, stdout and stderr.
fn stablebench(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_stablebench"))
        .args(arguments)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Writes the published figures to a file with a change of the first case: `btree`,
/// `middle 1`, 49 359 instructions.
fn changed(directory: &Path, name: &str, change: impl Fn(&mut Value)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("suites/users/published.json")).unwrap();
    let mut results: Value = serde_json::from_str(&text).unwrap();
    change(&mut results["cases"][0]);
    std::fs::write(directory.join(name), results.to_string()).unwrap();
}

fn instructions(case: &mut Value, instructions: u64) {
    case["outcome"]["measured"]["instructions"] = instructions.into();
}

#[test]
fn the_exit_code_is_1_beyond_a_threshold() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    changed(at, "same.json", |_| {});
    // 1.5 times 49 360.
    changed(at, "base.json", |case| instructions(case, 49_360));
    changed(at, "slower.json", |case| instructions(case, 74_040));
    changed(at, "failed.json", |case| {
        case["outcome"] = serde_json::json!({"failed": {"reason": "it trapped"}});
    });
    changed(at, "other.json", |case| case["rows"] = 7.into());
    for (code, arguments, expected) in [
        (
            0,
            &["published:users", "same.json"][..],
            "40 values compared, 0 differ by more than 0 %\n",
        ),
        (1, &["base.json", "slower.json"], "Differ by more than 0 %"),
        (0, &["base.json", "slower.json", "--threshold=50%"], "0 differ by more than 50 %"),
        (1, &["base.json", "slower.json", "--threshold=49.9%"], "insert: middle 1, btree: instr"),
        (0, &["base.json", "slower.json", "--max-ratio=1.5"], "0 above 1.500×"),
        (1, &["base.json", "slower.json", "--max-ratio=1.49"], "Above the largest ratio, 1.490×"),
        // (1.5 + 19) / 20.
        (0, &["base.json", "slower.json", "--max-average=1.025"], "0 sections above 1.025×"),
        (1, &["base.json", "slower.json", "--max-average=1.024"], "Sections above the largest av"),
        (1, &["base.json", "failed.json", "--max-ratio=99"], "failed: it trapped"),
        (0, &["base.json", "--configurations", "btree", "sqlite/off"], "arithmetic average"),
        (
            1,
            &["base.json", "--configurations", "btree", "sqlite/off", "--max-ratio=3"],
            "middle 1 ",
        ),
    ] {
        let (was, printed, error) = stablebench(at, &[&["compare"], arguments].concat());
        assert_eq!((was, error.as_str()), (code, ""), "{arguments:?}\n{printed}");
        assert!(printed.contains(expected), "{arguments:?}\n{printed}");
    }
    for (arguments, expected) in [
        (&["base.json", "other.json"][..], "is about 100 000 rows of 100 bytes (warm) in one"),
        (&["base.json", "missing.json"], "cannot read results from missing.json"),
        (&["published:nothing", "base.json"], "there are no published figures nothing"),
        (&["base.json", "--configurations", "btree", "array"], "have no configuration array"),
        (&["base.json"], "required arguments were not provided"),
    ] {
        let (was, printed, error) = stablebench(at, &[&["compare"], arguments].concat());
        assert_eq!((was, printed.as_str()), (2, ""), "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}\n{error}");
    }
}

#[test]
fn a_comparison_in_every_format() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    changed(at, "base.json", |case| instructions(case, 49_360));
    changed(at, "slower.json", |case| instructions(case, 74_040));
    let print = |format: &str| {
        let arguments =
            ["compare", "base.json", "slower.json", "--max-ratio=1.05", "--format", format];
        let (code, printed, _) = stablebench(at, &arguments);
        assert_eq!(code, 1);
        printed
    };
    insta::assert_snapshot!("comparison_table", print("table"));
    insta::assert_snapshot!("comparison_markdown", print("markdown"));
    let csv = print("csv");
    assert!(csv.contains("case,insert,middle 1,btree,btree,instructions,49360,74040,1.5,\n"));
    assert!(csv.contains("above_ratio,,\"insert: middle 1, btree\",,,,49 360,74 040,1.5,\n"));
    let json: Value = serde_json::from_str(&print("json")).unwrap();
    assert_eq!(json["rows"][0]["ratio"], 1.5);
    assert_eq!(json["failures"][0]["name"], "insert: middle 1, btree");
}

#[test]
fn saved_results_are_printed_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let (code, csv, _) = stablebench(at, &["report", "published:users", "--format=csv"]);
    assert_eq!((code, csv.lines().count()), (0, 1 + 20));
    assert!(csv.contains("\ninsert,middle 1,btree,100000,100,warm,measured,,49359,1,"), "{csv}");
    let (code, printed, _) =
        stablebench(at, &["report", "published:users", "--format=csv", "-o", "out.csv"]);
    assert_eq!((code, printed.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(at.join("out.csv")).unwrap(), csv);
    let (code, _, error) = stablebench(at, &["report", "published:users", "missing.json"]);
    assert_eq!(code, 2);
    assert!(error.contains("cannot read results from missing.json"), "{error}");
}
