//! Links in the documents have existing targets, and lints that crates repeat are complete.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure fails the test")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the documents of the repository.
fn documents() -> Vec<PathBuf> {
    let folders = ["", "docs", "crates/replica", "crates/cuckoo", "crates/conformance/cases"];
    let mut found = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the targets of links and pictures: `](target)`, `src="target"`, `srcset="target"`.
fn targets(text: &str) -> Vec<&str> {
    let after = |mark: &'static str, end: char| {
        text.split(mark).skip(1).filter_map(move |rest| rest.split_once(end)).map(|(to, _)| to)
    };
    after("](", ')').chain(after("src=\"", '"')).chain(after("srcset=\"", '"')).collect()
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn has_heading(text: &str, name: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|known| known == name)
}

#[test]
fn targets_of_links_exist() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for target in targets(&text).into_iter().filter(|target| !target.contains("://")) {
            seen += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => document.clone(),
                file => document.parent().unwrap().join(file),
            };
            let there = match heading {
                "" => path.exists(),
                heading => fs::read_to_string(&path).is_ok_and(|text| has_heading(&text, heading)),
            };
            if !there {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(seen > 50, "{seen}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_index_names_every_document() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for document in documents() {
        let name = document.file_name().unwrap().to_str().unwrap();
        if document.parent().unwrap().ends_with("docs") && name != "README.md" {
            assert!(index.contains(&format!("({name})")), "{name}");
        }
    }
}

/// Returns the paths between backticks, outside of blocks of code.
fn paths(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    let quoted = prose.flat_map(|part| part.split('`').skip(1).step_by(2));
    let is_path = |quoted: &&str| {
        let known = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
        quoted.contains('/') && quoted.chars().all(known) && !quoted.contains("NAME")
    };
    quoted.filter(is_path).collect()
}

/// A path of the repository begins with one of its folders, or those of the document's crate.
#[test]
fn named_paths_exist() {
    // These are folders of users: what they build, and their own projects.
    const OF_USERS: [&str; 1] = ["target/"];
    let (mut missing, mut seen) = (Vec::new(), 0);
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let own = match document.file_name().and_then(|name| name.to_str()) {
            // Its paths are those of a reader's project.
            Some("canbench.md" | "CHANGELOG.md") => continue,
            // Its tests are those of the crate, unless stated otherwise.
            Some("metering.md") => root().join("crates/replica"),
            _ => document.parent().unwrap().to_owned(),
        };
        for path in paths(&text) {
            let first = path.split('/').next().unwrap();
            let bases = [root(), &own];
            let begins = bases.iter().any(|base| base.join(first).is_dir());
            if first.is_empty() || !begins || OF_USERS.iter().any(|of| path.starts_with(of)) {
                continue;
            }
            seen += 1;
            let there =
                |base: &&Path| base.join(path).exists() || base.join(format!("{path}.rs")).exists();
            if !bases.iter().any(there) {
                missing.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Returns the names of all functions below a folder.
fn functions(folder: &Path, found: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            found.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
}

/// The last column of its tables names tests.
#[test]
fn the_tests_against_threats_exist() {
    let mut known = HashSet::new();
    for folder in ["crates", "src", "tests"] {
        functions(&root().join(folder), &mut known);
    }
    let text = fs::read_to_string(root().join("docs/threats.md")).unwrap();
    let cells = text.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once("| "));
    let named = cells.flat_map(|(_, tests)| tests.split('`').skip(1).step_by(2));
    let (mut seen, mut missing) = (0, Vec::new());
    for name in named {
        seen += 1;
        if !known.contains(name) && !root().join(name).exists() {
            missing.push(name);
        }
    }
    assert!(seen > 40, "{seen}");
    assert!(missing.is_empty(), "no such tests: {}", missing.join(", "));
}

/// Clippy reads the file of a crate instead of that of the workspace.
#[test]
fn crates_with_lints_of_their_own_have_those_of_the_workspace() {
    let paths = |file: &Path| -> Vec<String> {
        let text = fs::read_to_string(file).unwrap();
        let quoted =
            |line: &str| Some(line.split_once("{ path = \"")?.1.split_once('"')?.0.to_owned());
        text.lines().filter_map(quoted).collect()
    };
    let workspace = paths(&root().join("clippy.toml"));
    assert!(workspace.contains(&"candid::Decode".to_owned()));
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in crates.chain([root().join("canisters")]) {
        let file = folder.join("clippy.toml");
        if !file.exists() {
            continue;
        }
        let own = paths(&file);
        let allowed = match folder.file_name().and_then(|name| name.to_str()) {
            // Instruction limits bound what canisters and their parts decode.
            Some("builds" | "canisters" | "protocol") => "candid::",
            // It prints nothing.
            Some("replica") => "serde_json::",
            _ => "none",
        };
        let missing: Vec<_> = workspace
            .iter()
            .filter(|path| !own.contains(path) && !path.starts_with(allowed))
            .collect();
        assert!(missing.is_empty(), "{} lacks {missing:?}", file.display());
    }
}
