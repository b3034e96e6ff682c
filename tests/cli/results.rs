//! Results files: those of every suite are deterministic, merged and resumed; they are compared, and
//! printed again.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::{fails, own_cache, stablebench, stderr, stdout, succeeds};

fn run(suite: &[&str], file: &str, more: &[&str], directory: &Path) -> (String, String, String) {
    let out = format!("--out={file}");
    let args = [&["run"], suite, &["--no-wall-time", "--format=json", &out], more].concat();
    let output = succeeds(&args, directory);
    (fs::read_to_string(directory.join(file)).unwrap(), stdout(&output), stderr(&output))
}

fn merge(files: &[&str], directory: &Path) -> Output {
    let args = [&["merge"], files, &["--format=json", "--out=joined.json"]].concat();
    stablebench(&args, directory)
}

/// Changes results to those of a killed run: removes half of the cases and a fixture, and lets a
/// case fail. Returns the number of remaining measured cases.
fn cut_off(results: &mut Value) -> usize {
    let cases = results["cases"].as_array_mut().unwrap();
    let mut place = 0;
    cases.retain(|_| {
        place += 1;
        place % 2 == 0
    });
    cases[0]["outcome"] = json!({ "failed": { "reason": "for this test" } });
    let left = cases.len() - 1;
    results["fixtures"].as_array_mut().unwrap().remove(0);
    left
}

fn check(suite: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (whole, printed, _) = run(suite, "whole.json", &["--jobs=1"], directory);
    // A second run, in two parts, without populated canisters of other runs.
    let cache = own_cache(&directory.join("cache"));
    for (shard, file) in [("--shard=1/2", "part1.json"), ("--shard=2/2", "part2.json")] {
        run(suite, file, &["--jobs=3", &cache, shard], directory);
    }
    let joined = merge(&["part2.json", "part1.json"], directory);
    assert!(joined.status.success(), "{suite:?}: {}", stderr(&joined));
    assert!(stdout(&joined) == printed, "the parts of {suite:?} are printed differently");
    let joined = fs::read_to_string(directory.join("joined.json")).unwrap();
    assert!(joined == whole, "the parts of {suite:?} differ from the whole");

    let mut part: Value = serde_json::from_str(&whole).unwrap();
    let left = cut_off(&mut part);
    fs::write(directory.join("part.json"), part.to_string()).unwrap();
    let (resumed, _, notes) = run(suite, "part.json", &["--resume"], directory);
    assert!(notes.contains(&format!("{left} cases are measured already")), "{suite:?}: {notes}");
    assert!(resumed == whole, "the results of the resumed run of {suite:?} differ");

    // A run with another seed cannot be resumed.
    let args = [&["run"], suite, &["--no-wall-time", "--out=part.json", "--resume", "--seed=2"]];
    let output = fails(&args.concat(), directory);
    assert!(stderr(&output).contains("because its command differs"), "{}", stderr(&output));
    assert!(fs::read_to_string(directory.join("part.json")).unwrap() == whole);
}

#[test]
fn db_bench_can_be_resumed() {
    check(&["db-bench", "--num=1000", "--histogram"]);
}

#[test]
fn keys_can_be_resumed() {
    check(&["keys", "--rows=200", "--watches=20", "--questions=5", "--schemas=a,d"]);
}

#[test]
fn sysbench_can_be_resumed() {
    check(&["sysbench", "--rows=100", "--keys=blob"]);
}

#[test]
fn cuckoo_can_be_resumed() {
    check(&["cuckoo", "--num=128", "--lookups=50", "--keys=scattered"]);
}

#[test]
fn calls_can_be_resumed() {
    let sections = "--sections=size,reply,fan-out,kinds,tasks,upgrade";
    check(&["calls", "--sizes=0,1000", "--fan-out=1,3", "--states=50", sections]);
}

#[test]
fn mix_can_be_resumed() {
    let operations = ["--insert=3", "--read=2", "--update=2", "--delete=1", "--scan=1"];
    let size = ["--rows=300", "--indexes=2", "--messages=5"];
    check(&[&["mix"][..], &operations, &size].concat());
    let reads = ["mix", "--insert=0", "--read=4", "--scan=2", "--rows=300", "--at=end"];
    check(&[&reads[..], &["--engines=btree,sqlite,sqlite-vfs,doltlite"]].concat());
}

#[test]
fn sql_can_be_resumed() {
    check(&["sql", "--builtin=ycsb-a", "--builtin=ycsb-d", "--transactions=30", "--per-message=4"]);
}

#[test]
fn vfs_can_be_resumed() {
    check(&["vfs", "--rows=200", "--sizes=1,50"]);
}

/// No suite has a thousandth part of its fixtures, so each prepares its run, and nothing is measured.
#[test]
fn run_all_runs_every_suite() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["run", "all", "--shard=1000/1000", "--out=all"];
    let output = stablebench(&args, directory.path());
    let notes = stderr(&output);
    assert!(output.status.success(), "{notes}");
    let listed = stdout(&stablebench(&["list"], directory.path()));
    let suites = listed.lines().filter_map(|line| line.split(' ').next());
    let mut seen = 0;
    for suite in suites.filter(|suite| !["history", "builds"].contains(suite)) {
        assert!(notes.contains(&format!("run {suite}\n")), "{suite}: {notes}");
        seen += 1;
    }
    assert!(seen > 7, "{listed}");
}

/// Parts that do not make a run are refused with the next step, and nothing is written.
#[test]
fn parts_of_different_runs_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let suite = ["cuckoo"];
    let small = ["--num=128", "--lookups=20", "--keys=scattered", "--engines=cuckoo,array"];
    let shards = ["1/2", "2/2", "2/3"];
    for (shard, name) in shards.into_iter().zip(["one.json", "two.json", "third.json"]) {
        run(&suite, name, &[&small[..], &["--shard", shard]].concat(), directory);
    }
    run(&suite, "whole.json", &small, directory);
    let change = |from: &str, to: &str, change: &dyn Fn(&mut Value)| {
        let text = fs::read_to_string(directory.join(from)).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        change(&mut value);
        fs::write(directory.join(to), value.to_string()).unwrap();
    };
    let cut = |value: &mut Value| drop(value["cases"].as_array_mut().unwrap().pop());
    let unfilled = |value: &mut Value| drop(value["fixtures"].as_array_mut().unwrap().pop());
    change("two.json", "cut.json", &cut);
    change("two.json", "unfilled.json", &unfilled);
    change("two.json", "other.json", &|value| value["canisters"][0]["sha256"] = json!("00"));
    change("two.json", "older.json", &|value| value["stablebench"] = json!("0.0.1"));
    change("two.json", "more.json", &|value| {
        let more = value["cases"][0].clone();
        let cases = value["cases"].as_array_mut().unwrap();
        cases.push(more);
        cases.last_mut().unwrap()["name"] = json!("nothing");
    });
    change("two.json", "renamed.json", &|value| value["cases"][0]["name"] = json!("nothing"));
    let typed = |command: &str| {
        let command = command.to_owned();
        move |value: &mut Value| value["command"] = json!(command)
    };
    change("two.json", "unknown.json", &typed("stablebench run cuckoo --new=1 --shard 2/2"));
    change(
        "two.json",
        "seeded.json",
        &typed("stablebench run cuckoo --seed 2 --shard 2/2 --rules 2026-10"),
    );
    change("two.json", "odd.json", &typed("stablebench run cuckoo --shard"));

    let mut printed = String::new();
    for files in [
        &["one.json"][..],
        &["third.json"],
        &["one.json", "one.json", "two.json"],
        &["one.json", "third.json"],
        &["one.json", "whole.json"],
        &["one.json", "cut.json"],
        &["one.json", "unfilled.json"],
        &["one.json", "other.json"],
        &["one.json", "older.json"],
        &["one.json", "more.json"],
        &["one.json", "renamed.json"],
        &["one.json", "unknown.json"],
        &["one.json", "seeded.json"],
        &["one.json", "odd.json"],
        &["one.json", "missing.json"],
    ] {
        let output = merge(files, directory);
        assert_eq!(output.status.code(), Some(2), "{files:?}");
        printed += &format!("merge {}\n{}\n", files.join(" "), stderr(&output));
    }
    assert!(!directory.join("joined.json").exists());
    let output = stablebench(&["merge", "one.json", "two.json", "--out=one.json"], directory);
    printed += &format!("merge --out=one.json\n{}", stderr(&output));
    let output = stablebench(&["run", "sysbench", "--shard=1/2", "--max-ratio=2"], directory);
    printed += &format!("\nwith a ceiling\n{}", stderr(&output));
    let one = fs::read_to_string(directory.join("one.json")).unwrap();
    let one: Value = serde_json::from_str(&one).unwrap();
    let printed = printed.replace(one["canisters"][0]["sha256"].as_str().unwrap(), "HASH");
    insta::assert_snapshot!(printed, @"
    merge one.json
    stablebench: the file of shard 2/2 is missing

    merge third.json
    stablebench: the file of shard 1/3, of 3/3 is missing

    merge one.json one.json two.json
    stablebench: one.json and one.json are both shard 1/2

    merge one.json third.json
    stablebench: one.json and third.json are not shards of one run, because their number of shards differs:
      2
      3

    merge one.json whole.json
    stablebench: whole.json is not a shard: its command has no --shard, stablebench run cuckoo --num 128 --lookups 20 --keys scattered --engines cuckoo,array --rules 2026-10

    merge one.json cut.json
    stablebench: cut.json is not complete; finish shard 2/2 first:
      stablebench run cuckoo --num 128 --lookups 20 --keys scattered --engines cuckoo,array --shard 2/2 --rules 2026-10 --out cut.json --resume

    merge one.json unfilled.json
    stablebench: unfilled.json is not complete; finish shard 2/2 first:
      stablebench run cuckoo --num 128 --lookups 20 --keys scattered --engines cuckoo,array --shard 2/2 --rules 2026-10 --out unfilled.json --resume

    merge one.json other.json
    stablebench: one.json and other.json are not shards of one run, because their canister bench differs:
      HASH
      00

    merge one.json older.json
    stablebench: one.json and older.json are not shards of one run, because their stablebench differs:
      0.1.0
      0.0.1

    merge one.json more.json
    stablebench: more.json contains more than shard 2/2 measures: 13 cases of 4 fixtures instead of 12 of 4

    merge one.json renamed.json
    stablebench: renamed.json is not complete; finish shard 2/2 first:
      stablebench run cuckoo --num 128 --lookups 20 --keys scattered --engines cuckoo,array --shard 2/2 --rules 2026-10 --out renamed.json --resume

    merge one.json unknown.json
    stablebench: unknown.json cannot be merged, because this stablebench does not understand its command, stablebench run cuckoo --new=1 --shard 2/2: the suite cuckoo does not have that option: unexpected argument '--new' found

    merge one.json seeded.json
    stablebench: one.json and seeded.json are not shards of one run, because their command differs:
      stablebench run cuckoo --num 128 --lookups 20 --keys scattered --engines cuckoo,array --rules 2026-10
      stablebench run cuckoo --seed 2 --rules 2026-10

    merge one.json odd.json
    stablebench: odd.json: a shard is I/N, with I from 1 to N and N up to 1000, such as 2/3

    merge one.json missing.json
    stablebench: cannot read results from missing.json: No such file or directory (os error 2)

    merge --out=one.json
    stablebench: one.json is one of the shards; choose another --out

    with a ceiling
    stablebench: a shard has only some of the configurations that ceilings compare; join the shards with `stablebench merge`, and check the whole with `stablebench compare FILE --configurations A B`, which has --max-ratio and --max-average
    ");
    let output = merge(&["two.json", "one.json"], directory);
    assert!(output.status.success(), "{}", stderr(&output));

    // One part more than there are fixtures.
    let text = fs::read_to_string(directory.join("whole.json")).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let of = whole["fixtures"].as_array().unwrap().len() + 1;
    let files: Vec<String> = (1..=of).map(|number| format!("{number}.json")).collect();
    for (file, number) in files.iter().zip(1..) {
        let shard = format!("--shard={number}/{of}");
        let (_, _, notes) = run(&suite, file, &[&small[..], &[&shard]].concat(), directory);
        assert_eq!(notes.contains("has nothing to measure"), number == of, "{notes}");
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let output = merge(&files, directory);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read_to_string(directory.join("joined.json")).unwrap() == text);
}

/// Returns the exit code, stdout and stderr.
fn outcome(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = stablebench(arguments, directory);
    (output.status.code().unwrap(), stdout(&output), stderr(&output))
}

/// Writes the published figures to a file with a change of the first case: `btree`,
/// `middle 1`, 49 359 instructions.
fn changed(directory: &Path, name: &str, change: impl Fn(&mut Value)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("suites/users/published.json")).unwrap();
    let mut results: Value = serde_json::from_str(&text).unwrap();
    change(&mut results["cases"][0]);
    fs::write(directory.join(name), results.to_string()).unwrap();
}

fn instructions(case: &mut Value, instructions: u64) {
    case["outcome"]["measured"]["instructions"] = instructions.into();
}

#[test]
fn the_exit_code_is_1_beyond_a_threshold() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    changed(at, "same.json", |_| {});
    // 1.5 times 49 360.
    changed(at, "base.json", |case| instructions(case, 49_360));
    changed(at, "slower.json", |case| instructions(case, 74_040));
    changed(at, "failed.json", |case| {
        case["outcome"] = json!({"failed": {"reason": "it trapped"}});
    });
    changed(at, "other.json", |case| case["rows"] = 7.into());
    for (code, arguments, expected) in [
        (
            0,
            &["published:users", "same.json"][..],
            "40 values compared, 0 differ by more than 0 %\n",
        ),
        (1, &["base.json", "slower.json"], "Differ by more than 0 %"),
        (0, &["base.json", "slower.json", "--threshold=50%"], "0 differ by more than 50 %"),
        (1, &["base.json", "slower.json", "--threshold=49.9%"], "insert: middle 1, btree: instr"),
        (0, &["base.json", "slower.json", "--max-ratio=1.5"], "0 above 1.500×"),
        (1, &["base.json", "slower.json", "--max-ratio=1.49"], "Above the largest ratio, 1.490×"),
        // (1.5 + 19) / 20.
        (0, &["base.json", "slower.json", "--max-average=1.025"], "0 sections above 1.025×"),
        (1, &["base.json", "slower.json", "--max-average=1.024"], "Sections above the largest av"),
        (1, &["base.json", "failed.json", "--max-ratio=99"], "failed: it trapped"),
        (0, &["base.json", "--configurations", "btree", "sqlite/off"], "arithmetic average"),
        (
            1,
            &["base.json", "--configurations", "btree", "sqlite/off", "--max-ratio=3"],
            "middle 1 ",
        ),
    ] {
        let (was, printed, error) = outcome(at, &[&["compare"], arguments].concat());
        assert_eq!((was, error.as_str()), (code, ""), "{arguments:?}\n{printed}");
        assert!(printed.contains(expected), "{arguments:?}\n{printed}");
    }
    for (arguments, expected) in [
        (&["base.json", "other.json"][..], "is about 100 000 rows of 100 bytes (warm) in one"),
        (&["base.json", "missing.json"], "cannot read results from missing.json"),
        (&["published:nothing", "base.json"], "there are no published figures nothing"),
        (&["base.json", "--configurations", "btree", "array"], "have no configuration array"),
        (&["base.json"], "required arguments were not provided"),
    ] {
        let (was, printed, error) = outcome(at, &[&["compare"], arguments].concat());
        assert_eq!((was, printed.as_str()), (2, ""), "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}\n{error}");
    }
}

#[test]
fn a_comparison_in_every_format() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    changed(at, "base.json", |case| instructions(case, 49_360));
    changed(at, "slower.json", |case| instructions(case, 74_040));
    let print = |format: &str| {
        let arguments =
            ["compare", "base.json", "slower.json", "--max-ratio=1.05", "--format", format];
        let (code, printed, _) = outcome(at, &arguments);
        assert_eq!(code, 1);
        printed
    };
    insta::assert_snapshot!(print("table") + "\n" + &print("markdown"));
    let csv = print("csv");
    assert!(csv.contains("case,insert,middle 1,btree,btree,instructions,49360,74040,1.5,\n"));
    assert!(csv.contains("above_ratio,,\"insert: middle 1, btree\",,,,49 360,74 040,1.5,\n"));
    let json: Value = serde_json::from_str(&print("json")).unwrap();
    assert_eq!(json["rows"][0]["ratio"], 1.5);
    assert_eq!(json["failures"][0]["name"], "insert: middle 1, btree");
}

#[test]
fn saved_results_are_printed_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let (code, csv, _) = outcome(at, &["report", "published:users", "--format=csv"]);
    assert_eq!((code, csv.lines().count()), (0, 1 + 20));
    assert!(csv.contains("\ninsert,middle 1,btree,100000,100,warm,measured,,49359,1,"), "{csv}");
    let (code, printed, _) =
        outcome(at, &["report", "published:users", "--format=csv", "-o", "out.csv"]);
    assert_eq!((code, printed.as_str()), (0, ""));
    assert_eq!(fs::read_to_string(at.join("out.csv")).unwrap(), csv);
    let (code, _, error) = outcome(at, &["report", "published:users", "missing.json"]);
    assert_eq!(code, 2);
    assert!(error.contains("cannot read results from missing.json"), "{error}");
}
