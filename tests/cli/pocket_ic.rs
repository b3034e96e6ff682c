//! `stablebench pocket-ic`: how clients start it, and how it ends.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::{CACHE, command, stderr, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stablebench");

/// A command whose environment names no server.
fn plain(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env("XDG_CACHE_HOME", &*CACHE);
    for name in ["POCKET_IC_BIN", "STABLEBENCH_POCKET_IC_VERSION", "STABLEBENCH_RULES"] {
        command.env_remove(name);
    }
    command
}

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn clients_find_the_version_that_they_require() {
    let newest = "pocket-ic-server 16.1.0\n";
    let program = Path::new(PROGRAM);
    assert_eq!(printed(&mut plain(program, &["pocket-ic", "--version"])), newest);
    // Clients start the program that POCKET_IC_BIN names.
    let mut named = plain(program, &["--version"]);
    assert_eq!(printed(named.env("POCKET_IC_BIN", PROGRAM)), newest);
    let mut tool = plain(program, &["--version"]);
    assert!(printed(tool.env("POCKET_IC_BIN", "/bin/true")).starts_with("stablebench "));
    for (version, shown) in [("10", "10.0.0"), ("9.0.1", "9.0.1"), ("13", "13.0.0")] {
        let mut named = plain(program, &["--version"]);
        named.env("STABLEBENCH_POCKET_IC_VERSION", version);
        assert_eq!(printed(&mut named), format!("pocket-ic-server {shown}\n"));
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, shown) in [
        ("pocket-ic", "16.1.0"),
        ("pocket-ic-server", "16.1.0"),
        ("pocket-ic-12", "12.0.0"),
        ("pocket-ic-server-14.0.0", "14.0.0"),
    ] {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
        let shown = format!("pocket-ic-server {shown}\n");
        assert_eq!(printed(&mut plain(&link, &["--version"])), shown, "{name}");
    }
}

#[test]
fn mistakes_end_in_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |output: &Output, words: &str| {
        let message = stderr(output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(words), "{message}");
    };
    let with = |name: &str, value: &str| {
        plain(Path::new(PROGRAM), &["pocket-ic"]).env(name, value).output().unwrap()
    };
    fails(&with("STABLEBENCH_POCKET_IC_VERSION", "7"), "there is no PocketIC 7 here");
    fails(&with("STABLEBENCH_RULES", "2020-01"), "there are no rules 2020-01");
    let missing = folder.path().join("missing/port");
    let args = ["pocket-ic", "--port-file", missing.to_str().unwrap()];
    fails(&command(&args, folder.path()).output().unwrap(), "choose another --port-file");
    // Another server has the file: the client uses that one.
    let taken = folder.path().join("taken");
    fs::write(&taken, "4943\n").unwrap();
    let args = ["--port-file", taken.to_str().unwrap()];
    assert!(command(&args, folder.path()).output().unwrap().status.success());
    assert_eq!(fs::read_to_string(&taken).unwrap(), "4943\n");
}

/// A server that a client started.
struct Started {
    process: Child,
    port: u16,
}

impl Started {
    fn start(command: &mut Command, port_file: &Path) -> Self {
        let mut process = command.stdout(Stdio::null()).spawn().unwrap();
        let port = loop {
            match fs::read_to_string(port_file) {
                Ok(text) if text.ends_with('\n') => break text.trim().parse().unwrap(),
                _ => assert!(process.try_wait().unwrap().is_none(), "the server ended"),
            }
            sleep(Duration::from_millis(10));
        };
        Self { process, port }
    }

    fn request(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!("{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_server_ends_by_itself_and_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let port_file = folder.path().join("port");
    let file = port_file.to_str().unwrap();
    for arguments in [
        ["--port-file", file, "--ttl", "1", "--log-levels", "error"],
        ["--port-file", file, "--hard-ttl", "2", "--ip-addr", "127.0.0.1"],
    ] {
        let mut command = plain(Path::new(PROGRAM), &arguments);
        let mut server = Started::start(&mut command, &port_file);
        assert!(server.request("GET /status").starts_with("HTTP/1.1 200"));
        assert_eq!(server.process.wait().unwrap().code(), Some(0), "{arguments:?}");
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
    }
    // SIGTERM ends it too, as clients in JavaScript send it.
    let mut command = plain(Path::new(PROGRAM), &["--port-file", file]);
    let mut server = Started::start(&mut command, &port_file);
    let id = server.process.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
    assert!(!port_file.exists());
}

#[test]
fn old_clients_name_their_process() {
    let folder = tempfile::tempdir().unwrap();
    let port_file = folder.path().join("pocket_ic_77.port");
    let mut command = plain(Path::new(PROGRAM), &["--pid", "77", "--ttl", "1"]);
    let mut server = Started::start(command.env("TMPDIR", folder.path()), &port_file);
    while !folder.path().join("pocket_ic_77.ready").exists() {
        sleep(Duration::from_millis(10));
    }
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
