//! Runs of every suite with its own tables are deterministic and can be resumed.

use std::path::Path;

use serde_json::{Value, json};

use super::{own_cache, stablebench, stderr};

fn run(suite: &[&str], file: &str, more: &[&str], directory: &Path) -> (String, String) {
    let out = format!("--out={file}");
    let args = [&["run"], suite, &["--no-wall-time", "--format=json", &out], more].concat();
    let output = stablebench(&args, directory);
    assert!(output.status.success(), "{suite:?}: {}", stderr(&output));
    (std::fs::read_to_string(directory.join(file)).unwrap(), stderr(&output))
}

/// Changes results to those of a killed run: removes half of the cases and a fixture, and lets a
/// case fail. Returns the number of remaining measured cases.
fn cut_off(results: &mut Value) -> usize {
    let cases = results["cases"].as_array_mut().unwrap();
    let mut place = 0;
    cases.retain(|_| {
        place += 1;
        place % 2 == 0
    });
    cases[0]["outcome"] = json!({ "failed": { "reason": "for this test" } });
    let left = cases.len() - 1;
    results["fixtures"].as_array_mut().unwrap().remove(0);
    left
}

fn check(suite: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (whole, _) = run(suite, "whole.json", &["--jobs=1"], directory);
    // Without populated canisters of other runs.
    let cache = own_cache(&directory.join("cache"));
    let (again, _) = run(suite, "again.json", &["--jobs=3", &cache], directory);
    assert!(again == whole, "two runs of {suite:?} differ");

    let mut part: Value = serde_json::from_str(&whole).unwrap();
    let left = cut_off(&mut part);
    std::fs::write(directory.join("part.json"), part.to_string()).unwrap();
    let (resumed, notes) = run(suite, "part.json", &["--resume"], directory);
    assert!(notes.contains(&format!("{left} cases are measured already")), "{suite:?}: {notes}");
    assert!(resumed == whole, "the results of the resumed run of {suite:?} differ");

    // A run with another seed cannot be resumed.
    let args = [&["run"], suite, &["--no-wall-time", "--out=part.json", "--resume", "--seed=2"]];
    let output = stablebench(&args.concat(), directory);
    assert_eq!(output.status.code(), Some(2), "{suite:?}");
    assert!(stderr(&output).contains("because its command differs"), "{}", stderr(&output));
    assert!(std::fs::read_to_string(directory.join("part.json")).unwrap() == whole);
}

#[test]
fn db_bench_can_be_resumed() {
    check(&["db-bench", "--num=1000", "--histogram"]);
}

#[test]
fn keys_can_be_resumed() {
    check(&["keys", "--rows=200", "--watches=20", "--questions=5", "--schemas=a,d"]);
}

#[test]
fn sysbench_can_be_resumed() {
    check(&["sysbench", "--rows=100", "--keys=blob"]);
}

#[test]
fn cuckoo_can_be_resumed() {
    check(&["cuckoo", "--num=128", "--lookups=50", "--keys=scattered"]);
}

#[test]
fn calls_can_be_resumed() {
    let sections = "--sections=size,reply,fan-out,kinds,tasks,upgrade";
    check(&["calls", "--sizes=0,1000", "--fan-out=1,3", "--states=50", sections]);
}

#[test]
fn vfs_can_be_resumed() {
    check(&["vfs", "--rows=200", "--sizes=1,50"]);
}
