//! The embedded replica against recordings of a PocketIC server.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use stablebench_conformance::{Embedded, Outcome, Target, hold, read, write};
use stablebench_replica::Rules;

mod profiled;

fn recorded_file(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file)
}

/// Holds the embedded replica to a file, under the rules of its folder.
fn check(file: &str, calls: usize) {
    let (rules, _) = file.split_once('/').unwrap();
    check_on(&mut Embedded::new(rules.parse().unwrap()).unwrap(), file, calls);
}

fn check_on(target: &mut dyn Target, file: &str, calls: usize) {
    let mut outcome = Outcome::default();
    hold(target, &recorded_file(file), &mut outcome, |_| {}).unwrap();
    let listed: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{}", listed.join("\n"));
    assert_eq!(outcome.passed, calls, "the file holds as many calls");
}

#[test]
fn modules() {
    check("2025-10/modules.json", 58);
    check("2026-08/modules.json", 57);
}

/// The call that uses an operator whose price the recording server had for one day. Under
/// today's rules it costs 54 more each of nine times.
#[test]
fn the_price_that_was_taken_back() {
    let file = "2026-08-recorded/modules.json";
    check(file, 1);
    let mut outcome = Outcome::default();
    let mut today = Embedded::new(Rules::of_2026_08()).unwrap();
    hold(&mut today, &recorded_file(file), &mut outcome, |_| {}).unwrap();
    let [difference] = &outcome.differences[..] else { panic!("{:?}", outcome.differences) };
    let cycles = |text: &str| -> u64 {
        let (_, cycles) = text.split_once(" for ").unwrap();
        cycles.trim_end_matches(" cycles").parse().unwrap()
    };
    assert_eq!(cycles(&difference.got) - cycles(&difference.expected), 9 * (60 - 6));
}

#[test]
fn random() {
    check("2025-10/random.json.gz", 80);
    check("2026-08/random.json.gz", 80);
}

#[test]
fn edges() {
    check("2025-10/edges.json.gz", 81);
    check("2026-08/edges.json.gz", 81);
}

#[test]
fn pages() {
    check("2026-08/pages.json.gz", 243);
}

/// The one open rule the other way.
#[test]
fn pages_of_first_reads() {
    check("2026-08-first-reads/pages.json.gz", 243);
}

#[test]
fn calls() {
    check("2025-10/calls.json.gz", 88);
}

#[test]
fn limits() {
    check("2025-10/limits.json.gz", 90);
}

#[test]
fn generated_modules() {
    check("2025-10/generated-modules.json.gz", 521);
}

#[test]
fn generated_random() {
    check("2025-10/generated-random.json.gz", 300);
}

/// What a replica answered, a profiled message answers too.
#[test]
fn profiled_messages() {
    // `modules.json` takes its time, and is about operators.
    let mut replica = profiled::Profiled::new(Rules::of_2025_10());
    check_on(&mut replica, "2025-10/random.json.gz", 80);
    check_on(&mut replica, "2025-10/calls.json.gz", 88);
    let mut replica = profiled::Profiled::new(Rules::of_2026_08());
    check_on(&mut replica, "2026-08/random.json.gz", 80);
    check_on(&mut replica, "2026-08/pages.json.gz", 243);
}

#[test]
fn users() {
    check("2025-10/users.json", 138);
    check("2026-08/users.json", 138);
}

fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    match path.extension().unwrap().to_str().unwrap() {
        "gz" => flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text),
        _ => bytes.as_slice().read_to_string(&mut text),
    }
    .unwrap();
    text
}

#[test]
fn a_file_that_is_read_and_written_is_the_same_text() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "2025-10/modules.json",
        "2025-10/random.json.gz",
        "2025-10/edges.json.gz",
        "2025-10/generated-modules.json.gz",
        "2025-10/generated-random.json.gz",
        "2025-10/users.json",
    ] {
        let cases = read(&recorded_file(name)).unwrap();
        let copy = folder.path().join(name.trim_start_matches("2025-10/"));
        write(&copy, &cases).unwrap();
        assert!(text(&recorded_file(name)) == text(&copy), "{name} has changed");
        assert_eq!(read(&copy).unwrap(), cases);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6, "nothing temporary is left");
}

#[test]
fn what_is_no_case_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.json");
    for (text, told) in [
        (r#"[{"name": "a", "group": "b", "calls": []}]"#, "needs a wat or a wasm"),
        (r#"[{"name": "a", "group": "b", "wat": "", "extra": 1, "calls": []}]"#, "extra"),
        (
            r#"[{"name": "a", "group": "b", "wat": "",
                "calls": [{"method": "m", "kind": "update", "arg": "0x"}]}]"#,
            "no hex digit",
        ),
        (
            r#"[{"name": "a", "group": "b", "wat": "", "calls": [{"method": "m", "kind": "query",
                "arg": "", "expect": {"reply": {"hex": "", "cycles": 1}}}]}]"#,
            "cycles",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("cases.json"), "{error}");
    }
}
