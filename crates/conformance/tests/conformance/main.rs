//! Tests of the program `conformance`: its output and its exit codes. Those of the recorded cases are
//! in modules.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod cases;
mod documented;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Exit code, stdout and stderr.
fn conformance(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformance"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn with(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

const ECHO: &str = r#"[{"name": "echo", "group": "tests",
    "wat": "(module (import \"ic0\" \"msg_reply\" (func $f)) (func (export \"canister_query go\") call $f))",
    "calls": [{"method": "go", "kind": "query", "arg": "",
    "expect": {"reply": {"hex": "HEX", "cycles_charged": 0}}}]}]"#;

#[test]
fn check_lists_differences() {
    let folder = folder();
    with(&folder, "same.json", &ECHO.replace("HEX", ""));
    with(&folder, "other.json", &ECHO.replace("HEX", "01"));
    let (code, out, err) = conformance(&["check", "same.json"], folder.path());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "1 passed, 0 failed\n", ""));
    let (code, out, err) = conformance(&["check", "same.json", "other.json"], folder.path());
    let expected = "echo / 0 go\n  expected reply 01\n  got      reply \n1 passed, 1 failed\n";
    assert_eq!((code, out.as_str(), err.as_str()), (1, expected, ""));
}

#[test]
fn files_that_cannot_be_used_are_one_message_and_code_2() {
    let folder = folder();
    with(&folder, "broken.json", "[{");
    with(&folder, "hex.json", &ECHO.replace("HEX", "0"));
    with(&folder, "wat.json", r#"[{"name": "a", "group": "b", "wat": "(modul)", "calls": []}]"#);
    with(&folder, "gone.json", r#"[{"name": "a", "group": "b", "wasm": "a.wasm", "calls": []}]"#);
    let steers = r#"[{"name": "\u001b[2J", "group": "b", "wat": "(modul)", "calls": []}]"#;
    with(&folder, "steers.json", steers);
    for (file, expected) in [
        ("/dev/zero", "it is not a regular file"),
        ("steers.json", r"case \u{1b}[2J: "),
        ("missing.json", "missing.json: No such file"),
        ("broken.json", "broken.json is not a file of cases"),
        ("hex.json", "two digits per byte"),
        ("wat.json", "case a: "),
        ("gone.json", "a.wasm: No such file"),
    ] {
        let (code, out, err) = conformance(&["check", file], folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{file}");
        assert!(err.starts_with("conformance: ") && err.contains(expected), "{err}");
    }
}

#[test]
fn invalid_arguments_exit_with_code_2() {
    let folder = folder();
    for (arguments, expected) in [
        (&["check"][..], "<FILE>"),
        (&["check", "--rules", "1999-01", "a.json"], "1999-01"),
        (&["record"], "unrecognized subcommand"),
    ] {
        let (code, out, err) = conformance(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}
