//! The tool as a program.

use std::path::Path;
use std::process::{Command, Output};

/// The tool, without the settings of whoever runs the tests.
pub fn stablebench(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stablebench"));
    command.current_dir(directory).env("NO_COLOR", "1");
    command
}

/// What it printed on stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What it printed on stdout.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
