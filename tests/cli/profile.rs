//! Profiles: what is in them, what is written, and what is refused.

use std::path::Path;

use serde_json::Value;

use super::{stablebench, stderr, stdout};

/// Few enough rows that populating takes no time, and others than the suite's own.
const SMALL: &[&str] = &["--rows=500", "--", "--batches=20"];
const SQLITE: &str = "users/insert/middle-20/sqlite/delete";
const BTREE: &str = "users/insert/middle-20/btree";

fn profile(args: &[&str], directory: &Path) -> String {
    let output = stablebench(&[&["profile"], args].concat(), directory);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// Instructions of all lines of folded stacks.
fn sum(folded: &str) -> u64 {
    folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// What a run of the suite measures: the counter, and the whole charge.
fn measured(suite: &[&str], section: &str, name: &str, column: &str) -> [u64; 2] {
    let directory = tempfile::tempdir().unwrap();
    let output = stablebench(&[suite, &["--format=json"]].concat(), directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let results: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let is_it = |case: &&Value| {
        (&case["section"], &case["name"], &case["column"])
            == (&section.into(), &name.into(), &column.into())
    };
    let case = results["cases"].as_array().unwrap().iter().find(is_it).unwrap();
    let measured = &case["outcome"]["measured"];
    let charge = &measured["detail"]["cost"]["inside"]["charge"];
    [measured["instructions"].as_u64().unwrap(), charge.as_u64().unwrap()]
}

const USERS: &[&str] = &["--rows=500", "--batches=20", "--at=middle", "--engines=sqlite,btree"];

/// The profile of a case is what a run measures of it, with the names of SQLite's functions
/// and of Rust's.
#[test]
fn a_profile_holds_what_a_run_measures() {
    let directory = tempfile::tempdir().unwrap();
    let folded =
        |args: &[&str]| profile(&[args, &["--format=folded"], SMALL].concat(), directory.path());
    let [counted, charged] = measured(USERS, "insert", "middle 20", "sqlite/delete");
    let found = folded(&[SQLITE]);
    assert_eq!(sum(&found), counted);
    for name in [";sqlite3VdbeExec", ";ic0.stable64_write;[stable pages written] "] {
        assert!(found.contains(name), "{name}: {found}");
    }
    assert!(!found.contains("[heap pages changed]"));
    let whole = folded(&[SQLITE, "--whole-message"]);
    assert_eq!(sum(&whole), charged);
    assert!(whole.starts_with("[heap pages changed] "), "{whole}");

    let [counted, _] = measured(USERS, "insert", "middle 20", "btree");
    let found = folded(&[BTREE]);
    assert_eq!(sum(&found), counted);
    let rust = found.lines().filter(|line| line.contains("ic_stable_structures::")).count();
    assert!(rust > 10, "{found}");
    assert!(!found.contains("_ZN") && !found.contains("func["), "{found}");
}

/// Steps of lanes: in forks, and kept ones after others.
#[test]
fn steps_of_lanes_have_profiles() {
    let directory = tempfile::tempdir().unwrap();
    for (suite, options, [section, name, column]) in [
        (
            "vfs",
            &["--rows=300", "--sizes=100", "--sections=reads"][..],
            ["reads", "point read 100, warm", "sqlite-vfs"],
        ),
        (
            "db-bench",
            &["--num=300", "--benchmarks=fillseq,fillrandom,readrandom"],
            ["benchmarks", "readrandom", "sqlite/without-rowid"],
        ),
        (
            "db-bench",
            &["--num=300", "--benchmarks=fillseq,fillrandom"],
            ["benchmarks", "fillrandom", "btree"],
        ),
    ] {
        let case = [suite, section, name, column].join("/");
        let args = [&[case.as_str(), "--format=folded", "--"], options].concat();
        let found = sum(&profile(&args, directory.path()));
        let [counted, _] = measured(&[&["run", suite], options].concat(), section, name, column);
        assert_eq!(found, counted, "{case}");
    }
}

#[test]
fn every_form_of_a_profile() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let saved = |out: &str, more: &[&str]| {
        let args = [&[SQLITE, "-o", out], more, SMALL].concat();
        let told = profile(&args, directory.path());
        (told, std::fs::read_to_string(at(out)).unwrap())
    };
    let (told, picture) = saved("flame.svg", &[]);
    assert!(told.contains("middle 20/sqlite/delete\n") && told.contains("share"), "{told}");
    assert!(told.contains("sqlite3") && told.contains("100.0 %"), "{told}");
    is_well_formed(&picture);
    for part in ["middle 20/sqlite/delete", "instructions · stablebench profile", "--batches=20"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    let (_, text) = saved("profile.json", &[]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let nodes = json["nodes"].as_array().unwrap();
    let of = |node: &Value| node["self"].as_u64().unwrap();
    assert_eq!(nodes.iter().map(of).sum::<u64>(), json["instructions"].as_u64().unwrap());
    let (_, folded) = saved("stacks.txt", &[]);
    assert_eq!(sum(&folded), json["instructions"].as_u64().unwrap());
    let (_, firefox) = saved("profile.firefox", &["--format=firefox"]);
    let firefox: Value = serde_json::from_str(&firefox).unwrap();
    let weights = firefox["threads"][0]["samples"]["weight"].as_array().unwrap();
    let weights: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
    assert_eq!(weights as u64, sum(&folded));

    let (told, picture) = saved("difference.svg", &["--diff", BTREE]);
    assert!(told.contains("× the instructions"), "{told}");
    is_well_formed(&picture);
    assert!(picture.contains("instructions before, "), "{picture}");
    let (_, both) = saved("difference.folded", &["--diff", BTREE]);
    let side = |line: &str, side: usize| -> u64 {
        line.rsplitn(3, ' ').nth(side).unwrap().parse().unwrap()
    };
    assert_eq!(both.lines().map(|line| side(line, 1)).sum::<u64>(), sum(&folded));
    assert!(both.lines().any(|line| side(line, 0) > 0 && side(line, 1) == 0), "{both}");
}

/// Every element that begins ends, in order.
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

#[test]
fn any_canister_has_profiles() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("shelf.wasm"), wat::parse_str(WAT).unwrap()).unwrap();
    let call = |words: &[&str]| {
        stablebench(&[&["profile", "--wasm", "shelf.wasm"], words].concat(), directory.path())
    };
    let filled = call(&["--call", "fill", "--format=folded"]);
    insta::assert_snapshot!(stdout(&filled));
    insta::assert_snapshot!(stdout(&call(&["--call", "fill", "()"])));
    // A trap is told, with the profile up to there.
    let trapped = call(&["--call", "trap", "--format=folded"]);
    assert!(stderr(&trapped).contains("the profile is that up to there: "), "{trapped:?}");
    assert!(stderr(&trapped).contains("Canister trapped"), "{trapped:?}");
    assert!(stdout(&trapped).contains("canister_query trap;fill;shelf::put;"), "{trapped:?}");
    let missing = call(&["--call", "nothing"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("no method nothing; it has fill, trap"), "{missing:?}");
}

#[test]
fn what_has_no_profile_is_refused_before_anything_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "no module").unwrap();
    let mut told = String::new();
    for args in [
        &[][..],
        &["users/insert/midle-1000/sqlite/delete"],
        &["user/insert/middle-1000/btree"],
        &["users"],
        &["users/capacity/rows-scanned-in-one-query/btree"],
        &[SQLITE, "--rows=500", "--", "--batch=20"],
        &["db-bench/benchmarks/fillseq/btree", "--rows=5"],
        &[SQLITE, "-o", "flame.png"],
        &["users/insert/end-1/btree", "-o", "missing/flame.svg"],
        &["users/insert/end-1/btree", "--diff", "nothing"],
        &["users/insert/end-1/btree", "--diff", "users/insert/end-10/btree", "--format=json"],
        &["--list", "users/nothing"],
        &["--wasm", "file"],
        &["--wasm", "file", "--call", "method"],
        &["--wasm", "missing", "--call", "method"],
        &["--call", "method"],
    ] {
        let output = stablebench(&[&["profile"], args].concat(), directory.path());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
        told += &format!("$ stablebench profile {}\n{}\n", args.join(" "), stderr(&output));
    }
    insta::assert_snapshot!(told);
}
