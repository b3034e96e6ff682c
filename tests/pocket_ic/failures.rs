//! The tool's errors when a PocketIC server is missing, unsupported or fails: every failure ends in one
//! message and exit code 2, and what was measured is saved.
//!
//! The server that fails is this program: it passes requests on to `stablebench pocket-ic`, with the
//! exception of one.
//!
//! ```text
//!   the tool ──→ this program ──→ stablebench pocket-ic
//!                     └── a fault at the Nth call of a method of the management canister
//! ```
//!
//! The tool starts it like any server, with `--version`, or with `--port-file PATH --ttl SECONDS`. The
//! variable `FAULT` is `KIND:METHOD:N`:
//!
//! | kind | effect |
//! |---|---|
//! | `exit` | exits at start with a message on stderr |
//! | `die` | exits during the call |
//! | `fail` | answers the call with status 500 |
//! | `silent` | never answers the call |
//! | `rate` | rejects the call because of a rate limit |

#![allow(clippy::print_stderr, reason = "a server explains its faults there")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use pocket_ic_16::PocketIcBuilder;
use serde_json::{Value, json};
use tiny_http::{Header, Request, Response, Server};

use crate::bench::{assert_no_difference, stablebench, stderr, stdout};
use crate::example;
use crate::replica::{CACHE_HOME, WASM};
use crate::server::{self, BINARY, rules_of};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("failures::no_server_and_no_network", no_server_and_no_network),
        Trial::test("failures::not_a_server", not_a_server),
        Trial::test("failures::unsupported_version", unsupported_version),
        Trial::test("failures::exits_at_start", exits_at_start),
        Trial::test("failures::answers_with_an_error", answers_with_an_error),
        Trial::test("failures::does_not_answer", does_not_answer),
        Trial::test("failures::the_example", the_example),
    ];
    for version in ["10.0.0", "16.1.0"] {
        let (major, _) = version.split_once('.').unwrap();
        let name = format!("failures::dies_during_a_run_{major}");
        trials.push(Trial::test(name, move || dies_during_a_run(version)));
        let name = format!("failures::rate_limits_are_waited_for_{major}");
        trials.push(Trial::test(name, move || rate_limits_are_waited_for(version)));
    }
    trials
}

/// Returns a run of the smallest suite on PocketIC that finds no server by chance.
fn run(directory: &Path) -> Command {
    let mut command = stablebench(directory);
    command
        .args(["run", "users", "--replica=pocket-ic", "--rows=50", "--batches=1"])
        .args(["--engines=btree,append", "--jobs=1", "--out=results.json"])
        .env_remove(BINARY)
        .env("TMPDIR", directory);
    command
}

/// Executes a run that fails before anything is measured, and checks its message.
#[track_caller]
fn assert_fails(directory: &Path, command: &mut Command, words: &[&str]) {
    let output = command.output().unwrap();
    let message = message(&output);
    assert_contains(&message, words);
    assert_eq!(stdout(&output), "", "{message}");
    assert!(!directory.join("results.json").exists(), "{message}");
}

/// Returns the only message of a run that failed.
fn message(output: &Output) -> String {
    let printed = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(!printed.contains("panicked"), "{printed}");
    let (_, message) = printed.split_once("stablebench: ").unwrap_or_else(|| panic!("{printed}"));
    assert!(!message.contains("stablebench: "), "more than one message: {printed}");
    message.to_owned()
}

#[track_caller]
fn assert_contains(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word:?} is not in\n{message}");
    }
}

fn no_server_and_no_network() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    // No program listens there.
    for proxy in ["http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        run.env(proxy, "http://127.0.0.1:9");
    }
    run.env_remove("NO_PROXY").env_remove("no_proxy");
    let words = ["no PocketIC server", "POCKET_IC_BIN is not set", "download", "releases"];
    assert_fails(directory.path(), &mut run, &words);
    Ok(())
}

fn not_a_server() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("pocket-ic");
    let path = path.to_str().unwrap();
    let named = |path: &str, words: &[&str]| {
        assert_fails(directory.path(), run(directory.path()).env(BINARY, path), words);
    };
    named(path, &[path, "No such file"]);
    fs::write(path, "not executable")?;
    named(path, &[path, "chmod +x"]);
    named("/bin/echo", &["/bin/echo", "is not a PocketIC server"]);
    Ok(())
}

fn unsupported_version() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(server::environment("13"));
    assert_fails(directory.path(), &mut run, &["13.0.0", "10.x", "16.x"]);
    Ok(())
}

fn exits_at_start() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment("16.1.0")).env(FAULT, "exit");
    let words = ["did not start", "by hand", "exit status: 3", "exits\n", "as configured"];
    assert_fails(directory.path(), &mut run, &words);
    Ok(())
}

fn answers_with_an_error() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment("16.1.0")).env(FAULT, "fail:take_canister_snapshot");
    let words =
        ["the run failed", "did not answer take_canister_snapshot; run it again", "fails as"];
    assert_contains(&message(&run.output()?), &words);
    Ok(())
}

fn does_not_answer() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment("16.1.0")).env(FAULT, "silent:take_canister_snapshot");
    let words = ["take_canister_snapshot was not answered within 1000 rounds; send less"];
    assert_contains(&message(&run.output()?), &words);
    Ok(())
}

/// With one job, configurations are measured one after the other: the first is complete when the
/// server exits at the second one's snapshot.
fn dies_during_a_run(version: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let mut run = run(directory.path());
    run.envs(environment(version)).env(FAULT, "die:take_canister_snapshot:2");
    let output = run.output()?;
    let message = message(&output);
    let words =
        ["the run failed", "exited during", "exit status: 101", "faulty server: exits during"];
    assert_contains(&message, &words);
    let saved = fs::read_to_string(directory.path().join("results.json"))?;
    let results: Value = serde_json::from_str(&saved)?;
    let columns: Vec<_> =
        results["cases"].as_array().unwrap().iter().map(|case| &case["configuration"]).collect();
    // In the middle and at the end.
    assert_eq!(columns, ["btree", "btree"]);
    assert_contains(&message, &["2 cases saved to results.json"]);
    assert!(stdout(&output).contains("btree"), "what was measured is shown");
    Ok(())
}

/// Rejects because of a rate limit change no result.
fn rate_limits_are_waited_for(version: &str) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    for fault in ["rate:install_chunked_code", "rate:take_canister_snapshot"] {
        let output = run(directory.path()).envs(environment(version)).env(FAULT, fault).output()?;
        assert!(output.status.success(), "{}", stderr(&output));
        let mut embedded = stablebench(directory.path());
        embedded.args(["run", "users", "--rows=50", "--batches=1"]);
        embedded.args(["--rules", rules_of(version).name()]);
        embedded.args(["--engines=btree,append", "--out=embedded.json"]);
        let output = embedded.output()?;
        assert!(output.status.success(), "{}", stderr(&output));
        assert_no_difference(directory.path(), "embedded.json", "results.json");
        fs::remove_file(directory.path().join("results.json"))?;
        fs::remove_file(directory.path().join("embedded.json"))?;
    }
    Ok(())
}

/// The example that developers copy, on the tool as the newest server.
fn the_example() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let port_file = directory.path().join("port");
    let mut server = Command::new(server::PROGRAM)
        .env("XDG_CACHE_HOME", CACHE_HOME)
        .args(["pocket-ic", "--ttl", "60", "--port-file"])
        .arg(&port_file)
        .spawn()?;
    let port = loop {
        match fs::read_to_string(&port_file) {
            Ok(port) if port.ends_with('\n') => break port,
            _ => assert!(server.try_wait()?.is_none(), "the server exited"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    let url = format!("http://localhost:{}/", port.trim_end());
    let tested = std::panic::catch_unwind(|| {
        let builder = PocketIcBuilder::new().with_application_subnet();
        let pic = builder.with_server_url(url.parse().unwrap()).build();
        example::rows_survive_an_upgrade(&pic, &WASM);
        example::strangers_may_not_write(&pic, &WASM);
        example::a_snapshot_restores_rows(&pic, &WASM);
    });
    server.kill()?;
    server.wait()?;
    tested.map_err(|panic| std::panic::resume_unwind(panic))
}

/// The variable that selects a fault.
const FAULT: &str = "FAULT";

/// The arguments of this process if it is started as a server.
pub fn arguments() -> Option<Vec<String>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let first = arguments.first()?;
    (first == "--version" || first == "--port-file").then_some(arguments)
}

/// Returns the environment in which this program is a server of the given version.
fn environment(version: &str) -> Vec<(&'static str, String)> {
    let mut environment = server::environment(version);
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    environment.retain(|(name, _)| *name != BINARY);
    environment.push((BINARY, program));
    environment
}

/// Runs this process as a server.
pub fn serve(arguments: &[String]) -> ExitCode {
    let fault = std::env::var(FAULT).ok().map(|text| Fault::parse(&text));
    if arguments == ["--version"] {
        let status = Command::new(server::PROGRAM).args(arguments).status().unwrap();
        return if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if fault.as_ref().is_some_and(|fault| fault.kind == "exit") {
        eprintln!("faulty server: exits\nfaulty server: as configured");
        return ExitCode::from(3);
    }
    let port_file = PathBuf::from(&arguments[1]);
    let real = Real::start(&port_file);
    let server = Server::http("127.0.0.1:0").unwrap();
    let port = server.server_addr().to_ip().unwrap().port();
    // The file must appear with its whole line.
    let unfinished = port_file.with_extension("new");
    fs::write(&unfinished, format!("{port}\n")).unwrap();
    fs::rename(&unfinished, port_file).unwrap();
    let state = Mutex::new(State { fault, silent: Vec::new() });
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Ok(request) = server.recv() {
                    answer(&state, &real, request);
                }
            });
        }
    });
    ExitCode::SUCCESS
}

/// The server behind this one, which ends with it.
struct Real {
    process: Child,
    port: u16,
}

impl Real {
    fn start(port_file: &Path) -> Self {
        let file = port_file.with_extension("real");
        let mut command = Command::new(server::PROGRAM);
        command.arg("--port-file").arg(&file).args(["--ttl", "60"]);
        let process = command.spawn().unwrap();
        let port = loop {
            match fs::read_to_string(&file) {
                Ok(port) if port.ends_with('\n') => break port.trim().parse().unwrap(),
                _ => thread::sleep(Duration::from_millis(10)),
            }
        };
        Self { process, port }
    }

    /// Passes a request on, and returns the status and the body of the answer.
    fn pass(&self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&answer[..end]);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        (status, answer[end + 4..].to_vec())
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Fault {
    kind: String,
    method: String,
    call: u32,
    /// Calls of the method so far.
    calls: u32,
}

impl Fault {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(':').map(str::to_owned);
        Self {
            kind: parts.next().unwrap_or_default(),
            method: parts.next().unwrap_or_default(),
            call: parts.next().map_or(1, |number| number.parse().unwrap()),
            calls: 0,
        }
    }

    /// Counts a call, and returns the kind of fault that it is to meet.
    fn at_call(&mut self, method: &str) -> Option<&str> {
        self.calls += u32::from(self.method == method);
        (self.method == method && self.calls == self.call).then_some(&*self.kind)
    }
}

struct State {
    fault: Option<Fault>,
    /// Ids of messages that are never answered.
    silent: Vec<Value>,
}

fn answer(state: &Mutex<State>, real: &Real, mut request: Request) {
    let mut body = Vec::new();
    if request.as_reader().read_to_end(&mut body).is_err() {
        return;
    }
    let (method, path) = (request.method().as_str().to_owned(), request.url().to_owned());
    let content: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (status, answer) = state
        .lock()
        .unwrap()
        .fail(&path, &content)
        .unwrap_or_else(|| real.pass(&method, &path, &body));
    if path.ends_with("/submit_ingress_message") {
        state.lock().unwrap().note(&content, &answer);
    }
    let json = Header::from_bytes("Content-Type", "application/json").unwrap();
    let response = Response::from_data(answer).with_status_code(status);
    // The client may have gone.
    let _ = request.respond(response.with_header(json));
}

impl State {
    /// Returns the answer to a request that meets the fault.
    #[expect(clippy::disallowed_methods, reason = "one of the faults is to exit")]
    fn fail(&mut self, path: &str, content: &Value) -> Option<(u16, Vec<u8>)> {
        if path.ends_with("/ingress_status") {
            let id = &content["raw_message_id"]["message_id"];
            return self.silent.contains(id).then(|| (200, b"null".to_vec()));
        }
        // The management canister's id has no bytes.
        if !path.ends_with("/submit_ingress_message") || content["canister_id"] != "" {
            return None;
        }
        let method = content["method"].as_str()?;
        let json = |value: Value| value.to_string().into_bytes();
        match self.fault.as_mut()?.at_call(method)? {
            "die" => {
                eprintln!("faulty server: exits during {method}");
                std::process::exit(101);
            }
            "fail" => Some((500, json(json!({ "message": "faulty server: fails as configured" })))),
            "rate" => {
                let code = match method.starts_with("install_") {
                    true => "CanisterInstallCodeRateLimited",
                    false => "CanisterHeapDeltaRateLimited",
                };
                let reject = json!({
                    "reject_code": "SysTransient",
                    "reject_message": "too much was changed",
                    "error_code": code,
                    "certified": false,
                });
                Some((200, json(json!({ "Err": reject }))))
            }
            _ => None,
        }
    }

    /// Notes a message that is never to be answered.
    fn note(&mut self, content: &Value, answer: &[u8]) {
        let Some(fault) = &self.fault else { return };
        if fault.kind == "silent" && content["method"] == fault.method.as_str() {
            let answer: Value = serde_json::from_slice(answer).unwrap_or(Value::Null);
            self.silent.push(answer["Ok"]["message_id"].clone());
        }
    }
}
