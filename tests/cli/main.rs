//! Tests of the program, which run its command line. Here is what they share.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure fails the test")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use stablebench_replica::{Replica, Rules};

mod builds;
mod calls;
mod canbench;
mod command_line;
mod documents;
mod environment;
mod key_value;
mod network;
mod own_canisters;
mod persistence;
mod pocket_ic;
mod profile;
mod results;
mod serve;
mod sql;
mod sql_scripts;
#[cfg(target_os = "linux")]
mod sql_shell;
mod sqlite;
mod users;

/// The cache of these tests. It contains compiled modules, but no populated canisters, since
/// populating is tested too. The canisters of most tests are compiled before the first test, because
/// two tests that need the same module at the same time would both compile it. Other test programs
/// share the folder.
static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for file in files(&home.join("stablebench")) {
        if file.extension() == Some(OsStr::new("state")) {
            std::fs::remove_file(file).unwrap();
        }
    }
    for canister in ["bench", "bench_vfs", "bench_leveldb"] {
        output_of(&mut in_cache(&home, &["call", canister, "describe"], Path::new(".")));
    }
    home
});

fn command(args: &[&str], directory: &Path) -> Command {
    in_cache(&CACHE, args, directory)
}

fn in_cache(cache: &Path, args: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stablebench"));
    command.args(args).current_dir(directory).env("NO_COLOR", "1").env("XDG_CACHE_HOME", cache);
    command.env_remove("COLUMNS");
    command
}

fn stablebench(args: &[&str], directory: &Path) -> Output {
    command(args, directory).output().unwrap()
}

/// Runs the program, which must succeed.
#[track_caller]
fn succeeds(args: &[&str], directory: &Path) -> Output {
    output_of(&mut command(args, directory))
}

/// Runs the program, which must end with exit code 2.
#[track_caller]
fn fails(args: &[&str], directory: &Path) -> Output {
    let output = stablebench(args, directory);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stdout(&output) + &stderr(&output));
    output
}

/// Runs the program, which must end with exit code 2 and print nothing. Returns its message.
#[track_caller]
fn refused(args: &[&str], directory: &Path) -> String {
    let output = fails(args, directory);
    assert_eq!(stdout(&output), "", "{args:?}");
    stderr(&output)
}

/// Runs a command, which must succeed.
#[track_caller]
fn output_of(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    output
}

/// Sends a signal, such as `-INT`, to a process.
fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// Returns the option for a separate cache, which contains only compiled modules.
fn own_cache(path: &Path) -> String {
    std::fs::create_dir_all(path).unwrap();
    // The shared cache also contains modules under other rules.
    let replica = Replica::new(Rules::today(), None).unwrap();
    let end = format!("-{}.module", replica.cache_version());
    for file in files(&CACHE.join("stablebench")) {
        if file.to_string_lossy().ends_with(&end) {
            std::fs::copy(&file, path.join(file.file_name().unwrap())).unwrap();
        }
    }
    format!("--cache-dir={}", path.display())
}

/// Returns the files in a folder, in order; none if the folder is missing.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(listed) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// `stablebench serve` as a child process, until it is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    root_key: String,
    /// The canisters in the order of the arguments.
    canisters: Vec<String>,
    /// All that it printed at its start.
    printed: String,
    /// The options `--replica` and `--canister` of all canisters.
    target: Vec<String>,
}

impl Server {
    /// Starts a server with these arguments at a free port.
    fn start(arguments: &[&str], directory: &Path) -> Self {
        let args = [&["serve", "--port=0", "--quiet"], arguments].concat();
        Self::of(&mut command(&args, directory))
    }

    /// Starts a server with this command.
    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut url, mut root_key, mut canisters) = (String::new(), String::new(), Vec::new());
        let mut printed = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            printed += &line;
            printed.push('\n');
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["URL", found] => url = (*found).to_owned(),
                // The last line.
                ["root", "key", found] => {
                    root_key = (*found).to_owned();
                    break;
                }
                [_, id] | [_, id, _] => canisters.push((*id).to_owned()),
                _ => {}
            }
        }
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        let mut server = Self { child, address, root_key, canisters, printed, target: Vec::new() };
        server.target.push(server.replica());
        server.target.extend(server.canisters.iter().map(|id| format!("--canister={id}")));
        server
    }

    /// Returns the process id.
    fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its stderr until its end, if that is piped.
    fn notes(&mut self) -> String {
        let mut notes = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
        notes
    }

    /// Waits for its end, and returns the exit code.
    fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Returns `--replica=URL`.
    fn replica(&self) -> String {
        format!("--replica=http://{}", self.address)
    }

    /// Returns the options for a run on it.
    fn target(&self) -> Vec<&str> {
        self.target.iter().map(String::as_str).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
