//! A whole suite through the tool, on both replicas, compared by the tool.

use std::path::Path;

use crate::canister::Replica;
use crate::embedded::Embedded;
use crate::tool::{stablebench, stderr, stdout};

/// Runs a small users suite and saves it under that name.
pub fn run(replica: &dyn Replica, directory: &Path, name: &str) {
    let mut command = stablebench(directory);
    command.args(["run", "users", "--rows=600", "--batches=1,20"]);
    command.args(["--journal-modes=persist,wal", "--out", name]);
    replica.choose(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

pub fn suite(replica: &dyn Replica) {
    let directory = tempfile::tempdir().unwrap();
    run(&Embedded, directory.path(), "embedded.json");
    run(replica, directory.path(), "tested.json");
    equal(directory.path(), "embedded.json", "tested.json");
}

/// The tool finds no difference between two files of results.
pub fn equal(directory: &Path, one: &str, other: &str) {
    let mut compare = stablebench(directory);
    let output = compare.args(["compare", one, other, "--threshold=0%"]).output().unwrap();
    let said = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
}
