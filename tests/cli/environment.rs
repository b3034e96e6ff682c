//! The program's environment: shells, terminals and `man`; devices, pipes, links, files that others can
//! write, and text that controls terminals.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{
    command, fails, files, output_of, own_cache, signal, stablebench, stderr, stdout, succeeds,
};

/// The options of a fast run, on the canister whose module compiles the fastest.
const TINY: &[&str] = &[
    "--rows=20",
    "--batches=1",
    "--at=end",
    "--engines=leveldb/snappy,leveldb/none",
    "--no-wall-time",
    "--no-page",
];

#[test]
fn quiet_prints_results_only() {
    let directory = tempfile::tempdir().unwrap();
    let normal = stablebench(TINY, directory.path());
    assert!(stderr(&normal).contains("2 cases saved to results.json"), "{}", stderr(&normal));
    for quiet in [&["--quiet"][..], &["-q", "run", "users"]] {
        let output = stablebench(&[quiet, TINY].concat(), directory.path());
        assert!(output.status.success());
        assert_eq!((stdout(&output), stderr(&output)), (stdout(&normal), String::new()));
    }
    let failed = fails(&["--quiet", "report", "missing.json"], directory.path());
    assert!(stderr(&failed).starts_with("stablebench: "), "{}", stderr(&failed));
}

#[test]
fn tables_are_folded_to_the_width_of_the_terminal() {
    let shown = |columns: &str| {
        let mut command = command(&["report", "published:users"], Path::new("."));
        stdout(&command.env("COLUMNS", columns).output().unwrap())
    };
    insta::assert_snapshot!(shown("50"));
    for (columns, width) in [("50", 50), ("72", 72), ("79", 79)] {
        let shown = shown(columns);
        // Commands are not wrapped, so that they can be copied.
        let lines = shown.lines().filter(|line| !line.starts_with("Repeat with: "));
        let longest = lines.map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} in {width}");
    }
    let unbroken = stdout(&stablebench(&["report", "published:users"], Path::new(".")));
    assert_eq!(shown("much"), unbroken, "an invalid number is ignored");
}

#[test]
fn colours_follow_the_option_and_the_environment() {
    let bold = |args: &[&str], no_color: &str| {
        let args = [args, &["report", "published:users"]].concat();
        let output = output_of(command(&args, Path::new(".")).env("NO_COLOR", no_color));
        stdout(&output).contains("\u{1b}[1m")
    };
    assert!(!bold(&[], ""), "a pipe");
    assert!(!bold(&["--color=auto"], ""));
    assert!(!bold(&["--color=never"], ""));
    assert!(bold(&["--color=always"], ""));
    assert!(bold(&["--color", "always"], "1"), "the option takes precedence");
    let failed = |color: &str| {
        stderr(&stablebench(&[color, "report", "missing.json"], Path::new("."))).contains("\u{1b}[")
    };
    assert!(failed("--color=always") && !failed("--color=never"));
}

#[test]
fn completions_work_in_shells() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = stablebench(&["completions", shell], Path::new("."));
        assert!(output.status.success(), "{shell}");
        assert!(stdout(&output).contains("sysbench"), "{shell}");
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("completions");
    fs::write(&script, stablebench(&["completions", "bash"], Path::new(".")).stdout).unwrap();
    // Complete `stablebench run sys` in bash.
    let words = format!(
        "source {}; COMP_WORDS=(stablebench run sys); COMP_CWORD=2; _stablebench stablebench sys run; \
         echo \"${{COMPREPLY[*]}}\"",
        script.display()
    );
    let completed = Command::new("bash").args(["-c", &words]).output().unwrap();
    assert_eq!(stdout(&completed), "sysbench\n", "{}", stderr(&completed));
}

#[test]
fn every_command_has_a_manual_page() {
    let page = stdout(&stablebench(&["man"], Path::new(".")));
    assert!(page.contains(".TH stablebench 1"), "{page}");
    assert!(page.contains("canbench"), "{page}");
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("share/man/man1");
    succeeds(&["man", "--out", folder.to_str().unwrap()], Path::new("."));
    for name in ["", "-run", "-run-users", "-compare", "-profile", "-cache-clear"] {
        assert!(folder.join(format!("stablebench{name}.1")).is_file(), "{name}");
    }
    let page = fs::read_to_string(folder.join("stablebench-run-users.1")).unwrap();
    assert!(page.contains("sections"), "{page}");
    fs::write(directory.path().join("file"), "").unwrap();
    let inside = directory.path().join("file/man1");
    let output = fails(&["man", "--out", inside.to_str().unwrap()], Path::new("."));
    assert!(stderr(&output).contains("cannot save manual pages in "), "{}", stderr(&output));
}

/// Destinations that accept nothing: a full disk, and a pipe whose reader has gone.
pub fn unwritable() -> [Stdio; 2] {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (_, closed) = std::io::pipe().unwrap();
    [full.into(), closed.into()]
}

#[test]
fn a_closed_or_full_stderr_changes_neither_results_nor_exit_codes() {
    let directory = tempfile::tempdir().unwrap();
    let sysbench: &[&str] = &["run", "sysbench", "--rows=30", "--places=memory", "--no-wall-time"];
    for (args, code) in [
        (TINY, 0),
        (&["--list", "--batches=1"], 0),
        (&["list"], 0),
        (&["module", "bench"], 0),
        (&["call", "bench", "describe"], 0),
        (&["report", "published:users"], 0),
        (&["compare", "published:users", "published:users"], 0),
        (&[sysbench, &["--format=json", "--max-ratio=0.001"]].concat(), 1),
        (&[sysbench, &["--format=csv", "--max-ratio=0.001"]].concat(), 1),
        (&["report", "missing.json"], 2),
        (&["canbench"], 1),
        (&["nothing"], 2),
        (&["run", "users", "--rows=0"], 2),
        (&["pocket-ic", "--version"], 0),
    ] {
        let normal = stablebench(args, directory.path());
        assert_eq!(normal.status.code(), Some(code), "{args:?}: {}", stderr(&normal));
        for unwritable in unwritable() {
            let output = command(args, directory.path()).stderr(unwritable).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{args:?}");
            assert!(output.stdout == normal.stdout, "{args:?}: {}", stdout(&output));
        }
        // Without a stderr at all.
        let mut shell = Command::new("sh");
        let program = command(args, directory.path());
        shell.args(["-c", "exec \"$0\" \"$@\" 2>&-"]).arg(program.get_program()).args(args);
        let environment = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let output = shell.envs(environment).current_dir(directory.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(output.stdout == normal.stdout, "{args:?}: {}", stdout(&output));
    }
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn devices_and_pipes_are_written_to_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let run = |args: &[&str]| succeeds(args, directory.path());
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
            let output = fails(refused, directory.path());
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
    signal(run.id(), "-INT");
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
    let began = Instant::now();
    while !results.exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "no case is measured");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(run.id(), "-INT");
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
    let refused = fails(&["report", "results.json", "-o", "x.pdf"], directory);
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
        let output = fails(&args, directory.path());
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
    // Pipes have the names of the cache's entries.
    let folder = directory.path().join("cache");
    let cache = own_cache(&folder);
    let run = || {
        let output = succeeds(&[TINY, &[&cache, "--out=out.json"]].concat(), directory.path());
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
        let output = succeeds(&[TINY, &[&cache, "--out=out.json"]].concat(), directory.path());
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
        let output = fails(&[&["call"], &args[..]].concat(), directory.path());
        let notes = stderr(&output);
        assert!(notes.contains(expected), "{args:?}: {notes}");
        let steers = |char: char| char.is_control() && char != '\n';
        assert!(!notes.contains(steers), "{args:?}: {notes:?}");
    }
}
