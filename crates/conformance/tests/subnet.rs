//! Compares calls between canisters on the embedded replica with recordings of a PocketIC server.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;

use stablebench_conformance::Outcome;
use stablebench_conformance::subnet::{EmbeddedSubnet, compare, read, record};

fn check(rules: &str, file: &str, steps: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/calls").join(file);
    let mut target = EmbeddedSubnet::new(rules.parse().unwrap()).unwrap();
    let mut outcome = Outcome::default();
    for case in read(&path).unwrap() {
        let got = record(&mut target, &case).unwrap();
        assert_eq!(got.ids, case.ids);
        compare(&mut outcome, &case, &got);
    }
    let listed: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{}", listed.join("\n"));
    assert_eq!(outcome.passed, steps, "the number of steps in the file");
}

#[test]
fn calls_under_the_rules_of_2025() {
    check("2025-10", "2025.json.gz", 253);
}

#[test]
fn calls_under_the_rules_of_2026() {
    check("2026-08", "2026.json.gz", 253);
}
