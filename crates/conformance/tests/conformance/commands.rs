//! The program: its output and its exit codes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Exit code, stdout and stderr.
fn conformance(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformance"));
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
        (&["generate", "canister", "-o", "out.json"], "--wasm"),
        (&["generate", "random", "--count", "0", "-o", "out.json"], "0"),
        (&["record", "a.wat", "--call", "update:go:0x", "-o", "out.json"], "is not a hex digit"),
        (&["record", "a.wat", "--call", "call:go:", "-o", "out.json"], "must start with"),
        (&["verify", "--subnet", "moon", "a.json"], "moon"),
    ] {
        let (code, out, err) = conformance(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
    let arguments = ["generate", "random", "--wasm", "a.wasm", "-o", "out.json"];
    let (code, _, err) = conformance(&arguments, folder.path());
    assert_eq!(code, 2);
    assert!(err.contains("only for canister"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn generated_files_can_be_checked() {
    let folder = folder();
    for what in ["modules", "random"] {
        for out in ["one.json.gz", "same.json.gz"] {
            let (code, out, err) = conformance(&["generate", what, "-o", out], folder.path());
            assert_eq!((code, out.as_str()), (0, ""), "{err}");
        }
        let [one, same] =
            ["one.json.gz", "same.json.gz"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(one == same, "the same seed generates the same file");
        // There are no expected answers, so nothing passes or fails.
        let (code, out, _) = conformance(&["check", "one.json.gz"], folder.path());
        assert_eq!((code, out.as_str()), (0, "0 passed, 0 failed\n"));
    }
    let (code, _, err) = conformance(&["generate", "random", "-o", "no/out.json"], folder.path());
    assert_eq!(code, 2);
    assert!(err.contains("no/out.json could not be written"), "{err}");
}

#[test]
#[cfg(not(feature = "pocket-ic"))]
fn without_server_support_the_error_says_how_to_build_it() {
    let folder = folder();
    let module = with(&folder, "a.wat", "(module)");
    let module = module.to_str().unwrap();
    for arguments in [&["record", module, "-o", "out.json"][..], &["verify", module]] {
        let (code, out, err) = conformance(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains("--features pocket-ic --bin conformance"), "{err}");
    }
}

#[test]
#[cfg(feature = "pocket-ic")]
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
        let (code, out, err) = conformance(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.starts_with("conformance: ") && err.contains(expected), "{arguments:?}: {err}");
    }
    assert!(!folder.path().join("out.json").exists());
}
