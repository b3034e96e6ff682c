//! Files that are kept between runs: the cache, which changes no results, and the file of
//! `serve --state`. Damage, locks and full disks are harmless.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use candid::Principal;
use ic_agent::Agent;
use ic_management_canister_types::{CanisterIdRecord, ProvisionalCreateCanisterWithCyclesArgs};

use crate::calls::{BANK, SHOP, WASI};
use crate::serve::{COUNTER, begin, count, module, reply};
use crate::{Server, command, files, own_cache, signal, stablebench, stderr, stdout, succeeds};

/// Two fixtures with few rows, in the canister whose module compiles the fastest.
const SMALL: &[&str] = &[
    "run",
    "users",
    "--rows=300",
    "--batches=1,5",
    "--engines=leveldb/snappy,leveldb/none",
    "--no-wall-time",
    "--format=csv",
];

/// Runs, and returns the saved results and the notes.
fn run(suite: &[&str], more: &[&str], directory: &Path) -> (String, String) {
    let output = succeeds(&[suite, &["--out=out.json"], more].concat(), directory);
    (fs::read_to_string(directory.join("out.json")).unwrap(), stderr(&output))
}

fn with_end(folder: &Path, end: &str) -> Vec<PathBuf> {
    let ends = |path: &PathBuf| path.extension().is_some_and(|extension| extension == end);
    files(folder).into_iter().filter(ends).collect()
}

/// Returns `true` if a compiled module is that of a canister in the results.
fn is_of(module: &Path, results: &str) -> bool {
    let name = module.file_name().unwrap().to_str().unwrap();
    results.contains(name.split('-').next().unwrap())
}

fn earlier(notes: &str) -> usize {
    notes.matches("populated earlier").count()
}

#[test]
fn results_are_the_same_with_a_cache_and_without() {
    let users = ["run", "users", "--rows=400", "--no-wall-time", "--operations=20"];
    let of_users = [
        &users[..],
        &["--sections=insert,work,settings", "--batches=1,5", "--engines=sqlite,btree,append"],
        &["--journal-modes=delete,memory", "--page-sizes=512", "--cache-sizes=0"],
        &["--synchronous=off", "--locking-modes=normal", "--per-operation", "--seed=7"],
    ]
    .concat();
    let of_lanes = ["run", "sysbench", "--rows=60", "--keys=text", "--no-wall-time"];
    for suite in [&of_users[..], &of_lanes] {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("cache");
        let cache = format!("--cache-dir={}", folder.display());
        let (without, notes) = run(suite, &["--no-cache", &cache], directory.path());
        assert!(!folder.exists(), "nothing is touched");
        // Compiling takes seconds, and fixtures tell what is left.
        let compiling = notes.lines().filter(|line| *line == "compiling bench").count();
        assert_eq!(compiling, 1, "each module is named once: {notes}");
        assert!(notes.contains(" fixtures left, about "), "{notes}");
        own_cache(&folder);
        let (empty, notes) = run(suite, &[&cache], directory.path());
        assert_eq!(earlier(&notes), 0, "{notes}");
        let states = with_end(&folder, "state").len();
        assert!(states >= 3, "{states}");
        let (warm, notes) = run(suite, &[&cache], directory.path());
        assert_eq!(earlier(&notes), states, "{notes}");
        for other in [&empty, &warm] {
            let differing = without.lines().zip(other.lines()).find(|(one, two)| one != two);
            assert!(without == *other, "{suite:?} differs: {differing:?}");
        }
    }
}

#[test]
fn a_damaged_entry_is_replaced_with_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    let (expected, _) = run(SMALL, &[&cache], directory.path());
    let path = with_end(&folder, "state").remove(0);
    let other = fs::read(with_end(&folder, "state").remove(1)).unwrap();
    let whole = fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for bytes in [
        flipped(10),
        flipped(100),
        flipped(whole.len() / 3),
        flipped(whole.len() / 3 * 2),
        flipped(whole.len() - 1),
        whole[..whole.len() / 2].to_vec(),
        Vec::new(),
        b"somebody else's".repeat(1_000),
        other,
    ] {
        fs::write(&path, bytes).unwrap();
        let (found, notes) = run(SMALL, &[&cache], directory.path());
        assert_eq!(notes.matches("is replaced").count(), 1, "{notes}");
        assert_eq!(earlier(&notes), 1, "the other one is good: {notes}");
        assert!(found == expected);
    }
    // An entry that was touched or copied is checked.
    fs::copy(&path, folder.join("copy")).unwrap();
    fs::rename(folder.join("copy"), &path).unwrap();
    let (found, notes) = run(SMALL, &[&cache], directory.path());
    assert_eq!((earlier(&notes), found == expected), (2, true), "{notes}");

    // The entry of a module that cannot be used.
    let module =
        with_end(&folder, "module").into_iter().find(|path| is_of(path, &expected)).unwrap();
    let mut bytes = fs::read(&module).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    for bytes in [&bytes[..], b""] {
        fs::write(&module, bytes).unwrap();
        let (found, notes) = run(SMALL, &[&cache], directory.path());
        let name = module.file_name().unwrap().to_str().unwrap();
        assert_eq!(notes.matches(name).count(), 1, "{notes}");
        assert_eq!((earlier(&notes), found == expected), (2, true), "{notes}");
    }
}

/// Digests are cached by the differences of forks. Without them all contents are read back, and the
/// results are the same.
#[test]
fn digests_are_cached_and_may_be_lost() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    let known = |notes: &str| notes.matches("4 of 4 contents read back earlier").count();
    let (expected, notes) = run(SMALL, &[&cache], directory.path());
    assert_eq!(known(&notes), 0, "{notes}");
    let (_, notes) = run(SMALL, &[&cache], directory.path());
    assert_eq!(known(&notes), 2, "{notes}");
    let path = with_end(&folder, "digests").remove(0);
    let other = fs::read_to_string(with_end(&folder, "digests").remove(1)).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    for text in [&whole[..whole.len() / 2], "", &other] {
        fs::write(&path, text).unwrap();
        let (found, notes) = run(SMALL, &[&cache], directory.path());
        assert_eq!(notes.matches("is replaced").count(), 1, "{notes}");
        assert_eq!((known(&notes), found == expected), (1, true), "{notes}");
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    }
    // Wrong digests are not used: the rows are read back.
    fs::write(&path, whole.replace("\"rows\":30", "\"rows\":31")).unwrap();
    let (found, notes) = run(SMALL, &[&cache], directory.path());
    assert_eq!((known(&notes), found == expected), (1, true), "{notes}");
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    // Other cases add digests.
    let (_, notes) = run(SMALL, &[&cache, "--batches=7"], directory.path());
    assert_eq!(notes.matches("4 of 6 contents read back earlier").count(), 2, "{notes}");
    let (_, notes) = run(SMALL, &[&cache], directory.path());
    assert_eq!(known(&notes), 2, "{notes}");
}

/// Contents with cached digests are not read back, so only its checksums show that a populated
/// canister was damaged.
#[test]
fn a_damaged_canister_is_found_by_its_checksums() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    let (expected, _) = run(SMALL, &[&cache], directory.path());
    let path = with_end(&folder, "state").remove(0);
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (found, notes) = run(SMALL, &[&cache], directory.path());
    assert_eq!(notes.matches("its memories").count(), 1, "{notes}");
    assert_eq!((earlier(&notes), found == expected), (1, true), "{notes}");
}

#[test]
fn two_runs_at_once_do_not_harm_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    let spawn = |out: &str| {
        let args = [SMALL, &[&cache, out]].concat();
        command(&args, directory.path()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [spawn("--out=one.json"), spawn("--out=other.json")];
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let notes = stderr(&output);
        assert!(!notes.contains(".module") && !notes.contains(".state"), "{notes}");
    }
    let saved = |name: &str| fs::read(directory.path().join(name)).unwrap();
    assert!(saved("one.json") == saved("other.json"));
    let (_, notes) = run(SMALL, &[&cache], directory.path());
    assert_eq!(earlier(&notes), 2, "{notes}");
}

#[test]
fn old_entries_are_dropped_beyond_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    // An entry of another version, however new.
    let foreign = folder.join(format!("{}-{}.module", "a".repeat(64), "b".repeat(16)));
    fs::write(&foreign, vec![1; 1 << 20]).unwrap();
    let on_disk = || -> u64 {
        files(&folder).iter().map(|file| file.metadata().unwrap().blocks() * 512).sum()
    };
    let limited = |rows: &str, bytes: u64| {
        let limit = format!("--cache-limit={}", bytes as f64 / (1_u64 << 30) as f64);
        let suite = ["run", "users", "--batches=1", "--at=end", "--engines=leveldb", rows];
        run(&suite, &[&cache, &limit], directory.path())
    };
    let (saved, _) = limited("--rows=300", 1 << 30);
    // Modules of canisters that this run did not need are dropped first.
    for module in with_end(&folder, "module") {
        if module != foreign && !is_of(&module, &saved) {
            fs::remove_file(module).unwrap();
        }
    }
    let one = on_disk() - (1 << 20);
    let first = with_end(&folder, "state").remove(0);
    assert!(foreign.exists() && first.exists());
    // Room for one and a half fixtures: the module in use stays, the first fixture does not.
    let state = first.metadata().unwrap().blocks() * 512;
    limited("--rows=301", one + state / 2);
    assert!(!foreign.exists() && !first.exists());
    assert!(on_disk() <= one + state / 2, "{} of {one}", on_disk());
    assert_eq!(earlier(&limited("--rows=301", one + state / 2).1), 1);
    // Room for less than one: this is reported, and nothing is saved.
    let (_, notes) = limited("--rows=302", one - state / 2);
    assert_eq!(notes.matches("--cache-limit").count(), 1, "{notes}");
    assert_eq!(with_end(&folder, "state"), [] as [PathBuf; 0]);
}

#[test]
fn a_folder_that_cannot_be_written_is_noted_once() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "in the way").unwrap();
    let (_, notes) = run(SMALL, &["--cache-dir=file", "--no-page"], directory.path());
    assert_eq!(notes.matches("nothing is cached for later runs").count(), 1, "{notes}");
    assert_eq!(notes.matches("file").count(), 1, "{notes}");
    assert_eq!(fs::read(directory.path().join("file")).unwrap(), b"in the way");
}

/// A folder has the name of an entry.
#[test]
fn an_entry_that_cannot_be_saved_is_noted_once() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    let (expected, _) = run(SMALL, &[&cache], directory.path());
    for state in with_end(&folder, "state") {
        fs::remove_file(&state).unwrap();
        fs::create_dir(&state).unwrap();
    }
    let (found, notes) = run(SMALL, &[&cache], directory.path());
    assert_eq!(notes.matches("are no longer saved").count(), 1, "{notes}");
    assert!(found == expected);
}

#[test]
fn the_cache_is_shown_and_cleared() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let tell = |args: &[&str]| {
        let output =
            succeeds(&[&["cache"], args, &["--cache-dir=cache"]].concat(), directory.path());
        stdout(&output)
    };
    assert!(tell(&[]).contains("    0 compiled modules"), "{}", tell(&[]));
    assert!(!folder.exists());
    own_cache(&folder);
    run(SMALL, &["--cache-dir=cache"], directory.path());
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::write(folder.join(".stablebench-left"), "by a killed run").unwrap();
    let shown = tell(&["--cache-limit=2.5"]);
    for part in [
        "    2 populated canisters",
        "of at most 2.50 GiB",
        "1 files that are not the cache's",
        "leveldb/snappy, 300 rows of 100 bytes",
        "leveldb/none, 300 rows of 100 bytes",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let cleared = tell(&["clear"]);
    assert!(cleared.contains("2 populated canisters"), "{cleared}");
    assert!(cleared.contains("left there: 1 files"), "{cleared}");
    assert_eq!(files(&folder), [folder.join("notes.txt")]);
    // The limit may be in the environment.
    let mut limited = command(&["cache", "--cache-dir=cache"], directory.path());
    limited.env("STABLEBENCH_CACHE_LIMIT", "3");
    assert!(stdout(&limited.output().unwrap()).contains("at most 3.00 GiB"));
    limited.env("STABLEBENCH_CACHE_LIMIT", "much");
    let output = limited.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("STABLEBENCH_CACHE_LIMIT is \"much\""), "{}", stderr(&output));
}

const ARGUMENTS: [&str; 2] = ["counter.wasm", "--state=counter.canister"];

/// Returns the names of the files in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files(folder).iter().map(name).collect()
}

#[test]
fn one_process_at_a_time_saves_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    module(directory, "counter.wasm", COUNTER);
    symlink("counter.canister", directory.join("link")).unwrap();
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
    signal(server.id(), "-KILL");
    server.wait();
    assert!(directory.join("counter.canister.lock").exists());
    let mut server = Server::start(&ARGUMENTS, directory);
    // Some programs send it to the process and once more to its group.
    signal(server.id(), "-INT");
    signal(server.id(), "-INT");
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
            sleep(Duration::from_millis(2_500));
            break fs::read(&state).unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is saved");
        sleep(Duration::from_millis(50));
    };
    signal(server.id(), "-KILL");
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
    sleep(Duration::from_secs(3));
    signal(server.id(), "-INT");
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
    signal(server.id(), "-INT");
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
    signal(server.id(), "-INT");
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
    signal(server.id(), "-INT");
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
        sleep(Duration::from_millis(50));
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
        signal(server.id(), "-INT");
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
        let output = succeeds(&[&["call", "shop.wasm", "buy"], more].concat(), directory);
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
        signal(server.id(), "-INT");
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
