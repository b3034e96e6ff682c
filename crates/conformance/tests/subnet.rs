//! Compares calls between canisters on the embedded replica with recordings of a PocketIC server.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;

use stablebench_conformance::subnet::check_file;
use stablebench_conformance::{Embedded, Outcome};

fn check(file: &str, steps: usize) {
    let (rules, _) = file.split_once('/').unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file);
    let mut target = Embedded::new(rules.parse().unwrap()).unwrap();
    let mut outcome = Outcome::default();
    check_file(&mut target, &path, &mut outcome, |_| {}).unwrap();
    let listed: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{}", listed.join("\n"));
    assert_eq!(outcome.passed, steps, "the number of steps in the file");
}

#[test]
fn calls_between_canisters() {
    check("2025-10/subnet.json.gz", 253);
    check("2026-08/subnet.json.gz", 253);
}

#[test]
fn edges() {
    check("2025-10/subnet-edges.json.gz", 121);
}

#[test]
fn the_management_canister() {
    check("2025-10/management.json.gz", 244);
}

#[test]
fn generated() {
    check("2025-10/generated-subnet.json.gz", 1_204);
}
