//! The tool's environment: devices, pipes, links, files that others can write, and text that
//! controls terminals.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{command, files, own_cache, stablebench, stderr, stdout};

/// The options of a fast run, on the canister whose module compiles the fastest.
const TINY: &[&str] = &[
    "--rows=20",
    "--batches=1",
    "--at=end",
    "--engines=leveldb/snappy,leveldb/none",
    "--no-wall-time",
    "--no-page",
];

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn devices_and_pipes_are_written_to_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let run = |args: &[&str]| {
        let output = stablebench(args, directory.path());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        output
    };
    run(&[TINY, &["--out=plain.json"]].concat());
    symlink("/dev/null", at("null")).unwrap();
    for null in ["/dev/null", "null"] {
        let notes = run(&[TINY, &["--out", null]].concat());
        assert!(stderr(&notes).contains("2 cases saved to "), "{}", stderr(&notes));
        run(&["report", "plain.json", "-o", null]);
        run(&["profile", "users/insert/end-1/append", "--rows=20", "-o", null, "--format=folded"]);
        for refused in [
            &["call", "bench", "describe", "--save", null][..],
            &["call", "bench", "describe", "--state", null],
            &["serve", "bench", "--port=0", "--state", null],
        ] {
            let output = stablebench(refused, directory.path());
            assert_eq!(output.status.code(), Some(2), "{refused:?}");
            assert!(stderr(&output).contains("not a regular file"), "{}", stderr(&output));
        }
    }
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(fs::symlink_metadata(at("null")).unwrap().is_symlink());
    // Results are written to a pipe once.
    pipe(&at("pipe"));
    let reader = std::thread::spawn({
        let path = at("pipe");
        move || fs::read_to_string(path).unwrap()
    });
    run(&[TINY, &["--out=pipe"]].concat());
    // The revision depends on changes of the sources.
    let lines = |text: String| -> Vec<String> {
        text.lines().filter(|line| !line.contains("\"revision\"")).map(str::to_owned).collect()
    };
    let plain = fs::read_to_string(at("plain.json")).unwrap();
    assert_eq!(lines(reader.join().unwrap()), lines(plain));
    // Links and their targets are preserved.
    symlink("plain.json", at("link.json")).unwrap();
    run(&[TINY, &["--out=link.json", "--seed=2"]].concat());
    assert!(fs::symlink_metadata(at("link.json")).unwrap().is_symlink());
    assert!(fs::read_to_string(at("plain.json")).unwrap().contains("\"seed\": 2"));
    symlink("saved", at("to-saved")).unwrap();
    run(&["call", "bench", "describe", "--save=to-saved"]);
    assert!(at("saved").is_file() && fs::symlink_metadata(at("to-saved")).unwrap().is_symlink());
    assert_eq!(files(directory.path()).len(), 6, "nothing else is left");
}

#[test]
fn an_interrupted_run_leaves_earlier_results_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.json");
    assert!(stablebench(TINY, directory.path()).status.success());
    let before = fs::read_to_string(&path).unwrap();
    // Populating takes much longer than this test.
    let args = ["--rows=3000000", "--batches=1", "--at=end", "--engines=btree"];
    let mut run = command(&args, directory.path()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let sent = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    run.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(2), "{rest}");
    assert!(rest.contains("no case was measured, and nothing was saved"), "{rest}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before, "{rest}");
    assert_eq!(files(directory.path()), [path]);
}

/// A run of many cases is interrupted when the first one is saved.
#[test]
fn an_interrupted_run_prints_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let args = ["run", "users", "--rows=20000", "--jobs=1"];
    let mut run = command(&args, directory);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let results = directory.join("results.json");
    let began = std::time::Instant::now();
    while !results.exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "no case is measured");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let (mut printed, mut notes) = (String::new(), String::new());
    run.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    run.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(2), "{notes}");
    assert!(notes.contains("add --resume to continue"), "{notes}");
    let reported = stablebench(&["report", "results.json"], directory);
    for text in [&printed, &stdout(&reported)] {
        assert!(text.starts_with("NOT COMPLETE: "), "{text}");
    }
    let page = stablebench(&["report", "results.json", "-o", "page.html"], directory);
    assert!(stderr(&page).contains("results.json: NOT COMPLETE"), "{}", stderr(&page));
    let refused = stablebench(&["report", "results.json", "-o", "x.pdf"], directory);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("the endings are .html, "), "{}", stderr(&refused));
    assert!(!directory.join("x.pdf").exists());
}

#[test]
fn nothing_is_read_forever() {
    let directory = tempfile::tempdir().unwrap();
    pipe(&directory.path().join("pipe"));
    for (args, expected) in [
        (&["compare", "/dev/zero"][..], "larger than"),
        (&["report", "/dev/zero"], "larger than"),
        (&["--resume", "--out=pipe"], "not a regular file; --resume needs one"),
        (&["call", "bench", "describe", "--state=pipe"], "not a regular file"),
        (&["serve", "bench", "--port=0", "--state=pipe"], "not a regular file"),
        (&["call", "pipe", "describe"], "no canister pipe"),
        (&["call", "bench", "describe", "--stable-memory=pipe"], "not a regular file"),
        (&["serve", "bench", "--port=0", "--stable-memory=/dev/zero"], "not a regular file"),
    ] {
        let args = match args[0] {
            "compare" => [args, &["--configurations", "btree", "array"]].concat(),
            _ => args.to_vec(),
        };
        let output = stablebench(&args, directory.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
    // Pipes have the names of the cache's entries.
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    let run = || {
        let output = stablebench(&[TINY, &[&cache, "--out=out.json"]].concat(), directory.path());
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    run();
    let entries = files(&folder);
    for entry in &entries {
        fs::remove_file(entry).unwrap();
        pipe(entry);
    }
    let notes = run();
    assert!(notes.contains("it is not a regular file"), "{notes}");
    assert!(!run().contains("it is not a regular file"), "they were replaced");
}

#[test]
fn a_cache_that_others_can_write_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    let run = || {
        let output = stablebench(&[TINY, &[&cache, "--out=out.json"]].concat(), directory.path());
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let kept = || {
        files(&folder)
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "state"))
            .count()
    };
    mode(&folder, 0o777);
    let notes = run();
    assert_eq!(notes.matches("other users can write to it").count(), 1, "{notes}");
    assert_eq!(kept(), 0, "nothing is kept there either");
    // The folder belongs to the user again, an entry does not.
    mode(&folder, 0o700);
    run();
    for entry in files(&folder) {
        mode(&entry, 0o666);
    }
    let notes = run();
    assert!(notes.contains("is not used and is replaced: other users can write to it"), "{notes}");
    assert!(!run().contains("other users can write to it"), "they were replaced");
}

/// Returns a module whose messages and interface move the cursor.
fn rude(interface: &str) -> Vec<u8> {
    let wat = r#"(module
        (import "ic0" "trap" (func $trap (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (memory 1) (data (i32.const 0) "go\1b[2J\c2\9b31m\0daway")
        (data (i32.const 100) "DIDL\01\6d\7f\01\00\80\80\80\80\80\20")
        (func $rude (export "canister_query trap") (call $trap (i32.const 0) (i32.const 16)))
        (func (export "canister_query endless")
            (call $append (i32.const 100) (i32.const 15)) (call $reply)))"#;
    let mut wasm = wat::parse_str(wat).unwrap();
    let name = "icp:public candid:service";
    let number = |mut value: usize, into: &mut Vec<u8>| {
        while value > 127 {
            into.push(value as u8 | 128);
            value >>= 7;
        }
        into.push(value as u8);
    };
    let mut section = Vec::new();
    number(name.len(), &mut section);
    section.extend(name.bytes().chain(interface.bytes()));
    wasm.push(0);
    number(section.len(), &mut wasm);
    wasm.extend(section);
    wasm
}

#[test]
fn no_canister_controls_a_terminal_or_hangs_a_call() {
    let directory = tempfile::tempdir().unwrap();
    let interface = "service : { trap : () -> () query; endless : () -> (vec null) query }";
    fs::write(directory.path().join("rude.wasm"), rude(interface)).unwrap();
    let deep = format!("service : {{ f : () -> ({}nat) }}", "opt ".repeat(200_000));
    fs::write(directory.path().join("deep.wasm"), rude(&deep)).unwrap();
    for (args, expected) in [
        (["rude.wasm", "trap"], r"go\u{1b}[2J\u{9b}31m\u{d}away"),
        (["rude.wasm", "endless"], "the reply is not of the method's type"),
        (["deep.wasm", "f"], "levels deep"),
    ] {
        let output = stablebench(&[&["call"], &args[..]].concat(), directory.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stdout(&output));
        let notes = stderr(&output);
        assert!(notes.contains(expected), "{args:?}: {notes}");
        let steers = |char: char| char.is_control() && char != '\n';
        assert!(!notes.contains(steers), "{args:?}: {notes:?}");
    }
}
