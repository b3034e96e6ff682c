//! The shell of `stablebench sql` on a terminal, which `script` of util-linux makes.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::command;

/// What a terminal has shown so far, and how much of it was waited for.
struct Shell {
    script: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<Vec<u8>>>,
    seen: usize,
}

const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n;\n";
/// The first sign of a progress bar that turns.
const TURNING: &str = "\u{2801}";

impl Shell {
    /// Starts the shell, and waits for its prompt. Its process id is in the file `pid`.
    fn start(folder: &Path) -> Self {
        let stablebench = command(&[], folder);
        let mut script = Command::new("script");
        script.args([
            "-qefc",
            "echo $$ > pid; exec \"$STABLEBENCH\" sql --subnet benchmarking",
            "/dev/null",
        ]);
        script.envs(stablebench.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.env("STABLEBENCH", stablebench.get_program());
        script.env("XDG_STATE_HOME", folder).env("TERM", "xterm").env("SHELL", "/bin/sh");
        script.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.spawn().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut output, all) = (script.stdout.take().unwrap(), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                all.lock().unwrap().extend(&bytes[..read]);
            }
        });
        let keys = script.stdin.take().unwrap();
        let mut shell = Self { script, keys, shown, seen: 0 };
        shell.wait_for("sql> ");
        shell
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a text after what was waited for before. Returns what is between them.
    #[track_caller]
    fn wait_for(&mut self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let shown = self.shown.lock().unwrap().clone();
            let new = String::from_utf8_lossy(&shown[self.seen..]).into_owned();
            if let Some(at) = new.find(text) {
                self.seen += at + text.len();
                return new[..at].to_owned();
            }
            assert!(began.elapsed() < Duration::from_secs(120), "no {text:?} in {new:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end. Returns the exit code.
    fn end(mut self) -> Option<i32> {
        let status = self.script.wait().unwrap();
        drop(self.keys);
        status.code()
    }
}

#[test]
fn the_end_of_the_session_ends_a_statement() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(folder.path());
    shell.press(ENDLESS);
    shell.wait_for(TURNING);
    let process = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(Command::new("kill").args(["-TERM", process.trim()]).status().unwrap().success());
    assert_eq!(shell.end(), Some(143));
}

#[test]
fn ctrl_c_ends_a_statement_and_clears_its_bar() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(folder.path());
    shell.press(ENDLESS);
    shell.wait_for(TURNING);
    shell.press("\x03");
    let until = shell.wait_for("Error: interrupted; the message had no effect");
    // The terminal would show it below the bar.
    assert!(!until.contains("^C"), "{until:?}");
    shell.wait_for("sql> ");
    shell.press("SELECT 6 * 7000;\n");
    shell.wait_for("42000");
    shell.wait_for("sql> ");
    shell.press(".quit\n");
    assert_eq!(shell.end(), Some(0));
}

#[test]
fn lines_that_are_typed_ahead_are_executed() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(folder.path());
    let slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000)\n\
                SELECT max(i) FROM n;\n";
    shell.press(&format!("{slow}SELECT 'typed' || '-ahead';\n.quit\n"));
    shell.wait_for("3000000");
    shell.wait_for("typed-ahead");
    assert_eq!(shell.end(), Some(0));
}

#[test]
fn tab_completes_the_name_of_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(folder.path());
    shell.press("CREATE TABLE customers(id);\n");
    shell.wait_for("instructions");
    shell.wait_for("sql> ");
    shell.press("SELECT count(*) + 70 FROM cust\t");
    shell.wait_for("customers");
    shell.press(";\n");
    shell.wait_for("70");
    shell.wait_for("sql> ");
    // Ctrl-D.
    shell.press("\x04");
    assert_eq!(shell.end(), Some(0));
}
