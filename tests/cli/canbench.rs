//! `stablebench canbench` on a project: its output, its files, and refused projects.
//! The project is `tests/canbench`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;

use serde_json::Value;
use stablebench_replica::{Principal, Readings, Replica, Rules};
use tempfile::TempDir;

use crate::{command, stdout};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/canbench")
}

/// The project's module, built with the command in its canbench.yml.
static MODULE: LazyLock<PathBuf> = LazyLock::new(|| {
    succeeds(&["grow"], &folder());
    folder().join(
        "../../target/canbench/wasm32-unknown-unknown/canister/stablebench_canbench_project.wasm",
    )
});

fn run(args: &[&str], directory: &Path) -> Output {
    command(&[&["canbench"], args].concat(), directory).output().unwrap()
}

#[track_caller]
fn succeeds(args: &[&str], directory: &Path) -> Output {
    crate::succeeds(&[&["canbench"], args].concat(), directory)
}

/// Returns the notes, without the steps that take longer than a second on a slow machine only.
fn stderr(output: &Output) -> String {
    let notes = super::stderr(output);
    let is_progress =
        |line: &str| line.starts_with("compiling ") || line.starts_with("by the rules ");
    notes.split_inclusive('\n').filter(|line| !is_progress(line)).collect()
}

/// Returns a folder with the built project, and `more` in its canbench.yml.
fn project(more: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in ["memory.bin", "variables.csv", "canbench_results.yml"] {
        fs::copy(folder().join(file), directory.path().join(file)).unwrap();
    }
    let wasm = MODULE.display();
    let config = format!(
        "wasm_path: {wasm}\n\
         init_args:\n  hex: 4449444c0001710966726f6d20696e6974\n\
         stable_memory:\n  file: memory.bin\n\
         env_vars:\n  file: variables.csv\n{more}"
    );
    fs::write(directory.path().join("canbench.yml"), config).unwrap();
    directory
}

#[test]
fn benchmarks_are_printed_as_canbench_prints_them() {
    let project = project("");
    let mut printed = String::new();
    for args in [
        &["insert"][..],
        &["insert", "--rules=2025-10", "--less-verbose", "--show-summary"],
        &["read", "--less-verbose"],
        &["insert", "--rules=2025-10,2026-10", "--hide-results", "--less-verbose"],
        &["scopes", "--noise-threshold=50"],
        &["insert", "--format=markdown", "--rules=2026-10,2025-10"],
    ] {
        let text = stdout(&succeeds(args, project.path()));
        let one = succeeds(&[args, &["--jobs=1", "--no-cache"]].concat(), project.path());
        assert_eq!(stdout(&one).replace(" --jobs=1 --no-cache", ""), text, "one after the other");
        printed += &format!("$ stablebench canbench {}\n{text}\n", args.join(" "));
    }
    insta::assert_snapshot!(printed);
}

/// The file that `--csv` writes.
const CSV: &str = "\
status,name,scope_calls,scope_calls Δ,scope_calls Δ%,instructions,instructions Δ,instructions Δ%,\
heap_increase,heap_increase Δ,heap_increase Δ%,stable_memory_increase,stable_memory_increase Δ,stable_memory_increase Δ%
new,insert,,,,34920502,,,0,,,1,,
new,insert_in_scopes,,,,198740,,,0,,,0,,
new,insert_in_scopes::first,1,,,28270,,,0,,,0,,
new,insert_in_scopes::others,5,,,165996,,,0,,,0,,
new,insert_into_1_000,,,,439877,,,0,,,0,,
";

#[test]
fn results_are_saved_and_compared() {
    let project = project("results_path: kept/results.yml\ncsv_results_path: results.csv\n");
    let at = |name: &str| project.path().join(name);
    let output = succeeds(&["insert", "--persist", "--csv"], project.path());
    let end = "CSV results saved to results.csv\n\
               Successfully persisted results to kept/results.yml\n";
    assert!(stdout(&output).ends_with(end), "{}", stdout(&output));
    let kept = |name| fs::read_to_string(at(name)).unwrap();
    assert_eq!(
        kept("kept/results.yml"),
        kept("canbench_results.yml"),
        "the project keeps the same"
    );
    assert_eq!(kept("results.csv"), CSV);

    let again = succeeds(&["insert", "--fail-on-regression"], project.path());
    // Two of three have setup.
    let notes = stderr(&again);
    assert!(notes.lines().all(|line| line.contains(": setup has touched Wasm pages, ")), "{notes}");
    assert_eq!(notes.lines().count(), 2, "{notes}");
    assert_eq!(stdout(&again).matches("status:   No significant changes").count(), 3);

    let text = kept("kept/results.yml");
    let fewer = text.replacen("instructions: ", "instructions: 0 # ", 1);
    assert_ne!(fewer, text);
    fs::write(at("other.yml"), fewer).unwrap();
    let other = ["insert", "--compare=other.yml"];
    let worse = run(&[&other[..], &["--fail-on-regression"]].concat(), project.path());
    assert_eq!(worse.status.code(), Some(1));
    assert!(stdout(&worse).contains("(regressed from 0)"), "{}", stdout(&worse));
    assert!(run(&other, project.path()).status.success(), "it is no failure unless asked for");

    // Other rules than those of the file.
    let output = run(&["insert", "--rules=2025-10"], project.path());
    let notes = stderr(&output);
    assert!(
        notes.contains("this is counted by 2025-10 (as canbench 0.7 counts): changes include"),
        "{notes}"
    );
    // Another set of benchmarks.
    let output = run(&["read", "--persist"], project.path());
    let notes = stderr(&output);
    assert!(notes.contains("3 benchmarks that did not run are no longer in"), "{notes}");
}

#[test]
fn json_contains_everything() {
    let project = project("build_cmd: echo building\n");
    let args = ["insert", "--format=json", "--rules=2026-10,2025-10", "--persist"];
    let output = succeeds(&args, project.path());
    assert!(stderr(&output).contains("building") && stderr(&output).contains("persisted"));
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let (runs, summary) = (&document["runs"], &document["summary"]["instructions"]);
    assert_eq!((&runs[0]["rules"], &runs[1]["rules"]), (&"2026-10".into(), &"2025-10".into()));
    assert_eq!((&summary["total"], &summary["unchanged"]), (&3.into(), &3.into()));
    let benches = runs[0]["benches"].as_array().unwrap();
    for bench in benches {
        assert_eq!(bench["total"], bench["before"]["total"]);
        let (cost, own) = (&bench["cost"], bench["total"]["instructions"].as_u64().unwrap());
        let message = cost["message_instructions"].as_u64().unwrap();
        assert!(message > own, "{bench}");
        // 5 M for execution, 1.2 M and 2 000 a byte for the message.
        let cycles = cost["message_cycles_as_update"].as_u64().unwrap();
        assert!((6_200_000..7_000_000).contains(&(cycles - message)), "{bench}");
        let pages = &cost["wasm_pages_touched"];
        let pages = [&pages["heap"], &pages["stable"]].map(|pages| pages.as_u64().unwrap());
        assert!(pages.iter().sum::<u64>() * 80_000 < own, "{bench}");
    }
    assert_eq!(benches[0]["cost"]["wasm_pages_touched"]["stable"], 1);
    assert!(runs[1]["benches"][0]["cost"]["wasm_pages_touched"].is_null());
}

#[test]
fn a_failing_benchmark_ends_the_run_with_the_replicas_message() {
    let project = project("");
    for (name, expected) in [
        (
            "fails_by_a_trap",
            "IC0503: Error from Canister lxzze-o7777-77777-aaaaa-cai: Canister called \
                  `ic0.trap` with message: ",
        ),
        (
            "fails_silently",
            "IC0506: Canister lxzze-o7777-77777-aaaaa-cai did not produce a response\n",
        ),
        (
            "fails_at_the_limit_of_stable_memory",
            "IC0524: Error from Canister lxzze-o7777-77777-aaaaa-cai: Canister exceeded \
                   memory access limits: Exceeded the limit for the number of accessed pages",
        ),
        (
            "fails_in_a_call",
            "IC0504: Error from Canister lxzze-o7777-77777-aaaaa-cai: Canister \
                   violated contract: \"ic0_call_new\" cannot be executed in non replicated query \
                   mode",
        ),
    ] {
        let output = run(&[name, "--persist"], project.path());
        let notes = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{notes}");
        let expected = format!("Error executing benchmark {name}. Error:\n{expected}");
        assert!(notes.starts_with(&expected), "{notes}");
    }
    let output = run(&["as_a_benchmark"], project.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is not that of a benchmark of canbench-rs"));
    // Nothing was written.
    let kept = |folder: &Path| fs::read(folder.join("canbench_results.yml")).unwrap();
    assert_eq!(kept(project.path()), kept(&folder()));
}

#[test]
fn the_canisters_output_is_shown_on_request() {
    let project = project("");
    let output = run(&["print", "--show-canister-output"], project.path());
    let id = "[Canister lxzze-o7777-77777-aaaaa-cai]";
    let expected = format!("{id} init was called\n{id} a line\n{id} another \\u{{1b}}[31mline\n");
    assert_eq!(stderr(&output), expected);
    let output = succeeds(
        &["print", "--runtime-path=/none", "--no-runtime-integrity-check"],
        project.path(),
    );
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}

#[test]
fn flame_graphs_contain_the_measured_instructions() {
    let project = project("results_path: kept.yml\n");
    let args = ["insert_into_1_000", "--instruction-tracing", "--persist"];
    let output = succeeds(&args, project.path());
    let text = stdout(&output);
    assert!(text.contains("\nInstruction traces written to insert_into_1_000.svg\n\n"), "{text}");
    let picture = fs::read_to_string(project.path().join("insert_into_1_000.svg")).unwrap();
    let kept = fs::read_to_string(project.path().join("kept.yml")).unwrap();
    let counted = kept.lines().find_map(|line| line.trim().strip_prefix("instructions: ")).unwrap();
    let digits: String = picture
        .split_once(" instructions · ")
        .map(|(before, _)| before.rsplit('>').next().unwrap())
        .unwrap()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    assert_eq!(digits, counted);
    assert!(picture.contains("btreemap"), "functions have names");
}

#[test]
fn a_run_that_can_find_nothing_is_refused() {
    let project = project("");
    let refused = |args: &[&str], expected: &str| {
        for args in [args.to_vec(), [args, &["--persist", "--jobs=1"]].concat()] {
            let output = run(&args, project.path());
            let notes = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {notes}");
            assert!(notes.starts_with(expected), "{args:?}: {notes}");
            assert_eq!((notes.lines().count(), stdout(&output).as_str()), (1, ""), "{args:?}");
        }
    };
    let closest =
        "stablebench: no benchmark has a name that contains insrt; the closest are insert, ";
    for gate in [&["insrt"][..], &["insrt", "--fail-on-regression"]] {
        refused(gate, closest);
    }
    refused(&["a\u{1b}[31m"], "stablebench: no benchmark has a name that contains a\\u{1b}[31m; ");
    // Benchmarks of which no result is kept cannot regress.
    let nothing = "stablebench: --fail-on-regression has nothing to compare: ";
    refused(
        &["print", "--fail-on-regression"],
        &format!("{nothing}canbench_results.yml contains none of the 1 benchmarks; "),
    );
    fs::write(project.path().join("other.yml"), "benches: {}\nversion: 0.7.0\n").unwrap();
    refused(&["insert", "--fail-on-regression", "--compare=other.yml"], nothing);
    let kept = |folder: &Path| fs::read(folder.join("canbench_results.yml")).unwrap();
    assert_eq!(kept(project.path()), kept(&folder()));

    let module = project.path().join("none.wasm");
    fs::write(&module, wat::parse_str("(module (memory 1))").unwrap()).unwrap();
    fs::write(project.path().join("canbench.yml"), "wasm_path: none.wasm").unwrap();
    refused(&[], "stablebench: the module exports no benchmarks; ");
}

#[derive(candid::CandidType, serde::Deserialize)]
struct Reply {
    total: Instructions,
}

#[derive(candid::CandidType, serde::Deserialize)]
struct Instructions {
    instructions: u64,
}

/// A page costs 80 000 instructions. All other instructions of the work are those of the same work in
/// a message after the setup, and so are its pages, but for those that any message touches first.
#[test]
fn separate_setup_counts_as_messages_of_their_own() {
    const PAGE: u64 = 80_000;
    /// The stack and static data, which a message touches before its benchmark begins.
    const OF_ANY_MESSAGE: u64 = 2;
    let project = project("");
    let json = |args: &[&str]| -> Value {
        let output = succeeds(&[args, &["ten_more", "--format=json"]].concat(), project.path());
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    let measured = |document: &Value| {
        let bench = &document["runs"][0]["benches"][0];
        let pages = &bench["cost"]["wasm_pages_touched"];
        let pages = ["heap", "stable"].map(|memory| pages[memory].as_u64().unwrap());
        (bench["total"]["instructions"].as_u64().unwrap(), pages)
    };
    let (shared, separate) = (json(&[]), json(&["--separate-setup"]));
    assert_eq!((&shared["setup"], &separate["setup"]), (&"shared".into(), &"separate".into()));
    let cost = |document: &Value| document["runs"][0]["benches"][0]["cost"].clone();
    for same in ["wasm_pages_touched_before", "message_instructions", "message_cycles_as_update"] {
        assert_eq!(cost(&shared)[same], cost(&separate)[same], "{same}");
    }

    let replica = Replica::new(Rules::today(), None).unwrap();
    let wasm = fs::read(&*MODULE).unwrap();
    let module = replica.compile_for_queries(&wasm).unwrap();
    let mut canister = replica.create_canister().unwrap();
    let (caller, argument) = (Principal::anonymous(), candid::encode_one("from init").unwrap());
    canister.install(&module, caller, &argument).unwrap().outcome.unwrap();
    canister.set_stable_memory(&fs::read(project.path().join("memory.bin")).unwrap()).unwrap();
    canister.update(caller, "set_up", &candid::encode_args(()).unwrap()).unwrap().outcome.unwrap();
    canister.report_readings(Readings::Reported);
    let argument = candid::encode_one(()).unwrap();
    let own = canister.query(caller, "__canbench__fails_unless_set_up", &argument).unwrap();
    let [from, to] = &own.readings[..] else { panic!("{:?}", own.readings) };
    let [from, to] = [from, to].map(|reading| reading.pages.touched.unwrap());
    let own_pages = [to.heap.get() - from.heap.get(), to.stable.get() - from.stable.get()];
    let reply: Reply = candid::decode_one(&own.outcome.unwrap()).unwrap();
    let own = reply.total.instructions;

    let ((shared, shared_pages), (separate, pages)) = (measured(&shared), measured(&separate));
    let without =
        |instructions: u64, [heap, stable]: [u64; 2]| instructions - (heap + stable) * PAGE;
    assert_eq!(without(separate, pages), without(shared, shared_pages));
    // In a message of its own the work finds the heap in another state.
    let (work, own_work) = (without(separate, pages), without(own, own_pages));
    assert!(work.abs_diff(own_work) < work / 100, "{work}, {own_work}");
    assert_eq!(pages[1], own_pages[1]);
    assert_eq!(pages[0], own_pages[0] + OF_ANY_MESSAGE);
    assert!(own > shared, "setup has touched pages of the work");
}

#[test]
fn pages_that_setup_has_touched_are_noted() {
    let project = project("");
    let notes = |args: &[&str]| {
        let output = succeeds(args, project.path());
        stderr(&output)
    };
    let note = notes(&["ten_more", "--hide-results"]);
    let end = "of stable memory, which are free for what is measured; --separate-setup charges them \
               again\n";
    assert!(note.starts_with("ten_more: setup has touched Wasm pages, "), "{note}");
    assert!(note.ends_with(end) && note.lines().count() == 1, "{note}");
    let older = notes(&["ten_more", "--rules=2025-10", "--hide-results"]);
    assert!(older.contains("ten_more: setup has paid "), "{older}");
    // There is no setup, or it is separate.
    for args in [&["grow"][..], &["print"], &["ten_more", "--separate-setup"]] {
        assert!(!notes(args).contains("setup has"), "{args:?}");
    }
}

#[test]
fn results_tell_that_setup_was_separate() {
    let project = project("results_path: kept.yml\n");
    let separate = ["insert", "--separate-setup", "--rules=2026-10,2025-10"];
    let output = run(&[&separate[..], &["--persist"]].concat(), project.path());
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    let title = "Costs by the rules 2026-10 (as the network counts today) and 2025-10 (as canbench 0.7 \
                 counts), setup in a message before:";
    assert!(stdout(&output).contains(title), "{}", stdout(&output));
    let kept = fs::read_to_string(project.path().join("kept.yml")).unwrap();
    assert!(kept.ends_with("version: 0.7.0\n# setup: separate\n# rules: 2026-10\n"), "{kept}");
    let again = run(&[&separate[..], &["--format=markdown"]].concat(), project.path());
    let text = stdout(&again);
    assert!(stderr(&again).is_empty(), "{}", stderr(&again));
    assert!(
        text.contains("2025-10 (as canbench 0.7 counts), setup in a message before\n"),
        "{text}"
    );
    assert!(
        text.contains("(as the network counts today), setup in a message before; changes below"),
        "{text}"
    );

    let other = run(&["insert"], project.path());
    let note = "kept.yml was counted with --separate-setup, this is not: changes include pages";
    assert!(stderr(&other).contains(note), "{}", stderr(&other));
    fs::copy(folder().join("canbench_results.yml"), project.path().join("kept.yml")).unwrap();
    let other = run(&["insert", "--separate-setup"], project.path());
    assert!(stderr(&other).contains("kept.yml was counted without --separate-setup: "));

    // The flame graph is that of the same instructions.
    let traced = ["ten_more", "--separate-setup", "--instruction-tracing"];
    succeeds(&traced, project.path());

    let output = run(&["several_measurements", "--separate-setup"], project.path());
    assert_eq!(output.status.code(), Some(1));
    let why =
        "the setup of several_measurements cannot be separated: its result is not the difference";
    assert!(stderr(&output).contains(why), "{}", stderr(&output));
    let output = run(&["insert", "--separate-setup", "--csv"], project.path());
    assert_eq!(output.status.code(), Some(2));
}

#[derive(candid::CandidType)]
struct Answer {
    total: Total,
}

/// A reply of the first versions of canbench-rs.
#[derive(candid::CandidType)]
struct Total {
    instructions: u64,
}

/// Saves a project whose module has benchmarks with these names, each of 7 instructions.
pub fn with_benchmarks(names: &[&str], folder: &Path) {
    with_working_benchmarks(names, "", folder);
}

/// The same, with work that each benchmark does before its reply.
fn with_working_benchmarks(names: &[&str], work: &str, folder: &Path) {
    let escaped =
        |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
    let answer = candid::encode_one(Answer { total: Total { instructions: 7 } }).unwrap();
    let exports: String = names
        .iter()
        .map(|name| format!("(export \"canister_query __canbench__{}\")", escaped(name.as_bytes())))
        .collect();
    // A heartbeat never runs.
    let wasm = wat::parse_str(format!(
        r#"(module
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (import "ic0" "data_certificate_size" (func $certificate (result i32)))
            (memory 1)
            (data (i32.const 0) "{}")
            (func (export "canister_heartbeat") unreachable)
            (func {exports}
                {work}
                (call $append (i32.const 0) (i32.const {}))
                (call $reply)))"#,
        escaped(&answer),
        answer.len()
    ));
    fs::write(folder.join("names.wasm"), wasm.unwrap()).unwrap();
    fs::write(folder.join("canbench.yml"), "wasm_path: names.wasm").unwrap();
}

#[test]
fn benchmarks_read_data_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let work = "(if (i32.lt_u (call $certificate) (i32.const 100)) (then unreachable))";
    with_working_benchmarks(&["tip"], work, folder.path());
    succeeds(&[], folder.path());
}

/// 300 bytes and more, of which file systems accept 255.
#[test]
fn benchmarks_with_long_names_have_a_flame_graph_each() {
    let folder = tempfile::tempdir().unwrap();
    let (long, wide) = ("insert_".repeat(50), "größe_".repeat(60));
    let names = ["short", "a b", "a/b", &long, &(long.clone() + "again"), &wide];
    with_benchmarks(&names, folder.path());
    succeeds(&["--instruction-tracing"], folder.path());
    let files = crate::files(folder.path());
    let pictures = files.iter().filter(|path| path.extension() == Some("svg".as_ref()));
    assert_eq!(pictures.count(), names.len(), "{files:?}");
    assert!(folder.path().join("short.svg").exists());
}

#[test]
fn no_output_contains_characters_that_control_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a\u{202e}b\u{9b}31m\u{200b}\u{e0041}";
    with_benchmarks(&[name], folder.path());
    let steers = |char: char| {
        (char.is_control() && char != '\n') || ['\u{202e}', '\u{200b}', '\u{e0041}'].contains(&char)
    };
    for format in ["text", "markdown", "json"] {
        let args =
            [&format!("--format={format}"), "--csv", "--show-costs", "--instruction-tracing"];
        let output = run(&args, folder.path());
        for text in [stdout(&output), stderr(&output)] {
            assert!(!text.contains(steers), "{format}: {text:?}");
        }
        if format == "json" {
            // Programs get the name as it is.
            let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
            assert_eq!(document["runs"][0]["benches"][0]["name"], name);
        }
    }
    for file in crate::files(folder.path()) {
        if [Some("csv".as_ref()), Some("svg".as_ref())].contains(&file.extension()) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.contains(steers), "{}: {text:?}", file.display());
        }
    }
}

#[test]
fn names_of_benchmarks_are_not_paths() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("a/b");
    fs::create_dir_all(&inside).unwrap();
    with_benchmarks(&["../../up\u{1b}[31m"], &inside);
    let output = succeeds(&["--instruction-tracing", "--persist"], &inside);
    let text = stdout(&output);
    assert!(text.contains("Benchmark: ../../up\\u{1b}[31m (new)\n"), "{text}");
    assert!(text.contains("    instructions: 7 (new)\n") && !text.contains('\u{1b}'), "{text}");
    let (_, file) = text.split_once("Instruction traces written to ").unwrap();
    let file = file.lines().next().unwrap();
    assert!(file.starts_with(".._.._up__31m-") && file.ends_with(".svg"), "{text}");
    let picture = fs::read_to_string(inside.join(file)).unwrap();
    assert!(!picture.contains('\u{1b}') && picture.contains("up\\u{1b}[31m (the whole message)"));
    let written = fs::read_dir(&inside).unwrap().count();
    assert_eq!((written, fs::read_dir(folder.path().join("a")).unwrap().count()), (4, 1));
    let again = run(&["--fail-on-regression"], &inside);
    assert!(again.status.success() && stdout(&again).contains("7 (no change)"));
}

#[test]
fn mistakes_end_in_one_message() {
    let project = project("");
    let path = project.path();
    let refused = |args: &[&str], expected: &str| {
        let output = run(args, path);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{expected}: {}", stderr(&output));
    };
    let config = fs::read_to_string(path.join("canbench.yml")).unwrap();
    let with = |text: &str| fs::write(path.join("canbench.yml"), text).unwrap();
    refused(&["--compare=none.yml"], "there are no results in none.yml");
    refused(&["--rules=2025-10,2025-10"], "--rules names 2025-10 twice");

    with(&config.replace("4449", "444x"));
    refused(&[], "at line 3 column 3");
    with(&config.replace("4449", "0000"));
    refused(&["read"], "the canister cannot be installed");
    with(&config.replace("memory.bin", "other.bin"));
    refused(&[], "Error reading stable memory file other.bin\nError: No such file or directory");
    with(&config.replace("variables.csv", "memory.bin"));
    refused(&[], "Invalid line in environment variables file memory.bin: 'kept in stable memory'");
    with("wasm_path: none.wasm");
    refused(&[], "Couldn't read file at none.wasm. Are you sure the file exists?\n");
    with("build_cmd: exit 3\nwasm_path: none.wasm");
    refused(&[], "build_cmd failed (exit status: 3): exit 3");
    with("wasm_path: canbench.yml");
    refused(&[], "the module cannot be read");
    with(&config);
    fs::write(path.join("canbench_results.yml"), "benches: {}\nversion: 99.0.0\n").unwrap();
    refused(
        &[],
        "while the results were generated with version 99.0.0. Please upgrade canbench.\n",
    );
    fs::write(path.join("canbench_results.yml"), "benches:\n  a: 7\nversion: 0.7.0\n").unwrap();
    refused(&[], "cannot read the results in canbench_results.yml\nbenches.a: ");

    let empty = tempfile::tempdir().unwrap();
    let output = run(&[], empty.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("configuration file not found: 'canbench.yml'\n"));
    let mut named = command(&["canbench", "nothing-is-called-so"], empty.path());
    named.env("CANBENCH_CFG_FILE", path.join("canbench.yml"));
    let output = named.output().unwrap();
    assert!(stderr(&output).contains("Error reading stable memory file memory.bin"));
}
