//! `stablebench profile`: its content, its formats, and refused options.

use std::path::Path;

use serde_json::Value;

use crate::{refused, stablebench, stderr, stdout, succeeds};

/// A number of rows that is populated quickly, and is not the suite's default.
const SMALL: &[&str] = &["--rows=500", "--", "--batches=20"];
const SQLITE: &str = "users/insert/middle-20/sqlite/delete";
const BTREE: &str = "users/insert/middle-20/btree";

fn profile(args: &[&str], directory: &Path) -> String {
    let output = succeeds(&[&["profile"], args].concat(), directory);
    stdout(&output)
}

/// Returns a number with separated thousands.
fn spaced(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{} {:03}", spaced(number / 1_000), number % 1_000),
    }
}

/// Returns the sum of the instructions of folded stacks, by the position of the number from the end.
fn sum(folded: &str, place: usize) -> u64 {
    let number = |line: &str| line.rsplit(' ').nth(place).unwrap().parse::<u64>().unwrap();
    folded.lines().map(number).sum()
}

/// Returns the counter and the whole charge of a case in a run of the suite.
fn measured(suite: &[&str], section: &str, name: &str, column: &str) -> [u64; 2] {
    let directory = tempfile::tempdir().unwrap();
    let output = succeeds(&[suite, &["--format=json"]].concat(), directory.path());
    let results: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let is_it = |case: &&Value| {
        (&case["section"], &case["name"], &case["configuration"])
            == (&section.into(), &name.into(), &column.into())
    };
    let case = results["cases"].as_array().unwrap().iter().find(is_it).unwrap();
    let measured = &case["outcome"]["measured"];
    let charge = &measured["detail"]["cost"]["inside"]["charge"];
    [measured["instructions"].as_u64().unwrap(), charge.as_u64().unwrap()]
}

const USERS: &[&str] = &["--rows=500", "--batches=20", "--at=middle", "--engines=sqlite,btree"];

/// The profile of a case has the instructions that a run measures, and the names of SQLite's and
/// Rust's functions.
#[test]
fn a_profile_has_the_instructions_that_a_run_measures() {
    let directory = tempfile::tempdir().unwrap();
    let folded =
        |args: &[&str]| profile(&[args, &["--format=folded"], SMALL].concat(), directory.path());
    let [sqlite, charge] = measured(USERS, "insert", "middle 20", "sqlite/delete");
    let [btree, _] = measured(USERS, "insert", "middle 20", "btree");
    let found = folded(&[SQLITE, "--diff", BTREE]);
    assert_eq!((sum(&found, 1), sum(&found, 0)), (sqlite, btree));
    for name in [
        ";sqlite3VdbeExec",
        ";ic0.stable64_write;[stable page] ",
        ";[heap page] ",
        ";ic_stable_structures::btreemap::",
    ] {
        assert!(found.contains(name), "{name}: {found}");
    }
    for name in ["[heap pages changed]", "_ZN", "func["] {
        assert!(!found.contains(name), "{name}: {found}");
    }
    let whole = folded(&[SQLITE, "--whole-message"]);
    assert_eq!(sum(&whole, 0), charge);
    assert!(!whole.contains("[heap pages changed]"), "{whole}");
    let before = ["--rules=2025-10"];
    let [_, charge] = measured(&[USERS, &before].concat(), "insert", "middle 20", "sqlite/delete");
    let whole = folded(&[SQLITE, "--whole-message", before[0]]);
    assert_eq!(sum(&whole, 0), charge);
    assert!(whole.starts_with("[heap pages changed] "), "{whole}");
    assert!(whole.contains(";ic0.stable64_write;[stable pages written] "), "{whole}");
}

/// A step in a fork, one that is kept after others, and the picture of a difference.
#[test]
fn steps_of_lanes_have_profiles() {
    let directory = tempfile::tempdir().unwrap();
    let options = ["--rows=300", "--sizes=100", "--sections=reads"];
    let case = "vfs/reads/point-read-100-warm/sqlite-vfs";
    let found =
        profile(&[&[case, "--format=folded", "--"], &options[..]].concat(), directory.path());
    let suite = [&["run", "vfs"], &options[..]].concat();
    let [counted, _] = measured(&suite, "reads", "point read 100, warm", "sqlite-vfs");
    assert_eq!(sum(&found, 0), counted);

    let options = ["--num=300", "--benchmarks=fillseq,fillrandom,readrandom"];
    let cases = [
        "db-bench/benchmarks/readrandom/sqlite/without-rowid",
        "--diff",
        "db-bench/benchmarks/fillrandom/btree",
        "-o",
        "difference.svg",
        "--",
    ];
    let notes = profile(&[&cases, &options[..]].concat(), directory.path());
    assert!(notes.contains("× the instructions"), "{notes}");
    let picture = std::fs::read_to_string(directory.path().join("difference.svg")).unwrap();
    is_well_formed(&picture);
    let suite = [&["run", "db-bench"], &options[..]].concat();
    for (name, column, side) in [
        ("readrandom", "sqlite/without-rowid", "instructions before"),
        ("fillrandom", "btree", "after"),
    ] {
        let [counted, _] = measured(&suite, "benchmarks", name, column);
        let text = format!("{} {side}", spaced(counted));
        assert!(picture.contains(&text), "{text}: {picture}");
    }
}

#[test]
fn every_form_of_a_profile() {
    let directory = tempfile::tempdir().unwrap();
    let saved = |out: &str, more: &[&str]| {
        shelf(directory.path());
        let args = [&["--wasm", "shelf.wasm", "--call", "fill", "-o", out], more].concat();
        let notes = profile(&args, directory.path());
        (notes, std::fs::read_to_string(directory.path().join(out)).unwrap())
    };
    let (notes, picture) = saved("flame.svg", &[]);
    assert!(notes.starts_with("fill of shelf.wasm\n") && notes.contains("100.0 %"), "{notes}");
    is_well_formed(&picture);
    for part in
        ["fill of shelf.wasm", "stablebench profile --wasm shelf.wasm --call fill", "shelf::put"]
    {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    let (_, text) = saved("profile.json", &[]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let all: u64 =
        ["instructions", "heap_pages"].iter().map(|key| json[key].as_u64().unwrap()).sum();
    let of = |node: &Value| node["self"].as_u64().unwrap();
    assert_eq!(json["nodes"].as_array().unwrap().iter().map(of).sum::<u64>(), all);
    let (_, folded) = saved("stacks.txt", &[]);
    assert_eq!(sum(&folded, 0), all);
    let (_, firefox) = saved("profile.firefox", &["--format=firefox"]);
    let firefox: Value = serde_json::from_str(&firefox).unwrap();
    let weights = firefox["threads"][0]["samples"]["weight"].as_array().unwrap();
    assert_eq!(weights.iter().map(|weight| weight.as_u64().unwrap()).sum::<u64>(), all);
}

/// Returns `true` if all elements are closed in order.
fn is_well_formed(xml: &str) {
    let mut open = Vec::new();
    let script = xml.split_once("<![CDATA[").zip(xml.rsplit_once("]]>"));
    let xml = script.map_or(xml.to_owned(), |((front, _), (_, back))| format!("{front}{back}"));
    for tag in xml.split('<').skip(1).map(|text| text.split_once('>').expect(text).0) {
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        match tag {
            tag if tag.starts_with(['?', '!']) || tag.ends_with('/') => {}
            tag if tag.starts_with('/') => assert_eq!(open.pop(), Some(name)),
            _ => open.push(name),
        }
    }
    assert!(open.is_empty() && xml.contains("<svg "), "{open:?}");
}

/// A small canister without an interface.
const WAT: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 1)
    (func $_ZN5shelf3put17h0123456789abcdefE (param i64)
        (call $write (local.get 0) (i64.const 0) (i64.const 100)))
    (func $fill
        (drop (call $grow (i64.const 1)))
        (call $_ZN5shelf3put17h0123456789abcdefE (i64.const 0))
        (call $_ZN5shelf3put17h0123456789abcdefE (i64.const 4050))
        (i32.store (i32.const 0) (i32.const 1)))
    (func (export "canister_update fill") (call $fill)
        (call $append (i32.const 0) (i32.const 4)) (call $reply))
    (func (export "canister_query trap") (call $fill) unreachable))"#;

fn shelf(directory: &Path) {
    std::fs::write(directory.join("shelf.wasm"), wat::parse_str(WAT).unwrap()).unwrap();
}

#[test]
fn any_canister_has_profiles() {
    let directory = tempfile::tempdir().unwrap();
    shelf(directory.path());
    let call = |words: &[&str]| {
        stablebench(&[&["profile", "--wasm", "shelf.wasm"], words].concat(), directory.path())
    };
    let filled = call(&["--call", "fill", "--format=folded"]);
    let table = stdout(&call(&["--call", "fill", "()"]));
    insta::assert_snapshot!(stdout(&filled) + "\n" + &table);
    // A trap is reported, with the profile until then.
    let trapped = call(&["--call", "trap", "--format=folded"]);
    assert_eq!(trapped.status.code(), Some(2), "as of `call`");
    assert!(stderr(&trapped).contains("the profile ends there: "), "{trapped:?}");
    assert!(stderr(&trapped).contains("Canister trapped"), "{trapped:?}");
    assert!(stdout(&trapped).contains("canister_query trap;fill;shelf::put;"), "{trapped:?}");
    let missing = call(&["--call", "nothing"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("no method nothing; it has fill, trap"), "{missing:?}");
}

#[test]
fn mistakes_are_refused_before_anything_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "no module").unwrap();
    shelf(directory.path());
    let mut notes = String::new();
    for args in [
        &[][..],
        &["users/insert/midle-1000/sqlite/delete"],
        &["user/insert/middle-1000/btree"],
        &["users"],
        &["users/capacity/rows-scanned-in-one-query/btree"],
        &[SQLITE, "--rows=500", "--", "--batch=20"],
        &["db-bench/benchmarks/fillseq/btree", "--rows=5"],
        &[SQLITE, "-o", "flame.png"],
        &["users/insert/end-1/btree", "-o", "file/flame.svg"],
        &["users/insert/end-1/btree", "--diff", "nothing"],
        &["users/insert/end-1/btree", "--diff", "users/insert/end-10/btree", "--format=json"],
        &["--list", "users/nothing"],
        &["--wasm", "file"],
        &["--wasm", "file", "--call", "method"],
        &["--wasm", "missing", "--call", "method"],
        &["--call", "method"],
        &["users/insert/end-1/btree", "--with", "file"],
        &["--wasm", "shelf.wasm", "--call", "fill", "--with", "file"],
    ] {
        let error = refused(&[&["profile"], args].concat(), directory.path());
        notes += &format!("$ stablebench profile {}\n{error}\n", args.join(" "));
    }
    insta::assert_snapshot!(notes);
}
