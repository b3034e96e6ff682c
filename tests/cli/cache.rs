//! The cache of earlier runs: it changes no results, and damage is harmless.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{command, files, own_cache, stablebench, stderr, stdout};

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
    let output = stablebench(&[suite, &["--out=out.json"], more].concat(), directory);
    assert!(output.status.success(), "{more:?}: {}", stderr(&output));
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
        command(&args, directory.path()).stderr(std::process::Stdio::piped()).spawn().unwrap()
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
            stablebench(&[&["cache"], args, &["--cache-dir=cache"]].concat(), directory.path());
        assert!(output.status.success(), "{}", stderr(&output));
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
