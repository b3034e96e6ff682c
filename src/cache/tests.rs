use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::Parser;
use stablebench_protocol::{Engine, JournalMode};
use tempfile::TempDir;

use super::folder::Cleared;
use super::*;
use crate::cli::{Cli, Command, Suite};
use crate::replica::Identity;
use crate::suites::lane::Lane;
use crate::suites::users::{Setting, StorePlan};
use crate::suites::{db_bench, sysbench};

fn identity() -> Identity {
    Identity {
        kind: "a".to_owned(),
        version: "1".to_owned(),
        subnet: "b".to_owned(),
        rules: "d".to_owned(),
    }
}

fn users(setting: Setting, rows: u64, payload: u32) -> Stored {
    Stored::users(&StorePlan { setting, rows, payload, cases: Vec::new() })
}

fn lanes(typed: &[&str]) -> Vec<Lane> {
    let typed = [&["stablebench", "run"], typed].concat();
    match Cli::parse_from(typed).command {
        Some(Command::Run { suite: Some(Suite::Sysbench(args)) }) => {
            sysbench::plan(&args).unwrap().lanes
        }
        Some(Command::Run { suite: Some(Suite::DbBench(args)) }) => {
            db_bench::plan(&args).unwrap().lanes
        }
        other => panic!("{other:?}"),
    }
}

fn setup(stored: Stored) -> Setup {
    Setup::new(identity(), "hash".to_owned(), stored)
}

#[test]
fn the_key_is_another_one_with_each_part_of_a_setup() {
    let delete = Setting::sqlite(JournalMode::Delete);
    let mut page_size = delete;
    page_size.sqlite.page_size = Some(512);
    let mut setups = vec![
        setup(users(delete, 10, 100)),
        setup(users(delete, 11, 100)),
        setup(users(delete, 10, 101)),
        setup(users(page_size, 10, 100)),
        setup(users(Setting::sqlite(JournalMode::Wal), 10, 100)),
        setup(users(Setting::of(Engine::Btree), 10, 100)),
        setup(users(Setting::of(Engine::Array), 10, 100)),
        Setup::new(identity(), "other".to_owned(), users(delete, 10, 100)),
    ];
    for other in [
        Identity { kind: "c".to_owned(), ..identity() },
        Identity { version: "2".to_owned(), ..identity() },
        Identity { subnet: "c".to_owned(), ..identity() },
        Identity { rules: "e".to_owned(), ..identity() },
    ] {
        setups.push(Setup::new(other, "hash".to_owned(), users(delete, 10, 100)));
    }
    for (rows, seed) in [(10, 1), (10, 2), (11, 1)] {
        let rows = format!("--rows={rows}");
        for lane in lanes(&["sysbench", &rows, "--keys=integer,text", "--places=memory"]) {
            setups.push(setup(Stored::lane(&lane, seed).unwrap()));
        }
    }
    let keys: BTreeSet<String> = setups.iter().map(Setup::key).collect();
    assert_eq!(keys.len(), setups.len());
    assert!(keys.iter().all(|key| key.len() == 64));
    assert_eq!(setups[0].key(), setup(users(delete, 10, 100)).key());
    let text = serde_json::to_string(&setups[0]).unwrap();
    assert_eq!(serde_json::from_str::<Setup>(&text).unwrap(), setups[0]);
}

#[test]
fn what_is_measured_is_not_taken_from_a_cache() {
    for lane in lanes(&["db-bench"]) {
        assert_eq!(Stored::lane(&lane, 1), None, "its populating is a case");
    }
    for mut lane in lanes(&["sysbench"]) {
        assert!(Stored::lane(&lane, 1).is_some());
        lane.steps[0].forked = true;
        assert_eq!(Stored::lane(&lane, 1), None);
        lane.populated = 0;
        assert_eq!(Stored::lane(&lane, 1), None, "nothing to keep");
    }
}

#[test]
fn only_our_names_are_ours() {
    let (hash, version) = ("0a".repeat(32), "12".repeat(8));
    for (name, kind) in [
        (name::module(&hash, &version), Kind::Module),
        (name::state(&hash, &version), Kind::State),
        (stamp(&name::state(&hash, &version)), Kind::Stamp),
        (name::digests(&hash, &version), Kind::Digests),
    ] {
        assert_eq!(name::parse(&name), Some((kind, version.as_str())), "{name}");
    }
    assert_eq!(name::parse(".stablebench-Ab12"), Some((Kind::Temporary, "")));
    for name in [
        "",
        "results.json",
        ".stablebench-",
        ".stablebench-a.b",
        ".stablebench-../x",
        ".module",
        "-.module",
        &format!("{hash}.module"),
        &format!("{hash}-{version}"),
        &format!("{hash}-{version}.module2"),
        &format!("{}-{version}.state", hash.to_uppercase()),
        &format!("{}-{version}.state", &hash[1..]),
        &format!("{hash}-{}.state", &version[1..]),
        &format!("x{hash}-{version}.state"),
    ] {
        assert_eq!(name::parse(name), None, "{name}");
    }
}

/// A folder with entries of 8 KiB, named by digit, the first used longest ago.
struct Filled {
    directory: TempDir,
    versions: Versions,
}

impl Filled {
    fn new() -> Self {
        let versions = Versions::new("1".repeat(16), Vec::new());
        Self { directory: tempfile::tempdir().unwrap(), versions }
    }

    fn folder(&self) -> Folder {
        Folder::new(self.directory.path().to_owned())
    }

    fn file(&self, name: &str, minutes_ago: u64) {
        let path = self.directory.path().join(name);
        std::fs::write(&path, [1; 8_192]).unwrap();
        aged(&path, minutes_ago);
    }

    fn state(&self, digit: &str) -> String {
        name::state(&digit.repeat(64), &self.versions.state)
    }

    fn names(&self) -> BTreeSet<String> {
        let listed = std::fs::read_dir(self.directory.path()).unwrap();
        listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// The stamp of a populated canister.
fn stamp(state: &str) -> String {
    let [stamp, _] = name::companions(state);
    stamp
}

fn aged(path: &Path, minutes: u64) {
    let time = SystemTime::now() - Duration::from_secs(60 * minutes);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn beyond_the_limit_goes_what_was_not_used_for_the_longest_time() {
    let filled = Filled::new();
    for (digit, minutes) in [("a", 50), ("b", 40), ("c", 30)] {
        filled.file(&filled.state(digit), minutes);
    }
    // The oldest was used a moment ago, which its stamp tells.
    filled.file(&stamp(&filled.state("a")), 0);
    filled.file(&name::module(&"d".repeat(64), &filled.versions.module), 20);
    let older = name::module(&"e".repeat(64), &"9".repeat(16));
    filled.file(&older, 0);
    filled.file("not ours", 1_000);
    let shrink = |limit: u64, used: &[String]| {
        let used = used.iter().cloned().collect();
        filled.folder().shrink(limit, &filled.versions, &used).unwrap()
    };
    assert_eq!(shrink(1 << 20, &[]), 6 * 8_192, "all fits");
    assert_eq!(shrink(5 * 8_192, &[]), 5 * 8_192);
    assert!(!filled.names().contains(&older), "another version's goes first");
    assert_eq!(shrink(4 * 8_192, &[]), 4 * 8_192);
    assert!(!filled.names().contains(&filled.state("b")));
    assert_eq!(shrink(1, &[filled.state("a"), filled.state("c")]), 3 * 8_192, "in use");
    assert_eq!(shrink(0, &[]), 0);
    assert_eq!(filled.names(), BTreeSet::from(["not ours".to_owned()]));
}

#[test]
fn what_killed_runs_have_left_goes_when_it_is_old() {
    let filled = Filled::new();
    filled.file(".stablebench-old", 25 * 60);
    filled.file(".stablebench-new", 23 * 60);
    filled.file(&stamp(&filled.state("a")), 0);
    filled.folder().shrink(1 << 20, &filled.versions, &BTreeSet::new()).unwrap();
    assert_eq!(filled.names(), BTreeSet::from([".stablebench-new".to_owned()]));
}

#[test]
fn clearing_leaves_what_is_not_ours() {
    let filled = Filled::new();
    filled.file(&filled.state("a"), 0);
    filled.file(&stamp(&filled.state("a")), 0);
    filled.file(&stamp(&filled.state("b")), 0);
    filled.file(&name::digests(&"c".repeat(64), &filled.versions.state), 0);
    filled.file(&name::module(&"d".repeat(64), &"9".repeat(16)), 0);
    filled.file(".stablebench-new", 0);
    filled.file("notes.txt", 0);
    let path = |name: &str| filled.directory.path().join(name);
    // A link and a folder with names of entries.
    std::os::unix::fs::symlink(path("notes.txt"), path(&filled.state("c"))).unwrap();
    std::fs::create_dir(path(&filled.state("d"))).unwrap();
    let Cleared { modules, states, bytes, others } = filled.folder().clear().unwrap();
    assert_eq!((modules, states, bytes, others), (1, 1, 3 * 8_192, 3));
    let left = ["notes.txt".to_owned(), filled.state("c"), filled.state("d")];
    assert_eq!(filled.names(), BTreeSet::from(left));
    assert_eq!(std::fs::read(path("notes.txt")).unwrap(), [1; 8_192]);
}

#[test]
fn a_missing_folder_is_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let folder = Folder::new(directory.path().join("a/b"));
    assert_eq!(folder.files().unwrap().entries.len(), 0);
    assert_eq!(folder.clear().unwrap().bytes, 0);
    assert!(!directory.path().join("a").exists());
    folder.prepare().unwrap();
    assert_eq!(folder.files().unwrap().others, 0);
}
