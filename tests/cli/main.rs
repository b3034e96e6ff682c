//! Tests of the program's command line.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure fails the test")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use stablebench_replica::{Replica, Rules};

/// The cache of these tests. It contains compiled modules, but no populated canisters, since
/// populating is tested too. The canisters of most tests are compiled before the first test, because
/// two tests that need the same module at the same time would both compile it. Other test programs
/// share the folder.
static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for file in files(&home.join("stablebench")) {
        if file.extension() == Some(OsStr::new("state")) {
            std::fs::remove_file(file).unwrap();
        }
    }
    for canister in ["bench", "bench_vfs", "bench_leveldb"] {
        let mut call = in_cache(&home, &["call", canister, "describe"], Path::new("."));
        let called = call.output().unwrap();
        assert!(called.status.success(), "{canister} cannot be called: {}", stderr(&called));
    }
    home
});

fn command(args: &[&str], directory: &Path) -> Command {
    in_cache(&CACHE, args, directory)
}

fn in_cache(cache: &Path, args: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stablebench"));
    command.args(args).current_dir(directory).env("NO_COLOR", "1").env("XDG_CACHE_HOME", cache);
    command.env_remove("COLUMNS");
    command
}

fn stablebench(args: &[&str], directory: &Path) -> Output {
    command(args, directory).output().unwrap()
}

/// Returns the option for a separate cache, which contains only compiled modules.
fn own_cache(path: &Path) -> String {
    std::fs::create_dir_all(path).unwrap();
    // The shared cache also contains modules under other rules.
    let replica = Replica::new(Rules::today(), None).unwrap();
    let end = format!("-{}.module", replica.cache_version());
    for file in files(&CACHE.join("stablebench")) {
        if file.to_string_lossy().ends_with(&end) {
            std::fs::copy(&file, path.join(file.file_name().unwrap())).unwrap();
        }
    }
    format!("--cache-dir={}", path.display())
}

/// Returns the files in a folder, in order; none if the folder is missing.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(listed) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

mod builds;
mod cache;
mod calls;
mod calls_suite;
mod canbench;
mod canisters;
mod collections;
mod cuckoo;
mod db_bench;
mod documented;
mod doltlite;
mod environment;
mod invalid_command_lines;
mod keys;
mod listeners;
mod network;
mod own_canisters;
mod pocket_ic;
mod profile;
mod serve;
mod server;
mod sql;
mod sql_scripts;
#[cfg(target_os = "linux")]
mod sql_shell;
mod state;
mod suites;
mod sysbench;
mod terminal;
mod untrusted;
mod users;
mod vfs;

#[test]
fn help() {
    let output = stablebench(&["--help"], Path::new("."));
    assert!(output.status.success());
    // The number depends on the machine.
    let cores = std::thread::available_parallelism().unwrap();
    let jobs = "Canisters that run in parallel\n          \n          [default: ";
    let shown = stdout(&output).replace(&format!("{jobs}{cores}]"), &format!("{jobs}cores]"));
    insta::assert_snapshot!(shown);
}

#[test]
fn list_of_suites_and_of_cases() {
    let suites = stdout(&stablebench(&["list"], Path::new(".")));
    assert!(suites.starts_with("users "), "{suites}");
    let args = ["--list", "--batches=10,1,10", "--journal-modes=wal", "--at=end"];
    insta::assert_snapshot!(stdout(&stablebench(&args, Path::new("."))));
}

#[test]
fn mistakes_end_in_one_message_and_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "no module").unwrap();
    std::fs::write(directory.path().join("old.json"), r#"{"format": 1}"#).unwrap();
    let mut printed = String::new();
    for args in [
        &["--batches=0"][..],
        &["--rows=10", "--batches=6", "--at=middle"],
        &["--engines=rocksdb"],
        &["run", "nothing"],
        &["--as-published", "--rows=5"],
        &["--out=file/results.json", "--rows=10", "--batches=1"],
        &["call", "nothing", "describe"],
        &["call", "file", "describe"],
        &["call", "bench", "describe", "--state=file"],
        &["call", "bench", "describe", "--state=missing"],
        &["call", "bench", "nothing"],
        &["call", "bench", "set_payload", "(\"text\")"],
        &["call", "bench", "set_payload", "(1"],
        &["module", "nothing"],
        &["--verify-embedded"],
        &["--rules=2024-01"],
        &["--replica=pocket-ic", "--rules=2025-10"],
        &["run", "users", "--replica=mainnet"],
        &["--replica=localhost:4943"],
        &["--replica=http://localhost:4943"],
        &["--replica=http://localhost:4943", "--canister=bench"],
        &["--replica=http://localhost:4943", "--canister=aaaaa-aa", "--subnet=system"],
        &["--replica=ic", "--canister=aaaaa-aa", "--root-key=00"],
        &["--canister=aaaaa-aa"],
        &["--replica=pocket-ic", "--yes"],
        &["--rows=5", "report", "old.json"],
        &["--cache-limit=much"],
        &["cache", "--cache-dir=file"],
        &["cache", "empty"],
        &["compare", "missing", "missing"],
        &["compare", "file", "file"],
        &["compare", "file", "file", "--threshold=-1%"],
        &["compare", "old.json", "old.json"],
    ] {
        let output = stablebench(args, directory.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
        // Whether another test has compiled it before is chance.
        let error = stderr(&output);
        let error = error.lines().filter(|line| !line.starts_with("compiling "));
        let error: String = error.map(|line| format!("{line}\n")).collect();
        printed += &format!("$ stablebench {}\n{error}\n", args.join(" "));
    }
    insta::assert_snapshot!(printed);
}

/// The signal is sent to the program, and not to cargo.
#[test]
fn ctrl_c_ends_a_build() {
    let directory = tempfile::tempdir().unwrap();
    let cargo = directory.path().join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\ntouch \"$0.began\"\nexec sleep 600\n").unwrap();
    std::fs::set_permissions(&cargo, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let began = std::time::Instant::now();
    let mut run = command(&["run", "builds", "--rows=10", "--build=default"], directory.path());
    let run = run.env("CARGO", &cargo).stderr(std::process::Stdio::piped()).spawn().unwrap();
    while !directory.path().join("cargo.began").exists() {
        assert!(began.elapsed().as_secs() < 60, "cargo was not started");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let sent = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
    assert!(began.elapsed().as_secs() < 120);
}

#[test]
fn a_called_canister_is_saved_to_a_file_and_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let call = |args: &[&str]| {
        let output = stablebench(&[&["call", "bench"], args].concat(), directory.path());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let added = call(&["add_users_sqlite", "(0, 10, 1000)", "--save=state"]);
    assert!(added.contains("rows = 1_000 : nat64"), "{added}");
    assert!(added.contains("\ninstructions "), "{added}");
    let read = call(&["read_users", "(\"sqlite\", 0, 5, 10)", "--state=state"]);
    assert!(read.contains("rows = 5 : nat64"), "half of the ids exist: {read}");
    let fresh = call(&["describe"]);
    assert!(fresh.contains("occupant = variant { nobody }"), "{fresh}");
    let taken = call(&["add_users_sqlite", "(0, 10, 1)", "--state=state"]);
    assert!(taken.contains("IdExists = record { id = 0 : nat64 }"), "{taken}");
}

#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stablebench"))
        .args(["--list", "--batches=1,2,3"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}
