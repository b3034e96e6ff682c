//! The commands in the documents and in `--help`: each runs, or is an exception with a reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::canbench::with_benchmarks;
use crate::{command, stablebench, stderr, stdout};

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
    ("RUST_TEST_THREADS=16 cargo test", Step("cargo test --release")),
    ("cargo bench -p stablebench-replica", Step("--bench compile --bench messages")),
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the paths of files in a folder with this ending.
fn with_ending(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files = crate::files(&root().join(folder));
    files.retain(|path| path.extension().is_some_and(|it| it == ending));
    files
}

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
    let mut documents = Vec::new();
    for folder in ["", "docs", "crates/cuckoo", "crates/replica", "crates/conformance/cases"] {
        documents.extend(with_ending(folder, "md"));
    }
    let suites = fs::read_dir(root().join("suites")).unwrap();
    let mut suites: Vec<PathBuf> = suites.map(|entry| entry.unwrap().path()).collect();
    suites.sort();
    documents.extend(suites.into_iter().map(|suite| suite.join("README.md")));
    for document in documents.into_iter().filter(|document| document.exists()) {
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
    let mut seen = std::collections::BTreeSet::new();
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
    std::os::unix::fs::symlink(root().join("suites"), at("suites")).unwrap();
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
    let saved = stablebench(&create, folder);
    assert!(saved.status.success(), "{}", stderr(&saved));
    with_benchmarks(&["insert", "read"], folder);
    let kept = stablebench(&["canbench", "--persist"], folder);
    assert!(kept.status.success(), "{}", stderr(&kept));
    fs::copy(at("canbench_results.yml"), at("main.yml")).unwrap();
    for folder in [".local/share/bash-completion/completions", ".config/fish/completions", "bin"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_stablebench"), at("bin/stablebench")).unwrap();
}

/// Runs a command in a shell that finds the program.
fn run(typed: &str, folder: &Path) -> Output {
    let mut path = folder.join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    // The environment in which the tests run the program.
    let program = command(&[], folder);
    let environment = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut bash = std::process::Command::new("bash");
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
    for folder in [
        "tests/cli",
        "tests/cli/network",
        "tests/bench",
        "verification/recorder/tests/recorder",
        "src",
    ] {
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
