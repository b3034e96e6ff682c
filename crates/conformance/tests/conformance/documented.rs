//! The tests and recorded cases that `docs/metering.md` names for each rule exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use stablebench_conformance::{read, subnet};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    fs::read_to_string(root().join("docs/metering.md")).unwrap()
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Names of all test functions, and all files.
fn tests() -> (BTreeSet<String>, Vec<PathBuf>) {
    let mut files = Vec::new();
    for directory in [
        "crates/replica/src",
        "crates/replica/tests",
        "crates/conformance/tests",
        "verification/recorder/tests",
    ] {
        sources(&root().join(directory), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for after in text.split("#[test]").skip(1) {
            let name = after.split_once("fn ").and_then(|(_, name)| name.split_once('('));
            names.insert(name.expect("a test is a function").0.to_owned());
        }
    }
    (names, files)
}

/// The texts between pairs of `mark`.
fn marked(cell: &str, mark: char) -> impl Iterator<Item = &str> {
    cell.split(mark).skip(1).step_by(2)
}

/// The cells in rows and columns with the title `title`, in all tables.
fn cells<'d>(document: &'d str, title: &str) -> Vec<&'d str> {
    let mut cells = Vec::new();
    let (mut column, mut row) = (None, false);
    for line in document.lines() {
        let Some(line) = line.strip_prefix('|') else {
            (column, row) = (None, false);
            continue;
        };
        let all: Vec<&str> = line.trim_end_matches('|').split('|').map(str::trim).collect();
        let header = all.iter().position(|cell| cell.split(',').next() == Some(title));
        match header {
            Some(0) if all.len() == 2 => row = true,
            Some(at) => {
                column = Some(at);
                continue;
            }
            // A row without a title continues the row above.
            None => row &= all.first() == Some(&""),
        }
        if row {
            cells.extend(all.get(1));
        }
        cells.extend(column.and_then(|column| all.get(column)));
    }
    cells
}

#[test]
fn the_named_tests_exist() {
    let document = document();
    let (tests, files) = tests();
    let mut named: Vec<&str> =
        cells(&document, "tests").into_iter().flat_map(|cell| marked(cell, '`')).collect();
    named.extend(document.split("test `").skip(1).filter_map(|after| after.split('`').next()));
    assert!(named.len() > 60, "{named:?}");
    for name in named {
        let is_file = || files.iter().any(|file| file.to_string_lossy().contains(name));
        let exists = if name.contains(['.', '/']) { is_file() } else { tests.contains(name) };
        assert!(exists, "there is no test {name}");
    }
}

#[test]
fn the_named_cases_exist() {
    let document = document();
    let directory = root().join("crates/conformance/cases");
    let mut names = BTreeSet::new();
    let mut groups = BTreeSet::new();
    let entries = ["2025-10", "2026-08", "2026-08-recorded", "2026-10"]
        .map(|rules| fs::read_dir(directory.join(rules)).unwrap());
    for entry in entries.into_iter().flatten() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        if file.ends_with(".json") || file.ends_with(".json.gz") {
            if subnet::is_file_of_subnets(&path).unwrap() {
                names.extend(subnet::read(&path).unwrap().into_iter().map(|case| case.name));
            } else {
                for case in read(&path).unwrap() {
                    names.insert(case.name);
                    groups.insert(case.group);
                }
            }
            names.insert(file);
        }
    }
    let cells = cells(&document, "cases");
    for cell in &cells {
        let Some(cell) = cell.split("test `").next() else {
            continue;
        };
        for name in marked(cell, '`').filter(|name| *name != "cycles_charged") {
            let exists = match name.strip_suffix('…') {
                Some(prefix) => names.iter().any(|name| name.starts_with(prefix)),
                None => names.contains(name),
            };
            assert!(exists, "there is no case {name}");
        }
        for group in marked(cell, '*').filter(|group| *group != "not recorded") {
            assert!(groups.contains(group), "there is no group {group}");
        }
    }
    assert!(cells.len() > 20);
}
