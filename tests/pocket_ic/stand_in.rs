//! This program as a PocketIC server: the part of the REST interface that the tests need, over
//! the embedded replica.
//!
//! It tests the client side of the connection on machines without a server: both generations of
//! clients, rounds, rate limits, chunked modules, snapshots, and errors. **It proves nothing about
//! counts**, since its counts are those of the embedded replica.
//!
//! Like a server it takes `--version`, or `--port-file PATH --ttl SECONDS`. Two variables
//! configure it:
//!
//! | variable | value |
//! |---|---|
//! | `STAND_IN_VERSION` | the version, which selects the rules; 16.1.0 by default |
//! | `STAND_IN_FAULT` | `KIND:METHOD:N`, see [`Fault`] |
//!
//! ```text
//!   POST   /instances                                   creates an instance
//!   DELETE /instances/N                                 deletes it
//!   POST   /instances/N/update/submit_ingress_message   executes a message
//!   POST   /instances/N/update/tick                     executes a round
//!   POST   /instances/N/update/await_ingress_message    the answer to a message
//!   POST   /instances/N/read/ingress_status             the same, null before the second round
//!   POST   /instances/N/read/query
//!   POST   /instances/N/{update/add_cycles, read/get_cycles}
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use candid::{CandidType, Principal, decode_one, encode_one};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, InstallChunkedCodeArgs, InstallCodeArgs,
    LoadCanisterSnapshotArgs, ProvisionalCreateCanisterWithCyclesArgs, Snapshot,
    TakeCanisterSnapshotArgs, UploadChunkArgs,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use stablebench_replica::{Canister, Cycles, Rules, Settings};
use tiny_http::{Header, Request, Response, Server};

use crate::replica::{compile, replica};

/// The scenarios that run on the stand-in: an install of each kind, snapshots, rejects, and a
/// suite through the tool.
pub const SCENARIOS: [&str; 4] =
    ["install_small_and_large", "snapshots_replace_each_other", "traps_roll_back", "suite_users"];

/// The variable that selects a fault.
pub const FAULT: &str = "STAND_IN_FAULT";
const VERSION: &str = "STAND_IN_VERSION";

/// Rounds until a message is answered.
const ROUNDS: u32 = 2;
/// The most snapshots of a canister. Source: `MAX_NUMBER_OF_SNAPSHOTS_PER_CANISTER` in the
/// replica's `rs/config/src/execution_environment.rs`.
const MAX_SNAPSHOTS: usize = 10;

/// The command line of this process as a server.
pub enum Command {
    Version,
    Serve { port_file: PathBuf, ttl: Duration },
}

/// Returns the command if this process is started as a server.
pub fn command() -> Option<Command> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        return Some(Command::Version);
    }
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let ttl = value("--ttl").and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    Some(Command::Serve { port_file: value("--port-file")?.into(), ttl: Duration::from_secs(ttl) })
}

/// Returns the environment in which this program is a server of the given version.
pub fn environment(version: &str) -> Vec<(&'static str, String)> {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    vec![(stablebench_pocket_ic::BINARY, program), (VERSION, version.to_owned())]
}

fn version() -> String {
    std::env::var(VERSION).unwrap_or_else(|_| "16.1.0".to_owned())
}

/// Returns the rules by which a stand-in of the given version charges.
pub fn rules_of(version: &str) -> Rules {
    if version.starts_with("10.") { Rules::of_2025_10() } else { Rules::of_2026_08() }
}

/// Runs this process as a server.
pub fn main(command: &Command) -> ExitCode {
    match command {
        Command::Version => {
            println!("pocket-ic-server {}", version());
            ExitCode::SUCCESS
        }
        Command::Serve { port_file, ttl } => serve(port_file, *ttl),
    }
}

/// Serves until no request has come for `ttl`.
#[expect(clippy::disallowed_methods, reason = "its threads wait for requests forever")]
fn serve(port_file: &Path, ttl: Duration) -> ExitCode {
    let fault = std::env::var(FAULT).ok().map(|text| Fault::parse(&text));
    if fault.as_ref().is_some_and(|fault| fault.kind == "exit") {
        eprintln!("stand-in: exits\nstand-in: as configured");
        return ExitCode::from(3);
    }
    let server = Server::http("127.0.0.1:0").unwrap();
    let port = server.server_addr().to_ip().unwrap().port();
    let state = Mutex::new(State { fault, ..State::default() });
    let used = Mutex::new(Instant::now());
    // The file must appear with its whole line.
    let unfinished = port_file.with_extension("new");
    fs::write(&unfinished, format!("{port}\n")).unwrap();
    fs::rename(&unfinished, port_file).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Ok(request) = server.recv() {
                    answer(&state, request);
                    *used.lock().unwrap() = Instant::now();
                }
            });
        }
        while used.lock().unwrap().elapsed() < ttl {
            thread::sleep(Duration::from_millis(500));
        }
        std::process::exit(0)
    })
}

fn answer(state: &Mutex<State>, mut request: Request) {
    let mut body = Vec::new();
    if request.as_reader().read_to_end(&mut body).is_err() {
        return;
    }
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (status, answer) =
        state.lock().unwrap().answer(request.method().as_str(), request.url(), &body);
    let json = Header::from_bytes("Content-Type", "application/json").unwrap();
    let response = Response::from_string(answer.to_string()).with_status_code(status);
    // The client may have gone.
    let _ = request.respond(response.with_header(json));
}

/// A fault at the Nth call of a method of the management canister.
///
/// | kind | effect |
/// |---|---|
/// | `exit` | exits at start with a message on stderr |
/// | `die` | exits during the call |
/// | `fail` | answers the call with status 500 |
/// | `silent` | never answers the call |
/// | `rate` | rejects the call because of a rate limit |
#[derive(Default)]
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

/// The instances by number.
#[derive(Default)]
struct State {
    fault: Option<Fault>,
    instances: BTreeMap<usize, Instance>,
}

#[derive(Default)]
struct Instance {
    canisters: BTreeMap<Principal, Hosted>,
    messages: Vec<Message>,
}

struct Hosted {
    canister: Canister,
    chunks: BTreeMap<Vec<u8>, Vec<u8>>,
    snapshots: BTreeMap<Vec<u8>, Canister>,
    snapshots_taken: u64,
}

/// A message, which was executed when it was submitted.
struct Message {
    /// Rounds until its outcome is shown.
    rounds: u32,
    outcome: Value,
}

/// A status and a body.
type Answer = (u16, Value);

/// A reply, or a reject in the client's format.
type Outcome = Result<Vec<u8>, Value>;

impl State {
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> Answer {
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let number = path.get(1).and_then(|number| number.parse().ok()).unwrap_or(usize::MAX);
        match (method, path.as_slice()) {
            ("POST", ["instances"]) => {
                let number = self.instances.last_key_value().map_or(0, |(last, _)| last + 1);
                let instance = self.instances.entry(number).or_default();
                let first = BASE64_STANDARD.encode(instance.next_id());
                let topology = json!({
                    "subnet_configs": {},
                    "default_effective_canister_id": { "canister_id": first },
                });
                let created = json!({
                    "instance_id": number,
                    "topology": topology,
                    "http_gateway_info": null,
                });
                (201, json!({ "Created": created }))
            }
            ("DELETE", ["instances", _]) => {
                self.instances.remove(&number);
                (200, Value::Null)
            }
            ("POST", ["instances", _, _, operation]) => match self.instances.get_mut(&number) {
                Some(instance) => instance.answer(operation, body, self.fault.as_mut()),
                None => error(404, "no such instance"),
            },
            _ => error(404, &format!("no route {method} {path:?}")),
        }
    }
}

impl Instance {
    fn answer(&mut self, operation: &str, body: &Value, fault: Option<&mut Fault>) -> Answer {
        match operation {
            "submit_ingress_message" => self.submit(body, fault),
            "tick" => {
                for message in &mut self.messages {
                    message.rounds = message.rounds.saturating_sub(1);
                }
                (200, Value::Null)
            }
            "await_ingress_message" => (200, self.message(body).outcome.clone()),
            "ingress_status" => {
                let message = self.message(&body["raw_message_id"]);
                (200, if message.rounds == 0 { message.outcome.clone() } else { Value::Null })
            }
            "query" => {
                let outcome = self.canister(&principal(&body["canister_id"])).and_then(|hosted| {
                    let (caller, argument) = (principal(&body["sender"]), bytes(&body["payload"]));
                    let query = hosted.canister.query(caller, text(&body["method"]), &argument);
                    query.unwrap().outcome.map_err(replica_reject)
                });
                (200, shown(outcome))
            }
            "add_cycles" | "get_cycles" => match self.canister(&principal(&body["canister_id"])) {
                Ok(hosted) => {
                    let amount = body["amount"].as_u64().unwrap_or_default();
                    hosted.canister.add_cycles(Cycles(amount.into()));
                    let cycles = u64::try_from(hosted.canister.balance().get()).unwrap();
                    (200, json!({ "cycles": cycles }))
                }
                Err(reject) => error(400, &reject.to_string()),
            },
            _ => error(404, &format!("no operation {operation}")),
        }
    }

    /// Executes a message. Its outcome is shown some rounds later.
    #[expect(clippy::disallowed_methods, reason = "one of the faults is to exit")]
    fn submit(&mut self, call: &Value, fault: Option<&mut Fault>) -> Answer {
        let (canister, caller) = (principal(&call["canister_id"]), principal(&call["sender"]));
        let (method, argument) = (text(&call["method"]), bytes(&call["payload"]));
        let mut rounds = ROUNDS;
        let outcome = if canister == Principal::management_canister() {
            match fault.and_then(|fault| fault.at_call(method)) {
                Some("die") => {
                    eprintln!("stand-in: exits during {method}");
                    std::process::exit(101);
                }
                Some("fail") => return error(500, "stand-in: fails as configured"),
                Some("rate") if method.starts_with("install_") => {
                    Err(reject("CanisterInstallCodeRateLimited", "too much code was installed"))
                }
                Some("rate") => {
                    Err(reject("CanisterHeapDeltaRateLimited", "too much memory was changed"))
                }
                fault => {
                    if fault == Some("silent") {
                        rounds = u32::MAX;
                    }
                    self.manage(caller, method, &argument)
                }
            }
        } else {
            self.canister(&canister).and_then(|hosted| {
                let update = hosted.canister.update(caller, method, &argument);
                update.unwrap().outcome.map_err(replica_reject)
            })
        };
        self.messages.push(Message { rounds, outcome: shown(outcome) });
        let number = BASE64_STANDARD.encode((self.messages.len() - 1).to_be_bytes());
        let id = json!({
            "effective_principal": call["effective_principal"],
            "message_id": number,
        });
        (200, json!({ "Ok": id }))
    }

    fn message(&self, id: &Value) -> &Message {
        let number: [u8; 8] = bytes(&id["message_id"]).try_into().unwrap();
        &self.messages[usize::from_be_bytes(number)]
    }

    fn canister(&mut self, id: &Principal) -> Result<&mut Hosted, Value> {
        self.canisters
            .get_mut(id)
            .ok_or_else(|| reject("CanisterNotFound", &format!("Canister {id} not found.")))
    }

    /// Returns the id of the next canister. Ids are consecutive numbers.
    fn next_id(&self) -> Principal {
        let first = replica(rules_of(&version())).create_canister().unwrap().id();
        let mut bytes = first.as_slice().to_vec();
        let (number, _) = bytes.split_first_chunk_mut::<8>().unwrap();
        *number = (u64::from_be_bytes(*number) + self.canisters.len() as u64).to_be_bytes();
        Principal::from_slice(&bytes)
    }

    /// Executes a method of the management canister.
    fn manage(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        match method {
            "provisional_create_canister_with_cycles" => {
                let args: ProvisionalCreateCanisterWithCyclesArgs = decode_one(argument).unwrap();
                let amount = args.amount.map_or(0, |amount| u128::try_from(amount.0).unwrap());
                let id = self.next_id();
                let fresh = replica(rules_of(&version())).create_canister().unwrap();
                let settings = Settings {
                    id,
                    controllers: vec![caller],
                    balance: Cycles(amount),
                    ..fresh.settings().clone()
                };
                let hosted = Hosted {
                    canister: Canister::new(settings).unwrap(),
                    chunks: BTreeMap::new(),
                    snapshots: BTreeMap::new(),
                    snapshots_taken: 0,
                };
                self.canisters.insert(id, hosted);
                encode(&CanisterIdRecord { canister_id: id })
            }
            "clear_chunk_store" => {
                let CanisterIdRecord { canister_id } = decode_one(argument).unwrap();
                self.canister(&canister_id)?.chunks.clear();
                encode(&())
            }
            "upload_chunk" => {
                let UploadChunkArgs { canister_id, chunk } = decode_one(argument).unwrap();
                let hash = Sha256::digest(&chunk).to_vec();
                self.canister(&canister_id)?.chunks.insert(hash.clone(), chunk);
                encode(&ChunkHash { hash })
            }
            "install_code" => {
                let code: InstallCodeArgs = decode_one(argument).unwrap();
                let hosted = self.canister(&code.canister_id)?;
                hosted.install(caller, code.mode, &code.wasm_module, &code.arg)
            }
            "install_chunked_code" => {
                let code: InstallChunkedCodeArgs = decode_one(argument).unwrap();
                let hosted = self.canister(&code.target_canister)?;
                let chunks =
                    code.chunk_hashes_list.iter().map(|chunk| &*hosted.chunks[&chunk.hash]);
                let module = chunks.collect::<Vec<_>>().concat();
                assert_eq!(Sha256::digest(&module)[..], code.wasm_module_hash);
                hosted.install(caller, code.mode, &module, &code.arg)
            }
            "take_canister_snapshot" => {
                let args: TakeCanisterSnapshotArgs = decode_one(argument).unwrap();
                let hosted = self.canister(&args.canister_id)?;
                if let Some(replaced) = args.replace_snapshot {
                    hosted.snapshots.remove(&replaced);
                }
                if hosted.snapshots.len() >= MAX_SNAPSHOTS {
                    return Err(reject("CanisterRejectedMessage", "too many snapshots"));
                }
                hosted.snapshots_taken += 1;
                let id = hosted.snapshots_taken.to_be_bytes().to_vec();
                hosted.snapshots.insert(id.clone(), hosted.canister.fork());
                encode(&Snapshot { id, taken_at_timestamp: 0, total_size: 0 })
            }
            "load_canister_snapshot" => {
                let args: LoadCanisterSnapshotArgs = decode_one(argument).unwrap();
                let hosted = self.canister(&args.canister_id)?;
                hosted.canister.restore(&hosted.snapshots[&args.snapshot_id]);
                encode(&())
            }
            _ => Err(reject("UnknownManagementMessage", &format!("no method {method}"))),
        }
    }
}

impl Hosted {
    fn install(
        &mut self,
        caller: Principal,
        mode: CanisterInstallMode,
        module: &[u8],
        argument: &[u8],
    ) -> Outcome {
        let module = compile(rules_of(&version()), module).map_err(replica_reject)?;
        let execution = match mode {
            CanisterInstallMode::Upgrade(_) => self.canister.upgrade(&module, caller, argument),
            _ => self.canister.install(&module, caller, argument),
        };
        execution.unwrap().outcome.map_err(replica_reject)?;
        encode(&())
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(text(value)).unwrap()
}

fn principal(value: &Value) -> Principal {
    Principal::from_slice(&bytes(value))
}

fn encode(reply: &impl CandidType) -> Outcome {
    Ok(encode_one(reply).unwrap())
}

fn shown(outcome: Outcome) -> Value {
    match outcome {
        Ok(reply) => json!({ "Ok": BASE64_STANDARD.encode(reply) }),
        Err(reject) => json!({ "Err": reject }),
    }
}

/// A reject in the client's format. Its kind follows from the replica's code.
fn reject(code: &str, message: &str) -> Value {
    let kind = match code {
        "CanisterInstallCodeRateLimited" | "CanisterHeapDeltaRateLimited" => "SysTransient",
        "CanisterNotFound" => "DestinationInvalid",
        "CanisterRejectedMessage" | "UnknownManagementMessage" => "CanisterReject",
        _ => "CanisterError",
    };
    json!({
        "reject_code": kind,
        "reject_message": message,
        "error_code": code,
        "certified": false,
    })
}

fn replica_reject(rejected: stablebench_replica::Reject) -> Value {
    reject(rejected.code.name(), &rejected.message)
}

fn error(status: u16, message: &str) -> Answer {
    (status, json!({ "message": message }))
}
