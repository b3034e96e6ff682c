//! A small run of the suite cuckoo.

use std::path::Path;

use serde_json::Value;

use super::{stablebench, stderr, stdout};

const SMALL: &[&str] = &["run", "cuckoo", "--num=256", "--lookups=100", "--no-wall-time"];

fn run(jobs: &str, directory: &Path) -> String {
    let args = [SMALL, &[jobs, "--format=json"]].concat();
    let output = stablebench(&args, directory);
    assert!(output.status.success(), "{}", stderr(&output));
    let saved = std::fs::read_to_string(directory.join("cuckoo.json")).unwrap();
    assert!(stdout(&output) == saved, "what is printed is what is saved");
    saved
}

#[test]
fn every_row_is_measured_and_two_runs_are_equal() {
    let directory = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let saved = run("--jobs=1", directory.path());
    assert!(saved == run("--jobs=3", other.path()), "two runs differ");

    let results: Value = serde_json::from_str(&saved).unwrap();
    let cases = results["cases"].as_array().unwrap();
    // Four utilisations: hits and misses of two kinds of keys and building, in six configurations;
    // five batches in two of them; two rows after an upgrade in all of them.
    assert_eq!(cases.len(), 4 * (6 * 6 + 5 * 2) + 2 * 6);
    assert_eq!(results["stores"].as_array().unwrap().len(), 4 * 2 * 6);
    for case in cases {
        let measured = &case["outcome"]["measured"];
        assert!(measured["instructions"].as_u64().unwrap() > 0, "{case}");
        let operations = measured["operations"].as_u64().unwrap();
        let rows = measured["detail"]["rows"].as_u64().unwrap();
        let missed = case["section"] == "miss" || case["name"].as_str().unwrap().contains("miss");
        assert_eq!(rows, if missed { 0 } else { operations }, "{case}");
    }
    // A table is read once or twice for a key, whatever it holds; a map at least once for
    // each of its nodes.
    let each = |column: &str| {
        let mut of =
            cases.iter().filter(|case| case["section"] == "hit" && case["column"] == column);
        of.next().unwrap()["outcome"]["measured"]["instructions"].as_u64().unwrap() / 100
    };
    assert!(each("cuckoo/murmur") * 5 < each("sqlite/persist"));
    assert!(each("cuckoo/identity") * 5 < each("btree"));

    // A resumed complete run measures nothing.
    let again = run("--resume", directory.path());
    assert!(again == saved);
}

#[test]
fn the_tables_show_reads_and_the_published_figures() {
    let directory = tempfile::tempdir().unwrap();
    let args =
        [SMALL, &["--engines=cuckoo/identity,array", "--keys=sequential", "--format=markdown"]];
    let output = stablebench(&args.concat(), directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    for text in [
        "Read from stable memory by a lookup",
        "Compared with the published figures",
        "12.1 M/s",
        "1.00 / 60",
        "1.00 / 12",
    ] {
        assert!(printed.contains(text), "{text}:\n{printed}");
    }
}

#[test]
fn the_number_of_buckets_is_a_power_of_two() {
    for num in ["--num=1000", "--num=64", "--num=0", "--num=x"] {
        let output = stablebench(&["run", "cuckoo", num], Path::new("."));
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("a power of two"), "{}", stderr(&output));
    }
}
