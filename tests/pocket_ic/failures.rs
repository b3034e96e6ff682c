//! The tool's errors when a PocketIC server is missing, unsupported or fails.
//!
//! Every failure ends in one message and exit code 2, and what was measured is saved.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use pocket_ic_16::PocketIcBuilder;
use stablebench_pocket_ic::BINARY;

use crate::example;
use crate::faulty::{FAULT, environment};
use crate::pair::WASM;
use crate::replica::CACHE_HOME;
use crate::scenarios::suites::{assert_no_difference, stablebench, stderr, stdout};
use crate::served::{self, rules_of};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("failures::no_server_and_no_network", no_server_and_no_network),
        Trial::test("failures::not_a_server", not_a_server),
        Trial::test("failures::unsupported_version", unsupported_version),
        Trial::test("failures::exits_at_start", exits_at_start),
        Trial::test("failures::answers_with_an_error", answers_with_an_error),
        Trial::test("failures::does_not_answer", does_not_answer),
        Trial::test("failures::the_example", the_example),
    ];
    for version in ["10.0.0", "16.1.0"] {
        let (major, _) = version.split_once('.').unwrap();
        let name = format!("failures::dies_during_a_run_{major}");
        trials.push(Trial::test(name, move || dies_during_a_run(version)));
        let name = format!("failures::rate_limits_are_waited_for_{major}");
        trials.push(Trial::test(name, move || rate_limits_are_waited_for(version)));
    }
    trials
}

/// Returns a run of the smallest suite on PocketIC that finds no server by chance.
fn run(directory: &Path) -> Command {
    let mut command = stablebench(directory);
    command
        .args(["run", "users", "--replica=pocket-ic", "--rows=50", "--batches=1"])
        .args(["--engines=btree,append", "--jobs=1", "--out=results.json"])
        .env_remove(BINARY)
        .env("TMPDIR", directory);
    command
}

/// Executes a run that fails before anything is measured, and checks its message.
#[track_caller]
fn assert_fails(directory: &Path, command: &mut Command, words: &[&str]) {
    let output = command.output().unwrap();
    let message = message(&output);
    assert_contains(&message, words);
    assert_eq!(stdout(&output), "", "{message}");
    assert!(!directory.join("results.json").exists(), "{message}");
}

/// Returns the only message of a run that failed.
fn message(output: &Output) -> String {
    let printed = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(!printed.contains("panicked"), "{printed}");
    let (_, message) = printed.split_once("stablebench: ").unwrap_or_else(|| panic!("{printed}"));
    assert!(!message.contains("stablebench: "), "more than one message: {printed}");
    message.to_owned()
}

#[track_caller]
fn assert_contains(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word:?} is not in\n{message}");
    }
}

fn no_server_and_no_network() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    // No program listens there.
    for proxy in ["http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        run.env(proxy, "http://127.0.0.1:9");
    }
    run.env_remove("NO_PROXY").env_remove("no_proxy");
    let words = ["no PocketIC server", "POCKET_IC_BIN is not set", "download", "releases"];
    assert_fails(directory.path(), &mut run, &words);
    Ok(())
}

fn not_a_server() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("pocket-ic");
    let path = path.to_str().unwrap();
    let named = |path: &str, words: &[&str]| {
        assert_fails(directory.path(), run(directory.path()).env(BINARY, path), words);
    };
    named(path, &[path, "No such file"]);
    fs::write(path, "not executable")?;
    named(path, &[path, "chmod +x"]);
    named("/bin/echo", &["/bin/echo", "is not a PocketIC server"]);
    Ok(())
}

fn unsupported_version() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(served::environment("13"));
    assert_fails(directory.path(), &mut run, &["13.0.0", "10.x", "16.x"]);
    Ok(())
}

fn exits_at_start() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment("16.1.0")).env(FAULT, "exit");
    let words = ["did not start", "by hand", "exit status: 3", "exits\n", "as configured"];
    assert_fails(directory.path(), &mut run, &words);
    Ok(())
}

fn answers_with_an_error() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment("16.1.0")).env(FAULT, "fail:take_canister_snapshot");
    let words =
        ["the run failed", "did not answer take_canister_snapshot; run it again", "fails as"];
    assert_contains(&message(&run.output()?), &words);
    Ok(())
}

fn does_not_answer() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment("16.1.0")).env(FAULT, "silent:take_canister_snapshot");
    let words = ["take_canister_snapshot was not answered within 1000 rounds; send less"];
    assert_contains(&message(&run.output()?), &words);
    Ok(())
}

/// With one job, configurations are measured one after the other: the first is complete when the
/// server exits at the second one's snapshot.
fn dies_during_a_run(version: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment(version)).env(FAULT, "die:take_canister_snapshot:2");
    let output = run.output()?;
    let message = message(&output);
    let words =
        ["the run failed", "exited during", "exit status: 101", "faulty server: exits during"];
    assert_contains(&message, &words);
    let saved = fs::read_to_string(directory.path().join("results.json"))?;
    let results: serde_json::Value = serde_json::from_str(&saved)?;
    let columns: Vec<_> =
        results["cases"].as_array().unwrap().iter().map(|case| &case["configuration"]).collect();
    // In the middle and at the end.
    assert_eq!(columns, ["btree", "btree"]);
    assert_contains(&message, &["2 cases saved to results.json"]);
    assert!(stdout(&output).contains("btree"), "what was measured is shown");
    Ok(())
}

/// Rejects because of a rate limit change no result.
fn rate_limits_are_waited_for(version: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    for fault in ["rate:install_chunked_code", "rate:take_canister_snapshot"] {
        let output = run(directory.path()).envs(environment(version)).env(FAULT, fault).output()?;
        assert!(output.status.success(), "{}", stderr(&output));
        let mut embedded = stablebench(directory.path());
        embedded.args(["run", "users", "--rows=50", "--batches=1"]);
        embedded.args(["--rules", rules_of(version).name()]);
        embedded.args(["--engines=btree,append", "--out=embedded.json"]);
        let output = embedded.output()?;
        assert!(output.status.success(), "{}", stderr(&output));
        assert_no_difference(directory.path(), "embedded.json", "results.json");
        fs::remove_file(directory.path().join("results.json"))?;
        fs::remove_file(directory.path().join("embedded.json"))?;
    }
    Ok(())
}

/// The example that developers copy, on the tool as the newest server.
fn the_example() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let port_file = directory.path().join("port");
    let mut server = Command::new(served::PROGRAM)
        .env("XDG_CACHE_HOME", CACHE_HOME)
        .args(["pocket-ic", "--ttl", "60", "--port-file"])
        .arg(&port_file)
        .spawn()?;
    let port = loop {
        match fs::read_to_string(&port_file) {
            Ok(port) if port.ends_with('\n') => break port,
            _ => assert!(server.try_wait()?.is_none(), "the server exited"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let url = format!("http://localhost:{}/", port.trim_end());
    let tested = std::panic::catch_unwind(|| {
        let builder = PocketIcBuilder::new().with_application_subnet();
        let pic = builder.with_server_url(url.parse().unwrap()).build();
        example::rows_survive_an_upgrade(&pic, &WASM);
        example::strangers_may_not_write(&pic, &WASM);
        example::a_snapshot_restores_rows(&pic, &WASM);
    });
    server.kill()?;
    server.wait()?;
    tested.map_err(|panic| std::panic::resume_unwind(panic))
}
