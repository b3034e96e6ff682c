//! `stablebench pocket-ic`: how clients start it, and how it ends.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use candid::{Principal, encode_one};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, InstallCodeArgs, ProvisionalCreateCanisterWithCyclesArgs,
};
use serde_json::{Value, json};

use crate::environment::unwritable;
use crate::{CACHE, command, output_of, stderr, stdout};

const MANAGEMENT: Principal = Principal::management_canister();

/// Prints a line in each call.
const PRINTER: &str = r#"(module
    (import "ic0" "debug_print" (func $print (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (func $tell (call $print (i32.const 0) (i32.const 4)) (call $reply))
    (export "canister_update tell" (func $tell))
    (export "canister_query ask" (func $tell)))"#;

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
    stdout(&output_of(command))
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
        symlink(PROGRAM, &link).unwrap();
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
        self.send(request, "")
    }

    fn send(&self, request: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Returns the status and the content of the answer to a call.
    fn call(&self, path: &str, canister: Principal, method: &str, payload: &[u8]) -> (u16, Value) {
        let effective = match canister == MANAGEMENT {
            true => json!("None"),
            false => json!({ "CanisterId": BASE64_STANDARD.encode(canister.as_slice()) }),
        };
        self.post(
            &format!("/instances/0/{path}"),
            &json!({
                "sender": BASE64_STANDARD.encode(Principal::anonymous().as_slice()),
                "canister_id": BASE64_STANDARD.encode(canister.as_slice()),
                "effective_principal": effective,
                "method": method,
                "payload": BASE64_STANDARD.encode(payload),
            }),
        )
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.send(&format!("POST {path}"), &body.to_string());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}")))
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

/// The folder of temporary files is shared, and the names are known beforehand.
#[test]
fn files_of_old_clients_do_not_follow_links() {
    let folder = tempfile::tempdir().unwrap();
    let [precious, port, ready] = ["precious", "pocket_ic_77.port", "pocket_ic_77.ready"]
        .map(|name| folder.path().join(name));
    fs::write(&precious, "content").unwrap();
    symlink(&precious, &ready).unwrap();
    let mut command = plain(Path::new(PROGRAM), &["--pid", "77", "--ttl", "1"]);
    let mut server = Started::start(command.env("TMPDIR", folder.path()), &port);
    while fs::symlink_metadata(&ready).is_ok_and(|it| it.is_symlink()) {
        sleep(Duration::from_millis(10));
    }
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "content");
    // A link in place of the port counts as another server, even if it leads nowhere.
    for target in [precious.as_path(), Path::new("missing")] {
        symlink(target, &port).unwrap();
        assert!(command.output().unwrap().status.success());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "content");
        assert!(!folder.path().join("missing").exists());
        fs::remove_file(&port).unwrap();
    }
}

#[test]
fn answers_do_not_depend_on_stderr_and_contain_no_backtrace() {
    for stderr in unwritable() {
        let folder = tempfile::tempdir().unwrap();
        let port_file = folder.path().join("port");
        let mut command = plain(Path::new(PROGRAM), &["--port-file", port_file.to_str().unwrap()]);
        command.env("RUST_BACKTRACE", "1").stderr(stderr);
        let server = Started::start(&mut command, &port_file);
        let one = json!({ "subnet_config_set": { "application": [{}] } });
        assert_eq!(server.post("/instances", &one).0, 201);
        let done = |path: &str, canister, method: &str, payload: &[u8]| {
            let (status, answer) = server.call(path, canister, method, payload);
            assert_eq!(status, 200, "{method}: {answer}");
            BASE64_STANDARD
                .decode(answer["Ok"].as_str().unwrap_or_else(|| panic!("{answer}")))
                .unwrap()
        };
        let execute = "update/execute_ingress_message";
        let create = "provisional_create_canister_with_cycles";
        let args = ProvisionalCreateCanisterWithCyclesArgs {
            amount: Some(100_000_000_000_000_u64.into()),
            ..Default::default()
        };
        let created = done(execute, MANAGEMENT, create, &encode_one(args).unwrap());
        let id = candid::decode_one::<CanisterIdRecord>(&created).unwrap().canister_id;
        let args = InstallCodeArgs {
            mode: CanisterInstallMode::Install,
            canister_id: id,
            wasm_module: wat::parse_str(PRINTER).unwrap(),
            arg: Vec::new(),
            sender_canister_version: None,
        };
        done(execute, MANAGEMENT, "install_code", &encode_one(args).unwrap());
        for _ in 0..3 {
            done(execute, id, "tell", b"");
            done("read/query", id, "ask", b"");
        }
        for payload in ["", "no Candid", "DIDL\u{1}\u{6c}"] {
            for method in [create, "install_code", "canister_status"] {
                let (status, answer) = server.call(execute, MANAGEMENT, method, payload.as_bytes());
                let answer = answer.to_string();
                assert_eq!(status, 400, "{method}: {answer}");
                assert!(answer.contains("Error decoding candid"), "{method}: {answer}");
                assert!(!answer.contains("acktrace") && !answer.contains(".rs:"), "{answer}");
            }
        }
    }
}
