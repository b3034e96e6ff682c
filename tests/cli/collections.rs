//! Small runs of the suite collections.

use std::path::Path;

use serde_json::Value;

use super::{stablebench, stderr, stdout};
use crate::server::Server;

fn run(more: &[&str], directory: &Path) -> String {
    let words = ["run", "collections", "--no-wall-time"];
    let output = stablebench(&[&words, more].concat(), directory);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

struct Saved(Value);

impl Saved {
    fn of(more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let saved = run(&[more, &["--format=json"]].concat(), directory.path());
        Self(serde_json::from_str(&saved).unwrap())
    }

    fn outcome(&self, section: &str, map: &str) -> &Value {
        let mut cases = self.0["cases"].as_array().unwrap().iter();
        let found =
            cases.find(|case| case["section"] == section && case["configuration"] == map).unwrap();
        &found["outcome"]
    }

    fn number(&self, section: &str, map: &str, path: &str) -> u64 {
        let found = self.outcome(section, map).pointer(&format!("/measured{path}"));
        let number = found.and_then(Value::as_u64);
        number.unwrap_or_else(|| panic!("{section}, {map}: no {path}"))
    }

    /// The content after a case: the number of entries, and their hashes.
    fn digest(&self, section: &str, map: &str) -> [u64; 3] {
        ["rows", "low", "high"]
            .map(|part| self.number(section, map, &format!("/detail/digest/{part}")))
    }

    fn maps(&self) -> Vec<&str> {
        let configurations = self.0["configurations"].as_array().unwrap();
        configurations.iter().map(|of| of["key"].as_str().unwrap()).collect()
    }
}

/// Both languages do the same to the same entries, whatever the map.
#[test]
fn all_maps_have_the_same_content() {
    let saved = Saved::of(&["--entries=300"]);
    let maps = saved.maps();
    assert_eq!(maps.len(), 11);
    for (section, rows) in [("generate", 300), ("put", 350), ("remove", 250), ("upgrade", 300)] {
        for map in &maps {
            assert_eq!(saved.digest(section, map), saved.digest(section, maps[0]), "{map}");
        }
        assert_eq!(saved.digest(section, maps[0])[0], rows, "{section}");
    }
    for map in &maps {
        for (section, rows) in [("get", 0), ("get existing", 50), ("put", 50), ("remove", 50)] {
            assert_eq!(saved.number(section, map, "/detail/rows"), rows, "{section}, {map}");
            // The tables subtract it.
            saved.number(section, map, "/detail/pages/heap");
        }
    }
}

/// An upgrade writes and reads the entries, unless they are in stable memory, or on a heap that stays.
#[test]
fn upgrades_cost_by_the_persistence_of_a_map() {
    let maps = "--maps=rust-btree-map,rust-table,motoko-map,classical-rb-tree,classical-table";
    let few = Saved::of(&["--entries=100", maps]);
    let many = Saved::of(&["--entries=4000", maps]);
    for map in few.maps() {
        let [few, many] = [&few, &many].map(|saved| saved.number("upgrade", map, "/instructions"));
        let grows = many > few + 4_000_000;
        assert_eq!(grows, ["rust-btree-map", "classical-rb-tree"].contains(&map), "{few} {many}");
    }
}

/// Motoko's collection of garbage is part of the message, but not of the work.
#[test]
fn garbage_is_collected_after_the_work() {
    let saved = Saved::of(&["--entries=30000", "--maps=rust-hash-map,classical-rb-tree"]);
    let rest = |map| {
        saved.number("generate", map, "/detail/cost/inside/instructions")
            - saved.number("generate", map, "/detail/message_instructions")
    };
    assert!(rest("rust-hash-map") < 100_000, "{}", rest("rust-hash-map"));
    assert!(rest("classical-rb-tree") > 10_000_000, "{}", rest("classical-rb-tree"));
}

#[test]
fn published_figures_are_beside_ours() {
    let directory = tempfile::tempdir().unwrap();
    let maps = "--maps=rust-btree-map,rust-stable-btree-map";
    let printed = run(&["--entries=50000", maps, "--format=markdown"], directory.path());
    for figure in ["published: btreemap_stable_rs", "4 224 209 849", "653 359"] {
        assert!(printed.contains(figure), "{printed}");
    }
    // No figures were published for this size.
    let printed = run(&["--entries=60", maps, "--format=markdown"], directory.path());
    assert!(!printed.contains("published: "), "{printed}");
}

/// An upgrade over the network says that the heap stays; otherwise the replica refuses it.
#[test]
fn upgrades_keep_the_heap_on_a_network() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench_motoko", "bench_collections"], directory.path());
    let small = ["--entries=60", "--maps=rust-table,motoko-map,motoko-table", "--format=json"];
    let saved = run(&[&small[..], &server.target()].concat(), directory.path());
    let saved = Saved(serde_json::from_str(&saved).unwrap());
    let embedded = Saved::of(&small[..2]);
    for map in saved.maps() {
        for section in ["generate", "get", "get existing", "put", "remove"] {
            let of = |saved: &Saved| saved.number(section, map, "/instructions");
            assert_eq!(of(&saved), of(&embedded), "{section}, {map}");
        }
        let outcome = saved.outcome("upgrade", map);
        let reason = outcome["not_applicable"]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("does not report the instructions"), "{outcome}");
    }
    let printed = run(&[&small[..2], &["--verbose"], &server.target()].concat(), directory.path());
    assert!(printed.contains("generate is the work alone"), "{printed}");
}
