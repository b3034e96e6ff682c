//! The documents: links have targets, measured figures are rendered, named paths and tests exist, and the
//! commands, those in `--help` included, run or are exceptions with a reason. Lints that crates repeat are
//! complete.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::canbench::with_benchmarks;
use crate::{command, files, stablebench, stderr, stdout, succeeds};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the paths of files in a folder with this ending.
fn with_ending(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files = files(&root().join(folder));
    files.retain(|path| path.extension().is_some_and(|it| it == ending));
    files
}

/// Returns the documents of the repository, in order.
fn documents() -> Vec<PathBuf> {
    let folders = ["", "docs", "crates/cuckoo", "crates/replica", "crates/conformance/cases"];
    let found = folders.iter().flat_map(|folder| with_ending(folder, "md"));
    found.chain(pages_of_suites()).collect()
}

/// Returns the page of each suite.
fn pages_of_suites() -> Vec<PathBuf> {
    let suites = files(&root().join("suites")).into_iter();
    suites.map(|suite| suite.join("README.md")).filter(|page| page.exists()).collect()
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
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
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
    let mut known = BTreeSet::new();
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

/// A suite that the program has with less optimisation has all of it in canisters.
#[test]
fn canisters_have_the_suites_as_optimised_as_before() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let optimised = |profile: &str| -> Vec<(String, String)> {
        let (_, section) = manifest.split_once(&format!("[profile.{profile}.package]\n")).unwrap();
        let lines = section.lines().take_while(|line| !line.starts_with('['));
        lines
            .filter_map(|line| line.strip_prefix("stablebench-suite-")?.split_once(".opt-level = "))
            .map(|(suite, level)| (suite.to_owned(), level.to_owned()))
            .collect()
    };
    let (program, canisters) = (optimised("release"), optimised("canister"));
    assert!(program.iter().all(|(_, level)| level == "1") && program.len() > 5, "{program:?}");
    assert!(canisters.iter().all(|(_, level)| level == "3"), "{canisters:?}");
    let suites = |list: &[(String, String)]| -> Vec<String> {
        list.iter().map(|(suite, _)| suite.clone()).collect()
    };
    assert_eq!(suites(&program), suites(&canisters));
    // The suite builds measures this profile.
    for measured in ["builds", "users"] {
        assert!(!suites(&program).contains(&measured.to_owned()), "{measured}");
    }
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
    let crates = files(&root().join("crates")).into_iter();
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

/// Returns the commands of a text that begin with `start`, with joined lines and without comments.
pub fn commands(text: &str, start: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with(start));
    lines.map(|line| line.split(" #").next().unwrap_or_default().to_owned()).collect()
}

/// Returns the output of `--help`, with wrapped commands joined.
pub fn help(args: &[&str]) -> String {
    let shown = stdout(&stablebench(args, Path::new(".")));
    let mut text = String::new();
    for line in shown.lines() {
        let continues = line.starts_with("    ") && !line.starts_with("    stablebench ");
        text.push(if continues { ' ' } else { '\n' });
        // As a shell continues a line.
        text += line.strip_suffix('\\').unwrap_or(line);
    }
    text
}

/// The reason why a documented command does not run here as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// It takes minutes to hours. Its plan is listed, and the tests of its suite run it with few rows.
    Long,
    /// It takes long with the default of `--rows`, so it runs with these words in addition.
    Smaller(&'static str),
    /// The test with this name runs it, or one that differs in names and numbers only.
    Test(&'static str),
    /// A step of `scripts/check` runs it, or the same with other names: this is part of the line.
    Step(&'static str),
    /// It needs what is neither here nor in CI.
    Needs(&'static str),
    /// It prepares the commands after it, for names and folders of the reader.
    Prepares,
}

use Reason::{Long, Needs, Prepares, Smaller, Step, Test};

/// Commands that begin like this are exceptions. The longest that fits is the one that applies.
const EXCEPTIONS: &[(&str, Reason)] = &[
    // Measurements.
    ("stablebench", Smaller("--rows=20 --batches=1 --at=end --engines=array")),
    ("stablebench --rows 10000000", Long),
    ("stablebench --no-cache", Test("results_are_the_same_with_a_cache_and_without")),
    ("stablebench run ", Long),
    ("stablebench run all", Smaller("--shard=1000/1000")),
    ("stablebench sql --setup schema.sql --script", Smaller("--transactions=20")),
    ("stablebench sql --builtin", Smaller("--transactions=20")),
    ("stablebench run users --replica URL", Test("the_documented_runs_on_a_network_succeed")),
    ("stablebench profile users/insert/end-1/", Smaller("--rows=1000")),
    ("stablebench profile users/insert/middle-100/", Smaller("--rows=1000")),
    ("stablebench profile users/insert/middle-1000/", Smaller("--rows=10000")),
    ("cargo run --release", Step(r#""$programs/stablebench" --rows 10000"#)),
    // Commands that end by a signal, or change what is shared.
    ("stablebench serve", Test("a_saved_canister_is_served_again")),
    ("stablebench pocket-ic --port", Test("a_server_ends_by_itself_and_leaves_no_files")),
    ("stablebench cache clear", Test("the_cache_is_shown_and_cleared")),
    ("stablebench man | man", Test("every_command_has_a_manual_page")),
    ("stablebench merge", Test("db_bench_can_be_resumed")),
    ("stablebench builds", Test("a_crate_is_compared_over_builds")),
    ("stablebench canbench --compare /tmp/base.yml", Test("results_are_saved_and_compared")),
    // What a step of CI runs.
    ("cargo build --release --timings", Step("cargo build --release")),
    ("cargo build --release --package stablebench-pocket-ic", Step("--lib --bins --examples")),
    ("cargo test --release", Step("cargo test --release")),
    ("cargo bench -p stablebench-replica", Step("--bench metering --bench native")),
    ("cargo xtask modules", Step(r#"xtask" modules --check"#)),
    ("cargo run --release --bin conformance -- check", Step(r#""$programs/conformance" check"#)),
    ("GITHUB_EVENT_PATH=", Step("action/tests")),
    ("cat >/tmp/event.json", Step("action/tests")),
    ("npm ci", Step("npm ci")),
    ("npm run build", Step("npm run --silent check-build")),
    ("npm run readme-chart", Step("npm test")),
    ("npm test", Step("npm test")),
    ("scripts/deploy-local.sh", Step("npm test")),
    ("scripts/call-examples.sh", Step("npm test")),
    ("scripts/release", Step("scripts/release-tests")),
    // What is neither here nor in CI.
    ("verification/canbench-tests", Needs("a clone of canbench")),
    ("cargo run --release --features pocket-ic", Needs("a PocketIC server, which is downloaded")),
    ("cargo run --release --package stablebench-recorder", Needs("a PocketIC server")),
    (
        "cargo run --release --package stablebench-recorder -- generate",
        Test("generated_files_can_be_checked"),
    ),
    ("cargo run --release -- compare results.json real.json", Needs("results of that server")),
    ("POCKET_IC_BIN=", Needs("a project with tests; tests/pocket_ic is this project's own")),
    ("STABLEBENCH_RULES=", Needs("another server")),
    ("STABLEBENCH_SEEDS=", Step("cargo test --release")),
    ("STABLEBENCH_SQLLOGIC=", Needs("the public corpus of sqllogictest")),
    ("cargo +nightly fuzz run", Needs("cargo-fuzz; tests/fuzzing runs the same targets")),
    ("cargo install", Needs("a crate that is downloaded and compiled")),
    ("cargo binstall", Needs("a release")),
    ("brew install", Needs("Homebrew and a release")),
    ("podman", Needs("Podman and a release")),
    ("sha256sum", Needs("a release")),
    ("tar -xzf", Needs("a release")),
    ("for file in $(cut", Needs("a release")),
    ("for file in modules.json", Needs("the PocketIC server of new rules")),
    ("git show origin/main", Needs("a project of the reader")),
    ("dfx ", Needs("dfx; the step clients calls `stablebench serve` with its agent")),
    ("icp ", Needs("icp; the step clients deploys with it")),
    ("rm -f CACHE", Prepares),
    ("cd ", Prepares),
    ("mkdir ", Prepares),
    ("export POCKET_IC_BIN=", Prepares),
    ("ln -s ", Prepares),
    ("gunzip ", Prepares),
    ("mv ", Prepares),
    ("chmod ", Prepares),
];

/// Returns the commands of the shell blocks of a document.
fn shell(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut whole = String::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            inside = line == "```sh";
            continue;
        }
        let line = line.split(" #").next().unwrap_or_default().trim();
        if !inside || line.is_empty() || line.starts_with('#') {
            continue;
        }
        whole += line.strip_suffix('\\').unwrap_or(line);
        let is_loop = whole.starts_with("for ") && !whole.ends_with("done");
        let is_document = whole.contains("<<END") && !whole.ends_with("\nEND");
        let is_quoted = whole.matches('\'').count() % 2 == 1;
        if line.ends_with('\\') {
            // The words are separated by the space before the backslash.
        } else if is_loop || is_document || is_quoted {
            whole.push('\n');
        } else {
            found.push(std::mem::take(&mut whole));
        }
    }
    assert_eq!(whole, "", "the last command has no end");
    found
}

/// Returns all documented commands, in order and without repetitions.
fn documented() -> Vec<String> {
    let mut found = Vec::new();
    for document in documents() {
        found.extend(shell(&fs::read_to_string(document).unwrap()));
    }
    let listed = stdout(&stablebench(&["--help"], Path::new(".")));
    let (_, listed) = listed.split_once("\nCommands:\n").unwrap();
    let names = listed.lines().take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let suites = stdout(&stablebench(&["list"], Path::new(".")));
    let suites = suites.lines().filter_map(|line| line.split(' ').next());
    let mut all: Vec<Vec<&str>> = vec![vec![]];
    all.extend(names.filter(|name| !name.is_empty() && *name != "help").map(|name| vec![name]));
    all.extend(suites.chain(["all"]).map(|suite| vec!["run", suite]));
    assert!(all.len() > 20, "{all:?}");
    for words in all {
        let shown = help(&[&words[..], &["--help"]].concat());
        for line in shown.lines().map(str::trim) {
            if line.starts_with("stablebench ") {
                found.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|command| seen.insert(command.clone()));
    found
}

/// Returns the exception that applies to a command.
fn exception(command: &str) -> Option<&'static (&'static str, Reason)> {
    let applies = |start: &str| match start {
        // The command alone.
        "stablebench" => command == start,
        start => command.starts_with(start),
    };
    let found = EXCEPTIONS.iter().filter(|(start, _)| applies(start));
    found.max_by_key(|(start, _)| start.len())
}

/// Two methods of a canister that answer with a text.
const CANISTER: &str = r#"(module
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (data (i32.const 0) "DIDL\00\01\71\02hi")
    (func $tell (call $append (i32.const 0) (i32.const 10)) (call $reply))
    (export "canister_update greet" (func $tell))
    (export "canister_update buy" (func $tell))
    (@custom "icp:public candid:service"
        "service : { greet : (text) -> (text); buy : (nat) -> (text) }"))"#;

/// Writes the results that the documented commands name, some of which replace them.
fn copy_results(folder: &Path) {
    for (suite, to) in [
        ("users", "results.json"),
        ("users", "new.json"),
        ("users", "base.json"),
        ("keys", "keys.json"),
    ] {
        let from = root().join("suites").join(suite).join("results.json");
        fs::copy(from, folder.join(to)).unwrap();
    }
}

/// Writes the other files that the documented commands name.
fn prepare(folder: &Path) {
    let at = |name: &str| folder.join(name);
    let published = stablebench(&["report", "published:users", "--format=json"], folder);
    fs::write(at("published.json"), published.stdout).unwrap();
    symlink(root().join("suites"), at("suites")).unwrap();
    for name in ["my_canister.wasm", "new.wasm", "shop.wasm", "bank.wasm"] {
        fs::write(at(name), wat::parse_str(CANISTER).unwrap()).unwrap();
    }
    let (before, methods) =
        ("service : {", "service : (record { symbol : text }) -> { symbol : () -> (text);");
    let ledger =
        CANISTER.replace(before, methods).replace("canister_update buy", "canister_update symbol");
    fs::write(at("ledger.wasm"), wat::parse_str(ledger).unwrap()).unwrap();
    fs::write(at("memory.bin"), [7; 65_536]).unwrap();
    fs::write(at("schema.sql"), "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT);").unwrap();
    fs::write(at("queries.sql"), "SELECT count(*) FROM users;").unwrap();
    for name in ["tx.sql", "read.sql", "write.sql"] {
        fs::write(at(name), "INSERT INTO users(name) VALUES ('a');").unwrap();
    }
    let create = ["sql", "-c", "CREATE TABLE orders(x)", "--save-db=shop.sqlite"];
    succeeds(&create, folder);
    with_benchmarks(&["insert", "read"], folder);
    succeeds(&["canbench", "--persist"], folder);
    fs::copy(at("canbench_results.yml"), at("main.yml")).unwrap();
    for folder in [".local/share/bash-completion/completions", ".config/fish/completions", "bin"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    symlink(env!("CARGO_BIN_EXE_stablebench"), at("bin/stablebench")).unwrap();
}

/// Runs a command in a shell that finds the program.
fn run(typed: &str, folder: &Path) -> Output {
    let mut path = folder.join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    // The environment in which the tests run the program.
    let program = command(&[], folder);
    let environment = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", typed]).envs(environment).env("PATH", path);
    if typed.contains('~') {
        bash.env("HOME", folder);
    }
    bash.current_dir(folder).output().unwrap()
}

#[test]
fn every_documented_command_runs() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    prepare(folder);
    let mut failed = Vec::new();
    let mut ran = 0;
    for command in documented() {
        let typed = match exception(&command) {
            None => command.clone(),
            Some((_, Smaller(_))) if command.contains(" --rows ") => command.clone(),
            Some((_, Smaller(more))) => format!("{command} {more}"),
            // Placeholders of clients, and of steps of a document.
            Some((_, Long)) if !command.contains(['…', '[']) => {
                let listed = command.replace(" --list", "");
                let id = "rrkah-fqaaa-aaaaa-aaaaq-cai";
                let (before, after) = listed.split_once("$(").unwrap_or((&listed, ""));
                let after = after.split_once(')').map_or("", |(_, after)| after);
                let id = if listed.contains("$(") { id } else { "" };
                format!("{before}{id}{after} --list")
            }
            Some(_) => continue,
        };
        copy_results(folder);
        let output = run(&typed, folder);
        if !output.status.success() {
            failed.push(format!("{typed}: {}", stderr(&output)));
        }
        ran += 1;
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(ran > 70, "{ran}");
}

/// A test and a step that are named as reasons exist, and so do the commands that need them.
#[test]
fn every_exception_has_a_reason_that_holds() {
    let documented = documented();
    let check = fs::read_to_string(root().join("scripts/check")).unwrap();
    let mut tests = String::new();
    for folder in ["tests/cli", "tests/bench", "verification/recorder/tests", "src"] {
        for file in with_ending(folder, "rs") {
            tests += &fs::read_to_string(file).unwrap();
        }
    }
    for (start, reason) in EXCEPTIONS {
        let is_used =
            documented.iter().any(|command| exception(command).is_some_and(|it| it.0 == *start));
        assert!(is_used, "no document has a command like {start}");
        match reason {
            Test(name) => assert!(tests.contains(&format!("fn {name}(")), "{start}: {name}"),
            Step(part) => assert!(check.contains(part), "{start}: {part}"),
            Needs(what) => assert!(what.len() > 5, "{start}"),
            Long | Smaller(_) | Prepares => {}
        }
    }
    // A document with a new kind of command needs a decision.
    for command in &documented {
        let here = ["stablebench ", "grep ", "jq "].iter().any(|start| command.starts_with(start));
        assert!(here || exception(command).is_some(), "{command} neither runs nor is an exception");
    }
}
