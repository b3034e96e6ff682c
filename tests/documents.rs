//! Links in the documents have existing targets, measured figures are rendered, and lints that crates
//! repeat are complete.

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
    let mut found = pages_of_suites();
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

/// Returns the page of each suite.
fn pages_of_suites() -> Vec<PathBuf> {
    let suites = fs::read_dir(root().join("suites")).unwrap();
    let pages = suites.map(|entry| entry.unwrap().path().join("README.md"));
    pages.filter(|page| page.exists()).collect()
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
    assert!(seen > 80, "{seen}");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Returns the prose of a page, in one line: without rendered blocks and blocks of code.
fn prose(page: &str) -> String {
    let mut prose = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<!-- results: ") {
        prose += before;
        rest = after.split_once("<!-- end -->").expect("a block ends").1;
    }
    prose += rest;
    let prose: Vec<&str> = prose.split("```").step_by(2).collect();
    prose.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the numbers in a text that have at least five digits. Spaces, commas and dots may group
/// digits by three. Digits of a word, such as those of a hash, are no number.
fn figures(text: &str) -> Vec<u64> {
    let mut figures = Vec::new();
    let letters: Vec<char> = text.chars().collect();
    let digits = |from: usize| letters[from..].iter().take_while(|it| it.is_ascii_digit()).count();
    let is_word = |at: usize| letters.get(at).is_some_and(|it| it.is_alphanumeric() || *it == '_');
    let mut at = 0;
    while at < letters.len() {
        let begins = digits(at) > 0 && (at == 0 || !is_word(at - 1));
        if !begins {
            at += 1;
            continue;
        }
        let mut end = at + digits(at);
        if end - at <= 3 {
            let groups =
                |at: usize| letters.get(at).is_some_and(|it| " ,.\u{a0}\u{202f}".contains(*it));
            while groups(end) && digits(end + 1) == 3 {
                end += 4;
            }
        }
        if !is_word(end) {
            let number: String = letters[at..end].iter().filter(|it| it.is_ascii_digit()).collect();
            if number.len() >= 5 {
                figures.push(number.parse().unwrap());
            }
        }
        at = end;
    }
    figures
}

/// A long number in the prose of a suite's page is a size that somebody chose: a digit and zeros, or
/// a power of two. Measured figures are practically never one of these; they are rendered.
#[test]
fn measured_figures_are_rendered() {
    let round = |figure: u64| figure.to_string().trim_end_matches('0').len() == 1;
    let (mut seen, mut typed) = (0, Vec::new());
    for page in pages_of_suites() {
        let text = fs::read_to_string(&page).unwrap();
        for figure in figures(&prose(&text)) {
            seen += 1;
            if !round(figure) && !figure.is_power_of_two() {
                typed.push(format!("{}: {figure}", page.display()));
            }
        }
    }
    assert!(seen > 20, "{seen}");
    assert!(typed.is_empty(), "typed instead of rendered: {}", typed.join(", "));
}

#[test]
fn figures_are_found_outside_of_blocks() {
    let page = "In 2025, `b5b34567` and 0x12345: 12 345, 1,234,567,\n16.014×, 12345 and 10\n000 of 1 281, \
                0.9713 and 1 2345\n<!-- results: x -->\n54 321\n<!-- end -->\n```sh\n54321\n```\n(98 765).";
    assert_eq!(figures(&prose(page)), [12_345, 1_234_567, 16_014, 12_345, 10_000, 98_765]);
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
            Some("canisters" | "protocol") => "candid::",
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
