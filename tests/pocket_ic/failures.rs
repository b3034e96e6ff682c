//! Servers that are none, fail, or are slow: what the tool makes of them.
//!
//! Whatever happens, there is one message, exit code 2, and what was measured is saved.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use pocket_ic_16::PocketIcBuilder;
use stablebench_pocket_ic::BINARY;

use crate::bench::WASM;
use crate::example;
use crate::scenarios::suite;
use crate::stand_in::fault::FAULT;
use crate::stand_in::{environment, rules_of};
use crate::tool::{stablebench, stderr, stdout};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("failures::no_server_and_no_network", no_server_and_no_network),
        Trial::test("failures::no_such_file", no_such_file),
        Trial::test("failures::not_executable", not_executable),
        Trial::test("failures::no_server_at_all", no_server_at_all),
        Trial::test("failures::a_version_without_a_client", a_version_without_a_client),
        Trial::test("failures::exits_at_start", exits_at_start),
        Trial::test("failures::answers_with_an_error", answers_with_an_error),
        Trial::test("failures::the_example", the_example),
    ];
    for version in ["10.0.0", "16.1.0"] {
        let (major, _) = version.split_once('.').unwrap();
        let name = format!("failures::dies_in_the_middle_{major}");
        trials.push(Trial::test(name, move || dies_in_the_middle(version)));
        for (name, fault) in [
            ("is_busy", "busy"),
            ("takes_more_rounds", "rounds:3"),
            ("refuses_for_a_rate", "rates"),
        ] {
            let name = format!("failures::{name}_{major}");
            trials.push(Trial::test(name, move || is_waited_for(version, fault)));
        }
    }
    trials
}

/// A run of the smallest suite on PocketIC. Nobody's server is found by chance.
fn run(directory: &Path) -> Command {
    let mut command = stablebench(directory);
    command
        .args(["run", "users", "--replica=pocket-ic", "--rows=50", "--batches=1"])
        .args(["--engines=btree,append", "--jobs=1", "--out=results.json"])
        .env_remove(BINARY)
        .env("TMPDIR", directory);
    command
}

/// The one message of a run that failed before anything was measured.
fn failed(directory: &Path, command: &mut Command) -> Result<String, Failed> {
    let output = command.output()?;
    let message = message(&output);
    assert_eq!(stdout(&output), "", "{message}");
    assert!(!directory.join("results.json").exists(), "{message}");
    Ok(message)
}

/// The message of a run that failed.
fn message(output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let (_, message) = said.split_once("stablebench: ").unwrap_or_else(|| panic!("{said}"));
    assert!(!message.contains("stablebench: "), "one message: {said}");
    message.to_owned()
}

#[track_caller]
fn says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word:?} is not in\n{message}");
    }
}

fn no_server_and_no_network() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    // Nobody listens there.
    for proxy in ["http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        run.env(proxy, "http://127.0.0.1:9");
    }
    let message = failed(directory.path(), run.env_remove("NO_PROXY").env_remove("no_proxy"))?;
    says(&message, &["no PocketIC server", "POCKET_IC_BIN is not set", "download", "releases"]);
    Ok(())
}

fn no_such_file() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("pocket-ic");
    let message = failed(directory.path(), run(directory.path()).env(BINARY, &path))?;
    says(&message, &[path.to_str().unwrap(), "No such file"]);
    Ok(())
}

fn not_executable() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("pocket-ic");
    fs::write(&path, "no program")?;
    let message = failed(directory.path(), run(directory.path()).env(BINARY, &path))?;
    says(&message, &[path.to_str().unwrap(), "chmod +x"]);
    // Executable, but nothing that the system knows how to execute.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    let message = failed(directory.path(), run(directory.path()).env(BINARY, &path))?;
    says(&message, &[path.to_str().unwrap()]);
    Ok(())
}

fn no_server_at_all() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    for program in ["/bin/true", "/bin/echo", "/bin/false"] {
        let message = failed(directory.path(), run(directory.path()).env(BINARY, program))?;
        says(&message, &[program, "no PocketIC server"]);
    }
    Ok(())
}

fn a_version_without_a_client() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    let message = failed(directory.path(), run.envs(environment("13.0.0")))?;
    says(&message, &["13.0.0", "10.x", "16.x"]);
    Ok(())
}

fn exits_at_start() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment("16.1.0")).env(FAULT, "exit");
    let message = failed(directory.path(), &mut run)?;
    says(
        &message,
        &["did not start", "by hand", "exit status: 3", "told to exit", "and so it does"],
    );
    Ok(())
}

fn answers_with_an_error() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment("16.1.0")).env(FAULT, "fail:take_canister_snapshot");
    let message = message(&run.output()?);
    says(
        &message,
        &["the run failed", "did not answer take_canister_snapshot; run it again", "told to fail"],
    );
    Ok(())
}

/// With one job the settings are measured one after the other: the first is finished
/// when the server dies at the second one's snapshot.
fn dies_in_the_middle(version: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment(version)).env(FAULT, "die:take_canister_snapshot:2");
    let output = run.output()?;
    let message = message(&output);
    says(&message, &["the run failed", "ended during", "exit status: 101", "told to die"]);
    let saved = fs::read_to_string(directory.path().join("results.json"))?;
    let results: serde_json::Value = serde_json::from_str(&saved)?;
    let columns: Vec<_> =
        results["cases"].as_array().unwrap().iter().map(|case| &case["column"]).collect();
    // In the middle and at the end.
    assert_eq!(columns, ["btree", "btree"]);
    says(&message, &["2 cases saved to results.json"]);
    assert!(stdout(&output).contains("btree"), "what was measured is shown");
    Ok(())
}

/// A server that is slow gives the same results.
fn is_waited_for(version: &str, fault: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let output = run(directory.path()).envs(environment(version)).env(FAULT, fault).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let mut embedded = stablebench(directory.path());
    embedded.args(["run", "users", "--rows=50", "--batches=1"]);
    embedded.args(["--rules", rules_of(version).name()]);
    embedded.args(["--engines=btree,append", "--out=embedded.json"]);
    let output = embedded.output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    suite::equal(directory.path(), "embedded.json", "results.json");
    Ok(())
}

/// The example that developers copy, on the stand-in for the newest server.
fn the_example() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let port_file = directory.path().join("port");
    let mut server = Command::new(std::env::current_exe()?)
        .args(["--ttl", "60", "--port-file"])
        .arg(&port_file)
        .spawn()?;
    let port = loop {
        match fs::read_to_string(&port_file) {
            Ok(port) => break port,
            Err(_) => assert!(server.try_wait()?.is_none(), "it ended"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let url = format!("http://localhost:{}/", port.trim_end());
    let tested = std::panic::catch_unwind(|| {
        let builder = PocketIcBuilder::new().with_application_subnet();
        let pic = builder.with_server_url(url.parse().unwrap()).build();
        example::rows_survive_an_upgrade(&pic, &WASM);
        example::strangers_may_not_write(&pic, &WASM);
        example::a_snapshot_brings_rows_back(&pic, &WASM);
    });
    server.kill()?;
    server.wait()?;
    tested.map_err(|panic| std::panic::resume_unwind(panic))
}
