//! Whole suites through the tool, on both replicas, compared by the tool.

use std::path::Path;

use crate::canister::Replica;
use crate::embedded::Embedded;
use crate::tool::{stablebench, stderr, stdout};

// Each suite, small: a server takes a second for each fork.
pub const USERS: &[&str] =
    &["users", "--rows=600", "--batches=1,20", "--journal-modes=persist,wal"];
pub const DB_BENCH: &[&str] = &["db-bench", "--num=400"];
pub const KEYS: &[&str] =
    &["keys", "--rows=300", "--questions=5", "--schemas=b,d", "--keys=integer,uuidv7"];
pub const SYSBENCH: &[&str] = &["sysbench", "--rows=300", "--keys=composite"];
pub const CUCKOO: &[&str] = &["cuckoo", "--num=256", "--keys=scattered"];

fn measure(suite: &[&str], replica: &dyn Replica, directory: &Path, name: &str) {
    let mut command = stablebench(directory);
    command.arg("run").args(suite).args(["--out", name]);
    replica.choose(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A suite costs the same on both replicas.
pub fn suite(replica: &dyn Replica, suite: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    measure(suite, &Embedded(replica.rules()), directory.path(), "embedded.json");
    measure(suite, replica, directory.path(), "tested.json");
    equal(directory.path(), "embedded.json", "tested.json");
}

/// The tool finds no difference between two files of results.
pub fn equal(directory: &Path, one: &str, other: &str) {
    let mut compare = stablebench(directory);
    let output = compare.args(["compare", one, other, "--threshold=0%"]).output().unwrap();
    let said = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
}
