//! The file of `serve --state`: locking, saving, and failures.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use candid::Principal;
use ic_agent::Agent;
use ic_management_canister_types::{CanisterIdRecord, ProvisionalCreateCanisterWithCyclesArgs};

use crate::calls::{BANK, SHOP, WASI};
use crate::serve::{COUNTER, begin, count, module, reply, signal};
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
    // Some programs send it to the process and once more to its group.
    signal(&server, "-INT");
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
    assert!(notes.contains("without the last 2 changes of the canisters: make room"), "{notes}");
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

/// Creates a canister, and returns its id with its controllers and those of `others`.
fn create(server: &Server, others: &[Principal]) -> (Principal, Vec<Vec<Principal>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let agent = Agent::builder().with_url(format!("http://{}", server.address));
        let agent = agent.build().unwrap();
        agent.fetch_root_key().await.unwrap();
        let first = Principal::from_text(&server.canisters[0]).unwrap();
        let arguments = ProvisionalCreateCanisterWithCyclesArgs {
            amount: None,
            settings: None,
            specified_id: None,
            sender_canister_version: None,
        };
        let method = "provisional_create_canister_with_cycles";
        let create = agent.update(&Principal::management_canister(), method);
        let create = create.with_arg(candid::encode_one(arguments).unwrap());
        let created = create.with_effective_canister_id(first).call_and_wait().await.unwrap();
        let created = candid::decode_one::<CanisterIdRecord>(&created).unwrap().canister_id;
        let mut controllers = Vec::new();
        for id in [&[created], others].concat() {
            controllers.push(agent.read_state_canister_controllers(id).await.unwrap());
        }
        (created, controllers)
    })
}

/// A restart changes nothing that a canister can see, unless an option does.
#[test]
fn a_restart_makes_no_new_version() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let wat = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "canister_version" (func $version (result i64)))
        (memory 1)
        (func (export "canister_query get")
            (i64.store (i32.const 0) (call $version))
            (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#;
    module(directory, "version.wasm", wat);
    let serve = |option: &[&str]| {
        let arguments = [&["version.wasm", "--state=s"], option].concat();
        let mut server = Server::start(&arguments, directory);
        let version = u64::from_le_bytes(reply(&server, "get").try_into().unwrap());
        signal(&server, "-INT");
        assert_eq!(server.wait(), Some(0));
        version
    };
    let first = serve(&[]);
    assert_eq!(serve(&[]), first);
    let controller = "--controller=lqy7q-dh777-77777-aaaaq-cai";
    assert_eq!([serve(&[controller]), serve(&[controller])], [first + 1; 2]);
}

/// Those of the command line and those that clients create. `call` and `serve` save the same.
#[test]
fn all_canisters_of_a_server_are_saved() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "shop.wasm", SHOP);
    module(directory, "bank.wasm", BANK);
    let buy = |more: &[&str]| {
        let output = stablebench(&[&["call", "shop.wasm", "buy"], more].concat(), directory);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).lines().next().unwrap().to_owned()
    };
    assert_eq!(buy(&["--with=bank.wasm", "--save=s"]), "(1 : nat64)");
    let bought =
        |server: &Server| u64::from_le_bytes(reply(server, "buy")[7..].try_into().unwrap());
    let arguments = ["shop.wasm", "bank.wasm", "--state=s"];
    let mut created = Vec::new();
    for count in 2..4 {
        let mut server = Server::start(&arguments, directory);
        let ids = ["lxzze-o7777-77777-aaaaa-cai", "lqy7q-dh777-77777-aaaaq-cai"];
        assert_eq!(server.canisters, ids);
        assert_eq!(bought(&server), count);
        let (id, controllers) = create(&server, &created);
        assert!(!created.contains(&id));
        created.push(id);
        assert_eq!(controllers, vec![vec![Principal::anonymous()]; created.len()]);
        signal(&server, "-INT");
        assert_eq!(server.wait(), Some(0));
    }
    assert_eq!(buy(&["--state=s"]), "(4 : nat64)");
    // One that is served with others stays, and can be named again.
    let server = Server::start(&["shop.wasm", "--state=s"], directory);
    assert_eq!(bought(&server), 4);
}

#[test]
fn a_module_for_wasi_is_served() {
    let directory = tempfile::tempdir().unwrap();
    module(directory.path(), "yields.wasm", WASI);
    let server = Server::start(&["yields.wasm"], directory.path());
    assert_eq!(reply(&server, "ask").len(), 8);
}
