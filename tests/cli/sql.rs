//! `stablebench sql`: files, options and standard input, and what goes wrong.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::{command, stablebench, stderr, stdout};

const SCHEMA: &str = "-- Users and their orders.
CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, city TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO users SELECT i, 'name' || i, 'city' || (i % 50) FROM n;
";
const QUERIES: &str = "SELECT count(*) FROM users;
SELECT * FROM users WHERE city = 'city7';
BEGIN; UPDATE users SET city = 'x' WHERE id = 5;
COMMIT;
";

/// A folder with a schema and queries.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schema.sql"), SCHEMA).unwrap();
    fs::write(folder.path().join("queries.sql"), QUERIES).unwrap();
    folder
}

fn sql(args: &[&str], folder: &Path) -> Output {
    stablebench(&[&["sql"], args].concat(), folder)
}

/// Sends a text to standard input.
fn typed(text: &[u8], args: &[&str], folder: &Path) -> Output {
    let mut command = command(&[&["sql"], args].concat(), folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that refuses the text does not read all of it.
    let _ = child.stdin.take().unwrap().write_all(text);
    child.wait_with_output().unwrap()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    stdout(output)
}

/// Output with exit code 2 whose errors contain this.
#[track_caller]
fn failed(output: &Output, error: &str) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", stdout(output));
    let message = stderr(output);
    assert!(message.contains(error), "{message}");
    message
}

#[test]
fn every_statement_of_files_has_its_cost() {
    let folder = project();
    let path = folder.path();
    let shown = succeeded(&sql(&["schema.sql", "queries.sql"], path));
    insta::assert_snapshot!(shown);
    let lines = |format: &str| succeeded(&sql(&["schema.sql", "queries.sql", format], path));
    let csv = lines("--format=csv");
    assert!(csv.starts_with("file,line,statement,rows,changed,instructions,"), "{csv}");
    assert_eq!(csv.lines().count(), 9, "a statement has a line break");
    assert!(lines("--format=markdown").starts_with("| statement"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&lines("--format=json")).unwrap();
    let all = json.as_array().unwrap();
    let numbers = |key: &str| all.iter().map(|it| it[key].as_u64()).collect::<Vec<_>>();
    let [zero, many] = [Some(0), Some(2_000)];
    assert_eq!(numbers("rows"), [zero, zero, Some(1), Some(40), zero, zero, zero]);
    assert_eq!(numbers("changed"), [zero, many, zero, zero, zero, Some(1), zero]);
    assert_eq!(numbers("line"), [2, 3, 1, 2, 3, 3, 4].map(Some));
    let cycles: Vec<bool> = numbers("cycles").iter().map(Option::is_some).collect();
    assert_eq!(cycles, [true, true, true, true, false, false, true], "a transaction is a message");
    // Instructions are exact.
    assert_eq!(json.to_string(), {
        let again: serde_json::Value = serde_json::from_str(&lines("--format=json")).unwrap();
        again.to_string()
    });
    // Standard input is a file, too.
    let schema = fs::read(path.join("schema.sql")).unwrap();
    let output = typed(&schema, &["-", "queries.sql", "--format=json"], path);
    let other = succeeded(&output).replace("standard input", "schema.sql");
    assert_eq!(other, lines("--format=json"));
}

#[test]
fn tables_of_statements_fit_the_terminal() {
    let folder = project();
    for columns in ["60", "80", "100", "140"] {
        let mut command = command(&["sql", "schema.sql", "queries.sql"], folder.path());
        let shown = stdout(&command.env("COLUMNS", columns).output().unwrap());
        let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= columns.parse::<usize>().unwrap(), "{longest} in {columns}: {shown}");
    }
}

#[test]
fn an_index_is_advised_with_its_effect() {
    let folder = project();
    let shown = succeeded(&sql(&["--setup=schema.sql", "queries.sql"], folder.path()));
    for part in [
        "SCAN users reads 2 000 rows, of which it needs 40.",
        "CREATE INDEX users_city ON users(city); would help: ",
        " more for each insert, ",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let in_shell = sql(
        &["--setup=schema.sql", "-c", "SELECT * FROM users WHERE city = 'city7'", "-c", ".advice"],
        folder.path(),
    );
    assert!(succeeded(&in_shell).contains("CREATE INDEX users_city ON users(city);"));
}

#[test]
fn a_setup_is_not_measured_and_is_cached() {
    let folder = project();
    let path = folder.path();
    fs::write(path.join("rows.csv"), "1,\"a, b\"\n2,c\n").unwrap();
    fs::write(path.join("more.sql"), "CREATE TABLE t(a, b);\n.import rows.csv t\n.read last.sql\n")
        .unwrap();
    fs::write(path.join("last.sql"), "INSERT INTO t VALUES(3, 'd');").unwrap();
    let args = [
        "--setup=schema.sql",
        "--setup=more.sql",
        "--mode=list",
        "-c",
        "SELECT *, (SELECT count(*) FROM users) FROM t",
    ];
    let first = sql(&args, path);
    let rows = "1|a, b|2000\n2|c|2000\n3|d|2000\n";
    assert_eq!(succeeded(&first), rows);
    let second = sql(&args, path);
    assert_eq!(succeeded(&second), rows);
    assert!(!stderr(&first).contains("prepared earlier"), "{}", stderr(&first));
    assert!(stderr(&second).contains("prepared earlier"), "{}", stderr(&second));
    let cost = |output: &Output| stderr(output).lines().last().unwrap().to_owned();
    assert_eq!(cost(&first), cost(&second), "the cache changes no cost");
    // What a setup reads belongs to it.
    fs::write(path.join("rows.csv"), "7,e\n").unwrap();
    assert_eq!(succeeded(&sql(&args, path)), "7|e|2000\n3|d|2000\n");
    fs::write(path.join("last.sql"), "SELECT 1;\nSELECT x;").unwrap();
    failed(&sql(&args, path), "last.sql, line 2: SELECT x;: no such column: x");
    fs::write(path.join("last.sql"), ".tables").unwrap();
    failed(&sql(&args, path), "last.sql, line 1: a setup takes the commands");
}

#[test]
fn an_error_ends_the_run_with_its_place() {
    let folder = project();
    let path = folder.path();
    fs::write(path.join("bad.sql"), "SELECT 1;\n\nINSERT INTO nosuch\nVALUES (1);\nSELECT 2;")
        .unwrap();
    let output = sql(&["bad.sql"], path);
    failed(
        &output,
        "stablebench: bad.sql, line 3: no such table: nosuch\n  INSERT INTO nosuch VALUES (1);",
    );
    assert!(!stdout(&output).contains("SELECT 2"), "{}", stdout(&output));
    let output = sql(&["bad.sql", "--keep-going"], path);
    failed(&output, "no such table: nosuch");
    assert!(stdout(&output).contains("SELECT 2"), "{}", stdout(&output));
    failed(&sql(&["-c", "SELECT 1; SELEC 2; SELECT 3"], path), "near \"SELEC\": syntax error");
    let output = typed(b"SELECT 1;\n.nothing\nSELECT 7;", &["--mode=list"], path);
    failed(&output, "stablebench: standard input, line 2: there is no command .nothing");
    assert_eq!(stdout(&output), "1\n");
    failed(
        &typed(b"\nBEGIN; SELECT 1;", &[], path),
        "stablebench: standard input, line 2: the open transaction has no COMMIT",
    );
    // One error, of the statement and not of what ends its transaction.
    let output = typed(b"BEGIN;\nSELECT 1;\nSELECT 1 / x;\nCOMMIT;", &["--mode=list"], path);
    let message = failed(&output, "stablebench: standard input, line 3: no such column: x");
    assert_eq!(message.matches("stablebench: ").count(), 1, "{message}");
    let output = typed(b"SELECT 1;\n.read bad.sql\n", &[], path);
    let message = failed(&output, "stablebench: bad.sql, line 3: no such table: nosuch");
    assert_eq!(message.matches("stablebench: ").count(), 1, "{message}");
    let output = sql(&["missing.sql"], path);
    failed(&output, "cannot read missing.sql");
    assert_eq!(stdout(&output), "", "an empty table");
}

#[test]
fn what_ran_before_an_error_has_advice() {
    let folder = project();
    let path = folder.path();
    let bad = "SELECT name FROM users WHERE city = 'city7';\nSELECT * FROM nosuch;\nSELECT 2;\n";
    fs::write(path.join("bad.sql"), bad).unwrap();
    let output = sql(&["--setup=schema.sql", "bad.sql"], path);
    failed(&output, "bad.sql, line 2: no such table: nosuch");
    let shown = stdout(&output);
    assert!(shown.contains("CREATE INDEX users_city ON users(city); would help: "), "{shown}");
    let output = sql(&["--setup=schema.sql", "queries.sql", "missing.sql"], path);
    failed(&output, "cannot read missing.sql");
    assert!(stdout(&output).contains("CREATE INDEX users_city"), "{}", stdout(&output));
}

#[test]
fn a_file_without_a_statement_is_said_to_be_one() {
    let folder = project();
    let path = folder.path();
    fs::write(path.join("empty.sql"), "").unwrap();
    fs::write(path.join("comments.sql"), "-- nothing\n/* here */\n").unwrap();
    let output = sql(&["empty.sql", "comments.sql"], path);
    assert_eq!(succeeded(&output), "");
    assert!(
        stderr(&output).ends_with("there is no statement in empty.sql, comments.sql\n"),
        "{}",
        stderr(&output)
    );
    assert_eq!(succeeded(&sql(&["empty.sql", "--format=json"], path)), "[]\n");
    fs::write(path.join("command.sql"), ".tables\n").unwrap();
    let output = sql(&["command.sql"], path);
    assert_eq!(succeeded(&output), "");
    assert!(!stderr(&output).contains("no statement"), "{}", stderr(&output));
}

#[test]
fn hostile_texts_are_harmless() {
    let folder = project();
    let path = folder.path();
    let shown = succeeded(&sql(&["-c", "SELECT char(27) || '[31m' AS \"\u{1b}[2J\""], path));
    assert!(!shown.contains('\u{1b}') && shown.contains("\\u{1b}[31m"), "{shown}");
    failed(&typed(b"SELECT 'a\0b';", &[], path), "standard input contains a NUL byte, at 9");
    failed(&typed(b"SELECT '\xff';", &[], path), "standard input is not UTF-8");
    failed(
        &typed(b"SELECT 1;\nSELECT 'open", &["-"], path),
        "line 2: unrecognized token: \"'open\"",
    );
    let long = format!("SELECT length('{}');", "x".repeat(10_000_000));
    let message = failed(&typed(long.as_bytes(), &["-"], path), "a message takes at most 2 MiB");
    assert!(message.len() < 500, "{message}");
    fs::write(path.join("self.sql"), "SELECT 1;\n.read self.sql\n").unwrap();
    for args in [&["self.sql"][..], &["-c", ".read self.sql"], &["--setup=self.sql", "-c", ""]] {
        failed(&sql(args, path), "self.sql reads itself");
    }
    let file = fs::File::create(path.join("huge.sql")).unwrap();
    file.set_len(1 << 30).unwrap();
    failed(&sql(&["huge.sql"], path), "SQL of more than 256 MiB is data");
}

#[test]
fn an_endless_statement_reaches_the_limit() {
    let folder = project();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    let args = ["--mode=list", "--keep-going", "-c", endless, "-c", "SELECT 5"];
    let output = sql(&args, folder.path());
    let error = "stablebench: WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FRO…: it needs more than \
                 40 000 000 000 instructions, the limit of a message, and had no effect";
    failed(&output, error);
    assert_eq!(stdout(&output), "5\n", "the session goes on");
}

#[test]
fn databases_are_loaded_and_saved() {
    let folder = project();
    let path = folder.path();
    let saved = |args: &[&str]| succeeded(&sql(&[args, &["--mode=list"]].concat(), path));
    let large = "CREATE TABLE large(a); INSERT INTO large VALUES (zeroblob(3000000))";
    saved(&["--setup=schema.sql", "-c", large, "--save-db=a.sqlite"]);
    let count = "SELECT count(*), (SELECT length(a) FROM large) FROM users";
    for engine in ["sqlite", "sqlite/wal,cache_size=10", "sqlite-vfs"] {
        let shown = saved(&["--db=a.sqlite", "--engine", engine, "-c", count]);
        assert_eq!(shown, "2000|3000000\n", "{engine}");
    }
    saved(&["--db=a.sqlite", "-c", "DROP TABLE large", "--save-db=b.sqlite"]);
    let count = "SELECT count(*) FROM users";
    let shown = saved(&["--db=b.sqlite", "--engine=sqlite-vfs", "-c", count]);
    assert_eq!(shown, "2000\n");
    let commands = [".open b.sqlite", ".engine sqlite-vfs", ".rules 2025-10", count, ".tables"];
    let args: Vec<&str> = commands.iter().flat_map(|it| ["-c", it]).collect();
    assert_eq!(saved(&args), "sqlite-vfs\n2025-10 (application subnet)\n2000\nusers\n");

    let bytes = fs::read(path.join("a.sqlite")).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(path.join(name), bytes).unwrap();
    let mut wal = bytes.clone();
    wal[18..20].fill(2);
    write("wal.sqlite", &wal);
    let mut damaged = bytes.clone();
    damaged[100..4_096].fill(0xaa);
    write("damaged.sqlite", &damaged);
    write("short.sqlite", &bytes[..8_192]);
    write("text.sqlite", b"hello");
    let huge = fs::File::create(path.join("huge.sqlite")).unwrap();
    huge.set_len(20 << 30).unwrap();
    for (name, error) in [
        ("wal", "sqlite3 wal.sqlite 'PRAGMA journal_mode=delete'"),
        ("damaged", "SQLite: database disk image is malformed"),
        ("text", "this is no SQLite database"),
        ("huge", "huge.sqlite is too large: at most 8.00 GiB are loaded"),
        ("missing", "cannot read missing.sqlite"),
    ] {
        let output = sql(&[&format!("--db={name}.sqlite"), "-c", "SELECT * FROM users"], path);
        failed(&output, error);
    }
    let output = sql(&["--db=short.sqlite", "-c", "SELECT sum(length(city)) FROM users"], path);
    failed(&output, "malformed");
    // What cannot be saved is not lost.
    let output = sql(
        &["--keep-going", "-c", "CREATE TABLE t(a)", "-c", ".save /dev/full", "-c", ".tables"],
        path,
    );
    failed(&output, "cannot save the database to /dev/full: No space left on device");
    assert!(stdout(&output).ends_with("t\n"), "{}", stdout(&output));
    failed(&sql(&["-c", "SELECT 1", "--save-db=schema.sql/x"], path), "cannot save the database");
    failed(&sql(&["-c", "SELECT 1", "--save-db=nosuch/x"], path), "there is no folder nosuch");
    assert!(!path.join("nosuch").exists());
    // A database without tables is one, too.
    saved(&["-c", ".save empty.sqlite"]);
    assert!(fs::read(path.join("empty.sqlite")).unwrap().starts_with(b"SQLite format 3\0"));
    write("nothing.sqlite", b"");
    for database in ["empty", "nothing"] {
        let database = format!("--db={database}.sqlite");
        assert_eq!(saved(&[&database, "-c", "CREATE TABLE t(a)", "-c", ".tables"]), "t\n");
    }
    // Engines that cannot save are refused before anything is executed.
    for args in [
        &["--engine=sqlite-vfs", "-c", "SELECT 5"][..],
        &["-c", ".engine sqlite-vfs", "-c", "SELECT 5"],
    ] {
        let output = sql(&[args, &["--mode=list", "--save-db=c.sqlite"]].concat(), path);
        failed(&output, "sqlite-vfs does not store its database as a file");
        assert_eq!(stdout(&output), "");
    }
    let output = sql(&["--engine=sqlite-vfs", "-c", ".save c.sqlite"], path);
    failed(&output, "sqlite-vfs does not store its database as a file");
}

/// The tables are in an order in which rows would come before those that they refer to.
const REFERENCES: &str = "CREATE TABLE b(x INTEGER PRIMARY KEY);
    CREATE TABLE a(x REFERENCES b(x), me INTEGER PRIMARY KEY, up REFERENCES a(me));
    INSERT INTO b VALUES (1); INSERT INTO a VALUES (1, 2, NULL), (1, 1, 2);";

#[test]
fn tables_that_refer_to_others_are_taken_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let look = ["--mode=list", "-c", "SELECT * FROM a", "-c", "PRAGMA foreign_keys"];
    succeeded(&sql(&["-c", REFERENCES, "--save-db=a.sqlite"], path));
    for (engine, checks) in [("sqlite-vfs", 1), ("doltlite", 0)] {
        let args = [&["--db=a.sqlite", "--engine", engine], &look[..]].concat();
        assert_eq!(succeeded(&sql(&args, path)), format!("1|1|2\n1|2|\n{checks}\n"), "{engine}");
    }
    // doltlite lists its tables by their names.
    for engine in ["sqlite", "sqlite-vfs"] {
        let (to, dump) = (format!(".engine {engine}"), ".dump");
        let args = [&["--db=a.sqlite", "--engine=doltlite", "-c", &to], &look[..]].concat();
        let rows = succeeded(&sql(&args, path));
        assert!(rows.ends_with("\n1|1|2\n1|2|\n1\n"), "{engine}: {rows}");
        let dump = sql(&["--db=a.sqlite", "--engine=doltlite", "-c", dump], path);
        fs::write(path.join("dump.sql"), succeeded(&dump)).unwrap();
        let args = ["--setup=dump.sql", "--engine", engine, look[0], look[1], look[2]];
        assert_eq!(succeeded(&sql(&args, path)), "1|1|2\n1|2|\n", "{engine}");
    }
    let script = ["--db=a.sqlite", "--builtin=select-only", "--transactions=1"];
    failed(&sql(&script, path), "--db: sqlite-vfs does not store its database as a file");
}

/// Compute and pages are the parts of the instructions of each statement.
#[test]
fn no_statement_has_more_pages_than_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let statements = "CREATE TABLE t(a INTEGER PRIMARY KEY, b);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT i, 'x' || i FROM n;
        SELECT * FROM t; SELECT zeroblob(900000);
        BEGIN; SELECT count(*) FROM t; UPDATE t SET b = 'y' WHERE a < 5; SELECT * FROM t; COMMIT;
        BEGIN; INSERT INTO t VALUES (5000, zeroblob(300000)); SELECT b FROM t WHERE a = 5000; ROLLBACK;
        BEGIN; COMMIT;
        SELECT * FROM t WHERE a = 4;";
    let script = "BEGIN;\nSELECT zeroblob(900000);\nSELECT * FROM t LIMIT 500;\n\
                  UPDATE t SET b = 'z' WHERE a = 7;\nEND;\nSELECT 1;";
    fs::write(path.join("s.sql"), statements).unwrap();
    fs::write(path.join("tx.sql"), script).unwrap();
    for engine in ["sqlite", "sqlite-vfs", "doltlite"] {
        let json = succeeded(&sql(&["s.sql", "--format=json", "--engine", engine], path));
        let all: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
        assert_eq!(all.len(), 16);
        for one in &all {
            let of = |key: &str| one[key].as_u64().unwrap_or_else(|| panic!("{engine}: {one}"));
            let pages = of("heap_pages") + of("stable_pages");
            assert!(pages < of("instructions"), "{engine}: {one}");
        }
        for per_message in ["--per-message=1", "--per-message=2"] {
            let (engines, setup) = (format!("--engines={engine}"), "--setup=s.sql");
            let args = ["--script=tx.sql", setup, &engines, per_message, "--transactions=3"];
            let csv = succeeded(&sql(&[&args[..], &["--format=csv"]].concat(), path));
            let mut reader = csv::Reader::from_reader(csv.as_bytes());
            let mut seen = 0;
            for line in reader.deserialize::<BTreeMap<String, String>>() {
                let line = line.unwrap();
                if line["section"] == "harness" {
                    continue;
                }
                let of = |name: &str| -> u64 {
                    let cell = line[name].parse();
                    cell.unwrap_or_else(|_| panic!("{name} in {engine}: {line:?}"))
                };
                let parts = ["work_compute", "work_heap_pages", "work_stable_pages"].map(of);
                assert_eq!(parts.iter().sum::<u64>(), of("instructions"), "{engine}: {line:?}");
                seen += 1;
            }
            assert_eq!(seen, 7, "{csv}");
        }
    }
}

#[test]
fn an_open_transaction_is_not_lost() {
    let folder = project();
    let path = folder.path();
    for command in [".open", ".upgrade", ".save x.db", ".config cache_size=5", ".engine sqlite-vfs"]
    {
        let text = format!("CREATE TABLE t(a);\nBEGIN;\nINSERT INTO t VALUES (7);\n{command}\n");
        let rest = "COMMIT;\nSELECT a FROM t;";
        let output =
            typed(format!("{text}{rest}").as_bytes(), &["--keep-going", "--mode=list"], path);
        failed(&output, "line 4: a transaction is open; end it with COMMIT or ROLLBACK");
        assert_eq!(stdout(&output), "7\n", "{command}");
    }
}

#[test]
fn parameters_without_a_value_are_null() {
    let folder = tempfile::tempdir().unwrap();
    let args = [".parameter set ?2 b", "SELECT ?, ?2, :c, ?7 IS NULL, '?'"];
    let args: Vec<&str> = args.iter().flat_map(|it| ["-c", it]).collect();
    let output = sql(&[&["--mode=list"], &args[..]].concat(), folder.path());
    // :c is the first.
    assert_eq!(succeeded(&output), "|b||1|?\n");
}

#[test]
fn a_quote_without_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let import = ["--mode=list", "-c", ".import rows.csv t", "-c", "SELECT * FROM t"];
    for (rows, error) in [
        ("a,b\n1,\"x\n2,y\n", "a quote in the row of line 2 has no end"),
        ("a,\"b\n", "a quote in the row of line 1 has no end"),
        ("", "rows.csv is empty"),
    ] {
        fs::write(path.join("rows.csv"), rows).unwrap();
        failed(&sql(&import, path), error);
    }
    for rows in ["a,b\r\n1,\"x\ny\"\r\n", "a,b\n1,\"x\ny\""] {
        fs::write(path.join("rows.csv"), rows).unwrap();
        assert_eq!(succeeded(&sql(&import, path)), "1|x\ny\n");
    }
}

#[test]
fn mistakes_have_one_clear_reason() {
    let folder = project();
    let path = folder.path();
    for (args, error) in [
        (
            &["--engine=foo", "-c", ""][..],
            "foo is no engine with SQL; take sqlite, sqlite-vfs or doltlite",
        ),
        (&["-c", ".engine btree"], "btree is no engine with SQL"),
        (&["--engine=sqlite/page_size=513", "-c", ""], "513 is not a value of page_size"),
        (&["-c", ".advice"], "no statement was executed yet"),
    ] {
        failed(&sql(args, path), error);
    }
    let noted = sql(&["-c", "ATTACH 'other.db' AS o", "--mode=list"], path);
    assert!(stderr(&noted).contains("the file is one of the canister"), "{}", stderr(&noted));
    fs::write(path.join("vacuum.sql"), "CREATE TABLE t(a);\nVACUUM INTO 'copy.db';").unwrap();
    let noted = sql(&["vacuum.sql"], path);
    succeeded(&noted);
    assert!(stderr(&noted).contains("the file stays in the canister"), "{}", stderr(&noted));
}

#[test]
fn advice_says_what_it_leaves_out() {
    let folder = project();
    let path = folder.path();
    let queries: String = (0..7)
        .map(|number| {
            format!("SELECT {number}, count(*) AS c{number} FROM users WHERE name = 'x';\n")
        })
        .collect();
    fs::write(path.join("q.sql"), format!("SELECT nosuch;\n{queries}")).unwrap();
    let output = sql(&["--setup=schema.sql", "q.sql", "--keep-going"], path);
    failed(&output, "no such column: nosuch");
    let shown = stdout(&output);
    assert!(shown.contains("2 more statements read or sort many rows"), "{shown}");
}

#[test]
fn a_dump_makes_the_database_again() {
    let folder = project();
    let path = folder.path();
    let script = "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b, c AS (b || 'x'));
        INSERT INTO t(b) VALUES ('it''s'), (NULL), (0.1 + 0.2), (x'00ff'), (char(27) || 'e'), (9e999);
        CREATE TABLE w(k TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO w VALUES ('a'), ('b');
        CREATE VIRTUAL TABLE f USING fts5(text); INSERT INTO f VALUES ('one two'), ('three');
        CREATE INDEX tb ON t(b); CREATE VIEW v AS SELECT count(*) AS n FROM t;
        CREATE TRIGGER r AFTER INSERT ON w BEGIN UPDATE t SET b = 1 WHERE a = 99; END;
        CREATE TABLE \"c\u{1b}\u{7}\"(\"d\u{202e}\"); INSERT INTO \"c\u{1b}\u{7}\" VALUES (1);";
    let look =
        "SELECT * FROM t; SELECT * FROM w; SELECT * FROM f WHERE f MATCH 'two'; SELECT * FROM v;
        SELECT name FROM sqlite_schema ORDER BY name; SELECT * FROM sqlite_sequence";
    let first = sql(&["--mode=json", "-c", script, "-c", look, "-c", ".dump"], path);
    let shown = succeeded(&first);
    let (rows, dump) = shown.split_once("PRAGMA foreign_keys=OFF;").unwrap();
    fs::write(path.join("dump.sql"), dump).unwrap();
    for engine in ["sqlite", "sqlite-vfs"] {
        let again = sql(&["--mode=json", "--engine", engine, "--setup=dump.sql", "-c", look], path);
        assert_eq!(succeeded(&again), rows, "{engine}");
    }
}

/// Values that no message can return in whole, and rows that take several: a blob, a text with a
/// character at the end of the first piece, and an index in whose order the rows are not.
const LARGE: &str = "CREATE TABLE t(a PRIMARY KEY, b); CREATE INDEX tb ON t(b DESC);
    INSERT INTO t VALUES (3, CAST(zeroblob(70000) || x'00ff' AS BLOB));
    INSERT INTO t VALUES (2, CAST(printf('%.1048575cé%.2000000c', 'x', 'y') AS TEXT));
    INSERT INTO t VALUES (1, randomblob(3 << 20)), (0, randomblob(1 << 20)); UPDATE t SET b = b;
    WITH RECURSIVE n(i) AS (SELECT 5 UNION ALL SELECT i + 1 FROM n WHERE i < 75)
    INSERT INTO t SELECT i, zeroblob(1000000) FROM n;";

#[test]
fn large_values_are_dumped_and_taken_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let look = "SELECT count(*), sum(length(b)), sum(a) FROM t; \
                SELECT a, typeof(b), length(b), substr(b, -3), hex(substr(b, 1048574, 4)) FROM t WHERE a < 4";
    let shown =
        |args: &[&str]| succeeded(&sql(&[&["--mode=list"], args, &["-c", look]].concat(), path));
    let setup = ["--subnet=benchmarking", "--save-db=a.sqlite", "-c", LARGE];
    succeeded(&sql(&setup, path));
    let few = ["--db=a.sqlite", "-c", "DELETE FROM t WHERE a > 4", "--save-db=b.sqlite"];
    succeeded(&sql(&few, path));
    let rows = shown(&["--db=b.sqlite"]);
    assert!(rows.contains("2|text|3048576|yyy|7878C3A979"), "{rows}");
    assert_eq!(rows, shown(&["--db=b.sqlite", "--engine=sqlite-vfs"]));
    assert_eq!(rows, shown(&["--db=b.sqlite", "--engine=doltlite"]));
    let back = ["--db=b.sqlite", "--engine=doltlite", "-c", ".engine sqlite"];
    assert!(shown(&back).ends_with(&rows));
    // Only SQLite itself reads so long a statement.
    let dump = succeeded(&sql(&["--db=a.sqlite", "-c", ".dump"], path));
    let database = rusqlite::Connection::open_in_memory().unwrap();
    database.execute_batch(&dump).unwrap();
    let copied = rusqlite::Connection::open(path.join("a.sqlite")).unwrap();
    let all = |database: &rusqlite::Connection| {
        let mut statement = database.prepare("SELECT a, b FROM t ORDER BY a").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<Vec<(i64, rusqlite::types::Value)>, _>>().unwrap()
    };
    assert!(all(&database) == all(&copied), "the dump makes other rows");
}

/// A table whose root is behind the first MiB, indexes of texts, and a row that no reply has.
#[test]
fn databases_of_any_layout_are_loaded_and_taken_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let database = rusqlite::Connection::open(path.join("a.sqlite")).unwrap();
    let wide = "CREATE TABLE a(w, x, y, z); INSERT INTO a
        VALUES (zeroblob(900000), zeroblob(900000), zeroblob(900000), randomblob(1100000));
        CREATE TABLE b(y); INSERT INTO b VALUES (1); PRAGMA user_version = 7;
        CREATE VIRTUAL TABLE own USING fts5(t); CREATE TABLE s(id INTEGER PRIMARY KEY, t);
        INSERT INTO own(rowid, t) VALUES (5, 'alpha'), (9, 'beta');
        INSERT INTO s SELECT rowid, t FROM own;
        CREATE VIRTUAL TABLE of USING fts5(t, content='s', content_rowid='id');
        INSERT INTO of(of) VALUES ('rebuild');";
    database.execute_batch(wide).unwrap();
    let look = "SELECT length(w) + length(z), (SELECT y FROM b) FROM a; PRAGMA user_version;
        SELECT rowid, t FROM own('beta'); SELECT rowid, t FROM of('beta'); PRAGMA integrity_check";
    for engine in ["sqlite", "sqlite/wal,cache_size=10", "sqlite-vfs", "doltlite"] {
        let args = ["--db=a.sqlite", "--mode=list", "--engine", engine, "-c", look];
        let expected = "2000000|1\n7\n9|beta\n9|beta\nok\n";
        assert_eq!(succeeded(&sql(&args, path)), expected, "{engine}");
    }
    let engines = "--engines=sqlite/persist,sqlite/wal";
    let script = ["--db=a.sqlite", "--script=q.sql", "--transactions=1", engines];
    fs::write(path.join("q.sql"), "SELECT y FROM b;").unwrap();
    succeeded(&sql(&script, path));
    failed(
        &sql(&["--db=a.sqlite", "-c", "SELECT * FROM a"], path),
        "take more than a reply of 3 MiB",
    );
    database.execute_batch("CREATE VIRTUAL TABLE none USING fts5(t, content = '')").unwrap();
    let lost = ["--db=a.sqlite", "--engine=sqlite-vfs", "-c", "SELECT 1"];
    failed(&sql(&lost, path), "the table none keeps no content");
}

#[test]
fn commands_have_the_meaning_that_they_have_in_sqlite3() {
    let folder = project();
    let commands = [
        ".mode list",
        ".cost off",
        ".tables",
        ".schema users",
        ".indexes",
        ".parameter set id 7",
        "SELECT name FROM users WHERE id = :id",
        ".eqp on",
        "SELECT name FROM users WHERE id = 3",
        ".eqp off",
        ".config cache_size=100",
        ".upgrade",
        "PRAGMA cache_size",
        ".mode box",
        "SELECT 'a' AS x, 1.5 AS y",
        ".quit",
        "SELECT 'not executed'",
    ];
    let args: Vec<&str> = commands.iter().flat_map(|it| ["-c", it]).collect();
    let shown = succeeded(&sql(&[&["--setup=schema.sql"], &args[..]].concat(), folder.path()));
    insta::assert_snapshot!(shown, @"
    users
    CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, city TEXT);
    name7
    QUERY PLAN
    `--SEARCH users USING INTEGER PRIMARY KEY (rowid=?)
    name3
    journal_mode = persist
    synchronous = off
    locking_mode = exclusive
    temp_store = memory
    page_size = 4096
    cache_size = 100
    100
    ┌───┬─────┐
    │ x │  y  │
    ├───┼─────┤
    │ a │ 1.5 │
    └───┴─────┘
    ");
    let help = succeeded(&sql(&["-c", ".help"], folder.path()));
    for name in
        "help tables schema indexes mode read import dump open save quit eqp timer config engine \
                 rules cost upgrade advice parameter"
            .split(' ')
    {
        assert!(help.contains(&format!(".{name} ")), "{name}: {help}");
    }
}

#[test]
fn what_sqlite_has_works() {
    let folder = project();
    let shown = |engine: &str, statements: &str| {
        let args = ["--engine", engine, "--mode=list", "-c", statements];
        succeeded(&sql(&args, folder.path()))
    };
    for engine in ["sqlite", "sqlite-vfs"] {
        for (statements, rows) in [
            ("SELECT json_extract('{\"a\":[1,2]}', '$.a[1]')", "2\n"),
            ("SELECT sum(value) OVER (ORDER BY value) FROM json_each('[1,2]')", "1\n3\n"),
            ("VALUES (length(zeroblob(3000000)))", "3000000\n"),
        ] {
            assert_eq!(shown(engine, statements), rows, "{engine}: {statements}");
        }
    }
    let tree = "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1); INSERT INTO r VALUES (1, 0, 5); \
                SELECT id FROM r WHERE x1 > 3";
    assert_eq!(shown("sqlite", tree), "1\n");
    failed(&sql(&["--engine=sqlite-vfs", "-c", tree], folder.path()), "no such module: rtree");
    failed(&sql(&["-c", "SELECT nosuch(1)"], folder.path()), "no such function: nosuch");
}

#[test]
fn nothing_of_the_user_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let at = |name: &str| folder.join(name);
    fs::write(at("mine.sql"), "CREATE TABLE t(x);").unwrap();
    let saved = sql(&["--save-db=mine.sql", "mine.sql"], folder);
    failed(&saved, "mine.sql exists and is no SQLite database; choose another name");
    let saved = typed(b".save mine.sql\n", &[], folder);
    failed(&saved, "mine.sql exists and is no SQLite database");
    let script = ["--builtin=ycsb-c", "--transactions=1", "--engines=sqlite", "--out=mine.sql"];
    failed(&sql(&script, folder), "mine.sql exists, and is not in JSON");
    assert_eq!(fs::read(at("mine.sql")).unwrap(), b"CREATE TABLE t(x);");
    // Its own files are replaced.
    for _ in 0..2 {
        succeeded(&sql(&["--save-db=t.db", "mine.sql"], folder));
        succeeded(&sql(&[&script[..3], &["--out=t.json"]].concat(), folder));
    }
    // What SQLite keeps beside a database would change what is in it.
    for more in ["t.db-wal", "t.db-journal"] {
        fs::write(at(more), "x").unwrap();
        failed(&sql(&["--save-db=t.db", "-c", "SELECT 1"], folder), more);
        if more.ends_with("journal") {
            failed(&sql(&["--db=t.db", "-c", "SELECT 1"], folder), "has not ended");
        }
        fs::remove_file(at(more)).unwrap();
    }
}

#[test]
fn a_closed_pipe_does_not_prevent_saving() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        command(&["sql", "--save-db=t.db", "-c", "SELECT 1", "-c", "SELECT 2"], folder.path());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(stderr(&output).contains("the rest was not executed"), "{}", stderr(&output));
    assert!(folder.path().join("t.db").is_file());
}

#[test]
fn a_transaction_without_end_and_an_early_quit_fail() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("open.sql"), "CREATE TABLE t(x);\nBEGIN;\nINSERT INTO t VALUES (1);")
        .unwrap();
    failed(&sql(&["open.sql"], folder), "open.sql, line 2: the transaction has no COMMIT");
    let quit = typed(b"SELECT x;\n.quit\n", &["--keep-going"], folder);
    failed(&quit, "no such column");
}
