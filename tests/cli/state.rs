//! The file of `serve --state`: locking, saving, and failures.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::serve::{COUNTER, begin, count, module, signal};
use crate::server::Server;
use crate::{command, files, stablebench, stderr, stdout};

const ARGUMENTS: [&str; 2] = ["counter.wasm", "--state=counter.canister"];

/// Returns the names of the files in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files(folder).iter().map(name).collect()
}

#[test]
fn one_process_at_a_time_saves_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    std::os::unix::fs::symlink("counter.canister", directory.join("link")).unwrap();
    let mut server = Server::start(&ARGUMENTS, directory);
    assert_eq!(count(&server, "add"), 1);
    let holder = format!("process {} saves to it; end that one", server.id());
    for (arguments, option) in [
        (&["serve", "counter.wasm", "--port=0", "--state=counter.canister"][..], "--state"),
        (&["serve", "counter.wasm", "--port=0", "--state=link"], "--state"),
        (&["call", "counter.wasm", "add", "--save=counter.canister"], "--save"),
    ] {
        let output = stablebench(arguments, directory);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
        let notes = stderr(&output);
        assert!(notes.contains(&holder) && notes.contains(option), "{arguments:?}: {notes}");
    }
    // The lock of a killed process is released.
    signal(&server, "-KILL");
    server.wait();
    assert!(directory.join("counter.canister.lock").exists());
    let mut server = Server::start(&ARGUMENTS, directory);
    signal(&server, "-INT");
    assert_eq!(server.wait(), Some(0));
    assert_eq!(names(directory), ["counter.canister", "counter.wasm", "link"]);
}

#[test]
fn changes_are_saved_while_serving() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    let state = directory.join("counter.canister");
    let mut server = Server::start(&[&ARGUMENTS[..], &["--save-every=1"]].concat(), directory);
    let first = fs::read(&state).expect("it is saved before anything is served");
    for _ in 0..3 {
        count(&server, "add");
    }
    let began = Instant::now();
    let saved = loop {
        let saved = fs::read(&state).unwrap();
        if saved != first && count(&server, "get") == 3 {
            std::thread::sleep(Duration::from_millis(2_500));
            break fs::read(&state).unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is saved");
        std::thread::sleep(Duration::from_millis(50));
    };
    signal(&server, "-KILL");
    server.wait();
    assert_eq!(fs::read(&state).unwrap(), saved);
    let server = Server::start(&ARGUMENTS, directory);
    assert_eq!(count(&server, "get"), 3);
}

/// As on a full disk, no file can be as long as the state after a while.
#[test]
fn a_failed_save_leaves_the_previous_one() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    let state = directory.join("counter.canister");
    // 25 is SIGXFSZ, which would kill a process that writes past its limit.
    let mut shell = command(&[], directory);
    let program = shell.get_program().to_owned();
    let variables: Vec<_> = shell
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    shell = Command::new("sh");
    for (name, value) in variables {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(directory).args(["-c", "trap '' 25; exec \"$@\"", "sh"]).arg(program);
    shell.args(["serve", "--port=0"]).args(ARGUMENTS).stderr(Stdio::piped());

    let mut server = Server::of(shell.arg("--save-every=1"));
    // The limit is the size of its heap, so the file is longer.
    let limit = ["--pid", &server.id().to_string(), "--fsize=65536"];
    assert!(Command::new("prlimit").args(limit).status().unwrap().success());
    let saved = fs::read(&state).unwrap();
    for _ in 0..2 {
        count(&server, "add");
    }
    // Saving is tried and fails.
    std::thread::sleep(Duration::from_secs(3));
    signal(&server, "-INT");
    let notes = server.notes();
    assert_eq!(server.wait(), Some(2), "{notes}");
    assert!(notes.contains("saving is tried again"), "{notes}");
    assert!(notes.contains("without the last 2 changes of the canister: make room"), "{notes}");
    assert_eq!(fs::read(&state).unwrap(), saved);
    assert_eq!(names(directory), ["counter.canister", "counter.wasm"]);
    let server = Server::start(&ARGUMENTS, directory);
    assert_eq!(count(&server, "get"), 0);
}

#[test]
fn a_message_without_an_end_does_not_keep_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let spins = r#"(func (export "canister_update spin")
        (i32.store (i32.const 0) (i32.const 99)) (loop $again (br $again)))"#;
    let text = COUNTER.strip_suffix(')').unwrap().to_owned() + spins + ")";
    module(directory, "counter.wasm", &text);
    // An update may execute more instructions than a test can wait for.
    let arguments = [&ARGUMENTS[..], &["--subnet=benchmarking"]].concat();
    let mut server = Server::start(&arguments, directory);
    assert_eq!(count(&server, "add"), 1);
    begin(&server, "spin");
    let began = Instant::now();
    signal(&server, "-INT");
    assert_eq!(server.wait(), Some(0));
    // 15 seconds for requests, 10 for the message.
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    let server = Server::start(&arguments, directory);
    assert_eq!(count(&server, "get"), 1, "the message has no effect");
}

#[test]
fn temporary_files_of_killed_processes_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    let others = [".counter.abc123.saving", ".other.canister.abc123.saving"];
    for name in others.iter().chain(&[".counter.canister.abc123.saving"]) {
        fs::write(directory.join(name), "a part").unwrap();
    }
    let mut server = Server::start(&ARGUMENTS, directory);
    signal(&server, "-INT");
    assert_eq!(server.wait(), Some(0));
    assert_eq!(names(directory), [&others[..], &["counter.canister", "counter.wasm"]].concat());
}

#[test]
fn a_damaged_state_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    let mut server = Server::start(&ARGUMENTS, directory);
    count(&server, "add");
    signal(&server, "-INT");
    assert_eq!(server.wait(), Some(0));
    let state = directory.join("counter.canister");
    let mut bytes = fs::read(&state).unwrap();
    let middle = bytes.len() - 30_000;
    bytes[middle] ^= 1;
    fs::write(&state, &bytes).unwrap();
    let mut child = command(&[&["serve", "--port=0"], &ARGUMENTS[..]].concat(), directory);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            // If it serves, the assertions below fail.
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert!(stderr(&output).contains("damaged: its memories"), "{}", stderr(&output));
    assert_eq!(fs::read(&state).unwrap(), bytes);
}
