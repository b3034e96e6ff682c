//! The embedded replica against recordings of a PocketIC server.

use std::path::Path;

use stablebench_replica::Replica;

mod conformance;

fn hold(file: &str, calls: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(file);
    let cache = tempfile::tempdir().unwrap();
    let replica = Replica::new(Some(cache.path().to_owned())).unwrap();
    let mut outcome = conformance::Outcome::default();
    conformance::run_file(&replica, &path, &mut outcome).unwrap();
    let listed: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{}", listed.join("\n"));
    assert_eq!(outcome.passed, calls, "the file holds as many calls");
}

#[test]
fn modules() {
    hold("modules.json", 58);
}

#[test]
fn random() {
    hold("random.json.gz", 80);
}

#[test]
fn edges() {
    hold("edges.json.gz", 81);
}

#[test]
fn users() {
    hold("users.json", 138);
}
