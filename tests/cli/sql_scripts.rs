//! Scripts: transactions of any SQL on several configurations.

use std::path::Path;

use serde_json::Value;

use crate::{fails, output_of, stablebench, stderr, stdout, succeeds};

const SCHEMA: &str = "\
CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, points INTEGER);
CREATE INDEX by_points ON users(points);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :n)
  INSERT INTO users SELECT i, printf('user %d', i), i * 7919 % 1000 FROM n;
";
const TX: &str = "\
\\set id random(1, :n)
\\set more random(-5, 5)
BEGIN;
SELECT name, points FROM users WHERE id = :id;
UPDATE users SET points = points + :more WHERE id = :id;
END;
";

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "schema.sql", SCHEMA);
    write(folder.path(), "tx.sql", TX);
    folder
}

const OPTIONS: &[&str] =
    &["--setup=schema.sql", "--script=tx.sql", "--define=n=500", "--no-wall-time"];
const ENGINES: &str = "--engines=sqlite/persist,sqlite-vfs";

/// Returns the results of a run.
fn run(command: &[&str], more: &[&str], folder: &Path) -> (String, String) {
    let output = succeeds(&[command, OPTIONS, more].concat(), folder);
    (std::fs::read_to_string(folder.join("sql.json")).unwrap(), stdout(&output))
}

/// Returns the error of a run that fails.
fn error(more: &[&str], folder: &Path) -> String {
    stderr(&fails(&[&["sql"], OPTIONS, more].concat(), folder))
}

fn measured<'a>(results: &'a Value, section: &str, configuration: &str) -> Vec<&'a Value> {
    let cases = results["cases"].as_array().unwrap().iter();
    let is_it =
        |case: &&Value| case["section"] == section && case["configuration"] == configuration;
    cases.filter(is_it).map(|case| &case["outcome"]["measured"]).collect()
}

#[test]
fn a_script_runs_on_several_engines() {
    let folder = prepared();
    let folder = folder.path();
    let options = ["--transactions=20", ENGINES, "--verbose"];
    let (saved, printed) = run(&["sql"], &options, folder);
    let title = "tx.sql: instructions of a transaction; 20 were measured, in 20 messages";
    for part in [title, "Most expensive, ", ":id = "] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let results: Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(results["cases"].as_array().unwrap().len(), 2 * (1 + 4));
    assert_eq!(results["inputs"].as_array().unwrap().len(), 2);
    for configuration in ["sqlite/persist", "sqlite-vfs"] {
        let number = |value: &Value, path: &str| value.pointer(path).unwrap().as_u64().unwrap();
        let transactions = measured(&results, "transaction", configuration)[0];
        let statements = measured(&results, "statement", configuration);
        for path in ["/instructions", "/detail/rows"] {
            let sum: u64 = statements.iter().map(|of| number(of, path)).sum();
            assert_eq!(sum, number(transactions, path), "{configuration} {path}");
        }
        assert_eq!(number(transactions, "/detail/messages"), 20);
        // Each finds a row and changes one.
        assert_eq!(number(transactions, "/detail/rows"), 40);
        assert_eq!(number(transactions, "/detail/digest/rows"), 500);
        let each = &transactions["each"];
        let order = ["min", "p50", "p90", "p95", "p99", "max"].map(|of| each[of].as_u64().unwrap());
        assert!(order.is_sorted() && order[0] > 0, "{order:?}");
        assert!(each["worst_work"].as_str().unwrap().starts_with("transaction "), "{each}");
        assert!(number(transactions, "/detail/pages/heap") > 0);
        assert!(number(transactions, "/detail/stored/bytes") > 10_000);
    }

    // The form of the suite is the same, and the populated canisters are used again.
    let again = stablebench(&[&["run", "sql"], OPTIONS, &options].concat(), folder);
    assert!(stderr(&again).contains("populated earlier"), "{}", stderr(&again));
    assert!(std::fs::read_to_string(folder.join("sql.json")).unwrap() == saved);

    let report = stablebench(&["report", "sql.json"], folder);
    assert_eq!(stdout(&report), printed);
    let compare =
        [&["compare", "sql.json"][..], &["--configurations", "sqlite/persist", "sqlite-vfs"]];
    let compared = stablebench(&compare.concat(), folder);
    assert!(stdout(&compared).contains("tx.sql"), "{}", stderr(&compared));
    let ceiling = stablebench(&[&compare.concat()[..], &["--max-ratio=0.01"]].concat(), folder);
    assert_eq!(ceiling.status.code(), Some(1));
    let ceiling =
        stablebench(&[&["sql"], OPTIONS, &options, &["--max-ratio=0.01"]].concat(), folder);
    assert_eq!(ceiling.status.code(), Some(1), "{}", stderr(&ceiling));
}

#[test]
fn the_command_of_an_answer_repeats_the_run_in_a_shell() {
    let folder = prepared();
    let path = folder.path();
    write(path, "my schema.sql", SCHEMA);
    write(path, "-w.sql", "SELECT :text;");
    let more = [
        "--setup=my schema.sql",
        "--script=tx.sql",
        "--script=-w.sql@2",
        "--define=n=300",
        "--define=text=it's $HOME",
        "--engines=sqlite",
        "--transactions=20",
        "--per-message=5",
        "--nodes=34",
        "--no-wall-time",
        "--no-page",
    ];
    let first = succeeds(&[&["sql"], &more[..]].concat(), path);
    let saved = std::fs::read(path.join("sql.json")).unwrap();
    let shown = stdout(&first);
    let command = shown.lines().find_map(|line| line.strip_prefix("Repeat with: ")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_stablebench"));
    let stablebench = super::command(&[], path);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("{command} --no-wall-time --no-page --out again.json")]);
    shell.envs(stablebench.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let paths = std::env::var("PATH").unwrap();
    let paths = format!("{}:{paths}", program.parent().unwrap().display());
    let again = output_of(shell.env("PATH", paths).current_dir(path));
    assert_eq!(stdout(&again), shown.replace("report sql.json", "report again.json"));
    assert!(std::fs::read(path.join("again.json")).unwrap() == saved);
}

#[test]
fn transactions_share_messages() {
    let folder = prepared();
    let more = ["--transactions=25", "--per-message=10", "--engines=sqlite/wal"];
    let (saved, _) = run(&["sql"], &more, folder.path());
    let results: Value = serde_json::from_str(&saved).unwrap();
    let transactions = measured(&results, "transaction", "sqlite/wal")[0];
    assert_eq!(
        (&transactions["operations"], &transactions["detail"]["messages"]),
        (&25.into(), &3.into())
    );
    // Each text is prepared once in a message.
    let times = |of: &Value| of["phases"][0]["times"].as_u64().unwrap();
    assert_eq!(
        measured(&results, "statement", "sqlite/wal").into_iter().map(times).collect::<Vec<_>>(),
        [3; 4]
    );
}

#[test]
fn other_rows_and_errors_end_a_run() {
    let folder = prepared();
    let folder = folder.path();
    write(folder, "version.sql", "SELECT 1;\n\\set id 7\nSELECT sqlite_version(), :id;");
    let message = error(&["--script=version.sql", "--transactions=5", ENGINES], folder);
    assert!(message.contains("have other rows: 1 row and 1 row, with other values"), "{message}");
    assert!(message.contains("version.sql, line 3, transaction "), "{message}");
    assert!(message.contains(":id = 7\n  SELECT sqlite_version(), :id;"), "{message}");

    write(folder, "wrong.sql", "SELECT 1;\nSELECT nosuch FROM users;");
    let message = error(&["--script=wrong.sql", "--transactions=5", ENGINES], folder);
    assert!(message.contains("no such column: nosuch\nwrong.sql, line 2, "), "{message}");
    write(folder, "bad.sql", "CREATE TABLE a(x);\n\nINSERT INTO b VALUES (1);");
    let message = error(&["--setup=bad.sql", ENGINES], folder);
    assert!(message.contains("bad.sql, line 3: no such table: b\n  INSERT INTO b"), "{message}");
    write(folder, "unset.sql", "\nSELECT :nothing;");
    let message = error(&["--script=unset.sql"], folder);
    assert!(message.contains("unset.sql, line 2: the variable :nothing has no value"), "{message}");

    for (more, part) in [
        (&["a.sql"][..], "a file with SQL is not for scripts; they have --script FILE"),
        (&["--engine=sqlite"], "--engine is not for scripts; they have --engines"),
    ] {
        let message = error(more, folder);
        assert!(message.contains(part), "{message}");
    }
    let output = stablebench(&["sql", "--transactions=5"], folder);
    assert!(stderr(&output).contains("--transactions is for scripts"), "{}", stderr(&output));
}

#[test]
fn a_changed_script_is_not_resumed() {
    let folder = prepared();
    let folder = folder.path();
    let more = ["--transactions=5", "--engines=sqlite/persist"];
    run(&["sql"], &more, folder);
    let output = succeeds(&[&["sql"], OPTIONS, &more, &["--resume"]].concat(), folder);
    assert!(stderr(&output).contains("5 cases are measured already"), "{}", stderr(&output));
    write(folder, "tx.sql", &format!("{TX}-- more\n"));
    let message = error(&[&more[..], &["--resume"]].concat(), folder);
    assert!(message.contains("because its input differs: tx.sql has changed"), "{message}");
    let longer = format!("{TX}SELECT 1;\n");
    write(folder, "tx.sql", &longer);
    run(&["sql"], &[&more[..], &["--out=other.json"]].concat(), folder);
    let compared = stablebench(&["compare", "sql.json", "other.json"], folder);
    let shown = stdout(&compared) + &stderr(&compared);
    assert!(shown.contains("the files are not the same: tx.sql"), "{shown}");
    let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest < 260 && !shown.contains('{'), "{shown}");
}

#[test]
fn a_script_begins_with_a_database_file() {
    let folder = prepared();
    let folder = folder.path();
    let made = "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, points INTEGER); \
                INSERT INTO users VALUES (1, 'a', 1), (2, 'b', 2);";
    succeeds(&["sql", "-c", made, "--save-db=users.sqlite"], folder);
    let args = [
        "sql",
        "--db=users.sqlite",
        "--script=tx.sql",
        "--define=n=2",
        "--transactions=5",
        "--engines=sqlite/persist",
        "--format=json",
    ];
    let output = succeeds(&args, folder);
    let results: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let transactions = measured(&results, "transaction", "sqlite/persist")[0];
    assert_eq!(transactions["detail"]["rows"], 10);
    assert_eq!(transactions["detail"]["digest"]["rows"], 2);
    let message = error(&["--db=schema.sql", "--engines=sqlite/persist"], folder);
    assert!(message.contains("schema.sql: this is no SQLite database"), "{message}");
}

#[test]
fn settings_are_ranked() {
    let folder = prepared();
    // Journal modes alone are varied.
    let engines = "--engines=sqlite,page_size=4096,cache_size=200,locking_mode=exclusive";
    let more = ["--tune", "--transactions=10", engines];
    let output = succeeds(&[&["sql"], OPTIONS, &more].concat(), folder.path());
    let printed = stdout(&output);
    for part in [
        "What a transaction costs, cheapest first",
        "Best: sqlite/off,cache_size=200",
        "PRAGMA page_size = 4096;",
        "PRAGMA journal_mode = off;",
        "PRAGMA cache_size = 200;",
        "ROLLBACK does not work",
        "journal in stable memory",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let modes = ["PERSIST", "DELETE", "TRUNCATE", "MEMORY", "OFF", "WAL"];
    let row = |mode: &str| {
        let begin = format!(" SQLite {mode} cache_size=200 ");
        printed.lines().filter(|line| line.starts_with(&begin)).count()
    };
    // The best of them also with ten transactions in a message; more than ten there are not.
    assert_eq!(modes.map(row), [1, 1, 1, 1, 3, 1], "{printed}");
}

/// Returns the instructions of a case without the charges for pages.
fn compute(measured: &Value) -> u64 {
    let pages = &measured["detail"]["pages"];
    let charge = |memory: &str| pages[memory].as_u64().unwrap();
    measured["instructions"].as_u64().unwrap() - charge("heap") - charge("stable")
}

/// The bounds are those that docs/sql.md states. Pages depend on the messages before.
#[test]
fn a_script_costs_what_the_suite_users_measures() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let schema = "CREATE TABLE users(id INTEGER PRIMARY KEY AUTOINCREMENT, username TEXT NOT NULL);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
        INSERT INTO users SELECT i, printf('%0100d', i) FROM n;";
    write(folder, "users.sql", schema);
    let row = "\\set id :id + 1\ninsert into users (id, username) values (:id, :text);\n";
    write(folder, "add.sql", &format!("\\set id 10000\nBEGIN;\n{}END;\n", row.repeat(100)));
    let text = format!("--define=text={}", "x".repeat(100));
    let script = ["sql", "--setup=users.sql", "--script=add.sql", &text, "--transactions=1"];
    let suite = ["--rows=10000", "--batches=100", "--at=end", "--payload=100", "--sections=insert"];
    let results = |command: &[&str], file: &str| -> Value {
        succeeds(&[command, &[ENGINES, "--out", file]].concat(), folder);
        serde_json::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap()
    };
    let of_script = results(&script, "sql.json");
    let of_suite = results(&[&["run", "users"][..], &suite].concat(), "users.json");
    for (configuration, percent) in [("sqlite/persist", 3), ("sqlite-vfs", 15)] {
        let [script] = measured(&of_script, "transaction", configuration)[..] else { panic!() };
        let [suite] = measured(&of_suite, "insert", configuration)[..] else { panic!() };
        let (script, suite) = (compute(script), compute(suite));
        let difference = script.abs_diff(suite);
        assert!(difference * 100 <= suite * percent, "{configuration}: {script} and {suite}");
    }
}
