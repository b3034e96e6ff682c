//! The command line: help, lists, mistakes, signals and pipes, in a checkout and elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{
    CACHE, command, in_cache, output_of, refused, signal, stablebench, stderr, stdout, succeeds,
};

#[test]
fn help() {
    let output = stablebench(&["--help"], Path::new("."));
    assert!(output.status.success());
    // The number depends on the machine.
    let cores = std::thread::available_parallelism().unwrap();
    let jobs = "Canisters that run in parallel\n          \n          [default: ";
    let shown = stdout(&output).replace(&format!("{jobs}{cores}]"), &format!("{jobs}cores]"));
    insta::assert_snapshot!(shown, @"
    The cost of storing and reading data in a canister of the Internet Computer.

    Without a command: the users suite on 1 000 000 rows, with the options of `run users`.

    Usage: stablebench [OPTIONS] [COMMAND]

    Commands:
      run          Run a suite
      list         List the suites
      compare      Compare two runs, or two configurations: ratios of instructions, ceilings, every
                   value
      merge        Join the shards of a run
      report       Print saved results as tables, CSV, JSON or an HTML page
      profile      Show the functions in which a case spends its instructions
      canbench     Run the benchmarks of a canbench project, without a server
      sql          Execute SQL in a canister and show what each statement costs
      call         Call a method of a canister on the embedded replica
      serve        Serve canisters on this machine to the Internet Computer's ordinary clients
      pocket-ic    Serve the tests of canisters as a PocketIC server does
      module       Write the module of a canister to files, ready to be deployed
      builds       Build a crate with many options, and compare what its calls cost
      cache        Show or clear the cache of compiled modules and populated canisters
      completions  Print a completion script for a shell
      man          Print the manual page
      help         Print this message or the help of the given subcommand(s)

    Options:
      -q, --quiet
              Print results and errors only: no progress, no notes

          --color <WHEN>
              Use colours and bold text; NO_COLOR is honoured

              Possible values:
              - auto:   On a terminal only
              - always: Always
              - never:  Never
              
              [default: auto]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Examples:
      The users suite on 1 000 000 rows, then a page for a browser:
        stablebench
        stablebench report results.json -o report.html
      Two configurations, quickly, as Markdown:
        stablebench --rows 10000 --engines btree,sqlite/wal --format markdown
      All options of a suite:
        stablebench run users --help
    ");
}

#[test]
fn list_of_suites_and_of_cases() {
    let suites = stdout(&stablebench(&["list"], Path::new(".")));
    assert!(suites.starts_with("users "), "{suites}");
    let args = ["--list", "--batches=10,1,10", "--journal-modes=wal", "--at=end"];
    insta::assert_snapshot!(stdout(&stablebench(&args, Path::new("."))), @"
    btree, 1 000 000 rows of 100 bytes
      insert       end 1
      insert       end 10
    sqlite/persist,cache_size=1000, 1 000 000 rows of 100 bytes
      insert       end 1
      insert       end 10
    sqlite/wal, 1 000 000 rows of 100 bytes
      insert       end 1
      insert       end 10
    sqlite-vfs, 1 000 000 rows of 100 bytes
      insert       end 1
      insert       end 10
    append, 1 000 000 rows of 100 bytes
      insert       end 1
      insert       end 10
    array, 1 000 000 rows of 100 bytes
      insert       end 1
      insert       end 10
    ");
}

#[test]
fn mistakes_end_in_one_message_and_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "no module").unwrap();
    fs::write(directory.path().join("old.json"), r#"{"format": 1}"#).unwrap();
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
        let error = refused(args, directory.path());
        // Whether another test has compiled it before is chance.
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
    fs::write(&cargo, "#!/bin/sh\ntouch \"$0.began\"\nexec sleep 600\n").unwrap();
    fs::set_permissions(&cargo, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let began = Instant::now();
    let mut run = command(&["run", "builds", "--rows=10", "--build=default"], directory.path());
    let run = run.env("CARGO", &cargo).stderr(Stdio::piped()).spawn().unwrap();
    while !directory.path().join("cargo.began").exists() {
        assert!(began.elapsed().as_secs() < 60, "cargo was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(run.id(), "-INT");
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
    assert!(began.elapsed().as_secs() < 120);
}

#[test]
fn a_called_canister_is_saved_to_a_file_and_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let call = |args: &[&str]| {
        let output = succeeds(&[&["call", "bench"], args].concat(), directory.path());
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
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

/// The revision in the results of a short run.
fn revision(mut command: Command, directory: &Path) -> Option<String> {
    command.args(["--no-wall-time", "--out=results.json"]).current_dir(directory);
    output_of(command.env_remove("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(directory.join("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&text).unwrap();
    results["revision"].as_str().map(str::to_owned)
}

const SHORT: [&str; 4] = ["--rows=10", "--batches=1", "--at=end", "--engines=array"];

#[test]
fn a_program_in_a_checkout_has_its_revision_in_every_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output().unwrap();
    let head = stdout(&head);
    let directory = tempfile::tempdir().unwrap();
    let found = revision(command(&SHORT, directory.path()), directory.path());
    let found = found.as_deref().map(|found| found.trim_end_matches("-dirty"));
    // A checkout without git has none.
    assert_eq!(found.is_some(), !head.is_empty());
    assert!(found.is_none_or(|found| head.starts_with(found)), "{found:?}, not {head}");
}

#[test]
fn a_program_elsewhere_needs_no_checkout() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("installed");
    fs::copy(env!("CARGO_BIN_EXE_stablebench"), &program).unwrap();
    let mut installed = Command::new(&program);
    for (name, value) in in_cache(&CACHE, &[], directory.path()).get_envs() {
        if let Some(value) = value {
            installed.env(name, value);
        }
    }
    installed.args(SHORT);
    assert_eq!(revision(installed, directory.path()), None);
}

/// The time limit of a command line, on a machine under load.
const LONGEST: Duration = Duration::from_secs(60);
/// More than the length of the longest message, which is a list, without the quoted arguments.
const LARGEST: usize = 4_000;

/// Values that are not valid numbers.
const NO_NUMBERS: &[&str] =
    &["=-1", "=1.5", "=x", "=1e9", "=18446744073709551616", "=１", "=1\u{1b}[2J"];

/// Command lines, whose words are separated by spaces.
const LINES: &[&str] = &[
    // Commands that do not exist.
    "nothing",
    "ru",
    "run nothing",
    "run users more",
    "run users run users",
    "cache nothing",
    "completions nothing",
    "help nothing",
    "-x",
    "--nothing",
    "-- users",
    "\u{1b}[2J",
    "run \r\u{7}users",
    "\u{202e}sresu",
    // Invalid values.
    "--engines=nothing",
    "--engines=btree,nothing",
    "--engines=",
    "--engines=\u{1b}]0;title\u{7}",
    "--journal-modes=WAL",
    "--at=start",
    "--sections=nothing",
    "--format=xml",
    "--color=often",
    "--rules=2024-01",
    "--rules=\u{1b}[31m",
    "--subnet=nothing",
    "--replica=nothing",
    "--replica=ftp://localhost",
    "--replica=http://",
    "--replica=http://localhost:99999",
    "--canister=x",
    "--nodes=0",
    "--usd-per-trillion-cycles=nan",
    "--usd-per-trillion-cycles=-1",
    "--rows=0",
    "--jobs=0",
    "--batches=1,,2",
    "--cache-limit=-1",
    "--cache-limit=inf",
    "run sysbench --rows=nothing",
    "run db-bench --engines=nothing",
    "run keys --keys=nothing",
    "run vfs --sections=nothing",
    // Options that leave no case.
    "profile --list users/nothing",
    "report published:users --sections=nothing",
    "compare published:users published:users --configurations=btree array",
    "run all --rows=1",
    "serve nothing --port=0",
    "serve bench --port=65536",
    "serve bench --listen=nowhere",
    "serve bench --controller=x",
    "serve bench --allow-origin=x",
    "build nothing",
    "build ../bench",
    "profile nothing",
    "profile users/nothing",
    "profile a/b/c/d/e/f",
    "profile \u{1b}[2J",
    "report published:nothing",
    "compare published:users published:users --threshold=x",
    "compare published:users published:users --max-ratio=-1",
    // Conflicting and missing arguments.
    "--rows=5 list",
    "--as-published --rows=5",
    "--canister=aaaaa-aa",
    "--yes",
    "--root-key=00",
    "--rows=10 --rows=20",
    "--out=a --out=b",
    "--out",
    "--resume --no-resume",
    "compare",
    "compare plain.json",
    "compare plain.json plain.json plain.json",
    "compare plain.json --configurations btree",
    "compare plain.json plain.json --configurations btree array --threshold=1%",
    "report",
    "call",
    "call plain.wasm",
    "profile",
    "profile users/insert/end-1/array --wasm=plain.wasm --call=x",
    "profile --wasm=plain.wasm",
    "completions",
    // Missing files, folders, dangling and cyclic links, and others.
    "report folder/missing.json",
    "report missing/missing.json",
    "report folder --format=html",
    "report plain.json --out=folder",
    "report plain.json --out=missing/report.html",
    "report plain.json/more",
    "report dangling",
    "report loop",
    "compare folder folder",
    "compare dangling loop",
    "compare binary binary",
    "call folder describe",
    "call missing.wasm describe",
    "call binary describe",
    "call plain.wasm describe",
    "call plain.wasm describe --state=folder",
    "call plain.wasm describe --state=binary",
    "call plain.wasm describe --save=folder",
    "call plain.wasm describe --save=missing/state",
    "profile --wasm=folder --call=x",
    "profile --wasm=binary --call=x",
    "profile --wasm=plain.wasm --call=x --state=folder",
    "serve folder --port=0",
    "serve plain.wasm --port=0 --state=binary",
    "serve plain.wasm --port=0 --state=folder",
    "serve plain.wasm --port=0 --state=missing/state",
    "cache --cache-dir=binary",
    "cache clear --cache-dir=/dev/null",
    "--rows=10 --batches=1 --at=end --out=folder",
    "--rows=10 --batches=1 --at=end --out=binary/results.json",
    "man --out=binary",
];

/// Files that do not contain results.
const NO_RESULTS: &[(&str, &str)] = &[
    ("empty.json", ""),
    ("null.json", "null"),
    ("number.json", "1e999"),
    ("list.json", "[]"),
    ("no-format.json", "{}"),
    ("format-0.json", r#"{"format": 0}"#),
    ("format-99.json", r#"{"format": 99}"#),
    ("format-negative.json", r#"{"format": -1}"#),
    ("cut.json", r#"{"format": 7, "cases": ["#),
    ("keys.json", "{\"format\": 7, \"\u{1b}[2J\": 1}"),
    ("steering.json", "{\"format\": \"\u{1b}[2J\u{7}\"}"),
    ("plain.json", "no results"),
];

/// Waits for a program and returns its exit code. Kills it and panics after the time limit.
fn status(child: &mut Child, shown: &str) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if began.elapsed() > LONGEST {
            child.kill().unwrap();
            panic!("{shown} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns a text without the codes of colours.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|char: char| !char.is_ascii_digit() && char != ';');
        match end.filter(|end| part[*end..].starts_with('m')) {
            Some(end) => plain.push_str(&part[end + 1..]),
            None => plain.extend(["\u{1b}[", part]),
        }
    }
    plain
}

/// Returns the content of a file.
fn read(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a command line. Returns a description if it does not end as expected.
fn wrong(args: &[OsString], directory: &Path) -> Option<String> {
    let shown = format!("{args:?}").chars().take(200).collect::<String>();
    let mut command = command(&[], directory);
    // Output goes to files, because a pipe could become full.
    let (mut out, mut error) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    command.args(args).stdin(Stdio::null());
    command.stdout(out.try_clone().unwrap()).stderr(error.try_clone().unwrap());
    let code = status(&mut command.spawn().unwrap(), &shown);
    let (out, error) = (read(&mut out), read(&mut error));
    let error = without_colours(&error);
    let typed: usize = args.iter().map(|word| word.len()).sum();
    let begins = |line: &&str| line.starts_with("stablebench: ") || line.starts_with("error: ");
    let steers = |char: char| (char.is_control() && char != '\n') || char == '\u{202e}';
    let words = ["panicked", "backtrace", "unwrap", ".rs:"];
    let what = if code != Some(2) {
        format!("ends with {code:?}")
    } else if !out.is_empty() {
        "prints something".to_owned()
    } else if error.lines().filter(begins).count() != 1 {
        "does not print exactly one message".to_owned()
    } else if words.iter().any(|word| error.contains(word)) {
        "panics".to_owned()
    } else if error.contains(steers) {
        "controls the terminal".to_owned()
    } else if error.len() > LARGEST + 2 * typed {
        format!("prints {} bytes", error.len())
    } else {
        return None;
    };
    Some(format!("{shown} {what}: {}", error.chars().take(400).collect::<String>()))
}

#[test]
fn invalid_command_lines_end_in_one_message() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("binary"), [0, 255, 27, 7].repeat(1_000)).unwrap();
    fs::write(at("plain.wasm"), b"\0asm\x01\0\0\0").unwrap();
    symlink("missing", at("dangling")).unwrap();
    symlink("loop", at("loop")).unwrap();
    for (name, text) in NO_RESULTS {
        fs::write(at(name), text).unwrap();
    }
    fs::write(at("deep.json"), "[".repeat(1_000_000)).unwrap();

    let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    let mut lines: Vec<Vec<OsString>> = LINES.iter().copied().map(words).collect();
    for option in ["--rows", "--batches", "--payload", "--jobs", "--seed", "--operations"] {
        lines.extend(NO_NUMBERS.iter().map(|value| vec![format!("{option}{value}").into()]));
        lines.push(vec![option.into()]);
    }
    for (name, _) in NO_RESULTS {
        lines.push(words(&format!("report {name}")));
        lines.push(words(&format!("compare {name} {name}")));
    }
    lines.push(words("report deep.json"));
    // Words that are empty, not UTF-8, blank, or long.
    let odd = OsStr::from_bytes(b"\xff\xfe\x1b[2J").to_owned();
    let long: OsString = "x".repeat(100_000).into();
    for word in [OsString::new(), odd, " ".into(), "\n".into()] {
        lines.push(vec![word.clone()]);
        for command in ["run", "report", "call", "module", "profile", "completions"] {
            lines.push(vec![command.into(), word.clone()]);
        }
        lines.push(vec!["--rows".into(), word.clone()]);
        lines.push(vec!["--replica".into(), word]);
    }
    lines.push(vec!["report".into(), long]);
    // With colours, escape sequences are not removed from the output.
    let coloured: Vec<_> = lines
        .iter()
        .filter(|line| line.iter().any(|word| word.to_string_lossy().contains(char::is_control)))
        .map(|line| [&["--color=always".into()], line.as_slice()].concat())
        .collect();
    lines.extend(coloured);
    assert!(lines.len() >= 84, "{}", lines.len());
    println!("{} command lines", lines.len());
    let directory = directory.path();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts = lines.chunks(lines.len().div_ceil(4));
        let run = |part: &[Vec<OsString>]| -> Vec<String> {
            part.iter().filter_map(|line| wrong(line, directory)).collect()
        };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || run(part))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
