//! This program as a PocketIC server that fails: it passes requests on to `stablebench pocket-ic`, with
//! the exception of one.
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
use std::process::{Child, Command, ExitCode};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tiny_http::{Header, Request, Response, Server};

use crate::served;

/// The variable that selects a fault.
pub const FAULT: &str = "FAULT";

/// The arguments of this process if it is started as a server.
pub fn arguments() -> Option<Vec<String>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let first = arguments.first()?;
    (first == "--version" || first == "--port-file").then_some(arguments)
}

/// Returns the environment in which this program is a server of the given version.
pub fn environment(version: &str) -> Vec<(&'static str, String)> {
    let mut environment = served::environment(version);
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    environment.retain(|(name, _)| *name != stablebench_pocket_ic::BINARY);
    environment.push((stablebench_pocket_ic::BINARY, program));
    environment
}

/// Runs this process as a server.
pub fn main(arguments: &[String]) -> ExitCode {
    let fault = std::env::var(FAULT).ok().map(|text| Fault::parse(&text));
    if arguments == ["--version"] {
        let status = Command::new(served::PROGRAM).args(arguments).status().unwrap();
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
        let mut command = Command::new(served::PROGRAM);
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
