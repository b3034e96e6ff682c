//! Runs of the suite vfs: every case of both libraries, and the printed tables.

use std::path::Path;

use serde_json::Value;

use super::{stablebench, stderr, stdout};

const SMALL: &[&str] = &["run", "vfs", "--rows=300", "--sizes=1,100,300", "--no-wall-time"];

const COLUMNS: [&str; 5] = [
    "sqlite-vfs",
    "sqlite/memory,page_size=16384,cache_size=-32768",
    "sqlite-vfs,page_size=4096",
    "sqlite/memory,cache_size=-32768",
    "sqlite/persist",
];

fn run(options: &[&str], directory: &Path) -> Value {
    let output = stablebench(&[SMALL, &["--format=json"], options].concat(), directory);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn every_case_is_measured_in_every_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let results = run(&["--jobs=1"], directory.path());
    assert_eq!(results, run(&["--jobs=3"], directory.path()), "two runs differ");
    let cases = results["cases"].as_array().unwrap();
    // Eight published cases; writes, warm and cold, of two sizes; reads of three kinds.
    let equal = 8 + 2 * (3 * 2 + 2) + 3 * 3 * 2;
    assert_eq!(cases.len(), 8 * 2 + equal * COLUMNS.len());
    for case in cases {
        let measured = &case["outcome"]["measured"];
        let instructions = measured["instructions"].as_u64().unwrap_or_else(|| panic!("{case}"));
        let phases = measured["phases"].as_array().unwrap();
        let sum = |key: &str| phases.iter().map(|phase| phase[key].as_u64().unwrap()).sum::<u64>();
        let readings = sum("times") * 1_000 + 2_000;
        // Pages that the message touches before the work do not belong to any phase.
        let pages = &measured["detail"]["pages"];
        let pages = pages["heap"].as_u64().unwrap() + pages["stable"].as_u64().unwrap();
        let in_phases = sum("instructions");
        assert!(
            in_phases < instructions + readings && in_phases + pages + readings > instructions,
            "{case}"
        );
        let cold = case["name"].as_str().unwrap().ends_with("cold");
        assert_eq!(phases[0]["instructions"].as_u64().unwrap() > 100_000, cold, "{case}");
    }
    for store in results["fixtures"].as_array().unwrap() {
        let sqlite = &store["outcome"]["measured"]["sqlite"];
        let (size, mode, cache) = match store["configuration"].as_str().unwrap() {
            column if column == COLUMNS[0] || column == COLUMNS[1] => (16_384, "memory", -32_768),
            column if column == COLUMNS[4] => (4_096, "persist", 500_000),
            _ => (4_096, "memory", -32_768),
        };
        assert_eq!(sqlite["page_size"], size, "{store}");
        assert_eq!(sqlite["journal_mode"], mode, "{store}");
        assert_eq!(sqlite["cache_size"], cache, "{store}");
    }
    let names: Vec<&str> = results["canisters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|canister| canister["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["bench", "bench_vfs"]);
    assert!(results["canisters"][1]["sqlite"]["compile_options"].as_array().unwrap().len() > 20);
}

/// The published factor is caused by one transaction for each row, and nothing else.
#[test]
fn equal_transactions_cost_about_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let results = run(&["--sections=published"], directory.path());
    let instructions = |section: &str, name: &str, column: &str| {
        let cases = results["cases"].as_array().unwrap();
        let case = cases.iter().find(|case| {
            (&case["section"], &case["name"], &case["configuration"])
                == (&section.into(), &name.into(), &column.into())
        });
        case.unwrap()["outcome"]["measured"]["instructions"].as_u64().unwrap()
    };
    for name in ["insert 1 000", "insert 5 000", "upsert 1 000", "update 1 000"] {
        let published = |column| instructions("as published", name, column);
        let equal = |column| instructions("equal", name, column);
        assert!(published(COLUMNS[0]) * 4 < published(COLUMNS[4]), "{name}");
        for pair in [[COLUMNS[0], COLUMNS[1]], [COLUMNS[2], COLUMNS[3]]] {
            let [vfs, rusqlite] = pair.map(equal);
            assert!(vfs.abs_diff(rusqlite) * 10 < rusqlite, "{name}: {vfs}, {rusqlite}");
        }
        assert_eq!(published(COLUMNS[0]), equal(COLUMNS[0]), "{name}: it is the same work");
    }
}

#[test]
fn the_tables_show_both_libraries_and_the_published_figures() {
    let directory = tempfile::tempdir().unwrap();
    run(&[], directory.path());
    let output = stablebench(&["report", "vfs.json", "--format=markdown"], directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    for text in [
        "Compared with the published figures",
        "83 270 000",
        "sqlite-vfs / ic-rusqlite, the same work in the same transactions",
        "Instructions by phase: sqlite-vfs above, ic-rusqlite below",
        "Calls of stable memory",
        "6, virtual",
        "1 281, raw",
    ] {
        assert!(printed.contains(text), "{text}:\n{printed}");
    }
}

#[test]
fn reading_more_rows_than_exist_is_refused() {
    let output = stablebench(&["run", "vfs", "--rows=100"], Path::new("."));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("10 000 rows cannot be read of 100"), "{}", stderr(&output));
}
