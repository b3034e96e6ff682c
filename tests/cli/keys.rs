//! Runs of the keys suite: every schema with every kind of key, verified while it is measured.

use std::path::Path;

use serde_json::Value;

use super::{stablebench, stderr, stdout};

/// 400 links, in lists of 20.
fn small_run(format: &str, more: &[&str], directory: &Path) -> String {
    let args = [
        "run",
        "keys",
        "--rows=400",
        "--watches=20",
        "--questions=10",
        "--no-wall-time",
        "--format",
        format,
        "--out=keys.json",
    ];
    let output = stablebench(&[&args, more].concat(), directory);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn sum(objects: &[&Value], of: &str) -> u64 {
    objects.iter().map(|object| number(&object[of])).sum()
}

/// The run fails if a row, a result or the content differs from the model's.
#[test]
fn every_combination_is_measured_and_verified() {
    let directory = tempfile::tempdir().unwrap();
    let text = small_run("json", &[], directory.path());
    let results: Value = serde_json::from_str(&text).unwrap();
    let cases = results["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3 * 5 * 4 * 2, "sections, schemas, kinds of key, libraries");
    for case in cases {
        let measured = &case["outcome"]["measured"];
        let title = format!("{} {} {}", case["section"], case["name"], case["configuration"]);
        assert!(number(&measured["instructions"]) > 0, "{title}");
        let lists = case["section"] == "lists";
        assert_eq!(number(&measured["operations"]), if lists { 20 } else { 10 }, "{title}");
        assert_eq!(measured["detail"]["stored"].is_object(), lists, "{title}");
        if lists {
            assert_eq!(number(&measured["detail"]["rows"]), 400);
            // Users, movies and links.
            assert_eq!(number(&measured["detail"]["digest"]["rows"]), 20 + 40 + 400, "{title}");
            if case["configuration"].as_str().unwrap().starts_with("sqlite-vfs") {
                // It is built without dbstat.
                let stored = &measured["detail"]["stored"];
                assert_eq!(stored["objects"], serde_json::json!([]), "{title}");
                assert!(number(&stored["bytes"]) > 16_384, "{title}");
            } else {
                sizes(case);
            }
        }
    }
    // Queries find the same rows with any kind of key.
    for section in ["wants", "watchers"] {
        let mut found: Vec<&Value> = cases
            .iter()
            .filter(|case| case["section"] == section)
            .map(|case| &case["outcome"]["measured"]["detail"]["rows"])
            .collect();
        found.dedup();
        assert_eq!(found.len(), 1, "{section}: {found:?}");
        assert!(number(found[0]) > 20, "{section}: {found:?}");
    }
    assert_eq!(small_run("json", &[], directory.path()), text, "two runs are equal");
}

/// The b-trees are those of the schema, and their sum is the size of the database.
fn sizes(case: &Value) {
    let stored = &case["outcome"]["measured"]["detail"]["stored"];
    let all: Vec<&Value> = stored["objects"].as_array().unwrap().iter().collect();
    assert_eq!(sum(&all, "bytes"), number(&stored["bytes"]));
    let links: Vec<&Value> =
        all.iter().copied().filter(|object| object["table"] == "witch_watch").collect();
    let integer = case["configuration"] == "integer";
    let trees = match case["name"].as_str().unwrap() {
        // An integer id is the rowid.
        "(a) id" if integer => 3,
        "(a) id" | "pair, with rowid" => 4,
        "(b) id, without rowid" | "(c) pair, without rowid" | "(d) rowid alone" => 3,
        other => panic!("{other}"),
    };
    assert_eq!(links.len(), trees, "{}", case["name"]);
    for tree in links {
        let name = format!("{} {} {}", case["name"], case["configuration"], tree["name"]);
        let (pages, internal) = (number(&tree["pages"]), number(&tree["internal_pages"]));
        assert_eq!(number(&tree["bytes"]), pages * 4_096, "{name}");
        // Each page but the root is a child of one.
        assert_eq!(number(&tree["children"]), if internal == 0 { 0 } else { pages - 1 }, "{name}");
        assert_eq!(number(&tree["depth"]), if internal == 0 { 1 } else { 2 }, "{name}");
        let table = tree["index"] == false;
        // The internal pages of a table with rowid hold copies; all others hold entries.
        let rowid = table && !case["name"].as_str().unwrap().contains("without");
        let inside = if rowid { 0 } else { number(&tree["children"]) - internal };
        assert_eq!(number(&tree["leaf_entries"]) + inside, 400, "{name}");
    }
}

/// The layout of the tables; figures change with the canister.
#[test]
fn printed_tables() {
    let directory = tempfile::tempdir().unwrap();
    let few = ["--schemas=a,c", "--keys=integer,ulid"];
    let printed = small_run("markdown", &few, directory.path());
    let (tables, _) = printed.split_once("### The fixtures after populating").unwrap();
    let (tables, _) = tables.split_once("### The base of a message").unwrap();
    let (ours, published) = tables.split_once("### Compared").unwrap();
    insta::assert_snapshot!(without_figures(ours) + "### Compared" + published);
}

/// Replaces each figure of a table by `#`, and removes lines that depend on the width of figures.
fn without_figures(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines().filter(|line| !line.starts_with("|-")) {
        for (place, cell) in line.split('|').enumerate() {
            // The first column contains labels.
            let figure = place > 1 && cell.contains(|letter: char| letter.is_ascii_digit());
            shown += if figure { "#" } else { cell.trim() };
            shown += "|";
        }
        shown.pop();
        shown.push('\n');
    }
    shown
}

#[test]
fn different_times_of_rows_change_only_ulids() {
    let directory = tempfile::tempdir().unwrap();
    let few = ["--schemas=a", "--keys=ulid,uuidv4"];
    let lists = |more: &[&str]| -> Vec<Value> {
        let text = small_run("json", &[&few, more].concat(), directory.path());
        let results: Value = serde_json::from_str(&text).unwrap();
        let cases = results["cases"].as_array().unwrap();
        cases.iter().filter(|case| case["section"] == "lists").cloned().collect()
    };
    let digest = |case: &Value| case["outcome"]["measured"]["detail"]["digest"].clone();
    let (shared, own) = (lists(&[]), lists(&["--rows-a-millisecond=1"]));
    assert_ne!(digest(&shared[0]), digest(&own[0]), "ULIDs");
    // Times of day are whole seconds, which change as well.
    assert_eq!(
        shared[1]["outcome"]["measured"]["detail"]["stored"],
        own[1]["outcome"]["measured"]["detail"]["stored"]
    );
}

#[test]
fn foreign_keys_cost_two_lookups_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let lists = |switch: &str| -> [Value; 2] {
        let few = ["--schemas=d", "--keys=ulid", switch];
        let text = small_run("json", &few, directory.path());
        let results: Value = serde_json::from_str(&text).unwrap();
        [0, 1].map(|place| results["cases"][place]["outcome"].clone())
    };
    let ([on, vfs_on], [off, vfs_off]) = (lists("--foreign-keys=on"), lists("--foreign-keys=off"));
    let [on, off, _] =
        [on, off, vfs_on].map(|outcome| number(&outcome["measured"]["instructions"]));
    assert!(on > off + 400 * 2_000, "{on} and {off}");
    let reason = vfs_off["not_applicable"]["reason"].as_str().unwrap();
    assert!(reason.contains("foreign_keys=0"), "{reason}");
}

#[test]
fn contradicting_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (args, said) in [
        (
            ["run", "keys", "--rows=150"],
            "150 links are not whole lists of 100; choose other --watches, or --rows 200",
        ),
        (
            ["run", "keys", "--movies=99"],
            "a list of 100 cannot be chosen from 99 movies; choose other --watches or --movies",
        ),
    ] {
        let output = stablebench(&args, directory.path());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}
