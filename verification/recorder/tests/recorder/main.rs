//! Tests of the program that generates, records and verifies: its output and its exit codes. Those of
//! generated cases are in a module.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod generated;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stablebench_conformance::{Embedded, Outcome, check_file};
use stablebench_replica::Rules;
use tempfile::TempDir;

/// Exit code, stdout and stderr.
fn recorder(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recorder"));
    // No test may start or download a server.
    command.env("POCKET_IC_BIN", folder.join("no-server"));
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
fn invalid_arguments_exit_with_code_2() {
    let folder = folder();
    for (arguments, expected) in [
        (&["check"][..], "unrecognized subcommand"),
        (&["generate", "canister", "-o", "out.json"], "--wasm"),
        (&["generate", "random", "--count", "0", "-o", "out.json"], "0"),
        (&["record", "a.wat", "--call", "update:go:0x", "-o", "out.json"], "is not a hex digit"),
        (&["record", "a.wat", "--call", "call:go:", "-o", "out.json"], "must start with"),
        (&["verify", "--subnet", "moon", "a.json"], "moon"),
    ] {
        let (code, out, err) = recorder(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
    let arguments = ["generate", "random", "--wasm", "a.wasm", "-o", "out.json"];
    let (code, _, err) = recorder(&arguments, folder.path());
    assert_eq!(code, 2);
    assert!(err.contains("only for canister"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn generated_files_can_be_checked() {
    let folder = folder();
    for what in ["modules", "random"] {
        for out in ["one.json.gz", "same.json.gz"] {
            let (code, out, err) = recorder(&["generate", what, "-o", out], folder.path());
            assert_eq!((code, out.as_str()), (0, ""), "{err}");
        }
        let [one, same] =
            ["one.json.gz", "same.json.gz"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(one == same, "the same seed generates the same file");
        // There are no expected answers, so nothing passes or fails.
        let mut outcome = Outcome::default();
        let mut replica = Embedded::new(Rules::today()).unwrap();
        let file = folder.path().join("one.json.gz");
        check_file(&mut replica, &file, &mut outcome, |_, _| {}).unwrap();
        assert_eq!(outcome, Outcome::default());
    }
    let (code, _, err) = recorder(&["generate", "random", "-o", "no/out.json"], folder.path());
    assert_eq!(code, 2);
    assert!(err.contains("no/out.json could not be written"), "{err}");
}

#[test]
fn inputs_are_checked_before_a_server_is_started() {
    let folder = folder();
    with(&folder, "a.wat", "(module)");
    with(&folder, "no.wat", "(modul)");
    with(&folder, "same.json", &ECHO.replace("HEX", ""));
    for (arguments, expected) in [
        (&["record", "missing.json", "-o", "out.json"][..], "missing.json: No such file"),
        (&["record", "missing.wasm", "-o", "out.json"], "missing.wasm: No such file"),
        (&["record", "no.wat", "-o", "out.json"], "no.wat is not a module"),
        (&["record", "a.wat", "-o", "no/out.json"], "no/out.json cannot be written"),
        (&["record", "same.json", "--call", "query:go", "-o", "out.json"], "--call is for modules"),
        (&["record", "a.wat", "-o", "out.json"], "no-server cannot be executed"),
        (&["verify", "same.json"], "no-server cannot be executed"),
    ] {
        let (code, out, err) = recorder(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.starts_with("recorder: ") && err.contains(expected), "{arguments:?}: {err}");
    }
    assert!(!folder.path().join("out.json").exists());
}
