//! The canisters in the program, in a checkout and elsewhere.

use std::path::Path;
use std::process::Command;

use super::{command, in_cache, stderr, stdout};

/// The revision in the results of a short run.
fn revision(mut command: Command, directory: &Path) -> Option<String> {
    command.args(["--no-wall-time", "--out=results.json"]).current_dir(directory);
    let output = command.env_remove("CARGO_MANIFEST_DIR").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(directory.join("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&text).unwrap();
    results["revision"].as_str().map(str::to_owned)
}

const SHORT: [&str; 4] = ["--rows=10", "--batches=1", "--at=end", "--engines=array"];

#[test]
fn a_program_in_a_checkout_has_its_revision_in_every_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output().unwrap();
    let head = stdout(&head);
    let directory = tempfile::tempdir().unwrap();
    let found = revision(command(&SHORT, directory.path()), directory.path());
    let found = found.as_deref().map(|found| found.trim_end_matches("-dirty"));
    // A checkout without git has none.
    assert_eq!(found.is_some(), !head.is_empty());
    assert!(found.is_none_or(|found| head.starts_with(found)), "{found:?}, not {head}");
}

#[test]
fn a_program_elsewhere_needs_no_checkout() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("installed");
    std::fs::copy(env!("CARGO_BIN_EXE_stablebench"), &program).unwrap();
    let mut installed = Command::new(&program);
    for (name, value) in in_cache(&super::CACHE, &[], directory.path()).get_envs() {
        if let Some(value) = value {
            installed.env(name, value);
        }
    }
    installed.args(SHORT);
    assert_eq!(revision(installed, directory.path()), None);
}
