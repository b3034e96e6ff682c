//! Runs `cargo build`, with its progress, until it ends or Ctrl-C is pressed.

use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use stablebench_suite_builds::NotBuilt;

use crate::interrupt;
use crate::progress::Progress;

/// The longest time until Ctrl-C is noticed.
const TICK: Duration = Duration::from_millis(50);

/// Runs a `cargo build`, and returns the path of the module, if cargo reports one. The progress shows
/// `name`.
///
/// # Errors
///
/// [`NotBuilt`] if cargo cannot build it.
pub fn build(mut cargo: Command, name: &str, progress: &Progress) -> Result<Option<PathBuf>> {
    let step = progress.spinner(&format!("building {name}"));
    let mut child = cargo
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run cargo; install Rust from https://rustup.rs")?;
    let (output, messages) = match (child.stderr.take(), child.stdout.take()) {
        (Some(output), Some(messages)) => (lines(output)?, lines(messages)?),
        _ => bail!("the output of cargo cannot be read"),
    };
    let mut printed = Vec::new();
    loop {
        let line = match output.recv_timeout(TICK) {
            Ok(line) => line?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupted) = interrupt::check() {
                    // The signal may have been sent to this process alone. Compilers that cargo
                    // has started end by themselves.
                    child.kill().and_then(|()| child.wait())?;
                    return Err(interrupted.into());
                }
                continue;
            }
        };
        step.at(printed.len() as u64, line.trim().to_owned());
        printed.push(line);
    }
    let status = child.wait()?;
    step.done("");
    if !status.success() {
        // Ctrl-C ends cargo too.
        interrupt::check()?;
        let printed = printed.join("\n");
        return Err(NotBuilt { reason: reason(&printed), printed }.into());
    }
    let modules = messages.iter().collect::<io::Result<Vec<_>>>()?;
    Ok(modules.iter().filter_map(|message| module_in(message)).next_back())
}

/// Returns the first error of cargo's output, in one line.
fn reason(printed: &str) -> String {
    let error = printed.lines().find(|line| line.starts_with("error"));
    match error.or_else(|| printed.lines().last()) {
        Some(line) => line.trim_start_matches("error: ").to_owned(),
        None => "cargo failed, and printed nothing".to_owned(),
    }
}

/// Returns the path of the module, if a message of cargo reports one.
fn module_in(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message.get("reason")? != "compiler-artifact" {
        return None;
    }
    let files = message.get("filenames")?.as_array()?.iter().filter_map(Value::as_str);
    files.map(PathBuf::from).find(|file| file.extension().is_some_and(|of| of == "wasm"))
}

/// Returns the lines of a pipe. A thread reads them, because programs that cargo has started may keep
/// the pipe open for longer than cargo runs.
fn lines(from: impl Read + Send + 'static) -> Result<Receiver<io::Result<String>>> {
    let (sender, lines) = channel();
    let read = move || {
        // Sending fails once the receiver is gone.
        let _ = BufReader::new(from).lines().try_for_each(|line| sender.send(line));
    };
    thread::Builder::new()
        .spawn(read)
        .context("cannot start a thread that reads the output of cargo")?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_reason_is_the_first_error() {
        let printed = "   Compiling a v0.1.0\nwarning: w\nerror[E0463]: can't find crate for `core`\n\
                       error: could not compile `a` (lib) due to 1 previous error";
        assert_eq!(reason(printed), "error[E0463]: can't find crate for `core`");
        assert_eq!(reason("error: no such package"), "no such package");
        assert_eq!(reason("Killed"), "Killed");
        assert_eq!(reason(""), "cargo failed, and printed nothing");
    }

    #[test]
    fn the_module_is_in_the_messages_of_cargo() {
        let artifact =
            |files: &str| format!(r#"{{"reason":"compiler-artifact","filenames":[{files}]}}"#);
        let module = module_in(&artifact(r#""/t/liba.rlib","/t/a.wasm""#));
        assert_eq!(module.as_deref(), Some(Path::new("/t/a.wasm")));
        assert_eq!(module_in(&artifact(r#""/t/liba.rlib""#)), None);
        assert_eq!(module_in(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(module_in("no JSON"), None);
    }
}
