//! Output for shells, terminals and `man`.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{command, stablebench, stderr, stdout};

/// A run that takes no time.
const TINY: &[&str] = &[
    "--rows=20",
    "--batches=1",
    "--at=end",
    "--engines=array,append",
    "--no-wall-time",
    "--no-page",
];

#[test]
fn quiet_prints_results_only() {
    let directory = tempfile::tempdir().unwrap();
    let normal = stablebench(TINY, directory.path());
    assert!(stderr(&normal).contains("2 cases saved to results.json"), "{}", stderr(&normal));
    for quiet in [&["--quiet"][..], &["-q", "run", "users"]] {
        let output = stablebench(&[quiet, TINY].concat(), directory.path());
        assert!(output.status.success());
        assert_eq!((stdout(&output), stderr(&output)), (stdout(&normal), String::new()));
    }
    let failed = stablebench(&["--quiet", "report", "missing.json"], directory.path());
    assert_eq!(failed.status.code(), Some(2));
    assert!(stderr(&failed).starts_with("stablebench: "), "{}", stderr(&failed));
}

#[test]
fn tables_are_folded_to_the_width_of_the_terminal() {
    let shown = |columns: &str| {
        let mut command = command(&["report", "published:users"], Path::new("."));
        stdout(&command.env("COLUMNS", columns).output().unwrap())
    };
    insta::assert_snapshot!(shown("50"));
    for (columns, width) in [("50", 50), ("72", 72), ("79", 79)] {
        let shown = shown(columns);
        // Commands are not wrapped, so that they can be copied.
        let lines = shown.lines().filter(|line| !line.starts_with("Repeat with: "));
        let longest = lines.map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} in {width}");
    }
    let unbroken = stdout(&stablebench(&["report", "published:users"], Path::new(".")));
    assert_eq!(shown("much"), unbroken, "an invalid number is ignored");
}

#[test]
fn colours_follow_the_option_and_the_environment() {
    let bold = |args: &[&str], no_color: &str| {
        let args = [args, &["report", "published:users"]].concat();
        let output = command(&args, Path::new(".")).env("NO_COLOR", no_color).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).contains("\u{1b}[1m")
    };
    assert!(!bold(&[], ""), "a pipe");
    assert!(!bold(&["--color=auto"], ""));
    assert!(!bold(&["--color=never"], ""));
    assert!(bold(&["--color=always"], ""));
    assert!(bold(&["--color", "always"], "1"), "the option takes precedence");
    let failed = |color: &str| {
        stderr(&stablebench(&[color, "report", "missing.json"], Path::new("."))).contains("\u{1b}[")
    };
    assert!(failed("--color=always") && !failed("--color=never"));
}

#[test]
fn completions_work_in_shells() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = stablebench(&["completions", shell], Path::new("."));
        assert!(output.status.success(), "{shell}");
        assert!(stdout(&output).contains("sysbench"), "{shell}");
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("completions");
    fs::write(&script, stablebench(&["completions", "bash"], Path::new(".")).stdout).unwrap();
    // Complete `stablebench run sys` in bash.
    let words = format!(
        "source {}; COMP_WORDS=(stablebench run sys); COMP_CWORD=2; _stablebench stablebench sys run; \
         echo \"${{COMPREPLY[*]}}\"",
        script.display()
    );
    let completed = Command::new("bash").args(["-c", &words]).output().unwrap();
    assert_eq!(stdout(&completed), "sysbench\n", "{}", stderr(&completed));
}

#[test]
fn every_command_has_a_manual_page() {
    let page = stdout(&stablebench(&["man"], Path::new(".")));
    assert!(page.contains(".TH stablebench 1"), "{page}");
    assert!(page.contains("canbench"), "{page}");
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("share/man/man1");
    let output = stablebench(&["man", "--out", folder.to_str().unwrap()], Path::new("."));
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["", "-run", "-run-users", "-compare", "-profile", "-cache-clear"] {
        assert!(folder.join(format!("stablebench{name}.1")).is_file(), "{name}");
    }
    let page = fs::read_to_string(folder.join("stablebench-run-users.1")).unwrap();
    assert!(page.contains("sections"), "{page}");
    fs::write(directory.path().join("file"), "").unwrap();
    let inside = directory.path().join("file/man1");
    let output = stablebench(&["man", "--out", inside.to_str().unwrap()], Path::new("."));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot save manual pages in "), "{}", stderr(&output));
}

/// Destinations that accept nothing: a full disk, and a pipe whose reader has gone.
pub fn unwritable() -> [Stdio; 2] {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (_, closed) = std::io::pipe().unwrap();
    [full.into(), closed.into()]
}

#[test]
fn a_closed_or_full_stderr_changes_neither_results_nor_exit_codes() {
    let directory = tempfile::tempdir().unwrap();
    let sysbench: &[&str] = &["run", "sysbench", "--rows=30", "--places=memory", "--no-wall-time"];
    for (args, code) in [
        (TINY, 0),
        (&["--list", "--batches=1"], 0),
        (&["list"], 0),
        (&["module", "bench"], 0),
        (&["call", "bench", "describe"], 0),
        (&["report", "published:users"], 0),
        (&["compare", "published:users", "published:users"], 0),
        (&[sysbench, &["--format=json", "--max-ratio=0.001"]].concat(), 1),
        (&[sysbench, &["--format=csv", "--max-ratio=0.001"]].concat(), 1),
        (&["report", "missing.json"], 2),
        (&["canbench"], 1),
        (&["nothing"], 2),
        (&["run", "users", "--rows=0"], 2),
        (&["pocket-ic", "--version"], 0),
    ] {
        let normal = stablebench(args, directory.path());
        assert_eq!(normal.status.code(), Some(code), "{args:?}: {}", stderr(&normal));
        for unwritable in unwritable() {
            let output = command(args, directory.path()).stderr(unwritable).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{args:?}");
            assert!(output.stdout == normal.stdout, "{args:?}: {}", stdout(&output));
        }
        // Without a stderr at all.
        let mut shell = Command::new("sh");
        let program = command(args, directory.path());
        shell.args(["-c", "exec \"$0\" \"$@\" 2>&-"]).arg(program.get_program()).args(args);
        let environment = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let output = shell.envs(environment).current_dir(directory.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        assert!(output.stdout == normal.stdout, "{args:?}: {}", stdout(&output));
    }
}
